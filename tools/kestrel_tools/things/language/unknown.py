"""Questions about what is in the picture that no picture answers: names, prices, ages, reasons. No torch."""

import re
from collections.abc import Callable
from random import Random

from kestrel_tools.things.language.fact import CANNOT_TELL, Fact, between_places, caption, none_of, place
from kestrel_tools.things.language.printed.facts import PATTERNS
from kestrel_tools.things.language.questions import asked as asked_of
from kestrel_tools.things.language.wanted import of_noun, only
from kestrel_tools.things.names import is_plural, nouns
from kestrel_tools.things.scene import Item, Scene

from .printed.more import MEANING_OF
from .unknown_words import CAN, CANNOT
from .whole.look import brightness

QUESTIONS: dict[str, tuple[str, ...]] = {
    "living": (
        "[What's|What is] {}'s name?",
        "[What's|What is] the name of {}?",
        "What do they call {}?",
        "How old <is> {}?",
        "How [heavy|tall|fast|strong] <is> {} [in real life|really|]?",
        "How much <does> {} weigh?",
        "How much <does> {} [weigh in kilos|weigh in pounds|eat every day|eat]?",
        "[What|Who] <is> {} [looking at|thinking about|waiting for|dreaming of|afraid of]?",
        "Where <is> {} going?",
        "Where <does> {} [live|come from|sleep|go]?",
        "Why <is> {} [here|there|so small|looking like that|alone|in the picture]?",
        "What will {} do [next|now|then|tomorrow]?",
        "<Is> {} [hungry|tired|male or female|a boy or a girl|friendly|dangerous|well]?",
        "Who <does> {} belong to?",
        "Who [owns|feeds|drew|found|bought] {}?",
        "What did {} [eat|do|see] [today|yesterday|before]?",
        "When was {} born?",
        "What breed <is> {}?",
        "Where <is> {} [headed|running to|looking]?",
    ),
    "thing": (
        "How much <does> {} cost?",
        "[What's|What is] the price of {}?",
        "How [expensive|cheap|old|heavy] <is> {}?",
        "How much <is> {} worth?",
        "How much <does> {} weigh?",
        "[What's|What is] the weight of {} [in kilos|in grams|in pounds|]?",
        "Who <does> {} belong to?",
        "Who [owns|made|bought|drew|left|sold|invented] {}?",
        "Whose <is> {}?",
        "Where <does> {} come from?",
        "Where was {} [made|bought|found]?",
        "When was {} [made|bought|built|put there]?",
        "Why <is> {} [here|there|in the picture|so big|this color]?",
        "What brand <is> {}?",
        "How [old|new] <is> {}?",
        "How [many inches|many centimeters] [long|wide|high] <is> {}?",
        "What's behind {}?",
        "<Is> {} [for sale|new or old|broken|mine|heavy]?",
        "How long does it take to make {}?",
        "How many [grams of fat|vitamins|carbs|seeds] <does> {} have?",
        "How many [grams of sugar|vitamins] are in {}?",
        "How [sweet|fresh|hot|loud|soft] <is> {}?",
    ),
    "moving": (
        "Where <is> {} [going|headed|driving to|on its way to]?",
        "Where did {} [start|come from]?",
        "How fast <is> {} [going|driving|]?",
        "How many people [fit in|are in|are inside] {}?",
        "Who [drives|is driving|is in] {}?",
        "When will {} [arrive|leave|stop]?",
        "Where will {} [stop|go next|go]?",
    ),
    "two": (
        "How far [apart are|is it between] {} and {}?",
        "How many [meters|inches|feet|steps|centimeters] <is> {} [away from|from] {}?",
        "[What's|What is] the distance [in meters|in feet|in inches|] between {} and {}?",
        "Which is [heavier|more expensive|older|cheaper|lighter], {} or {}?",
        "Why <is> {} next to {}?",
    ),
}  # fmt: skip


def unknown(rng: Random, scene: Scene) -> Fact | None:
    """Nothing is asked that print beside the thing may tell: it may be a name or a price."""
    found = only(rng, scene)
    if found is None or found[1].is_shape or scene.lines:
        return None
    words, item = found
    kinds, other = item.known_as.kinds, only(rng, scene)
    subjects = [f"the {words}"]
    if other is not None and other[1] is not item and not other[1].is_shape and rng.random() < 0.15:
        kind = "two"
        subjects.append(f"the {other[0]}")
    elif "vehicle" in kinds and rng.random() < 0.4:
        kind = "moving"
    else:
        kind = (
            "living" if "animal" in kinds or item.noun in ("snowman", "ghost", "robot", "alien") else "thing"
        )
    question = asked_of(rng, kind, *subjects, many=is_plural(words), among=QUESTIONS)
    return Fact("cannot tell", question, CANNOT_TELL)


