"""The sheet that a chart is drawn on: its edges, its print and its strokes. No torch."""

from collections.abc import Sequence
from random import Random

from kestrel_tools.scenes.world import Background, Rgb
from kestrel_tools.things.atlas import Atlas
from kestrel_tools.things.lettering import least_height, line_at, reach_of
from kestrel_tools.things.scene import Line, Mark, unit_of


class Sheet:
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
        self.rng, self.fonts, self.aspect = rng, atlas.fonts, aspect
        self.background, self.ink = background, ink
        self.unit = unit_of(aspect)
        self.font = rng.choice(atlas.fonts.typeset)
        self.height = least_height(self.unit, pixels) * rng.uniform(1.0, 1.35)  # of a letter's cell
        wide = rng.random() < 0.4  # margins
        self.left, self.top = (0.03 + wide * rng.uniform(0, 0.09) for _ in range(2))
        self.right, self.bottom = (0.97 - wide * rng.uniform(0, 0.09) for _ in range(2))
        self.lines: list[Line] = []
        self.marks: list[Mark] = []
        self._widths: dict[tuple[str, float], float] = {}
        self.colour_names: tuple[str, ...] = ()  # of the bars, or one for all of them

    @property
    def letter(self) -> float:
        """About the height of print, as a fraction of the picture."""
        return self.height * self.unit[1] * 0.6

    @property
    def faint(self) -> Rgb:
        """Between the ink and the paper."""
        return mixed(self.background.first, self.ink, 0.25)

    def width(self, text: str) -> float:
        if (known := self._widths.get((text, self.height))) is not None:
            return known
        low, high = reach_of(self.fonts, self.font, text, self.height, 0.0, self.unit)
        width = self._widths[text, self.height] = float(high[0] - low[0])
        return width

    def text(
        self,
        text: str,
        at: tuple[float, float],
        align: tuple[float, float],
        rgb: Rgb | None = None,
        size: float = 1.0,
    ) -> Line:
        height = self.height * size
        line = line_at(self.fonts, text, self.font, height, rgb or self.ink, self.unit, at, align)
        self.lines.append(line)
        return line

    def rule(self, start: tuple[float, float], end: tuple[float, float], width: float, rgb: Rgb) -> None:
        self.marks.append(Mark(start, end, width, False, rgb))


def mixed(one: Rgb, other: Rgb, share: float) -> Rgb:
    """So much of the other."""
    red, green, blue = ((1 - share) * a + share * b for a, b in zip(one, other, strict=True))
    return red, green, blue


def is_low(tops: Sequence[tuple[float, float]], at: int) -> bool:
    """Whether the line comes to this place from above, and would run through what is printed there."""
    return all(tops[other][1] < tops[at][1] for other in (at - 1, at + 1) if 0 <= other < len(tops))
