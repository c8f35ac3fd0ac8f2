"""What is eaten and drunk, and where it comes from.

How it is written: `kestrel_tools.things.language.traits.table`.
"""

TABLE = """
you eat; is edible; can be eaten; is something to eat
+ @food
? @eaten, mushroom, frying pan, leaf, clover, cactus, sunflower, rose, tulip, tree, palm tree, cup, gift
? snowflake, drop, heart, ant, bee, snake, crocodile, turtle, bear, dog, cat, camel, squirrel, spider
. [I'm|I am|We are|My son is] [hungry|starving|very hungry]
. [Lunch time|It's dinner time|I skipped breakfast|My stomach is growling]
, what [is there to eat|can I eat|could we eat|have you got to eat]
, which of these could I eat
! [Is there|Do you have|Do we have] [something|anything] to eat[ here|]? [What|What is it|Which one]?
! What [here|] [could|would] you [put on a plate|serve to guests|put in your mouth and chew]?
! What is [there|here] to eat?
! Anything to eat? What?
!? Is there [anything|something] [to eat|I could eat|that I can eat] [here|if I am hungry|]?
!? [I'm|I am] hungry[.|,] is there anything [to eat|for me] [here|]?
!? Any food [here|in this picture|]?

tastes sweet; is sweet to eat
+ @sweets, strawberry, cherries, banana, grapes, pear, peach, orange, watermelon, pineapple
? kiwi, tomato, carrot, corn, bread, cup, apple, egg, bee, gift, potato, heart, avocado, clover, fries
. I have a sweet tooth
. I'm craving something sweet
, what [could I eat|is there for me|would you give me]

a dessert; you eat ~ for dessert
+ ice cream, cake
? cookie, donut, @fruit, cheese, cup, egg, pizza, bread
. [We just had dinner|The main course is over]
, what is there for dessert

tastes sour; is sour
+ lemon
? orange, kiwi, grapes, apple, cherries, pineapple, strawberry, pear, peach, tomato, cucumber, avocado, cheese
? angry face, sad face, watermelon

a fruit; is a kind of fruit
+ @fruit
? tomato, eggplant, cucumber, avocado, corn
! What [here|] could go [in|into] a fruit basket?

a vegetable; is a kind of vegetable
+ carrot, potato, eggplant, cucumber, corn
? tomato, mushroom, avocado, @plant, bread, fries

you eat ~ raw; can be eaten raw
+ apple, banana, pear, orange, strawberry, grapes, cherries, peach, watermelon, tomato, cucumber, carrot
? @food, mushroom, @eaten, @plant, -bread, -cake, -cookie, -donut, -pizza, -fries, -hamburger, -hot dog
? -potato

grows on trees; grows on a tree
+ apple, pear, orange, lemon, peach, cherries, leaf
? banana, kiwi, grapes, pineapple, mushroom, rose, tulip, avocado, palm tree, tree, strawberry, tomato, clover
? eggplant, watermelon

grows under the ground; is dug out of the ground
+ carrot, potato
? mushroom, tulip, tree, rose, sunflower, @plant, mouse, fries, skull, diamond, ant

you peel ~ before eating; is peeled first
+ banana, orange
? kiwi, potato, carrot, egg, avocado, pineapple, lemon, apple, pear, peach, corn, cucumber, watermelon
? eggplant, tomato, grapes, mushroom, crab, cactus
! [What|Which one] do I have to peel first?

has a stone inside; has a pit inside
+ cherries, peach, avocado
? @fruit, shoe, boot, ring, @vegetable

is fast food; is junk food
+ hamburger, fries, pizza, hot dog
? donut, ice cream, cookie, cake, bread, egg, chicken, cheese, cup, frying pan, potato, corn
! What would I get at a [burger bar|drive-in|food truck]?

food> is healthy; is good for you
+ @fruit, carrot, tomato, cucumber
? @food, -hamburger, -fries, -donut, -cake, -cookie, -ice cream

melts in the sun; melts in warm weather
+ ice cream, snowman, snowflake
? candle, cheese, cake, cookie, donut, drop, crown, pizza, hamburger, cup, balloon, ring, heart, penguin
! What [would|will] melt if I left it [in the sun|outside in summer]?

is very cold; is ice cold; is freezing cold
+ ice cream, snowman, snowflake
? penguin, drop, moon, cloud, @ghosts, fish, alien, cup, diamond, anchor, @boat, rocket
. [I'm|I am] [too hot|sweating|melting in this heat]
, what here is cold

is very hot; is burning hot
+ fire, sun
? cup, candle, lightning, light bulb, frying pan, @meal, bread, rocket, bomb, cactus, potato, egg, @road
? train, corn, motorcycle, camel, angry face, helicopter, airplane, tractor, laptop, cake, cookie, star, robot
? house, phone

you drink
+ cup
? drop, @fruit, cow, goat, trophy, palm tree, snowflake, ice cream, egg, tomato, carrot, cucumber, bee
? frying pan, sheep, camel, snowman, cactus, cloud
. [I'm|I am|We are] [so|very|really|] thirsty
. My [mouth|throat] is [so|] dry
, what [is there to drink|can I drink|could I have]
! [Is there|Do you see] [something|anything] to drink[ here|]? [What|What is it]?
!? [I'm|I am|We are] thirsty[.|,] is there anything to drink [here|]?
!? Anything to drink [here|]?

you drink from; you drink out of; you pour tea into; holds a hot drink; to drink tea = drinking tea
+ cup
? trophy, drop, frying pan, boot, shoe, hat, palm tree, crown, watermelon, pineapple, camel, cow
! What [could|can|would] [I|you] pour [coffee|tea|hot chocolate|my coffee] into?
! What would you serve [coffee|tea|hot chocolate] in?

you make a sandwich with; you toast; can be toasted
+ bread
? cheese, tomato, cucumber, egg, avocado, corn, potato, knife, hamburger, hot dog, cookie, donut, frying pan
? banana, strawberry, chicken, fish, mushroom, pizza, cake

is made from milk
+ cheese, ice cream
? cake, pizza, hamburger, cookie, donut, cup, bread, cow, goat, frying pan, egg, hot dog, fries

has a hole in the middle
+ donut, ring
? guitar, kiwi, cheese, bicycle, lock, wrench, clock, key, scissors, pineapple, sunflower, violin, saw, watch
? anchor, tennis racket, frying pan, magnifying glass, trumpet, glasses, cup, drum, camera, @vehicle, skull
? mushroom, crown, @ball, cookie, tent, house, bomb, bell, rose, alien, light bulb, pear, avocado, peach

is made from potatoes
+ fries
? potato, bread, pizza

comes in a bun; has a bun
+ hamburger, hot dog
? bread, cheese, egg

is eaten with ketchup
+ fries, hot dog, hamburger
? @food, frying pan, -banana, -apple, -cake, -ice cream, -donut, -cookie, -strawberry, -cherries, -grapes
? -pear

has melted cheese on it
+ pizza
? hamburger, cheese, hot dog, bread, frying pan, fries, potato, egg, mouse, mushroom, eggplant

is baked in an oven
+ bread, cake, cookie, pizza
? @food, frying pan, chicken, mushroom, duck, fish, cup, snowman, -banana, -ice cream, -watermelon, -grapes
? -cucumber

you put ~ into a fruit salad
+ apple, banana, orange, strawberry, grapes, pear, pineapple, kiwi
? @fruit, tomato, cucumber, carrot, avocado, egg

you put ~ into a green salad
+ tomato, cucumber
? @food, mushroom, @eaten, leaf, clover, cactus, -banana, -cake, -donut, -ice cream, -cookie, -pizza, -fries
? -hamburger

you make fries from
+ potato
? fries, carrot, corn, eggplant, avocado, cheese

has a yolk
+ egg
? frying pan, chicken, avocado, @bird, turtle, crocodile, snake

grows on a cob; has kernels
+ corn
? sunflower, cherries, peach, avocado

has four leaves
+ clover
? @plant, leaf, @fruit, @vegetable, book

is used to make wine
+ grapes
? @fruit, clover

you make popcorn from
+ corn
? frying pan

you make lemonade from
+ lemon
? orange, strawberry, watermelon, peach, kiwi, pineapple, cup, drop

keeps the doctor away
+ apple
? @food, mushroom, clover, ambulance, bicycle, lock, door

comes from Italy
+ pizza
? tomato, cheese, bread, ice cream, cup, violin, hat, grapes, shoe, boot, car, motorcycle, dress, watermelon

comes from a chicken; is laid by a hen
+ egg
? chicken, frying pan, hamburger, cake, fries, bread
"""
