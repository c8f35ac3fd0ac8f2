"""The traits of things, as `lists` has them: how people speak of each, which things have it, and beside
which it is not asked since people would differ on them. All other things do not have it.

A trait is a few lines. The first has its forms, apart by semicolons; by its first word a form is

    can fly                     what things can do
    is sharp                    what they are like
    a pet, a fox = foxes        what they are; the plural, where it is another
    you wear ~ on your head     what people can do with them; they are named at the end, or where the mark is
    to cut hair = cutting hair  what they are for
    by a king: wear             what somebody would do with them
    when it rains               what they are needed for
    gives us milk               anything else: what they do or have

"+" lists the things that have it and "?" those that are disputed: names, "@" and a kind or a group, "-" and
what of these is not meant; a name in one list counts more than a group in the other. "!" is a way to ask
which things have it, "!?" one to ask whether any has; "." is something to say before one of the questions
after ",". ";" goes on with the forms. "animal>" before them: it is asked of animals only. "print>": not
beside print.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate

from kestrel_tools.scenes.world import SHAPES
from kestrel_tools.things.names import KINDS, by_name, disputed, nouns, plural

from .lists import animals, bodies, food, makes, nature, people, uses

# Kinds that a question may be confined to, and the words for one and for many.
CONFINED: dict[str, tuple[tuple[str, str], ...]] = {
    "animal": (("animal", "animals"), ("animal", "animals"), ("creature", "creatures")),
    "bird": (("bird", "birds"),),
    "insect": (("insect", "insects"),),
    "food": (("food", "foods"), ("food item", "food items")),
    "fruit": (("fruit", "fruits"),),
    "vegetable": (("vegetable", "vegetables"),),
    "clothing": (("piece of clothing", "pieces of clothing"),),
    "tool": (("tool", "tools"),),
    "instrument": (("instrument", "instruments"), ("musical instrument", "musical instruments")),
    "vehicle": (("vehicle", "vehicles"),),
    "plant": (("plant", "plants"),),
    "flower": (("flower", "flowers"),),
    "shape": (("shape", "shapes"), ("figure", "figures")),
}

FOUR_LEGGED = """
dog, cat, mouse, rabbit, fox, bear, panda, koala, tiger, lion, cow, pig, horse, sheep, elephant, camel, wolf,
giraffe, zebra, goat, squirrel
"""
GROUPS = {
    "four-legged": FOUR_LEGGED,
    "mammal": f"{FOUR_LEGGED}, monkey, bat, whale, dolphin",
    "eaten": """
        cow, pig, sheep, goat, chicken, duck, rabbit, fish, shark, octopus, crab, snail, frog, horse, whale
    """,
    "small": "mouse, frog, snail, spider, bee, butterfly, ladybug, ant, crab, bat, fish, squirrel",
    "being": "smiley, sad face, angry face, sleeping face, robot, alien, skull, ghost, snowman",
    "ghosts": "skull, ghost",
    "sweets": "ice cream, cake, cookie, donut",
    "meal": "hamburger, pizza, hot dog, fries",
    "road": "car, taxi, bus, truck, tractor, fire truck, ambulance, police car",
    "boat": "sailboat, ship",
    "gadget": "phone, laptop, television, camera",
    "object": """
        cup, house, gift, balloon, candle, bell, key, lock, light bulb, pencil, book, phone, laptop,
        television, camera, clock, umbrella, envelope, crown, glasses, magnifying glass, bomb, frying pan,
        tennis racket, chair, backpack, bed, door, anchor, trophy, tent, watch, microphone
    """,
    "shape": ", ".join(SHAPES),
}
RARE = 0.25
MARKS = ("+", "!?", "!", "?", ";", ".", ",")
VERBS = {"has": "have", "goes": "go", "does": "do", "flies": "fly", "carries": "carry", "buzzes": "buzz"}


@dataclass(frozen=True, slots=True)
class Form:
    """A trait in words. `many` is the form for several things; `other` is a gerund, or who does it."""

    kind: str  # can, is, one, does, you, to, by, when
    words: str
    many: str = ""
    other: str = ""


@dataclass(frozen=True, slots=True)
class Trait:
    forms: tuple[Form, ...]
    things: frozenset[str]
    disputed: frozenset[str]
    which: tuple[str, ...]  # ways to ask which things have it
    whether: tuple[str, ...]  # and whether any has
    only: str  # a kind; it is asked of nothing else
    printed: bool  # whether print may have it
    kinds: tuple[str, ...]  # of which some have it and some do not
    sort: str  # what those that have it are called: object, animal, thing

    def has(self, noun: str) -> bool:
        return noun in self.things

    def is_clear(self, found: Iterable[str]) -> bool:
        """Whether nobody would differ on any of these."""
        return self.disputed.isdisjoint(found)


def base_of(verb: str) -> str:
    """The verb of "gives" as in "does it give"."""
    if verb in VERBS:
        return VERBS[verb]
    if verb.endswith(("ches", "shes", "sses", "xes")):
        return verb[:-2]
    assert verb.endswith("s"), verb
    return verb[:-1]


def form_of(text: str) -> Form:
    first, _, rest = text.partition(" ")
    words, _, other = rest.partition(" = ")
    match first:
        case "can" | "is" | "when":
            return Form(first, words, _of_many(words))
        case "a" | "an":
            return Form("one", f"{first} {words}", other or plural(words))
        case "you":
            return Form("you", words if "~" in words else f"{words} ~")
        case "to":
            assert other, text
            return Form("to", words, other=other)
        case "by":
            who, _, done = words.partition(": ")
            return Form("by", done if "~" in done else f"{done} ~", other=who)
    base = f"{base_of(first)} {rest}".strip()
    return Form("does", text, _of_many(base), base)


def _of_many(words: str) -> str:
    """ "carry their home on their back", "break if you drop them"."""
    words = words.replace(" its ", " their ")
    return f"{words.removesuffix(' it')} them" if words.endswith(" it") else words


def members_of(names: str) -> tuple[set[str], set[str]]:
    """The things of a list: those it names, and those of the groups it names."""
    named: set[str] = set()
    grouped: set[str] = set()
    for name in filter(None, (part.strip() for part in names.split(","))):
        if name.startswith("@"):
            grouped |= group_of(name[1:])
        elif name.startswith("-") and name[1:] in grouped:
            grouped.remove(name[1:])
        elif name in EVERY:
            named.add(name)
        else:
            raise ValueError(f"a trait of {name!r}, which there is not")
    return named, grouped


def group_of(name: str) -> frozenset[str]:
    """The things of a kind, or of a group that is named here."""
    return frozenset().union(*members_of(GROUPS[name])) if name in GROUPS else _of_kind(name)


@cache
def _of_kind(kind: str) -> frozenset[str]:
    if kind == "shape":
        return frozenset(SHAPES)
    assert kind in KINDS, kind
    return frozenset(noun.name for noun in nouns() if kind in noun.kinds)


def read(table: str) -> list[Trait]:
    found: list[list[str]] = []
    for line in filter(None, table.splitlines()):
        if line.startswith(MARKS):
            found[-1].append(line)
        else:
            found.append([line])
    return [_trait(*lines) for lines in found]


def _trait(heading: str, *lines: str) -> Trait:
    scope, _, forms = heading.rpartition("> ")
    listed: dict[str, list[str]] = {mark: [] for mark in MARKS}
    for line in lines:
        mark = next(mark for mark in MARKS if line.startswith(mark))
        listed[mark].append(line[len(mark) :].strip())
    named, grouped = members_of(", ".join(listed["+"]))
    doubted, doubtful = members_of(", ".join(listed["?"]))
    if both := named & doubted:
        raise ValueError(f"{forms}: both true and disputed of {sorted(both)}")
    things = named | (grouped - doubted)  # what is named counts more than a group
    doubts = (doubted | doubtful) - things
    assert things, heading
    only = scope if scope in CONFINED else ""
    kinds = tuple(kind for kind in CONFINED if things & (clear := _clear(kind)) and clear - things - doubts)
    return Trait(
        tuple(form_of(form.strip()) for form in ";".join((forms, *listed[";"])).split(";")),
        frozenset(things),
        frozenset(doubts),
        (*listed["!"], *(f"{said}[.|,|!|. So,] {ask}?" for said in listed["."] for ask in listed[","])),
        tuple(listed["!?"]),
        only,
        scope == "print",
        (only,) if only else kinds,
        "object" if things <= OBJECTS else "animal" if things <= ANIMALS else "thing",
    )


@cache
def _clear(kind: str) -> frozenset[str]:
    """Things of that kind of which nobody says that they are not."""
    return frozenset(name for name in _of_kind(kind) if name in SHAPES or not disputed(by_name()[name], kind))


LISTS = (bodies, animals, food, nature, uses, makes, people)
EVERY = frozenset((*by_name(), *SHAPES))
ANIMALS = set.union(*members_of("@animal, @being"))
OBJECTS = set.union(*members_of("@object, @tool, @clothing, @instrument, @vehicle, @ball, @food"))
TRAITS = tuple(trait for part in LISTS for trait in read(part.TABLE))


def by_thing(
    traits: Sequence[Trait], often: Callable[[Trait], float] = lambda trait: 1.0
) -> dict[str, tuple[tuple[Trait, ...], tuple[float, ...]]]:
    """The traits of each thing, and weights, summed up as `random.choices` takes them. What few things have
    is asked more often: nearly everything is man-made.
    """
    found = {}
    for name in EVERY:
        having = tuple(trait for trait in traits if trait.has(name))
        weights = (often(trait) * len(trait.things) ** -RARE for trait in having)
        found[name] = having, tuple(accumulate(weights))
    return found


TRAITS_OF = by_thing(TRAITS)
