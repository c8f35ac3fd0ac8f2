"""Random scenes of things, shapes and printed lines, in which all can be seen. No torch."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random

import numpy as np

from kestrel_tools.scenes import world as shapes
from kestrel_tools.scenes.world import COLOUR_NAMES, SHAPES, Background, Box, Rgb

from .atlas import Atlas, Sprites
from .colour import contrast
from .decor import draw_decor, draw_sign, grounds_of, moved, reach_of_mark
from .lettering import least_height, line_at, printed_text, reach_of
from .names import KINDS, by_name
from .scene import MOST_ITEMS, MOST_SHAPES, Item, Line, Mark, Placed, Points, Scene, unit_of

LEAST_RADIUS = 11.0  # of a thing, in pixels
OVERLAP = 0.22  # how much of a thing's box the box of another may cover
GAP = 0.01
LEAST_CONTRAST = 2.0  # of print; WCAG asks for 3 where it is large
MOST_LINES = 3
LINES = (48, 40, 9, 3)  # how often a scene has none, one, two and three
DECORATED = 0.4  # of all scenes
ON_A_SIGN = 0.35  # of what is printed
BELOW = 0.5  # of the lines that follow one without a sign, and are set below it
NOTHING_KNOWN = 0.015  # of all scenes: as photographs are to somebody who knows drawings alone
SMALL, BIG = 0.09, 0.135  # radius of the largest small and of the smallest big thing
BETWEEN = 0.6  # of the scenes have things of every size, also of those that are neither
ONE_HAND = 0.5  # of the scenes are drawn by one set, as most pictures are
ALIKE = 0.7  # of those that are there again are drawn as before
OFF_THEME = 0.25  # of the things in a scene of mostly one kind, all the same
LEAST_IN_ROWS = 0.075  # radius of what stands in rows
ONE_SIZE = 0.6  # of the scenes in rows have things of one size


@dataclass(frozen=True, slots=True)
class Mixture:
    """How scenes are peopled."""

    counts: Sequence[int]  # how often a scene has none, one, two things
    # How likely the next thing is one of those that are there already, and how often scenes are so: herds,
    # pairs, and several of one thing among single others.
    again: Mapping[float, int]
    themed: float  # of the scenes have mostly one kind of things
    in_rows: float = 0.0  # of the scenes have them in rows and columns, as people lay things out


USUAL = Mixture((2, 11, 12, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3), {0.0: 30, 0.3: 30, 0.55: 22, 0.88: 18}, 0.25)
# Many, some of them several times, much alike: what is hardest to list and to count.
CROWDED = Mixture(
    (0, 1, 2, 4, 8, 11, 13, 14, 13, 11, 9, 8, 6), {0.0: 16, 0.3: 36, 0.55: 34, 0.88: 14}, 0.55, 0.4
)


@dataclass(slots=True)
class Room:
    """What of the picture is taken. Things may overlap a little in some scenes; shapes and print never do."""

    overlap: float
    solid: list[Box] = field(default_factory=list)
    soft: list[Box] = field(default_factory=list)
    rows: list[tuple[float, float]] = field(default_factory=list)  # middles for what stands in rows

    def place(self, rng: Random, low: Points, high: Points, soft: bool) -> tuple[float, float, Box] | None:
        """Somewhere for what reaches from `low` to `high`; None when nothing was found."""
        if np.any(high - low > 0.98):
            return None
        (left, top), (right, bottom) = low.tolist(), high.tolist()
        for x, y in self._in_rows(low, high) if soft and self.rows else _anywhere(rng, low, high):
            box = (x + left, y + top, x + right, y + bottom)
            if self._is_free(box, soft):
                (self.soft if soft else self.solid).append(box)
                return x, y, box
        return None

    def _in_rows(self, low: Points, high: Points) -> Iterator[tuple[float, float]]:
        (left, top), (right, bottom) = low.tolist(), high.tolist()
        for x, y in self.rows:
            x, y = x - (left + right) / 2, y - (top + bottom) / 2
            if min(x + left, y + top) > 0.005 and max(x + right, y + bottom) < 0.995:
                yield x, y

    def take(self, box: Box) -> bool:
        """This place for something that lies under nothing else, if it is free."""
        if not self._is_free(box, soft=False):
            return False
        self.solid.append(box)
        return True

    def _is_free(self, box: Box, soft: bool) -> bool:
        if not all(apart(box, other) for other in self.solid):
            return False
        if soft and self.overlap:
            return all(shared(box, other) <= self.overlap for other in self.soft)
        return all(apart(box, other) for other in self.soft)


def _anywhere(rng: Random, low: Points, high: Points) -> Iterator[tuple[float, float]]:
    (left, top), (right, bottom) = low.tolist(), high.tolist()
    for _ in range(25):
        yield rng.uniform(0.005 - left, 0.995 - right), rng.uniform(0.005 - top, 0.995 - bottom)


def draw_rows(
    rng: Random, count: int, unit: tuple[float, float]
) -> tuple[list[tuple[float, float]], float] | None:
    """Middles for so many things in rows and columns, in any order, and the largest radius that fits there;
    None where the picture is too narrow for that.
    """
    width, height = rng.uniform(0.75, 1.0), rng.uniform(0.75, 1.0)
    left, top = rng.uniform(0.0, 1 - width), rng.uniform(0.0, 1 - height)
    fitting = []
    for rows in range(1, min(count, 4) + 1):
        columns = math.ceil(count / rows)
        radius = 0.47 * min(width / columns / unit[0], height / rows / unit[1])
        if radius > LEAST_IN_ROWS:
            fitting.append((rows, columns, radius))
    if not fitting:
        return None
    rows, columns, radius = rng.choice(fitting)
    loose = rng.choice((0.0, 0.0, 0.1, 0.3))
    middles = [
        (
            left + width * (column + 0.5 + loose * rng.uniform(-0.5, 0.5)) / columns,
            top + height * (row + 0.5 + loose * rng.uniform(-0.5, 0.5)) / rows,
        )
        for row in range(rows)
        for column in range(columns)
    ]
    rng.shuffle(middles)
    return middles, radius


def apart(a: Box, b: Box) -> bool:
    return a[0] > b[2] + GAP or a[2] < b[0] - GAP or a[1] > b[3] + GAP or a[3] < b[1] - GAP


def shared(a: Box, b: Box) -> float:
    """What two boxes have in common, as a fraction of the smaller."""
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    smaller = min((box[2] - box[0]) * (box[3] - box[1]) for box in (a, b))
    return max(0.0, width) * max(0.0, height) / smaller


def draw_scene(
    rng: Random,
    atlas: Atlas,
    aspect: float,
    pixels: tuple[int, int] = (196, 196),
    most: int = MOST_ITEMS,
    lines_as: Sequence[int] = LINES,
    mixture: Mixture = USUAL,
    words: Callable[[Random], str] = printed_text,
) -> Scene:
    """At most so many items, and lines of print as often as that. All is legible at `pixels` (height, width),
    the size the encoder will see.
    """
    unit, background = unit_of(aspect), shapes.draw_background(rng)
    if rng.random() < NOTHING_KNOWN:
        marks = tuple(mark for _ in range(rng.randint(1, 3)) for mark in draw_decor(rng, unit))
        return Scene(aspect, replace(background, grain=rng.choice((0.02, 0.15, 0.4))), marks=marks)
    marks = draw_decor(rng, unit) if rng.random() < DECORATED else ()
    grounds = grounds_of(background, marks)
    room = Room(OVERLAP if rng.random() < 0.3 else 0.0)
    [num_lines] = rng.choices(range(MOST_LINES + 1), lines_as)
    printed: list[tuple[Line, tuple[Mark, ...]]] = []
    for _ in range(num_lines):
        above = printed[-1][0] if printed and not printed[-1][1] and rng.random() < BELOW else None
        found = _below(rng, atlas, unit, room, pixels, above, words) if above else None
        found = found or _line(rng, atlas, unit, grounds, room, pixels, words)
        if found is not None:
            printed.append(found)
    lines, panels = [line for line, _ in printed], tuple(mark for _, sign in printed for mark in sign)
    items = _items(rng, atlas.sprites, unit, grounds, room, pixels, most, mixture)
    return Scene(
        aspect,
        background,
        tuple(sorted(items, key=lambda item: item.centre)),
        tuple(sorted(lines, key=lambda line: line.centre[::-1])),
        (marks if items or lines else ()) + panels,  # what has nothing else in it is an empty picture
    )


def _items(
    rng: Random,
    sprites: Sprites,
    unit: tuple[float, float],
    grounds: Sequence[Background],
    room: Room,
    pixels: tuple[int, int],
    most: int,
    mixture: Mixture,
) -> list[Item]:
    [count] = rng.choices(range(most + 1), mixture.counts[: most + 1])
    cast = _Cast(rng, sprites, mixture)
    [share_of_shapes] = rng.choices((0.0, 0.35, 1.0), (68, 20, 12))
    shorter = min(unit[0] * pixels[1], unit[1] * pixels[0])
    largest = 0.45 if count <= 2 else 0.36 if count <= 4 else 0.27 if count <= 8 else 0.2
    sizes: tuple[str, ...] = ("small", "", "big") if rng.random() < BETWEEN else ("small", "big")
    edges = rng.random() < 0.3
    if mixture.in_rows and count > 1 and rng.random() < mixture.in_rows:
        found = draw_rows(rng, count, unit)
        if found is not None:
            room.rows, fitting = found
            largest = min(largest, fitting)
            sizes = _fitting(sizes, largest)
            sizes = (rng.choice(sizes),) if rng.random() < ONE_SIZE else sizes
    items: list[Item] = []
    for _ in range(count):
        item: Item | None
        if rng.random() < share_of_shapes and sum(item.is_shape for item in items) < MOST_SHAPES:
            item = _shape(rng, unit, grounds, room, shapes.LEAST_RADIUS / shorter, largest, edges)
        else:
            least = max(0.06, min(LEAST_RADIUS / shorter, 0.12))
            index = cast.draw(rng, grounds)
            item = (
                None
                if index is None
                else _thing(rng, sprites, index, unit, room, least, largest, rng.choice(sizes))
            )
        if item is not None:
            items.append(item)
    return items


def _fitting(sizes: tuple[str, ...], largest: float) -> tuple[str, ...]:
    """Those that things may have whose radius is no larger."""
    least = {"small": 0.0, "": SMALL, "big": BIG}
    return tuple(size for size in sizes if least[size] < largest)


class _Cast:
    """Which things are in a scene: how many of them are alike, of one kind, and drawn by one hand."""

    def __init__(self, rng: Random, sprites: Sprites, mixture: Mixture) -> None:
        self._sprites, self._names = sprites, sorted(sprites.by_name)
        [self._again] = rng.choices(tuple(mixture.again), tuple(mixture.again.values()))
        self._set = rng.choice(sprites.sets) if rng.random() < ONE_HAND else ""  # large ones more often
        theme = rng.choice(tuple(KINDS)) if rng.random() < mixture.themed else ""
        self._of_theme = [name for name in self._names if theme in by_name()[name].kinds] if theme else []
        self._drawn: dict[str, int] = {}  # each thing's first drawing

    def draw(self, rng: Random, grounds: Sequence[Background]) -> int | None:
        """The drawing of the next thing, if one is soon found that can be seen there."""
        if self._drawn and rng.random() < self._again:
            name = rng.choice(tuple(self._drawn))
            if rng.random() < ALIKE:
                return self._drawn[name]
        else:
            name = rng.choice(self._of_theme if self._of_theme and rng.random() > OFF_THEME else self._names)
        index = visible(rng, self._sprites, self._sprites.drawings(name, self._set), grounds)
        if index is not None:
            self._drawn.setdefault(name, index)
        return index


def visible(
    rng: Random, sprites: Sprites, indices: Sequence[int], grounds: Sequence[Background]
) -> int | None:
    """One of the sprites that stands out from the ground and what is on it, if one is soon found."""
    for index in rng.sample(indices, min(3, len(indices))):
        red, green, blue = sprites.means[index].tolist()
        mean = red, green, blue
        if shapes.stands_out(mean, grounds[0], 0.2) and all(
            shapes.stands_out(mean, other, 0.12) for other in grounds[1:]
        ):
            return index
    return None


def _thing(
    rng: Random,
    sprites: Sprites,
    index: int,
    unit: tuple[float, float],
    room: Room,
    least: float,
    largest: float,
    size: str,
) -> Item | None:
    # Small and big leave a gap between them, so that nobody has to guess; what lies in it has no such name.
    small = max(SMALL, least)
    low, high = {"small": (least, small), "": (small, BIG), "big": (BIG, largest)}[size]
    radius = rng.uniform(low, max(low, min(high, largest)))
    angle = max(-0.7, min(0.7, rng.gauss(0, 0.22))) if rng.random() < 0.6 else 0.0
    mirrored = rng.random() < 0.5
    reach = Placed(index, 0.0, 0.0, radius, angle, mirrored).on_picture(sprites.hulls[index], unit)
    place = room.place(rng, reach.min(0), reach.max(0), soft=True)
    if place is None:
        return None
    x, y, box = place
    placed = Placed(index, x, y, radius, angle, mirrored)
    [point] = placed.on_picture(sprites.anchors[index : index + 1], unit).tolist()
    return Item(sprites.names[index], sprites.colours[index], size, box, placed, (point[0], point[1]))


def _shape(
    rng: Random,
    unit: tuple[float, float],
    grounds: Sequence[Background],
    room: Room,
    least: float,
    largest: float,
    edges: bool,
) -> Item | None:
    """As the small world draws it."""
    taken = [*room.solid, *room.soft]
    thing = shapes.draw_thing(
        rng, SHAPES, COLOUR_NAMES, unit, grounds[0], taken, min(least, 0.1), largest, edges
    )
    if thing is None or not all(shapes.stands_out(thing.rgb, other, 0.3) for other in grounds[1:]):
        return None
    room.solid.append(thing.box)
    return Item(thing.shape, thing.colour, thing.size, thing.box, thing, thing.point)


def _line(
    rng: Random,
    atlas: Atlas,
    unit: tuple[float, float],
    grounds: Sequence[Background],
    room: Room,
    pixels: tuple[int, int],
    words: Callable[[Random], str],
) -> tuple[Line, tuple[Mark, ...]] | None:
    """Print, and the sign it is on, if it is on one."""
    text, font = words(rng), rng.randrange(len(atlas.fonts))
    text = atlas.fonts.shown(font, text)
    least = least_height(unit, pixels)
    height = max(least, rng.uniform(0.14, 0.42))
    angle = max(-0.3, min(0.3, rng.gauss(0, 0.1))) if rng.random() < 0.35 else 0.0
    low, high = reach_of(atlas.fonts, font, text, height, angle, unit)
    height *= min(1.0, float(0.94 / (high - low).max()))
    sign = draw_sign(rng) if rng.random() < ON_A_SIGN else None
    rgb = ink_colour(rng, *(grounds if sign is None else [sign.ground]))
    if height < least or rgb is None:
        return None
    flat = reach_of(atlas.fonts, font, text, height, 0.0, unit)
    panel = () if sign is None else sign.around(*flat, angle, unit, rgb)
    low, high = reach_of(atlas.fonts, font, text, height, angle, unit)
    outer = [(low, high), *(reach_of_mark(mark, unit) for mark in panel)]
    furthest = np.min([low for low, _ in outer], 0), np.max([high for _, high in outer], 0)
    place = room.place(rng, *furthest, soft=False)
    if place is None:
        return None
    x, y, _ = place
    corner = (x + float(low[0]), y + float(low[1]))
    line = line_at(atlas.fonts, text, font, height, rgb, unit, corner, (0.0, 0.0), angle)
    return line, tuple(moved(mark, x, y) for mark in panel)


def _below(
    rng: Random,
    atlas: Atlas,
    unit: tuple[float, float],
    room: Room,
    pixels: tuple[int, int],
    above: Line,
    words: Callable[[Random], str],
) -> tuple[Line, tuple[Mark, ...]] | None:
    """Another line in the same letters, as of posters and tickets; None where it has no room there."""
    if above.angle:
        return None
    text = atlas.fonts.shown(above.font, words(rng))
    height = above.height * rng.choice((1.0, 1.0, rng.uniform(0.5, 1.0), rng.uniform(1.0, 1.6)))
    align = rng.choice((0.0, 0.5, 0.5))
    x = above.box[0] + align * (above.box[2] - above.box[0])
    y = above.box[3] + rng.uniform(0.15, 0.6) * height * unit[1]
    line = line_at(atlas.fonts, text, above.font, height, above.rgb, unit, (x, y), (align, 0.0))
    low, high = np.array(line.box[:2]), np.array(line.box[2:])
    if height < least_height(unit, pixels) or low.min() < 0.005 or high.max() > 0.995:
        return None
    return (line, ()) if room.take(line.box) else None


def ink_colour(rng: Random, *grounds: Background) -> Rgb | None:
    """Dark, light or some colour, as long as it stands out from all of them and is brighter or darker."""
    plain: Rgb = (0.03, 0.03, 0.03) if sum(grounds[0].first) > 1.5 else (0.98, 0.98, 0.98)
    shades: list[Rgb] = [shapes.draw_shade(rng, name) for name in rng.sample(COLOUR_NAMES, 4)]
    candidates: list[Rgb] = [*(shades if rng.random() < 0.5 else []), plain]
    for rgb in candidates:
        if all(shapes.stands_out(rgb, ground, 0.6) for ground in grounds) and all(
            contrast(rgb, behind) >= LEAST_CONTRAST
            for ground in grounds
            for behind in (ground.first, ground.second)
        ):
            return rgb
    return None
