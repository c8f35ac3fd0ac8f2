"""What may be asked about a chart, and the true answers. No torch, no model."""

import re
from collections.abc import Mapping
from random import Random

from kestrel_tools.things.language.fact import CANNOT_TELL, Fact, Region, chart_caption
from kestrel_tools.things.language.questions import COLOUR
from kestrel_tools.things.language.spelling import casual, chosen, introduced, tidy
from kestrel_tools.things.scene import Chart, Scene

from . import more as chart_more
from . import printed as chart_print
from . import ways as chart_ways
from .view import View
from .words import UNKNOWN, direction, missing, worded

# The tokenizer is made with these; more follow.
FIRST_QUESTIONS: dict[str, tuple[str, ...]] = {
    "largest": (
        "Which [label|category|one|bar] [is|has] the [largest|highest|biggest|greatest]{}?",
        "[What|Which] [is|has] the [highest|largest|biggest|top] [value|one|bar|number]?",
        "[Which|What] [label|category] has the [highest|largest|maximum] value?",
        "[What's|What is] the [largest|highest|biggest|top] [category|label|bar|one]?",
        "Which is [highest|the highest|the largest|the biggest|the maximum]?",
        "Where is the [maximum|peak]?",
        "Which [bar|label|one] is [the tallest|the longest|the highest]?",
        "Who or what is on top?",
    ),
    "smallest": (
        "Which [label|category|one|bar] [is|has] the [smallest|lowest|least]{}?",
        "[What|Which] [is|has] the [lowest|smallest|least] [value|one|bar|number]?",
        "[Which|What] [label|category] has the [lowest|smallest|minimum] value?",
        "[What's|What is] the [smallest|lowest] [category|label|bar|one]?",
        "Which is [lowest|the lowest|the smallest|the minimum]?",
        "Where is the minimum?",
        "Which [bar|label|one] is [the shortest|the lowest|the smallest]?",
    ),
    "value": (
        "[What's|What is] the [value|number|amount|result] [of|for|at] {}?",
        "What value does {} have?",
        "How [much|many] [is|for|in] {}?",
        "[What|Which] value [is shown|do you see] for {}?",
        "[What's|What is] {}?",
        "How high is {}?",
        "Read the value [of|for] {}.",
        "What does {} show?",
    ),
    "largest value": (
        "[What's|What is] the [largest|highest|maximum|biggest] value?",
        "How high is the [tallest|highest|largest] [bar|value|one]?",
        "What is the maximum?",
    ),
    "smallest value": (
        "[What's|What is] the [smallest|lowest|minimum] value?",
        "How high is the [shortest|lowest|smallest] [bar|value|one]?",
        "What is the minimum?",
    ),
    "label of": ("[Which|What] [label|category|one|bar] has the value {}?", "[Which|What] is {}?"),
    "number of": (
        "How many [bars|categories|labels|values] [are there|are shown|do you see|does the chart have]?",
        "Count the [bars|categories|labels|values].",
        "[What's|What is] the number of [bars|categories|values]?",
    ),
    "title": (
        "[What's|What is] the [title|heading|headline] [of the chart|of this chart|of the graph|]?",
        "[What's|What is] [this|the] [chart|graph|diagram] [about|called]?",
        "What does the [title|heading] say?",
        "Read the title.",
    ),
    "kind": (
        "[What|Which] [kind|type|sort] of [chart|graph|diagram|plot] is [this|it|that]?",
        "Is this a bar chart or a line chart?",
        "[What's|What is] this?",
        "Is it a line chart or a bar chart?",
    ),
    "labels": (
        "[What|Which] [labels|categories] [are there|do you see|are shown]?",
        "[List|Name|Read] [all|] the [labels|categories].",
        "What are the [labels|categories]?",
    ),
    "describe": (
        "[Describe|Please describe|Summarize|Explain] [the|this] [chart|graph|picture|image|diagram].",
        "What does [the|this] [chart|graph|picture] show?",
        "[What's|What is] in [the|this] [picture|image]?",
        "What do you see?",
    ),
    "more": (
        "Is {} [larger|higher|bigger|greater|more] than {}?",
        "Does {} have [more|a higher value] than {}?",
        "Is the value [of|for] {} [higher|larger|greater] than [that of|] {}?",
    ),
    "less": ("Is {} [smaller|lower|less] than {}?", "Does {} have [less|a lower value] than {}?"),
    "which more": (
        "[Which|What] is [larger|higher|bigger|greater|more], {} or {}?",
        "Which has [more|the higher value]: {} or {}?",
    ),
    "has": (
        "Is there [a label|a bar for|a value for|] {}?",
        "Does the chart [show|have|include] {}?",
        "Do you see {}?",
    ),
    "trend": ("Is {} [before|left of|to the left of] {}?", "Does {} come before {}?"),
    "is chart": ("Is this a [chart|graph|diagram]?", "Do you see a [chart|graph]?", "Is there a chart?"),
}  # fmt: skip

