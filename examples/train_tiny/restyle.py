"""More styles of drawing than there are sets: each sprite again, inked or in other shades. No torch.

A model that has seen one banana in seven sets knows those seven; sets that are drawn with black lines, or in
other colours, are where it failed.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kestrel_tools.things.atlas import ARRAYS, Sprites
from kestrel_tools.things.colour import main_colour

INK = 0.1  # how bright the lines are
EDGE = 0.25  # a step of brightness or colour that gets a line
HUE, LEAST_SATURATION, MOST_SATURATION, LEAST_VALUE, MOST_VALUE = 0.5, 0.55, 1.2, 0.82, 1.15


def with_other_styles(sprites: Sprites, seed: int = 0) -> Sprites:
    """Each sprite, and then each once more: a third inked, a third in other shades, a third in both."""
    colours = sprites.pixels[..., :3].astype(np.float32) / 255
    alpha = sprites.pixels[..., 3:].astype(np.float32) / 255
    turn = np.arange(len(sprites)) % 3
    shaded, inked = turn != 0, turn != 1
    colours[shaded] = _shaded(colours[shaded], np.random.default_rng(seed))
    colours[inked] = _inked(colours[inked], alpha[inked])
    # Colours are times alpha already, and stay so.
    bytes_ = np.rint(np.clip(np.minimum(colours, alpha), 0, 1) * 255).astype(np.uint8)
    pixels = np.concatenate((bytes_, sprites.pixels[..., 3:]), axis=-1)
    names = tuple(
        main_colour(one) if changed else kept
        for one, changed, kept in zip(pixels, shaded, sprites.colours, strict=True)
    )
    other = replace(sprites, colours=names, pixels=pixels)
    arrays = (np.concatenate((getattr(sprites, name), getattr(other, name))) for name in ARRAYS)
    return Sprites(sprites.names * 2, sprites.sets * 2, sprites.colours + names, *arrays)


def _shaded(colours: NDArray[np.float32], rng: np.random.Generator) -> NDArray[np.float32]:
    """Each sprite's hue turned a little about gray, and all of it paler or deeper, darker or lighter."""
    count = len(colours)
    angle = rng.uniform(-HUE, HUE, count)
    saturation = rng.uniform(LEAST_SATURATION, MOST_SATURATION, count)
    value = rng.uniform(LEAST_VALUE, MOST_VALUE, count)
    gray = np.full((3, 3), 1 / 3)
    axis = np.array([[0, -1, 1], [1, 0, -1], [-1, 1, 0]]) / np.sqrt(3)
    turn = np.cos(angle)[:, None, None] * (np.eye(3) - gray) + np.sin(angle)[:, None, None] * axis
    change = (value[:, None, None] * (gray + saturation[:, None, None] * turn)).astype(np.float32)
    return np.einsum("nij,nhwj->nhwi", change, colours)


def _inked(colours: NDArray[np.float32], alpha: NDArray[np.float32]) -> NDArray[np.float32]:
    """Dark lines within the rim and where colours meet."""
    shown = np.concatenate((colours, alpha), axis=-1)
    lines = np.zeros(alpha.shape[:3], np.float32)
    for axis in (1, 2):
        step = np.abs(np.roll(shown, -1, axis) - np.roll(shown, 1, axis)).max(-1)
        lines = np.maximum(lines, step)
    dark = np.clip((_widened(lines) - EDGE) / EDGE, 0, 1)[..., None]
    return colours * (1 - dark) + INK * alpha * dark


def _widened(lines: NDArray[np.float32]) -> NDArray[np.float32]:
    """The largest of each pixel and its four neighbours."""
    around = (np.roll(lines, shift, axis) for axis in (1, 2) for shift in (-1, 1))
    return np.maximum.reduce([lines, *around])
