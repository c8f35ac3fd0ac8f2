"""What callers of point, detect and segment may name, and what that is in a scene. No torch."""

from random import Random

from kestrel_tools.scenes.world import Boxed
from kestrel_tools.things.names import with_article
from kestrel_tools.things.scene import Scene

from .fact import Region
from .spelling import mistyped
from .wanted import everything, stranger, wanted

ALL = (
    "everything", "all", "all objects", "all things", "objects", "things", "object", "thing", "every object",
    "all the objects", "all the things", "all items", "items", "each object", "anything", "any object",
    "all of them", "every thing", "everything in the picture", "all visible objects",
)  # fmt: skip
SHAPES = ("shape", "shapes", "all shapes", "every shape", "all the shapes", "geometric shapes", "figures")
TEXT = ("text", "word", "words", "writing", "texts", "the text", "print", "letters")
BARS = ("bar", "bars", "all bars", "every bar", "the bars")
EXTREME_BARS = {
    "tallest bar": max, "highest bar": max, "largest bar": max, "longest bar": max, "biggest bar": max,
    "smallest bar": min, "shortest bar": min, "lowest bar": min,
}  # fmt: skip


def target(rng: Random, scene: Scene, present: float = 0.8) -> tuple[str, tuple[Boxed, ...]]:
    """Words, and all that they name, from left to right."""
    if scene.chart is not None:
        return _of_chart(rng, scene)
    chance = rng.random()
    if chance < 0.06:
        found = stranger(rng, scene)
        return found.one, ()
    if chance < 0.16:
        return rng.choice(ALL), scene.items or scene.lines
    if chance < 0.2:
        return rng.choice(SHAPES), tuple(item for item in scene.items if item.is_shape)
    if chance < (0.28 if scene.lines else 0.21):
        return rng.choice(TEXT), tuple(sorted(scene.lines, key=lambda line: line.centre))
    found = everything(rng, scene) if rng.random() < 0.03 else wanted(rng, scene, present)
    return _called(rng, found.one, found.many), found.items


def _called(rng: Random, one: str, many: str) -> str:
    [words] = rng.choices(
        (
            one,
            many,
            f"the {one}",
            f"the {many}",
            with_article(one),
            f"all {many}",
            f"all the {many}",
            f"every {one}",
        ),
        (55, 20, 8, 4, 5, 4, 2, 2),
    )
    return mistyped(rng, words) if rng.random() < 0.02 else words


def _of_chart(rng: Random, scene: Scene) -> tuple[str, tuple[Boxed, ...]]:
    """The bars, one of them, the print; or something that is not there."""
    chart, chance = scene.chart, rng.random()
    assert chart is not None
    if chance < 0.25 or (chart.kind == "line" and chance < 0.7):
        return rng.choice(TEXT), tuple(sorted(scene.lines, key=lambda line: line.centre))
    if chance < 0.5 and chart.kind == "bar":
        bars = sorted((Region(box) for box in chart.boxes), key=lambda bar: bar.centre)
        return rng.choice(BARS), tuple(bars)
    if chance < 0.8 and chart.kind == "bar":
        words = rng.choice(tuple(EXTREME_BARS))
        box = chart.boxes[chart.values.index(EXTREME_BARS[words](chart.values))]
        return (f"the {words}" if rng.random() < 0.3 else words), (Region(box),)
    return wanted(rng, scene, 0.0).one, ()
