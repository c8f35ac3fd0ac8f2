"""What grows, what is in the sky, what is hot and cold.

How it is written: `kestrel_tools.things.language.traits.table`.
"""

TABLE = """
has thorns; is prickly
+ cactus, rose
? pineapple, fish, tree, strawberry, sunflower, crown, spider, palm tree, tulip, star, cucumber

a flower; has petals; goes in a vase
+ @flower
? clover, cactus, tree, leaf, palm tree, drop, snowflake, house
. [It's|It is] [my mother's birthday|Mother's Day|my wife's birthday]
. I bought a new vase
, [which flower is there|what could I put in a vase]

a plant
+ @plant, -leaf
? @fruit, @vegetable, mushroom, leaf, light bulb, house, bed, tent

you water; needs sun and water to grow
+ @flower, tree
? @plant, @fruit, @vegetable, mushroom, @animal

is a symbol of love; stands for love
+ heart, rose
? ring, gift, envelope, tulip, smiley, lock, diamond, key, cookie, apple, sunflower, strawberry, dress, cake
? candle, dog, rainbow, balloon, cherries, peach, bear, crown, clover, violin, @face

grows in the desert
+ cactus
? palm tree, tree, leaf, watermelon, snake

grows on tropical beaches; has coconuts
+ palm tree
? banana, pineapple, tree, kiwi, crab, mushroom, cactus

turns its head towards the sun
+ sunflower
? tulip, rose, clover, leaf, tree, palm tree, cactus, @being

gives shade; you sit in the shade of
+ tree, palm tree, umbrella
? hat, house, tent, cloud, leaf, cactus, glasses, moon, chair, sunflower, @plant, mushroom, bus, truck
? elephant, bed, shirt, airplane, train, car, ship, sailboat, balloon, door, giraffe, camel, @vehicle
. [It's|It is] [so hot in the sun|too sunny]
, [what gives some shade|what could I sit under|what could we hide from the sun under]

falls from the trees in autumn; falls in autumn
+ leaf
? apple, pear, tree, drop, snowflake, cherries, peach, orange, lemon, squirrel, mushroom, sad face

has branches; has bark
+ tree
? palm tree, cactus, lightning, dog, rose, leaf, candle, snowflake, wolf, house, snowman, anchor

brings good luck; a lucky charm
+ clover
? ladybug, pig, cat, elephant, horse, rainbow, key, rabbit, heart, star, fish, frog, spider, owl, mushroom
? bell, anchor, @being, turtle, dolphin, butterfly, leaf, diamond, ring, crown, cherries, gift, moon, sun
? panda, bee, trophy
. [I have an exam tomorrow|Wish me luck]
, what [might bring me luck|could I take as a lucky charm]

has a cap and a stem
+ mushroom
? @fruit, @plant, eggplant, tomato, pencil, light bulb, snowman, cup, bomb, umbrella

grows in the forest
+ mushroom, tree
? @plant, @fruit, potato, eggplant, snowman, house

you see ~ in the sky; belongs in the sky
+ sun, moon, cloud, rainbow, lightning
? star, airplane, helicopter, rocket, @bird, bat, balloon, butterfly, bee, snowflake, ladybug, drop, alien
? ghost, leaf, fire, @being, bomb, umbrella, @ball, ant, @shape
. [Look up|Look at the sky]
, [what|which one] belongs up there

shines at night
+ moon
? star, light bulb, candle, fire, lightning, @being, @vehicle, rocket, phone, television, diamond, camera
? house, clock, laptop, owl, cat, bat, sun, watch, @shape, crown, trophy, gift, tent, bee, wolf, fox

shines during the day; rises in the morning
+ sun
? moon, star, light bulb, bread, balloon, @shape, fire, sleeping face, smiley, rainbow, cloud, chicken
? diamond, cake, ring, crown, trophy, sunflower, lightning, @vehicle, candle

keeps you warm; gives off heat; warms you up
+ fire, sun
? candle, bed, @clothing, hat, house, tent, cup, light bulb, @animal, laptop, frying pan, bomb, lightning
? glasses, car, rocket, television, phone, @food, umbrella, @vehicle, @being, star, heart, backpack, mushroom
? book
. [I'm|I am|We are] [cold|freezing|shivering]
, what [would|could] warm [me|us] up [here|]

falls from the clouds; falls from the sky
+ snowflake, drop
? lightning, airplane, leaf, sun, moon, star, rocket, bomb, cloud, @bird, bat, helicopter, @being, balloon
? umbrella, frog, @ball, rainbow, egg, apple, sunflower, fish, cat, dog, gift, envelope, @insect, fire, @shape

has seven colors; appears after the rain
+ rainbow
? umbrella, butterfly, @ball, balloon, fish, sun, snail, drop, mushroom, cloud, clover, snake, frog, hat, tent
? cake, @shape, gift

comes with thunder; comes before the thunder
+ lightning
? cloud, drop, snowflake, umbrella, rainbow, fire, bomb

brings rain
+ cloud
? drop, umbrella, lightning, rainbow, snowflake, frog, sun

is made of water
+ drop
? snowflake, snowman, cloud, watermelon, rainbow, @being, ice cream, cucumber, @animal, @fruit, @vegetable
? cup, lightning, umbrella

is made of snow
+ snowman
? snowflake, cloud, drop, ice cream, penguin

has a carrot for a nose
+ snowman
? robot, alien, @face, rabbit, carrot

is far out in space; you see ~ in space
+ moon, sun
? rocket, star, alien, robot, rainbow, lightning, @shape, airplane, cloud, dog, monkey, fire, @being

goes around the earth
+ moon
? rocket, sun, airplane, cloud, ship, @vehicle, alien, star, @bird, balloon, robot, rainbow, @being
"""
