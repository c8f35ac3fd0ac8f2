"""Questions about what is in the picture that no picture answers: names, prices, ages, reasons. No torch."""

from random import Random

from kestrel_tools.things.names import is_plural
from kestrel_tools.things.scene import Scene

from .fact import CANNOT_TELL, Fact
from .questions import asked as asked_of
from .wanted import only

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
