"""Random bar and line charts with printed labels, values or an axis, and a title. No torch."""

from collections.abc import Sequence
from itertools import pairwise
from random import Random

from kestrel_tools.scenes import world as shapes
from kestrel_tools.scenes.world import COLOUR_NAMES, Background, Box, Rgb

from .atlas import Atlas
from .compose import ink_colour
from .lettering import least_height, line_at, reach_of
from .scene import Chart, Line, Mark, Scene, unit_of
from .subjects import ANY_WORDS, draw_subject

MOST_BARS = 7
LEAST_BARS = 2
GRID = 0.75  # of the charts with an axis have lines all through
BOTH = 0.15  # of the charts with printed values have an axis too
LEAST_PRINTED = 1 / 12  # of the largest value
LEAST_MEASURED = 1 / 5  # where the axis alone tells it: 5 % of a shorter bar are less than a pixel
APART = 0.06  # of the largest value, that the two largest and the two smallest must differ by


def draw_chart(
    rng: Random,
    atlas: Atlas,
    aspect: float,
    pixels: tuple[int, int] = (196, 196),
    any_words: float = ANY_WORDS,
) -> Scene | None:
    """A chart that is legible at `pixels` (height, width); None when its labels have no room there."""
    background = _paper(rng)
    ink = ink_colour(rng, background) if rng.random() < 0.3 else None
    if ink is None or not shapes.stands_out(ink, background, 0.8):
        ink = _plain_ink(background)
    return _Drawing(rng, atlas, aspect, pixels, background, ink).scene(any_words)


def _paper(rng: Random) -> Background:
    light = rng.random() < 0.8
    grey = rng.uniform(0.9, 1.0) if light else rng.uniform(0.0, 0.15)
    first = (
        (1.0, 1.0, 1.0)
        if rng.random() < 0.4
        else tuple(min(1.0, max(0.0, grey + rng.uniform(-0.06, 0.06))) for _ in range(3))
    )
    red, green, blue = first
    return Background("plain", (red, green, blue), (red, green, blue), 0.0, 0.1, 0.01 * (rng.random() < 0.2))


def _plain_ink(background: Background) -> Rgb:
    return (0.05, 0.05, 0.05) if sum(background.first) > 1.5 else (0.97, 0.97, 0.97)


