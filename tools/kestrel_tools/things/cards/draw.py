"""Random scenes of things in cells, with and without print at them: games, shelves, menus. No torch.

Lengths are fractions of the picture's shorter side here, and become fractions of the picture in the end.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import NamedTuple

from kestrel_tools.scenes import world as shapes
from kestrel_tools.scenes.world import Background, Rgb
from kestrel_tools.things.atlas import Atlas
from kestrel_tools.things.colour import contrast
from kestrel_tools.things.compose import BIG, LEAST_RADIUS, SMALL, ink_colour
from kestrel_tools.things.lettering import least_height, reach_of
from kestrel_tools.things.scene import Card, Cards, Item, Line, Placed, Scene, unit_of

from .cast import MOST_PRINTED, Cast, Cell
from .labels import TITLES
from .layout import Layout, Place, Prints, layouts
from .looks import Area, Look, draw_look

TITLED = 0.3  # of the cards
EMPTIER = 0.35  # of the cards that may have empty cells
OF_SHAPES = 0.15  # of the cards without tiles, since those might be taken for shapes too
WITHOUT_SHAPES = ("forecast", "menu", "vocabulary", "tag")
SMALL_SHAPE, BIG_SHAPE = 0.085, 0.125  # radius of the largest small and of the smallest big one
UNEVEN = 0.25  # of the cards have things of different sizes
LEAST_CONTRAST = 3.0  # of print, as WCAG asks where it is large
BLACK = (0.0, 0.0, 0.0)
TRIES = 6
SHOWS_ALL = Background("plain", (9.0, 9.0, 9.0), (9.0, 9.0, 9.0), 0.0, 0.1, 0.0)  # far from every colour


class Sort(NamedTuple):
    """How often there are cards of that kind, and how they may be laid out."""

    share: float
    counts: tuple[int, int]  # of cells
    looks: str
    prints: str = ""  # where it is printed, if it is
    again: float = 0.0  # of the things are there already
    empty: float = 0.0  # of the cells, in some scenes


SORTS = {
    "memory": Sort(13, (2, 12), "tiles tiles tiles discs", again=0.5, empty=0.12),
    "bingo": Sort(9, (4, 12), "grid grid tiles", again=0.08, empty=0.1),
    "stickers": Sort(8, (3, 12), "bare bare discs", again=0.15),
    "shelf": Sort(10, (2, 11), "boards", again=0.1),
    "forecast": Sort(10, (2, 7), "bare bare tiles grid discs", "below above above right", again=0.3),
    "menu": Sort(8, (2, 7), "bare tiles tiles", "below below under right right corner"),
    "shop": Sort(7, (2, 8), "bare tiles boards boards grid", "below below under corner"),
    "names": Sort(8, (2, 8), "bare tiles tiles boards discs grid", "below below above under"),
    "choices": Sort(9, (2, 8), "bare bare tiles tiles grid discs", "below below above corner corner under"),
    "vocabulary": Sort(8, (1, 6), "tiles tiles grid", "below below below above"),
    "calendar": Sort(7, (2, 7), "grid tiles tiles bare", "above above below right corner", empty=0.15),
    "badges": Sort(4, (2, 6), "discs discs tiles", "below under"),
    "tag": Sort(4, (1, 1), "bare tiles", "below below above"),
    "board": Sort(5, (4, 8), "tiles tiles grid", "below corner corner above", empty=0.55),
    "words": Sort(6, (2, 8), "bare tiles grid boards discs", "below below above under right"),
}


def draw_cards(
    rng: Random, atlas: Atlas, aspect: float, pixels: tuple[int, int] = (196, 196)
) -> Scene | None:
    """Cards that are legible at `pixels` (height, width); None when none were found that fit there."""
    for _ in range(TRIES):
        [kind] = rng.choices(tuple(SORTS), [sort.share for sort in SORTS.values()])
        scene = _Sheet(rng, atlas, aspect, pixels, kind).scene()
        if scene is not None:
            return scene
    return None


class _Sheet:
    """One scene on its way: who is there, how many in a row, then each at its place."""

    def __init__(self, rng: Random, atlas: Atlas, aspect: float, pixels: tuple[int, int], kind: str) -> None:
        self._rng, self._atlas, self._aspect, self._kind, self._sort = rng, atlas, aspect, kind, SORTS[kind]
        self._unit = unit_of(aspect)
        self._background = shapes.draw_background(rng)
        self._font = rng.randrange(len(atlas.fonts))
        self._least_print = least_height(self._unit, pixels)
        shorter = min(self._unit[0] * pixels[1], self._unit[1] * pixels[0])
        self._least = max(0.06, min(LEAST_RADIUS / shorter, 0.12))
        self._lines: list[Line] = []
        self._mirrored: dict[int, bool] = {}  # those of a pair look the same way

    def scene(self) -> Scene | None:
        rng = self._rng
        look = draw_look(rng, rng.choice(self._sort.looks.split()), self._background)
        if look is None:
            return None
        grounds = look.grounds or (self._background,)
        cells = self._cells(look, grounds)
        if cells is None:
            return None
        texts = [text for cell in cells for text in (cell.label, cell.second) if text]
        prints = self._prints(look, texts, any(cell.second for cell in cells))
        area = self._titled(len(texts))
        if area is None or len(texts) > MOST_PRINTED:
            return None
        fitting = [
            layout
            for layout in layouts(rng, len(cells), look, prints, area, self._least_print)
            if layout.radius >= self._least
        ]
        outside = prints.where == "under" and look.name != "boards"
        behind = (self._background, *(look.grounds if prints.two else ())) if outside else grounds
        ink = self._ink(behind) if texts else BLACK
        if not fitting or ink is None or (prints.two and look.name == "discs"):
            return None
        shares = [layout.radius**1.5 * (1.0 if layout.is_even else 0.4) for layout in fitting]
        return self._laid_out(cells, rng.choices(fitting, shares)[0], area, ink)

    def _cells(self, look: Look, grounds: Sequence[Background]) -> list[Cell] | None:
        rng, sort = self._rng, self._sort
        of_shapes = look.name == "bare" and self._kind not in WITHOUT_SHAPES and rng.random() < OF_SHAPES
        empty = sort.empty if self._kind == "board" or rng.random() < EMPTIER else 0.0
        empty = 0.0 if look.name == "discs" else empty  # an empty one would be a circle
        cast = Cast(rng, self._atlas, self._font, self._kind, grounds)
        return cast.cells(rng.randint(*sort.counts), sort.again, empty, bool(sort.prints), of_shapes)

    def _prints(self, look: Look, texts: Sequence[str], two: bool) -> Prints:
        if not texts:
            return Prints()
        where = self._rng.choice(self._sort.prints.split())
        if look.name in ("boards", "discs"):
            where = "under"
        elif where == "under" and look.name != "tiles":
            where = "below"
        return Prints(where, *self._extent(texts), two)

    def _ink(self, grounds: Sequence[Background]) -> Rgb | None:
        for _ in range(3):
            rgb = ink_colour(self._rng, *grounds)
            shades = [shade for ground in grounds for shade in (ground.first, ground.second)]
            if rgb is not None and all(contrast(rgb, shade) >= LEAST_CONTRAST for shade in shades):
                return rgb
        return None

    def _extent(self, texts: Sequence[str]) -> tuple[float, float, float]:
        """Of print of height 1: the largest width, and from where to where it reaches about its middle."""
        reaches = [reach_of(self._atlas.fonts, self._font, text, 1.0, 0.0, (1.0, 1.0)) for text in texts]
        wide = max(float(high[0] - low[0]) for low, high in reaches)
        return wide, min(float(low[1]) for low, _ in reaches), max(float(high[1]) for _, high in reaches)

    def _titled(self, num_lines: int) -> Area | None:
        """What a title and the margins leave of the picture."""
        rng, margin = self._rng, self._rng.choice((0.02, 0.04, 0.07))
        left, top, right, bottom = (margin + rng.choice((0.0, 0.0, rng.uniform(0, 0.06))) for _ in range(4))
        area = Area(left, top, 1 / self._unit[0] - right, 1 / self._unit[1] - bottom)
        titles = TITLES.get(self._kind, ())
        if not titles or num_lines >= MOST_PRINTED or rng.random() >= TITLED:
            return area
        text = self._atlas.fonts.shown(self._font, rng.choice(titles))
        wide, low, high = self._extent([text])
        height = min(self._least_print * rng.uniform(1.1, 1.8), area.width / wide)
        ink = self._ink((self._background,))
        if height < self._least_print or ink is None:
            return None
        x = area.middle[0] if rng.random() < 0.7 else area.left + wide * height / 2
        self._print(text, (x, area.top - low * height), height, ink)
        return area._replace(top=area.top + (high - low) * height + rng.uniform(0.03, 0.06))

    def _laid_out(self, cells: Sequence[Cell], layout: Layout, area: Area, ink: Rgb) -> Scene:
        rng, (width, height) = self._rng, layout.size
        align = (0.5, 0.5) if rng.random() < 0.75 else (rng.random(), rng.random())
        left, top = (
            area.left + align[0] * (area.width - width),
            area.top + align[1] * (area.height - height),
        )
        block = Area(left, top, left + width, top + height)
        smallest = min(1.0, self._least / layout.radius)
        scale, uneven = rng.uniform(max(0.82, smallest), 1.0), rng.random() < UNEVEN
        places = list(layout.places(block, rng.random() < 0.4))
        held, rows = iter(cells), []
        for row in places:
            scales = [rng.uniform(max(0.65, smallest), 1.0) if uneven else scale for _ in row]
            radii = [layout.radius * one for one in scales]
            rows.append(
                tuple(self._card(next(held), *at, layout, ink) for at in zip(row, radii, strict=True))
            )
        items = tuple(card.item for row in rows for card in row if card.item is not None)
        scene = Scene(
            self._aspect,
            self._background,
            items,
            tuple(sorted(self._lines, key=lambda line: (round(line.y, 3), line.box[0]))),
            layout.look.marks([[place.tile for place in row] for row in places], block, self._unit),
            cards=Cards(self._kind, tuple(rows)),
        )
        across = sorted(items, key=lambda item: (round(item.centre[0], 3), item.centre[1]))
        return scene if scene.row_by_row else replace(scene, items=tuple(across))

    def _card(self, cell: Cell, place: Place, radius: float, layout: Layout, ink: Rgb) -> Card:
        align = 0.0 if layout.prints.where in ("right", "corner") else 0.5
        label = self._print(cell.label, place.label, layout.printed, ink, align) if cell.label else None
        if cell.second:
            align = 0.0 if layout.prints.where == "right" else 0.5
            self._print(cell.second, place.second, layout.printed, ink, align)
        item = None
        nearer = {"below": 1.0, "above": 0.0}.get(layout.prints.where, 0.5)
        align = {"boards": 1.0, "bare": nearer}.get(layout.look.name, 0.5)
        if isinstance(cell.drawing, tuple):
            item = self._shape(*cell.drawing, place.room, radius)
        elif cell.drawing is not None:
            item = self._thing(cell.drawing, place.room, radius, align)
        return Card(place.slot.box(self._unit), item, label)

    def _print(self, text: str, at: tuple[float, float], height: float, ink: Rgb, align: float = 0.5) -> Line:
        """A line whose ink begins or has its middle at a point; all of a row stand on one line."""
        low, high = reach_of(self._atlas.fonts, self._font, text, height, 0.0, self._unit)
        (left, up), (right, down) = low.tolist(), high.tolist()
        x, y = at[0] * self._unit[0] - left - align * (right - left), at[1] * self._unit[1]
        line = Line(text, self._font, x, y, height, 0.0, ink, (x + left, y + up, x + right, y + down))
        self._lines.append(line)
        return line

    def _thing(self, sprite: int, room: Area, radius: float, align: float) -> Item:
        """In the middle of its room, or at its top or bottom (0 or 1): on a board, or at its print."""
        rng, sprites = self._rng, self._atlas.sprites
        tilted = self._kind in ("stickers", "memory") and rng.random() < 0.4
        angle = max(-0.4, min(0.4, rng.gauss(0, 0.15))) if tilted else 0.0
        mirrored = self._mirrored.setdefault(sprite, rng.random() < 0.5)
        alone = Placed(sprite, 0.0, 0.0, radius, angle, mirrored)
        reach = alone.on_picture(sprites.hulls[sprite], self._unit)
        low, high = reach.min(0), reach.max(0)
        x_min, y_min, x_max, y_max = room.box(self._unit)
        fits = min(1.0, (x_max - x_min) / float(high[0] - low[0]), (y_max - y_min) / float(high[1] - low[1]))
        (left, up), (right, down) = (low * fits).tolist(), (high * fits).tolist()
        x = (x_min + x_max - left - right) / 2
        y = y_min - up + align * (y_max - y_min - (down - up))
        placed = replace(alone, x=x, y=y, radius=radius * fits)
        [point] = placed.on_picture(sprites.anchors[sprite : sprite + 1], self._unit).tolist()
        size = "small" if placed.radius <= SMALL else "big" if placed.radius >= BIG else ""
        box = (x + left, y + up, x + right, y + down)
        return Item(sprites.names[sprite], sprites.colours[sprite], size, box, placed, (point[0], point[1]))

    def _shape(self, colour: str, shape: str, room: Area, radius: float) -> Item:
        """As the small world draws it, moved to its room; it is small or big, never between."""
        radius = min(radius, SMALL_SHAPE) if radius < BIG_SHAPE else radius
        drawn = shapes.draw_thing(
            self._rng,
            (shape,),
            (colour,),
            self._unit,
            SHOWS_ALL,
            [],
            0.06,
            BIG_SHAPE,
            self._rng.random() < 0.3,
        )
        assert drawn is not None, "there is nothing else yet"
        shades = [shapes.draw_shade(self._rng, colour) for _ in range(8)]
        rgb = max(shades, key=lambda shade: math.dist(shade, self._background.first))
        x_min, y_min, x_max, y_max = room.box(self._unit)
        scale = radius / drawn.radius
        left, right = ((edge - drawn.x) * scale for edge in drawn.box[::2])
        up, down = ((edge - drawn.y) * scale for edge in drawn.box[1::2])
        x, y = (x_min + x_max - left - right) / 2, (y_min + y_max - up - down) / 2
        box = (x + left, y + up, x + right, y + down)
        size = "big" if radius >= BIG_SHAPE else "small"
        thing = replace(drawn, x=x, y=y, radius=radius, rgb=rgb, box=box, size=size)
        return Item(shape, colour, size, box, thing, thing.point)
