"""How libvips resizes, as tables: which old pixels each new pixel is made of, and with which weights.

Owns the arithmetic of `pyvips.Image.resize` for 8-bit pictures, found by experiment with libvips 8.18.
Following the tables gives the same bytes as `cut_crops`. Positions are integers. The few sizes at which
libvips depends on the last bit of a float are refused. No torch.
"""

from functools import lru_cache
from itertools import chain
from math import ceil
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kestrel_core.moondream.config import VisionConfig
from kestrel_core.moondream.crops.cutting import choose_tiling, working_size

PHASES = 64  # positions between two pixels for which there are weights
UNIT = 4096  # weights of libvips are multiples of 1 / UNIT
MAX_BOX = 64
# On the device a picture is floats of 12 bytes a pixel, and some more in between: 120 MB.
MAX_PIXELS = 2**22


class Pass(NamedTuple):
    """Resizes one axis: every value is `floor(sum of weights * old values + offset)`."""

    axis: int  # 0: rows, 1: columns
    shape: tuple[int, int]  # length of the axis afterwards, pixels that each value is made of
    offset: float
    clips: bool  # to 0..255, before rounding


class PassTable(NamedTuple):
    step: Pass
    indices: NDArray[np.int32]  # [out, taps], the old pixels
    weights: NDArray[np.float32]  # [out, taps]


class CropPlan(NamedTuple):
    tiling: tuple[int, int]  # rows, cols
    window: int  # pixels from one local crop to the next
    whole: tuple[Pass, ...]  # picture -> global crop
    working: tuple[Pass, ...] | None  # picture -> working image; None where that is the global crop
    tables: dict[str, NDArray[Any]]  # indices int32 and weights float32, [out * taps of all passes], in order


def can_cut(height: int, width: int, vision: VisionConfig) -> bool:
    """Whether a picture of this size has an exact plan, which the device also has the memory for."""
    if height * width > MAX_PIXELS:
        return False
    sizes = _crop_sizes(height, width, vision)
    return all(_is_decided(height, rows) and _is_decided(width, cols) for rows, cols in sizes)


@lru_cache(maxsize=64)  # 50 to 200 kB each
def plan_crops(height: int, width: int, vision: VisionConfig) -> CropPlan:
    """The passes that cut a picture. `can_cut` must be true for its size."""
    old = (height, width)
    whole, *working = [_plan_resize(old, new) for new in _crop_sizes(height, width, vision)]
    tables = [*whole, *chain(*working)]
    return CropPlan(
        tiling=choose_tiling(height, width, vision),
        window=vision.window_px,
        whole=tuple(table.step for table in whole),
        working=tuple(table.step for table in working[0]) if working else None,
        tables={
            # The empty ones are for a picture that already has the size of a crop and needs no pass.
            "indices": np.concatenate([np.zeros(0, np.int32), *(table.indices.ravel() for table in tables)]),
            "weights": np.concatenate(
                [np.zeros(0, np.float32), *(table.weights.ravel() for table in tables)]
            ),
        },
    )


def _crop_sizes(height: int, width: int, vision: VisionConfig) -> list[tuple[int, int]]:
    """The passes to the global crop and to the working image, if that is another one."""
    tiling = choose_tiling(height, width, vision)
    sizes = [(vision.crop_size, vision.crop_size)]
    return sizes if tiling == (1, 1) else [*sizes, working_size(tiling, vision)]


def _plan_resize(old: tuple[int, int], new: tuple[int, int]) -> list[PassTable]:
    tables = []
    for axis in (0, 1):
        if new[axis] < old[axis]:
            box = _box(old[axis], new[axis])
            if box > 1:
                tables.append(_average(axis, old[axis], box))
            tables.append(_reduce(axis, old[axis], new[axis], box))
    if new[0] > old[0] or new[1] > old[1]:
        # Both axes, even if only one grows, because enlarging moves a picture by half a pixel.
        for axis in (1, 0):
            tables.append(_enlarge(axis, min(old[axis], new[axis]), new[axis]))
    return tables