METAL = ("material", "worth", "owner", "history", "senses")
# By a thing's name or kind, what is asked about it beside what is asked about all things.
SORTS: dict[str, tuple[str, ...]] = {
    "animal": ("living", "living", "living", "artist", "future", "history", "measure", "owner"),
    "food": ("food", "food", "food", "worth", "history", "artist"),
    "vehicle": ("vehicle", "vehicle", "vehicle", "worth", "owner", "history", "future", "gadget"),
    "instrument": ("sound", "sound", "material", "worth", "owner"),
    "clothing": ("clothing", "clothing", "worth", "owner", "history"),
    "plant": ("plant", "plant", "history", "artist"),
    "face": ("face", "face", "artist"),
    "tool": ("material", "worth", "owner", "measure"),
    "weather": ("artist", "measure"),
    "phone": ("gadget", "gadget", "worth", "owner"),
    "laptop": ("gadget", "gadget", "worth", "owner"),
    "television": ("gadget", "gadget", "worth", "owner"),
    "camera": ("gadget", "gadget", "worth", "owner"),
    "watch": ("gadget", "worth", "owner"),
    "gift": ("gift", "gift", "container", "worth"),
    "envelope": ("envelope", "envelope", "container"),
    "backpack": ("container", "container", "owner", "material"),
    "tent": ("container", "owner", "worth"),
    "book": ("book", "book", "book", "owner", "worth"),
    "house": ("house", "house", "house", "container", "owner", "worth"),
    "door": ("door", "door", "history"),
    "ghost": ("living", "artist"),
    "snowman": ("living", "artist", "history"),
    "skull": ("artist", "history", "future"),
    "fire": ("artist", "future", "history"),
    "drop": ("artist", "future"),
    **dict.fromkeys(("bicycle", "motorcycle", "sailboat"), ("worth", "owner", "history", "future")),
    **dict.fromkeys(("key", "lock", "bell", "trophy", "anchor", "crown", "chair"), METAL),
}
ANY_THING = ("worth", "owner", "history", "future", "measure", "artist", "senses", "hidden")
# What no print beside a thing would tell.
BESIDE_PRINT = frozenset(("artist", "senses", "hidden", "future", "living"))
NO_FOOD = ("vehicle", "tool", "instrument", "ball", "clothing", "weather", "face")
NO_ANIMAL = ("vehicle", "tool", "instrument", "ball", "clothing", "weather", "food", "plant")
ABSENT = 0.08  # of the questions are about something that is not there
SHOWS_TIME = frozenset(("clock", "watch", "phone", "laptop", "television", "sun", "moon"))


def unknown_more(rng: Random, scene: Scene) -> Fact | None:
    """More of what no picture tells; in words alone, print says nothing about ages and smells."""
    if scene.page is not None or scene.cards is not None or not _in_words(scene):
        return None
    chance = rng.random()
    if chance < 0.12:
        return None if scene.lines else _cannot(rng, "whole")  # print may be a signature
    if chance < 0.16:
        return _cannot(rng, "weather") if _no_weather(scene) else None
    if chance < 0.16 + ABSENT:
        return _of_nothing(rng, scene)
    found = only(rng, scene)
    if found is None or found[1].is_shape or is_plural(found[0]):
        return None
    words, item = found
    if rng.random() < 0.15 and not scene.lines:
        other = only(rng, scene)
        if other is None or other[1] is item or other[1].is_shape or is_plural(other[0]):
            return None
        living = all("animal" in one.known_as.kinds for one in (item, other[1]))
        kind = "two living" if living and rng.random() < 0.7 else "two"
        return _cannot(rng, kind, f"the {words}", f"the {other[0]}")
    kind = rng.choice(_sorts_of(item))
    if scene.lines and kind not in BESIDE_PRINT:
        return None
    return _cannot(rng, kind, f"the {words}", words)


def _in_words(scene: Scene) -> bool:
    """Whether nothing is printed but words that name nobody: a figure may be an age or a price."""
    words = [word for line in scene.lines for word in line.text.lower().rstrip("!").split()]
    return all(word.isalpha() and word not in MEANING_OF for word in words)


def _cannot(rng: Random, kind: str, *subjects: str) -> Fact:
    return Fact("cannot tell", asked_of(rng, kind, *subjects, among=CANNOT), CANNOT_TELL)


