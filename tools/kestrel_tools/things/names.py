"""The everyday things of the wider world: what each is called, what kind it is, and which icons show it.

A thing is drawn by every icon that is listed for it, in every emoji set that has the icon, and by one that is
called as the thing is in sets that are no emoji: `examples/train_tiny/make_atlas.py`.
"""

from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True, slots=True)
class Noun:
    """A thing's own name is what the model answers; the others are only asked with."""

    name: str
    icons: tuple[str, ...]
    kinds: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    arguably: tuple[str, ...] = ()  # kinds on which people differ: nothing is asked about those beside it

    @property
    def plural(self) -> str:
        return plural(self.name)


IRREGULAR = {
    "mouse": "mice", "sheep": "sheep", "fish": "fish", "goldfish": "goldfish", "grapes": "grapes",
    "cherries": "cherries", "fries": "fries", "scissors": "scissors", "glasses": "glasses",
    "eyeglasses": "eyeglasses", "leaf": "leaves", "maple leaf": "maple leaves",
    "loaf of bread": "loaves of bread", "wolf": "wolves", "knife": "knives",
    "bread": "breads", "corn": "ears of corn", "cheese": "cheeses", "lightning": "flashes of lightning",
    "aircraft": "aircraft", "food": "food", "cross": "crosses", "fruit": "fruits", "octopus": "octopuses",
    "cup of coffee": "cups of coffee", "cactus": "cactuses", "slice of pizza": "slices of pizza",
    "bunch of grapes": "bunches of grapes", "pair of scissors": "pairs of scissors", "fire": "fires",
    "pair of glasses": "pairs of glasses", "ear of corn": "ears of corn", "person": "people",
    "everything": "everything", "all": "all", "text": "texts",
}  # fmt: skip

NUMBERS = "no one two three four five six seven eight nine ten eleven twelve".split()  # noqa: SIM905
# Names that stand in the plural although there is one, and those without an article.
PAIRS = ("grapes", "cherries", "fries", "scissors", "glasses", "eyeglasses", "french fries", "chips")
SUBSTANCES = ("bread", "corn", "cheese", "lightning", "fire", "food", "sweetcorn", "toast", "coffee", "text")


def plural(noun: str) -> str:
    if noun in IRREGULAR:
        return IRREGULAR[noun]
    if noun in PAIRS:
        return noun
    first, _, last = noun.rpartition(" ")
    if first and last in ("cross", "mouse", "leaf", *PAIRS):
        return f"{first} {plural(last)}"
    if noun.endswith(("s", "x", "ch", "sh")):
        return noun + "es"
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return noun[:-1] + "ies"
    if noun in ("tomato", "potato"):
        return noun + "es"
    return noun + "s"


def with_article(name: str) -> str:
    """ "a dog", "an apple", "grapes"."""
    last = name.rsplit(" ", 1)[-1]
    if " of " not in name and (last in PAIRS or last in SUBSTANCES):
        return name
    sounds = name[0] in "aeiou" and not name.startswith(("unicorn", "eucalyptus", "ewe"))
    return f"{'an' if sounds else 'a'} {name}"


def is_plural(name: str) -> bool:
    """Whether one of it takes "are": the grapes are, the apple is."""
    return " of " not in name and name.rsplit(" ", 1)[-1] in PAIRS