QUESTIONS = FIRST_QUESTIONS | {
    "is kind": (
        "Is [this|it] a {} [chart|graph|diagram|plot]?",
        "Would you call [this|it] a {} [chart|graph]?",
        "Do you see a {} [chart|graph]?",
    ),
    "colour of": (
        f"[What|Which] {COLOUR} [is|has] the bar [of|for] {{}}?",
        f"[What's|What is] the {COLOUR} of [the bar for|] {{}}?",
        f"In [which|what] {COLOUR} is {{}} [drawn|shown]?",
        f"[What|Which] {COLOUR} is {{}}?",
    ),
    "coloured": (
        "[Which|What] [bar|label|one|category] is {}?",
        "[What|Which] [label|category] does the {} bar [have|stand for|show]?",
        "[What's|What is] the {} bar?",
        "What is [drawn|shown] in {}?",
        "Whose bar is {}?",
    ),
    "one colour": (
        f"[What|Which] {COLOUR} [are the bars|is the line|is it drawn in]?",
        f"[What's|What is] the {COLOUR} of the [bars|line|chart]?",
        f"In [which|what] {COLOUR} is [the chart|it] [drawn|shown]?",
    ),
}

OTHER_LABELS = ("Zed", "Mars", "2035", "Foo", "Total", "Other", "Kilo", "Bern", "Xmas", "Gold")
OTHER_KINDS = {"bar": ("line", "line", "pie"), "line": ("bar", "bar", "pie")}
WEIGHTS = {
    "largest": 3.0, "smallest": 3.0, "value": 9.0, "largest value": 1.2, "smallest value": 1.2,
    "label of": 1.0, "number of": 1.0, "title": 1.2, "kind": 0.8, "labels": 0.8, "describe": 0.8,
    "more": 2.2, "less": 1.0, "which more": 1.2, "has": 0.8, "trend": 0.4, "is chart": 0.4,
    "is kind": 0.9, "coloured": 1.6, "direction": 1.4, "missing": 0.7, "unknown": 0.25,
}  # fmt: skip

# Not scored. A training adds them to the shares of the others.
MORE_WEIGHTS = {
    "extreme": 3.0, "is extreme": 1.0, "extreme value": 1.2, "place": 1.8, "place of": 0.5, "ranking": 0.8,
    "compared": 3.0, "than one": 0.7, "difference": 1.6, "sum": 1.2, "twice": 0.6, "over": 1.6,
    "is over": 1.0, "step": 2.2, "steepest": 0.5, "equal": 0.9, "closest": 0.3, "value at length": 3.0,
    "who has": 0.9, "title at length": 1.4, "about": 0.5, "unit": 0.5, "axis": 0.7, "labels at length": 0.7,
    "number at length": 0.8, "family": 0.3, "shows": 1.2, "missing at length": 1.2, "nth": 1.5,
    "colours": 1.0, "looks": 0.4, "everything": 0.6, "neighbour": 0.6, "untold": 1.0,
    "way": 4.0, "course": 2.0, "by looks": 1.6, "tones": 0.7, "spot": 0.9, "beside": 0.7,
    "missing of two": 0.8,
}  # fmt: skip
MAKERS = chart_more.MAKERS | chart_print.MAKERS | chart_ways.MAKERS
TRIES = 16

# The number is the answer to these, not the label.
ASKS_VALUE = re.compile(r"(What|Which) is the \w+ (value|number)\?")


def asked(rng: Random, kind: str, *subjects: str) -> str:
    question = _chosen(rng, kind, *subjects)
    while kind in ("largest", "smallest") and ASKS_VALUE.fullmatch(question):
        question = _chosen(rng, kind, *subjects)
    return introduced(rng, casual(rng, question))


def _chosen(rng: Random, kind: str, *subjects: str) -> str:
    return tidy(chosen(rng, rng.choice(QUESTIONS[kind]).format(*(subjects or ("",)))))


def chart_fact(rng: Random, scene: Scene, weights: Mapping[str, float] = WEIGHTS) -> Fact:
    """One thing that is true of the chart, of a random kind."""
    kinds, shares = tuple(weights), tuple(weights.values())
    for _ in range(TRIES):
        [kind] = rng.choices(kinds, shares)
        if kind not in MAKERS:
            return fact_of(rng, kind, scene)
        if (found := more_of(rng, kind, scene)) is not None:
            return found
    return fact_of(rng, "largest", scene)


def more_of(rng: Random, kind: str, scene: Scene) -> Fact | None:
    """One of the kinds of `MORE_WEIGHTS`; None where the chart does not allow it."""
    view = View(scene)
    if len({label.lower() for label in view.labels}) < len(view.labels):
        return None
    return MAKERS[kind](rng, view)


