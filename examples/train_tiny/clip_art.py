"""Drawings by many hands: the Open Clip Art Library as Debian has it, in the public domain.

Emoji and icons of one set look alike, however many sets there are.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .packages import debian_package
from .sources import CLIP_ART, chosen_of
from .svg import OPAQUE, rasterise, times_alpha

PACKAGE = "openclipart-svg"
INSIDE = "usr/share/openclipart/svg"  # the package
DPI = 96  # lengths in points were written for screens; with fewer the page cuts its drawing off


def clip_art(pixels: int, padding: int) -> Iterator[tuple[str, NDArray[np.uint8]]]:
    """Names of things and their drawings."""
    with debian_package(PACKAGE) as package:
        for thing, names in chosen_of(CLIP_ART).items():
            for name in names:
                yield thing, draw_file(package / INSIDE / f"{name}.svg", pixels, padding)


def draw_file(path: Path, pixels: int, padding: int) -> NDArray[np.uint8]:
    """[pixels, pixels, 4], colours times alpha: what is drawn, as large as it fits and in the middle."""
    svg, within = path.read_bytes(), pixels - 2 * padding
    scale = 2 * pixels / max(rasterise(svg, dpi=DPI).shape[:2])
    scale *= within / max(_cut(rasterise(svg, dpi=DPI, scale=scale)).shape[:2])
    whole = times_alpha(_cut(rasterise(svg, dpi=DPI, scale=scale))[:within, :within])
    height, width = whole.shape[:2]
    top, left = (pixels - height) // 2, (pixels - width) // 2
    sprite = np.zeros((pixels, pixels, 4), np.uint8)
    sprite[top : top + height, left : left + width] = whole
    return sprite


def _cut(drawn: NDArray[np.uint8]) -> NDArray[np.uint8]:
    ys, xs = np.nonzero(drawn[..., 3] >= OPAQUE)
    return drawn[ys.min() : ys.max() + 1, xs.min() : xs.max() + 1]
