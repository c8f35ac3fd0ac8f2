"""How libvips resizes, as tables: of which pixels a new one is made along an axis, and with which weights.

Owns the arithmetic of `pyvips.Image.resize` for 8-bit pictures, found by experiment with libvips 8.18: who
follows the tables gets the bytes of `crops.cut_crops`. Positions are kept in integers, and the few sizes that
have libvips decide by the last bit of a float are refused. No torch.
"""

from functools import lru_cache
from itertools import chain
from math import ceil
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kestrel_core.moondream.config import VisionConfig
from kestrel_core.moondream.crops.cutting import choose_tiling, working_size

PHASES = 64  # places between two pixels that weights are tabled for
UNIT = 4096  # what libvips counts its weights in
MAX_BOX = 64
# A picture becomes floats on the device, 12 bytes a pixel, and less again on the way: 120 MB.
MAX_PIXELS = 2**22


class Pass(NamedTuple):
    """One axis made anew: every value is `floor(sum of weights * old values + offset)`."""

    axis: int  # 0: rows, 1: columns
    shape: tuple[int, int]  # length of the axis afterwards, pixels that each value is made of
    offset: float
    clips: bool  # to 0..255, before the rounding


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
    """Whether a picture of this size has a plan that is exact, and that the device has the memory for."""
    if height * width > MAX_PIXELS:
        return False
    sizes = _crop_sizes(height, width, vision)
    return all(_is_decided(height, rows) and _is_decided(width, cols) for rows, cols in sizes)


@lru_cache(maxsize=64)  # 50 to 200 kB each
def plan_crops(height: int, width: int, vision: VisionConfig) -> CropPlan:
    """The passes that cut a picture which `can_cut`."""
    old = (height, width)
    whole, *working = [_plan_resize(old, new) for new in _crop_sizes(height, width, vision)]
    tables = [*whole, *chain(*working)]
    return CropPlan(
        tiling=choose_tiling(height, width, vision),
        window=vision.window_px,
        whole=tuple(table.step for table in whole),
        working=tuple(table.step for table in working[0]) if working else None,
        tables={
            # The empty ones are for a picture that is a crop as it comes and needs no pass.
            "indices": np.concatenate([np.zeros(0, np.int32), *(table.indices.ravel() for table in tables)]),
            "weights": np.concatenate(
                [np.zeros(0, np.float32), *(table.weights.ravel() for table in tables)]
            ),
        },
    )


def _crop_sizes(height: int, width: int, vision: VisionConfig) -> list[tuple[int, int]]:
    """Of the global crop and, unless that is all there is, of the working image."""
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
        # Both axes, even if only one grows: enlarging moves a picture by half a pixel.
        for axis in (1, 0):
            tables.append(_enlarge(axis, min(old[axis], new[axis]), new[axis]))
    return tables


def _box(old: int, new: int) -> int:
    """How many pixels are averaged to one before the lanczos filter makes the rest of the way."""
    return max(1, old // new // 2)


def _average(axis: int, old: int, box: int) -> PassTable:
    size = -(-old // box)
    indices = np.minimum(np.arange(size * box), old - 1).reshape(size, box)
    # libvips multiplies by 2**24 / box cut to an integer. Unless that is whole, sums that a half would just
    # lift to the next integer fall short of it: floor((sum + box // 2 - 1) / box). The half added here keeps
    # the quotient clear of integers by 0.5 / box, and float32 errs by less up to a box of 180.
    falls_short = box & (box - 1) != 0
    offset = (box // 2 - falls_short + 0.5) / box
    weights = np.full((size, box), 1 / box, np.float32)
    return PassTable(Pass(axis, (size, box), offset, clips=True), indices.astype(np.int32), weights)


def _reduce(axis: int, old: int, new: int, box: int) -> PassTable:
    """The lanczos filter of three lobes, stretched to the pixels that one is made of."""
    scale = old / (new * box)
    taps = 2 * ceil(3 * scale)
    at = np.arange(PHASES + 1)[:, None] / PHASES + taps // 2 - 1
    x = (np.arange(taps) - at) / scale
    filters = np.where(np.abs(x) < 3, np.sinc(x) * np.sinc(x / 3), 0)  # [phases, taps]
    filters /= filters.sum(1, keepdims=True)
    # Centres meet: pixel i lies at (i + 1/2) * scale - 1/2.
    steps = (64 * (2 * np.arange(new) + 1) * old - 64 * new * box) // (new * box)
    return _filter(axis, -(-old // box), steps, filters, clips=True)


def _enlarge(axis: int, old: int, new: int) -> PassTable:
    """The Catmull-Rom spline. Both axes of it are one step to libvips, which clips only after the second."""
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
    indices = np.clip(first[:, None] + np.arange(taps), 0, old - 1)  # edges go on for ever
    phase = (steps % (2 * PHASES) + 1) // 2
    # Weights are cut to multiples of 1/4096. So are all sums of them and pixels, in any order of summation:
    # they stay below 2**12, so that float32 holds them exactly.
    weights = np.trunc(filters * UNIT)[phase] / UNIT
    step = Pass(axis, (len(steps), taps), 0.5, clips)
    return PassTable(step, indices.astype(np.int32), weights.astype(np.float32))


def _is_decided(old: int, new: int) -> bool:
    """Whether no new pixel lies on the edge of a phase, where the last bit of libvips' floats decides.

    Edges are the odd numbers of half phases, so only powers of two count: `_twos(128 * i * old / new)` must
    not be 0 for any i when enlarging, nor that of `64 * (2 * i + 1) * old / (new * box)` when reducing. With
    crops of 378 pixels, reducing an odd size to 2240 is the first to fail.
    """
    if old <= new:
        return _twos(new) < _twos(old) + 7
    box = _box(old, new)
    return box <= MAX_BOX and _twos(new * box) != _twos(old) + 6


def _twos(number: int) -> int:
    """How often it can be halved."""
    return (number & -number).bit_length() - 1
