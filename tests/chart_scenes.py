"""Charts to ask about: those that a test names, and random ones of every subject, without a font."""

from functools import cache
from random import Random

from kestrel_tools.things.charts.looks import draw_numbers
from kestrel_tools.things.charts.subjects import draw_subject, draw_wider_subject, family_of_all
from kestrel_tools.things.scene import Chart, Line, Scene
from tests.thing_scenes import WHITE

# Labels that are words of questions too, and words that are none.
COMMON = ("", "letter", "number", "size", "answer", "class", "direction")
NONSENSE = ("Zorv", "Quixt", "Blenk", "Wump", "Traddle", "Oggin", "Frell")


def line(text: str, x: float, y: float) -> Line:
    return Line(text, 0, x, y, 0.05, 0.0, (0, 0, 0), (x - 0.02, y - 0.02, x + 0.02, y + 0.02))


def chart(kind: str, title: str, flat: bool = False, printed: bool = True, **values: int) -> Scene:
    """Its values printed, or an axis in steps of ten."""
    labels, numbers, most = tuple(values), tuple(values.values()), max(values.values())
    wide = 0.8 / len(labels)
    boxes, lines = [], [line(title, 0.5, 0.05)] if title else []
    for at, (label, value) in enumerate(values.items()):
        start, long = 0.15 + at * wide, 0.6 * value / most
        boxes.append(
            (0.2, start, 0.2 + long, start + 0.03) if flat else (start, 0.8 - long, start + 0.03, 0.8)
        )
        lines += [line(label, start, 0.9), *([line(str(value), start, 0.8 - long)] if printed else [])]
    if not printed:
        lines += [line(str(tick), 0.05, 0.5) for tick in range(0, most + 10, 10)]
    return Scene(
        1.0, WHITE, (), tuple(lines), (), Chart(kind, title, labels, numbers, tuple(boxes), ("red",))
    )


@cache
def scenes() -> tuple[Scene, ...]:
    """Half of them of the subjects of the scored charts."""
    rng = Random(5)
    found: list[Scene] = []
    while len(found) < 250:
        if rng.random() < 0.5:
            title, labels = draw_subject(rng, 0.0)
        else:
            title, labels, *_ = draw_wider_subject(rng, 0.0)
        if rng.random() < 0.15 or family_of_all(labels) in COMMON:
            title, labels = rng.choice(("", "Fuzzles")), NONSENSE
        count = rng.randint(2, min(7, len(labels)))
        start, printed = rng.randrange(len(labels) - count + 1), rng.random() < 0.7
        numbers = draw_numbers(rng, count, printed, 900)[0]
        values = dict(zip(labels[start : start + count], numbers, strict=True))
        kind = rng.choice(("bar", "bar", "line"))
        found.append(chart(kind, title, kind == "bar" and rng.random() < 0.4, printed, **values))
    return tuple(found)
