"""What may be asked about kinds and colours: which fruit there is, how many are not red. No torch."""

from collections import Counter
from collections.abc import Sequence
from random import Random

from kestrel_tools.scenes.world import COLOUR_NAMES
from kestrel_tools.things.names import KINDS, plural, with_article
from kestrel_tools.things.scene import Item, Scene

from .fact import Fact, names_of
from .more.kinds import MORE
from .questions import COLOUR, HERE, PICTURE
from .questions import asked as asked_of
from .wanted import Wanted, everything, of_kind, of_noun, wanted

QUESTIONS: dict[str, tuple[str, ...]] = {
    "coloured one": (
        "[What's|What is] the {} [thing|object|item|one]?",
        "[What|Which] [thing|object|item|one] is {}?",
        "[What's|What is] that {} [thing|object] [called|there|]?",
        f"What is {{}} [{HERE}|]?",
        "Which [one|thing|object] has the color {}?",
        "What [do you see|is there] that is {}?",
        "Name the {} [thing|object].",
    ),
    "coloured of kind": (
        "[What|Which] {1} is {0}?",
        "[What's|What is] the {0} {1}?",
        "Which {1} has the color {0}?",
        "What {0} {1} [is there|do you see|can you see]?",
        "Which of the {2} is {0}?",
        "Name the {0} {1}.",
        "The {0} {1}, what is it?",
    ),
    "colours": (
        f"[What|Which] {COLOUR}s are the {{}}?",
        f"[What|Which] {COLOUR}s do the {{}} have?",
        f"[What|Which] {COLOUR}s [can you see|do you see] on the {{}}?",
        f"[What|Which] {COLOUR} are the {{}}?",
        f"[Name|List|Tell me] the {COLOUR}s of the {{}}.",
        f"In [what|which] {COLOUR}s [are|come] the {{}}?",
        f"In [what|which] {COLOUR}s are the {{}} [drawn|painted|shown]?",
    ),
    "all colours": (
        f"[What|Which] {COLOUR}s [are there|do you see|can you see|are used|do the shapes have]?",
        f"[Name|List] [all|] the {COLOUR}s of the [shapes|figures].",
        f"[What|Which] {COLOUR}s are the [shapes|figures]?",
        f"[What|Which] {COLOUR}s are in [the|this] {PICTURE}, [apart from|not counting] the background?",
    ),
    "all are": (
        "Are all [the|of the|] {} {}?",
        "Is every {2} {1}?",
        "Are all {} {} or not?",
        "Are the {} all {}?",
        "Do all [the|] {} have the color {}?",
        "Is each {2} {1}?",
        "Would you say that all {} are {}?",
        "Are there only {1} {0}?",
    ),
    "count not": (
        "How many {} are not {}?",
        "How many {} aren't {}?",
        f"How many {{}} [here|in [the|this] {PICTURE}] are not {{}}?",
        "How many of the {} are not {}?",
        "Count the {} that [are not|aren't] {}.",
        "[What's|What is] the number of {} that are not {}?",
        "How many {} [do you see|can you see|are there] that are not {}?",
    ),
    "which of kind": (
        "[What|Which] {} [is|do you see|can you see|is there|is shown] [here|in [the|this] picture|]?",
        "[What|Which] [kinds|kind|types|sorts] of {} [is there|do you see|can you see|is shown|is here]?",
        f"[What|Which] {{}} [is|can be seen] in [the|this] {PICTURE}?",
        "[Tell me|Name|List] [the|what|all the|which] {} you [see|can see|recognize].",
        "What {} do we have here?",
        f"What {{}} does [the|this] {PICTURE} [show|have|contain]?",
    ),
    "which are": (
        f"[What|Which] {{}} [are there|do you see|can you see|are shown|are {HERE}|can be seen]?",
        f"[What|Which] {{}} are in [the|this] {PICTURE}?",
        "[What|Which] [kinds|types|sorts] of {} are there?",
        f"[What|Which] {{}} does [the|this] {PICTURE} show?",
        "[Tell me|Name|List] [the|all the|which] {} you [see|can see|recognize].",
        "What are the {} [called|here|]?",
        "What different {} are there?",
        "Which {} did you [find|spot|recognize]?",
        "What {} are [on here|on the picture|on there]?",
    ),
    "any of kind": (
        f"Is there [any|some|] {{}}[| {HERE}]?",
        f"[Do|Can] you see [any|some|] {{}}[| {HERE}]?",
        f"Does [the|this] {PICTURE} [show|contain|have|include] [any|some] {{}}?",
        f"Any {{}}[| {HERE}]?",
        "Is there {} at all?",
        "Is some {} [shown|visible|there]?",
        "Can any {} be seen?",
    ),
    "how many kinds": (
        "How many different {} [are there|do you see|can you see|are shown]?",
        "How many [kinds|types|sorts|different kinds] of {} [are there|do you see|are shown]?",
        f"How many different {{}} are in [the|this] {PICTURE}?",
        "Count the different {}.",
    ),
}  # fmt: skip

# Words for kinds that are asked for as a whole: "some fruit", "any clothes".
MASS = {"fruit": "fruit", "food": "food", "clothing": "clothing"}
# Other words for kinds, in the plural.
ALSO = {
    "animal": ("animals", "animals", "creatures"),
    "food": ("foods", "things to eat", "edible things"),
    "clothing": ("clothes", "things to wear", "pieces of clothing"),
    "instrument": ("instruments", "musical instruments"),
    "vehicle": ("vehicles", "vehicles", "means of transport"),
    "plant": ("plants",),
    "vegetable": ("vegetables", "veggies"),
    "fruit": ("fruits", "fruits"),
    "insect": ("insects", "bugs"),
    "tool": ("tools", "tools"),
}
MOST_COLOURS = 5


