"""Random bar and line charts with printed labels, values or an axis, and a title. No torch."""

from itertools import pairwise
from random import Random

from kestrel_tools.scenes import world as shapes
from kestrel_tools.scenes.world import COLOUR_NAMES, Background, Box, Rgb
from kestrel_tools.things.atlas import Atlas
from kestrel_tools.things.compose import ink_colour
from kestrel_tools.things.lettering import line_at
from kestrel_tools.things.scene import Chart, Mark, Scene

from .sheet import Sheet, is_low
from .subjects import ANY_WORDS, draw_subject
from .various import draw_various

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
    various: float = 0.0,
) -> Scene | None:
    """A chart that is legible at `pixels` (height, width); None when its labels have no room there.

    `various` of them have other looks and subjects than the scored ones.
    """
    if various and rng.random() < various:
        return draw_various(rng, atlas, aspect, pixels, any_words)
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


class _Drawing(Sheet):
    """One chart of the scored ones on its way to a scene."""

    def scene(self, any_words: float) -> Scene | None:
        rng = self.rng
        kind = rng.choice(("bar", "bar", "line"))
        flat = kind == "bar" and rng.random() < 0.3
        printed = rng.random() < 0.65
        title, family = draw_subject(rng, any_words)
        title = self.fonts.shown(self.font, title)
        family = tuple(self.fonts.shown(self.font, label) for label in family)
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
        chart = Chart(kind, title, tuple(labels), tuple(values), tuple(boxes), self.colour_names)
        lines = tuple(sorted(self.lines, key=lambda line: line.centre[::-1]))
        return Scene(self.aspect, self.background, (), lines, tuple(self.marks), chart)

    def _put_title(self, title: str) -> bool:
        height = self.height * self.rng.uniform(1.0, 1.4)
        middle = self.rng.choice((0.5, 0.5, 0.0))
        x = self.left + middle * (self.right - self.left)
        line = line_at(
            self.fonts, title, self.font, height, self.ink, self.unit, (x, self.top), (middle, 0.0)
        )
        self.lines.append(line)
        self.top = line.box[3] + 0.04
        return line.box[0] > 0.02 and line.box[2] < 0.98

    def _labels(self, family: tuple[str, ...], flat: bool) -> list[str]:
        """As many neighbours from one list as fit beside each other, or below each other if flat."""
        count = self.rng.randint(LEAST_BARS, min(MOST_BARS, len(family)))
        start = self.rng.randrange(len(family) - count + 1)
        labels = list(family[start : start + count])
        if self.rng.random() < 0.15:
            self.rng.shuffle(labels)
        if flat:
            room, needed = self.bottom - self.top, 0.75 * self.height * self.unit[1]
        else:
            needed = max(self.width(label) for label in (*labels, "100")) + 0.015
            room = self.right - self.left - 0.14
        return labels[: min(count, int(room / needed))]

    def _colours(self, count: int, many: bool = True) -> list[Rgb] | None:
        """One for all, or one each; each stands out from the paper."""
        names = self.rng.sample(COLOUR_NAMES, len(COLOUR_NAMES))
        shades = {name: shapes.draw_shade(self.rng, name) for name in names}
        found = [name for name in names if shapes.stands_out(shades[name], self.background, 0.35)]
        if len(found) < count:
            return None
        each = self.rng.random() < 0.4 and many
        self.colour_names = tuple(found[:count] if each else found[:1])
        return [shades[name] for name in self.colour_names] * (count // len(self.colour_names))

    def _headroom(self, most: int) -> float:
        """Where nothing says how long a bar may be, the longest need not reach the end."""
        return most * (self.rng.uniform(1.0, 1.4) if self.rng.random() < 0.5 else 1.0)

    def _ticks(self, most: int) -> list[int]:
        many = self.rng.choice((3, 5, 5, 5, 8))
        step = next(step for step in (1, 2, 5, 10, 20, 25, 50, 100, 200, 250, 500) if most / step <= many)
        return list(range(0, most + step, step))

    def _columns(self, kind: str, labels: list[str], values: list[int], printed: bool) -> list[Box] | None:
        """Upright bars, or dots joined by a line."""
        ticks = [] if printed and self.rng.random() > BOTH else self._ticks(max(values))
        if ticks:
            self.left += max(self.width(str(tick)) for tick in ticks) + 0.03
        letter = self.height * self.unit[1] * 0.6
        self.bottom -= letter + 0.03
        self.top += letter + 0.03 if printed else 0.02
        room, depth = (self.right - self.left) / len(labels), self.bottom - self.top
        if room < max(map(self.width, labels)) + 0.01 or depth < 0.25:
            return None
        top_value = max(ticks) if ticks else self._headroom(max(values))
        colours = self._colours(len(labels), kind == "bar")
        if colours is None:
            return None
        middles = [self.left + (index + 0.5) * room for index in range(len(labels))]
        heights = [depth * value / top_value for value in values]
        end = self.right if self.rng.random() < GRID else self.left + 0.02
        for tick in ticks:
            y = self.bottom - depth * tick / top_value
            self.text(str(tick), (self.left - 0.02, y), (1.0, 0.5))
            self.rule((self.left, y), (end, y), 0.003, self.faint)
        if self.rng.random() < 0.85:
            self.rule((self.left, self.bottom), (self.right, self.bottom), 0.006, self.ink)
        if self.rng.random() < 0.4:
            self.rule((self.left, self.top), (self.left, self.bottom), 0.006, self.ink)
        if self.rng.random() < 0.1:  # a frame
            self.rule((self.left, self.top), (self.right, self.top), 0.004, self.ink)
            self.rule((self.right, self.top), (self.right, self.bottom), 0.004, self.ink)
        tops = [(x, self.bottom - height) for x, height in zip(middles, heights, strict=True)]
        boxes = self._draw_bars(tops, room, colours) if kind == "bar" else self._draw_line(tops, colours[0])
        for at, (label, value, (x, y), box) in enumerate(zip(labels, values, tops, boxes, strict=True)):
            self.text(label, (x, self.bottom + 0.02), (0.5, 0.0))
            if printed and kind == "line" and is_low(tops, at) and self.bottom - box[3] > letter + 0.03:
                self.text(str(value), (x, box[3] + 0.015), (0.5, 0.0))
            elif printed:
                self.text(str(value), (x, min(y, box[1]) - 0.015), (0.5, 1.0))
        return boxes

    def _draw_bars(self, tops: list[tuple[float, float]], room: float, colours: list[Rgb]) -> list[Box]:
        wide = room * self.rng.uniform(0.35, 0.95)
        for (x, y), rgb in zip(tops, colours, strict=True):
            self.marks.append(Mark((x, self.bottom), (x, y), wide / self.unit[0], False, rgb))
        return [(x - wide / 2, y, x + wide / 2, self.bottom) for x, y in tops]

    def _draw_line(self, tops: list[tuple[float, float]], rgb: Rgb) -> list[Box]:
        width = self.rng.uniform(0.008, 0.016)
        for start, end in pairwise(tops):
            self.marks.append(Mark(start, end, width, True, rgb))
        radius = self.rng.uniform(0.014, 0.022)
        for top in tops:
            self.marks.append(Mark(top, top, 2 * radius, True, rgb))
        across, down = radius * self.unit[0], radius * self.unit[1]
        return [(x - across, y - down, x + across, y + down) for x, y in tops]

    def _bars(self, labels: list[str], values: list[int], printed: bool) -> list[Box] | None:
        """Bars that lie, each behind its label."""
        ticks = [] if printed and self.rng.random() > BOTH else self._ticks(max(values))
        self.left += max(map(self.width, labels)) + 0.02
        last = max(self.width(str(value)) for value in values) + 0.03
        self.right -= last if printed else last / 2
        if ticks:
            self.bottom -= self.height * self.unit[1] * 0.6 + 0.03
        room, length = (self.bottom - self.top) / len(labels), self.right - self.left
        colours = self._colours(len(labels))
        if length < 0.25 or colours is None or room < 0.7 * self.height * self.unit[1]:
            return None
        top_value = max(ticks) if ticks else self._headroom(max(values))
        if self.rng.random() < 0.5:
            self.rule((self.left, self.top), (self.left, self.bottom), 0.006, self.ink)
        start = self.top if self.rng.random() < GRID else self.bottom - 0.02
        for tick in ticks:
            x = self.left + length * tick / top_value
            self.text(str(tick), (x, self.bottom + 0.02), (0.5, 0.0))
            self.rule((x, start), (x, self.bottom), 0.003, self.faint)
        wide = room * self.rng.uniform(0.4, 0.92)
        boxes = []
        for index, (label, value, rgb) in enumerate(zip(labels, values, colours, strict=True)):
            y, end = self.top + (index + 0.5) * room, self.left + length * value / top_value
            self.marks.append(Mark((self.left, y), (end, y), wide / self.unit[1], False, rgb))
            self.text(label, (self.left - 0.015, y), (1.0, 0.5))
            if printed:
                self.text(str(value), (end + 0.015, y), (0.0, 0.5))
            boxes.append((self.left, y - wide / 2, end, y + wide / 2))
        return boxes


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
