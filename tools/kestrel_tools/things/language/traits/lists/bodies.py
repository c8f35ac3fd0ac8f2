"""What animals do, what noise they make, and what bodies they have.

How it is written: `kestrel_tools.things.language.traits.table`.
"""

TABLE = """
can fly; is able to fly
+ owl, eagle, duck, bee, butterfly, ladybug, bat, airplane, helicopter, rocket
? chicken, penguin, ant, balloon, ghost, alien, cloud, fish, squirrel, snowflake, leaf, drop, star, robot
? bomb, moon, sun, umbrella, spider, @ball, tent, angry face, smiley, heart, rainbow, lightning
! [What|Which one] can [take off and fly|fly through the air|fly in the sky] [here|]?
!? [Could|Can] [anything|something] here [take off and fly|fly away|fly off]?

has wings
+ owl, eagle, duck, chicken, penguin, bee, butterfly, ladybug, bat, airplane
? ant, helicopter, rocket, fish, ghost, heart, house, envelope, shark, dolphin, whale, alien, bed, star

has feathers; is covered in feathers
+ @bird
? bed, hat, bat, envelope

has a beak
+ @bird
? turtle, octopus, dolphin, alien

lays eggs
+ chicken, duck, penguin, owl, eagle, turtle, crocodile
? fish, shark, snake, frog, spider, @insect, snail, octopus, crab, alien, egg
! [Who|What|Which one] hatched from an egg?

lives in the sea; lives in the ocean; a sea creature
+ fish, shark, octopus, whale, dolphin, crab
? turtle, penguin, crocodile, duck, snail, snake, frog, @boat, anchor, drop, eagle
. [We are at the aquarium|We went diving|I love the ocean|We sail across the ocean]
, [what|which one] would [we|you|one] [see|meet] [down there|in the water]
!? Does anything here live [in the sea|in salt water|in the ocean]?

has gills; can breathe under water
+ fish, shark
? octopus, crab, frog, turtle, crocodile, whale, dolphin, snail, penguin, duck, snake, alien, robot, drop
? mushroom

has fins
+ fish, shark, dolphin, whale
? rocket, penguin, turtle, octopus, airplane, crocodile, frog, duck, bomb

can swim; is a good swimmer
+ fish, shark, octopus, whale, dolphin, duck, penguin, turtle, frog, crocodile
? @animal, @being, @boat

barks; says woof; goes woof
+ dog
? wolf, fox
. [Woof|Woof woof|Bow-wow|I hear barking|Something is barking]
, [who|what|which one] [could that be|was that|is it]

says meow; meows
+ cat
? tiger, lion, owl
. [Meow|Miaow|Meoow|I hear a meow]
, [who|what|which one] [said that|was that|could that be]

says moo; goes moo
+ cow
. [Moo|Mooo|I hear a moo]
, [who|what|which one] [said that|says that|goes like that]
! Old MacDonald had one that went moo. What was it?

says oink; oinks
+ pig
. [Oink|Oink oink]
, [who|what|which one] [said that|says that]

says baa; goes baa
+ sheep
? goat

says neigh; neighs
+ horse
? zebra, camel

says ribbit; croaks
+ frog

says quack; quacks
+ duck
. [Quack|Quack quack]
, [who|what|which one] [said that|says that]

goes cluck; clucks
+ chicken
? duck
. [Cluck cluck|Cock-a-doodle-doo]
, [who|what|which one] [said that|says that]

hoots at night; goes hoo hoo
+ owl
? ghost

roars; can roar
+ lion, tiger
? @vehicle, bear, elephant, wolf, crocodile, monkey, fire, koala, shark, alien, angry face, whale, camel
? panda, cow, robot, dog, cat

howls at the moon
+ wolf
? dog, fox, cat, ghost

hisses; goes ssss
+ snake
? cat, crocodile, turtle, duck, fire, frying pan, train, spider, lion, tiger, owl, bat, bee, bomb, balloon

buzzes; goes bzzz
+ bee
? phone, clock, light bulb, ladybug, butterfly, watch, television, lightning, laptop, microphone, @vehicle
? door, saw, bell, robot, ant, camera, sleeping face, alien

says squeak; squeaks
+ mouse
? bat, squirrel, rabbit, dolphin, pig, monkey, door, balloon, shoe, bed, chair, violin, bicycle, duck, koala
? boot, @vehicle, @ball, trumpet, microphone

can sting; has a stinger; stings
+ bee
? ant, cactus, octopus, fish, rose, spider, snake, ladybug, crab, lemon
. [Ouch|Ow|Help, I was stung|Something stung me]
, what [was it|could it have been|stung me]

makes honey; gives us honey; you get honey from
+ bee
? bear
. [I love honey|I put honey in my tea|There is honey on my bread]
, [who|what|which one] [makes it|made it]

gives us milk; you milk; you get milk from; can be milked
+ cow, goat
? sheep, camel, horse, zebra, palm tree, drop, cup
. [We are out of milk|There is no milk left|I need fresh milk]
, [what|who|which one] [could give us some|does it come from]

gives us wool; you get wool from
+ sheep
? goat, camel, rabbit
. [I want to knit a sweater|Grandma knits socks|I need wool]
, [what|which one] [gives us the wool|does the wool come from]

gives us eggs; you get eggs from
+ chicken
? duck, penguin, owl, eagle, turtle, fish, frying pan, crocodile, egg, snake, snail, frog, octopus, crab
? shark
. [I want eggs for breakfast|We need fresh eggs]
, [who|which one] lays them for us

has a trunk; has a very long nose
+ elephant
? tree, palm tree, car, taxi, police car, mouse, fox, airplane, snowman, dolphin, crocodile, dog, bat
! [What|Which one] [drinks through its nose|picks things up with its nose|has a nose like a hose]?

has a long neck; has a very long neck
+ giraffe
? camel, guitar, violin, duck, turtle, horse, snake, zebra, goat, cow, penguin, sheep, light bulb, dolphin
! [What|Which one|Who] can eat leaves from [the top of a tree|very high trees]?

has a hump on its back
+ camel
? whale, turtle, snail, cow, bear, dolphin, backpack

has stripes; is striped
+ tiger, zebra, bee
? cat, fish, squirrel, shirt, umbrella, watermelon, balloon, @ball, hat, rainbow, snail, tent, cup, candle
? dress, snake, gift, @vehicle, bed, butterfly, pencil, drum, tulip, cucumber, book, envelope, chair, shoe
? boot, corn, backpack, crab, lion, dog, monkey, mushroom, egg, cake, ice cream, watch, microphone, house
? cookie, frog, turtle, pineapple, pig, clover, leaf, @shape, trophy, duck, owl, eagle, wolf, koala, goat
? door, ant, donut, hot dog, pizza, palm tree, guitar, violin, bread, snowman, saw, carrot

has spots; is spotted
+ ladybug, giraffe
? @animal, mushroom, strawberry, cookie, donut, pizza, cheese, watermelon, egg, dress, shirt, balloon, cup
? umbrella, gift, moon, banana, @ball, hat, pear, kiwi, bread, cake, leaf, apple, potato, cactus, alien, bed
? pineapple, boot, shoe, tent, backpack, clover, @shape, sun, snowman, orange, lemon, peach, ice cream
? hamburger, tree, sunflower, @flower

has a shell
+ snail, turtle
? crab, egg, ladybug, ant, bomb, corn, kiwi, octopus, crocodile, avocado, peach, cherries

carries its home on its back; carries its house around
+ snail
? turtle, crab, backpack, tent

has eight legs; is eight-legged
+ spider
? octopus, crab

has tentacles; has eight arms
+ octopus
? spider, crab, snail, alien

has six legs
+ @insect
? spider, crab, alien

has four legs; is four-legged; walks on four legs
+ @four-legged
? turtle, crocodile, frog, monkey, bat, chair, bed, robot, alien, camera, television

has two legs; walks on two legs
+ @bird
? monkey, bat, bear, panda, koala, squirrel, rabbit, mouse, @being, glasses, scissors, frog, dog, fox

animal> has no legs; has no legs at all
+ snake, fish, shark, whale, dolphin, snail
? octopus

has a tail
+ dog, cat, mouse, fox, tiger, lion, cow, pig, horse, elephant, wolf, squirrel, monkey, crocodile, zebra, fish
+ whale, dolphin, shark, giraffe
? rabbit, bear, panda, koala, sheep, goat, camel, snake, turtle, @bird, bat, airplane, helicopter, rocket
? snail, alien, octopus, @ghosts, hat, bomb, balloon, lightning, crab, bee, frog, butterfly, spider, ant
? sailboat

has horns
+ goat
? cow, sheep, giraffe, snail, @vehicle, trumpet, alien, angry face, owl, butterfly, ladybug, ant, skull, bee

has a mane
+ lion, horse
? zebra, giraffe, wolf, sheep, camel, dog, goat, pig

has long ears; has very long ears
+ rabbit
? dog, elephant, mouse, fox, koala, cow, goat, sheep, pig, horse, camel, bat, wolf, zebra, squirrel, corn
? alien, giraffe, monkey, cat

has whiskers
+ cat, mouse
? dog, rabbit, fox, tiger, lion, wolf, squirrel, bear, panda, koala, fish, shark, pig, goat, monkey, bat
? horse, cow, sheep, camel, dolphin, whale, owl, corn

has pincers
+ crab
? ant, spider, ladybug, wrench, scissors, octopus, robot, alien, bee

has hooves
+ horse, cow, goat, sheep, zebra
? pig, giraffe, camel, elephant

has fur; is furry; is covered in fur
+ dog, cat, mouse, rabbit, fox, bear, panda, koala, tiger, lion, monkey, wolf, squirrel
? cow, pig, horse, sheep, goat, camel, giraffe, zebra, bat, elephant, bee, spider, hat, boot, peach, kiwi
? penguin, @bird, alien, butterfly, ant, bed, dress, dolphin, whale, shoe

has scales; is covered in scales
+ fish, snake, crocodile
? shark, turtle, pineapple, butterfly, chicken, frog, dolphin, whale, palm tree, alien, violin, octopus, crab

has sharp teeth; has big sharp teeth
+ shark, crocodile, lion, tiger, wolf
? @animal, saw, skull, alien, key, robot, @ghosts, angry face

has a beard
+ goat
? lion, monkey, wolf, dog, @being, cat, fox, bear, corn, lock

has antennae
+ butterfly, ant, snail
? bee, ladybug, crab, alien, robot, television, phone, @vehicle, microphone, watch, spider, laptop, house
? mouse
"""
