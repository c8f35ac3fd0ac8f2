"""Crops cut on tensors against those that libvips cuts: equal to the byte, wherever `can_cut` says so."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from kestrel_core.moondream.config import MOONDREAM2, VisionConfig
from kestrel_core.moondream.crops.cutting import Crops, cut_crops
from kestrel_core.moondream.crops.on_device import cut_on_device
from kestrel_core.moondream.crops.resampling import MAX_PIXELS, can_cut, plan_crops
from kestrel_core.runtime.graphs import no_waiting
from kestrel_core.runtime.staging import send

VISION = MOONDREAM2.vision
SMALL_CROPS = replace(VISION, enc_patch_size=2, crop_size=28, overlap_margin=3, max_crops=5)

CHARTS = [(600, 850), (557, 800), (600, 420), (440, 310)]
SIZES = [
    *CHARTS,
    (1, 1),
    (2, 3),
    (378, 378),  # a crop as it comes
    (378, 250),  # one axis stays, but moves with the other
    (700, 378),
    (644, 1176),  # the working image as it comes
    (300, 900),  # one axis grows, the other shrinks
    (40, 1900),  # with averaging first
    (1512, 756),  # whole multiples
    (1511, 1513),
    (1200, 2600),
    (1, 9000),
    (20_000, 100),  # averaged over 26
    (400, 10_000),  # one row of many tiles
]

Picture = Callable[[int, int, np.random.Generator], NDArray[np.uint8]]


def noise(height: int, width: int, rng: np.random.Generator) -> NDArray[np.uint8]:
    return rng.integers(0, 256, (height, width, 3), dtype=np.uint8)


def extremes(height: int, width: int, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Black and white at random: filters overshoot as far as they can."""
    return rng.choice(np.array([0, 255], np.uint8), (height, width, 3))


def gradient(height: int, width: int, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Sums close to where they are rounded the other way."""
    slopes = rng.uniform(-3, 3, (2, 3))
    values = np.arange(height)[:, None, None] * slopes[0] + np.arange(width)[:, None] * slopes[1]
    rgb: NDArray[np.uint8] = np.abs(values).astype(np.int64).astype(np.uint8)  # and round again
    return rgb


def bars(height: int, width: int, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Hard edges between plain colours, as charts have them."""
    rgb = np.full((height, width, 3), 255, np.uint8)
    for _ in range(12):
        top, left = rng.integers(0, height), rng.integers(0, width)
        rgb[top : top + height // 3 + 1, left : left + width // 9 + 1] = rng.integers(0, 256, 3)
    return rgb


PICTURES: list[Picture] = [noise, extremes, gradient, bars]


def cut(rgb: NDArray[np.uint8], vision: VisionConfig, device: torch.device) -> Crops:
    plan = plan_crops(rgb.shape[0], rgb.shape[1], vision)
    rows, cols = plan.tiling
    shape = (1 + rows * cols, vision.crop_size, vision.crop_size, 3)
    crops = torch.full(shape, 77, dtype=torch.uint8, device=device)
    cut_on_device(torch.from_numpy(rgb).to(device), plan, send(plan.tables, device), crops)
    return Crops(crops.cpu().numpy(), plan.tiling)


def check(rgb: NDArray[np.uint8], vision: VisionConfig, device: str = "cpu") -> None:
    assert can_cut(rgb.shape[0], rgb.shape[1], vision)
    expected, found = cut_crops(rgb, vision), cut(rgb, vision, torch.device(device))
    assert found.tiling == expected.tiling
    np.testing.assert_array_equal(found.pixels, expected.pixels)


@pytest.mark.parametrize("picture", PICTURES)
@pytest.mark.parametrize("size", CHARTS)
def test_charts_are_cut_as_by_libvips(size: tuple[int, int], picture: Picture) -> None:
    check(picture(*size, np.random.default_rng(1)), VISION)


@pytest.mark.parametrize("size", SIZES)
def test_every_kind_of_resize_is_equal_to_the_byte(size: tuple[int, int]) -> None:
    check(extremes(*size, np.random.default_rng(2)), VISION)


@pytest.mark.parametrize("seed", range(12))
def test_random_sizes_are_equal_to_the_byte(seed: int) -> None:
    rng = np.random.default_rng(seed)
    height, width = (int(side) for side in 2 ** rng.uniform(4, 11, 2))
    check(PICTURES[seed % 4](height, width, rng), VISION)


def test_many_sizes_are_equal_to_the_byte_in_small_crops() -> None:
    rng = np.random.default_rng(3)
    for number in range(400):
        height, width = (int(side) for side in 2 ** rng.uniform(0, 9.5, 2))
        check(PICTURES[number % 4](height, width, rng), SMALL_CROPS)


def test_every_width_up_to_many_times_the_crop_is_equal_to_the_byte() -> None:
    rng = np.random.default_rng(4)
    for width in [*range(1, 180), *range(181, 896, 17), *range(300, 3584, 56)]:
        check(extremes(20, width, rng), SMALL_CROPS)
        check(extremes(width, 20, rng), SMALL_CROPS)


def test_pictures_that_libvips_alone_can_decide_are_left_to_it() -> None:
    crops = replace(VISION, crop_size=384, overlap_margin=0, enc_patch_size=32)  # 384 is 3 * 128
    assert can_cut(300, 300, crops) and not can_cut(300, 301, crops) and not can_cut(301, 300, crops)


def test_an_odd_size_reduced_to_eight_tiles_is_left_to_libvips() -> None:
    height, width = 480, 3001
    assert plan_crops(height, width, VISION).tiling == (1, 8)
    assert not can_cut(height, width, VISION) and can_cut(height, width + 1, VISION)


def test_pictures_too_large_for_the_device_are_left_to_the_host() -> None:
    assert can_cut(2048, MAX_PIXELS // 2048, VISION)
    assert not can_cut(2048, MAX_PIXELS // 2048 + 1, VISION)
    assert not can_cut(1, 50_000, VISION)  # an average over more pixels than floats are sure of


@pytest.mark.gpu
@pytest.mark.parametrize("picture", PICTURES)
@pytest.mark.parametrize("size", SIZES)
def test_the_gpu_cuts_as_libvips_does(size: tuple[int, int], picture: Picture) -> None:
    check(picture(*size, np.random.default_rng(6)), VISION, "cuda")


@pytest.mark.gpu
def test_cutting_on_the_gpu_never_waits() -> None:
    device = torch.device("cuda")
    rgb = noise(600, 850, np.random.default_rng(7))
    expected = cut_crops(rgb, VISION).pixels
    pinned = torch.from_numpy(rgb).pin_memory()
    crops = torch.zeros(expected.shape, dtype=torch.uint8, device=device)
    with no_waiting():
        plan = plan_crops(600, 850, VISION)
        cut_on_device(pinned.to(device, non_blocking=True), plan, send(plan.tables, device), crops)
    np.testing.assert_array_equal(crops.cpu().numpy(), expected)