def _box(old: int, new: int) -> int:
    """How many pixels are averaged to one, before the lanczos filter does the rest."""
    return max(1, old // new // 2)


def _average(axis: int, old: int, box: int) -> PassTable:
    size = -(-old // box)
    indices = np.minimum(np.arange(size * box), old - 1).reshape(size, box)
    # libvips multiplies by 2**24 / box, cut to an integer. If that was not whole, a sum whose quotient ends
    # in a half is rounded down, not up: floor((sum + box // 2 - 1) / box). The half added here keeps
    # quotients away from integers by 0.5 / box; up to a box of 180 float32 errs by less.
    falls_short = box & (box - 1) != 0
    offset = (box // 2 - falls_short + 0.5) / box
    weights = np.full((size, box), 1 / box, np.float32)
    return PassTable(Pass(axis, (size, box), offset, clips=True), indices.astype(np.int32), weights)


def _reduce(axis: int, old: int, new: int, box: int) -> PassTable:
    """The lanczos filter with three lobes, stretched to the old pixels of one new pixel."""
    scale = old / (new * box)
    taps = 2 * ceil(3 * scale)
    at = np.arange(PHASES + 1)[:, None] / PHASES + taps // 2 - 1
    x = (np.arange(taps) - at) / scale
    filters = np.where(np.abs(x) < 3, np.sinc(x) * np.sinc(x / 3), 0)  # [phases, taps]
    filters /= filters.sum(1, keepdims=True)
    # Centres coincide: pixel i lies at (i + 1/2) * scale - 1/2.
    steps = (64 * (2 * np.arange(new) + 1) * old - 64 * new * box) // (new * box)
    return _filter(axis, -(-old // box), steps, filters, clips=True)


def _enlarge(axis: int, old: int, new: int) -> PassTable:
    """The Catmull-Rom spline. libvips does both axes in one step, so it clips only after the second."""
    x = np.arange(PHASES + 1) / PHASES
    outer, inner = -x * (1 - x) ** 2 / 2, 1 - x**2 * (5 - 3 * x) / 2
    filters = np.stack([outer, inner, inner[::-1], outer[::-1]], 1)  # [phases, taps]
    # Pixel i lies at i * old / new - 1/2.
    steps = (128 * np.arange(new) * old - 64 * new) // new
    return _filter(axis, old, steps, filters, clips=axis == 0)


def _filter(
    axis: int, old: int, steps: NDArray[np.int64], filters: NDArray[np.float64], clips: bool
) -> PassTable:
    """`steps`: where each new pixel lies, in half phases, cut to integers."""
    taps = filters.shape[1]
    first = steps // (2 * PHASES) - (taps // 2 - 1)
    indices = np.clip(first[:, None] + np.arange(taps), 0, old - 1)  # the pixels at the edges are repeated
    phase = (steps % (2 * PHASES) + 1) // 2
    # Weights are multiples of 1/4096, and so are their products with pixels and all sums of these. The sums
    # stay below 2**12, so float32 holds them exactly, in any order of summation.
    weights = np.trunc(filters * UNIT)[phase] / UNIT
    step = Pass(axis, (len(steps), taps), 0.5, clips)
    return PassTable(step, indices.astype(np.int32), weights.astype(np.float32))


def _is_decided(old: int, new: int) -> bool:
    """Whether no new pixel lies on the edge of a phase, where the last bit of libvips' floats decides.

    Edges are the odd numbers of half phases, so only powers of two matter: `_twos(128 * i * old / new)` must
    not be 0 for any i when enlarging, and neither may `_twos(64 * (2 * i + 1) * old / (new * box))` when
    reducing. With crops of 378 pixels, the first to fail is reducing an odd size to 2240.
    """
    if old <= new:
        return _twos(new) < _twos(old) + 7
    box = _box(old, new)
    return box <= MAX_BOX and _twos(new * box) != _twos(old) + 6


def _twos(number: int) -> int:
    """How often it can be halved."""
    return (number & -number).bit_length() - 1
