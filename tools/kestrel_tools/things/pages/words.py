"""What is printed on menus, lists, tickets and signs: many hundreds of words by their kind. No torch.

All are written as people write them in a sentence; how a page prints them is up to the page.
"""

from random import Random
from typing import NamedTuple

from kestrel_tools.things.lettering import is_known, made_up

UNKNOWN = 1 / 6  # of the words, which no list has: a model that knows all words guesses where it should read


class Rule(NamedTuple):
    """What a sign says, and of which action: "no" where it is forbidden, "must" where it is asked for."""

    text: str
    says: str
    action: str


def listed(text: str) -> tuple[str, ...]:
    return tuple(" ".join(word.split()) for word in text.split(","))


DISHES = listed("""
    soup, tomato soup, onion soup, pea soup, chicken soup, fish soup, salad, green salad, Greek salad,
    potato salad, pizza, pasta, lasagna, ravioli, risotto, spaghetti, noodles, fried rice, curry,
    chicken curry, burger, cheeseburger, veggie burger, fries, hot dog, sandwich, club sandwich, bagel,
    toast, wrap, taco, burrito, nachos, falafel, hummus, sushi, ramen, dumplings, spring rolls, tofu
    bowl, rice bowl, steak, schnitzel, meatballs, sausage, bratwurst, goulash, chili, beef stew, roast
    beef, roast chicken, grilled fish, fish and chips, salmon, tuna steak, shrimp, mussels, omelette,
    fried eggs, pancakes, waffles, porridge, granola, croissant, muffin, scone, apple pie, cheesecake,
    brownie, chocolate cake, carrot cake, fruit salad, ice cream, pudding, tiramisu, rice pudding,
    yogurt, garlic bread, baked potato, mashed potato, mac and cheese, quiche, pretzel, kebab, moussaka,
    paella, gnocchi, polenta, stuffed peppers, bean stew, lentil soup, pumpkin soup, corn on the cob,
    coleslaw, olives, cheese plate, lamb chops, pork ribs, duck, fish sticks, meat loaf, pot roast,
    pulled pork, tomato toast, egg sandwich, tuna salad, bean burrito
""")
DRINKS = listed("""
    coffee, espresso, cappuccino, latte, mocha, black tea, green tea, mint tea, iced tea, hot chocolate,
    cocoa, water, soda, cola, lemonade, ginger ale, orange juice, apple juice, tomato juice, grape
    juice, smoothie, milkshake, beer, white wine, red wine, cider, rum punch, tonic, iced coffee, chai,
    ginger tea, root beer
""")
GROCERIES = listed("""
    milk, oat milk, butter, cheese, eggs, bread, rolls, flour, sugar, brown sugar, salt, pepper, rice,
    pasta, oats, cereal, honey, jam, peanut butter, ketchup, mustard, mayonnaise, vinegar, olive oil,
    yogurt, cream, sour cream, apples, bananas, oranges, pears, grapes, lemons, limes, cherries, plums,
    peaches, melon, mango, berries, raisins, nuts, almonds, dates, potatoes, onions, garlic, carrots,
    tomatoes, cucumber, lettuce, spinach, cabbage, broccoli, peas, beans, corn, celery, leeks, pumpkin,
    mushrooms, radishes, parsley, basil, mint, chicken, beef, ham, bacon, sausages, fish, tuna, tofu,
    coffee, tea, cocoa, juice, water, cookies, crackers, chips, popcorn, candy, chocolate, chewing gum,
    ice cream, cake, soap, shampoo, toothpaste, toothbrush, sponges, tissues, toilet paper, paper
    towels, trash bags, batteries, light bulbs, candles, matches, cat food, dog food, diapers, foil,
    napkins, paper cups, tape, glue, stamps, envelopes, vitamins
""")
GOODS = listed("""
    T-shirt, shirt, jeans, sweater, jacket, coat, dress, skirt, socks, hat, cap, scarf, gloves, belt,
    boots, sneakers, sandals, mug, plate, bowl, vase, lamp, pillow, blanket, towel, chair, stool,
    mirror, clock, rug, basket, hammer, nails, screws, paint, brush, ladder, rope, bucket, broom,
    notebook, pencil, pen set, eraser, ruler, stapler, calendar, postcard, poster, puzzle, board game,
    doll, teddy bear, kite, ball, bike, helmet, tent, backpack, lantern, umbrella, wallet, watch, ring,
    necklace, sunglasses, headphones, charger, USB cable, keyboard, phone case, roses, tulips, cactus,
    seeds, flower pot, bird house, soap dish
""")
SERVICES = listed("""
    haircut, beard trim, shave, manicure, massage, car wash, oil change, new tires, dry cleaning,
    ironing, key copy, passport photo, bike rental, boat rental, ski rental, locker, parking, shoe
    repair, dog grooming, piano lesson, yoga class, swim lesson, guided tour, day pass, week pass,
    window cleaning, hair color, facial
""")
ADMISSION = listed(
    "adults, children, seniors, students, families, groups, members, teachers, babies, visitors"
)
TASKS = listed("""
    call mom, call dad, call the bank, call Grandma, wash the car, wash the dog, walk the dog, feed the
    cat, water plants, do laundry, iron shirts, clean kitchen, clean bathroom, vacuum, mop the floor,
    dust shelves, take out trash, buy stamps, buy flowers, buy a gift, pay rent, pay bills, fix the
    bike, fix the sink, mow the lawn, rake leaves, plant roses, paint fence, read a book, write a
    letter, email Peter, send package, return books, book flight, book hotel, pack suitcase, renew
    passport, see dentist, see the doctor, haircut, go running, go swimming, do yoga, do homework, study
    math, learn Spanish, practice piano, cook dinner, bake a cake, make soup, plan party, invite
    friends, clean windows, change sheets, charge phone, backup files, update laptop, print photos, sort
    photos, visit Aunt Rose, get gas, pick up kids, pick up mail, order pizza, cut the hedge, check
    tires, oil the door, set the table, empty attic, sell old sofa, hang picture
""")
PEOPLE = listed("""
    Anna, Ben, Clara, David, Emma, Felix, Grace, Henry, Ida, Jack, Kate, Leo, Maria, Noah, Olivia, Paul,
    Rosa, Sam, Tina, Oscar, Victor, Wendy, Zoe, Alex, Bella, Carl, Diana, Eric, Fiona, George, Helen,
    Ivan, Julia, Kevin, Laura, Max, Nina, Omar, Peter, Rachel, Simon, Tara, Will, Amir, Lena, Mia, Tom,
    Lucy, Adam, Eva, Jonas, Sofia, Mila, Luca, Nora, Hugo, Ella, Finn, Amy, Dan, Lisa, Mark, Susan,
    Linda, Karen, Robert, James, Sarah, Emily, Ryan, Kim, Yuki, Chen, Priya, Ravi, Fatima, Ali, Carlos,
    Diego, Lucia, Elena, Marco, Pierre, Chloe, Hans, Greta, Ingrid, Lars, Olga, Boris, Kofi, Amara,
    Jamal, Aisha, Ruth, Esther, Daniel, Martha, Joe, Betty, Walter, Frank, Alice, Charlie, Daisy, Ruby,
    Holly, Ivy, Jasper, Theo, Toby, Molly, Penny, Rita, Vera, Willy, Zack, Hannah, Judy, Nick, Otto,
    Quentin, Stella, Tim, Ursula, Vincent, Wanda, Xenia, Yara
""")
SURNAMES = listed("""
    Miller, Smith, Brown, Lopez, Garcia, Meyer, Weber, Fischer, Rossi, Moreau, Dubois, Novak, Kowalski,
    Jansen, Larsen, Berg, Olsen, Silva, Costa, Santos, Khan, Patel, Singh, Tanaka, Sato, Kim, Lee, Chen,
    Wang, Nguyen, Cohen, Levy, Baker, Taylor, Clark, Hill, Green, Wood, Stone, Fox, King, Young, Adams,
    Evans, Murphy, Kelly, Walsh, Reid, Bell, Carter, Cook, Hughes, Parker, Price, Turner, White, Winter,
    Vogel, Keller, Huber
""")
TOWNS = listed("""
    Paris, Rome, Berlin, Madrid, Vienna, Prague, Dublin, Athens, Lisbon, Oslo, Bern, Geneva, Zurich,
    Munich, Hamburg, Cologne, Milan, Naples, Venice, Turin, Florence, Lyon, Nice, Lille, Bordeaux,
    London, Leeds, York, Oxford, Bristol, Bath, Glasgow, Cardiff, Belfast, Cork, Galway, Boston, Miami,
    Dallas, Denver, Austin, Chicago, Seattle, Portland, Phoenix, Atlanta, Houston, Detroit, Memphis,
    Orlando, Tampa, Toronto, Montreal, Ottawa, Quebec, Tokyo, Osaka, Kyoto, Seoul, Beijing, Delhi,
    Mumbai, Cairo, Tunis, Nairobi, Lagos, Accra, Lima, Quito, Bogota, Havana, Sydney, Perth, Brisbane,
    Auckland, Helsinki, Tampere, Stockholm, Malmo, Bergen, Aarhus, Antwerp, Ghent, Bruges, Utrecht,
    Delft, Warsaw, Krakow, Gdansk, Riga, Vilnius, Tallinn, Sofia, Zagreb, Split, Belgrade, Budapest,
    Graz, Linz, Salzburg, Bremen, Dresden, Leipzig, Bonn, Ulm, Trier, Seville, Valencia, Bilbao, Porto,
    Faro, Springfield, Riverside, Fairview, Greenville, Newport, Lakewood, Ashland
""")
SUBJECTS = listed("""
    math, English, French, Spanish, German, Latin, history, geography, biology, chemistry, physics,
    science, art, music, drama, sports, swimming, computing, religion, reading, writing, choir, library,
    lunch, break
""")
COURSES = listed("""
    yoga, pilates, judo, karate, ballet, tango, salsa, zumba, boxing, chess club, book club, pottery,
    knitting, painting, drawing, photography, first aid, cooking, baking, guitar, piano, violin, drums,
    choir, band, theater, swimming, tennis, soccer, hockey, running, climbing, cycling, rowing, fencing,
    golf, dance, spinning
""")
PROGRAM = listed("""
    welcome, opening, breakfast, coffee break, lunch, dinner, workshop, lecture, team meeting, group
    photo, panel, speech, keynote, concert, magic show, puppet show, film, city tour, boat trip, hike,
    picnic, barbecue, fireworks, dance, awards, quiz, raffle, parade, church service, check-in,
    check-out, bus leaves, storytime, face painting, treasure hunt, campfire, auction, closing, singing,
    tug of war, sack race, cake
""")
TEAMS = listed("""
    Lions, Bears, Hawks, Wolves, Sharks, Eagles, Tigers, Bulls, Panthers, Foxes, Giants, Rockets,
    Pirates, Vikings, Dragons, Falcons, Rangers, Kings, Knights, Jets, Comets, Stars, Reds, Blues,
    Greens, Whites, Owls, Ravens, Cobras, Storm, Thunder, Flames, United, Rovers, City, Home, Guests,
    Team A, Team B, Brazil, Spain, Italy, Japan, Ghana, Norway, Canada, Mexico, Chile, Kenya, Sweden,
    Poland, Turkey, India, Peru, Egypt
""")
EVENTS = listed("""
    concert, jazz concert, rock concert, piano concert, flea market, book fair, art show, street party,
    school play, film night, quiz night, bingo night, dance night, poetry night, bake sale, garage sale,
    summer party, garden party, food festival, beer festival, wine tasting, craft market, plant sale,
    open day, lecture, yoga day, fun run, city marathon, chess night, dog show, car show, magic show,
    puppet show, opera, ballet, circus, theater, karaoke, game night, farmers market, toy market, spring
    fair, winter ball
""")
VENUES = listed("""
    town hall, city park, library, museum, old theater, opera house, market square, main street, school
    yard, gym, sports hall, church, beach, harbor, castle, zoo, garden, cafe Luna, blue cafe, club 21,
    the barn, riverside, lake house, community hall, concert hall, art gallery, train station, stadium,
    city pool, skate park, bowling alley, cinema, grand hotel, hotel Astor, pizza palace, green room,
    rose garden, fire station
""")
STREETS = listed("""
    Main Street, High Street, Park Road, Mill Lane, Oak Avenue, Elm Street, Maple Road, Hill Road, Lake
    Drive, King Street, Queen Street, Station Road, Church Lane, Garden Road, Bridge Road, River Road,
    Forest Way, Rose Lane, Sunset Drive, Ocean Avenue, Market Street, School Road, Castle Road, Pine
    Street, West Street
""")
DEPARTMENTS = listed("""
    shoes, toys, books, women's wear, men's wear, kids' clothes, sports, furniture, kitchen, toilets,
    restaurant, cafe, electronics, music, garden, lighting, bedding, cosmetics, jewelry, food, offices,
    parking, reception, dentist, X-ray, surgery, laboratory, pharmacy, library, cafeteria, gym, pool,
    human resources, sales, marketing, accounting, service desk, cloakroom, lost property, conference,
    exhibition, archive, chapel, roof terrace
""")
JOBS = listed("""
    manager, doctor, nurse, teacher, engineer, driver, chef, waiter, designer, assistant, director,
    secretary, librarian, gardener, electrician, plumber, carpenter, baker, pilot, editor, reporter,
    trainer, coach, guard, dentist, lawyer, accountant, janitor, cashier
""")
OFFICES = listed("""
    office, kitchen, library, storage, lab, classroom, meeting room, staff room, waiting room,
    reception, archive, copy room, music room, art room, computer room, first aid, laundry, gym, sauna,
    cloakroom, workshop, studio
""")
CHORES = listed("""
    kitchen, bathroom, trash, dishes, laundry, cooking, shopping, garden, windows, floors, dog, plants,
    garage, breakfast, lunch, dinner, music, snacks, drinks, cake, tickets, driving, photos, tent,
    firewood, first aid
""")
INGREDIENTS = listed("""
    flour, sugar, butter, milk, cream, yeast, salt, honey, oil, cocoa, rice, oats, raisins, nuts,
    almonds, water, lemon juice, cheese, potatoes, onions, carrots, tomatoes, mushrooms, beans, lentils,
    chicken, beef, pasta
""")
LIQUIDS = ("milk", "cream", "oil", "water", "lemon juice")
NUTRIENTS = listed("fat, sugar, salt, protein, fiber, carbs, sodium, iron, calcium, starch, vitamin C")
PRODUCTS = listed("""
    strawberry jam, apricot jam, honey, peanut butter, olive oil, coffee, ground coffee, green tea,
    cocoa powder, dark chocolate, milk chocolate, oat cookies, crackers, corn flakes, granola, rice,
    basmati rice, spaghetti, tomato sauce, pesto, mustard, pickles, olives, tuna, sardines, baby peas,
    sweet corn, kidney beans, flour, brown sugar, sea salt, black pepper, dog food, cat food, bird seed,
    hand soap, dish soap, laundry soap, glue, wall paint, plant food, potting soil, trail mix, almonds,
    raisins, butter, cheddar, yogurt, orange juice
""")
ERRORS = listed("""
    file not found, page not found, no internet, connection lost, disk is full, low battery, access
    denied, wrong password, printer offline, paper jam, no paper, no signal, server down, login failed,
    update failed, upload failed, out of memory, not connected, no camera found, card declined, invalid
    code, session expired, link is broken, file too large, device busy, not responding, name is taken,
    no sound device, ink is low
""")
SHOPS = listed("""
    City Market, Corner Shop, Green Grocer, Super Save, Fresh Mart, Rosa's Cafe, Bella Pizza, Blue Moon,
    The Deli, Sun Bakery, Book Nook, Toy Box, Mega Store, Farm Shop, Harbor Grill, Golden Wok, Tea
    House, Old Mill, Kiosk, Daily Bread, Quick Stop, Garden Center, Pet World, Shoe Barn, Cafe Luna,
    Lucky Dragon, Casa Mia, Noodle Bar
""")
RESTAURANTS = listed("""
    Bella Pizza, Blue Moon, The Deli, Harbor Grill, Golden Wok, Tea House, Casa Mia, Noodle Bar, Rosa's
    Cafe, Cafe Luna, Lucky Dragon, Old Mill, Sun Bakery, The Red Lion, Chez Marie, El Toro
""")
PETS = listed("cat, dog, parrot, rabbit, hamster, turtle, kitten, puppy")
LOST = listed("keys, wallet, phone, blue scarf, red hat, black bag, umbrella, gold ring, glasses, backpack")
OFFERS = listed(
    "bike, piano, sofa, car, boat, table, bunk bed, guitar, house, tent, fridge, desk, lawn mower"
)
DAYS = listed("Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday")
MONTHS = listed("""
    January, February, March, April, May, June, July, August, September, October, November, December
""")
RULES = tuple(
    Rule(*(part.strip() for part in line.split("|")))
    for line in """
    no smoking | no | smoke
    smoking area | yes | smoke
    no dogs | no | bring my dog
    dogs welcome | yes | bring my dog
    dogs on leash | yes | bring my dog
    no parking | no | park
    free parking | yes | park
    no swimming | no | swim
    no diving | no | dive
    no running | no | run
    no food | no | eat
    no eating | no | eat
    no drinks | no | drink
    no photos | no | take pictures
    photos allowed | yes | take pictures
    no flash | no | use the flash
    no camping | no | camp
    no fishing | no | fish
    no cycling | no | ride my bike
    no bikes | no | ride my bike
    no skating | no | skate
    no ball games | no | play soccer
    no phones | no | use my phone
    no loud music | no | play loud music
    no entry | no | go in
    do not enter | no | go in
    keep out | no | go in
    no climbing | no | climb
    do not touch | no | touch it
    do not feed | no | feed the animals
    no fires | no | make a fire
    no littering | no | drop litter
    shower first | must | take a shower
    wash hands | must | wash my hands
    wear a helmet | must | wear a helmet
    wear a mask | must | wear a mask
    wear gloves | must | wear gloves
    be quiet | must | be quiet
    quiet please | must | be quiet
    please knock | must | knock
    ring the bell | must | ring the bell
    wait here | must | wait
    pay here | must | pay
    shoes off | must | take my shoes off
    phones off | must | switch off my phone
    close the gate | must | close the gate
    close the door | must | close the door
    clean up | must | clean up
    raise your hand | must | raise my hand
    show your ID | must | show my ID
    drive slowly | must | drive slowly
    """.strip().splitlines()
)
WARNINGS = listed("""
    wet floor, high voltage, beware of dog, mind the step, mind your head, hot surface, slippery road,
    falling rocks, deep water, thin ice, low bridge, men at work, road closed, wet paint, fragile,
    poison, hard hat area, strong wind, steep hill, dead end, private, deer crossing, school zone, sharp
    bend, icy road
""")
CARDS = listed("""
    happy birthday, get well soon, thank you, congratulations, merry Christmas, happy Easter, good luck,
    welcome home, happy New Year, best wishes, well done, welcome, I love you, I miss you
""")
TICKETS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "train ticket": (("from", "to"), ("day", "time", "seat", "coach", "platform", "price")),
    "bus ticket": (("from", "to"), ("day", "time", "seat", "price")),
    "boarding pass": (("to", "gate"), ("from", "holder", "seat", "time", "flight", "day")),
    "concert ticket": (("seat",), ("day", "time", "row", "gate", "price", "place")),
    "cinema ticket": (("seat",), ("day", "time", "row", "screen", "price")),
    "zoo ticket": (("price",), ("day", "time", "holder")),
    "ticket": (("seat",), ("day", "time", "row", "gate", "price")),
}
BUTTONS: dict[str, tuple[str, ...]] = {
    "error": ("OK", "cancel", "retry", "close", "help", "try again", "ignore", "restart", "send report"),
    "dialog": ("yes", "no", "OK", "cancel", "not now", "later"),
    "form": (
        "log in",
        "sign up",
        "next",
        "back",
        "submit",
        "start",
        "skip",
        "save",
        "send",
        "play",
        "settings",
    ),
}
ANSWERS = (
    ("yes", "no"),
    ("OK", "cancel"),
    ("yes", "cancel"),
    ("yes", "later"),
    ("yes", "not now"),
    ("no", "yes"),
    ("cancel", "OK"),
    ("OK",),
)
DIALOGS = listed("""
    delete file?, save changes?, log out?, install update?, restart now?, quit game?, send message?, buy
    now?, empty trash?, are you sure?, allow camera?, share photo?, print page?, stop timer?, leave
    page?
""")
COUNTRIES = listed("Italy, Spain, France, Greece, Peru, Brazil, India, Japan, Kenya, Mexico, Canada, Turkey")
# What is one thing under two names, or one kind of another: whoever asks for the one may mean the other.
AKIN = listed("""
    coffee espresso cappuccino latte mocha iced, tea chai, cocoa chocolate mocha brownie candy, juice
    smoothie, water soda tonic, soda cola lemonade ale root, beer ale cider, fries chips nachos potato
    potatoes hash, pasta spaghetti noodles ravioli lasagna ramen mac gnocchi, bread toast rolls bagel
    croissant pretzel sandwich, sandwich burger club wrap hot bagel, burger hamburger cheeseburger,
    chicken meat, beef steak meat meatballs, ham bacon pork meat sausage sausages, sausage hot dog
    bratwurst, fish tuna salmon shrimp mussels sushi, stew goulash soup chili, cake cheesecake brownie
    muffin pie tiramisu, egg eggs omelette, cream butter yogurt, cheese cheddar quiche, nuts almonds
    peanut granola, oats cereal porridge granola, beans peas lentils chili, berries strawberry jam,
    grapes raisins, tissues napkins paper towels toilet, sweater shirt T-shirt, coat jacket, boots
    sneakers sandals shoes, hat cap, math science physics chemistry biology, gym sports, dance ballet
    tango salsa zumba, running spinning, cafe restaurant cafeteria food, mom dad grandma, kitchen dishes
    cooking, doctor dentist, dog puppy, cat kitten, pepper peppers, trash garbage, teddy doll, flowers
    roses tulips, plants flower garden, walk running, fruit apples, choir music singing band, piano
    guitar violin drums music, candy chewing, oil olive, mustard ketchup, corn popcorn, ball soccer,
    toothpaste toothbrush, adults seniors members visitors teachers, children babies students families
    groups, electronics lighting, offices reception, food cafe kitchen, sales marketing, gym pool
    sports, salt sodium, sugar carbs starch flour
""")


def some(rng: Random, pool: tuple[str, ...], count: int) -> list[str]:
    """Different words of a pool, some of them made up instead."""
    return [known if rng.random() > UNKNOWN else _unknown(rng, known) for known in rng.sample(pool, count)]


def one(rng: Random, pool: tuple[str, ...]) -> str:
    return some(rng, pool, 1)[0]


def _unknown(rng: Random, known: str) -> str:
    """A word that can be spoken in place of the first: "blorp soup" for "tomato soup"."""
    first, _, rest = known.partition(" ")
    word = made_up(rng)
    while len(word) < 3 or is_known(word):
        word = made_up(rng)
    if rest and len(word) + len(rest) < 15 and " " not in rest and rng.random() < 0.7:
        word = f"{word} {rest}"
    return word[0].upper() + word[1:] if first[0].isupper() else word
