"""Random pages of print: menus, lists, timetables, tickets, messages, signs, all of it legible. No torch.

`page_content` and `page_notices` draw what a page says, `page_setting` sets it in type; here the sheet is
laid onto a picture, now and then askew, as people hold a camera, or with a picture of one thing on it.
"""

import colorsys
import math
from functools import cache
from random import Random

import numpy as np
from numpy.typing import NDArray

from kestrel_tools.scenes import world as shapes
from kestrel_tools.scenes.world import Background, Rgb
from kestrel_tools.things.atlas import Atlas, Sprites
from kestrel_tools.things.compose import BIG, LEAST_RADIUS, SMALL
from kestrel_tools.things.decor import draw_decor, draw_sign
from kestrel_tools.things.lettering import least_height
from kestrel_tools.things.names import nouns
from kestrel_tools.things.scene import Item, Line, Mark, Page, Placed, Scene, turned, unit_of

from .content import Content, Entry
from .notices import draw_content
from .setting import PITCH, Print, Setting, Sheet, Stroke, clear_ink, plain_ground

TRIES = 4
MARGIN = 0.015  # of the picture
LARGEST = 0.3  # height of the cells of print in rows, in shorter sides
WITH_PICTURE = 0.22
ASKEW, MOST_ASKEW = 0.2, 0.09  # how often, and the angle
STRIP = 2.2  # what is left for a picture, in its radii


def draw_page(rng: Random, atlas: Atlas, aspect: float, pixels: tuple[int, int] = (196, 196)) -> Scene | None:
    """A page that is legible at `pixels` (height, width); None where nothing that was tried has room."""
    unit = unit_of(aspect)
    most = int(0.92 / (least_height(unit, pixels) * unit[1] * PITCH[0])) - 2
    for _ in range(TRIES):
        scene = _scene(rng, atlas, aspect, pixels, draw_content(rng, most))
        if scene is not None:
            return scene
    return None


def _scene(
    rng: Random, atlas: Atlas, aspect: float, pixels: tuple[int, int], content: Content
) -> Scene | None:
    background, marks, paper = _grounds(rng, unit_of(aspect))
    ground = background if paper is None else plain_ground(paper)
    ink = clear_ink(rng, ground)
    if ink is None:
        return None
    sheet = Setting(rng, atlas.fonts, content, ground, ink).sheet(on_paper=paper is not None)
    sprite = _sprite(rng, atlas.sprites, content, ground) if rng.random() < WITH_PICTURE else None
    try:
        laid = _Laid(rng, sheet, unit_of(aspect), pixels, paper is not None, sprite is not None)
    except _NoRoom:
        return None
    behind = () if paper is None else laid.paper(rng, paper, ink)
    title = laid.line(sheet.title) if sheet.title else None
    rows = tuple(
        Entry(laid.line(row.label), laid.line(row.value) if row.value else None, row.parts())
        for row in sheet.rows
    )
    items = () if sprite is None else (laid.item(rng, atlas.sprites, sprite),)
    lines = [title, *(line for row in rows for line in (row.label, row.value))]
    shown = tuple(line for line in lines if line is not None)
    for box in (*(line.box for line in shown), *(item.box for item in items)):
        if min(box) < 0.004 or max(box) > 0.996:
            return None
    all_marks = (*marks, *behind, *(laid.mark(stroke) for stroke in sheet.strokes))
    return Scene(aspect, background, items, shown, all_marks, page=Page(content.kind, title, rows))


def _grounds(rng: Random, unit: tuple[float, float]) -> tuple[Background, tuple[Mark, ...], Rgb | None]:
    """What is behind a page, and the colour of its paper, where that is not all that is seen."""
    chance = rng.random()
    if chance < 0.3:
        return plain_ground(_paper(rng)), (), None
    if chance < 0.4:
        return shapes.draw_background(rng), (), None
    marks = draw_decor(rng, unit) if rng.random() < 0.3 else ()
    return shapes.draw_background(rng), marks, _paper(rng)


def _paper(rng: Random) -> Rgb:
    """White, cream, pastel, a board's black, or the colours of signs."""
    chance = rng.random()
    if chance < 0.35:
        return 1.0, 1.0, 1.0
    if chance < 0.6:
        return colorsys.hsv_to_rgb(rng.random(), rng.uniform(0.0, 0.25), rng.uniform(0.88, 1.0))
    if chance < 0.75:
        return colorsys.hsv_to_rgb(rng.random(), rng.uniform(0.0, 0.6), rng.uniform(0.05, 0.3))
    return draw_sign(rng).rgb


@cache
def _of_word(word: str) -> tuple[str, ...]:
    """Things of a kind, or the one of that name."""
    return tuple(noun.name for noun in nouns() if noun.name == word or word in noun.kinds)


def _sprite(rng: Random, sprites: Sprites, content: Content, ground: Background) -> int | None:
    """A drawing that can be seen on the paper, mostly of something that goes with what the page says."""
    known = [name for word in content.pictures for name in _of_word(word) if name in sprites.by_name]
    name = rng.choice(known) if known and rng.random() < 0.75 else rng.choice(sprites.names)
    index = rng.choice(sprites.drawings(name))
    red, green, blue = sprites.means[index].tolist()
    return index if shapes.stands_out((red, green, blue), ground, 0.25) else None


class _NoRoom(Exception):
    """Its print would be too small to be read."""


