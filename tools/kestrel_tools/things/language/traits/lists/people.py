"""What vehicles do, who uses what, what belongs to an occasion, how faces look.

How it is written: `kestrel_tools.things.language.traits.table`.
"""

TABLE = """
you ride; can be ridden
+ horse, camel, bicycle, motorcycle
? @vehicle, elephant, zebra, cow, goat, sheep, pig, dolphin, whale, turtle, giraffe, lion, tiger, bear
? crocodile, wolf, shark, snail, dog, @being, eagle, rocket, bomb, cloud, balloon
. [I'm tired of walking|I want to go for a ride]
, what could I ride [on|]

a vehicle; a means of transport = means of transport
+ @vehicle
? horse, camel, elephant, balloon, robot
! What [here|] could people travel [in|with]?

has two wheels; a two-wheeler
+ bicycle, motorcycle
? airplane, helicopter, backpack, glasses, tractor, chair, bed, robot, rocket
! Which one would I have to balance on two wheels?

has wheels
+ @road, bicycle, motorcycle, train
? airplane, helicopter, rocket, backpack, chair, bed, robot, watch, clock, cheese, @boat, sailboat, camera
? bomb, gift, lock

has pedals
+ bicycle
? @vehicle, @instrument, @flower

has a motor; has an engine
+ @road, motorcycle, airplane, helicopter
? train, rocket, @boat, robot, bicycle, saw, bomb, watch, clock, camera, laptop, television, alien, tent
? balloon, phone, screwdriver, microphone

runs on rails; runs on tracks
+ train
? bus, @road
. I'm waiting at the station
, what will arrive on the track

travels on water; sails on the sea; a boat
+ @boat
? duck, penguin, turtle, dolphin, whale, crocodile, fish, shark, frog, drop, octopus, crab, anchor, leaf
? @ball, balloon, helicopter, airplane, alien, robot, house, umbrella, palm tree, envelope, bed
. [I want to cross the lake|We live on an island]
, what could [take us across the water|we travel in]

has a sail; needs wind to move
+ sailboat
? ship, leaf, balloon, cloud, tent, umbrella, rocket, fish, butterfly, drop, fire, snowflake

keeps a ship from drifting away
+ anchor
? @boat, lock, @shape

drives on the road
+ car, taxi, bus, truck, motorcycle, police car, ambulance, fire truck
? bicycle, tractor, train, airplane, helicopter, @boat, sailboat, @vehicle

flies into space; takes astronauts to the moon
+ rocket
? alien, airplane, star, helicopter, robot, @being, moon, sun, balloon
. [Let's fly to Mars|I want to see the moon up close]
, what [could I fly in|would take us there]

has a pilot; by a pilot: fly
+ airplane, helicopter
? rocket, balloon, @boat, alien, robot, @bird

has a rotor; has rotor blades
+ helicopter
? airplane, rocket, ship, @vehicle, robot

takes you to another continent in a few hours
+ airplane
? @vehicle, balloon, alien, eagle, phone, television, laptop
. [I have to be in America tomorrow|I live in Europe and visit Japan]
, what [do I take|gets me there]

has a siren; is an emergency vehicle
+ fire truck, ambulance, police car
? helicopter, motorcycle, truck, @boat, bell, bus, car, taxi, train, trumpet, airplane, house, phone, tractor
? rocket

puts out fires; to put out a fire = putting out fires; by a firefighter: drive
+ fire truck
? drop, helicopter, cup, airplane, cloud, bed, elephant, truck, ambulance, police car, car, axe, whale, @boat
? snowman, snowflake, umbrella, frying pan
? phone, bell
. [A house is burning|There's a fire|The barn is on fire]
, [what should come|what do we need|which vehicle do we call]

brings sick people to the hospital; takes you to the hospital
+ ambulance
? helicopter, @vehicle, cross, bed, horse, robot
? phone
. [Somebody is badly hurt|My neighbor fainted|There was an accident]
, [what do we need|what should come|which vehicle do we call]

by the police: drive; chases thieves
+ police car
? car, motorcycle, truck, helicopter, bus, @vehicle, dog, horse, bicycle, lock, robot, @animal, @being
? magnifying glass
. [I was robbed|There is a burglar|A thief stole my bag]
, [what should come|what would chase him]

takes you home if you pay the driver; by a cab driver: drive
+ taxi
? @vehicle, horse, camel

takes many children to school
+ bus
? car, taxi, train, bicycle, @vehicle, horse

carries many passengers at once; has room for fifty people
+ bus, train, airplane, ship
? @vehicle, elephant, house, tent, balloon, whale

carries heavy loads
+ truck
? @vehicle, camel, horse, elephant, backpack, ant, cow, anchor, robot, @animal, balloon

works in the fields; by a farmer: drive
+ tractor
? truck, horse, cow, car, bee, @animal, @vehicle, robot

is ridden with a helmet
+ bicycle, motorcycle
? horse, rocket, @vehicle, tennis racket, @ball, camel, hammer, saw, axe, bomb, fire, elephant, @animal
. [I just bought a helmet|I put on my helmet]
, what [could|might] I ride

by a king: wear; by a queen: wear; is worn by kings and queens
+ crown
? hat, @shape, @clothing, watch, glasses, trophy, bell, key
. [The king is coming|The queen gets dressed]
, what [goes on the royal head|is missing on the royal head]

by a magician: pull a rabbit out of
+ hat
? backpack, gift, boot, rabbit, frying pan, cup, tent, house, @vehicle, bed, balloon

by a carpenter: work with
+ hammer, saw
? screwdriver, pencil, wrench, axe, knife, scissors, @vehicle, chair, door, house, tree, glasses, key, lock
? clock, watch, robot, bed, light bulb, hat, phone, cup, backpack, laptop, magnifying glass, palm tree, leaf

by a plumber: fix a pipe with
+ wrench
? screwdriver, hammer, saw, truck, light bulb, robot, drop, knife

by a lumberjack: fell a tree with; to cut down a tree = cutting down trees
+ axe, saw
? knife, truck, tractor, hammer, scissors, @vehicle, lightning, fire, robot, mouse, elephant

by a chef: cook with
+ frying pan
? knife, fire, @food, @eaten, cup, hat, scissors, mushroom, clock, drop, axe, saw, candle

by a hairdresser: cut hair with
+ scissors
? knife, saw, axe, robot

by a photographer: take pictures with
+ camera
? phone, laptop, robot, light bulb, umbrella, glasses, watch

by a detective: look for clues with
+ magnifying glass
? camera, phone, glasses, dog, light bulb, laptop, police car, candle, pencil, book, hat, key, robot

by a carpenter: drive nails with
+ hammer
? axe, wrench, screwdriver, frying pan, robot

by an astronaut: travel in
+ rocket
? @vehicle, alien, balloon, robot

by a captain: steer; by a sailor: travel on
+ @boat
? rocket, airplane, helicopter, @vehicle, anchor, alien, whale, camel, horse, dolphin, turtle

has to do with pirates; by a pirate: draw ~ on the flag
+ skull
? @boat, anchor, crown, knife, hat, bomb, @shape, diamond, key, lock, palm tree, @bird, monkey, ring, boot
? fire, axe, shark, ghost, @being, saw, book, backpack, cross, trophy, crocodile, whale, octopus

by a singer: sing into; by a reporter: speak into
+ microphone
? phone, camera, trumpet, television, laptop, bell, cup, robot

by a musician: play
+ @instrument
? bell, microphone, phone, laptop, saw, @ball, television, robot, tennis racket, @being

by an artist: draw with
+ pencil
? phone, laptop, knife, robot, fire

by a student: write with
+ pencil
? laptop, phone, robot

by a pupil: take ~ to school; is needed at school
+ pencil, book, backpack
? @gadget, scissors, glasses, watch, clock, @vehicle, bell, @food, chair, magnifying glass, @clothing
? envelope, hat, @instrument, @ball, cup, umbrella, key, lock, light bulb, tennis racket, @animal, door, house
? mushroom, @being, microphone, trophy, gift, tent, saw, @plant, @shape, knife, bed

by a gardener: grow
+ @flower
? @plant, @fruit, @vegetable, mushroom, clover

by a florist: sell
+ @flower
? @plant, gift, balloon, envelope, candle, @shape, ring, mushroom, @fruit, drop

by a baker: bake; you buy ~ at a bakery
+ bread, cake, cookie, donut
? @food, cup, candle, -banana, -watermelon, -cucumber, -fries, -grapes, -carrot, mushroom, frying pan

by a tennis player: hit the ball with
+ tennis racket
? frying pan, shoe

by a cowboy: ride; by a knight: ride
+ horse
? cow, camel, zebra, elephant, goat, sheep, pig, lion, bear, giraffe, dog, wolf, @vehicle

by a mouse: nibble
+ cheese
? @food, mushroom, @plant, book, pencil, candle, shoe, boot, @clothing

by a monkey: eat
+ banana
? @food, @insect, @plant, mushroom, spider, -hamburger, -pizza, -fries, -hot dog, -cheese

by a rabbit: eat
+ carrot
? @food, @plant, mushroom, -hamburger, -pizza, -fries, -hot dog, -cheese

by a beekeeper: keep
+ bee
? butterfly, ladybug, ant, @flower

by a shepherd: look after
+ sheep
? goat, dog, cow, pig, horse, rabbit, chicken, wolf, camel

by a fisherman: catch
+ fish
? crab, shark, octopus, boot, shoe, whale, dolphin, turtle, frog, duck, crocodile, anchor, penguin, drop
? snail

belongs to Halloween
+ ghost, skull
? spider, cat, bat, owl, wolf, snake, mouse, frog, moon, candle, hat, @being, corn, knife, apple, bomb, axe
? @sweets, fire, saw, @shape, house, mushroom, light bulb, lightning, door, boot, dress, leaf, tree

comes from another planet; comes from outer space
+ alien
? rocket, moon, sun, star, ghost, robot, @shape, lightning, skull
! [Who|What] came here in a flying saucer?

says beep; a machine that looks like a person = machines that look like people
+ robot
? @gadget, watch, clock, @vehicle, microphone, bomb, alien, bell, @being, mouse

says boo; haunts old houses
+ ghost
? alien, skull, owl, bat, spider, mouse, @being, cat, cow

warns of poison; means that something is deadly
+ skull
? bomb, fire, lightning, mushroom, snake, spider, @shape, ghost, angry face, frog, bee, @being, cross

is made of bone
+ skull
? @animal, ghost, knife, alien

is smiling; looks happy
+ smiley
? @animal, sun, moon, snowman, @ghosts, robot, alien, heart, sleeping face

is crying; looks sad
+ sad face
? @animal, drop, snowman, @ghosts, robot, alien, sleeping face, moon, cloud, @shape

comes from science fiction
+ robot, alien
? rocket, ghost, skull, @being, moon, sun, star, laptop

shows a feeling
+ smiley, sad face, angry face
? @being, @animal, heart, sun, moon

looks angry; is furious
+ angry face
? @animal, @ghosts, robot, alien, @shape, bomb, fire, sun, moon, snowman, @vehicle, sad face

is asleep; is sleeping
+ sleeping face
? @animal, bed, moon, sun, smiley, ghost, @ghosts, snowman, alien, robot

belongs at a birthday party; is for a birthday
+ cake, gift, balloon
? candle, hat, @food, crown, envelope, @flower, cup, camera, @being, @ball, @instrument, bell, dress, shirt
? book, heart, @shape, bicycle, watch, phone, laptop, microphone, robot, backpack, rainbow, @animal
? tennis racket, trophy, @clothing, television, @gadget, @vehicle, chair, knife, glasses, tent
. [It's|It is] [my daughter's|grandpa's|our] birthday
, what [here is for the party|do we need for the party]

by children: build ~ in winter; belongs to winter
+ snowman
? snowflake, house, tent, penguin, bear, @clothing, tree, gift, fire, candle, bed, cloud, cup, bell, @being
? fox, wolf, car, @vehicle, moon

falls in winter; is made of ice
+ snowflake
? snowman, leaf, drop, cloud, ice cream, @shape, tree, penguin, star, @being, diamond

you pitch ~ at a campsite; you sleep in ~ at a campsite
+ tent
? house, bed, bus, truck, car, backpack, fire, @vehicle, umbrella, chair, @ball, shirt, @being
. We are going camping
. We want to spend the night in the woods
, what [could we sleep in|should we put up for the night]
"""
