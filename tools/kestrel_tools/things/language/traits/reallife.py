"""Which thing is bigger or heavier in real life, however large it is drawn. No torch.

What people might differ on is not compared: only things that are far apart in size, and well known.
"""

from random import Random

from kestrel_tools.things.language.fact import Fact, yes_no
from kestrel_tools.things.language.more.marks import wordings
from kestrel_tools.things.language.questions import asked as asked_of
from kestrel_tools.things.language.wanted import Wanted, of_kind
from kestrel_tools.things.scene import Scene

# From what sits on a fingertip to what fills a yard. Two steps apart nobody doubts which one is larger, and
# what is larger is heavier too.
STEPS = (
    ("ant", "bee", "ladybug"),
    (
        "key", "egg", "strawberry", "kiwi", "pencil", "mouse", "cookie", "lemon", "pear", "orange", "peach",
        "apple", "tomato", "potato", "carrot", "donut", "light bulb", "banana", "watch", "phone", "frog",
    ),
    (
        "shoe", "boot", "hammer", "pineapple", "squirrel", "soccer ball", "basketball", "laptop",
        "frying pan", "chicken", "duck", "rabbit", "cat", "backpack", "violin", "trumpet", "owl", "eagle",
    ),
    (
        "sheep", "goat", "pig", "wolf", "bicycle", "guitar", "panda", "tiger", "lion", "chair", "bed",
        "motorcycle",
    ),
    ("cow", "horse", "camel", "zebra", "giraffe", "car", "taxi", "police car", "ambulance", "tractor"),
    ("elephant", "whale", "bus", "truck", "fire truck", "train", "ship", "airplane", "helicopter", "house"),
)  # fmt: skip
STEP = {noun: step for step, nouns in enumerate(STEPS) for noun in nouns}
APART = 2
EXTREME = 0.6  # of the questions are about several things, where it can be told
KINDS_ASKED = ("animal", "animal", "vehicle")
QUESTIONS = wordings("""
which of two
[In real life|In reality|Not in the drawing but in real life], [which|what] is {2}, {0} or {1}?
[Which|What|Which one|Which of the two] is {2} in [real life|reality|the real world], {0} or {1}?
{0} or {1}<then> [what|which] is {2} [in real life|in reality]?
If they were real, [which|what] would be {2}, {0} or {1}?
<know> which is {2} in [real life|reality], {0} or {1}<end>

is it
Is {0} {2} than {1} in [real life|reality|the real world]?
[In real life|In reality], is {0} {2} than {1}?
If they were real, would {0} be {2} than {1}?
<claim> in real life {0} is {2} than {1}<then> <right>?
<know> <whether> {0} is {2} than {1} in real life<end>

which of all
[Which|What] [of these|here|] is the {0} in [real life|reality|the real world]?
[In real life|In reality|If they were real], [which|what] [of these|] [would be|is] the {0}?
Which [thing|one] is the {0} in [real life|reality], not in the drawing?
<know> [which|what] [of these|] is the {0} in [real life|reality]<end>
[Name|Find] the thing that is the {0} in real life.

which of kind
Which {1} is the {0} in [real life|reality|nature]?
Which of the {2} is the {0} [one|] in [real life|reality]?
[In real life|In reality|In nature], which [of the {2}|{1}] [would be|is] the {0}?
Of [these|the] {2}, which is the {0} in real life?
<know> which {1} is the {0} in [real life|reality]<end>
""")
WORDS = {"bigger": "biggest", "larger": "largest", "heavier": "heaviest"}
OPPOSITES = {"smaller": "smallest", "lighter": "lightest"}


def compared(rng: Random, scene: Scene) -> Fact | None:
    if scene.lines or scene.page is not None:
        return None
    known = [item for item in scene.items if item.noun in STEP]
    single = [item for item in known if sum(other.noun == item.noun for other in scene.items) == 1]
    upwards = rng.random() < 0.65
    words = WORDS if upwards else OPPOSITES
    more = rng.choice(tuple(words))
    if rng.random() < EXTREME and (found := _extreme(rng, scene, words[more], upwards)) is not None:
        return found
    if len(single) < 2:
        return None
    first, second = rng.sample(single, 2)
    by = STEP[first.noun] - STEP[second.noun]
    if abs(by) < APART:
        return None
    pair = (f"the {first.noun}", f"the {second.noun}")
    evidence = ((pair[0], (first,)), (pair[1], (second,)))
    is_first = (by > 0) == upwards
    if rng.random() < 0.4:
        question = asked_of(rng, "is it", *pair, more, among=QUESTIONS)
        return Fact("compare", question, yes_no(is_first), evidence=evidence)
    question = asked_of(rng, "which of two", *pair, more, among=QUESTIONS)
    return Fact("trait", question, (first if is_first else second).name, evidence=evidence)


def _extreme(rng: Random, scene: Scene, most: str, upwards: bool) -> Fact | None:
    """Where one thing, or one of a kind, is far larger than any other, or far smaller."""
    among = rng.choice([Wanted("", "", scene.items), *(of_kind(scene, kind) for kind in KINDS_ASKED)])
    if among is None or len(among.items) < 3 or any(item.noun not in STEP for item in among.items):
        return None
    ordered = sorted(among.items, key=lambda item: STEP[item.noun], reverse=upwards)
    if abs(STEP[ordered[0].noun] - STEP[ordered[1].noun]) < APART:
        return None
    found = ordered[0]
    kind = "which of kind" if among.one else "which of all"
    question = asked_of(rng, kind, most, among.one, among.many, among=QUESTIONS)
    return Fact("trait", question, found.name, evidence=((f"the {found.noun}", (found,)),))
