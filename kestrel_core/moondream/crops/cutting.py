"""A picture as the vision encoder takes it: one global crop and, for larger pictures, a tiling of local ones.

Owns the choice of tiling and the cutting; both give the same bytes as the reference. No torch.
"""

from math import ceil, floor, sqrt
from typing import NamedTuple

import numpy as np
import pyvips
from numpy.typing import NDArray

from kestrel_core.moondream.config import VisionConfig

PREPROCESSING_VERSION = 2  # raise it whenever a pixel changes: it is part of the key of cached embeddings


class Crops(NamedTuple):
    pixels: NDArray[np.uint8]  # [1 + rows * cols, crop, crop, 3], the global crop first, then row by row
    tiling: tuple[int, int]  # rows, cols


def choose_tiling(height: int, width: int, vision: VisionConfig) -> tuple[int, int]:
    """Rows and columns of local crops for a picture of this size.

    If one side is short there is no tiling, however long the other is. On very long pictures there is always
    one row (or column), so the product can exceed `max_crops`: 21 local crops at 20,000 x 400. The reference
    does both.
    """
    window, budget = vision.window_px, vision.max_crops
    inner_height, inner_width = height - 2 * vision.margin_px, width - 2 * vision.margin_px
    if inner_height <= window or inner_width <= window:
        return 1, 1
    # What full resolution takes.
    rows, cols = ceil(inner_height / window), ceil(inner_width / window)
    if rows * cols > budget:
        shrink = sqrt(budget / (rows * cols))
        return max(1, floor(rows * shrink)), max(1, floor(cols * shrink))
    # There is room left: use it in the proportions of the picture.
    rows = max(rows, floor(sqrt(budget * inner_height / inner_width)))
    cols = max(cols, floor(sqrt(budget * inner_width / inner_height)))
    if rows * cols > budget:
        if cols > rows:
            cols = budget // rows
        else:
            rows = budget // cols
    return max(1, rows), max(1, cols)


def working_size(tiling: tuple[int, int], vision: VisionConfig) -> tuple[int, int]:
    """Height and width of the image that local crops are cut from: windows side by side, and margins."""
    rows, cols = tiling
    margins = 2 * vision.margin_px
    return rows * vision.window_px + margins, cols * vision.window_px + margins


def cut_crops(rgb: NDArray[np.uint8], vision: VisionConfig) -> Crops:
    """The crops of a picture `[height, width, 3]`. Each resize starts from the original."""
    height, width, _ = rgb.shape
    size, window = vision.crop_size, vision.window_px
    rows, cols = choose_tiling(height, width, vision)
    pixels = np.empty((1 + rows * cols, size, size, 3), np.uint8)
    pixels[0] = _resize(rgb, size, size)
    one_tile = rows == cols == 1  # then the local crop is the global one
    working = pixels[0] if one_tile else _resize(rgb, *working_size((rows, cols), vision))
    for row in range(rows):
        for col in range(cols):
            top, left = row * window, col * window
            pixels[1 + row * cols + col] = working[top : top + size, left : left + size]
    return Crops(pixels, (rows, cols))


def _resize(rgb: NDArray[np.uint8], height: int, width: int) -> NDArray[np.uint8]:
    rgb = np.ascontiguousarray(rgb)
    image = pyvips.Image.new_from_memory(rgb, rgb.shape[1], rgb.shape[0], 3, "uchar")
    # libvips rounds size * scale, which lies within an ulp or two of the whole number asked for.
    resized = image.resize(width / image.width, vscale=height / image.height)
    return np.frombuffer(resized.write_to_memory(), np.uint8).reshape(height, width, 3)
