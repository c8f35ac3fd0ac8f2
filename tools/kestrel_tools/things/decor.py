"""What pictures have behind things and print: ground and sky, hills, bands, frames, signs. No torch.

Nobody is asked about it. Without it a model learns that all that is not the ground is a thing, and calls a
hill a cloud. It is drawn with marks, which lie under all else.
"""

import colorsys
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

import numpy as np

from kestrel_tools.scenes.world import Background, Rgb

from .scene import Mark, Points, turned

Unit = tuple[float, float]  # the shorter side as fractions of width and height
BEYOND = 0.05  # how far a band reaches out of the picture


def draw_decor(rng: Random, unit: Unit) -> tuple[Mark, ...]:
    [draw] = rng.choices(tuple(DECORS), tuple(DECORS.values()))
    marks = draw(rng, unit)
    return marks + _frame(rng, unit) if draw is not _frame and rng.random() < 0.08 else marks


def grounds_of(background: Background, marks: tuple[Mark, ...]) -> tuple[Background, ...]:
    """All that something may lie on."""
    shades = dict.fromkeys(mark.rgb for mark in marks)
    return background, *(Background("plain", shade, shade, 0.0, 0.1, 0.0) for shade in shades)


@dataclass(frozen=True, slots=True)
class Sign:
    """A panel behind print; lengths are in heights of the print."""

    rgb: Rgb
    pad: float
    rim: float
    rounded: bool

    @property
    def ground(self) -> Background:
        return Background("plain", self.rgb, self.rgb, 0.0, 0.1, 0.0)

    def around(self, low: Points, high: Points, angle: float, unit: Unit, ink: Rgb) -> tuple[Mark, ...]:
        """Behind print that reaches from `low` to `high` about its middle, which is turned by the angle."""
        width, height = (high - low) / unit
        [middle] = turned(((low + high) / 2 / unit)[None], angle)
        pad, rim = self.pad * height, self.rim * height

        def panel(beyond: float, rgb: Rgb) -> Mark:
            across = float(height + 2 * beyond)
            # The ends of a rounded one reach half its width further.
            half = max(0.0, width / 2 + beyond - (across / 4 if self.rounded else 0.0))
            [along] = turned(np.array([[half, 0.0]]), angle)
            (x, y), (to_x, to_y) = ((middle - along) * unit).tolist(), ((middle + along) * unit).tolist()
            return Mark((x, y), (to_x, to_y), across, self.rounded, rgb)

        return (panel(pad + rim, ink), panel(pad, self.rgb)) if rim else (panel(pad, self.rgb),)


def draw_sign(rng: Random) -> Sign:
    bright = colorsys.hsv_to_rgb(rng.random(), rng.uniform(0.5, 1.0), rng.uniform(0.35, 0.95))
    plain = rng.choice(((1.0, 1.0, 1.0), (0.05, 0.05, 0.05), bright, bright, _colour(rng)))
    return Sign(
        plain, rng.uniform(0.2, 1.1), rng.uniform(0.05, 0.15) * (rng.random() < 0.3), rng.random() < 0.25
    )


def reach_of_mark(mark: Mark, unit: Unit) -> tuple[Points, Points]:
    """No more than this, as fractions of the picture."""
    ends, half = np.array([mark.start, mark.end]), mark.width / 2 * np.array(unit)
    return ends.min(0) - half, ends.max(0) + half


def moved(mark: Mark, x: float, y: float) -> Mark:
    (x1, y1), (x2, y2) = mark.start, mark.end
    return replace(mark, start=(x1 + x, y1 + y), end=(x2 + x, y2 + y))


def _colour(rng: Random) -> Rgb:
    """Grass, sand, earth, stone and water, or any other."""
    hue, saturation, value = rng.choice(
        (
            (rng.uniform(0.2, 0.42), rng.uniform(0.25, 0.75), rng.uniform(0.35, 0.85)),
            (rng.uniform(0.06, 0.15), rng.uniform(0.2, 0.65), rng.uniform(0.4, 0.95)),
            (rng.uniform(0.5, 0.64), rng.uniform(0.15, 0.7), rng.uniform(0.45, 0.98)),
            (rng.random(), rng.uniform(0.0, 0.12), rng.uniform(0.3, 0.95)),
            (rng.random(), rng.uniform(0.1, 0.7), rng.uniform(0.3, 0.98)),
        )
    )
    return colorsys.hsv_to_rgb(hue, saturation, value)


def _shade(rng: Random, rgb: Rgb) -> Rgb:
    """Nearly the same colour, a little lighter or darker."""
    much = rng.uniform(0.78, 1.2)
    red, green, blue = (min(1.0, max(0.0, much * part + rng.uniform(-0.03, 0.03))) for part in rgb)
    return red, green, blue


