"""More styles of drawing than there are sets: each sprite again, bent or not, and inked, flat, reshaded or
without colours. No torch.

A model that has seen a banana in seven sets knows those seven. It failed on sets that are drawn with black
lines, in other colours, or with other proportions.
"""

import multiprocessing
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kestrel_tools.things.atlas import ARRAYS, SPRITE, Sprites
from kestrel_tools.things.colour import main_colour

COPIES = 9  # of each sprite
TOGETHER = 200  # sprites that one process restyles at a time
STRAIGHT = 0.4  # of the copies, which are not bent: other sets draw things otherwise, but seldom askew
INKED, SHADED, FLAT = 0.5, 0.6, 0.4  # of the copies
OUTLINED, TWO_TONE = 0.1, 0.08  # of the copies, which have no colours
REPAINTED = 0.06  # how far each of a flat one's few colours is moved by itself
INK = 0.1  # how bright the lines are
LEAST_EDGE, MOST_EDGE = 0.2, 0.4  # of each sprite, so that some get the rim alone
HUE, LEAST_SATURATION, MOST_SATURATION, LEAST_VALUE, MOST_VALUE = 0.5, 0.55, 1.2, 0.82, 1.15
PALE = 0.15  # how much is left of the colours where lines are all
LEAST_STRETCH, SHEAR = 0.72, 0.22
WAVE, WAVES = 0.05, 3.0  # how far points move to and fro, of half a cell, and how often (radians of it)
REACH = 0.97  # of the cell's half, that a bent drawing may take


def with_other_styles(sprites: Sprites, copies: int = COPIES, seed: int = 0) -> Sprites:
    """The sprites and their copies: most are bent, and inked, flat, in other shades or some of these, or
    without colours.
    """
    places = [range(first, min(first + TOGETHER, len(sprites))) for first in range(0, len(sprites), TOGETHER)]
    tasks = ((sprites.at(place), (seed, turn, place.start)) for turn in range(copies) for place in places)
    # In processes of their own: the device waits for this, and much of it holds Python's lock.
    with multiprocessing.get_context("fork").Pool() as pool:
        parts = [sprites, *pool.imap(_restyled, tasks)]
    texts = (sum((getattr(part, name) for part in parts), ()) for name in ("names", "sets", "colours"))
    return Sprites(*texts, *(np.concatenate([getattr(part, name) for part in parts]) for name in ARRAYS))


def _restyled(task: tuple[Sprites, tuple[int, ...]]) -> Sprites:
    sprites, seeds = task
    rng = np.random.default_rng(seeds)
    bent = _bent(sprites, rng)
    colours, alpha = (bent.pixels[..., bands].astype(np.float32) / 255 for bands in (slice(3), slice(3, 4)))
    flat, shaded, inked = (rng.random(len(sprites)) < share for share in (FLAT, SHADED, INKED))
    for index in np.flatnonzero(flat):
        colours[index] = _flat(colours[index], alpha[index], rng)
    colours[shaded] = _shaded(colours[shaded], rng)
    tones = rng.random(len(sprites))
    outlined, two_tone = tones < OUTLINED, (tones >= OUTLINED) & (tones < OUTLINED + TWO_TONE)
    colours[two_tone] = _two_tone(colours[two_tone], alpha[two_tone], rng)
    inked |= outlined | two_tone
    colours[inked] = _inked(colours[inked], alpha[inked], rng, outlined[inked])
    # Colours are times alpha already, and stay so.
    levels = np.rint(np.clip(np.minimum(colours, alpha), 0, 1) * 255).astype(np.uint8)
    pixels = np.concatenate((levels, bent.pixels[..., 3:]), axis=-1)
    changed, colourless = shaded | flat, outlined | two_tone
    names = tuple(
        "" if colourless[at] else main_colour(one[::2, ::2]) if changed[at] else kept  # a quarter tells it
        for at, (one, kept) in enumerate(zip(pixels, sprites.colours, strict=True))
    )
    return replace(bent, colours=names, pixels=pixels)


