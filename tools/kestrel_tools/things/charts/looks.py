"""How a chart may look, and which numbers it may show, beyond the scored charts. No torch."""

import colorsys
from random import Random
from typing import NamedTuple

from kestrel_tools.scenes.world import Background, Rgb

from .sheet import mixed

WHITE: Rgb = (1.0, 1.0, 1.0)
STEPS = (1, 2, 5, 10, 20, 25, 50, 100, 200, 250, 500, 1000, 2000, 2500, 5000, 10_000)
SCALES = (8, 10, 15, 20, 30, 50, 60, 100, 100, 200, 400, 900, 1500, 4000, 9000)  # what values may reach
APART = 0.06  # of the largest value, as in the scored charts
LEAST_PRINTED, LEAST_MEASURED = 1 / 12, 1 / 5  # of the largest value, as there
EQUAL, DOUBLE = 0.35, 0.2  # how many have two that are equal, and one that is twice another


class Paper(NamedTuple):
    """The ground of the picture; a card on it that holds the chart; what lies behind the bars alone."""

    ground: Background
    card: Rgb | None = None
    panel: Rgb | None = None

    @property
    def behind_print(self) -> Background:
        return self.ground if self.card is None else plain(self.card)

    @property
    def behind_bars(self) -> Background:
        return self.behind_print if self.panel is None else plain(self.panel)


class Look(NamedTuple):
    kind: str
    flat: bool
    values: str  # "end" of the bars, "inside", or empty
    axis: bool  # with numbers
    grid: str  # "all" through, "short" at the axis, or empty
    letters: float  # their size, in least ones
    title: float
    align: float  # of the title
    wide: float  # a bar, of its room
    ends: str  # of bars: "plain", "round", "edged"
    dots: str  # of a line: "dot", "ring", "square", or empty
    colours: str  # "one", "each", "one other"


def plain(rgb: Rgb) -> Background:
    return Background("plain", rgb, rgb, 0.0, 0.1, 0.0)


def draw_look(rng: Random) -> Look:
    kind = rng.choice(("bar", "bar", "bar", "line"))
    values = rng.choice(("end", "end", "end", "inside", ""))
    if kind == "line" and values:
        values = "end"
    wide = rng.choice((rng.uniform(0.12, 0.3), rng.uniform(0.3, 0.7), rng.uniform(0.7, 0.92)))
    return Look(
        kind=kind,
        flat=kind == "bar" and rng.random() < 0.45,
        values=values,
        axis=not values or rng.random() < 0.25,
        grid=rng.choice(("all", "all", "short", "")),
        letters=rng.choice((1.0, 1.0, 1.2, 1.5)),
        title=rng.choice((1.0, 1.2, 1.4, 1.7, 2.1)),
        align=rng.choice((0.5, 0.5, 0.0, 0.0, 1.0)),
        wide=max(wide, 0.4) if values == "inside" else wide,
        ends=rng.choice(("plain", "plain", "plain", "round", "edged")),
        dots=rng.choice(("dot", "dot", "ring", "square", "")),
        colours=rng.choice(("one", "one", "each", "each", "one other")) if kind == "bar" else "one",
    )


def draw_paper(rng: Random) -> Paper:
    """White, grey, dark or in a colour; now and then a card on it, or a panel behind the bars."""
    chance = rng.random()
    if chance < 0.2:
        return Paper(plain(WHITE))
    if chance < 0.35:
        return Paper(plain(_shade(rng, (0.0, 0.3), (0.02, 0.22))))
    if chance < 0.55:
        return Paper(plain(_shade(rng, (0.04, 0.25), (0.9, 1.0))))
    if chance < 0.75:
        paper = rng.choice((WHITE, WHITE, _shade(rng, (0.0, 0.08), (0.94, 1.0))))
        grey = _shade(rng, (0.0, 0.12), (0.84, 0.94))
        return Paper(plain(paper), panel=grey if rng.random() < 0.7 else mixed(paper, grey, 0.6))
    first = _shade(rng, (0.1, 0.8), (0.25, 0.95))
    second = mixed(first, _shade(rng, (0.2, 0.8), (0.3, 0.9)), 0.4)
    kind = rng.choice(("plain", "plain", "gradient"))
    ground = Background(kind, first, first if kind == "plain" else second, rng.uniform(0, 6), 0.1, 0.0)
    dark = rng.random() < 0.15
    return Paper(ground, card=_shade(rng, (0.0, 0.1), (0.05, 0.15) if dark else (0.95, 1.0)))


def _shade(rng: Random, saturation: tuple[float, float], value: tuple[float, float]) -> Rgb:
    return colorsys.hsv_to_rgb(rng.random(), rng.uniform(*saturation), rng.uniform(*value))


def draw_ticks(rng: Random, most: int) -> list[int]:
    return ticks_of(most, rng.choice((3, 5, 5, 5, 8)))


def ticks_of(most: int, many: int) -> list[int]:
    """From zero to the largest value or beyond it, in steps of which it takes so many at most."""
    step = next(step for step in STEPS if most / step <= many)
    return list(range(0, most + step, step))


def draw_numbers(rng: Random, count: int, printed: bool, cap: int) -> tuple[list[int], list[int]]:
    """Values, and the numbers of an axis for them; where nothing else tells a value, most lie at such a
    number or in the middle between two.

    One is clearly the largest and one clearly the smallest, as in the scored charts.
    """
    least = LEAST_PRINTED if printed else LEAST_MEASURED
    while True:
        most = rng.choice([most for most in SCALES if most <= cap])
        grains = [grain for grain in (1, 1, 5, 10, 50, 100) if 10 * grain <= most <= 100 * max(grain, 9)]
        grain = rng.choice(grains or [1])
        lowest = max(1, -int(-most * least // grain))
        values = [grain * rng.randint(lowest, most // grain) for _ in range(count)]
        ticks = draw_ticks(rng, max(values))
        half = ticks[1] / 2 if ticks[1] % 2 == 0 else ticks[1]
        if not printed and rng.random() < 0.7:
            values = [int(half * max(1, round(value / half))) for value in values]
        if count > 3 and rng.random() < EQUAL:
            ordered = sorted(values)
            values[values.index(ordered[1])] = ordered[2]
        if printed and rng.random() < DOUBLE:
            one, other = rng.sample(range(count), 2)
            values[other] = 2 * values[one]
        if is_clear(values) and min(values) >= least * max(values) and max(values) <= most:
            return values, draw_ticks(rng, max(values)) if printed else ticks


def is_clear(values: list[int]) -> bool:
    """Whether nobody doubts which is the largest and which the smallest."""
    ordered = sorted(values)
    gap = max(1.0, APART * ordered[-1])
    return ordered[1] - ordered[0] >= gap and ordered[-1] - ordered[-2] >= gap
