"""Pictures in batches: the same embeddings as one by one, whatever shares the batch."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tiny import tiny_config, tiny_model

from kestrel_core.intake.image_limits import ImageLimits
from kestrel_core.intake.image_preparer import ImagePreparer
from kestrel_core.loop.step import PreparedImage
from kestrel_core.moondream.config import MOONDREAM2
from kestrel_core.moondream.crops.cutting import cut_crops
from kestrel_core.moondream.crops.resampling import can_cut
from kestrel_core.moondream.fast_vision import FastVision
from kestrel_core.moondream.ops import plain
from kestrel_core.moondream.vision import num_crops
from kestrel_core.runtime.fast_paths import FastPaths
from kestrel_core.runtime.vision.crop_batches import CropBatches, batch_sizes
from kestrel_core.runtime.vision.image_encoder import ImageEncoder, encode_image

CONFIG = tiny_config(2)


def picture(seed: int, tiling: tuple[int, int]) -> PreparedImage:
    crops = np.random.default_rng(seed).integers(0, 256, (1 + tiling[0] * tiling[1], 28, 28, 3), np.uint8)
    if tiling == (1, 1):
        crops[1] = crops[0]  # as cropping makes them
    return PreparedImage(str(seed), crops, tiling)


PICTURES = [picture(i, tiling) for i, tiling in enumerate([(2, 3), (1, 1), (3, 4), (1, 2), (1, 1), (3, 3)])]


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("max_crops", [1, 5, 14, 64])
def test_pictures_of_a_batch_are_what_they_are_alone(fast: bool, max_crops: int) -> None:
    vision = tiny_model(CONFIG, seed=2).vision
    encode = FastVision(vision, plain) if fast else None
    together = CropBatches(vision, encode, max_crops=max_crops)(PICTURES)
    for encoded, image in zip(together, PICTURES, strict=True):
        alone = encode_image(vision, torch.from_numpy(image.crops), image.tiling)
        torch.testing.assert_close(encoded.on_current_stream(), alone, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(("max_crops", "cuts"), [(1, False), (12, False), (13, True), (64, True)])
def test_small_devices_leave_cutting_to_the_host(
    max_crops: int, cuts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = CropBatches(tiny_model(CONFIG, seed=2).vision, max_crops=max_crops)
    warmed = list[bool]()
    monkeypatch.setattr(batches._uploads, "warm_up", lambda: warmed.append(True))
    assert ImageEncoder(batches._vision, batches).cuts == cuts
    batches.warm_up()
    assert bool(warmed) == cuts, "what is not done takes no memory"


def test_a_picture_of_more_crops_than_a_batch_goes_in_parts() -> None:
    vision = tiny_model(CONFIG, seed=2).vision
    long = picture(9, (1, 30))
    encoded = CropBatches(vision, FastVision(vision, plain), max_crops=14)([PICTURES[0], long, PICTURES[1]])
    for found, image in zip(encoded, (PICTURES[0], long, PICTURES[1]), strict=True):
        alone = encode_image(vision, torch.from_numpy(image.crops), image.tiling)
        torch.testing.assert_close(found.embeddings, alone, atol=1e-5, rtol=1e-5)


def test_no_batch_is_larger_than_it_may_be_nor_encodes_a_tile_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    vision, sizes = tiny_model(CONFIG).vision, []
    encode = vision.encode

    def counting(crops: torch.Tensor) -> torch.Tensor:
        sizes.append(len(crops))
        return encode(crops)

    monkeypatch.setattr(vision, "encode", counting)
    assert [num_crops(image.tiling) for image in PICTURES] == [7, 1, 13, 3, 1, 10]
    CropBatches(vision, max_crops=20)(PICTURES)
    assert sizes == [8, 17, 10]
    sizes.clear()
    CropBatches(vision, max_crops=4)(PICTURES)  # 8 crops, then 13, then 3 + 1, then 10
    assert sizes == [4, 4, 4, 4, 4, 1, 4, 4, 4, 2]


@pytest.mark.parametrize("max_crops", [13, 16, 17, 32, 33, 34, 64])
def test_padding_is_bounded(max_crops: int) -> None:
    sizes = batch_sizes(max_crops)
    assert sizes[-1] == max_crops and sizes == sorted(set(sizes))
    for count in range(1, max_crops + 1):
        padded = next(size for size in sizes if size >= count)
        assert padded - count <= (0 if count <= 32 else 1)


def test_a_picture_asked_for_twice_at_once_is_encoded_once() -> None:
    encoder = ImageEncoder(tiny_model(CONFIG).vision, max_remembered=2)
    first, other, again = encoder.encode_many([PICTURES[0], PICTURES[1], PICTURES[0]])
    assert first is again and first is not other
    assert encoder.num_encoded == 2 and encoder.encode_s > 0


def test_more_pictures_than_are_remembered_are_all_given() -> None:
    encoder = ImageEncoder(tiny_model(CONFIG).vision, max_remembered=2)
    given = encoder.encode_many(PICTURES)
    assert len(given) == 6 and encoder.num_encoded == 6
    assert encoder(PICTURES[5]) is given[5] and encoder.num_encoded == 6
    assert torch.equal(encoder(PICTURES[0]), given[0]) and encoder.num_encoded == 7


def test_one_bad_picture_leaves_the_others_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = ImageEncoder(tiny_model(CONFIG).vision)
    with pytest.raises(RuntimeError):
        encoder.encode_many([PICTURES[0], PICTURES[1]._replace(crops=np.zeros((2, 5, 5, 3), np.uint8))])
    encoder(PICTURES[0])
    assert encoder.num_encoded == 1


def test_a_picture_cut_by_the_device_has_the_embeddings_of_its_crops() -> None:
    """Whole ones and cut ones in one batch, more sizes than tables are kept of, and the same one again."""
    config = tiny_config(2)
    vision, rng = tiny_model(config, seed=2).vision, np.random.default_rng(5)
    sizes = [(int(height), int(width)) for height, width in rng.integers(20, 120, (20, 2))]
    whole, cut = [], []
    for index, (height, width) in enumerate([*sizes, (30, 20), sizes[0]]):
        rgb = rng.integers(0, 256, (height, width, 3), np.uint8)
        assert can_cut(height, width, config.vision)
        crops = cut_crops(rgb, config.vision)
        cut.append(PreparedImage(str(index), crops.pixels, crops.tiling))
        whole.append(PreparedImage(str(index), None, crops.tiling, rgb) if index % 5 else cut[-1])
    batches = CropBatches(vision)
    for ours, expected in zip(batches(whole), batches(cut), strict=True):
        torch.testing.assert_close(ours.embeddings, expected.embeddings, atol=1e-6, rtol=1e-6)
    assert {image.tiling for image in cut} > {(1, 1)}


def test_pictures_are_left_whole_only_where_that_is_asked_for_and_exact() -> None:
    vision, small, large = (
        MOONDREAM2.vision,
        np.zeros((40, 30, 3), np.uint8),
        np.zeros((2100, 2100, 3), np.uint8),
    )

    def prepare(leave_cutting: bool, rgb: NDArray[np.uint8]) -> PreparedImage:
        seconds = list[float]()
        limits = ImageLimits()
        return ImagePreparer(vision, limits, lambda: 0.0, seconds.append, leave_cutting=leave_cutting)(rgb)

    assert prepare(False, small).rgb is None and prepare(False, small).crops is not None
    assert prepare(True, small).rgb is not None and prepare(True, small).crops is None
    assert prepare(True, small).tiling == prepare(False, small).tiling
    assert prepare(True, large).rgb is None, "too many pixels to be cut there"
    assert prepare(True, np.zeros((400, 10_000, 3), np.uint8)).rgb is None, "too many tiles"


def test_batches_are_made_and_warmed_up_once_for_all_engines_over_a_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = tiny_config(2, vocab_size=300)
    network, sizes = tiny_model(config), []
    encode = network.vision.encode

    def counting(crops: torch.Tensor) -> torch.Tensor:
        sizes.append(len(crops))
        return encode(crops)

    monkeypatch.setattr(network.vision, "encode", counting)
    paths = FastPaths(network)
    batches = paths.crop_batches("off", "auto", "off")
    assert paths.crop_batches("off", "auto", "off") is batches
    assert paths.crop_batches("auto", "auto", "off") is not batches
    for _ in range(2):
        ImageEncoder(network.vision, batches).warm_up()
    assert sizes == batch_sizes(64)[::-1]


@pytest.mark.parametrize("in_batches", [False, True])
def test_it_tells_how_long_a_picture_took_unless_it_was_remembered(in_batches: bool) -> None:
    vision = tiny_model(CONFIG).vision
    encoder = ImageEncoder(vision, CropBatches(vision) if in_batches else None)
    encoder(PICTURES[0])
    assert encoder.seconds(PICTURES[0]) > 0 and encoder.seconds(PICTURES[1]) == 0
    encoder(PICTURES[0])
    assert encoder.seconds(PICTURES[0]) == 0, "the second time nothing was computed"
