"""How cells look: tiles, discs, lines of a grid, the boards of a shelf, or nothing at all. No torch.

Lengths are fractions of the picture's shorter side; marks are made in fractions of the picture.
"""

import colorsys
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from kestrel_tools.scenes import world as shapes
from kestrel_tools.scenes.world import Background, Box, Rgb
from kestrel_tools.things.scene import Mark

Unit = tuple[float, float]
MOST_MARKS = 36  # a scene is drawn mark by mark, so corners are rounded where that takes few
APART = 0.22  # how much the colour of a tile differs from the ground
DARK, LIGHT = (0.06, 0.06, 0.07), (0.98, 0.98, 0.98)


class Area(NamedTuple):
    """A part of the picture, in shorter sides."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def width(self) -> float:
        return self.right - self.left

    @property
    def height(self) -> float:
        return self.bottom - self.top

    @property
    def middle(self) -> tuple[float, float]:
        return (self.left + self.right) / 2, (self.top + self.bottom) / 2

    def within(self, pad: float) -> "Area":
        return Area(self.left + pad, self.top + pad, self.right - pad, self.bottom - pad)

    def box(self, unit: Unit) -> Box:
        x, y = unit
        return self.left * x, self.top * y, self.right * x, self.bottom * y


@dataclass(frozen=True, slots=True)
class Look:
    """`fills`: of the tiles by turns, or of the panel behind a grid or a shelf, which may have none."""

    name: str  # tiles, discs, grid, boards, bare
    fills: tuple[Rgb, ...]
    edge: Rgb
    border: float  # its width, 0 where there is none
    rounded: bool

    @property
    def grounds(self) -> tuple[Background, ...]:
        """What things lie on, if not on the ground of the picture."""
        return tuple(_plain(fill) for fill in self.fills)

    @property
    def pad(self) -> float:
        """How much of a tile's shorter side is kept free along its edges."""
        return {"tiles": 0.08 if self.rounded else 0.06, "discs": 0.15, "grid": 0.07}.get(self.name, 0.0)

    def marks(self, rows: Sequence[Sequence[Area]], block: Area, unit: Unit) -> tuple[Mark, ...]:
        """`rows`: the tiles, or for a shelf what stands above each board; `block`: all of it."""
        match self.name:
            case "tiles" | "discs":
                return self._tiles(rows, unit)
            case "grid":
                return self._grid(rows, block, unit)
            case "boards":
                return self._boards(rows, block, unit)
        return ()

    def _tiles(self, rows: Sequence[Sequence[Area]], unit: Unit) -> tuple[Mark, ...]:
        number = sum(map(len, rows)) * (2 if self.border else 1)
        rounded = self.rounded and 3 * number <= MOST_MARKS
        marks: list[Mark] = []
        for at, row in enumerate(rows):
            for column, area in enumerate(row):
                fill = self.fills[(at + column) % len(self.fills)]
                layers = (
                    [(area, self.edge), (area.within(self.border), fill)] if self.border else [(area, fill)]
                )
                for part, rgb in layers:
                    if self.name == "discs":
                        marks.append(_disc(part, rgb, unit))
                    else:
                        marks += _rounded(part, rgb, unit) if rounded else [_flat(part, rgb, unit)]
        return tuple(marks)

    def _grid(self, rows: Sequence[Sequence[Area]], block: Area, unit: Unit) -> tuple[Mark, ...]:
        marks = [_flat(block, self.fills[0], unit)] if self.fills else []
        thick = max(self.border, 0.005)
        downs = [block.left, *(area.right for area in rows[0])]
        acrosses = [block.top, *(row[0].bottom for row in rows)]
        half = thick / 2
        marks += [
            _flat(Area(block.left - half, y - half, block.right + half, y + half), self.edge, unit)
            for y in acrosses
        ]
        marks += [_flat(Area(x - half, block.top, x + half, block.bottom), self.edge, unit) for x in downs]
        return tuple(marks)

    def _boards(self, rows: Sequence[Sequence[Area]], block: Area, unit: Unit) -> tuple[Mark, ...]:
        marks = [_flat(block, self.fills[0], unit)] if self.fills else []
        for row in rows:
            y = row[0].bottom
            marks.append(_flat(Area(block.left, y, block.right, y + self.border), self.edge, unit))
        if self.rounded:  # sides
            for x in (block.left, block.right - self.border):
                marks.append(_flat(Area(x, block.top, x + self.border, block.bottom), self.edge, unit))
        return tuple(marks)