# name | icons | other names. The kinds are those of the paragraph. The tokenizer is made with these; more
# follow below.
TABLE = """
animal
dog | dog-face dog | puppy, doggy
cat | cat-face cat | kitten, kitty
mouse | mouse-face mouse | -
rabbit | rabbit-face rabbit | bunny, hare
fox | fox | -
bear | bear | brown bear
panda | panda | panda bear
koala | koala | koala bear
tiger | tiger-face tiger | -
lion | lion | -
cow | cow-face cow | -
pig | pig-face pig | piglet
frog | frog | toad
monkey | monkey-face monkey | ape
horse | horse-face horse | pony
sheep | ewe | lamb
elephant | elephant | -
camel | camel two-hump-camel | -
snail | snail | - | insect
spider | spider | - | insect
turtle | turtle | tortoise
snake | snake | serpent
crocodile | crocodile | alligator
fish | tropical-fish fish blowfish | goldfish
shark | shark | - | fish
octopus | octopus | squid
whale | spouting-whale whale | -
dolphin | dolphin | -
crab | crab | - | insect

animal, bird
chicken | chicken rooster | hen, rooster
penguin | penguin | -
duck | duck | -
owl | owl | -
eagle | eagle | -

animal, insect
bee | honeybee | honeybee, wasp
butterfly | butterfly | -
ladybug | lady-beetle | ladybird, beetle
ant | ant | -

food, fruit
apple | red-apple green-apple | -
banana | banana | -
orange | tangerine | tangerine, mandarin
pear | pear | -
lemon | lemon | -
watermelon | watermelon | melon
grapes | grapes | bunch of grapes
strawberry | strawberry | -
cherries | cherries | cherry
peach | peach | -
pineapple | pineapple | -
kiwi | kiwi-fruit | kiwi fruit

food, vegetable
tomato | tomato | - | fruit
carrot | carrot | -
corn | ear-of-corn | sweetcorn, ear of corn, maize
eggplant | eggplant | aubergine | fruit
potato | potato | -

food
bread | bread | loaf of bread
cheese | cheese-wedge | piece of cheese
hamburger | hamburger | burger, cheeseburger
pizza | pizza | slice of pizza, pizza slice
hot dog | hot-dog | sausage
fries | french-fries | french fries, chips
ice cream | soft-ice-cream ice-cream | ice cream cone
cake | birthday-cake | birthday cake | candle fire
cookie | cookie | biscuit
donut | doughnut | doughnut

-
cup | hot-beverage | cup of coffee, mug, coffee
mushroom | mushroom | - | vegetable food plant
house | house house-with-garden | home, building | tree plant
gift | wrapped-gift | present, parcel
balloon | balloon | -
candle | candle | - | fire
bell | bell | - | instrument
key | key old-key | - | tool
lock | locked | padlock | tool
light bulb | light-bulb | lightbulb, bulb, lamp
pencil | pencil | pen | tool
book | open-book closed-book blue-book green-book | -
phone | mobile-phone | mobile phone, cell phone, smartphone, telephone
laptop | laptop | computer, notebook
television | television | tv, telly, tv set
camera | camera camera-with-flash | -
clock | alarm-clock mantelpiece-clock | alarm clock
umbrella | umbrella umbrella-with-rain-drops | - | weather tool
envelope | envelope | mail | letter
crown | crown | - | clothing hat
glasses | glasses | eyeglasses, spectacles, pair of glasses | clothing
magnifying glass | magnifying-glass-tilted-left magnifying-glass-tilted-right | magnifier | tool glasses
bomb | bomb | -
frying pan | cooking | pan, fried egg | food tool
tennis racket | tennis | racket | ball
chair | seat | seat

clothing
hat | top-hat | top hat
shoe | running-shoe | sneaker, trainer
boot | womans-boot | -
dress | dress | -
shirt | t-shirt | t-shirt, tee shirt

ball
soccer ball | soccer-ball | football
basketball | basketball | -

tool
hammer | hammer | -
wrench | wrench | spanner
scissors | scissors | pair of scissors
saw | carpentry-saw | handsaw
axe | axe | hatchet

instrument
guitar | guitar | -
trumpet | trumpet | -
violin | violin | fiddle
drum | drum | - | stick

vehicle
car | automobile oncoming-automobile sport-utility-vehicle | automobile
taxi | taxi oncoming-taxi | cab | car
bus | bus oncoming-bus | coach
truck | delivery-truck articulated-lorry | lorry
tractor | tractor | -
bicycle | bicycle | bike, cycle
motorcycle | motorcycle | motorbike | bike
train | locomotive high-speed-train | locomotive
helicopter | helicopter | -
rocket | rocket | spaceship
airplane | airplane | plane, aeroplane, aircraft
sailboat | sailboat | sailing boat, boat
ship | ship passenger-ship | cruise ship | boat

weather
sun | sun sun-with-face | - | face
moon | crescent-moon first-quarter-moon-face | crescent | face
cloud | cloud | -
rainbow | rainbow | - | cloud
snowflake | snowflake | snow flake
lightning | high-voltage | lightning bolt, flash, bolt

-
snowman | snowman-without-snow snowman | - | weather person face hat
fire | fire | flame | weather
drop | droplet | water drop, drop of water | weather

plant
tree | deciduous-tree evergreen-tree | -
palm tree | palm-tree | palm | tree
cactus | cactus | -
leaf | maple-leaf fallen-leaf | maple leaf
clover | four-leaf-clover | shamrock

plant, flower
sunflower | sunflower | -
tulip | tulip | -
rose | rose | -

face
smiley | grinning-face smiling-face-with-smiling-eyes smiling-face | smiling face, happy face | person
sad face | crying-face frowning-face loudly-crying-face | crying face, unhappy face | person
angry face | angry-face pouting-face | mad face | person
robot | robot | - | person
alien | alien | - | person

-
skull | skull | - | person face
ghost | ghost | - | person face
"""

LATER = """
animal
wolf | wolf | -
giraffe | giraffe | -
zebra | zebra | - | horse
goat | goat | -
squirrel | chipmunk | chipmunk
bat | bat | -

food, fruit
avocado | avocado | - | vegetable

food, vegetable
cucumber | cucumber | - | fruit

food
egg | egg | -

-
backpack | backpack | rucksack, bag
bed | bed | - | person
door | door | -
anchor | anchor | -
trophy | trophy | -
tent | tent | -
watch | watch | wristwatch | clock clothing
microphone | microphone | mic

tool
screwdriver | screwdriver | -
knife | kitchen-knife hocho | -

vehicle
fire truck | fire-engine | fire engine | truck car fire
ambulance | ambulance | - | car truck
police car | police-car oncoming-police-car | - | car

face
sleeping face | sleeping-face | sleepy face | person
"""

