"""What is no picture, is damaged or too large: refused with a sentence that helps."""

import io
import struct
import subprocess
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pyvips
from image_files import (
    EVERY_FORMAT,
    LOSSLESS,
    decode,
    encode,
    noise,
    picture,
    refusal,
)
from numpy.typing import NDArray
from PIL import Image

from kestrel_core.intake.image_limits import ImageLimits
from kestrel_core.intake.images import decode_image, restrict_libvips
from kestrel_core.protocol.errors import BadImage


def test_damaged_pil_and_vips_images_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "cut.png"
    path.write_bytes(encode(noise(40, 60, 3), ".png")[:3000])
    with Image.open(path) as cut:
        assert "PIL image cannot be read" in refusal(cut)
    message = refusal(pyvips.Image.new_from_file(str(path), fail_on="error"))
    assert message == "the pyvips image cannot be computed"


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((0, 5, 3), np.uint8),
        np.zeros((5, 0, 3), np.uint8),
        np.zeros((5, 5), np.uint8),
        np.zeros((5, 5, 4), np.uint8),
        np.zeros((3, 5, 5), np.uint8),
        np.zeros((1, 5, 5, 3), np.uint8),
        np.zeros((5, 5, 3), np.float32),
        np.zeros((5, 5, 3), np.int8),
    ],
    ids=lambda array: f"{array.shape} {array.dtype}",
)
def test_arrays_of_other_shapes_and_types_are_refused(array: NDArray[Any]) -> None:
    assert "HxWx3 uint8" in refusal(array)


@pytest.mark.parametrize("source", [None, 7, [1, 2, 3], object()])
def test_other_objects_are_refused(source: object) -> None:
    assert type(source).__name__ in refusal(source)


def test_an_empty_file_is_refused() -> None:
    assert "empty" in refusal(b"")


@pytest.mark.parametrize(
    "content",
    {
        "text": b"a picture of a cat\n",
        "noise": np.random.default_rng(1).bytes(5000),
        "svg": b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><path d="M0 0"/></svg>',
        "pdf": b"%PDF-1.4\n1 0 obj\n<< /Type /Catalog >>\nendobj\n",
        "ppm": b"P6\n2 2\n255\n" + bytes(12),
        "bmp": b"BM"
        + struct.pack("<IHHIIiiHHIIiiII", 70, 0, 0, 54, 40, 2, 2, 1, 24, 0, 16, 0, 0, 0, 0)
        + bytes(16),
        "csv": b"1,2,3\n4,5,6\n",
        "html": b"<!DOCTYPE html><html><body>not found</body></html>",
        "vips": bytes.fromhex("08f2a6b6") + bytes(200),
    }.items(),
    ids=lambda item: item[0],
)
def test_anything_but_pictures_is_refused_with_the_list_of_formats(content: tuple[str, bytes]) -> None:
    assert "send JPEG, PNG, WebP, GIF, TIFF or AVIF" in refusal(content[1])
    assert pyvips.ffi.string(pyvips.vips_lib.vips_error_buffer()) == b""  # nothing is left for the next error


