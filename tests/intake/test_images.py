import io
import struct
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pyvips
from numpy.typing import NDArray
from PIL import Image
from safetensors.numpy import load_file

from kestrel_core.intake.images import ImageLimits, decode_image, image_hash, read_file
from kestrel_core.protocol.errors import BadImage

MODES = Path(__file__).parent / "golden/md2/images/modes"
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


@pytest.mark.parametrize("path", sorted(MODES.glob("*.[pj]*")), ids=lambda path: path.name)
def test_golden_files_of_every_mode_decode_as_the_reference_does(path: Path) -> None:
    expected = load_file(MODES / "expected_rgb.safetensors")[path.name]
    assert distance(decode(path, upright=False), expected) <= (2 if path.suffix == ".jpg" else 0)


@pytest.mark.parametrize("name", LOSSLESS)
def test_lossless_formats_give_the_pixels_back(name: str) -> None:
    pixels = noise(40, 60, 3)
    np.testing.assert_array_equal(decode(encode(pixels, LOSSLESS[name])), pixels)


@pytest.mark.parametrize("name", LOSSY)
def test_lossy_formats_come_close(name: str) -> None:
    pixels = picture()
    decoded = decode(encode(pixels, LOSSY[name]))
    assert decoded.shape == pixels.shape
    assert np.abs(decoded.astype(int) - pixels).mean() < 6


@pytest.mark.parametrize("suffix", [".gif", ".webp[lossless]"])
def test_the_first_frame_of_an_animation_counts(suffix: str) -> None:
    frames = np.concatenate([np.full((20, 30, 3), shade, np.uint8) for shade in (40, 120, 200)])
    animation = encode(frames, suffix, page_height=20)
    assert pyvips.Image.new_from_buffer(animation, "").get("n-pages") == 3
    np.testing.assert_array_equal(decode_image(animation, ImageLimits(max_pixels=600)), frames[:20])


def test_the_first_page_of_a_tiff_counts() -> None:
    pages = noise(60, 30, 3)
    document = encode(pages, ".tif", page_height=20)
    np.testing.assert_array_equal(decode_image(document, ImageLimits(max_pixels=600)), pages[:20])


def test_sixteen_bits_lose_their_lower_half() -> None:
    wide = noise(20, 30, 4, dtype=np.uint16)
    for suffix in (".png", ".tif"):
        for channels, interpretation in ((3, "rgb16"), (4, "rgb16"), (1, "grey16"), (2, "grey16")):
            decoded = decode(encode(wide[..., :channels], suffix, interpretation=interpretation))
            expected = wide[..., :3] if channels > 2 else wide[..., [0, 0, 0]]
            np.testing.assert_array_equal(decoded, expected >> 8)


def test_ten_bit_avif_is_brought_to_eight() -> None:
    pixels = noise(20, 30, 3)
    wide = pixels.astype(np.uint16) << 8
    deep = encode(wide, ".avif[lossless,bitdepth=10]", interpretation="rgb16")
    np.testing.assert_array_equal(decode(deep), pixels)


@pytest.mark.parametrize("suffix", [".png", ".tif", ".webp[lossless,exact]"])
def test_alpha_is_dropped_and_not_composited(suffix: str) -> None:
    pixels = noise(20, 30, 4)
    pixels[:10, :, 3] = 0
    np.testing.assert_array_equal(decode(encode(pixels, suffix)), pixels[..., :3])


@pytest.mark.parametrize("channels", [1, 2])
def test_grey_is_replicated(channels: int) -> None:
    pixels = noise(20, 30, channels)
    decoded = decode(encode(pixels, ".png", interpretation="b-w"))
    np.testing.assert_array_equal(decoded, pixels[..., [0, 0, 0]])


def test_palettes_and_single_bits_are_expanded() -> None:
    for mode in ("P", "1"):
        image = Image.fromarray(picture()).convert(mode)
        file = io.BytesIO()
        image.save(file, "PNG")
        np.testing.assert_array_equal(decode(file.getvalue()), np.asarray(image.convert("RGB")))


def test_cmyk_is_converted_without_its_profile_as_pillow_does() -> None:
    inks = noise(50, 60, 4)
    expected = np.asarray(Image.frombytes("CMYK", (60, 50), inks.tobytes()).convert("RGB"))
    profiled = pyvips.Image.new_from_array(inks).copy(interpretation="cmyk")
    profiled.set_type(
        pyvips.GValue.blob_type, "icc-profile-data", bytes(pyvips.Operation.call("profile_load", "cmyk"))
    )
    np.testing.assert_array_equal(decode(profiled.write_to_buffer(".tif")), expected)


def test_profiles_are_ignored() -> None:
    pixels = noise(20, 30, 3)
    profiled = encode(pixels, ".png[profile=p3]")
    assert pyvips.Image.new_from_buffer(profiled, "").get_typeof("icc-profile-data")
    np.testing.assert_array_equal(decode(profiled), pixels)


