"""Charts of many looks: lying bars, values within bars, cards, panels, subtitles, bare lines. No torch.

What they show is a `Chart` as that of the scored ones, which `charts` draws.
"""

from itertools import pairwise
from random import Random

from kestrel_tools.scenes import world as shapes
from kestrel_tools.scenes.world import COLOUR_NAMES, Box, Rgb
from kestrel_tools.things.atlas import Atlas
from kestrel_tools.things.colour import contrast
from kestrel_tools.things.compose import ink_colour
from kestrel_tools.things.scene import Chart, Mark, Scene

from .looks import Look, Paper, draw_look, draw_numbers, draw_paper, ticks_of
from .sheet import Sheet, is_low, mixed
from .subjects import Subject, draw_wider_subject

MOST_BARS, LEAST_BARS = 8, 2
TRIES = 5
LEAST_CONTRAST = 3.0  # of small print
LEAST_INSIDE = 2.5  # of a number within its bar
DARK, LIGHT = (0.05, 0.05, 0.05), (0.98, 0.98, 0.98)


def draw_various(
    rng: Random, atlas: Atlas, aspect: float, pixels: tuple[int, int], any_words: float
) -> Scene | None:
    """A chart of any look; None when no try leaves room enough for its print."""
    for tried in range(TRIES):
        look, paper = draw_look(rng), draw_paper(rng)
        if tried > 1:
            look = look._replace(letters=1.0, title=min(look.title, 1.2))
        scene = _Drawing(rng, atlas, aspect, pixels, look, paper).scene(draw_wider_subject(rng, any_words))
        if scene is not None:
            return scene
    return None


