"""What things are for. How it is written: `kestrel_tools.things.language.traits.table`."""

TABLE = """
to cut paper = cutting paper; to cut a ribbon = cutting ribbons; to cut hair = cutting hair; cuts paper
+ scissors
? knife, saw, axe
. [My hair is too long|I need a haircut|The ribbon is too long|This coupon must be cut out]
, [what could cut it|what do I cut it with|what do I need]

to slice bread = slicing bread; to cut vegetables = cutting vegetables; to butter a toast = buttering toast
+ knife
? saw, scissors, axe
. [I'm making a sandwich|I want a slice of bread|The vegetables are whole]
, [what do I cut with|what can I use to cut]

to cut wood = cutting wood; to saw a board = sawing boards
+ saw
? axe, knife, scissors

to chop wood = chopping wood; to split logs = splitting logs
+ axe
? saw, knife, hammer
. [We need firewood|I need wood for the stove]
, [what do I chop it with|with what could I chop it]

is sharp; has a sharp blade; has a sharp edge
+ knife, saw, axe, scissors
? pencil, cactus, rose, screwdriver, key, cat, tiger, lion, shark, crocodile, eagle, bear, wolf, crab, owl
? bee, cheese, @shape, pineapple, anchor, rocket, lightning, crown, television, helicopter, airplane, fox, dog
? snowflake, alien, light bulb, magnifying glass, glasses, skull, hammer, wrench, trumpet, camera, goat
. [Careful|Watch out|Mind the kids]
, [what|which one] [could you cut yourself with|has a sharp blade|is sharp]

to drive in a nail = driving in nails; to hit a nail = hitting nails; drives in nails
+ hammer
? axe, wrench, frying pan, shoe, boot, screwdriver, anchor, saw
. [I want to hang up a picture|There is a nail sticking out|I have nails and a board]
, [what do I hit the nail with|what tool do I need]

to turn a screw = turning screws; to tighten a screw = tightening screws; turns screws
+ screwdriver
? knife, wrench, key, hammer, scissors
. [A screw is loose|This screw came loose|I have to put a shelf together with screws]
, [what do I need|which tool do I take]

to tighten a nut = tightening nuts; to loosen a bolt = loosening bolts
+ wrench
? screwdriver, hammer, key

to make a note = making notes; to draw a picture = drawing pictures; to write a letter = writing letters
; you sharpen
+ pencil
? laptop, phone, envelope, book, knife, axe, saw, scissors, camera
. [I want to draw|I must write something down|I need to jot down a number]
, [what do I need|what can I use|what could I write with]

to take a photo = taking photos; to take pictures = taking pictures; takes photos
+ camera, phone
? laptop, watch, robot
. [Smile|Say cheese|Look at that sunset|I want to remember this moment]
, what can I take a [photo|picture] with

to call somebody = calling somebody; to send a text message = sending text messages
; you make phone calls with; can be used for calls
+ phone
? laptop, bell, microphone, watch, envelope, television, robot
. [I have to reach my mother|I must call home|I want to call a friend]
, [what could I use|what do I need]

to tell the time = telling the time; shows the time; tells you what time it is
+ clock, watch
? phone, laptop, sun, bell, television, camera, moon, chicken, @vehicle, robot
. [I don't want to be late|I lost track of time|I wonder how late it is]
, [what could tell me the time|what shows the time|what do I look at]

ticks; goes tick tock
+ clock, watch
? bomb, heart

wakes people up in the morning
+ clock
? chicken, phone, sun, bell, cup, watch, trumpet, drum, @bird, dog, cat, television, @being, laptop, @animal
? @instrument, light bulb, @vehicle, bed, bomb

to open a lock = opening locks; to unlock a door = unlocking doors; opens locks
+ key
? hammer, saw, screwdriver, axe, lock, door, wrench, knife, phone
? bell
. [I'm|I am] locked out
. [The door is locked|I can't open the padlock]
, [what do I need|what would let me in|what would help]

to lock a bicycle = locking bicycles; to lock a gate = locking gates
+ lock
? key, door, bicycle, car, taxi, @vehicle, house, gift, laptop, phone, backpack, violin, trumpet
. [Somebody might steal my bike|I want to keep my shed closed]
, [what could I use|what helps against that]

to stay dry in the rain = keeping dry in the rain; protects you from the rain; when it rains; keeps you dry
+ umbrella
? tent, house, hat, @vehicle, boot, shoe, backpack, shirt, tree, palm tree, mushroom, door, cloud, drop
? rainbow, leaf, dress, frog, snail, phone, book, bed, duck
. [It's|It is] [raining|pouring|starting to rain]
. [The forecast says rain|Dark clouds are coming|I hate getting wet]
, what should I [take|bring|carry|pack]
, [what do I need|what keeps me dry]

to read small print = reading small print; to see better = seeing better
+ glasses, magnifying glass
? light bulb, candle, camera, phone, sun, laptop, television, carrot, owl, eagle, book, fire
. [Grandpa can't read the paper|My eyes are getting bad|The letters are too small]
, what [would|could] help

makes small things look bigger; to look at an ant up close = looking at small things
+ magnifying glass
? glasses, camera, phone, television, drop, laptop

you wear ~ on your nose; you wear ~ in front of your eyes
+ glasses
? magnifying glass, camera, skull, snowman, hat, carrot

has a lens
+ glasses, camera, magnifying glass
? phone, laptop, television, robot, light bulb, @vehicle, owl, @animal, watch

to make music = making music; you make music with; makes music
+ @instrument
? bell, microphone, phone, laptop, television, robot, saw, frying pan, cup, drop, @bird, glasses, whale
. [We are starting a band|I love music|Let's have a concert]
, what [could we play|is there to play]
!? Could we play [a song|some music] on anything here?

a musical instrument
+ @instrument
? bell, microphone
! What could a music student learn to play?

has strings
+ guitar, violin
? tennis racket, balloon, shoe, umbrella, spider, gift, sailboat, backpack, tent, boot, microphone, hat, @ball
? bomb, envelope, anchor, drum, bell, dress, shirt

is played with the mouth; you blow into
+ trumpet
? balloon, candle, fire, microphone, cup, guitar, violin

is played with drumsticks; is beaten with sticks
+ drum
? bell, gift, violin, frying pan, egg, @ball

is played with a bow
+ violin
? gift, guitar

makes your voice louder; to sing louder = singing louder; you sing into
+ microphone
? phone, television, trumpet, laptop, robot, bell, camera
. [Nobody can hear me|I'm giving a speech to a big crowd|I want to sing karaoke]
, what [do I need|would help]

to play tennis = playing tennis; is used to hit tennis balls
+ tennis racket
? @ball, shoe, shirt, frying pan, watch, hat, hammer

to play soccer = playing soccer; is meant to be kicked
+ soccer ball
? basketball, shoe, boot, shirt, balloon, door, watermelon, horse, bell, trophy
. [Let's play soccer|The kids want to play football]
, what [do we need|should we bring]

to play basketball = playing basketball; is thrown through a hoop
+ basketball
? soccer ball, shoe, shirt, ring, orange

bounces; you bounce
+ soccer ball, basketball
? balloon, rabbit, frog, tennis racket, bed, @ball, drop, @being, car, truck, tractor, @vehicle, bomb, orange

is used in sports; is sports equipment
+ soccer ball, basketball, tennis racket
? shoe, bicycle, trophy, shirt, horse, watch, @vehicle, backpack, tent, boot, axe, hat, glasses, camera, clock
? microphone, bell, ring, @shape, @animal, saw, knife, hammer, drum, trumpet, balloon, fire, anchor, ice cream

is won in competitions; a prize
+ trophy
? crown, gift, star, cup, ring, @shape, car, bell, rose, smiley, cake, @vehicle, watch, clock, @animal, laptop
? phone, television, book, @flower
. [We won|I came first|Our team is the champion]
, [what do we get|which one is our prize|what did we win]

a ball; to play ball = playing ball
+ soccer ball, basketball
? tennis racket, balloon, bomb, orange, circle, sun, moon, smiley, peach, watermelon, egg, tomato

you fill ~ with air; floats in the air on a string
+ balloon
? soccer ball, basketball, bicycle, tent, @vehicle, bed, trumpet, cloud, bomb, ghost, light bulb, heart, drop

pops if you prick it; bursts if you prick it
+ balloon
? @ball, corn, bicycle, @vehicle, egg, tomato, grapes, cherries, drop, bomb, frog, cloud, @fruit, fish
? eggplant

can explode; goes boom; blows up
+ bomb
? rocket, fire, balloon, @vehicle, lightning, egg, phone, watermelon, sun, television, laptop, light bulb
? drum, star, angry face, cake, corn, candle, @being, fish, trumpet, frying pan, potato, house, moon, cloud
? @ball, cup
. [Run|Take cover|Everybody out]
, what is going to blow up

gives light; gives us light; lights up a room
+ light bulb, candle, sun, fire
? moon, lightning, @shape, phone, television, laptop, camera, @vehicle, watch, diamond, crown, trophy, rainbow
? house, robot, ghost, alien, clock, bomb, door, magnifying glass, smiley, cake, snowman, bee, tent, rocket
? glasses
. [It's|It is] [too dark in here|getting dark|pitch dark]
, [what could help|what gives light]
!? [It's|It is] dark[.|,] is there anything that gives light?

is made of wax; you blow out; has a wick
+ candle
? cheese, apple, bee, pencil, cake, balloon, fire, trumpet, light bulb, bomb, lock, umbrella, crown, egg
? lemon

when the power is out
+ candle
? fire, light bulb, phone, laptop, sun, moon, @shape, tent, @vehicle, lightning, watch, camera, house, bed
? cake, clock, television, magnifying glass, glasses, robot, book, bee, cat, owl, bat
! There is a [power cut|blackout][.|,|!] [what could I use for light|what could I light]?

runs on electricity; needs electricity
+ television, laptop, phone, light bulb
? camera, clock, watch, robot, @vehicle, microphone, guitar, lightning, bell, house, rocket, drum, violin
? trumpet, saw, door, lock, balloon, candle, bed, key, screwdriver, frying pan, alien, chair, tractor, cup
? snowman, magnifying glass

has a screen
+ phone, laptop, television
? camera, watch, clock, robot, @vehicle, door, tent, glasses, microphone, house, magnifying glass, book, alien

you type on; to send an email = sending emails
+ laptop, phone
? television, watch, envelope, camera, robot, book, pencil, clock, microphone
. [I have to answer an email|I want to go on the internet]
, [what could I use|what do I need]

has a big keyboard
+ laptop
? phone, trumpet, book, robot, television, door, umbrella, scissors, camera, tent, envelope, backpack, lock

you watch a movie on; to watch a film = watching films
+ television, laptop, phone
? watch, camera, glasses, robot, chair, airplane, train, bed, book
. [Let's watch a movie|The news is on|My favorite show starts soon]
, [what can we watch it on|what could we watch it on]

print> you read; has pages; can be read
+ book
? phone, laptop, envelope, watch, clock, television, glasses, gift, camera, robot
. [I love novels|The kids want a bedtime story|I'm bored and like reading]
, what [could I read|is there to read]

you borrow ~ from a library
+ book
? laptop, chair, camera, glasses, pencil, umbrella, bicycle, magnifying glass, @instrument, phone, @tool, key

print> goes into the mailbox; needs a stamp
+ envelope
? gift, book, phone, laptop, @shape, key, pencil, hat, shirt, watch, cookie, bee, camera, smiley
. [I wrote to my aunt|The letter is finished]
, [what do I put it in|what do I need to post it]

you unwrap; is wrapped up; holds a surprise
+ gift
? dress, hat, violin, rocket, cat, trophy, balloon, cake, bell, egg, envelope, hamburger, house, @food
? backpack, crown, umbrella, shoe, door, tree, candle, book, ship, sailboat, rabbit, dog, bear, mouse
. [It's|It is] [my birthday|Christmas morning]
, what [may I unwrap|can I unwrap|is wrapped up]

you sit on; to sit down = sitting down
+ chair
? bed, @vehicle, horse, camel, elephant, cow, gift, tree, leaf, mushroom, backpack, drum, @animal, book, cup
? laptop, soccer ball, basketball, house, tent, watermelon, hat, cloud, moon
. [My legs hurt|I'm tired of standing|I want to sit down|Grandma needs a seat]
, what can [I|she|one] sit on

you lie down on; you sleep in
+ bed
? tent, house, @vehicle, chair, backpack, tree, leaf, @animal, boot, cloud, book, hat, sleeping face, moon
? palm tree
. [I'm|I am] [sleepy|exhausted|dead tired]
. [It's late|It's bedtime]
, [what could I lie down on|what could I sleep in]

you live in; by a family: live in
+ house
? tent, @boat, bus, truck, train, door, robot, snail, rocket, @vehicle, mushroom, boot, tree, turtle, shoe
? pineapple
"""