@pytest.mark.parametrize("space", ["lab", "labs", "scrgb"])
def test_other_colour_spaces_go_through_libvips(space: str) -> None:
    pixels = noise(20, 30, 3)
    image = pyvips.Image.new_from_array(pixels).colourspace(space)
    assert image.format != "uchar"
    assert distance(decode(image.write_to_buffer(".tif")), pixels) <= 1


def test_a_gain_map_behind_a_jpeg_changes_nothing() -> None:
    ultra = pyvips.Image.new_from_array(picture()).colourspace("scrgb").uhdrsave_buffer(Q=95)
    sniffed = pyvips.vips_lib.vips_foreign_find_load_buffer(pyvips.ffi.from_buffer(ultra), len(ultra))
    assert pyvips.ffi.string(sniffed) == b"VipsForeignLoadUhdrBuffer"
    plain = np.asarray(Image.open(io.BytesIO(ultra)).convert("RGB"))
    assert distance(decode(ultra), plain) <= 2


# What EXIF says has to be done to the pixels as stored, so that they stand upright.
TURNS: dict[int, Callable[[Pixels], Pixels]] = {
    1: lambda p: p,
    2: np.fliplr,
    3: lambda p: np.rot90(p, 2),
    4: np.flipud,
    5: lambda p: np.transpose(p, (1, 0, 2)),
    6: lambda p: np.rot90(p, -1),
    7: lambda p: np.transpose(np.rot90(p, 2), (1, 0, 2)),
    8: lambda p: np.rot90(p, 1),
}


@pytest.mark.parametrize("orientation", TURNS)
def test_orientation_is_applied_unless_the_reference_is_wanted(orientation: int) -> None:
    stored = noise(16, 24, 3)
    shown = TURNS[orientation](stored)
    for suffix in (".png", ".tif", ".webp[lossless]"):
        file = encode(stored, suffix, orientation=orientation)
        np.testing.assert_array_equal(decode(file), shown)
        np.testing.assert_array_equal(decode(file, upright=False), stored)
    jpeg = encode(stored, ".jpg", orientation=orientation)
    np.testing.assert_array_equal(decode(jpeg), TURNS[orientation](decode(jpeg, upright=False)))
    np.testing.assert_array_equal(decode(Image.open(io.BytesIO(jpeg))), decode(jpeg))
    # libvips writes an orientation into AVIF as a turn of the container, which every decoder applies.
    avif = encode(stored, ".avif[lossless]", orientation=orientation)
    np.testing.assert_array_equal(decode(avif), shown)


def by_every_step(image: Any) -> Pixels:
    """RGB of a picture, with no step left out because the picture seems not to need it."""
    if image.format == "ushort":
        image = image.cast("uchar", shift=True)
    if image.interpretation == "cmyk":
        white = 255 - image.extract_band(3)
        image = white - (image.extract_band(0, n=3) * white / 255).rint()
    else:
        image = image.colourspace("srgb")
    pixels: Pixels = image.extract_band(0, n=3).cast("uchar").numpy()
    return pixels


# Suffix, channels, type and colour space of files that take different ways to RGB.
WAYS: dict[str, tuple[str, int, type, str]] = {
    "rgb": (".png", 3, np.uint8, "srgb"),
    "interlaced": (".png[interlace]", 3, np.uint8, "srgb"),
    "alpha": (".png", 4, np.uint8, "srgb"),
    "interlaced alpha": (".png[interlace]", 4, np.uint8, "srgb"),
    "grey": (".png", 1, np.uint8, "b-w"),
    "grey alpha": (".png", 2, np.uint8, "b-w"),
    "one bit": (".png[bitdepth=1]", 1, np.uint8, "b-w"),
    "palette": (".png[palette]", 3, np.uint8, "srgb"),
    "palette alpha": (".png[palette,bitdepth=4]", 4, np.uint8, "srgb"),
    "deep": (".png", 3, np.uint16, "rgb16"),
    "deep alpha": (".png", 4, np.uint16, "rgb16"),
    "deep grey": (".png", 1, np.uint16, "grey16"),
    "deep grey alpha": (".png", 2, np.uint16, "grey16"),
    "jpeg": (".jpg", 3, np.uint8, "srgb"),
    "progressive jpeg": (".jpg[interlace]", 3, np.uint8, "srgb"),
    "grey jpeg": (".jpg", 1, np.uint8, "b-w"),
    "cmyk jpeg": (".jpg", 4, np.uint8, "cmyk"),
    "cmyk": (".tif", 4, np.uint8, "cmyk"),
    "deep cmyk": (".tif", 4, np.uint16, "cmyk"),
    "cmyk alpha": (".tif", 5, np.uint8, "cmyk"),
    "webp alpha": (".webp", 4, np.uint8, "srgb"),
    "five channels": (".tif", 5, np.uint8, "multiband"),
}


