"""Files and images of every kind decode to the RGB that the reference would see."""

import io
from pathlib import Path

import numpy as np
import pytest
import pyvips
from image_files import (
    LIMITS,
    LOSSLESS,
    LOSSY,
    Pixels,
    decode,
    distance,
    encode,
    noise,
    picture,
)
from PIL import Image
from safetensors.numpy import load_file

from kestrel_core.intake.image_limits import ImageLimits
from kestrel_core.intake.images import decode_image, image_hash, read_file

MODES = Path(__file__).parents[1] / "golden/md2/images/modes"


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
