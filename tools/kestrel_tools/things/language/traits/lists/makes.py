"""What things are made of, what they have, how large and how loud they are.

How it is written: `kestrel_tools.things.language.traits.table`.
"""

TABLE = """
has a roof
+ house
? tent, @vehicle, umbrella, mushroom, door, hat, bed, trophy

has windows
+ house, car, taxi, bus, train, airplane, police car, ambulance, truck
? @vehicle, laptop, door, tent, phone, television, camera, robot, watch, magnifying glass, glasses, clock
? backpack, envelope, light bulb

has a doorknob; you walk through ~ into a room
+ door
? house, drum, tree, watermelon, lock, key, tent, @vehicle, rainbow, egg, bell, @shape, bed, book

you wear; you put on; can be worn
+ @clothing, glasses, watch, crown
? backpack, umbrella, ring, skull, heart, bell, key, lock, trophy, @flower, phone, tent, diamond, @shape
? camera, microphone, @being, leaf, bed, sheep, fox, bear, crocodile, snake, envelope, cup, clock, frying pan
? balloon, gift, @animal, anchor
. [I have nothing to wear|I need to get dressed|I'm still in my pajamas]
, what [could I put on|is there to wear]
!? Is there [anything|something] [here|] [to wear|to put on|I could wear|to dress in]?
!? Any clothes [here|in this picture|]?

you wear ~ on your head; is worn on the head; goes on your head
+ hat, crown
? glasses, frying pan, cup, @flower, book, boot, umbrella, shirt, clover, leaf, ring, @being, trophy, bell
? mushroom, @animal, heart, watch, balloon, @shape, skull, backpack, cloud, ice cream
. [My head is cold|I'm losing my hair]
, what could I put on my head

you wear ~ on your feet; is worn on the feet; goes on your feet
+ shoe, boot
? @shape, horse
. [The ground is cold|I'm barefoot|My feet hurt on these stones]
, what could I put on my feet

comes in pairs
+ shoe, boot
? @animal, glasses, scissors, cherries, drum, @food, candle, @vehicle, @ball, ring, @shape, watch, key, bell
? lock, @being, chair, crown, balloon, @flower, light bulb, saw, tennis racket, pencil

you wear ~ on your wrist; is worn on the wrist
+ watch
? ring, clock, phone, @shape, shirt, @flower, bell, key

to carry school books = carrying school books; has shoulder straps; is worn on the back
+ backpack
? tent, guitar, snail, turtle, shirt, dress, @vehicle, rocket, drum, violin, trumpet, robot, gift, camel
? horse, book, chair, laptop, elephant, @being, ladybug, bee
. [I'm|I am] going hiking
. I have many things to carry
, what do I put my things in

a piece of clothing = pieces of clothing
+ @clothing
? glasses, watch, crown, backpack, umbrella, ring, @shape, snowman, skull, sheep

has sleeves
+ shirt
? dress, book, cup, bed, snowman, microphone, umbrella, hat, boot, laptop

you open ~ with a key; has a keyhole
+ lock, door
? house, @vehicle, gift, bed, laptop, watch, clock, trophy, key, robot, backpack, envelope, book, camera
? violin, trumpet, phone, bell

has a backrest
+ chair
? bed, @vehicle, backpack, tent, skull

has a mattress; has a blanket and a pillow
+ bed
? chair, tent, @vehicle, house, sleeping face, backpack

is man-made; is made by people
+ @vehicle, @tool, @instrument, @clothing, @object, @ball
? @food, @being, fire, @shape, drop, mushroom, lightning

has laces
+ shoe
? boot, gift, hat, dress, shirt, @ball, backpack, tent

is used to fry things; to fry an egg = frying eggs; to cook = cooking
+ frying pan
? fire, egg, sun, knife, cup, @food, candle, light bulb, mushroom
. [I want to make an omelette|I'd like a fried egg]
, what [do I need|could I use]

belongs in a toolbox; to repair things = repairing things
+ hammer, wrench, screwdriver, saw
? axe, knife, scissors, pencil, key, lock, magnifying glass, light bulb, robot, glasses, phone, laptop, bomb
? watch, fire, candle, truck, anchor, book, @vehicle
. [Something broke|The shelf is broken|I want to build a bookcase]
, [which tools are there|what do we have in the toolbox]

a tool
+ hammer, wrench, screwdriver, saw, axe
? scissors, knife, key, lock, pencil, umbrella, magnifying glass, frying pan, anchor, phone, laptop, camera
? @vehicle, light bulb, glasses, watch, clock, microphone, robot, tent, backpack, drum, tennis racket, bell
? book, @instrument

a piece of furniture = pieces of furniture
+ chair, bed
? clock, television, light bulb, door, backpack, tent, house, candle, laptop

an electronic device; a gadget
+ phone, laptop, television, camera
? watch, clock, microphone, robot, light bulb, guitar, @vehicle, key, lock, bomb, door, magnifying glass
? umbrella, glasses, pencil, lightning, bell, scissors, screwdriver, alien, wrench, saw, candle, frying pan
? @instrument

is made of metal
+ key, anchor, wrench, trumpet, bell
? @vehicle, @tool, scissors, knife, crown, trophy, lock, frying pan, robot, watch, clock, camera, phone
? laptop, glasses, light bulb, microphone, bomb, magnifying glass, drum, ring, @shape, television, chair, bed
? door, backpack, cup, candle, guitar, umbrella, tennis racket, pencil, tent, house, gift, balloon, alien
? lightning, @instrument

is made of paper
+ book, envelope
? gift, pencil, cup, balloon, light bulb, hat, crown, tree, fries, @shape, snowflake, umbrella, house, tent
? backpack, cookie, airplane, lock, sailboat, leaf, @flower, television, laptop, ice cream, @food, rocket
? butterfly, door

is made of fabric; is made of cloth
+ shirt, dress
? hat, boot, shoe, umbrella, tent, backpack, bed, sailboat, chair, balloon, snowman, ghost, book, gift, sheep
? @ball, crown, watch, glasses, rabbit, bear, door, drum, @animal, tennis racket, television, lock, @shape

breaks if you drop it; is fragile
+ egg, light bulb
? cup, @gadget, glasses, magnifying glass, watch, clock, trophy, candle, @food, @instrument, bomb, snowman
? snowflake, pencil, balloon, house, mushroom, @flower, @plant, crown, skull, bell, television, gift
? microphone, umbrella, robot, drop, chair, door, ring, @shape, heart, lock, key, tent, @vehicle, @animal
? rainbow, tennis racket, lightning, rocket

fits in a pocket; is small enough for a pocket
+ key, pencil, phone
? @food, @small, mushroom, candle, bell, lock, light bulb, book, camera, clock, envelope, glasses
? magnifying glass, cup, scissors, screwdriver, knife, wrench, watch, @being, @shape, leaf, clover, @flower
? drop, snowflake, microphone, gift, balloon, crown, bomb, ring, fire, heart, cactus, hammer, shoe, hat, frog
? squirrel, fish, crab, trophy, shirt, chicken, duck, turtle, snake, rabbit, bat, sun, moon, lightning, star

is heavier than a person; weighs more than a person
+ elephant, whale, horse, cow, camel, giraffe, car, taxi, bus, truck, tractor, train, ship, airplane
+ helicopter, fire truck, ambulance, police car, house
? lion, tiger, bear, panda, pig, goat, sheep, wolf, dolphin, shark, crocodile, zebra, turtle, octopus, snake
? motorcycle, sailboat, rocket, tree, palm tree, sun, moon, cloud, rainbow, lightning, fire, snowman, bed
? door, anchor, cactus, robot, alien, ghost, tent, television, drum, @shape, dog, monkey, skull, @being
? trophy, bomb, bell, clock, fish, bicycle, balloon, @plant, chair

is bigger than a car in real life; is larger than a car
+ elephant, whale, bus, truck, train, ship, airplane, house, fire truck
? giraffe, tree, palm tree, helicopter, rocket, ambulance, tractor, sailboat, sun, moon, cloud, rainbow
? lightning, fire, camel, horse, cow, shark, bear, crocodile, taxi, police car, car, tent, snowman, @shape
? @being, dolphin, octopus, cactus, balloon, bomb, anchor, clock, bell

makes a loud noise; is very loud
+ trumpet, drum, fire truck, ambulance, police car
? @animal, @vehicle, @instrument, bell, clock, phone, television, bomb, lightning, fire, microphone, @being
? laptop, door, balloon, hammer, saw, axe, watch, robot, drop, @ball, frying pan, cup, house, cloud, wrench

rings; you ring
+ bell
? phone, door, clock, bicycle, watch, laptop, drum, ring, microphone, trumpet, hammer, @vehicle, television
? cow, @shape

hangs in a church tower
+ bell
? clock, candle, cross, bat, @shape, house, owl

has a handle
+ frying pan, hammer, axe, umbrella, knife, screwdriver, saw, magnifying glass, tennis racket
? @object, @tool, @vehicle, @instrument, @being, wrench, scissors

is dangerous; can kill you
+ lion, tiger, shark, crocodile, bomb, fire, lightning
? @animal, @tool, @vehicle, @being, cactus, rose, mushroom, candle, light bulb, frying pan, sun, anchor, cup
? phone, drop, tree, snowflake, cloud, lock, pencil, tennis racket, palm tree, television, laptop, cake
? @sweets, @meal, egg, bed, glasses, balloon, key, @ball, door, @shape, magnifying glass
. [Children are playing here|I have a small child|I want to be safe]
, [what|which one] [is dangerous|must we stay away from]

is alive; is a living being
+ @animal
? @plant, @fruit, @vegetable, mushroom, egg, @being, fire, sun, heart, @food, house, bed

an animal
+ @animal
? @being, egg, frying pan, @food

shape> has corners; has pointed corners
+ square, triangle, diamond
? star, cross, heart

shape> has no corners; is round
+ circle, ring
? heart

shape> has five points
+ star

shape> looks like a plus sign
+ cross
? star

shape> looks like a coin
+ circle
? ring

shape> has a hole in it
+ ring

shape> has three corners; has three sides
+ triangle

shape> has four corners; has four sides
+ square, diamond
? cross

is round like a ball
+ soccer ball, basketball
? @fruit, @vegetable, @food, @animal, @being, sun, moon, clock, watch, balloon, bomb, drum, cup, mushroom
? @shape, bell, light bulb, magnifying glass, glasses, sunflower, tennis racket, frying pan, crown, hat
? snowflake, trophy, rose, tree, cactus, cloud, drop, camera, lock, gift, fire, umbrella, ring, clover, key
? microphone, shoe
"""
