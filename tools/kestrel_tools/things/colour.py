"""What colour a drawing has, where one can be told at all."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

LUMINANCE = np.array([0.2126, 0.7152, 0.0722])

LEAST_SHARE = 0.6  # of its opaque pixels
# Wheels and outlines do not count: a tractor is green although half of it is black. The colour must have so
# much of all, and of what is neither black nor gray nor white.
LEAST_BRIGHT, LEAST_OF_BRIGHT = 0.42, 0.75
UNCOLOURED = ("black", "gray", "white")
OPAQUE = 200

# Up to which hue, in degrees, a bright colour has the name. Gold is yellow to some, orange to others.
HUES = (
    (14, "red"),
    (34, "orange"),
    (46, ""),
    (68, "yellow"),
    (165, "green"),
    (197, "cyan"),
    (256, "blue"),
    (306, "purple"),
)


def main_colour(pixels: NDArray[np.uint8]) -> str:
    """pixels: [height, width, 4]. The name of the colour that most of it has, or an empty one."""
    solid = pixels[pixels[..., 3] >= OPAQUE][:, :3] / 255.0
    if not len(solid):
        return ""
    names, counts = np.unique(names_of(solid), return_counts=True)
    best = int(counts.argmax())
    if counts[best] >= LEAST_SHARE * len(solid):
        return str(names[best])
    bright = np.where(np.isin(names, UNCOLOURED), 0, counts)
    best = int(bright.argmax())
    least = max(LEAST_BRIGHT * len(solid), LEAST_OF_BRIGHT * bright.sum())
    return str(names[best]) if bright[best] >= least else ""


def names_of(rgb: NDArray[np.float64]) -> NDArray[np.str_]:
    """The name of each of the colours [n, 3], from 0 to 1."""
    value, least = rgb.max(1), rgb.min(1)
    saturation = (value - least) / np.maximum(value, 1e-6)
    hue = _hue(rgb, value, least)
    conditions = [
        value < 0.24,
        (saturation < 0.12) & (value > 0.85),
        saturation < 0.16,
        ((hue > 322) | (hue < 14)) & (saturation < 0.62) & (value > 0.8),
        (hue > 306) & (hue < 342),
        (hue < 40) & (value < 0.68),
        (hue < 46) & (saturation < 0.55),
        saturation < 0.3,
        value < 0.42,
        *(hue < most for most, _ in HUES),
    ]
    named = ["black", "white", "gray", "pink", "pink", "brown", "", "", "", *(name for _, name in HUES)]
    return np.select(conditions, [np.full(len(rgb), name) for name in named], "red")


def contrast(first: Sequence[float], second: Sequence[float]) -> float:
    """How much brighter one colour is than another, nearly as WCAG measures it: from 1 to 21."""
    darker, lighter = sorted(float(LUMINANCE @ np.power(rgb, 2.2)) for rgb in (first, second))
    return (lighter + 0.05) / (darker + 0.05)


def _hue(
    rgb: NDArray[np.float64], value: NDArray[np.float64], least: NDArray[np.float64]
) -> NDArray[np.float64]:
    """In degrees."""
    red, green, blue = rgb.T
    chroma = np.maximum(value - least, 1e-6)
    sector = np.select(
        [value == red, value == green],
        [(green - blue) / chroma % 6, (blue - red) / chroma + 2],
        (red - green) / chroma + 4,
    )
    return np.asarray(60 * sector, np.float64)