def _across(low: float, high: float, unit: Unit, rgb: Rgb) -> Mark:
    middle = (low + high) / 2
    return Mark((-BEYOND, middle), (1 + BEYOND, middle), (high - low) / unit[1], False, rgb)


def _down(low: float, high: float, unit: Unit, rgb: Rgb) -> Mark:
    middle = (low + high) / 2
    return Mark((middle, -BEYOND), (middle, 1 + BEYOND), (high - low) / unit[0], False, rgb)


def _disc(x: float, y: float, radius: float, rgb: Rgb) -> Mark:
    return Mark((x, y), (x, y), 2 * radius, True, rgb)


def _horizon(rng: Random, unit: Unit) -> tuple[Mark, ...]:
    """Ground below the sky, or a floor below a wall, now and then with a path, a shore or a skirting."""
    at, ground = rng.uniform(0.3, 0.8), _colour(rng)
    marks = [_across(at, 1 + BEYOND, unit, ground)]
    for _ in range(rng.choice((0, 0, 0, 1, 1, 2))):
        low = rng.uniform(at, 0.95)
        rgb = _shade(rng, ground) if rng.random() < 0.5 else _colour(rng)
        marks.append(_across(low, low + rng.uniform(0.01, 0.3), unit, rgb))
    return tuple(marks)


def _hills(rng: Random, unit: Unit) -> tuple[Mark, ...]:
    at, ground = rng.uniform(0.4, 0.85), _colour(rng)
    far = _shade(rng, ground) if rng.random() < 0.6 else _colour(rng)
    marks = []
    for _ in range(rng.randint(1, 4)):
        radius = rng.uniform(0.25, 1.1)
        below = rng.uniform(0.25, 0.95) * radius * unit[1]
        marks.append(_disc(rng.uniform(-0.1, 1.1), at + below, radius, _shade(rng, far)))
    if rng.random() < 0.75:
        marks.append(_across(at, 1 + BEYOND, unit, ground))
    return tuple(marks)


def _corners(rng: Random, unit: Unit) -> tuple[Mark, ...]:
    """Large discs that the picture's edge cuts."""
    rgb, marks = _colour(rng), []
    for _ in range(rng.randint(1, 4)):
        x, y = rng.choice(((rng.choice((0.0, 1.0)), rng.random()), (rng.random(), rng.choice((0.0, 1.0)))))
        marks.append(
            _disc(x, y, rng.uniform(0.15, 0.7), _shade(rng, rgb) if rng.random() < 0.7 else _colour(rng))
        )
    return tuple(marks)


def _bands(rng: Random, unit: Unit) -> tuple[Mark, ...]:
    """A few wide ones across, down, or askew."""
    rgb, way, marks = _colour(rng), rng.choice((_across, _down, None)), []
    for _ in range(rng.randint(1, 3)):
        low = rng.uniform(-0.05, 0.9)
        shade = _shade(rng, rgb) if rng.random() < 0.5 else _colour(rng)
        if way is not None:
            marks.append(way(low, low + rng.uniform(0.03, 0.45), unit, shade))
        else:
            ends = (rng.uniform(-0.3, 1.3), -0.3), (rng.uniform(-0.3, 1.3), 1.3)
            marks.append(Mark(*ends, rng.uniform(0.03, 0.5), False, shade))
    return tuple(marks)


def _frame(rng: Random, unit: Unit) -> tuple[Mark, ...]:
    rgb, wide = _colour(rng), rng.uniform(0.01, 0.06)
    sides = [
        way(low - BEYOND, low + BEYOND, unit, rgb)
        for way, share in ((_across, unit[1]), (_down, unit[0]))
        for low in (wide * share - BEYOND, 1 - wide * share + BEYOND)
    ]
    return tuple(sides)


def _grid(rng: Random, unit: Unit) -> tuple[Mark, ...]:
    """Thin lines, as of squared paper, tiles or shelves."""
    rgb, thin = _colour(rng), rng.uniform(0.003, 0.012)
    marks: list[Mark] = []
    for way in rng.choice(((_across,), (_down,), (_across, _down), (_across, _down))):
        count = rng.randint(1, 5)
        marks += [way(n / (count + 1), n / (count + 1) + thin, unit, rgb) for n in range(1, count + 1)]
    return tuple(marks)


def _specks(rng: Random, unit: Unit) -> tuple[Mark, ...]:
    """Confetti, snow, pebbles: too small to be a shape."""
    rgb = _colour(rng)
    return tuple(
        _disc(rng.random(), rng.random(), rng.uniform(0.004, 0.014), _shade(rng, rgb))
        for _ in range(rng.randint(6, 14))
    )


DECORS: dict[Callable[[Random, Unit], tuple[Mark, ...]], float] = {
    _horizon: 28,
    _hills: 28,
    _corners: 12,
    _bands: 14,
    _frame: 6,
    _grid: 7,
    _specks: 5,
}