def _bent(sprites: Sprites, rng: np.random.Generator) -> Sprites:
    """Most stretched and sheared in some direction, and waved a little: pixels, outlines and all."""
    count = len(sprites)
    much = (rng.random(count) >= STRAIGHT).astype(np.float64)
    turn = rng.uniform(0, np.pi, count)
    stretch = np.stack((1 - much * rng.uniform(0, 1 - LEAST_STRETCH, count), np.ones(count)), 1)
    cos, sin = np.cos(turn), np.sin(turn)
    axes = np.stack((np.stack((cos, -sin), 1), np.stack((sin, cos), 1)), 1)
    shear = np.tile(np.eye(2), (count, 1, 1))
    shear[:, 0, 1] = much * rng.uniform(-SHEAR, SHEAR, count)
    change = shear @ axes * stretch[:, None] @ axes.transpose(0, 2, 1)
    phase = rng.uniform(0, 2 * np.pi, (count, 1, 2))
    wave = much[:, None, None] * rng.uniform(0, WAVE, (count, 1, 2))

    def waved(points: NDArray[np.float64], sign: float) -> NDArray[np.float64]:
        moved: NDArray[np.float64] = points + sign * wave * np.sin(WAVES * points[..., ::-1] + phase)
        return moved

    hulls = waved(sprites.hulls @ change.transpose(0, 2, 1), 1.0)
    low, high = hulls.min(1, keepdims=True), hulls.max(1, keepdims=True)
    middle, grown = (low + high) / 2, 2 * REACH / (high - low).max(-1, keepdims=True)

    def placed(points: NDArray[np.float64]) -> NDArray[np.float32]:
        there = waved(points @ change.transpose(0, 2, 1), 1.0)
        return ((there - middle) * grown).astype(np.float32)

    steps = (np.arange(SPRITE) + 0.5) / SPRITE * 2 - 1
    grid = np.stack(np.meshgrid(steps, steps), -1).reshape(1, -1, 2)
    # Where each pixel was: a wave this flat is undone, nearly, by the same one backwards.
    before = waved(grid / grown + middle, -1.0) @ np.linalg.inv(change).transpose(0, 2, 1)
    pixels = np.stack([_taken(one, at) for one, at in zip(sprites.pixels, before, strict=True)])
    anchors = placed(sprites.anchors[:, None])[:, 0]
    return replace(
        sprites,
        pixels=pixels,
        hulls=placed(sprites.hulls),
        outlines=placed(sprites.outlines),
        anchors=anchors,
    )


def _taken(pixels: NDArray[np.uint8], at: NDArray[np.float64]) -> NDArray[np.uint8]:
    """The sprite's pixels at these points of its cell, each a mean of four; nothing outside."""
    framed = np.pad(pixels, ((1, 1), (1, 1), (0, 0))).astype(np.float32)
    column, row = np.clip((at + 1) / 2 * SPRITE + 0.5, 0, SPRITE + 0.999).T
    left, top = column.astype(int), row.astype(int)
    right, down = (column - left)[:, None], (row - top)[:, None]
    upper = framed[top, left] * (1 - right) + framed[top, left + 1] * right
    lower = framed[top + 1, left] * (1 - right) + framed[top + 1, left + 1] * right
    return np.rint(upper * (1 - down) + lower * down).astype(np.uint8).reshape(SPRITE, SPRITE, -1)


def _flat(
    colours: NDArray[np.float32], alpha: NDArray[np.float32], rng: np.random.Generator
) -> NDArray[np.float32]:
    """In a few colours without shades, near the means of those that are alike."""
    solid = colours[alpha[..., 0] > 0.9]
    if not len(solid):
        return colours
    sample = solid[rng.integers(len(solid), size=400)]
    middles = sample[rng.integers(len(sample), size=rng.integers(3, 7))]
    for _ in range(5):
        nearest = _nearest(sample, middles)
        means = [sample[nearest == number].mean(0) for number in np.unique(nearest)]
        middles = np.array(means, np.float32)
    whole = colours / np.maximum(alpha, 1e-3)
    painted = np.clip(middles + rng.normal(0, REPAINTED, middles.shape), 0, 1).astype(np.float32)
    return painted[_nearest(whole.reshape(-1, 3), middles)].reshape(colours.shape) * alpha


def _nearest(colours: NDArray[np.float32], middles: NDArray[np.float32]) -> NDArray[np.intp]:
    return np.square(colours[:, None] - middles).sum(-1).argmin(1)


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


def _two_tone(
    colours: NDArray[np.float32], alpha: NDArray[np.float32], rng: np.random.Generator
) -> NDArray[np.float32]:
    """Dark where it is darker than its mean and white elsewhere; of some the other way round."""
    bright = colours.mean(-1, keepdims=True)
    mean = bright.sum((1, 2), keepdims=True) / np.maximum(alpha.sum((1, 2), keepdims=True), 1e-3)
    turned = rng.random((len(alpha), 1, 1, 1)) < 0.3
    light: NDArray[np.float32] = np.where((bright > mean * alpha) != turned, alpha, INK * alpha)
    return np.broadcast_to(light, colours.shape)


def _inked(
    colours: NDArray[np.float32],
    alpha: NDArray[np.float32],
    rng: np.random.Generator,
    outlined: NDArray[np.bool_],
) -> NDArray[np.float32]:
    """Dark lines within the rim and where colours meet; of the outlined, little but these."""
    shown = np.concatenate((colours, alpha), axis=-1)
    lines = np.zeros(alpha.shape[:3], np.float32)
    for axis in (1, 2):
        step = np.abs(np.roll(shown, -1, axis) - np.roll(shown, 1, axis)).max(-1)
        lines = np.maximum(lines, step)
    edge = rng.uniform(LEAST_EDGE, MOST_EDGE, (len(alpha), 1, 1)).astype(np.float32)
    dark = np.clip((_widened(lines) - edge) / edge, 0, 1)[..., None]
    ground = np.where(outlined[:, None, None, None], PALE * colours + (1 - PALE) * alpha, colours)
    inked: NDArray[np.float32] = ground * (1 - dark) + INK * alpha * dark
    return inked


def _widened(lines: NDArray[np.float32]) -> NDArray[np.float32]:
    """The largest of each pixel and its four neighbours."""
    around = (np.roll(lines, shift, axis) for axis in (1, 2) for shift in (-1, 1))
    widest: NDArray[np.float32] = np.maximum.reduce([lines, *around])
    return widest
