"""What a picture may cost: limits of bytes, pixels, frames, and of the work of decoding it.

Decoders do as they are told by a few bytes: a GIF of 43 bytes can claim 100 million pixels, a progressive
JPEG can go over all of its pixels a thousand times, and libwebp takes 38 seconds to open 4.6 MB of tiny
frames. So these are counted first, frames even before libvips sees the file.
"""

import struct
from dataclasses import dataclass
from typing import Any

from kestrel_core.protocol.errors import BadImage

# How much longer a pixel takes than in a JPEG or PNG (libvips 8.18: about 7 ns each).
WEIGHTS = {"WebP": 3, "AVIF": 4, "GIF": 2}
INTERLACED_PNG = 4
CHEAP_SCANS = 4  # so many scans of a progressive JPEG take as long as decoding it once
# A file that claims more pixels for each of its bytes is hardly a picture, and costs as many times more.
# Blank pages of fax machines have 8,000.
PIXELS_PER_BYTE = 10_000


@dataclass(frozen=True, slots=True)
class ImageLimits:
    max_bytes: int = 64 * 2**20  # of the encoded file
    max_pixels: int = 100_000_000
    max_cost: int = 400_000_000  # pixels, times how much longer than a plain one each of them takes
    max_frames: int = 1000


def check_bytes(count: int, limits: ImageLimits) -> None:
    if count > limits.max_bytes:
        raise BadImage(
            f"the image has {count:,} bytes and the limit is {limits.max_bytes:,} (max_image_bytes); send a "
            "smaller file"
        )


def check_pixels(width: int, height: int, limits: ImageLimits) -> None:
    if width < 1 or height < 1:
        raise BadImage(f"the image is {width} x {height}: it has no pixels")
    if width * height > limits.max_pixels:
        raise BadImage(
            f"the image is {width:,} x {height:,} and the limit is {limits.max_pixels:,} pixels "
            "(max_image_pixels); shrink it"
        )


def check_frames(encoded: bytes, name: str, limits: ImageLimits) -> None:
    """Before the file is opened: only its first frame is looked at, but decoders go through all of them."""
    if name == "WebP":
        many = encoded.count(b"ANMF") > limits.max_frames
    else:
        many = name == "TIFF" and _has_more_pages(encoded, limits.max_frames)
    if many:
        raise _too_many(limits)


def check_cost(image: Any, encoded: bytes, name: str, limits: ImageLimits) -> int:
    """The cost of decoding what libvips has opened, in pixels of a plain JPEG."""
    check_pixels(image.width, image.height, limits)
    frames = image.get("n-pages") if image.get_typeof("n-pages") else 1
    if frames > limits.max_frames:
        raise _too_many(limits)
    pixels = image.width * image.height
    sample_bytes = image.bands * {"uchar": 1, "ushort": 2}.get(image.format, 4)
    cost = pixels * WEIGHTS.get(name, 1) * max(sample_bytes / 3, 1.0) * _passes(image, encoded, name)
    cost *= max(pixels / len(encoded) / PIXELS_PER_BYTE, 1.0)
    if cost > limits.max_cost:
        raise BadImage(
            f"the image is {image.width:,} x {image.height:,} in {len(encoded):,} bytes of {name}, and would "
            f"cost as much to decode as {cost:,.0f} plain pixels; the limit is {limits.max_cost:,} "
            "(max_image_cost); shrink it, or save it as a plain JPEG"
        )
    return int(cost)


def _passes(image: Any, encoded: bytes, name: str) -> float:
    """How often the decoder goes over all pixels."""
    if not image.get_typeof("interlaced"):
        return 1.0
    if name == "JPEG":  # within a scan, a byte of ones is followed by zeros: so this is never a part of one
        return max(encoded.count(b"\xff\xda") / CHEAP_SCANS, 2.0)
    return float(INTERLACED_PNG) if name == "PNG" else 1.0


def _has_more_pages(encoded: bytes, limit: int) -> bool:
    """Follows the chain of a TIFF's directories. What is damaged is left for the decoder to refuse."""
    order = "<" if encoded[:2] == b"II" else ">"
    is_big = encoded[2:4] in (b"+\0", b"\0+")  # BigTIFF
    pointer, count, entry_bytes = ("Q", "Q", 20) if is_big else ("I", "H", 12)
    try:
        [at] = struct.unpack_from(order + pointer, encoded, 8 if is_big else 4)
        for _ in range(limit):
            if not at:
                return False
            [entries] = struct.unpack_from(order + count, encoded, at)
            end = at + struct.calcsize(order + count) + entries * entry_bytes
            [at] = struct.unpack_from(order + pointer, encoded, end)
    except (struct.error, OverflowError):
        return False
    return bool(at)


def _too_many(limits: ImageLimits) -> BadImage:
    return BadImage(
        f"the image has more than {limits.max_frames:,} frames or pages, which is the limit "
        "(max_image_frames); send the first one"
    )