def draw_look(rng: Random, name: str, background: Background) -> Look | None:
    """None where no colours were found that can be told from the ground."""
    for _ in range(8):
        fills = _fills(rng, name)
        edge = _edge(rng, name)
        border = rng.uniform(0.006, 0.018) if rng.random() < 0.45 else 0.0
        if name == "boards":
            border = rng.uniform(0.012, 0.035)
        if name in ("grid", "boards"):
            border = border or rng.uniform(0.005, 0.012)
            if rng.random() < 0.5:
                fills = ()
        if name == "bare":
            return Look(name, (), edge, 0.0, False)
        look = Look(name, fills, edge, border, rng.random() < 0.4)
        behind = (*look.grounds, background)
        told = all(shapes.stands_out(fill, background, APART) for fill in fills)
        lined = bool(border) and all(shapes.stands_out(edge, ground, 0.35) for ground in behind)
        if lined or (told and not border):
            return look
    return None


def _fills(rng: Random, name: str) -> tuple[Rgb, ...]:
    """White, pale, dark or bright; of tiles now and then several by turns, all about as light."""
    sort, hue = rng.random(), rng.random()
    many = rng.choice((1, 1, 1, 2, 2, 4)) if name in ("tiles", "discs") else 1
    hues = [hue + at * rng.choice((0.5, 0.25, 0.08)) for at in range(many)]
    if sort < 0.3:
        return ((1.0, 1.0, 1.0),)
    if sort < 0.7:
        return tuple(colorsys.hsv_to_rgb(h % 1, rng.uniform(0.1, 0.4), rng.uniform(0.9, 1.0)) for h in hues)
    if sort < 0.82:
        return tuple(colorsys.hsv_to_rgb(h % 1, rng.uniform(0.2, 0.7), rng.uniform(0.1, 0.3)) for h in hues)
    return tuple(colorsys.hsv_to_rgb(h % 1, rng.uniform(0.4, 0.8), rng.uniform(0.75, 0.98)) for h in hues)


def _edge(rng: Random, name: str) -> Rgb:
    if name == "boards" and rng.random() < 0.6:  # wood
        return colorsys.hsv_to_rgb(rng.uniform(0.06, 0.11), rng.uniform(0.4, 0.75), rng.uniform(0.3, 0.75))
    bright = colorsys.hsv_to_rgb(rng.random(), rng.uniform(0.5, 1.0), rng.uniform(0.4, 0.9))
    return rng.choice((DARK, DARK, LIGHT, bright))


def _plain(rgb: Rgb) -> Background:
    return Background("plain", rgb, rgb, 0.0, 0.1, 0.0)


def _flat(area: Area, rgb: Rgb, unit: Unit) -> Mark:
    left, top, right, bottom = area.box(unit)
    y = (top + bottom) / 2
    return Mark((left, y), (right, y), area.height, False, rgb)


def _rounded(area: Area, rgb: Rgb, unit: Unit) -> list[Mark]:
    """Two bars with round ends, and one between their middles."""
    radius = 0.12 * min(area.width, area.height)
    left, _, right, _ = area.within(radius).box(unit)
    ends = [(y * unit[1]) for y in (area.top + radius, area.bottom - radius)]
    bars = [Mark((left, y), (right, y), 2 * radius, True, rgb) for y in ends]
    return [*bars, _flat(area._replace(top=area.top + radius, bottom=area.bottom - radius), rgb, unit)]


def _disc(area: Area, rgb: Rgb, unit: Unit) -> Mark:
    x, y = area.middle[0] * unit[0], area.middle[1] * unit[1]
    return Mark((x, y), (x, y), min(area.width, area.height), True, rgb)
