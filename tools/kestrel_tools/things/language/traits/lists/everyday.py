"""Further traits, which training asks about and the score never does.

How it is written: `kestrel_tools.things.language.traits.table`.
"""

TABLE = """
is happy; looks cheerful; is in a good mood
+ smiley
? @animal, sun, moon, snowman, @ghosts, robot, alien, heart, sleeping face
! Who [here|] is [happy|in a good mood|feeling good]?

is sad; is unhappy; feels down
+ sad face
? @animal, drop, snowman, @ghosts, robot, alien, sleeping face, moon, cloud, @shape, angry face
! Who [here|] [is sad|is unhappy|needs a hug|needs comforting]?

is mad; is in a bad mood; looks grumpy
+ angry face
? @animal, @ghosts, robot, alien, @shape, bomb, fire, sun, moon, snowman, @vehicle, sad face, @being
! Who [here|] is [mad|angry|in a bad mood]?

is tired; needs some rest
+ sleeping face
? @animal, bed, moon, sun, @being, chair
! Who [here|] is [tired|having a nap|dreaming]?

is made of wood; is wooden
+ violin, guitar
? tree, palm tree, leaf, @object, @tool, @instrument, @vehicle, knife, @shape, snowman, skull, mushroom, fire
? robot, boot, shoe, @plant, -anchor, -phone, -laptop, -balloon

is made of glass
+ light bulb
? glasses, magnifying glass, cup, @gadget, watch, clock, @vehicle, house, door, candle, trophy, @shape, bell
? drop, snowflake, alien, robot, snowman, lightning, crown, heart, envelope, lock, microphone, ghost

contains meat; has meat in it; is made with meat
+ hamburger, hot dog
? pizza, frying pan, @animal, egg, bread, cheese, fries, skull, knife, potato
! What [here|] would [a vegetarian|somebody who eats no meat] [not eat|send back|leave on the plate]?

you have ~ for breakfast; belongs on the breakfast table
+ egg, bread
? @food, frying pan, cup, @eaten, mushroom, knife, chair, candle, sun, bell, @flower

grows in bunches
+ grapes, banana
? @fruit, @vegetable, @plant, mushroom, balloon, key, egg, @being

has seeds on the outside
+ strawberry
? kiwi, corn, pineapple, sunflower, bread, hamburger, cookie, cactus, mushroom

you crack open; has a shell you can crack
+ egg
? @food, @animal, lock, book, door, skull, gift, bomb, light bulb, house, mushroom

you squeeze ~ for juice; you make juice from
+ orange
? @fruit, @vegetable, cactus, drop, cup, palm tree

gives us wood; you get wood from
+ tree
? palm tree, axe, saw, leaf, cactus, house, pencil, chair, @plant

by a squirrel: climb; by a child: climb up
+ tree
? palm tree, house, door, @plant, bed, chair, @animal, @vehicle, @object, @being, mushroom, cloud

smells nice; smells lovely
+ @flower
? @food, candle, @plant, cup, frying pan, mushroom, fire, gift, bed, @clothing, @animal

belongs to Easter; is typical of Easter
+ egg, rabbit
? chicken, sheep, @flower, @food, gift, cross, duck, mouse, cup, bell, butterfly, bee, leaf, clover, fire
? candle, heart, frying pan, goat, squirrel, @bird, backpack

you put ~ under the Christmas tree
+ gift
? @object, @ball, @instrument, @clothing, @food, @animal, @tool, @shape, @vehicle, tree, snowman, robot
? tennis racket, scissors, knife, @flower

you put ~ on a birthday cake
+ candle
? @food, heart, star, balloon, fire, @flower, @shape, sun, trophy, crown, @being, @animal, rainbow

animal> lives in China; comes from China
+ panda
? @animal, -penguin, -koala, -giraffe, -zebra, -lion

animal> has black and white stripes
+ zebra
? @animal, -elephant, -lion, -frog, -turtle, -bear, -fox, -horse, -octopus, -crab

has big ears; has very large ears
+ elephant, rabbit
? @mammal, @being, corn, owl, -whale, -dolphin

lives in the water; lives under water
+ fish, shark, octopus, whale, dolphin
? crab, turtle, penguin, crocodile, duck, snail, snake, frog, @boat, anchor, drop, bear, eagle, elephant, cow

by a cat: chase
+ mouse
? @animal, @ball, balloon, cheese, leaf, drop, @shape, scissors

by a soccer player: kick
+ soccer ball
? basketball, shoe, boot, shirt, balloon, door

by a rock band: play
+ guitar, drum
? @instrument, microphone, bell

by a bee: visit
+ @flower
? @plant, @fruit, tree, clover, leaf, @food, bear, @being, house

carries people through the air
+ airplane, helicopter
? rocket, balloon, @bird, bat, alien, robot, @insect, ghost, cloud, umbrella

you buy a ticket for; is public transport
+ bus, train
? @vehicle, television, @ball, tennis racket, microphone, @instrument, tent, camel, horse, camera, trophy
? police car, @animal, bed, house, rocket, elephant

you pedal; you move ~ with your own legs
+ bicycle
? @ball, horse, camel, @boat, @instrument, scissors

has hands but no arms; has two hands and a dial
+ clock, watch
? phone, television, laptop, camera, drum, robot, alien, @vehicle, @being, @animal

is burning; has a flame
+ fire, candle
? sun, light bulb, bomb, rocket, lightning, angry face, house, cake, frying pan, tree, leaf, moon, fire truck
? @vehicle, star

you see ~ in the night sky
+ moon
? sun, @bird, bat, lightning, cloud, rocket, airplane, helicopter, alien, @shape, snowflake, drop, rainbow
? balloon, light bulb, @being, @insect, @animal, fire

belongs to a storm; you see ~ in a thunderstorm
+ lightning
? cloud, drop, umbrella, rainbow, fire, snowflake, sun, moon, house, tree, airplane, leaf, boot, helicopter

to start a car = starting a car
+ key
? phone, wrench, screwdriver, watch, @vehicle, lightning, robot

you charge ~ overnight; has a battery
+ phone, laptop
? @gadget, @vehicle, @instrument, @tool, watch, clock, robot, microphone, light bulb, lock, door, bomb, bell
? candle, alien, scissors, key, lightning, house, book, magnifying glass, backpack, @being

you use ~ in the kitchen; belongs in the kitchen
+ frying pan, knife, cup
? @food, @object, scissors, mouse, ant, cat, dog, fire, mushroom, @flower, drop, @tool, @animal, @plant, robot
? -anchor, -tent, -tennis racket, -bed, -bomb, -microphone, -trophy, -crown

stands in the bedroom; belongs in the bedroom
+ bed
? @object, @clothing, cat, dog, @being, moon, spider, @plant, robot, @animal, -anchor, -tent, -frying pan
? -bomb, -trophy

you throw and catch
+ basketball
? soccer ball, @food, tennis racket, balloon, bomb, @shape, axe, knife, saw, hammer, snowman, snowflake, hat
? shoe, boot, fish, key, anchor, @animal, @ball, skull, @object

you take ~ on a camping trip; you pack for a night outdoors
+ tent, backpack
? @object, @tool, @food, fire, @clothing, @vehicle, @instrument, knife, scissors, dog, @ball, robot

you wear ~ for running; you go jogging in
+ shoe
? boot, @clothing, watch, glasses, backpack

by a lady: wear ~ to a dance
+ dress
? @clothing, crown, watch, ring, glasses, diamond, heart, @flower

you pick ~ in the forest
+ mushroom
? @plant, @fruit, leaf, @food, @animal, lock

belongs on a desk; is useful in an office
+ laptop, pencil
? @object, @tool, scissors, @food, @plant, knife, cactus, @being, @ball, -bed, -tent, -anchor, -bomb, -door
? -frying pan, -tennis racket

is wet; makes you wet
+ drop
? fish, shark, octopus, whale, dolphin, crab, turtle, frog, duck, penguin, snail, crocodile, snowflake
? snowman, cloud, @boat, umbrella, anchor, cup, lightning, @fruit, @vegetable, rainbow, ice cream, sad face
? fire truck, egg, leaf, boot, @plant
"""
