"""Sums over what is in a picture: how many more, how many are left, which is there most often. No torch."""

from collections import Counter
from collections.abc import Callable
from random import Random

from kestrel_tools.things.language.fact import Fact, yes_no
from kestrel_tools.things.language.questions import asked as asked_of
from kestrel_tools.things.language.wanted import Wanted, of_kind, of_noun, unrelated, wanted, word_for
from kestrel_tools.things.names import NUMBERS, PAIRS, SUBSTANCES, with_article
from kestrel_tools.things.scene import Item, Scene

from .sums_words import QUESTIONS

MOST = 12  # that a question speaks of
# What a child would say. Those of which people would not be sure are left out: monkeys, frogs, crabs.
FOUR_LEGGED = (
    "dog", "cat", "mouse", "rabbit", "fox", "bear", "panda", "koala", "tiger", "lion", "cow", "pig", "horse",
    "sheep", "elephant", "camel", "wolf", "giraffe", "zebra", "goat", "squirrel", "deer", "donkey", "buffalo",
    "hedgehog", "hamster", "raccoon", "leopard", "rhinoceros", "hippopotamus",
)  # fmt: skip
BIRDS = (
    "chicken", "penguin", "duck", "owl", "eagle", "swan", "flamingo", "parrot", "peacock", "turkey", "goose",
    "rooster", "dove", "pigeon",
)  # fmt: skip
LEGS = {**dict.fromkeys(FOUR_LEGGED, 4), **dict.fromkeys(BIRDS, 2)}
LIMBS = (
    ("legs", LEGS),
    ("wings", dict.fromkeys(BIRDS, 2)),
    ("wheels", {"bicycle": 2, "motorcycle": 2}),
)
# What people get one each of.
HANDED_OUT = frozenset((
    "cup", "hat", "balloon", "gift", "book", "chair", "umbrella", "bicycle", "pencil", "key", "phone", "bed",
    "backpack", "watch", "shirt", "dress", "laptop", "apple", "banana", "orange", "pear", "peach", "kiwi",
    "strawberry", "tomato", "carrot", "potato", "hamburger", "hot dog", "ice cream", "cookie", "donut",
    "egg", "soccer ball", "basketball", "guitar", "rose", "tulip", "sunflower", "spoon", "fork", "plate",
))  # fmt: skip
# How things go, and how they come.
GONE = {
    "bird": ("flew away", "flew off", "left"),
    "insect": ("left", "disappeared", "went away"),
    "animal": ("went away", "went home", "left", "disappeared"),
    "food": ("got eaten", "went bad", "ended up in the trash", "were gone"),
    "vehicle": ("left", "drove off", "went away"),
    "shape": ("got erased", "disappeared", "went missing"),
    "": ("got lost", "went missing", "disappeared", "got sold", "went away"),
}
COME = {
    "animal": ("came along", "joined in", "showed up"),
    "vehicle": ("came along", "arrived", "turned up"),
    "": ("turned up", "got added", "appeared"),
}


def asked(rng: Random, kind: str, *subjects: str) -> str:
    return asked_of(rng, kind, *subjects, among=QUESTIONS)


def _said(rng: Random, number: int) -> str:
    return NUMBERS[number] if 0 < number < len(NUMBERS) and rng.random() < 0.6 else str(number)


def _countable(found: Wanted) -> bool:
    """Whether one of it can be told from two: a bunch of grapes cannot."""
    last = found.one.rsplit(" ", 1)[-1]
    return last not in PAIRS and last not in SUBSTANCES


def some(rng: Random, scene: Scene) -> Wanted | None:
    """Some of what is there, told by a name or a kind that nobody disputes."""
    if not scene.items:
        return None
    item = rng.choice(scene.items)
    kinds = item.known_as.kinds
    if kinds and not item.is_shape and rng.random() < 0.2:
        found = of_kind(scene, rng.choice(kinds))
    else:
        word = item.noun if item.is_shape else word_for(rng, item.known_as)
        found = of_noun(scene, word, item.noun)
    return found if found is not None and found.items and _countable(found) else None


def _two(rng: Random, scene: Scene) -> tuple[Wanted, Wanted] | None:
    """Two sorts of things that have nothing in common."""
    first = some(rng, scene)
    second = some(rng, scene) if rng.random() < 0.8 else wanted(rng, scene, 0.95)
    if first is None or second is None or not second.items or not _countable(second):
        return None
    return (first, second) if unrelated(first, second) else None


