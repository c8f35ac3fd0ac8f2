"""A chart as one who asks about it sees it: what can be told for sure, and in which words. No torch."""

from collections.abc import Sequence
from functools import cache, cached_property, lru_cache
from random import Random
from typing import NamedTuple

from kestrel_tools.things.charts.subjects import PLACED, TIMES, any_topic_of, family_of_all, in_order
from kestrel_tools.things.charts.topics import GOODS, NOT_GOODS, NOUNS, PEOPLE, VERBS, Topic, spoken, unit_in
from kestrel_tools.things.language.fact import Region
from kestrel_tools.things.names import plural
from kestrel_tools.things.scene import Scene

from .words import OTHERWISE

APART = 0.06  # of the largest value, by which two differ when nobody doubts it
SPOKEN, SMALL, SHOUTED = 0.4, 0.45, 0.5  # how many labels are said otherwise, in small letters, as printed
QUOTED = 0.08
COUNTED = ("animal", "toy", "flower", *GOODS)  # of which there may be many
CREATURES = ("pet", "vehicle", "instrument")  # said with "the"
COMMON = (*COUNTED, *CREATURES, "sport", "hobby", "subject", "genre", "color", "dessert", "tree", "room")
MANY = ("mice", "fish", "sheep")
MORE = {"most": "more", "least": "less", "best": "better"}
OTHER_COMPARATIVES = {"best": "better", "worst": "worse", "favorite": "", "least snowy": "less snowy"}
VERBS_OF_THINGS = ("get", "have", "sell", "win", "score", "make", "raise", "earn", "take")
OF_PEOPLE = ("class", "school", "country", "department")
COSTLY = ("spend", "pay", "use", "need", "wait")  # nobody has what was spent
VOTES = ("votes", "likes")
VISITS = ("visitors", "guests", "customers")


class View:
    """One scene with a chart. Values that are not printed can be told only where the axis has a number."""

    def __init__(self, scene: Scene) -> None:
        assert scene.chart is not None
        self.scene, self.chart = scene, scene.chart
        self.labels, self.values = scene.chart.labels, scene.chart.values
        self.title, self.is_line = scene.chart.title, scene.chart.kind == "line"
        others = [line.text for line in scene.lines]
        for text in (*self.labels, self.title) if self.title else self.labels:
            others.remove(text)
        numbers = sorted(int(text) for text in others if text.isdigit())
        self.has_axis = numbers[:1] == [0]  # a value is never zero
        steps = [*range(0, numbers[-1] + 1, numbers[1])] if len(numbers) > 1 and numbers[1] else []
        beside = None if self.has_axis and numbers == steps else _without(numbers, self.values)
        self.printed = beside is not None  # an axis alone goes up in equal steps
        self.ticks: list[int] = [] if not self.has_axis else numbers if beside is None else beside
        self._words = [text for text in others if not text.isdigit()]

    @cached_property
    def subtitle(self) -> str:
        """What is printed below the title."""
        if not self._words:
            return ""
        top = min(box[1] for box in self.chart.boxes)
        lines = [line for line in self.scene.lines if line.text in self._words]
        return next((line.text for line in lines if line.centre[1] < top), "")

    @cached_property
    def axis_name(self) -> str:
        if not self._words:
            return ""
        bottom = max(box[3] for box in self.chart.boxes)
        lines = [line for line in self.scene.lines if line.text in self._words]
        return next((line.text for line in lines if line.centre[1] > bottom), "")

    @cached_property
    def is_flat(self) -> bool:
        """Whether the bars lie, one below the other."""
        first, second = self.chart.boxes[:2]
        return not self.is_line and first[0] == second[0] and first[1] != second[1]

    @cached_property
    def order(self) -> list[int]:
        """From the largest."""
        return sorted(range(len(self.values)), key=lambda at: -self.values[at])

    @cached_property
    def subject(self) -> "Subject":
        return subject_of(self.title, self.labels)

    @cached_property
    def runs(self) -> bool:
        """Whether it goes from one to the next, so that it may rise and fall."""
        if self.subject.group == "time":
            return in_order(self.labels)
        return self.is_line and self.subject.group != "who"

    @cached_property
    def unit(self) -> str:
        return unit_in(self.title) or unit_in(self.subtitle)

    def readable(self, at: int) -> bool:
        """Whether everybody reads the same value."""
        if self.printed:
            return True
        return len(self.ticks) > 1 and self.values[at] % (self.ticks[1] / 2) == 0

    def clear(self, one: int, other: int) -> bool:
        gap = abs(self.values[one] - self.values[other])
        return gap > 0 if self.printed else gap >= APART * max(self.values)

    def clear_of(self, at: int, number: float) -> bool:
        gap = abs(self.values[at] - number)
        return gap > 0 if self.printed else gap >= APART * max(self.values)

    def all_clear(self) -> bool:
        return all(self.clear(one, other) for one, other in zip(self.order, self.order[1:], strict=False))

    def shown(self, *indices: int) -> tuple[tuple[str, tuple[Region, ...]], ...]:
        return tuple((self.labels[at], (Region(self.chart.boxes[at]),)) for at in indices)

    def listed(self, indices: Sequence[int]) -> str:
        return ", ".join(self.labels[at] for at in indices) or "none"


