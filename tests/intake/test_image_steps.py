"""Every way from a file to upright RGB: steps that a picture does not need are left out without a trace."""

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import pyvips
from image_files import (
    Pixels,
    decode,
    encode,
    noise,
    refusal,
)
from PIL import Image

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