def total(rng: Random, scene: Scene) -> Fact | None:
    """All things, or those of two sorts, counted together or each sort by itself."""
    if rng.random() < 0.3:
        if not scene.items or scene.lines:
            return None
        number = str(len(scene.items))
        return Fact("count", asked(rng, "total"), number, evidence=(("things", scene.items),))
    pair = _two(rng, scene)
    if pair is None:
        return None
    first, second = pair
    if rng.random() < 0.35:
        question = asked(rng, "each", first.many, second.many)
        answer = ", ".join(f"{len(found.items)} {found.right}" for found in pair)
        return Fact("sum", question, answer, evidence=_shown(*pair))
    items = tuple(item for item in scene.items if any(item is one for one in (*first.items, *second.items)))
    question = asked(rng, "together", first.many, second.many)
    evidence = ((f"{first.many} and {second.many}", items),)
    return Fact("count", question, str(len(items)), evidence=evidence)


def _shown(*found: Wanted) -> tuple[tuple[str, tuple[Item, ...]], ...]:
    return tuple((one.right, one.items) for one in found)


def difference(rng: Random, scene: Scene) -> Fact | None:
    """How many more dogs than cats, and whether there are as many."""
    pair = _two(rng, scene)
    if pair is None:
        return None
    first, second = pair
    by = len(first.items) - len(second.items)
    if by == 0 and len(first.items) == 1 and rng.random() < 0.8:
        return None
    if rng.random() < (0.7 if by == 0 else 0.25):
        question = asked(rng, "same number", first.many, second.many)
        return Fact("compare", question, yes_no(by == 0), evidence=_shown(*pair))
    if by == 0:
        return None
    if by < 0 and rng.random() < 0.7:
        first, second, by = second, first, -by
    kind = "how many more" if by > 0 else "how many fewer"
    return Fact("sum", asked(rng, kind, first.many, second.many), str(abs(by)), evidence=_shown(*pair))


def limbs(rng: Random, scene: Scene) -> Fact | None:
    """Legs, wings and wheels, where a child knows how many one has."""
    for noun in rng.sample(nouns := sorted({item.noun for item in scene.items}), len(nouns)):
        known = [(sort, table[noun]) for sort, table in LIMBS if noun in table]
        found = of_noun(scene, noun, noun) if known else None
        if found is None:
            continue
        sort, each = rng.choice(known)
        if len(found.items) == 1:
            if sort == "wings" or rng.random() > 0.15:
                continue
            return Fact("sum", asked(rng, f"{sort} of one", noun), str(each), evidence=_shown(found))
        answer = str(each * len(found.items))
        return Fact("sum", asked(rng, sort, found.many), answer, evidence=_shown(found))
    return None


def most_often(rng: Random, scene: Scene) -> Fact | None:
    """Which thing is there most or least often, where one alone is."""
    nouns = Counter(item.noun for item in scene.items)
    if len(nouns) < 2 or any(item.is_shape for item in scene.items):
        return None
    if any(word in nouns for item in scene.items for word in item.known_as.arguably):
        return None
    most = rng.random() < 0.7
    ordered = nouns.most_common() if most else nouns.most_common()[::-1]
    (noun, number), (_, next_number) = ordered[:2]
    if number == next_number:
        return None
    items = tuple(item for item in scene.items if item.noun == noun)
    kind = "most often" if most else "least often"
    return Fact("most often", asked(rng, kind), noun, evidence=((noun, items),))


def other_colour(rng: Random, scene: Scene) -> Fact | None:
    """Which colour one of the fish has, where all the others have another one."""
    nouns = [noun for noun, number in Counter(item.noun for item in scene.items).items() if number > 2]
    if not nouns:
        return None
    noun = rng.choice(nouns)
    found = of_noun(scene, noun, noun)
    if found is None or not _countable(found) or not all(item.colour for item in found.items):
        return None
    colours = Counter(item.colour for item in found.items).most_common()
    words, evidence = (found.many, "", found.one), _shown(found)
    if len(colours) == 1:
        if rng.random() > 0.2:
            return None
        return Fact("colours", asked(rng, "is one different", *words), "no", evidence=evidence)
    if len(colours) > 2 or colours[1][1] > 1 or colours[0][1] < 2:
        return None
    (usual, _), (other, _) = colours
    kind = rng.choice(("another colour", "another colour", "main colour", "is one different"))
    answer = {"another colour": other, "main colour": usual}.get(kind, "yes")
    return Fact("colours", asked(rng, kind, *words), answer, evidence=evidence)


