import hashlib
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import pyvips
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from kestrel_core.intake.image_limits import ImageLimits
from kestrel_core.intake.images import decode_image
from kestrel_core.moondream.config import MOONDREAM2, MOONDREAM3, VisionConfig
from kestrel_core.moondream.crops.cutting import choose_tiling, cut_crops

GOLDEN = Path(__file__).parents[2] / "golden"
VISION = MOONDREAM2.vision

# Windows of 16 pixels: every branch of the tiling within pictures that are quick to resize.
SMALL_CROPS = replace(VISION, enc_patch_size=2, crop_size=28, overlap_margin=3, max_crops=5)


def golden_rgb(name: str) -> NDArray[np.uint8]:
    return decode_image(GOLDEN / name, ImageLimits(), upright=False)


def noise(height: int, width: int, seed: int = 0) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def resized(rgb: NDArray[np.uint8], height: int, width: int) -> NDArray[np.uint8]:
    image = pyvips.Image.new_from_array(rgb).resize(width / rgb.shape[1], vscale=height / rgb.shape[0])
    return np.asarray(image.numpy())


@st.composite
def sizes(draw: st.DrawFn, longest: int) -> tuple[int, int]:
    """Height and width, of any aspect from 1:50 to 50:1."""
    long = draw(st.integers(1, longest))
    short = draw(st.integers(max(1, long // 50), long))
    return (long, short) if draw(st.booleans()) else (short, long)


def test_every_golden_tiling_of_moondream_2_is_chosen() -> None:
    table = json.loads((GOLDEN / "md2/tiling.json").read_text())
    assert len(table["rows"]) == 540
    for height, width, max_crops, margin, rows, cols in table["rows"]:
        vision = replace(VISION, max_crops=max_crops, overlap_margin=margin)
        assert choose_tiling(height, width, vision) == (rows, cols), (height, width, max_crops, margin)


def test_every_golden_tiling_of_moondream_3_is_chosen() -> None:
    for case in json.loads((GOLDEN / "md3/tilings.json").read_text()):
        assert choose_tiling(case["height"], case["width"], MOONDREAM3.vision) == tuple(case["tiling"]), case


@pytest.mark.parametrize("name", ["small.png", "tall.png", "large.jpg"])
def test_golden_crops_are_equal_to_the_byte(name: str) -> None:
    stem = name.partition(".")[0]
    expected = json.loads((GOLDEN / "md2/crops.json").read_text())[stem]
    rgb = golden_rgb(f"md2/images/{name}")
    assert rgb.shape == (expected["height"], expected["width"], 3)
    assert hashlib.sha256(rgb.tobytes()).hexdigest() == expected["rgb_sha256"]
    crops = cut_crops(rgb, VISION)
    assert crops.tiling == tuple(expected["tiling"])
    archive = GOLDEN / f"md2/crops_{stem}.npz"
    if archive.exists():
        np.testing.assert_array_equal(crops.pixels, np.load(archive)["crops"])
    assert hashlib.sha256(crops.pixels.tobytes()).hexdigest() == expected["crops_sha256"]


@pytest.mark.parametrize(("name", "tiling"), [("small", (1, 1)), ("wide", (2, 4)), ("tall", (6, 2))])
def test_pictures_of_moondream_3_are_cut_into_their_tilings(name: str, tiling: tuple[int, int]) -> None:
    crops = cut_crops(golden_rgb(f"md3/images/{name}.png"), MOONDREAM3.vision)
    assert crops.tiling == tiling
    assert crops.pixels.shape == (1 + tiling[0] * tiling[1], 378, 378, 3)


@settings(max_examples=500, deadline=None, derandomize=True)
@given(sizes(longest=30_000), st.integers(1, 20), st.integers(0, 12))
def test_a_tiling_keeps_to_the_budget_unless_one_line_of_tiles_exceeds_it(
    size: tuple[int, int], max_crops: int, margin: int
) -> None:
    vision = replace(VISION, max_crops=max_crops, overlap_margin=margin)
    rows, cols = choose_tiling(*size, vision)
    assert rows >= 1 and cols >= 1
    assert rows * cols <= max_crops or min(rows, cols) == 1
    inner = [side - 2 * vision.margin_px for side in size]
    if min(inner) <= vision.window_px:
        assert (rows, cols) == (1, 1)
    # No more than the budget, and the root of what a single line of tiles at full resolution would add.
    tiles = [max(1, -(-side // vision.window_px)) for side in inner]
    assert rows * cols <= max(max_crops, (max_crops * max(tiles)) ** 0.5)


@settings(max_examples=120, deadline=None, derandomize=True)
@given(sizes(longest=1500), st.integers(0, 2**32 - 1))
def test_crops_are_the_resized_picture_and_windows_of_the_working_image(
    size: tuple[int, int], seed: int
) -> None:
    check_crops(noise(*size, seed), SMALL_CROPS)


@pytest.mark.parametrize(
    "size",
    [(1, 1), (1, 2), (50, 1), (1, 4000), (378, 378), (379, 379), (400, 20_000), (20_000, 400), (900, 2600)],
)
def test_crops_of_full_size_are_windows_too(size: tuple[int, int]) -> None:
    check_crops(noise(*size), VISION)


def check_crops(rgb: NDArray[np.uint8], vision: VisionConfig) -> None:
    pixels, (rows, cols) = cut_crops(rgb, vision)
    crop, window, margins = vision.crop_size, vision.window_px, 2 * vision.margin_px
    assert (rows, cols) == choose_tiling(rgb.shape[0], rgb.shape[1], vision)
    assert pixels.dtype == np.uint8 and pixels.flags.c_contiguous
    assert pixels.shape == (1 + rows * cols, crop, crop, 3)
    np.testing.assert_array_equal(pixels[0], resized(rgb, crop, crop))
    working = resized(rgb, rows * window + margins, cols * window + margins)
    for index, local in enumerate(pixels[1:]):
        top, left = index // cols * window, index % cols * window
        np.testing.assert_array_equal(local, working[top : top + crop, left : left + crop])


@settings(max_examples=60, deadline=None, derandomize=True)
@given(sizes(longest=1500), st.tuples(*[st.integers(0, 255)] * 3))
def test_a_picture_of_one_colour_keeps_it(size: tuple[int, int], colour: tuple[int, int, int]) -> None:
    pixels, _ = cut_crops(np.full((*size, 3), colour, np.uint8), SMALL_CROPS)
    assert (pixels == np.array(colour, np.uint8)).all()


@pytest.mark.parametrize("target", [378, 644, 2240, 5698])
def test_a_resize_gives_the_size_asked_for(target: int) -> None:
    """`cut_crops` relies on it; libvips knows the size before it computes a pixel."""
    for side in [*range(1, 1500, 7), *range(1500, 40_000, 1237)]:
        across = pyvips.Image.black(side, 3).resize(target / side, vscale=378 / 3)
        down = pyvips.Image.black(3, side).resize(378 / 3, vscale=target / side)
        assert (across.width, across.height, down.width, down.height) == (target, 378, 378, target), side


def test_views_and_read_only_arrays_are_cut_like_their_copies() -> None:
    rgb = noise(300, 500)
    view = rgb[::-1, 20:420]
    view.flags.writeable = False
    np.testing.assert_array_equal(cut_crops(view, VISION).pixels, cut_crops(view.copy(), VISION).pixels)
