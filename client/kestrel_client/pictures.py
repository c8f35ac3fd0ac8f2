"""A picture of any kind as the bytes of a file, which is how it travels."""

import io
import os
import sys
from typing import Any

from kestrel_core.protocol.errors import BadImage

ACCEPTED = "encoded bytes, a path, a PIL image, a pyvips.Image or an HxWx3 uint8 array"


def encoded(image: Any) -> bytes:
    """A picture's file as it is; an image in memory as PNG, upright, so that nothing is lost or rotated."""
    if isinstance(image, bytes | bytearray | memoryview):
        return bytes(image)
    if isinstance(image, str | os.PathLike):
        return _read(image)
    # A caller who has an image of a library has imported that library, so it need not be imported here.
    for module, name, encode in (
        ("PIL.Image", "Image", _encode_pil),
        ("pyvips", "Image", _encode_vips),
        ("numpy", "ndarray", _encode_array),
    ):
        found = sys.modules.get(module)
        if found is not None and isinstance(image, getattr(found, name)):
            return encode(image)
    raise BadImage(f"an image is {ACCEPTED}, not {type(image).__name__}")


def _read(path: Any) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a path"
        raise BadImage(f"{os.fspath(path)!r} cannot be read ({reason})") from error


def _encode_pil(image: Any) -> bytes:
    from PIL import ImageOps

    try:
        upright = ImageOps.exif_transpose(image)
        picture = upright if upright.mode.startswith("I;16") else upright.convert("RGB")
        png = io.BytesIO()
        picture.save(png, "PNG", compress_level=1)  # large is cheaper than late
    except (OSError, SyntaxError, ValueError) as error:  # PIL reads files late
        raise BadImage("the PIL image cannot be read; its file is damaged or gone") from error
    return png.getvalue()


def _encode_vips(image: Any) -> bytes:
    try:
        return bytes(image.autorot().write_to_buffer(".png", compression=1))
    except Exception as error:  # pyvips.Error, of a module that we do not import
        raise BadImage("the pyvips image cannot be computed") from error


def _encode_array(array: Any) -> bytes:
    if array.dtype.name != "uint8" or array.ndim != 3 or array.shape[2] != 3 or not array.size:
        raise BadImage(f"an image array is HxWx3 uint8 with pixels in it, not {array.shape} {array.dtype}")
    try:
        from PIL import Image
    except ImportError:
        raise BadImage("to send an array install Pillow, or send the bytes of a file") from None
    return _encode_pil(Image.fromarray(array))
