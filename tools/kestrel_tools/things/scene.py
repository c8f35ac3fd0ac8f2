"""The truth about a picture of the wider world: things, shapes, printed lines, charts. No torch.

Positions are fractions of the picture; lengths are fractions of its shorter side, as in
`kestrel_tools.scenes.world`, whose shapes and grounds are used here too.
"""

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kestrel_tools.scenes import world as shapes
from kestrel_tools.scenes.world import Background, Box, Rgb

from .names import Noun, by_name

Points = NDArray[np.float64]  # [points, 2]
MOST_ITEMS = 12
MOST_SHAPES = shapes.MAX_OBJECTS


def turned(points: NDArray[Any], angle: float) -> Points:
    """Clockwise on the picture, whose y runs downwards."""
    cos, sin = math.cos(angle), math.sin(angle)
    rotated: Points = points @ np.array([[cos, sin], [-sin, cos]])
    return rotated


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a sprite of the atlas lies: the middle of its cell, half of its side, and how it is turned."""

    sprite: int
    x: float
    y: float
    radius: float
    angle: float
    mirrored: bool

    def on_picture(self, points: NDArray[np.float32], unit: tuple[float, float]) -> Points:
        """Points of the sprite's cell as fractions of the picture."""
        flip = -1.0 if self.mirrored else 1.0
        placed: Points = turned(points * (flip, 1.0), self.angle) * self.radius * unit + (self.x, self.y)
        return placed


@dataclass(frozen=True, slots=True)
class Item:
    """A thing or a shape of the scene, and how it is drawn."""

    noun: str
    colour: str  # empty where none can be told
    size: str
    box: Box  # of what is drawn, also where something lies over it
    drawn: Placed | shapes.Thing
    point: tuple[float, float]  # within it, as near to the middle as can be

    @property
    def is_shape(self) -> bool:
        return isinstance(self.drawn, shapes.Thing)

    @property
    def name(self) -> str:
        """What the model calls it."""
        return f"{self.colour} {self.noun}" if self.is_shape else self.noun

    @property
    def known_as(self) -> Noun:
        return _known_as(self.noun)

    @property
    def centre(self) -> tuple[float, float]:
        return shapes.middle_of(self.box)

    @property
    def area(self) -> float:
        x_min, y_min, x_max, y_max = self.box
        return (x_max - x_min) * (y_max - y_min)


@cache
def _known_as(noun: str) -> Noun:
    return by_name().get(noun) or Noun(noun, (), ("shape",))


@dataclass(frozen=True, slots=True)
class Line:
    """Printed text. (x, y) is the middle of its letters' cells, `height` that of a cell."""

    text: str
    font: int
    x: float
    y: float
    height: float
    angle: float
    rgb: Rgb
    box: Box  # of the ink

    @property
    def centre(self) -> tuple[float, float]:
        return (self.box[0] + self.box[2]) / 2, (self.box[1] + self.box[3]) / 2

    @property
    def point(self) -> tuple[float, float]:
        return self.centre


@dataclass(frozen=True, slots=True)
class Mark:
    """A stroke from one point of the picture to another, wide as a bar or thin as an axis."""

    start: tuple[float, float]
    end: tuple[float, float]
    width: float  # as a fraction of the shorter side
    rounded: bool
    rgb: Rgb


@dataclass(frozen=True, slots=True)
class Chart:
    """What a chart says. `boxes` are those of the bars, or of the dots of a line."""

    kind: str  # bar, line
    title: str
    labels: tuple[str, ...]
    values: tuple[int, ...]
    boxes: tuple[Box, ...]
    colours: tuple[str, ...] = ()  # of the bars, or one for all of them


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a page, and what is told of it: "Soup", and its price."""

    label: Line
    value: Line | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """What a page says: a menu, a shopping list, opening hours. All its lines are lines of the scene too."""

    kind: str
    title: Line | None
    rows: tuple[Row, ...]  # from top to bottom


@dataclass(frozen=True, slots=True)
class Card:
    """A cell with a thing, and what is printed at it: a day, a price, a name."""

    box: Box
    item: Item | None
    label: Line | None = None


@dataclass(frozen=True, slots=True)
class Cards:
    """Cells in rows and columns: a memory game, a shelf, a forecast, a sheet of stickers."""

    kind: str
    rows: tuple[tuple[Card, ...], ...]  # from top to bottom, each from left to right

    @property
    def has_print(self) -> bool:
        return any(card.label is not None for row in self.rows for card in row)


@dataclass(frozen=True, slots=True)
class Scene:
    aspect: float  # width / height
    background: Background
    items: tuple[Item, ...] = ()  # from left to right, or row by row
    lines: tuple[Line, ...] = ()  # from top to bottom
    marks: tuple[Mark, ...] = ()
    chart: Chart | None = None
    page: Page | None = None
    cards: Cards | None = None

    @property
    def unit(self) -> tuple[float, float]:
        """The shorter side as fractions of width and height."""
        return unit_of(self.aspect)

    @property
    def row_by_row(self) -> bool:
        """Whether its things are told as print is read: cells are drawn, or print is at each. Where there is
        nothing but things, they may be scattered as well, and are told from left to right.
        """
        return self.cards is not None and (bool(self.marks) or self.cards.has_print)


def unit_of(aspect: float) -> tuple[float, float]:
    return min(1.0, 1 / aspect), min(1.0, aspect)


def widened(scene: shapes.Scene) -> Scene:
    """A scene of the small world as one of this: what is there, not how its print is drawn."""
    items = tuple(Item(t.shape, t.colour, t.size, t.box, t, t.point) for t in scene.things)
    printed = scene.print
    lines = (
        ()
        if printed is None
        else (Line(printed.text, 0, printed.x, printed.y, 0.0, 0.0, printed.rgb, printed.box),)
    )
    return Scene(scene.aspect, scene.background, items, lines)
