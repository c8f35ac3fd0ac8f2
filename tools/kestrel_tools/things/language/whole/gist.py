"""What may be asked about all that is in a picture: what they are, which one is odd, which side is empty.

No torch.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from random import Random

from kestrel_tools.things.language.fact import Fact, yes_no
from kestrel_tools.things.language.questions import asked as asked_of
from kestrel_tools.things.names import disputed
from kestrel_tools.things.scene import Item, Line, Placed, Scene

from .gist_words import QUESTIONS

CROWDED, SPARSE = 10, 2  # things
COMMON = 0.4  # how often it is asked about what is so in most pictures
TAKEN = 0.1  # how often a side is asked about that is not empty
# What all things of a kind are called where that is the answer, and what several and one are called in a
# question.
KINDS: dict[str, tuple[str, tuple[tuple[str, str], ...]]] = {
    "animal": ("animals", (("animals", "an animal"), ("creatures", "an animal"), ("animals", "some animal"))),
    "bird": ("birds", (("birds", "a bird"),)),
    "insect": ("insects", (("insects", "an insect"), ("bugs", "a bug"))),
    "food": ("food", (("things to eat", "something to eat"), ("foods", "food"), ("food items", "food"))),
    "fruit": ("fruit", (("fruits", "a fruit"), ("fruits", "some kind of fruit"))),
    "vegetable": ("vegetables", (("vegetables", "a vegetable"), ("veggies", "some vegetable"))),
    "clothing": ("clothes", (("clothes", "a piece of clothing"), ("things to wear", "something to wear"))),
    "ball": ("balls", (("balls", "a ball"),)),
    "tool": ("tools", (("tools", "a tool"),)),
    "instrument": ("musical instruments", (("musical instruments", "a musical instrument"),)),
    "vehicle": ("vehicles", (("vehicles", "a vehicle"), ("vehicles", "some vehicle"))),
    "weather": ("weather", (("weather symbols", "a weather symbol"),)),
    "plant": ("plants", (("plants", "a plant"),)),
    "flower": ("flowers", (("flowers", "a flower"),)),
    "face": ("faces", (("faces", "a face"),)),
    "shape": ("shapes", (("shapes", "a shape"), ("geometric shapes", "a geometric shape"))),
}
OFTEN_ASKED = ("animal", "food", "vehicle", "plant", "fruit", "tool", "clothing", "person", "person")
# Axis, which end of it, and the words: where, and what is there.
SIDES = {
    "left": (0, 0, "on the [left|left side]", "the left [half|side]"),
    "right": (0, 1, "on the [right|right side]", "the right [half|side]"),
    "top": (1, 0, "[at the top|in the upper half]", "the [top|upper] half"),
    "bottom": (1, 1, "[at the bottom|in the lower half]", "the [bottom|lower] half"),
}


def asked(rng: Random, kind: str, *subjects: str) -> str:
    return asked_of(rng, kind, *subjects, among=QUESTIONS)


def any_of(rng: Random, scene: Scene) -> Fact | None:
    """Whether there are animals, people or food at all."""
    there = [kind for item in scene.items for kind in item.known_as.kinds if kind in KINDS]
    kind = rng.choice(there) if there and rng.random() < 0.55 else rng.choice(OFTEN_ASKED)
    if kind == "shape" or any(disputed(item.known_as, kind) for item in scene.items):
        return None
    found = tuple(item for item in scene.items if kind in item.known_as.kinds)
    evidence = ((kind, found[:1]),) if found else ()
    if kind == "person":
        return Fact("presence", asked(rng, "any people"), yes_no(bool(found)), evidence=evidence)
    question = asked(rng, "any of", *rng.choice(KINDS[kind][1]))
    return Fact("presence", question, yes_no(bool(found)), evidence=evidence)


def about(rng: Random, scene: Scene) -> Fact | None:
    """What all the things are, where one kind covers them; or whether they are all of a kind."""
    items = scene.items
    if len(items) < 2 or scene.lines:
        return None
    kinds = [kind for kind in items[0].known_as.kinds if all(kind in item.known_as.kinds for item in items)]
    if rng.random() < 0.3:
        return _all_of_kind(rng, items, kinds)
    if not kinds or kinds[-1] not in KINDS or len(items) < 3 or len({item.noun for item in items}) < 2:
        return None
    if kinds[-1] == "shape" and rng.random() > COMMON:
        return None
    kind, evidence = kinds[-1], (("things", items),)  # the narrowest: fruit rather than food
    right = KINDS[kind][0]
    if rng.random() < 0.7:
        return Fact("gist", asked(rng, "about"), right, evidence=evidence)
    wrong = [
        other
        for other in KINDS
        if not any(other in item.known_as.kinds or disputed(item.known_as, other) for item in items)
    ]
    offered = [right, *(KINDS[other][0] for other in rng.sample(wrong, 2))]
    rng.shuffle(offered)
    return Fact("gist", asked(rng, "which kind", *offered), right, evidence=evidence)


def _all_of_kind(rng: Random, items: Sequence[Item], common: Sequence[str]) -> Fact | None:
    kinds = common if common and rng.random() < 0.85 else rng.choice(items).known_as.kinds
    kinds = [kind for kind in kinds if kind in KINDS]
    if not kinds:
        return None
    kind = rng.choice(kinds)
    if any(disputed(item.known_as, kind) for item in items):
        return None
    others = tuple(item for item in items if kind not in item.known_as.kinds)
    evidence = (("another thing", others[:1]),) if others else ()
    return Fact("gist", asked(rng, "all of kind", *KINDS[kind][1][0]), yes_no(not others), evidence=evidence)


def odd_one(rng: Random, scene: Scene) -> Fact | None:
    """Which one does not fit, where all the others are one thing or of one kind."""
    items, number = scene.items, len(scene.items)
    if scene.lines or number < 3:
        return None
    if len({item.name for item in items}) == 1:
        one_size = len({item.size for item in items}) == 1
        return Fact("odd one", asked(rng, "odd one"), "none") if one_size and rng.random() < 0.1 else None
    odd: dict[int, Item] = {}
    for trait, times in Counter(trait for item in items for trait in _traits(item)).items():
        if times == number - 1 > 2:
            other = next(item for item in items if trait not in _traits(item))
            odd[id(other)] = other
            if disputed(other.known_as, trait):
                return None
    if len(odd) != 1:
        return None
    [item] = odd.values()
    others = Counter(other.noun for other in items if other is not item)
    if others.most_common(1)[0][1] == number - 2 > 2:
        return None  # a book, a pear and many bananas: which of the two?
    sentence = f"The {item.name} does not fit." if not item.noun.endswith("s") else ""
    return Fact("odd one", asked(rng, "odd one"), item.name, sentence, ((f"the {item.name}", (item,)),))


def _traits(item: Item) -> tuple[str, ...]:
    """By what it goes with others: its name, its kinds, and the colour of a shape."""
    return (item.noun, *item.known_as.kinds, *((f"{item.colour} ",) if item.is_shape else ()))


def alike(rng: Random, scene: Scene) -> Fact | None:
    """Whether all are the same, whether any is there twice, which ones, and how many different ones."""
    if len(scene.items) < 2 or doubtful(scene):
        return None
    groups: dict[str, list[Item]] = {}
    for item in scene.items:
        groups.setdefault(item.name, []).append(item)
    firsts = tuple(found[0] for found in groups.values())
    several = [found for found in groups.values() if len(found) > 1]
    single = [found[0] for found in groups.values() if len(found) == 1]
    chance = rng.random()
    if chance < 0.25:
        question = asked(rng, "different")
        return Fact("count", question, str(len(groups)), evidence=(("different things", firsts),))
    if chance < 0.45:
        if len(groups) > 1 and rng.random() > COMMON:
            return None
        if rng.random() < 0.3:
            answer = "the same" if len(groups) == 1 else "different"
            return Fact("gist", asked(rng, "same or different"), answer, evidence=(("things", firsts[:2]),))
        answer = yes_no(len(groups) == 1)
        return Fact("gist", asked(rng, "all the same"), answer, evidence=(("things", firsts[:2]),))
    if chance < 0.7:
        if several and not any(_look(a) == _look(b) for found in several for a, b in _neighbours(found)):
            return None  # two dogs that look different
        shown = (("the same things", tuple(several[0])),) if several else ()
        return Fact("gist", asked(rng, "twice"), yes_no(bool(several)), evidence=shown)
    if chance < 0.9 and len(several) == 1:
        [found] = several
        return Fact("gist", asked(rng, "which twice"), found[0].name, evidence=(("these", tuple(found)),))
    if len(single) == 1 and several:
        evidence = ((f"the {single[0].name}", tuple(single)),)
        return Fact("gist", asked(rng, "which once"), single[0].name, evidence=evidence)
    return None


def doubtful(scene: Scene) -> bool:
    """Whether people may take some of the things for the same, or one for another: a taxi and a car, a red
    and a blue circle, apples of two colours.
    """
    nouns: dict[str, set[str]] = {}
    for item in scene.items:
        nouns.setdefault(item.noun, set()).add(item.colour)
    if any(len(colours - {""}) > 1 for colours in nouns.values()):
        return True
    return any(word in nouns for item in scene.items for word in item.known_as.arguably)


def _look(item: Item) -> object:
    return item.drawn.sprite if isinstance(item.drawn, Placed) else item.name


def _neighbours(items: Sequence[Item]) -> list[tuple[Item, Item]]:
    return [(a, b) for at, a in enumerate(items) for b in items[at + 1 :]]


def filled(rng: Random, scene: Scene) -> Fact | None:
    """Whether it is crowded, and whether anything is written."""
    number, chance = len(scene.items), rng.random()
    if chance < 0.4:
        if SPARSE < number < CROWDED or len(scene.lines) > 1 or not number:
            return None
        if chance < 0.15 and number != 1:
            return Fact("gist", asked(rng, "many or few"), "many" if number >= CROWDED else "few")
        return Fact("gist", asked(rng, "crowded"), yes_no(number >= CROWDED))
    if chance < 0.8:
        evidence = (("the text", scene.lines),)
        return Fact("has text", asked(rng, "written"), yes_no(bool(scene.lines)), evidence=evidence)
    if not scene.lines or (scene.marks and not number):
        return None
    return Fact("has text", asked(rng, "only text"), yes_no(not number))


def sides(rng: Random, scene: Scene) -> Fact | None:
    """Whether a side is empty, which one is, and where there is more."""
    things: tuple[Item | Line, ...] = (*scene.items, *scene.lines)
    if not things or scene.marks or scene.cards is not None:
        return None
    if rng.random() < 0.35:
        return _fuller_half(rng, scene)
    empty = [side for side in SIDES if _is_empty(scene, side)]
    if len(empty) == 1 and rng.random() < 0.4:
        question = asked(rng, "which side empty", rng.choice(("half", "half", "side")))
        return Fact("part", question, empty[0])
    side = rng.choice(empty if empty and rng.random() < 0.5 else tuple(SIDES))
    axis, end, where, what = SIDES[side]
    taken = [thing for thing in things if abs(thing.centre[axis] - end) < 0.4]
    if side not in empty and (not taken or rng.random() > TAKEN):
        return None
    shown = (("this", tuple(taken[:1])),) if side not in empty else ()
    return Fact("part", asked(rng, "empty side", where, what), yes_no(side in empty), evidence=shown)


def _is_empty(scene: Scene, side: str) -> bool:
    """Whether nothing reaches into that half."""
    axis, end, *_ = SIDES[side]
    boxes = [item.box for item in scene.items] + [line.box for line in scene.lines]
    return all(box[2 + axis] < 0.5 if end else box[axis] > 0.5 for box in boxes)


def _fuller_half(rng: Random, scene: Scene) -> Fact | None:
    axis = rng.randrange(2)
    places = [item.centre[axis] for item in scene.items]
    low = sum(at < 0.5 for at in places)
    high = len(places) - low
    if scene.lines or abs(low - high) < 2 or len(places) < 3 or any(abs(at - 0.5) < 0.06 for at in places):
        return None
    pair = ("left", "right") if axis == 0 else ("top", "bottom")
    question = asked(rng, "which side more", *pair)
    return Fact("part", question, pair[0] if low > high else pair[1])


WEIGHTS: dict[Callable[[Random, Scene], Fact | None], float] = {
    any_of: 0.25,
    about: 0.9,
    odd_one: 1.2,
    alike: 0.6,
    filled: 0.2,
    sides: 0.6,
}