def test_loaders_that_libvips_does_not_trust_are_blocked_and_nothing_is_cached() -> None:
    restrict_libvips()
    with pytest.raises(pyvips.Error, match="blocked"):
        pyvips.Image.svgload_buffer(b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>')
    decode(encode(picture(), ".png"))
    assert pyvips.cache_get_size() == 0


@pytest.mark.parametrize("kept", [0.98, 0.5, 0.1])
@pytest.mark.parametrize("name", EVERY_FORMAT)
def test_truncated_files_are_refused(name: str, kept: float) -> None:
    file = encode(noise(120, 160, 3), EVERY_FORMAT[name])
    decode(file)
    assert "image is damaged or " in refusal(file[: int(len(file) * kept)])


@pytest.mark.parametrize("name", EVERY_FORMAT)
def test_damaged_files_decode_or_are_refused(name: str) -> None:
    rng = np.random.default_rng(7)
    whole = np.frombuffer(encode(noise(24, 32, 3), EVERY_FORMAT[name]), np.uint8)
    for _ in range(40):
        damaged = whole.copy()
        front = rng.choice([40, len(whole)])  # headers decide the most
        damaged[rng.integers(0, front, 3)] = rng.integers(0, 256, 3)
        try:
            rgb = decode_image(damaged.tobytes(), ImageLimits(max_pixels=10_000))
        except BadImage as error:
            assert "\n" not in str(error)
        else:
            assert rgb.ndim == 3 and rgb.shape[0] * rgb.shape[1] <= 10_000


def test_a_tiff_whose_directory_survives_the_cut_is_refused() -> None:
    file = io.BytesIO()
    Image.fromarray(noise(120, 160, 3)).save(file, "TIFF")  # Pillow writes the directory first
    whole = file.getvalue()
    decode(whole)
    assert "TIFF image is damaged or cut short (Read error" in refusal(whole[: len(whole) // 2])


def test_a_header_alone_is_refused() -> None:
    for suffix in EVERY_FORMAT.values():
        refusal(encode(picture(), suffix)[:12])


def heic() -> bytes:
    """An AVIF file relabelled as what phones write: the boxes of HEVC, which needs a licence to decode."""

    def relabel(boxes: bytes) -> bytes:
        relabelled, start = b"", 0
        while start < len(boxes):
            length, kind = struct.unpack_from(">I4s", boxes, start)
            body = boxes[start + 8 : start + length]
            start += length
            if kind == b"meta":
                body = body[:4] + relabel(body[4:])
            elif kind in (b"iprp", b"ipco"):
                body = relabel(body)
            elif kind == b"av1C":
                kind, body = b"hvcC", b"\x01" + bytes(20) + b"\x03\x00"
            body = body.replace(b"avif", b"heic") if kind == b"ftyp" else body
            body = body.replace(b"av01", b"hvc1") if kind == b"iinf" else body
            relabelled += struct.pack(">I4s", 8 + len(body), kind) + body
        return relabelled

    return relabel(encode(picture(), ".avif"))


def test_heic_says_what_to_convert_it_to() -> None:
    assert refusal(heic()) == "HEIC images cannot be decoded here; convert to JPEG, PNG, WebP or AVIF"


def png_header(width: int, height: int) -> bytes:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(99)))


def patched(suffix: str, marker: bytes, offset: int, size: bytes) -> bytes:
    """A small file whose header claims another size."""
    file = bytearray(encode(picture(), suffix))
    at = file.index(marker) + offset
    file[at : at + len(size)] = size
    return bytes(file)


def bombs() -> dict[str, bytes]:
    square = struct.pack(">HH", 60_000, 60_000)
    little = struct.pack("<HH", 60_000, 60_000)
    tiff_side = struct.pack("<HHII", 257, 4, 1, 2_000_000)  # the height, in 60 columns
    return {
        "png": png_header(60_000, 60_000),
        "jpeg": patched(".jpg", b"\xff\xc0", 5, square),
        "gif": patched(".gif", b"\x2c\0\0\0\0", 5, little),
        "webp": patched(".webp[lossless,keep=none]", b"VP8L", 9, struct.pack("<I", 16_382 | 16_382 << 14)),
        "tiff": patched(".tif", struct.pack("<H", 257), 0, tiff_side),
        "avif": patched(".avif", b"ispe", 8, struct.pack(">II", 60_000, 60_000)),
    }


@pytest.mark.parametrize("name", bombs())
def test_a_header_that_claims_too_many_pixels_is_refused_before_decoding(name: str) -> None:
    # No pixels stand behind the claim, so that decoding first would have found a damaged file.
    assert "the limit is 100,000,000 pixels" in refusal(bombs()[name])


def test_avif_pixels_beyond_its_header_are_refused() -> None:
    lie = bytearray(encode(np.zeros((600, 800, 3), np.uint8), ".avif"))
    at = lie.index(b"ispe") + 8
    lie[at : at + 8] = struct.pack(">II", 10, 10)
    assert "AVIF image is damaged" in refusal(bytes(lie))


def test_the_pixel_limit_is_inclusive_and_holds_for_every_source() -> None:
    pixels = noise(20, 30, 3)
    for source in (
        encode(pixels, ".png"),
        pyvips.Image.new_from_array(pixels),
        Image.fromarray(pixels),
        pixels,
    ):
        np.testing.assert_array_equal(decode_image(source, ImageLimits(max_pixels=600)), pixels)
        assert "30 x 20 and the limit is 599 pixels" in refusal(source, ImageLimits(max_pixels=599))


def test_the_byte_limit_is_inclusive_and_comes_first(tmp_path: Path) -> None:
    png = encode(noise(20, 30, 3), ".png")
    path = tmp_path / "picture.png"
    path.write_bytes(png)
    for source in (png, memoryview(png), path):
        decode_image(source, ImageLimits(max_bytes=len(png)))
        message = refusal(source, ImageLimits(max_bytes=len(png) - 1))
        assert f"{len(png):,} bytes and the limit is {len(png) - 1:,}" in message
    assert "bytes" in refusal(b"not a picture", ImageLimits(max_bytes=5))


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "sparse.png"
    with open(path, "wb") as file:
        file.truncate(2**40)
    assert "1,099,511,627,776 bytes" in refusal(path)


def test_paths_that_cannot_be_read_are_refused_without_naming_them(tmp_path: Path) -> None:
    missing = tmp_path / "missing.png"
    assert refusal(missing) == "the image file cannot be read (No such file or directory)"
    assert refusal(tmp_path) == "the image path names no regular file"
    assert refusal("/dev/zero") == "the image path names no regular file"
    assert "cannot be read" in refusal("a\0b")


def test_too_many_channels_are_refused() -> None:
    assert "7 channels" in refusal(encode(noise(20, 30, 7), ".tif"))


def test_threads_decode_and_fail_without_disturbing_each_other() -> None:
    files = {name: encode(noise(64, 96, 3), suffix) for name, suffix in LOSSLESS.items()}
    whole = {name: decode(file) for name, file in files.items()}
    own_words = {"png": "libpng", "webp": "parse", "tiff": "TIFF", "avif": "iloc"}

    def work(turn: int) -> None:
        name = list(files)[turn % len(files)]
        np.testing.assert_array_equal(decode(files[name]), whole[name])
        message = refusal(files[name][: len(files[name]) // 2])
        kind = name.split()[-1]
        others = [words for other, words in own_words.items() if other != kind]
        assert not any(words in message.partition("(")[2] for words in others), message

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(240)))


ROOT = Path(__file__).parents[2]
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>'
LOOK = f"""
import logging, pyvips
def look():
    pyvips.Image.svgload_buffer({SVG!r})
    return pyvips.cache_get_max(), logging.getLogger("pyvips").level
before = look()
"""


def test_importing_this_module_leaves_libvips_as_it_was() -> None:
    code = f"{LOOK}\nimport kestrel_core.intake.images\nassert look() == before"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, timeout=60)


