"""Pixels of vector drawings, by libvips."""

import numpy as np
import pyvips
from numpy.typing import NDArray

OPAQUE = 110  # alpha from which a pixel belongs to the drawing


def rasterise(svg: bytes, **options: float) -> NDArray[np.uint8]:
    """[height, width, 4]; colours are not yet times alpha. `options` are those of libvips' `svgload`."""
    # `intake.images` blocks this loader: libvips does not trust it with files of strangers.
    pyvips.operation_block_set("VipsForeignLoadSvg", False)
    try:
        pixels: NDArray[np.uint8] = pyvips.Image.svgload_buffer(svg, unlimited=True, **options).numpy()
    finally:
        pyvips.operation_block_set("VipsForeignLoadSvg", True)
    return pixels


def times_alpha(drawn: NDArray[np.uint8]) -> NDArray[np.uint8]:
    alpha = drawn[..., 3:].astype(np.float32) / 255
    return np.concatenate((np.rint(drawn[..., :3] * alpha).astype(np.uint8), drawn[..., 3:]), axis=-1)
