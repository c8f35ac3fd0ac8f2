"""How people ask about a chart in the words of its subject: the wettest month, who scored most. No torch."""

import re
from itertools import pairwise
from random import Random

from kestrel_tools.things.charts.subjects import TIMES, family_of, labels_of, topic_of
from kestrel_tools.things.charts.topics import GOODS, PEOPLE
from kestrel_tools.things.language.spelling import casual, chosen, introduced, tidy
from kestrel_tools.things.names import plural
from kestrel_tools.things.scene import Chart

# By what is asked and whose it is: times, people, others; then those with the words of a topic.
# n: the family's noun, ns: several, a and b: labels, at and at_b: with their prepositions.
GENERIC: dict[str, dict[str, tuple[str, ...]]] = {
    "largest": {
        "time": (
            "[Which|What] {n} [is|was|has|had] the [highest|most|largest|best]?",
            "When [is|was] it [highest|the highest|the most|at its peak]?",
            "[What's|What is|What was] the [best|highest|top] {n}?",
            "In which {n} [is|was] the [most|highest value|maximum|peak]?",
        ),
        "who": (
            "Who [has|had|got] [the most|most|the highest number|the highest value]?",
            "Who is [the best|number one|in the lead|ahead|on top]?",
            "[Which|What] {n} [has|had|got] the [most|highest|largest number]?",
            "Who did best?",
        ),
        "what": (
            "[Which|What] {n} [is|has|got|had] the [most|highest|largest number|biggest value]?",
            "[What's|What is] the [top|highest|number one|biggest] {n}?",
            "Which {n} [is number one|is on top|leads]?",
            "Which of the {ns} [has the most|is highest|is the largest]?",
        ),
    },
    "smallest": {
        "time": (
            "[Which|What] {n} [is|was|has|had] the [lowest|least|smallest|worst]?",
            "When [is|was] it [lowest|the lowest|the least|at its lowest]?",
            "[What's|What is|What was] the [worst|lowest] {n}?",
            "In which {n} [is|was] the [least|lowest value|minimum]?",
        ),
        "who": (
            "Who [has|had|got] [the least|the fewest|fewest|least|the lowest number|the lowest value]?",
            "Who is [in last place|at the bottom|the worst]?",
            "[Which|What] {n} [has|had|got] the [fewest|lowest|smallest number|least]?",
            "Who did worst?",
        ),
        "what": (
            "[Which|What] {n} [is|has|got|had] the [fewest|lowest|smallest number|least]?",
            "[What's|What is] the [lowest|smallest] {n}?",
            "Which {n} [has the lowest number|is lowest|is the lowest]?",
            "Which of the {ns} [has the least|is lowest|is the smallest]?",
        ),
    },
    "value": {
        "time": (
            "How [much was it|much is it|many were there|much|many] {at}?",
            "What [was it|was the value|is the value|do we have|does it show] {at}?",
            "[And|What about|How about] {at}?",
            "[{a}|Value {at}|Number {at}]?",
            "{at}, how [much was it|much is it|many were there]?",
        ),
        "who": (
            "How [many|much] [does {a} have|did {a} get|has {a} got|for {a}]?",
            "[And|What about|How about] {a}?",
            "What did {a} [get|have|reach]?",
            "[What's|What is] {a}'s [value|number|result|score]?",
            "How did {a} do?",
        ),
        "what": (
            "How [many|much] [is it|] {at}?",
            "[And|What about|How about] {a}?",
            "What number {does} {a} have?",
            "[What's|What is] [the number|the value|it] {at}?",
            "{a}: how [many|much]?",
        ),
    },
    "label of": {
        "time": ("[Which|What] {n} [has|had|was|shows] {a}?", "When was it {a}?", "In which {n} is it {a}?"),
        "who": ("Who [has|had|got] {a}?", "Which {n} [has|got] {a}?", "Who is at {a}?"),
        "what": ("[Which|What] {n} [has|had|got|is] {a}?", "Which {n} is at {a}?", "Which {ns} have {a}?"),
    },
    "number of": {
        "time": ("How many {ns} are [shown|there|in the chart|on it]?", "How many {ns} do you see?"),
        "who": ("How many {ns} are [listed|shown|there|in the chart]?", "How many {ns} do you see?"),
        "what": ("How many {ns} are [listed|shown|there|compared]?", "How many {ns} do you see?"),
    },
    "labels": {
        "time": ("[Which|What] {ns} are [shown|there|listed|on it]?", "[List|Name] the {ns}."),
        "who": ("Who is [shown|listed|in the chart|on it]?", "[List|Name|Which are] the {ns}."),
        "what": ("[Which|What] {ns} are [shown|there|listed|compared]?", "[List|Name] the {ns}."),
    },
    "more": {
        "time": (
            "[Was|Is] {a} [more|higher|better|larger] than {b}?",
            "[Was|Is] it more {at} than {at_b}?",
            "[Was|Is] it higher {at} than {at_b}?",
        ),
        "who": (
            "[Did|Does] {a} [have|get] more than {b}?",
            "Has {a} [got|] more than {b}?",
            "[Is|Was] {a} [ahead of|better than|above] {b}?",
        ),
        "what": (
            "[{is}|Was] {a} more than {b}?",
            "[Does|Did] {a} have more than {b}?",
        ),
    },
    "less": {
        "time": ("[Was|Is] {a} [less|lower|worse] than {b}?", "[Was|Is] it less {at} than {at_b}?"),
        "who": ("[Did|Does] {a} [have|get] [less|fewer] than {b}?", "[Is|Was] {a} [behind|below] {b}?"),
        "what": ("[{is}|Was] {a} less than {b}?", "[Does|Did] {a} have [less|fewer] than {b}?"),
    },
    "which more": {
        "time": (
            "[Which|What] {n} [is|was] [higher|better|more], {a} or {b}?",
            "[Was|Is] it more {at} or {at_b}?",
            "Was {a} or {b} [higher|better|more]?",
        ),
        "who": (
            "Who [has|had|got] more, {a} or {b}?",
            "Who is [ahead|better], {a} or {b}?",
            "Did {a} or {b} get more?",
        ),
        "what": (
            "[Which|What] [is|has|got] more, {a} or {b}?",
            "[Is|Was] {a} or {b} [higher|more]?",
        ),
    },
}  # fmt: skip
# The same in the words of a topic: amount, noun, most, least, do, did.
TOPICAL: dict[str, tuple[str, ...]] = {
    "largest": (
        "[Which|What] {n} [is|was] [the|] {most}?",
        "[What|Which] [is|was] the {most} {n}?",
        "[Which|What] {n} had the most {noun}?",
        "{most} {n}?",
        "Which {n} was {most}?",
    ),
    "smallest": (
        "[Which|What] {n} [is|was] [the|] {least}?",
        "[What|Which] [is|was] the {least} {n}?",
        "[Which|What] {n} had the [{fewest}|least] {noun}?",
        "{least} {n}?",
        "Which {n} was {least}?",
    ),
    "value": ("How {amount} {at}?", "How {amount} [{were} there|did we have|do you see] {at}?"),
    "more": ("{were} there more {noun} {at} than {at_b}?", "More {noun} {at} than {at_b}?"),
    "less": ("{were} there [{fewest_than}|less] {noun} {at} than {at_b}?",),
    "which more": ("{were} there more {noun} {at} or {at_b}?", "Which {n} had more {noun}, {a} or {b}?"),
}
TOPICAL_WHO: dict[str, tuple[str, ...]] = {
    "largest": ("Who {did} [the most|most] [{noun}|]?", "Which {n} {did} the most?", "Who {did} the most?"),
    "smallest": ("Who {did} the [{fewest}|least] [{noun}|]?", "Which {n} {did} the {fewest}?"),
    "value": (
        "How {amount} did {a} {do}?",
        "How [many|much] did {a} {do}?",
        "How {amount} for {a}?",
        "What did {a} {do}?",
    ),
    "more": ("Did {a} {do} more than {b}?", "Did {a} {do} more {noun} than {b}?"),
    "less": ("Did {a} {do} [less|fewer] than {b}?",),
    "which more": ("Who {did} more, {a} or {b}?", "Did {a} or {b} {do} more?"),
    "label of": ("Who {did} {a}?",),
}
TITLED = (
    "{title} {at}?",
    "What [{title_is}|{title_was}] the {title} {at}?",
    "How [much|high] [{title_is}|{title_was}] the {title} {at}?",
    "[Give me|Tell me|Show me] the {title} {at}.",
)
COUNTED = (*GOODS, "animal", "pet", "vehicle")  # how many of them
COUNTS = {
    "value": ("How many {a}?", "How many {a} are there?"),
    "more": ("[Are there|] more {a} than {b}?",),
    "less": ("Are there fewer {a} than {b}?",),
    "which more": ("[Are there|] more {a} or more {b}?",),
}
SAYS_AMOUNT = re.compile("{(noun|amount|were)}")
RISING = (
    "Is it [going|moving|heading] {0} or {1}?", "[Does|Did] it [go|move] {0} or {1}?",
    "[Is|Was] the [trend|line|curve|graph] [going|pointing|heading|moving] {0} or {1}?",
    "[Are|Were] the [values|numbers|figures] going {0} or {1}?", "[What's|What is] the trend, {0} or {1}?",
    "Does the [line|curve|graph] go {0} or {1}?", "{0} or {1}?", "Overall, is it going {0} or {1}?",
)  # fmt: skip
IS_RISING = (
    "[Is it|Is the line|Is the trend|Are the values|Are the numbers] [going {0}|{1}]?",
    "[Does it|Does the line|Does the curve] [go {0}|keep {1}]?",
    "[Is|Was] there [an upward|a downward] trend?",
)
WORDS = {"up": ("rising", "increasing", "growing"), "down": ("falling", "decreasing", "dropping")}
UNKNOWN = (
    "Why [is|was] {a} [so|] [high|low]?", "Why did it [go up|go down|change]?",
    "What will [happen next|come next|the next value be]?",
    "Who made this [chart|graph]?", "What was it [last year|before|the year before|ten years ago]?",
    "[Where|When] was this measured?", "Where [is|are] the [data|numbers] from?",
    "What [caused|explains] the [change|difference|result]?", "What will it be next [year|month|week]?",
    "Who [counted|collected|measured] [this|these|the numbers]?", "Is that good[ or bad|]?",
)  # fmt: skip
SPOKEN = 0.4  # how many labels are said otherwise than they are printed