class _Drawing(Sheet):
    def __init__(
        self, rng: Random, atlas: Atlas, aspect: float, pixels: tuple[int, int], look: Look, paper: Paper
    ) -> None:
        behind = paper.behind_print
        light = sum(behind.first) > 1.5
        tint = ink_colour(rng, behind, paper.behind_bars) if rng.random() < 0.2 else None
        if tint is None or contrast(tint, behind.first) < LEAST_CONTRAST:
            tint = DARK if light else LIGHT
        super().__init__(rng, atlas, aspect, pixels, behind, tint)
        self.look, self.paper = look, paper
        self._last = 0.0  # room beside the longest of lying bars
        self.height *= look.letters
        if paper.card is not None:
            edge = rng.uniform(0.03, 0.06)
            self._rectangle((edge, edge, 1 - edge, 1 - edge), paper.card)
            inner = edge + rng.uniform(0.025, 0.045)
            self.left, self.top, self.right, self.bottom = inner, inner, 1 - inner, 1 - inner

    def scene(self, subject: Subject) -> Scene | None:
        title, subtitle, axis = (
            self.fonts.shown(self.font, text) for text in (subject.title, subject.subtitle, subject.axis)
        )
        known = tuple(self.fonts.shown(self.font, label) for label in subject.labels)
        if title and not self._put_title(title, subtitle):
            return None
        labels = self._labels(known)
        if len(labels) < LEAST_BARS + (self.look.kind == "line"):
            return None
        values, ticks = draw_numbers(self.rng, len(labels), bool(self.look.values), subject.cap)
        if self.look.kind == "line" and self.rng.random() < 0.35:
            values.sort(reverse=self.rng.random() < 0.5)
        elif self.look.kind == "bar" and self.rng.random() < 0.15:
            values.sort(reverse=self.rng.random() < 0.7)
        colours = self._colours(len(labels))
        if colours is None:
            return None
        shown_ticks = ticks if self.look.axis else []
        draw = self._lying if self.look.flat else self._upright
        boxes = draw(labels, values, shown_ticks, colours, axis)
        if boxes is None or any(not 0.005 < edge < 0.995 for line in self.lines for edge in line.box):
            return None
        chart = Chart(self.look.kind, title, tuple(labels), tuple(values), tuple(boxes), self.colour_names)
        lines = tuple(sorted(self.lines, key=lambda line: line.centre[::-1]))
        return Scene(self.aspect, self.paper.ground, (), lines, tuple(self.marks), chart)

    def _rectangle(self, box: Box, rgb: Rgb) -> None:
        x, wide = (box[0] + box[2]) / 2, (box[2] - box[0]) / self.unit[0]
        self.marks.append(Mark((x, box[3]), (x, box[1]), wide, False, rgb))

    def _put_title(self, title: str, subtitle: str) -> bool:
        """The title is larger than what is below it."""
        room, align = self.right - self.left, self.look.align
        size = min(max(self.look.title, 1.35 if subtitle else 1.0), room / self.width(title))
        if size < (1.3 if subtitle else 1.0):
            return False
        tint = None
        if self.rng.random() < 0.2:
            tint = ink_colour(self.rng, self.background)
        x = self.left + align * room
        line = self.text(title, (x, self.top), (align, 0.0), tint, size)
        self.top = line.box[3] + 0.02
        if subtitle:
            if self.width(subtitle) > room:
                return False
            soft = mixed(self.ink, self.background.first, self.rng.choice((0.0, 0.2, 0.3)))
            line = self.text(subtitle, (x, self.top + 0.005), (align, 0.0), soft)
            self.top = line.box[3] + 0.02
        elif self.rng.random() < 0.15:
            self.rule((self.left, self.top), (self.right, self.top), 0.005, mixed(self.ink, self.faint, 0.5))
        self.top += 0.025
        return self.top < 0.45

    def _labels(self, known: tuple[str, ...]) -> list[str]:
        """As many as fit, from one list; long ones only where bars lie."""
        rng = self.rng
        count = rng.randint(LEAST_BARS + (rng.random() < 0.7), min(MOST_BARS, len(known)))
        start = rng.randrange(len(known) - count + 1)
        labels = list(known[start : start + count])
        if rng.random() < 0.12:
            rng.shuffle(labels)
        across = (self.right - self.left - 0.12) / (max(map(self.width, (*labels, "5000"))) + 0.025)
        if across < min(count, 3) and self.look.kind == "bar":
            self.look = self.look._replace(flat=True)
        if self.look.flat:
            across = (self.bottom - self.top - (self.letter + 0.03) * self.look.axis) / (1.45 * self.letter)
        return labels[: min(count, int(across))]

    def _colours(self, count: int) -> list[Rgb] | None:
        """They stand out from what is behind them, and numbers within them can be read."""
        rng, behind = self.rng, self.paper.behind_bars
        names = rng.sample(COLOUR_NAMES, len(COLOUR_NAMES))
        shades = {name: shapes.draw_shade(rng, name) for name in names}
        least = 0.6 if self.look.kind == "line" else 0.4
        found = [name for name in names if shapes.stands_out(shades[name], behind, least)]
        match self.look.colours:
            case "each":
                chosen = found[:count]
            case "one other":
                chosen = [found[0]] * count
                chosen[rng.randrange(count)] = found[1]
            case _:
                chosen = [found[0]] * count
        if len(chosen) < count:
            return None
        self.colour_names = tuple(chosen) if len({*chosen}) > 1 else (chosen[0],)
        return [shades[name] for name in chosen]

    def _thinned(self, ticks: list[int], each: float, room: float, most: int) -> list[int]:
        """Fewer, where their numbers would touch each other."""
        many = len(ticks) - 1
        while many > 1 and each * len(ticks) > room:
            many -= 1
            ticks = ticks_of(most, many)
        return ticks

    def _panel(self, ticks: list[int], top_value: float) -> None:
        """What lies behind the bars: a panel, a grid, the axis with its numbers, a frame."""
        rng, panel, flat = self.rng, self.paper.panel, self.look.flat
        left, top, right, bottom = self.left, self.top, self.right, self.bottom
        beyond = self.look.values == "end"  # numbers at the ends of bars lie within a frame too
        far = right + beyond * flat * self._last, top - beyond * (not flat) * (self.letter + 0.02)
        if panel is not None:
            self._rectangle((left, far[1], far[0], bottom), panel)
        light = mixed(self.paper.behind_bars.first, self.ink, 0.25)
        if panel is not None and rng.random() < 0.5:
            light = (1.0, 1.0, 1.0)
        bare = [top_value * n / 4 for n in range(5)] if not ticks and rng.random() < 0.2 else []
        for tick in ticks or bare:
            share, through = tick / top_value, bool(bare) or self.look.grid == "all"
            if flat:
                x = left + share * (right - left)
                start, end = (x, top if through else bottom - 0.02), (x, bottom)
            else:
                y = bottom - share * (bottom - top)
                start, end = (left, y), (right if through else left + 0.02, y)
            if bare or self.look.grid:
                self.rule(start, end, 0.004, light if through else self.ink)
            if ticks and flat:
                self.text(str(tick), (end[0], bottom + 0.02), (0.5, 0.0))
            elif ticks:
                self.text(str(tick), (left - 0.02, start[1]), (1.0, 0.5))
        if rng.random() < 0.7:
            corner = (left, top) if flat else (right, bottom)
            self.rule((left, bottom), corner, rng.choice((0.004, 0.007, 0.012)), self.ink)
        if rng.random() < 0.12:
            for start, end in pairwise(((left, bottom), (left, far[1]), far, (far[0], bottom))):
                self.rule(start, end, 0.004, self.ink)

    def _upright(
        self, labels: list[str], values: list[int], ticks: list[int], colours: list[Rgb], axis: str
    ) -> list[Box] | None:
        """Columns, or a line."""
        if ticks:
            self.left += max(self.width(str(tick)) for tick in ticks) + 0.03
        if axis:
            line = self.text(axis, ((self.left + self.right) / 2, self.bottom), (0.5, 1.0))
            self.bottom = line.box[1] - 0.01
        self.bottom -= self.letter + 0.03
        self.top += self.letter + 0.02 if self.look.values == "end" or ticks else 0.0
        room, depth = (self.right - self.left) / len(labels), self.bottom - self.top
        texts = [*labels, *(map(str, values) if self.look.values else ())]
        if room < max(map(self.width, texts)) + 0.012 or depth < 0.28:
            return None
        ticks = self._thinned(ticks, 1.3 * self.letter, depth, max(values))
        top_value = float(max(ticks)) if ticks else max(values) * self.rng.choice((1.0, 1.0, 1.1, 1.3))
        self._panel(ticks, top_value)
        below = self.letter + 0.03 if self.look.kind == "line" and not ticks else 0.0  # room for a number
        tops = [
            (self.left + (at + 0.5) * room, self.bottom - below - (depth - below) * value / top_value)
            for at, value in enumerate(values)
        ]
        if self.look.kind == "line":
            boxes = self._joined(tops, colours[0])
        else:
            wide = room * self.look.wide
            boxes = [(x - wide / 2, y, x + wide / 2, self.bottom) for x, y in tops]
            self._bars(boxes, colours)
        inks = self._inks_inside(boxes, values, colours)
        if inks is None:
            return None
        for at, (label, value, (x, y), box) in enumerate(zip(labels, values, tops, boxes, strict=True)):
            self.text(label, (x, self.bottom + 0.02), (0.5, 0.0))
            if inks:
                self.text(str(value), (x, y + 0.015), (0.5, 0.0), inks[at])
            elif self.look.values and self.look.kind == "bar":
                self.text(str(value), (x, box[1] - 0.015), (0.5, 1.0))
            elif self.look.values and not self._number_at(value, tops, at, box):
                return None
        return boxes

    def _number_at(self, value: int, tops: list[tuple[float, float]], at: int, box: Box) -> bool:
        """A number at a place of the line, where the line does not run through it; false where it would."""
        x = tops[at][0]
        if is_low(tops, at):
            self.text(str(value), (x, box[3] + 0.015), (0.5, 0.0))
            return self.bottom - box[3] > self.letter + 0.025
        before, after = tops[max(at - 1, 0)][1], tops[min(at + 1, len(tops) - 1)][1]
        aside = 0.5 if before >= tops[at][1] <= after else 0.1 if before < after else 0.9
        self.text(str(value), (x, box[1] - 0.012), (aside, 1.0))
        return True

    def _lying(
        self, labels: list[str], values: list[int], ticks: list[int], colours: list[Rgb], axis: str
    ) -> list[Box] | None:
        """Bars that lie, each behind its label; the axis of the labels has no name here."""
        self.left += max(map(self.width, labels)) + 0.025
        last = max(map(self.width, map(str, (*values, *ticks))))
        self._last = last + 0.03 if self.look.values == "end" else last / 2
        self.right -= self._last
        if ticks:
            self.bottom -= self.letter + 0.03
        room, length = (self.bottom - self.top) / len(labels), self.right - self.left
        if length < 0.28 or room < 1.3 * self.letter:
            return None
        most = max((self.width(str(tick)) for tick in ticks), default=0.0)
        ticks = self._thinned(ticks, most + 0.025, length, max(values))
        top_value = float(max(ticks)) if ticks else max(values) * self.rng.choice((1.0, 1.0, 1.1, 1.3))
        self._panel(ticks, top_value)
        wide, boxes = room * self.look.wide, []
        for at, value in enumerate(values):
            y = self.top + (at + 0.5) * room
            boxes.append((self.left, y - wide / 2, self.left + length * value / top_value, y + wide / 2))
        self._bars(boxes, colours)
        inks = self._inks_inside(boxes, values, colours)
        if inks is None:
            return None
        for at, (label, value, box) in enumerate(zip(labels, values, boxes, strict=True)):
            y = (box[1] + box[3]) / 2
            self.text(label, (self.left - 0.015, y), (1.0, 0.5))
            if inks:
                self.text(str(value), (box[2] - 0.015, y), (1.0, 0.5), inks[at])
            elif self.look.values:
                self.text(str(value), (box[2] + 0.015, y), (0.0, 0.5))
        return boxes

    def _bars(self, boxes: list[Box], colours: list[Rgb]) -> None:
        """From the axis to the value: their corners square, or those away from the axis round."""
        flat, edge = self.look.flat, 0.004
        for box, rgb in zip(boxes, colours, strict=True):
            left, top, right, bottom = box
            if self.look.ends == "edged":
                x, y = edge * self.unit[0], edge * self.unit[1]
                self._rectangle((left - x, top - y, right + x, bottom + y), mixed(rgb, self.ink, 0.6))
            wide = (bottom - top) / self.unit[1] if flat else (right - left) / self.unit[0]
            across = wide / 2 * self.unit[0 if flat else 1]
            long = right - left if flat else bottom - top
            if self.look.ends != "round" or long < 2.2 * across:
                self._rectangle(box, rgb)
                continue
            if flat:
                y = (top + bottom) / 2
                self.marks.append(Mark((left + across, y), (right - across, y), wide, True, rgb))
                self._rectangle((left, top, right - across, bottom), rgb)
            else:
                x = (left + right) / 2
                self.marks.append(Mark((x, bottom - across), (x, top + across), wide, True, rgb))
                self._rectangle((left, top + across, right, bottom), rgb)

    def _inks_inside(self, boxes: list[Box], values: list[int], colours: list[Rgb]) -> list[Rgb] | None:
        """The ink of each number that is within its bar; None where one has no room, or no contrast."""
        if self.look.values != "inside":
            return []
        inks = []
        for (left, top, right, bottom), value, rgb in zip(boxes, values, colours, strict=True):
            ink = max((DARK, LIGHT), key=lambda one: contrast(one, rgb))
            if right - left < self.width(str(value)) + 0.03 or bottom - top < self.letter + 0.03:
                break
            if contrast(ink, rgb) < LEAST_INSIDE:
                break
            inks.append(ink)
        return inks if len(inks) == len(boxes) else None

    def _joined(self, tops: list[tuple[float, float]], rgb: Rgb) -> list[Box]:
        """A line through all, and dots on it or none."""
        rng, dots = self.rng, self.look.dots
        width = rng.choice((0.006, 0.01, 0.015, 0.022))
        for start, end in pairwise(tops):
            self.marks.append(Mark(start, end, width, True, rgb))
        radius = max(width, rng.uniform(0.013, 0.024))
        across, down = radius * self.unit[0], radius * self.unit[1]
        for x, y in tops:
            if dots == "square":
                self._rectangle((x - across, y - down, x + across, y + down), rgb)
            elif dots:
                self.marks.append(Mark((x, y), (x, y), 2 * radius, True, rgb))
            if dots == "ring":
                self.marks.append(Mark((x, y), (x, y), 1.1 * radius, True, self.paper.behind_bars.first))
        return [(x - across, y - down, x + across, y + down) for x, y in tops]