class _Laid:
    """Where a sheet lies on a picture: how large, and turned about its middle."""

    def __init__(
        self,
        rng: Random,
        sheet: Sheet,
        unit: tuple[float, float],
        pixels: tuple[int, int],
        on_paper: bool,
        with_picture: bool,
    ) -> None:
        least = least_height(unit, pixels)
        room = (1 - 2 * MARGIN) / np.array(unit)  # in shorter sides
        pad = np.array([rng.uniform(0.3, 0.9), rng.uniform(0.25, 0.8)] if on_paper else [0.1, 0.1])
        printed = np.array([sheet.width, sheet.height]) + 2 * pad
        shorter = min(unit[1] * pixels[0], unit[0] * pixels[1])  # in pixels
        self._least_radius = max(0.06, min(LEAST_RADIUS / shorter, 0.12))
        self._radius = with_picture * rng.uniform(1.0, 1.8) * self._least_radius
        # The picture is beside the print where there is more room.
        self._side = int(room[0] / printed[0] < room[1] / printed[1])
        angle = max(-MOST_ASKEW, min(MOST_ASKEW, rng.gauss(0, 0.04))) if rng.random() < ASKEW else 0.0
        free = room.copy()
        free[self._side] -= STRIP * self._radius
        for tilt in (angle, 0.0):
            fitting = float((free / _turned_size(printed, tilt)).min())
            if fitting >= least:
                break
        else:
            raise _NoRoom
        wanted = fitting * (rng.uniform(0.65, 1.0) if rng.random() < 0.65 else 1.0)
        self._angle, self._unit = tilt, unit
        self._scale = max(least, min(LARGEST, wanted))
        self._size = printed * self._scale
        self._size[self._side] += STRIP * self._radius
        self._first = with_picture and rng.random() < 0.5  # left of the print, or above it
        self._start = pad * self._scale
        self._start[self._side] += STRIP * self._radius * self._first
        reach = _turned_size(self._size, tilt) * unit / 2
        self._middle = [
            rng.uniform(low, 1 - low) if low < 0.5 else 0.5 for low in (reach + MARGIN / 2).tolist()
        ]

    def _at(self, u: float, v: float) -> tuple[float, float]:
        """A place of the paper, in shorter sides from its upper left corner, on the picture."""
        [(x, y)] = (
            turned(np.array([[u, v]]) - self._size / 2, self._angle) * self._unit + self._middle
        ).tolist()
        return x, y

    def _of_sheet(self, at: tuple[float, float]) -> tuple[float, float]:
        u, v = (self._start + np.array(at) * self._scale).tolist()
        return self._at(u, v)

    def line(self, printed: Print) -> Line:
        x, y = self._of_sheet(printed.at)
        height = printed.scale * self._scale
        ink = turned(printed.corners, self._angle) * height * self._unit + (x, y)
        (x_min, y_min), (x_max, y_max) = ink.min(0).tolist(), ink.max(0).tolist()
        box = (x_min, y_min, x_max, y_max)
        return Line(printed.text, printed.font, x, y, height, self._angle, printed.ink, box)

    def mark(self, stroke: Stroke) -> Mark:
        start, end = self._of_sheet(stroke.start), self._of_sheet(stroke.end)
        return Mark(start, end, stroke.width * self._scale, stroke.rounded, stroke.rgb)

    def paper(self, rng: Random, rgb: Rgb, ink: Rgb) -> tuple[Mark, ...]:
        """With a rim now and then."""
        (width, height), rim = self._size.tolist(), rng.uniform(0.006, 0.02)

        def sheet(beyond: float, colour: Rgb) -> Mark:
            ends = self._at(-beyond, height / 2), self._at(width + beyond, height / 2)
            return Mark(*ends, height + 2 * beyond, False, colour)

        around = ink if rng.random() < 0.6 else draw_sign(rng).rgb
        return (sheet(0.0, around), sheet(-rim, rgb)) if rng.random() < 0.3 else (sheet(0.0, rgb),)

    def item(self, rng: Random, sprites: Sprites, index: int) -> Item:
        at = self._size / 2
        half = STRIP / 2 * self._radius
        at[self._side] = half if self._first else self._size[self._side] - half
        other = 1 - self._side
        free = max(0.0, float(self._size[other]) / 2 - half)
        at[other] += rng.choice((0.0, rng.uniform(-free, free)))
        x, y = self._at(*at.tolist())
        placed = Placed(index, x, y, self._radius, self._angle, rng.random() < 0.5)
        reach = placed.on_picture(sprites.hulls[index], self._unit)
        (x_min, y_min), (x_max, y_max) = reach.min(0).tolist(), reach.max(0).tolist()
        [(to_x, to_y)] = placed.on_picture(sprites.anchors[index : index + 1], self._unit).tolist()
        small = max(SMALL, self._least_radius)
        size = "small" if self._radius <= small else "big" if self._radius >= BIG else ""
        box = (x_min, y_min, x_max, y_max)
        return Item(sprites.names[index], sprites.colours[index], size, box, placed, (to_x, to_y))


def _turned_size(size: NDArray[np.float64], angle: float) -> NDArray[np.float64]:
    """How far it reaches to the right and downwards."""
    cos, sin = abs(math.cos(angle)), abs(math.sin(angle))
    return size * cos + size[::-1] * sin
