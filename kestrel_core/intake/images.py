"""Pictures from outside: bytes, a file or a foreign object -> RGB within limits, and a hash of the content.

Nothing here trusts its input. libvips names a file's format, only the loaders listed below ever run, sizes
are checked before a pixel is decoded, and every failure is a `BadImage`. Safe in worker threads. A process
that decodes strangers' files calls `restrict_libvips` first.
"""

import hashlib
import logging
import os
import stat
import sys
from typing import Any, TypeGuard

import numpy as np
import pyvips
from numpy.typing import NDArray

from kestrel_core.intake import exif, gif_frames
from kestrel_core.intake.image_limits import (
    ImageLimits,
    check_bytes,
    check_cost,
    check_frames,
    check_pixels,
)
from kestrel_core.protocol.errors import BadImage

ACCEPTED = "JPEG, PNG, WebP, GIF, TIFF or AVIF"

# libvips' class for a kind of file -> the operation that reads it, and the format's name.
LOADERS = {
    "VipsForeignLoadJpegBuffer": ("jpegload_buffer", "JPEG"),
    # Written by phones: a JPEG with a gain map behind it, which is not applied.
    "VipsForeignLoadUhdrBuffer": ("jpegload_buffer", "JPEG"),
    "VipsForeignLoadPngBuffer": ("pngload_buffer", "PNG"),
    "VipsForeignLoadWebpBuffer": ("webpload_buffer", "WebP"),
    "VipsForeignLoadNsgifBuffer": ("gifload_buffer", "GIF"),
    "VipsForeignLoadTiffBuffer": ("tiffload_buffer", "TIFF"),
    "VipsForeignLoadHeifBuffer": ("heifload_buffer", "AVIF"),
}
# pyvips reads what libvips says of a file as UTF-8, and it may quote a name from there.
FAILURES = (pyvips.Error, UnicodeDecodeError)
MAX_CHANNELS = 5  # CMYK and alpha

# What the numbers of a float image mean is known in these colour spaces alone. In others they may go to 1,
# to 255 or anywhere.
FLOAT_SPACES = ("scrgb", "lab", "lch", "xyz", "yxy", "cmc")


def restrict_libvips() -> None:
    """Make libvips fit to decode strangers' files. This holds for the whole process; again changes nothing.

    Loaders that libvips itself does not trust never run. Its cache of operations, which would keep the pixels
    of requests that were answered long ago, is off. Its warnings, of which a file of 234 bytes can cause a
    megabyte, are not logged: what matters comes as an error.
    """
    pyvips.block_untrusted_set(True)
    pyvips.cache_set_max(0)
    logging.getLogger("pyvips").setLevel(logging.ERROR)


def decode_image(source: object, limits: ImageLimits, *, upright: bool = True) -> NDArray[np.uint8]:
    """Contiguous `[height, width, 3]` of encoded bytes, a path, a `pyvips.Image`, a PIL image or an array.

    `upright` rotates the picture as its EXIF orientation says, so that coordinates are those of the picture
    as it is shown; the reference does not do that. (AVIF decoders always do, because the container says so.)
    If there are several frames or pages, the first is taken.
    """
    orientation = 1
    if isinstance(source, str | os.PathLike):
        source = read_file(source, limits)
    if isinstance(source, bytes | bytearray | memoryview):
        source = ImageFile(source, limits)
    if isinstance(source, ImageFile):
        rgb, orientation = source.decode()
    elif isinstance(source, pyvips.Image):
        try:
            rgb, orientation = _render(source, limits)
        except FAILURES as error:
            raise BadImage("the pyvips image cannot be computed") from error
    elif _is_pil(source):
        rgb, orientation = _convert_pil(source, limits)
    elif isinstance(source, np.ndarray):
        rgb = _check_array(source, limits)
    else:
        kinds = "encoded bytes, a path, a pyvips.Image, a PIL image or an HxWx3 uint8 array"
        raise BadImage(f"an image is {kinds}, not {type(source).__name__}")
    return np.ascontiguousarray(_upright(rgb, orientation) if upright else rgb)


def source_bytes(source: object) -> int:
    """What a picture takes in memory as it was handed over: encoded, or as the pixels of an open image."""
    if isinstance(source, bytes | bytearray):
        return len(source)
    if isinstance(source, pyvips.Image) or _is_pil(source):
        return 3 * int(source.width) * int(source.height)
    size = getattr(source, "nbytes", None) or getattr(source, "num_bytes", 0)  # an array, or prepared already
    return size if isinstance(size, int) else 0


