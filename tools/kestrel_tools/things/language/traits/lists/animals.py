"""How animals live: what they eat, where they are at home, what they are.

How it is written: `kestrel_tools.things.language.traits.table`.
"""

TABLE = """
carries its baby in a pouch
+ koala
? monkey, bear, backpack

spins a web; makes a web; catches flies in a web
+ spider
. [There is a web in the corner|Look at that cobweb|I walked into a web]
, [who|what|which one] [made it|lives there]

starts life as a caterpillar; grows out of a caterpillar
+ butterfly
? bee, ladybug, ant

starts life as a tadpole; grows out of a tadpole
+ frog
? fish, turtle

hops; moves by hopping
+ rabbit, frog
? squirrel, mouse, @bird, koala, monkey, goat, @ball, dog, cat, horse, sheep, dolphin, spider, ladybug, fox
? robot, alien, zebra

can climb trees; is a good tree climber
+ monkey, squirrel, koala
? cat, bear, panda, snake, ant, spider, snail, frog, mouse, lion, tiger, goat, ladybug, bat, @bird, robot
? alien, bee, butterfly, crab, fox, rabbit, dog, smiley, @being

swings from tree to tree
+ monkey
? koala, squirrel, spider, snake, bat

sleeps upside down; sleeps hanging from the ceiling
+ bat
? monkey, koala, spider, owl, squirrel, snake

is awake at night; comes out at night
+ owl, bat
? @animal, moon, star, @being, candle, light bulb, fire

loves bananas; likes bananas
+ monkey
? elephant, bear, bat, pig, squirrel, @being, butterfly, koala, giraffe

loves cheese; is known for loving cheese
+ mouse
? dog, cat, fox, bear, pig, @being, squirrel, ant, wolf

loves carrots; likes to nibble carrots
+ rabbit
? horse, cow, pig, goat, sheep, mouse, squirrel, turtle, zebra, camel, elephant, giraffe, @being, monkey, bear
? snail, dog, panda, koala, ant, duck, chicken

loves honey; is known for loving honey
+ bear
? bee, ant, panda, butterfly, monkey, koala, @being, squirrel, dog, ladybug, wolf, fox

collects nuts for the winter; hides nuts
+ squirrel
? mouse, pig, bear, rabbit, duck, monkey, eagle, owl, ant, wrench

eats bamboo
+ panda
? koala, elephant, monkey, bear, goat, horse, mouse

eats eucalyptus leaves
+ koala
? panda, giraffe, monkey, goat, elephant

eats grass; grazes in the meadow
+ cow, sheep, horse, goat, zebra
? rabbit, giraffe, elephant, camel, pig, panda, duck, turtle, snail, mouse, tractor, chicken, ant, koala, dog
? cat, ladybug, squirrel, monkey, bear
!? Would anything here [graze in a meadow|eat the grass in my yard]?

hunts other animals; a predator
+ lion, tiger, wolf, shark, eagle, crocodile
? fox, owl, cat, snake, bear, dog, spider, whale, dolphin, octopus, penguin, frog, bat, fish, crab, ladybug
? ant, chicken, duck, monkey, turtle, pig, mouse, squirrel, @being, bee

belongs to the cat family
+ cat, lion, tiger

belongs to the dog family
+ dog, wolf
? fox

is called man's best friend
+ dog
? horse, cat, robot, book, phone, laptop

fetches sticks; can fetch a stick
+ dog
? robot, wolf, monkey, eagle, elephant, dolphin, fox, @being, ant, horse, cat

wags its tail
+ dog
? fox, wolf, cat, cow, fish, horse, crocodile, lion, tiger, shark, whale, dolphin, duck, mouse, pig, monkey
? goat

catches mice; chases mice
+ cat
? owl, eagle, fox, snake, dog, wolf, bear, crocodile, lion, tiger
. [There is a mouse in my house|I have mice in the cellar|Mice ate my cheese]
, [what|who|which one] could [help|catch them]

can guard the house
+ dog
? lock, key, door, camera, bell, robot, lion, duck, wolf, light bulb, bear, tiger, crocodile, angry face
? @being, snake, elephant, police car, eagle, cat, horse, owl, monkey, goat, bee, pig, cow, shark

can pull a carriage
+ horse
? dog, cow, camel, goat, elephant, @vehicle, zebra, sheep, pig, lion, bear, giraffe, robot, tiger, wolf, mouse

is called the king of the animals; is called the king of the jungle
+ lion
? tiger, crown, elephant, bear, monkey

slithers; crawls on its belly
+ snake
? snail, crocodile, turtle, frog

animal> is very slow; moves very slowly
+ snail, turtle
? koala, panda, ladybug, ant, crab, octopus, cow, penguin, sheep, whale, elephant, camel, duck, pig, frog
? spider, bear, chicken, butterfly, snake, goat

animal> can live for more than a hundred years
+ turtle
? whale, elephant, crocodile, shark, eagle, fish

is the largest animal in the world
+ whale
? elephant

is the tallest animal in the world
+ giraffe
? elephant, whale

a mammal
+ @mammal
? alien, @being

a reptile
+ snake, crocodile, turtle
? frog, snail

an amphibian
+ frog
? turtle, crocodile, snake

a bird
+ @bird
? bat

an insect; a bug
+ @insect
? spider, snail, crab

lives on a farm; a farm animal
+ cow, pig, horse, sheep, chicken, goat
? duck, dog, cat, mouse, rabbit, bee, owl, spider, ant, snail, ladybug, butterfly, fish, frog, camel, snake
? fox, squirrel, bat
. [We are going to a farm|We are visiting a farm|My uncle has a farm]
, which [animal|of the animals] [will we see|could we see|would we meet] there
!? Is any animal here [typical of a farm|at home on a farm|from a farm]?

lives in the jungle
+ tiger, monkey
? @animal, -cow, -pig, -sheep, -horse, -penguin, -whale, -dolphin, -shark, -camel, -chicken

lives in the forest; lives in the woods
+ bear, fox, wolf, squirrel, owl
? @animal, -cow, -penguin, -whale, -dolphin, -shark, -camel, -octopus, -fish, -crab, -crocodile, -giraffe
? -zebra, house, ghost

lives in Africa; you meet ~ on a safari in Africa
+ lion, giraffe, zebra, elephant
? @animal, -panda, -koala, -bear, -tiger
. [We are on safari|I'm flying to Kenya|We are in the savanna]
, which [animal|of the animals] might we [meet|see|spot] there

lives on the ice; lives at the South Pole
+ penguin
? bear, whale, fish, wolf, fox, snowman, dolphin, owl, rabbit, shark, octopus, crab, duck, eagle
! Which animal would I meet at the South Pole?

lives in the desert
+ camel
? snake, spider, cactus, turtle, lion, fox, ant, elephant, mouse, owl, horse, goat, eagle, giraffe, zebra
? rabbit, sheep, bat, squirrel, alien, wolf, ladybug, bee, skull
! [What|Who|Which one] is called the ship of the desert?

comes from Australia; lives in Australia
+ koala
? @animal, -panda, -giraffe, -zebra, -lion, -tiger, -elephant, -bear, -wolf, -monkey, -squirrel, kiwi

lives in a hive
+ bee
? ant

a pet; you keep ~ as a pet
+ dog, cat
? rabbit, mouse, fish, turtle, snake, spider, horse, chicken, pig, goat, duck, frog, monkey, sheep, snail
? squirrel, cow, ant, owl, fox, crab, robot, bat, butterfly, ladybug, octopus, eagle, wolf, cactus
. [I would like a pet|We want to get a pet|My kids want a pet]
, [what|which one] [would you suggest|could we get|would be the right one]

a wild animal
+ lion, tiger, wolf, elephant, giraffe, zebra, bear, crocodile
? @animal, -dog, -cat, -cow

a zoo animal; is a typical zoo animal
+ lion, tiger, elephant, giraffe, zebra, monkey, panda
? @animal

likes to roll in the mud
+ pig
? elephant, dog, frog, crocodile, horse, cow, goat, crab, snake, tractor, bear, turtle

spouts water
+ whale
? elephant, dolphin, fire truck, drop, cloud

walks sideways
+ crab
? spider, snake, octopus, horse

squirts ink
+ octopus
? pencil

sleeps through the winter; hibernates
+ bear
? squirrel, bat, frog, turtle, snake, mouse, fox, @insect, snail, panda, crocodile, spider, fish
? sleeping face, rabbit, koala, tree, laptop, phone, crab

flies from flower to flower; visits flowers
+ bee, butterfly
? ladybug, ant, bat, spider, snail, mouse

a bird that cannot fly = birds that cannot fly
+ penguin
? chicken, duck
"""