def _without(numbers: Sequence[int], values: Sequence[int]) -> list[int] | None:
    """The others; None where not all of the values are among them."""
    rest = list(numbers)
    for value in values:
        if value not in rest:
            return None
        rest.remove(value)
    return rest


class Subject(NamedTuple):
    """What the labels are, and what is told of them; of a chart of any words nothing is known."""

    family: str  # "month"
    group: str  # "time", "who", "what", or "none"
    topic: Topic | None
    noun: str  # "points"
    does: tuple[str, str]  # "score", "scored"

    @property
    def many(self) -> bool:
        return self.topic is None or not self.topic.amount.startswith("much")

    @property
    def wins(self) -> bool:
        """Whether whoever has most has won."""
        return self.topic is not None and self.topic.wins and self.group in ("who", "what")


@lru_cache(4096)
def subject_of(title: str, labels: tuple[str, ...]) -> Subject:
    family = family_of_all(labels)
    family = "" if family == "number" else family  # nobody says which number has a number
    group = "time" if family in TIMES else "who" if family in PEOPLE else "what" if family else "none"
    found = any_topic_of(title) if title else None
    if found is None or family not in found[1].families or (found[0] in NOT_GOODS and family in GOODS):
        return Subject(family, group, None, "", ("have", "had"))
    name, topic = found
    noun = NOUNS.get(name, topic.amount.partition(" ")[2])
    if name not in NOUNS and topic.amount in ("many", "much"):
        noun = name.lower()
    does = VERBS.get(name, topic.does)
    if noun in VOTES and group == "time":  # a favorite season
        group = "what"
    if group == "what" and family not in OF_PEOPLE and does[0] not in VERBS_OF_THINGS:
        noun = "" if does[0] in COSTLY else noun
        does = ("have", "had")
    return Subject(family, group, topic, "" if topic.measured else noun, does)


@cache
def plural_of(family: str) -> str:
    return plural(family)


def said(rng: Random, subject: Subject, label: str) -> str:
    """The label as people may say it: "the Lions", "september"."""
    family = subject.family
    if label.isupper() and len(label) > 2 and rng.random() > SHOUTED:
        label = label.title() if label.title() in OTHERWISE else label.capitalize()
    if subject.group == "none":
        return f"number {label}" if label.isdigit() else f'"{label}"' if rng.random() < QUOTED else label
    if family == "answer" and rng.random() < 0.7:
        return f'"{label}"'
    others = OTHERWISE.get(label)
    if others and rng.random() < SPOKEN:
        label = rng.choice(others)
        label = f"{label} o'clock" if label.isdigit() else label
    if family == "team" and (label.endswith("s") or label.endswith(" team")):
        return f"the {label}" if rng.random() < 0.7 else label
    if family in ("week", "decade") and label[:1].isdigit():
        return f"the {label}"
    if family in ("day", "month") and rng.random() < 0.15:
        return label.lower()
    if family in CREATURES and not label.endswith("s") and rng.random() < 0.6:
        return f"the {label.lower()}"
    return label.lower() if family in COMMON and rng.random() < SMALL else label


def place_of(subject: Subject) -> str:
    place = TIMES.get(subject.family) if subject.group == "time" else PLACED.get(subject.family)
    return place or "for"


def is_many(subject: Subject, label: str) -> bool:
    """Whether it takes "are": apples, the Lions."""
    plurals = subject.family in (*COUNTED, "team")
    small = label.lower()
    return plurals and (small.endswith("s") or small in MANY)


def comparative(superlative: str) -> str:
    """ "wetter" of "wettest", "more popular" of "most popular"; empty where there is none."""
    if superlative in OTHER_COMPARATIVES:
        return OTHER_COMPARATIVES[superlative]
    first, _, rest = superlative.partition(" ")
    if rest:
        return f"{MORE[first]} {rest}"
    return f"{superlative[:-2]}r"


@lru_cache(20_000)
def _conditions(
    family: str, group: str, noun: str, does: str, wins: bool, title: str, *of_view: bool
) -> dict[str, str]:
    """What a template may ask for without saying it, as fields that are empty."""
    is_line, is_flat, printed, runs, subtitled, named, few, many = of_view
    true = {
        "bar": not is_line, "line": is_line, "flat": is_flat, "upright": not is_flat and not is_line,
        "runs": runs, "printed": printed, "wins": wins, "none": group == "none", "votes": noun in VOTES,
        "person": family == "person", "sold": does == "sell", "untitled": not title, "many": many, "few": few,
        "counted": family in COUNTED, "bare": bool(title) and not subtitled, "unnamed": not named,
        "s": title in MANY_TITLES, "one": title in ONE_TITLES, "ageless": not title.startswith("age"),
        "visitors": noun in VISITS, "rain": noun == "rain", "price": title in ("price", "prices"),
    }  # fmt: skip
    return {f"if_{name}": "" for name, holds in true.items() if holds}