def read_file(path: str | os.PathLike[str], limits: ImageLimits) -> bytes:
    """The bytes of a local file, unless there are too many."""
    try:
        found = os.stat(path)
        if not stat.S_ISREG(found.st_mode):
            raise BadImage("the image path names no regular file")
        check_bytes(found.st_size, limits)
        with open(path, "rb") as file:
            encoded = file.read(limits.max_bytes + 1)  # one more, to notice a file that grew meanwhile
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a path"
        raise BadImage(f"the image file cannot be read ({reason})") from error
    check_bytes(len(encoded), limits)
    return encoded


def image_hash(
    content: bytes | NDArray[np.uint8], version: int, *, upright: bool = True, salt: str = ""
) -> str:
    """A digest of an encoded file, or of decoded RGB, and of everything that changes what becomes of it.

    With another salt it is another one, so that whatever is kept by it is found with the same salt alone.
    """
    if isinstance(content, np.ndarray):
        kind, data = f"{content.dtype.str} {content.shape}", np.ascontiguousarray(content).data
    else:
        kind, data = "file", memoryview(content)
    # With the salt's length and a zero at the end, it can run neither into the salt nor into the data.
    salted = f" salt={len(salt)}:{salt}" if salt else ""
    head = f"{kind} v{version} upright={upright}{salted}\0".encode()
    digest = hashlib.blake2b(head, digest_size=32, person=b"kestrel image")
    digest.update(data)
    return digest.hexdigest()


class ImageFile:
    """An encoded picture whose header was read and found within limits. No pixel is decoded yet."""

    def __init__(self, source: bytes | bytearray | memoryview, limits: ImageLimits) -> None:
        check_bytes(memoryview(source).nbytes, limits)
        encoded = bytes(source)
        if not encoded:
            raise BadImage(f"the image is empty; send a file in {ACCEPTED}")
        self._operation, self._name = _sniff(encoded)
        self._limits = limits
        self._image: Any = None
        check_frames(encoded, self._name, limits)
        readable, self._orientation = exif.take_out(encoded, self._name)
        readable, self._around = gif_frames.opaque(readable) if self._name == "GIF" else (readable, None)
        try:
            # Sequential: a large picture streams through instead of going by way of a temporary file.
            loader = getattr(pyvips.Image, self._operation)
            self._image = loader(readable, access="sequential", fail_on="error")
        except FAILURES as error:
            raise self._damaged(error) from error
        self.cost = check_cost(self._image, encoded, self._name, limits)  # in pixels of a plain JPEG

    def decode(self) -> tuple[NDArray[np.uint8], int]:
        """Its pixels, and its EXIF orientation. This can be done once."""
        image, self._image = self._image, None
        try:
            if image.interpretation != "cmyk":
                # A decoder gives one line after another, so several threads would wait for each other. The
                # arithmetic of CMYK alone is worth more threads.
                image.set_type(pyvips.GValue.gint_type, "concurrency", 1)
            if image.format in ("float", "double", "complex", "dpcomplex"):
                image = _finite(image, self._name)
            rgb, orientation = _render(image, self._limits)
            rgb = rgb if self._around is None else self._around.fill(rgb)
            return rgb, self._orientation or orientation
        except FAILURES as error:
            if _field(image, "heif-compression") == "hevc":
                raise BadImage(
                    "HEIC images cannot be decoded here; convert to JPEG, PNG, WebP or AVIF"
                ) from error
            raise self._damaged(error) from error

    def _damaged(self, error: Any) -> BadImage:
        return BadImage(f"the {self._name} image is damaged or cut short{_reason(error, self._operation)}")


def _sniff(encoded: bytes) -> tuple[str, str]:
    found = pyvips.vips_lib.vips_foreign_find_load_buffer(pyvips.ffi.from_buffer(encoded), len(encoded))
    loader = LOADERS.get(pyvips.ffi.string(found).decode()) if found else None
    if loader is None:
        pyvips.vips_lib.vips_error_clear()  # or the next error would begin with the line of this one
        raise BadImage(f"the image is damaged or in no accepted format; send {ACCEPTED}")
    return loader