def changed(rng: Random, scene: Scene) -> Fact | None:
    """How many there would be if some went away, or more came."""
    found = some(rng, scene)
    if found is None or len(found.items) > MOST - 2:
        return None
    number, kinds = len(found.items), found.items[0].known_as.kinds
    if number > 1 and rng.random() < 0.7:
        by = rng.randint(1, min(number - (rng.random() < 0.9), 5))
        gone = rng.choice(next((GONE[kind] for kind in reversed(kinds) if kind in GONE), GONE[""]))
        if gone == "were gone" and by == 1:
            gone = "was gone"
        question, left = asked(rng, "taken away", _said(rng, by), found.many, gone), number - by
    else:
        by = rng.randint(1, 3)
        come = rng.choice(next((COME[kind] for kind in kinds if kind in COME), COME[""]))
        question, left = asked(rng, "added", _said(rng, by), found.many, come), number + by
    return Fact("sum", question, str(left), evidence=_shown(found))


def enough(rng: Random, scene: Scene) -> Fact | None:
    """Whether each of some people gets one, how many are missing, how many each gets."""
    nouns = [item.noun for item in scene.items if item.noun in HANDED_OUT]
    if not nouns:
        return None
    noun = rng.choice(nouns)
    found = of_noun(scene, noun, noun)
    if found is None:
        return None
    number, chance, evidence = len(found.items), rng.random(), _shown(found)
    if number == 1 and chance < 0.7:
        return None
    sharing = [people for people in range(2, number) if number % people == 0]
    if chance < 0.3 and sharing:
        people = rng.choice(sharing)
        question = asked(rng, "share", _said(rng, people), found.many)
        return Fact("sum", question, str(number // people), evidence=evidence)
    wants = max(2, number + rng.choice((-2, -1, -1, 0, 0, 1, 1, 2, 3)))
    words = (_said(rng, wants), found.many, found.one, with_article(found.one))
    if wants > number and chance > 0.65:
        return Fact("sum", asked(rng, "missing", *words), str(wants - number), evidence=evidence)
    return Fact("compare", asked(rng, "enough", *words), yes_no(number >= wants), evidence=evidence)


def pairs(rng: Random, scene: Scene) -> Fact | None:
    """How many pairs there are, and whether the number is even."""
    found = some(rng, scene)
    if found is None or len(found.items) < 2:
        return None
    number, kind = len(found.items), rng.choice(("pairs", "even or odd", "even"))
    if kind == "pairs" and number % 2:
        return None  # is the one left over half a pair?
    even = number % 2 == 0
    answer = {"pairs": str(number // 2), "even": yes_no(even)}.get(kind, "even" if even else "odd")
    return Fact("sum", asked(rng, kind, found.many), answer, evidence=_shown(found))


def bounds(rng: Random, scene: Scene) -> Fact | None:
    """Whether there are more than two, exactly three, only one."""
    found = some(rng, scene)
    if found is None:
        return None
    number, evidence = len(found.items), _shown(found)
    if rng.random() < (0.5 if number == 1 else 0.25):
        told = {"one or several": "one" if number == 1 else "several", "only one": yes_no(number == 1)}
        told["more than one"] = yes_no(number > 1)
        kind = rng.choice(tuple(told))
        return Fact("compare", asked(rng, kind, found.one, found.many), told[kind], evidence=evidence)
    limit = max(2, min(MOST, number + rng.choice((-2, -1, -1, 0, 0, 1, 1, 2))))
    way, true = rng.choice(
        (
            ("more than", number > limit),
            ("more than", number > limit),
            ("fewer than", number < limit),
            ("less than", number < limit),
            ("at least", number >= limit),
            ("exactly", number == limit),
            ("exactly", number == limit),
            ("at most", number <= limit),
            ("no more than", number <= limit),
        )
    )
    question = asked(rng, "bound", f"{way} {_said(rng, limit)}", found.many)
    return Fact("compare", question, yes_no(true), evidence=evidence)


WEIGHTS: dict[Callable[[Random, Scene], Fact | None], float] = {
    total: 0.4,
    difference: 0.9,
    limbs: 0.6,
    most_often: 0.8,
    other_colour: 0.7,
    changed: 0.2,
    enough: 0.4,
    pairs: 0.15,
    bounds: 0.25,
}