_SHORT_DAYS, _LONG_DAYS = labels_of("day")
_LONG_MONTHS = (*labels_of("month")[1], "November", "December")
OTHERWISE: dict[str, tuple[str, ...]] = {
    **{short: (long,) for short, long in zip(_SHORT_DAYS, _LONG_DAYS, strict=True)},
    **{long: (short,) for short, long in zip(_SHORT_DAYS, _LONG_DAYS, strict=True)},
    **{long[:3]: (long,) for long in _LONG_MONTHS},
    **{long: (long[:3],) for long in _LONG_MONTHS},
    **{
        f"Q{at}": (f"the {word} quarter", f"quarter {at}")
        for at, word in enumerate(("first", "second", "third", "fourth"), 1)
    },
    "Autumn": ("fall",),
    "9 am": ("9", "nine"),
    "12 pm": ("noon",),
    "Math": ("maths", "mathematics"),
    "Bike": ("bicycle",),
    "Plane": ("airplane",),
    "Soccer": ("football",),
}


def spoken(rng: Random, label: str) -> str:
    """The label as people may say it."""
    others = OTHERWISE.get(label)
    return rng.choice(others) if others and rng.random() < SPOKEN else label


def worded(rng: Random, kind: str, chart: Chart, *labels: str) -> str | None:
    """A question of that kind in the words of the chart's subject, if it has one."""
    family = family_of(chart.labels[0])
    if not family or kind not in GENERIC:
        return None
    group = "time" if family in TIMES else "who" if family in PEOPLE else "what"
    place = TIMES.get(family) or ("in" if family in ("city", "country", "room") else "for")
    topic = topic_of(chart.title) if chart.title else None
    said = labels if kind == "label of" else tuple(spoken(rng, label) for label in labels)
    first, second = (*said, "", "")[:2]
    fields = {
        "n": family, "ns": plural(family), "a": first, "b": second, "at": f"{place} {first}",
        "at_b": f"{place} {second}", "title": chart.title.lower(), "label": first,
    }  # fmt: skip
    singular = not (first.endswith("s") and family in COUNTED)
    fields |= {"is": "is" if singular else "are", "does": "does" if singular else "do"}
    titles = chart.title.endswith("s")
    fields |= {"title_is": "are" if titles else "is", "title_was": "were" if titles else "was"}
    templates = GENERIC[kind][group]
    if family in COUNTED:
        templates += COUNTS.get(kind, ())
    if kind == "value" and chart.title and rng.random() < 0.25:
        templates = TITLED
    elif topic is not None and family in topic.families and rng.random() < 0.65:
        many = topic.amount.startswith("many")
        noun = topic.amount.partition(" ")[2] or chart.title.lower()
        fields |= {
            "amount": f"{'many' if many else 'much'} {noun}", "noun": noun, "most": rng.choice(topic.most),
            "least": rng.choice(topic.least), "do": topic.does[0], "did": topic.does[1],
            "were": "were" if many else "was", "fewest": "fewest" if many else "least",
            "fewest_than": "fewer" if many else "less",
        }  # fmt: skip
        found = (TOPICAL_WHO if group == "who" else TOPICAL).get(kind, templates)
        if not topic.amount:
            found = tuple(one for one in found if not SAYS_AMOUNT.search(one)) or templates
        if kind == "value" and topic.value and rng.random() < 0.5:
            found = topic.value
        templates = found
    question = tidy(chosen(rng, rng.choice(templates).format_map(fields)))
    return introduced(rng, casual(rng, question))