# More faces of the same moods. FxEmojis calls its own otherwise: the last ones of each.
MORE_ICONS = {
    "smiley": (
        *("grinning-face-with-big-eyes", "beaming-face-with-smiling-eyes", "slightly-smiling-face"),
        *("grin", "grinwide", "smileeyes", "smallsmile"),
    ),
    "sad face": (
        *("slightly-frowning-face", "worried-face", "disappointed-face"),
        *("crying", "loudlycrying", "smallfrown"),
    ),
    "angry face": ("face-with-steam-from-nose", "angry", "pouting"),
}

KINDS = {
    "animal": ("animal", "animals"),
    "bird": ("bird", "birds"),
    "insect": ("insect", "insects"),
    "food": ("food item", "food items"),
    "fruit": ("fruit", "fruits"),
    "vegetable": ("vegetable", "vegetables"),
    "clothing": ("piece of clothing", "pieces of clothing"),
    "ball": ("ball", "balls"),
    "tool": ("tool", "tools"),
    "instrument": ("musical instrument", "musical instruments"),
    "vehicle": ("vehicle", "vehicles"),
    "weather": ("weather symbol", "weather symbols"),
    "plant": ("plant", "plants"),
    "flower": ("flower", "flowers"),
    "face": ("face", "faces"),
}

# What is often asked for; most of it is in no picture of this world.
ASKED_FOR = (
    "person", "man", "woman", "child", "baby", "boy", "girl", "hand", "eye", "nose", "table", "sofa", "bed",
    "bottle", "knife", "fork", "spoon", "bowl", "plate", "door", "window", "road", "river", "mountain",
    "beach", "bridge", "zebra", "giraffe", "kangaroo", "unicorn", "dinosaur", "swan", "parrot", "goat",
    "donkey", "wolf", "squirrel", "hedgehog", "mango", "coconut", "avocado", "broccoli", "onion", "pepper",
    "salad", "sandwich", "taco", "sushi", "soup", "rice", "wine", "beer", "milk", "tram", "scooter",
    "skateboard", "ambulance", "fire truck", "submarine", "balcony", "screwdriver", "drill", "nail", "rope",
    "piano", "flute", "harp", "keyboard", "printer", "remote control", "toothbrush", "soap", "towel", "sock",
    "glove", "scarf", "tie", "ring box", "watch", "bag", "backpack", "suitcase", "wallet", "coin", "flag",
    "tent", "ladder", "traffic light", "stop sign", "statue", "tower", "castle", "church", "volcano",
    "tornado", "star fish", "jellyfish", "dragon", "wizard", "hexagon", "pentagon", "oval", "rectangle",
    "arrow", "spiral", "cube", "pyramid",
)  # fmt: skip


# Kinds that are disputed wherever something of another kind is: many animals are drawn as faces.
DISPUTED_BESIDE = {"face": ("animal",), "plant": ("fruit", "vegetable"), "eye": ("animal", "face")}


def disputed(noun: Noun, word: str) -> bool:
    """Whether people differ on calling this thing so. Nothing is asked then."""
    others = DISPUTED_BESIDE.get(word, ())
    return word in noun.arguably or any(kind in noun.kinds for kind in others)


@cache
def nouns() -> tuple[Noun, ...]:
    return first_nouns() + _nouns_of(LATER)


@cache
def first_nouns() -> tuple[Noun, ...]:
    """Those that the tokenizer is made with."""
    return _nouns_of(TABLE)


def _nouns_of(table: str) -> tuple[Noun, ...]:
    found = []
    for paragraph in table.strip().split("\n\n"):
        heading, *lines = paragraph.splitlines()
        kinds = tuple(kind.strip() for kind in heading.split(",") if kind != "-")
        for line in lines:
            name, icons, also, *arguably = (part.strip() for part in line.split("|"))
            others = () if also == "-" else tuple(word.strip() for word in also.split(","))
            doubts = tuple(arguably[0].split()) if arguably else ()
            drawn = (*icons.split(), *MORE_ICONS.get(name, ()))
            found.append(Noun(name, drawn, kinds, others, doubts))
    return tuple(found)


@cache
def by_name() -> dict[str, Noun]:
    return {noun.name: noun for noun in nouns()}


@cache
def strangers() -> tuple[str, ...]:
    """What is asked for and is no thing of this world."""
    known = {name for noun in nouns() for name in (noun.name, *noun.also)}
    return tuple(word for word in ASKED_FOR if word not in known)
