"""Line drawings in colour: the black lines of one set, filled with the colours of its twin. No torch.

Sets of lines alone are free where coloured line art is not, and a model that knows no lines takes a
screwdriver that is drawn with them for print.
"""

import numpy as np
import pyvips
from numpy.typing import NDArray

INK = 0.1  # how bright the lines are
LINE = 5  # pixels; what is black for longer than this is a filled area with a rim of this width
LEAST_SEEN = 0.3  # of an area, that its twin must cover to tell its colour
LEAST_AREA = 20  # pixels


def filled(lines: NDArray[np.uint8], twin: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """[side / 2, side / 2, 4] of two drawings twice as large; colours are times alpha in all three."""
    ink = lines[..., 3] >= 128
    thick = _shrunk(ink, LINE)
    outside = _reached(~ink)
    colours, seen = _whole(twin)
    usual = np.median(colours[seen], 0) if seen.any() else np.full(3, 0.8)
    drawn = np.full((*ink.shape, 3), INK)
    for area in (*_areas(~ink & ~outside), *_areas(thick)):
        told = area & seen
        drawn[area] = np.median(colours[told], 0) if told.sum() >= LEAST_SEEN * area.sum() else usual
    alpha = np.where(outside, lines[..., 3] / 255, 1.0)[..., None]
    large = np.concatenate((drawn * alpha, alpha), -1)
    side = len(large) // 2
    small = large.reshape(side, 2, side, 2, 4).mean((1, 3))
    return np.rint(small * 255).astype(np.uint8)


def _whole(drawn: NDArray[np.uint8]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Its colours without alpha, from 0 to 1, and where they can be seen."""
    alpha = drawn[..., 3:] / 255
    return np.clip(drawn[..., :3] / 255 / np.maximum(alpha, 1e-3), 0, 1), alpha[..., 0] > 0.9


def _areas(mask: NDArray[np.bool_]) -> list[NDArray[np.bool_]]:
    """The connected parts of it that are large enough to be seen."""
    labels = pyvips.Image.new_from_array(mask.astype(np.uint8)).labelregions().numpy()
    found = [labels == label for label in np.unique(labels[mask])]
    return [area for area in found if area.sum() >= LEAST_AREA]


def _reached(free: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """What of the free pixels can be reached from the border."""
    framed = np.pad(free, 1, constant_values=True)
    labels = pyvips.Image.new_from_array(framed.astype(np.uint8)).labelregions().numpy()
    reached: NDArray[np.bool_] = (labels == labels[0, 0])[1:-1, 1:-1]
    return reached


def _shrunk(mask: NDArray[np.bool_], by: int) -> NDArray[np.bool_]:
    """What is further than so many pixels from its rim."""
    left = np.pad(mask, 1)
    for _ in range(by):
        left = left & np.roll(left, 1, 0) & np.roll(left, -1, 0) & np.roll(left, 1, 1) & np.roll(left, -1, 1)
    return left[1:-1, 1:-1]