def missing(rng: Random, chart: Chart) -> str | None:
    """A label of the same sort that the chart does not show, and no other word for one that it does."""
    family = family_of(chart.labels[0])
    shown = {*chart.labels, *(word for label in chart.labels for word in OTHERWISE.get(label, ()))}
    labels = [label for labels in labels_of(family) for label in labels] if family else []
    stems = {label.rstrip("s") for label in shown}  # Apple is Apples
    others = [label for label in labels if label.rstrip("s") not in stems]
    return rng.choice(others) if others else None


def direction(rng: Random, chart: Chart) -> tuple[str, str] | None:
    """Whether a line goes up or down, where nobody doubts it."""
    values = chart.values
    if chart.kind != "line" or abs(values[-1] - values[0]) < 0.3 * max(values):
        return None
    steps = [after - before for before, after in pairwise(values)]
    if all(step >= 0 for step in steps):
        way = "up"
    elif all(step <= 0 for step in steps):
        way = "down"
    else:
        return None
    if rng.random() < 0.65:
        pair = ("up", "down") if rng.random() < 0.75 else ("down", "up")
        question = chosen(rng, rng.choice(RISING).format(*pair))
        answer = way
    else:
        asked = rng.choice(("up", "down"))
        question = chosen(rng, rng.choice(IS_RISING).format(asked, rng.choice(WORDS[asked])))
        if "ward trend" in question:
            asked = "up" if "upward" in question else "down"
        answer = "yes" if asked == way else "no"
    return introduced(rng, casual(rng, tidy(question))), answer