def test_whoever_prepares_pictures_has_restricted_libvips() -> None:
    code = f"""{LOOK}
from kestrel_core.intake.image_limits import ImageLimits
from kestrel_core.intake.image_preparer import ImagePreparer
from kestrel_core.moondream.config import MOONDREAM2
ImagePreparer(MOONDREAM2.vision, ImageLimits(), lambda: 0.0, lambda seconds: None)
assert pyvips.cache_get_max() == 0 and logging.getLogger("pyvips").level == logging.ERROR
try:
    look()
except pyvips.Error:
    raise SystemExit(7)
"""
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, timeout=60).returncode == 7


def float_tiff(pixels: NDArray[Any], interpretation: str) -> bytes:
    return encode(pixels.astype(np.float32), ".tif", interpretation)


def test_floats_whose_range_nobody_knows_are_refused_and_not_shown_black() -> None:
    grey = np.linspace(0, 1, 600).reshape(20, 30)
    message = refusal(float_tiff(grey, "b-w"))
    assert message == (
        "the TIFF image holds floating-point numbers of no known range; save it with 8 or 16 bits"
    )


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_no_numbers_are_refused(value: float) -> None:
    pixels = np.full((20, 30, 3), 0.5)
    assert decode(float_tiff(pixels, "scrgb")).min() > 100
    pixels[3, 4, 1] = value
    assert "NaN or infinity" in refusal(float_tiff(pixels, "scrgb"))


def test_a_float_image_beyond_the_limit_is_refused_before_it_is_computed() -> None:
    file = float_tiff(np.zeros((20, 30, 3)), "scrgb")
    assert "the limit is 599 pixels" in refusal(file, ImageLimits(max_pixels=599))


def fax(width: int = 64, height: int = 10_000) -> bytes:
    """A TIFF of 212 bytes in the code of fax machines, whose lines are damaged: libtiff warns of each."""
    data = b"\x55" * 90
    fields = ((256, width), (257, height), (258, 1), (259, 3), (262, 0), (273, 8), (277, 1))
    fields += ((278, height), (279, len(data)))
    entries = [struct.pack("<HHII", tag, 4, 1, value) for tag, value in fields]
    directory = struct.pack("<H", len(entries)) + b"".join(entries) + bytes(4)
    return b"II*\0" + struct.pack("<I", 8 + len(data)) + data + directory


def test_warnings_of_libvips_do_not_flood_the_log(caplog: pytest.LogCaptureFixture) -> None:
    restrict_libvips()
    assert "TIFF image is damaged" in refusal(fax())
    assert not caplog.records