def asked_of(rng: Random, chart: Chart, kind: str, *subjects: str) -> str:
    """The same, often in the words of the chart's subject."""
    found = worded(rng, kind, chart, *subjects) if rng.random() < 0.6 else None
    return found or asked(rng, kind, *subjects)


def fact_of(rng: Random, kind: str, scene: Scene) -> Fact:
    chart = scene.chart
    assert chart is not None
    at = rng.randrange(len(chart.labels))
    other = rng.choice([index for index in range(len(chart.labels)) if index != at])
    label, value, rival = chart.labels[at], chart.values[at], chart.labels[other]
    higher = value > chart.values[other]
    extreme = max if kind.startswith("largest") else min
    best = chart.values.index(extreme(chart.values))
    name = f"chart {kind}"
    match kind:
        case "largest" | "smallest":
            fact = Fact(name, asked_of(rng, chart, kind), chart.labels[best], evidence=_shown(chart, best))
            return fact._replace(sentence=f"{chart.labels[best]} has the {kind} value.")
        case "largest value" | "smallest value":
            shown = _shown(chart, best)
            return Fact("chart value", asked(rng, kind), str(chart.values[best]), evidence=shown)
        case "value":
            sentence = f"The value of {label} is {value}."
            return Fact(name, asked_of(rng, chart, kind, label), str(value), sentence, _shown(chart, at))
        case "label of" if chart.values.count(value) == 1:
            return Fact(name, asked_of(rng, chart, kind, str(value)), label, evidence=_shown(chart, at))
        case "is kind":
            other_kind = rng.choice(OTHER_KINDS[chart.kind])
            yes = rng.random() < 0.5
            question = asked(rng, kind, chart.kind if yes else other_kind)
            return Fact("chart kind", question, "yes" if yes else "no")
        case "coloured" if chart.colours:
            return _coloured(rng, chart, at)
        case "number of":
            return Fact(name, asked_of(rng, chart, kind), str(len(chart.labels)))
        case "title":
            return Fact(name, asked(rng, kind), chart.title or "It has no title.")
        case "labels":
            return Fact(name, asked_of(rng, chart, kind), ", ".join(chart.labels))
        case "describe":
            return Fact(name, asked(rng, kind), chart_caption(scene, "normal"))
        case "more" | "less" if value != chart.values[other]:
            answer = "yes" if higher == (kind == "more") else "no"
            return Fact(
                "chart compare",
                asked_of(rng, chart, kind, label, rival),
                answer,
                evidence=_shown(chart, at, other),
            )
        case "which more" if value != chart.values[other]:
            question = asked_of(rng, chart, kind, label, rival)
            return Fact(
                "chart compare", question, label if higher else rival, evidence=_shown(chart, at, other)
            )
        case "has":
            if rng.random() < 0.5:
                label = rng.choice([word for word in OTHER_LABELS if word not in chart.labels])
            return Fact(name, asked(rng, kind, label), "yes" if label in chart.labels else "no")
        case "direction" if (found := direction(rng, chart)) is not None:
            return Fact(name, *found)
        case "missing" if (absent := missing(rng, chart)) is not None:
            return Fact(name, asked_of(rng, chart, "value", absent), CANNOT_TELL)
        case "unknown":
            question = chosen(rng, rng.choice(UNKNOWN).format(a=label))
            if "measured?" in question and View(scene).subtitle:  # which may tell it
                return fact_of(rng, "value", scene)
            return Fact("cannot tell", casual(rng, question), CANNOT_TELL)
        case "is chart":
            return Fact(name, asked(rng, kind), "yes")
        case "trend" if (
            len(set(chart.labels)) == len(chart.labels) and chart.boxes[at][0] != chart.boxes[other][0]
        ):
            return Fact(name, asked(rng, kind, label, rival), "yes" if at < other else "no")
    if kind in ("direction", "missing", "coloured"):  # most charts rise and fall
        return fact_of(rng, "value", scene)
    return Fact("chart kind", asked(rng, "kind"), f"a {chart.kind} chart")


def _coloured(rng: Random, chart: Chart, at: int) -> Fact:
    """The colour of a bar, the bar of a colour, or the colour that all of it has."""
    label = chart.labels[at]
    if len(chart.colours) == 1:
        question, answer = asked(rng, "one colour"), chart.colours[0]
    elif rng.random() < 0.5 or chart.colours.count(chart.colours[at]) > 1:
        question, answer = asked(rng, "colour of", label), chart.colours[at]
    else:
        question, answer = asked(rng, "coloured", chart.colours[at]), label
    return Fact("chart colour", question, answer, evidence=_shown(chart, at))


def _shown(chart: Chart, *indices: int) -> tuple[tuple[str, tuple[Region, ...]], ...]:
    return tuple((chart.labels[index], (Region(chart.boxes[index]),)) for index in indices)