def fields_of(rng: Random, view: View, *labels: str) -> dict[str, str]:
    """What may stand in a template; one that needs more than these is not used."""
    subject, title = view.subject, view.title.lower()
    bar = "point" if view.is_line else "column" if not view.is_flat and rng.random() < 0.3 else "bar"
    many = bool(labels) and is_many(subject, labels[0])
    fields = {"bar": bar, "bars": f"{bar}s", "chart": rng.choice(CHART_WORDS)}
    fields |= _conditions(
        subject.family, subject.group, subject.noun, subject.does[0], subject.wins, title,
        view.is_line, view.is_flat, view.printed, view.runs, bool(view.subtitle), bool(view.axis_name),
        len(view.labels) == 3, many,
    )  # fmt: skip
    for name, label in zip("ab", labels, strict=False):
        words = said(rng, subject, label)
        fields |= {name: words, f"at_{name}": f"{place_of(subject)} {words}"}
        if not words.startswith(("the ", '"')):
            fields[f"{name}_bar"] = f"the {words} {bar}"
    if labels:
        fields |= MANY_VERBS if many else ONE_VERBS
        fields["at"] = fields["at_a"]
    if view.is_line:
        fields["line"] = rng.choice(("line", "curve"))
    if subject.group == "time":
        on = TIMES[subject.family]
        fields |= {"On": on.capitalize(), "on": on} | ({"On_many": on.capitalize()} if on != "at" else {})
    fields["Who"] = which = _which(rng, subject, bar)
    fields["who"] = which[0].lower() + which[1:]
    if subject.family:
        fields |= {"n": subject.family, "ns": plural_of(subject.family)}
    if subject.topic is not None:
        fields["title"] = spoken(title)
        fields |= _adjectives(rng, subject.topic, subject.group)
        if subject.topic.measured:
            return fields | {"if_measured": ""}
        fields |= {"do": subject.does[0], "did": subject.does[1]}
    return fields | _amounts(rng, subject)


def _which(rng: Random, subject: Subject, bar: str) -> str:
    if not subject.family:
        return rng.choice(("Which one", "Which one", "Which label", "Which category", "What", f"Which {bar}"))
    if subject.group == "who" and rng.random() < 0.67:
        return "Who"
    chance = rng.random()
    if chance < 0.2 and subject.group != "who":
        return f"Which of the {plural_of(subject.family)}"
    return f"{'Which' if chance < 0.75 else 'What'} {subject.family}"


def _adjectives(rng: Random, topic: Topic, group: str) -> dict[str, str]:
    """The wettest and the driest, and wetter and drier."""
    both = [
        [word for word in words if group == "time" or word not in ("strongest", "weakest")]
        for words in (topic.most, topic.least)
    ]
    if not all(both):
        return {}
    most, least = map(rng.choice, both)
    more, less = comparative(most), comparative(least)
    return {"most": most, "least": least} | ({"more_adj": more, "less_adj": less} if more and less else {})


def _amounts(rng: Random, subject: Subject) -> dict[str, str]:
    """More points, the most points, how many points; without a noun where none is known."""
    many = subject.many if subject.topic is not None else rng.random() < 0.5
    much, fewer, fewest = ("many", "fewer", "fewest") if many else ("much", "less", "least")
    noun = f" {subject.noun}" if subject.noun else ""
    get, got = ("have", "had") if subject.group == "time" or subject.topic is None else subject.does
    now = got == "had" and rng.random() < 0.6
    fields = {
        "x_more": f"more{noun}", "x_fewer": f"{fewer}{noun}", "x_most": f"the most{noun}", "much": much,
        "x_least": f"the {fewest}{noun}", "how_x": f"how {much}{noun}", "How_x": f"How {much}{noun}",
        "How_more": f"How {much} more{noun}", "How_fewer": f"How {much} {fewer}{noun}",
        "get": get, "got": "has" if now else got, "got_many": "have" if now else got,
    }  # fmt: skip
    if noun:
        fields |= {"noun": subject.noun} | ({"nouns": subject.noun} if many else {})
    return fields


ONE_VERBS = {"does": "does", "is": "is", "has_a": "has", "was": "was"}
MANY_VERBS = {"does": "do", "is": "are", "has_a": "have", "was": "were"}
MANY_TITLES = ("sales", "costs", "savings", "prices", "temperatures", "earnings", "donations", "tips")
ONE_TITLES = (
    "rain", "rainfall", "snow", "temperature", "profit", "income", "attendance", "spending", "price",
    "weight", "speed", "top speed", "wind speed", "height", "age", "revenue", "population", "class size",
    "waiting time", "travel time", "score",
)  # fmt: skip
CHART_WORDS = ("chart", "chart", "graph", "graph", "diagram", "plot", "picture", "image")