@pytest.mark.parametrize("way", WAYS)
def test_files_decode_as_if_no_step_were_left_out(way: str) -> None:
    suffix, channels, dtype, space = WAYS[way]
    rng = np.random.default_rng(5)
    for orientation in TURNS:
        height, width = rng.integers(1, 80, 2)
        pixels = rng.integers(0, np.iinfo(dtype).max, (height, width, channels), dtype, endpoint=True)
        file = encode(pixels, suffix, space, orientation=orientation)
        stored = by_every_step(pyvips.Image.new_from_buffer(file, "", fail_on="error"))
        np.testing.assert_array_equal(decode(file, upright=False), stored)
        np.testing.assert_array_equal(decode(file), TURNS[orientation](stored))


@pytest.mark.parametrize("space", ["srgb", "rgb", "rgb16", "b-w", "scrgb", "lab", "hsv", "cmyk", "multiband"])
def test_vips_images_of_any_type_decode_as_if_no_step_were_left_out(space: str) -> None:
    num_decoded = 0
    for channels in range(1, 6):
        for kind in ("uchar", "char", "ushort", "short", "uint", "int", "float", "double"):
            plain = pyvips.Image.new_from_array(noise(5, 7, channels))
            image = (plain * 1.7 - 20).cast(kind).copy(interpretation=space)
            try:
                expected = by_every_step(image)
            except pyvips.Error:
                assert "cannot be computed" in refusal(image)
            else:
                np.testing.assert_array_equal(decode(image), expected)
                num_decoded += 1
    assert num_decoded >= 8


def test_one_thread_decodes_a_file_unless_there_is_much_to_compute(monkeypatch: pytest.MonkeyPatch) -> None:
    compute, seen = pyvips.Image.write_to_memory, []

    def watch(image: Any) -> Any:
        seen.append(image.get("concurrency") if image.get_typeof("concurrency") else None)
        return compute(image)

    monkeypatch.setattr(pyvips.Image, "write_to_memory", watch)
    decode(encode(noise(20, 30, 3), ".png"))
    decode(encode(noise(20, 30, 1, dtype=np.uint16), ".png", "grey16"))  # through conversions too
    decode(encode(noise(20, 30, 4), ".jpg", "cmyk"))  # arithmetic, which threads share
    decode(pyvips.Image.new_from_array(noise(20, 30, 3)))
    assert seen == [1, 1, None, None]


def test_every_kind_of_source_gives_the_same_picture(tmp_path: Path) -> None:
    pixels = noise(20, 30, 3)
    png = encode(pixels, ".png")
    path = tmp_path / "picture"
    path.write_bytes(png)
    strided = memoryview(bytes(byte for pair in zip(png, png, strict=True) for byte in pair))[::2]
    vips, pil = pyvips.Image.new_from_array(pixels), Image.fromarray(pixels)
    for source in (
        png,
        bytearray(png),
        memoryview(png),
        strided,
        path,
        str(path),
        vips,
        pil,
        pixels,
        pixels[:],
    ):
        np.testing.assert_array_equal(decode(source), pixels)


def test_views_of_arrays_become_contiguous() -> None:
    pixels = noise(20, 30, 3)
    np.testing.assert_array_equal(decode(pixels[::2, ::-1]), pixels[::2, ::-1])


@pytest.mark.parametrize("mode", ["L", "LA", "RGBA", "P", "1", "CMYK", "YCbCr"])
def test_pil_images_of_any_mode_are_converted_by_pil(mode: str) -> None:
    image = (
        Image.fromarray(noise(20, 30, 4), "RGBA") if mode in ("LA", "RGBA") else Image.fromarray(picture())
    )
    image = image.convert(mode)
    np.testing.assert_array_equal(decode(image), np.asarray(image.convert("RGB")))


def test_a_deep_grey_pil_image_is_the_same_as_its_file() -> None:
    deep = Image.fromarray(noise(20, 30, dtype=np.uint16))
    file = io.BytesIO()
    deep.save(file, "PNG")
    np.testing.assert_array_equal(decode(deep), decode(file.getvalue()))


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


def test_a_hash_tells_apart_whatever_changes_the_picture() -> None:
    pixels = noise(20, 30, 3)
    png = encode(pixels, ".png")
    contents: list[bytes | Pixels] = [png, png + b"\0", pixels.tobytes(), pixels, pixels.reshape(30, 20, 3)]
    contents.append(pixels[::-1])
    hashes = [
        image_hash(content, version, upright=upright)
        for content in contents
        for version in (1, 2, 12)
        for upright in (True, False)
    ]
    assert len(set(hashes)) == len(hashes)
    assert all(len(digest) == 64 and int(digest, 16) >= 0 for digest in hashes)


def test_equal_contents_hash_equally(tmp_path: Path) -> None:
    pixels = noise(20, 30, 3)
    assert image_hash(pixels[::-1], 1) == image_hash(pixels[::-1].copy(), 1)
    path = tmp_path / "picture.png"
    path.write_bytes(encode(pixels, ".png"))
    assert image_hash(read_file(path, LIMITS), 1) == image_hash(encode(pixels, ".png"), 1)