class _Drawing:
    """One chart on its way to a scene: the plot's edges move inwards as print takes its room."""

    def __init__(
        self,
        rng: Random,
        atlas: Atlas,
        aspect: float,
        pixels: tuple[int, int],
        background: Background,
        ink: Rgb,
    ) -> None:
        self._rng, self._fonts, self._aspect, self._background, self._ink = (
            rng,
            atlas.fonts,
            aspect,
            background,
            ink,
        )
        self._unit = unit_of(aspect)
        self._font = rng.randrange(len(atlas.fonts))
        least = least_height(self._unit, pixels)
        self._height = least * rng.uniform(1.0, 1.35)  # of a letter's cell
        wide = rng.random() < 0.4  # margins
        self._left, self._top = (0.03 + wide * rng.uniform(0, 0.09) for _ in range(2))
        self._right, self._bottom = (0.97 - wide * rng.uniform(0, 0.09) for _ in range(2))
        self._lines: list[Line] = []
        self._marks: list[Mark] = []
        self._colour_names: tuple[str, ...] = ()

    def scene(self, any_words: float) -> Scene | None:
        rng = self._rng
        kind = rng.choice(("bar", "bar", "line"))
        flat = kind == "bar" and rng.random() < 0.3
        printed = rng.random() < 0.65
        title, family = draw_subject(rng, any_words)
        title = self._fonts.shown(self._font, title)
        family = tuple(self._fonts.shown(self._font, label) for label in family)
        if title and not self._put_title(title):
            return None
        labels = self._labels(family, flat)
        if len(labels) < LEAST_BARS:
            return None
        values = _values(rng, len(labels), LEAST_PRINTED if printed else LEAST_MEASURED)
        if kind == "line" and rng.random() < 0.35:  # one that rises or falls all the way
            values.sort(reverse=rng.random() < 0.5)
        boxes = self._bars(labels, values, printed) if flat else self._columns(kind, labels, values, printed)
        if boxes is None:
            return None
        chart = Chart(kind, title, tuple(labels), tuple(values), tuple(boxes), self._colour_names)
        lines = tuple(sorted(self._lines, key=lambda line: line.centre[::-1]))
        return Scene(self._aspect, self._background, (), lines, tuple(self._marks), chart)

    def _put_title(self, title: str) -> bool:
        height = self._height * self._rng.uniform(1.0, 1.4)
        middle = self._rng.choice((0.5, 0.5, 0.0))
        x = self._left + middle * (self._right - self._left)
        line = line_at(
            self._fonts, title, self._font, height, self._ink, self._unit, (x, self._top), (middle, 0.0)
        )
        self._lines.append(line)
        self._top = line.box[3] + 0.04
        return line.box[0] > 0.02 and line.box[2] < 0.98

    def _labels(self, family: tuple[str, ...], flat: bool) -> list[str]:
        """As many neighbours from one list as fit beside each other, or below each other if flat."""
        count = self._rng.randint(LEAST_BARS, min(MOST_BARS, len(family)))
        start = self._rng.randrange(len(family) - count + 1)
        labels = list(family[start : start + count])
        if self._rng.random() < 0.15:
            self._rng.shuffle(labels)
        if flat:
            room, needed = self._bottom - self._top, 0.75 * self._height * self._unit[1]
        else:
            needed = max(self._width(label) for label in (*labels, "100")) + 0.015
            room = self._right - self._left - 0.14
        return labels[: min(count, int(room / needed))]

    def _width(self, text: str) -> float:
        low, high = reach_of(self._fonts, self._font, text, self._height, 0.0, self._unit)
        return float(high[0] - low[0])

    def _text(self, text: str, at: tuple[float, float], align: tuple[float, float]) -> Line:
        line = line_at(self._fonts, text, self._font, self._height, self._ink, self._unit, at, align)
        self._lines.append(line)
        return line

    def _colours(self, count: int, many: bool = True) -> list[Rgb] | None:
        """One for all, or one each; each stands out from the paper."""
        names = self._rng.sample(COLOUR_NAMES, len(COLOUR_NAMES))
        shades = {name: shapes.draw_shade(self._rng, name) for name in names}
        found = [name for name in names if shapes.stands_out(shades[name], self._background, 0.35)]
        if len(found) < count:
            return None
        each = self._rng.random() < 0.4 and many
        self._colour_names = tuple(found[:count] if each else found[:1])
        return [shades[name] for name in self._colour_names] * (count // len(self._colour_names))

    def _line_mark(
        self, start: tuple[float, float], end: tuple[float, float], width: float, rgb: Rgb
    ) -> None:
        self._marks.append(Mark(start, end, width, False, rgb))

    def _headroom(self, most: int) -> float:
        """Where nothing says how long a bar may be, the longest need not reach the end."""
        return most * (self._rng.uniform(1.0, 1.4) if self._rng.random() < 0.5 else 1.0)

    def _ticks(self, most: int) -> list[int]:
        many = self._rng.choice((3, 5, 5, 5, 8))
        step = next(step for step in (1, 2, 5, 10, 20, 25, 50, 100, 200, 250, 500) if most / step <= many)
        return list(range(0, most + step, step))

    def _columns(self, kind: str, labels: list[str], values: list[int], printed: bool) -> list[Box] | None:
        """Upright bars, or dots joined by a line."""
        ticks = [] if printed and self._rng.random() > BOTH else self._ticks(max(values))
        if ticks:
            self._left += max(self._width(str(tick)) for tick in ticks) + 0.03
        letter = self._height * self._unit[1] * 0.6
        self._bottom -= letter + 0.03
        self._top += letter + 0.03 if printed else 0.02
        room, depth = (self._right - self._left) / len(labels), self._bottom - self._top
        if room < max(map(self._width, labels)) + 0.01 or depth < 0.25:
            return None
        top_value = max(ticks) if ticks else self._headroom(max(values))
        colours = self._colours(len(labels), kind == "bar")
        if colours is None:
            return None
        middles = [self._left + (index + 0.5) * room for index in range(len(labels))]
        heights = [depth * value / top_value for value in values]
        end = self._right if self._rng.random() < GRID else self._left + 0.02
        for tick in ticks:
            y = self._bottom - depth * tick / top_value
            self._text(str(tick), (self._left - 0.02, y), (1.0, 0.5))
            self._line_mark((self._left, y), (end, y), 0.003, self._faint)
        if self._rng.random() < 0.85:
            self._line_mark((self._left, self._bottom), (self._right, self._bottom), 0.006, self._ink)
        if self._rng.random() < 0.4:
            self._line_mark((self._left, self._top), (self._left, self._bottom), 0.006, self._ink)
        if self._rng.random() < 0.1:  # a frame
            self._line_mark((self._left, self._top), (self._right, self._top), 0.004, self._ink)
            self._line_mark((self._right, self._top), (self._right, self._bottom), 0.004, self._ink)
        tops = [(x, self._bottom - height) for x, height in zip(middles, heights, strict=True)]
        boxes = self._draw_bars(tops, room, colours) if kind == "bar" else self._draw_line(tops, colours[0])
        for at, (label, value, (x, y), box) in enumerate(zip(labels, values, tops, boxes, strict=True)):
            self._text(label, (x, self._bottom + 0.02), (0.5, 0.0))
            if printed and kind == "line" and _is_low(tops, at) and self._bottom - box[3] > letter + 0.03:
                self._text(str(value), (x, box[3] + 0.015), (0.5, 0.0))
            elif printed:
                self._text(str(value), (x, min(y, box[1]) - 0.015), (0.5, 1.0))
        return boxes

    def _draw_bars(self, tops: list[tuple[float, float]], room: float, colours: list[Rgb]) -> list[Box]:
        wide = room * self._rng.uniform(0.35, 0.95)
        for (x, y), rgb in zip(tops, colours, strict=True):
            self._marks.append(Mark((x, self._bottom), (x, y), wide / self._unit[0], False, rgb))
        return [(x - wide / 2, y, x + wide / 2, self._bottom) for x, y in tops]

    def _draw_line(self, tops: list[tuple[float, float]], rgb: Rgb) -> list[Box]:
        width = self._rng.uniform(0.008, 0.016)
        for start, end in pairwise(tops):
            self._marks.append(Mark(start, end, width, True, rgb))
        radius = self._rng.uniform(0.014, 0.022)
        for top in tops:
            self._marks.append(Mark(top, top, 2 * radius, True, rgb))
        across, down = radius * self._unit[0], radius * self._unit[1]
        return [(x - across, y - down, x + across, y + down) for x, y in tops]

    def _bars(self, labels: list[str], values: list[int], printed: bool) -> list[Box] | None:
        """Bars that lie, each behind its label."""
        ticks = [] if printed and self._rng.random() > BOTH else self._ticks(max(values))
        self._left += max(map(self._width, labels)) + 0.02
        last = max(self._width(str(value)) for value in values) + 0.03
        self._right -= last if printed else last / 2
        if ticks:
            self._bottom -= self._height * self._unit[1] * 0.6 + 0.03
        room, length = (self._bottom - self._top) / len(labels), self._right - self._left
        colours = self._colours(len(labels))
        if length < 0.25 or colours is None or room < 0.7 * self._height * self._unit[1]:
            return None
        top_value = max(ticks) if ticks else self._headroom(max(values))
        if self._rng.random() < 0.5:
            self._line_mark((self._left, self._top), (self._left, self._bottom), 0.006, self._ink)
        start = self._top if self._rng.random() < GRID else self._bottom - 0.02
        for tick in ticks:
            x = self._left + length * tick / top_value
            self._text(str(tick), (x, self._bottom + 0.02), (0.5, 0.0))
            self._line_mark((x, start), (x, self._bottom), 0.003, self._faint)
        wide = room * self._rng.uniform(0.4, 0.92)
        boxes = []
        for index, (label, value, rgb) in enumerate(zip(labels, values, colours, strict=True)):
            y, end = self._top + (index + 0.5) * room, self._left + length * value / top_value
            self._marks.append(Mark((self._left, y), (end, y), wide / self._unit[1], False, rgb))
            self._text(label, (self._left - 0.015, y), (1.0, 0.5))
            if printed:
                self._text(str(value), (end + 0.015, y), (0.0, 0.5))
            boxes.append((self._left, y - wide / 2, end, y + wide / 2))
        return boxes

    @property
    def _faint(self) -> Rgb:
        """Between the ink and the paper."""
        paper = self._background.first
        red, green, blue = (0.75 * p + 0.25 * i for p, i in zip(paper, self._ink, strict=True))
        return red, green, blue


def _is_low(tops: Sequence[tuple[float, float]], at: int) -> bool:
    """Whether the line comes to this place from above, and would run through what is printed there."""
    return all(tops[other][1] < tops[at][1] for other in (at - 1, at + 1) if 0 <= other < len(tops))


def _values(rng: Random, count: int, least: float) -> list[int]:
    """Whole numbers of which one is clearly the largest and one clearly the smallest; none is below `least`,
    a fraction of what the largest may be.
    """
    most = rng.choice((10, 20, 50, 100, 100, 500, 900))
    while True:
        values = [rng.randint(max(1, int(most * least)), most) for _ in range(count)]
        ordered = sorted(values)
        gap = max(1.0, APART * ordered[-1])
        if ordered[1] - ordered[0] >= gap and ordered[-1] - ordered[-2] >= gap:
            return values