def asked(rng: Random, kind: str, *subjects: str, many: bool = False) -> str:
    return asked_of(rng, kind, *subjects, many=many, among=QUESTIONS, more=MORE)


def _some_kind(rng: Random, scene: Scene, present: float) -> tuple[str, Wanted] | None:
    """A kind: of something in the scene, or any; none on which people differ here."""
    there = [kind for item in scene.items for kind in item.known_as.kinds]
    kind = rng.choice(there) if there and rng.random() < present else rng.choice(tuple(KINDS))
    found = of_kind(scene, kind)
    return None if found is None else (kind, found)


def by_colour(rng: Random, scene: Scene) -> Fact | None:
    """What the yellow thing is, or which fruit is red, where there is one."""
    some = _some_kind(rng, scene, 0.9) if rng.random() < 0.6 else ("", everything(rng, scene))
    if some is None:
        return None
    kind, found = some
    if not found.items or any(not item.colour for item in found.items):
        return None
    colour = rng.choice(found.items).colour if rng.random() < 0.93 else rng.choice(COLOUR_NAMES)
    alike = tuple(item for item in found.items if item.colour == colour)
    if len(alike) > 1 or (kind and len(found.items) == 1 and rng.random() < 0.6):
        return None
    question = (
        asked(rng, "coloured of kind", colour, found.one, found.many)
        if kind
        else asked(rng, "coloured one", colour)
    )
    if not alike:
        return Fact("by colour", question, "none" if kind else "nothing")
    [item] = alike
    name = item.noun  # its colour was in the question
    sentence = f"The {colour} {found.one} is {with_article(name)}."
    return Fact("by colour", question, name, sentence, ((f"the {colour} {found.one}", alike),))


def colours(rng: Random, scene: Scene) -> Fact | None:
    """Which colours several things have, or whether all have the same."""
    several_of = [noun for noun, number in Counter(item.noun for item in scene.items).items() if number > 1]
    if not several_of:
        return None
    noun = rng.choice(several_of)
    found = of_noun(scene, noun, noun) if rng.random() < 0.7 else wanted(rng, scene, 0.95)
    if found is None:
        return None
    if rng.random() < 0.3 and not scene.lines and all(item.is_shape for item in scene.items):
        found = Wanted("shape", "shapes", scene.items)
    several = [item.colour for item in found.items]
    if len(several) < 2 or not all(several) or any(word in COLOUR_NAMES for word in found.one.split()):
        return None
    distinct = list(dict.fromkeys(several))
    evidence = ((f"the {found.many}", found.items),)
    if rng.random() < (0.5 if len(distinct) == 1 else 0.3):
        colour = rng.choice(several) if rng.random() < 0.85 else rng.choice(COLOUR_NAMES)
        answer = "yes" if distinct == [colour] else "no"
        return Fact(
            "all are", asked(rng, "all are", found.many, colour, found.one), answer, evidence=evidence
        )
    if len(distinct) > MOST_COLOURS:
        return None
    kind = "all colours" if found.one == "shape" and len(several) == len(scene.items) else "colours"
    return Fact("colours", asked(rng, kind, found.many), ", ".join(distinct), evidence=evidence)


def count_not(rng: Random, scene: Scene) -> Fact | None:
    """How many shapes are not circles, how many things are not animals, how many stars are not red."""
    if not scene.items:
        return None
    shapes = [item for item in scene.items if item.is_shape]
    chance = rng.random()
    every: Sequence[Item]
    if chance < 0.55 and len(shapes) > 1:
        every, many = shapes, "shapes"
        item = rng.choice(shapes)
        if rng.random() < 0.5:
            but, left = plural(item.noun), [o for o in every if o.noun != item.noun]
        else:
            but, left = item.colour, [o for o in every if o.colour != item.colour]
    else:
        every, many = scene.items, rng.choice(("things", "objects"))
        if chance < 0.8:
            some = _some_kind(rng, scene, 0.85)
            found = some and some[1]
        else:
            item = rng.choice(scene.items)
            found = None if item.is_shape else of_noun(scene, item.noun, item.noun)
        if found is None:
            return None
        but, left = found.many, [o for o in every if not any(o is one for one in found.items)]
    if not left and rng.random() < 0.7:
        return None
    shown = ((f"{many} that are not {but}", tuple(left)),)
    return Fact("count", asked(rng, "count not", many, but), str(len(left)), evidence=shown)


def kinds(rng: Random, scene: Scene) -> Fact | None:
    """Which fruit there is, whether there is any, how many kinds."""
    some = _some_kind(rng, scene, 0.75)
    if some is None:
        return None
    kind, found = some
    evidence = ((found.many, found.items),)
    many = rng.choice(ALSO.get(kind, (found.many,)))
    chance = rng.random()
    if chance < 0.2 and kind in MASS:
        yes = "yes" if found.items else "no"
        word = MASS[kind]
        sentence = f"Yes, there is {word}." if found.items else f"No, there is no {word}."
        return Fact("presence", asked(rng, "any of kind", word), yes, sentence, ((word, found.items[:1]),))
    if chance < 0.35 and len(found.items) > 1 and kind != "shape":
        firsts = {item.name: item for item in reversed(found.items)}
        shown = tuple(item for item in found.items if firsts[item.name] is item)
        question = asked(rng, "how many kinds", many)
        return Fact("count", question, str(len(shown)), evidence=((f"different {many}", shown),))
    if not found.items and rng.random() < 0.6:
        return None
    if kind in MASS and rng.random() < 0.5:
        question = asked(rng, "which of kind", MASS[kind])
    else:
        question = asked(rng, "which are", many)
    return Fact("list", question, names_of(found.items) or "none", evidence=evidence)
