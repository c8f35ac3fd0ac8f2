"""Scenes of things to ask about: random ones, and those of a few things at places that a test names."""

import re
from collections.abc import Callable, Iterator
from functools import cache
from random import Random

from kestrel_tools.scenes import world as shapes
from kestrel_tools.scenes.world import Background, Box
from kestrel_tools.things.compose import draw_scene
from kestrel_tools.things.language.fact import Fact
from kestrel_tools.things.scene import Item, Line, Placed, Scene, widened
from tests.small_atlas import small_atlas

ATLAS = small_atlas()
WHITE = Background("plain", (1, 1, 1), (1, 1, 1), 0, 0.1, 0)
Maker = Callable[[Random, Scene], Fact | None]


@cache
def scenes() -> tuple[Scene, ...]:
    """300, a third of them shapes alone."""
    rng = Random(7)
    things = [draw_scene(rng, ATLAS, rng.uniform(0.6, 1.7), (252, 252), 7) for _ in range(200)]
    return (*things, *(widened(shapes.draw_scene(rng, 1.2)) for _ in range(100)))


def made(maker: Maker, each: int = 4) -> Iterator[tuple[Scene, Fact]]:
    rng = Random(maker.__name__)
    for scene in scenes():
        for _ in range(each):
            if (found := maker(rng, scene)) is not None:
                yield scene, found


def thing(noun: str, box: Box, colour: str = "") -> Item:
    middle = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    return Item(noun, colour, "big", box, Placed(0, 0.0, 0.0, 0.1, 0.0, False), middle)


def at(noun: str, x: float, y: float, colour: str = "") -> Item:
    return thing(noun, (x - 0.05, y - 0.05, x + 0.05, y + 0.05), colour)


def scene_of(*items: Item) -> Scene:
    return Scene(1.0, WHITE, tuple(sorted(items, key=lambda item: item.centre)))


def answers(maker: Maker, scene: Scene, pattern: str, tries: int = 600) -> set[str]:
    rng = Random(1)
    found = [maker(rng, scene) for _ in range(tries)]
    return {one.answer for one in found if one is not None and re.search(pattern, one.question)}


def line(text: str, x: float, y: float, rgb: tuple[float, float, float]) -> Line:
    return Line(text, 0, x, y, 0.1, 0.0, rgb, (x - 0.1, y - 0.04, x + 0.1, y + 0.04))
