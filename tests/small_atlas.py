"""An atlas for tests, made of numbers: a few things as lopsided blobs, and letters of five by seven dots."""

import numpy as np

from examples.train_tiny.outline import anchor_of, hull_of, outline_of
from kestrel_tools.scenes import font
from kestrel_tools.things.atlas import (
    BASELINE,
    CAPITAL,
    CHARACTERS,
    LETTER,
    NUM_CORNERS,
    NUM_HULL,
    SPRITE,
    Atlas,
    Fonts,
    Sprites,
)

THINGS = {
    "dog": ("brown", (120, 70, 40)),
    "cat": ("gray", (128, 128, 128)),
    "apple": ("red", (220, 30, 30)),
    "banana": ("yellow", (250, 220, 60)),
    "car": ("blue", (30, 60, 220)),
    "grapes": ("purple", (130, 40, 160)),
    "tree": ("green", (30, 150, 60)),
    "sun": ("", (255, 180, 20)),
}
DOT = CAPITAL // font.ROWS  # pixels


def small_atlas() -> Atlas:
    pixels = np.stack([_blob(index, rgb) for index, (_, rgb) in enumerate(THINGS.values())])
    masks = pixels[..., 3] > 127
    sprites = Sprites(
        tuple(THINGS),
        ("mine",) * len(THINGS),
        tuple(colour for colour, _ in THINGS.values()),
        pixels,
        np.stack([hull_of(mask, NUM_HULL) for mask in masks]).astype(np.float32),
        np.stack([outline_of(mask, NUM_CORNERS) for mask in masks]).astype(np.float32),
        np.stack([anchor_of(mask) for mask in masks]).astype(np.float32),
    )
    return Atlas(sprites, _fonts())


def _blob(index: int, rgb: tuple[int, int, int]) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    """Two overlapping discs of unequal size, at an angle of its own."""
    y, x = np.mgrid[0:SPRITE, 0:SPRITE] + 0.5 - SPRITE / 2
    angle = 0.8 * index
    near = (x + 10 * np.cos(angle)) ** 2 + (y + 10 * np.sin(angle)) ** 2 < 30**2
    far = (x - 26 * np.cos(angle)) ** 2 + (y - 26 * np.sin(angle)) ** 2 < 16**2
    covered = (near | far)[..., None]
    return np.where(covered, np.array((*rgb, 255)), 0).astype(np.uint8)


def _fonts() -> Fonts:
    glyphs = font.glyphs()
    pixels = np.zeros((1, len(CHARACTERS), LETTER, LETTER), np.uint8)
    inks = np.zeros((1, len(CHARACTERS), 4), np.float32)
    top, wide = BASELINE - DOT * font.ROWS, DOT * font.COLUMNS
    for at, character in enumerate(CHARACTERS):
        if character.upper() in font.LETTERS:
            dots = glyphs[font.LETTERS.index(character.upper())]
            drawn = dots.repeat(DOT, 0).repeat(DOT, 1) * 255
            pixels[0, at, top:BASELINE, 1 : 1 + wide] = drawn
            rows, columns = np.nonzero(drawn.any(1))[0], np.nonzero(drawn.any(0))[0]
            inks[0, at] = 1 + columns[0], top + rows[0], 2 + columns[-1], top + rows[-1] + 1
    advances = np.full((1, len(CHARACTERS)), wide + DOT, np.float32)
    return Fonts(("dots",), pixels, advances, inks)