def _finite(image: Any, name: str) -> Any:
    """The same image, computed, if its numbers have a meaning; else most of them would come out black."""
    if image.interpretation not in FLOAT_SPACES or image.bands > MAX_CHANNELS:
        raise BadImage(
            f"the {name} image holds floating-point numbers of no known range; save it with 8 or 16 bits"
        )
    image = image.copy_memory()
    if not np.isfinite(image.numpy()).all():
        raise BadImage(f"the {name} image holds values that are no numbers (NaN or infinity)")
    return image


def _render(image: Any, limits: ImageLimits) -> tuple[NDArray[np.uint8], int]:
    """8-bit RGB and its EXIF orientation. Pixels are computed here, so `pyvips.Error` is raised here."""
    width, height = image.width, image.height
    check_pixels(width, height, limits)
    if image.bands > MAX_CHANNELS:
        raise BadImage(f"the image has {image.bands} channels, and at most {MAX_CHANNELS} make a picture")
    orientation = _field(image, "orientation") or 1
    # Most pictures need none of these steps. Each is a pass over all pixels, even if it changes nothing.
    if image.format == "ushort":
        image = image.cast("uchar", shift=True)
    if image.interpretation == "cmyk":
        # Without the colour profile, as in the reference: an ink darkens what the black ink has left.
        white = 255 - image.extract_band(3)
        image = white - (image.extract_band(0, n=3) * white / 255).rint()
    elif image.interpretation != "srgb" or image.bands < 3:
        image = image.colourspace("srgb")
    if image.format != "uchar":
        image = image.cast("uchar")
    pixels = np.frombuffer(image.write_to_memory(), np.uint8).reshape(height, width, -1)
    if pixels.shape[2] > 3:  # alpha is dropped, not composited; plane by plane is four times as fast
        pixels = np.stack([pixels[..., channel] for channel in range(3)], axis=2)
    return pixels, orientation


def _field(image: Any, name: str) -> Any:
    return image.get(name) if image.get_typeof(name) else None


def _reason(error: Any, operation: str) -> str:
    """The first line that is this loader's: libvips has one error buffer, to which all threads write."""
    if not isinstance(error, pyvips.Error):
        pyvips.vips_lib.vips_error_clear()  # pyvips failed before it did, and would fail for the next one too
        return ""
    own = operation.removesuffix("load_buffer")
    for line in error.detail.splitlines():
        domain, _, text = line.partition(": ")
        if own in domain.lower() and text:
            return f" ({text[:100].strip()})"
    return ""


def _is_pil(source: object) -> TypeGuard[Any]:
    """A caller who has a PIL image has imported PIL, so it need not be imported here."""
    module = sys.modules.get("PIL.Image")
    return module is not None and isinstance(source, module.Image)


def _convert_pil(image: Any, limits: ImageLimits) -> tuple[NDArray[np.uint8], int]:
    check_pixels(image.width, image.height, limits)
    try:
        if image.mode.startswith("I;16"):  # PIL would clip these at 255
            grey = (np.asarray(image) >> 8).astype(np.uint8)
            return np.stack([grey] * 3, axis=2), image.getexif().get(exif.ORIENTATION, 1)
        return np.asarray(image.convert("RGB")), image.getexif().get(exif.ORIENTATION, 1)
    except (OSError, SyntaxError, ValueError) as error:  # PIL reads files late
        raise BadImage("the PIL image cannot be read; its file is damaged or gone") from error


def _check_array(array: NDArray[Any], limits: ImageLimits) -> NDArray[np.uint8]:
    if array.dtype != np.uint8 or array.ndim != 3 or array.shape[2] != 3 or not array.size:
        raise BadImage(f"an image array is HxWx3 uint8 with pixels in it, not {array.shape} {array.dtype}")
    check_pixels(array.shape[1], array.shape[0], limits)
    return array


def _upright(rgb: NDArray[np.uint8], orientation: int) -> NDArray[np.uint8]:
    """Upright pixels. EXIF 2 to 4: mirrored, rotated by half, flipped; 5 to 8: transposed, then 1 to 4."""
    if orientation in (5, 6, 7, 8):
        rgb = rgb.transpose(1, 0, 2)
    if orientation in (3, 4, 7, 8):
        rgb = rgb[::-1]
    if orientation in (2, 3, 6, 7):
        rgb = rgb[:, ::-1]
    return rgb
