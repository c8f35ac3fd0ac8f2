"""Pictures as files of every format, and how to decode them or see them refused."""

from typing import Any

import numpy as np
import pytest
import pyvips
from numpy.typing import NDArray

from kestrel_core.intake.image_limits import ImageLimits
from kestrel_core.intake.images import decode_image
from kestrel_core.protocol.errors import BadImage

LIMITS = ImageLimits()

Pixels = NDArray[np.uint8]

LOSSLESS = {
    "png": ".png",
    "interlaced png": ".png[interlace]",
    "webp": ".webp[lossless]",
    "tiff": ".tif",
    "tiled tiff": ".tif[compression=deflate,tile]",
    "avif": ".avif[lossless]",
}
LOSSY = {
    "jpeg": ".jpg[Q=95]",
    "progressive jpeg": ".jpg[Q=95,interlace]",
    "lossy webp": ".webp[Q=95]",
    "gif": ".gif",
}
EVERY_FORMAT = LOSSLESS | LOSSY


def picture(height: int = 40, width: int = 60) -> Pixels:
    """Smooth, so that lossy formats keep it."""
    y, x = np.mgrid[0:height, 0:width]
    channels: Pixels = np.stack([x * 255 // width, y * 255 // height, x + y], axis=2).astype(np.uint8)
    return channels


def noise(*shape: int, dtype: type = np.uint8) -> NDArray[Any]:
    return np.random.default_rng(0).integers(0, np.iinfo(dtype).max, shape, dtype=dtype, endpoint=True)


def encode(pixels: NDArray[Any], suffix: str, interpretation: str | None = None, **fields: int) -> bytes:
    """A file of these pixels, in the colour space `interpretation` and with integer metadata."""
    image = pyvips.Image.new_from_array(pixels)
    image = image.copy(interpretation=interpretation or image.interpretation)
    for name, value in fields.items():
        image.set_type(pyvips.GValue.gint_type, name.replace("_", "-"), value)
    return bytes(image.write_to_buffer(suffix))


def decode(source: object, **options: Any) -> Pixels:
    rgb = decode_image(source, LIMITS, **options)
    assert rgb.dtype == np.uint8 and rgb.ndim == 3 and rgb.shape[2] == 3 and rgb.flags.c_contiguous
    return rgb


def refusal(source: object, limits: ImageLimits = LIMITS) -> str:
    with pytest.raises(BadImage) as caught:
        decode_image(source, limits)
    message = str(caught.value)
    assert message and "\n" not in message and len(message) < 220 and "source:" not in message
    return message


def distance(left: Pixels, right: Pixels) -> int:
    assert left.shape == right.shape
    return int(np.abs(left.astype(int) - right).max())
