"""A question about a scene and its true answer, and the words that answers share. No torch."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kestrel_tools.scenes.world import Box, Boxed, middle_of
from kestrel_tools.things.names import NUMBERS, is_plural, plural, with_article
from kestrel_tools.things.scene import Item, Scene

CANNOT_TELL = "I can't tell."
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth")


class Region(NamedTuple):
    """A part of the picture that is no item of the scene, such as a bar of a chart."""

    box: Box

    @property
    def centre(self) -> tuple[float, float]:
        return middle_of(self.box)

    @property
    def point(self) -> tuple[float, float]:
        return self.centre


class Fact(NamedTuple):
    """`sentence` is the answer where a full one is asked for; `evidence` is what shows it, with its name."""

    kind: str
    question: str
    answer: str
    sentence: str = ""
    evidence: tuple[tuple[str, tuple[Boxed, ...]], ...] = ()


def yes_no(true: bool) -> str:
    return "yes" if true else "no"


def place(thing: Boxed) -> str:
    """One of nine places of the picture."""
    x, y = thing.centre
    row = "top" if y < 1 / 3 else "bottom" if y > 2 / 3 else ""
    column = "left" if x < 1 / 3 else "right" if x > 2 / 3 else ""
    return " ".join(filter(None, (row, column))) or "center"


def between_places(thing: Boxed) -> bool:
    """Whether it lies too near to a border of two places to say."""
    return any(abs(at - third) < 0.05 for at in thing.centre for third in (1 / 3, 2 / 3))


def names_of(items: Iterable[Item]) -> str:
    """Each by itself, from left to right, or one name for all: where each name was said once, and some things
    are there several times, a model this small left others out.
    """
    names = [item.name for item in items]
    return ", ".join(names if len({*names}) > 1 else names[:1])


def joined(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def told(items: Sequence[Item]) -> list[str]:
    """Each by itself with its article; with a number where all are one thing: "two dogs". Shapes are told one
    by one, as in the small world.
    """
    if len(items) > 1 and len({item.name for item in items}) == 1 and not items[0].is_shape:
        return [f"{NUMBERS[len(items)]} {plural(items[0].name)}"]
    return [with_article(item.name) for item in items]


def sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def is_are(words: str) -> str:
    return "are" if is_plural(words) else "is"


def none_of(words: str) -> str:
    """ "There is no dog.", "There are no grapes."."""
    return f"There {is_are(words)} no {words}."


def texts_of(scene: Scene) -> str:
    """All that is printed, from top to bottom."""
    return ", ".join(line.text for line in scene.lines)


def caption(scene: Scene, length: str) -> str:
    """Short names what is there in its order, normal adds sizes that are clear, long adds places."""
    if scene.chart is not None:
        return chart_caption(scene, length)
    printed = [f"the text {line.text}" for line in scene.lines]
    said = f" The text says {texts_of(scene)}." if printed else ""
    if not scene.items:
        nothing = CANNOT_TELL if scene.marks else "An empty picture."
        return f"Only {joined(printed)}." if printed else nothing
    if length == "short":
        return sentence(joined([*told(scene.items), *printed]))
    sizes = [with_article(f"{item.size} {item.name}".strip()) for item in scene.items]
    if length == "normal":
        return sentence((f"{order_of(scene)}: " if len(sizes) > 1 else "") + joined(sizes)) + said
    one, many = ("shape", "shapes") if all(item.is_shape for item in scene.items) else ("thing", "things")
    opening = f"There is 1 {one}." if len(sizes) == 1 else f"There are {len(sizes)} {many}."
    placed = [sentence(f"{name} at the {place(item)}") for name, item in zip(sizes, scene.items, strict=True)]
    return " ".join((opening, *placed)) + said


def order_of(scene: Scene) -> str:
    """How the things of a scene are told."""
    rows = scene.cards.rows if scene.cards is not None and scene.row_by_row else ((),)
    if len(rows) == 1:
        return "from left to right"
    return "row by row" if max(map(len, rows)) > 1 else "from top to bottom"


def chart_caption(scene: Scene, length: str) -> str:
    chart = scene.chart
    assert chart is not None
    title = f" titled {chart.title}" if chart.title else ""
    if length == "short":
        return f"A {chart.kind} chart{title}."
    pairs = [f"{label} {value}" for label, value in zip(chart.labels, chart.values, strict=True)]
    told = f"A {chart.kind} chart{title}: {joined(pairs)}."
    if length == "normal":
        return told
    ordered = sorted(zip(chart.values, chart.labels, strict=True))
    return f"{told} The largest is {ordered[-1][1]}, the smallest is {ordered[0][1]}."