def _sorts_of(item: Item) -> tuple[str, ...]:
    noun = item.known_as
    special = next((SORTS[word] for word in (noun.name, *noun.kinds) if word in SORTS), ())
    return special or ANY_THING


def _no_weather(scene: Scene) -> bool:
    """Nothing shows the weather, the season or the time of the day, and there is no landscape to show it."""
    if scene.marks or scene.lines or not scene.items or brightness(scene) == "dark":
        return False
    return not any(
        item.noun in SHOWS_TIME or not {"weather", "plant"}.isdisjoint((*noun.kinds, *noun.arguably))
        for item in scene.items
        for noun in (item.known_as,)
    )


def _of_nothing(rng: Random, scene: Scene) -> Fact | None:
    """The same about a thing that is not there, which is what there is to say."""
    noun = rng.choice(nouns())
    found = of_noun(scene, noun.name, noun.name)
    if found is None or found.items or is_plural(noun.name) or scene.lines:
        return None
    special = next((SORTS[word] for word in (noun.name, *noun.kinds) if word in SORTS), ANY_THING)
    question = asked_of(rng, rng.choice(special), f"the {noun.name}", noun.name, among=CANNOT)
    return Fact("absent", question, none_of(noun.name))


def known(rng: Random, scene: Scene) -> Fact | None:
    """What is asked nearly as that is, and can be told: the border between the two is learnt from both."""
    if scene.page is not None or scene.cards is not None:
        return None
    if scene.lines:
        return _told_by_print(rng, scene)
    if rng.random() < 0.12 and scene.items:
        return Fact("describe", asked_of(rng, "drew", among=CAN), caption(scene, "short"))
    found = only(rng, scene)
    if found is None or is_plural(found[0]):
        return None
    words, item = found
    the, kinds, evidence = f"the {words}", item.known_as.kinds, ((f"the {words}", (item,)),)
    if rng.random() < 0.25:
        group = of_noun(scene, item.noun, item.noun)
        if group is None or is_plural(item.noun) or (len(group.items) == 1 and rng.random() < 0.6):
            return None
        question = asked_of(rng, "how many", group.many, among=CAN)
        return Fact("count", question, str(len(group.items)), evidence=((group.right, group.items),))
    told: dict[str, str] = {}
    if item.colour and item.colour not in words.split():
        told["colour"] = item.colour
    if not between_places(item):
        told["place"] = place(item)
    if item.size and item.size not in words.split():
        told["size"] = item.size
    if not item.is_shape:
        told |= {"drawn": "a drawing", "real": "no"}
        if "food" in kinds or not {*kinds}.isdisjoint(NO_FOOD):
            told["eat"] = "yes" if "food" in kinds else "no"
        if "animal" in kinds or not {*kinds}.isdisjoint(NO_ANIMAL):
            told["animal"] = "yes" if "animal" in kinds else "no"
    if not told:
        return None
    kind = rng.choice(tuple(told))
    return Fact(_scored(kind), asked_of(rng, kind, the, among=CAN), told[kind], evidence=evidence)


def _scored(kind: str) -> str:
    return {"drawn": "medium", "real": "medium", "eat": "presence", "animal": "presence"}.get(kind, kind)


def _told_by_print(rng: Random, scene: Scene) -> Fact | None:
    """The price or the name of the only thing, and the time, where all that is printed is that."""
    if len(scene.lines) != 1:
        return None
    [line] = scene.lines
    evidence = (("the text", (line,)),)
    if re.fullmatch(PATTERNS["time"], line.text) and SHOWS_TIME.isdisjoint(i.noun for i in scene.items):
        return Fact("read part", asked_of(rng, "time", among=CAN), line.text, evidence=evidence)
    if len(scene.items) != 1 or scene.items[0].is_shape or is_plural(scene.items[0].noun):
        return None
    [item] = scene.items
    the = f"the {item.noun}"
    if re.fullmatch(PATTERNS["price"], line.text) and "weather" not in item.known_as.kinds:
        return Fact("read part", asked_of(rng, "price", the, among=CAN), line.text, evidence=evidence)
    if MEANING_OF.get(line.text.lower()) == "name" and "animal" in item.known_as.kinds:
        return Fact("read part", asked_of(rng, "name", the, among=CAN), line.text, evidence=evidence)
    return None


WEIGHTS: dict[Callable[[Random, Scene], Fact | None], float] = {unknown_more: 1.0, known: 0.5}
