"""Pictures encoded in parts, ahead of their step: the same embeddings, and nothing twice."""

import numpy as np
import pytest
import torch
from tiny import tiny_config, tiny_model

from kestrel_core.loop.step import Encode, PreparedImage
from kestrel_core.moondream.crops.cutting import cut_crops
from kestrel_core.runtime.vision.crop_batches import CropBatches
from kestrel_core.runtime.vision.image_encoder import MAX_PARTIAL, ImageEncoder, encode_image

CONFIG = tiny_config(2)


def picture(seed: int, tiling: tuple[int, int]) -> PreparedImage:
    crops = np.random.default_rng(seed).integers(0, 256, (1 + tiling[0] * tiling[1], 28, 28, 3), np.uint8)
    if tiling == (1, 1):
        crops[1] = crops[0]  # as cropping makes them
    return PreparedImage(str(seed), crops, tiling)


def make(max_crops: int | None = 64) -> ImageEncoder:
    """Without `max_crops` on the plain path."""
    vision = tiny_model(CONFIG, seed=2).vision
    return ImageEncoder(vision, None if max_crops is None else CropBatches(vision, max_crops=max_crops))


def expected(image: PreparedImage) -> torch.Tensor:
    vision = tiny_model(CONFIG, seed=2).vision
    return encode_image(vision, torch.from_numpy(image.crops), image.tiling)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 30])
@pytest.mark.parametrize("max_crops", [5, 14, None])
def test_parts_of_several_pictures_share_batches_and_give_the_same(size: int, max_crops: int | None) -> None:
    encoder = make(max_crops)
    images = [picture(at, tiling) for at, tiling in enumerate([(2, 3), (1, 1), (3, 4), (1, 2)])]
    assert [encoder.num_missing(image) for image in images] == [7, 1, 13, 3]
    while any(map(encoder.num_missing, images)):
        left, encodes = size, []
        for image in images:
            if left and (missing := encoder.num_missing(image)):
                encodes.append(Encode(image, min(left, missing)))
                left -= encodes[-1].num_crops
        encoder.encode_ahead(encodes)
    assert encoder.num_encoded == 4
    for image, found in zip(images, encoder.encode_many(images), strict=True):
        torch.testing.assert_close(found, expected(image), atol=1e-5, rtol=1e-5)
        assert encoder.seconds(image) > 0, "all of its parts"
    assert encoder.num_encoded == 4, "nothing was encoded twice"
    assert (encoder.encode_s > 0) == (max_crops is None), "batches count the device's seconds"
    encoder.encode_many(images)
    assert encoder.seconds(images[0]) == 0, "the second time nothing was computed"


def test_a_picture_that_was_left_whole_is_cut_once_and_encoded_in_parts() -> None:
    encoder, rng = make(), np.random.default_rng(3)
    rgb = rng.integers(0, 256, (60, 90, 3), np.uint8)
    crops = cut_crops(rgb, CONFIG.vision)
    image = PreparedImage("whole", None, crops.tiling, rgb)
    for _ in range(encoder.num_missing(image)):
        encoder.encode_ahead([Encode(image, 1)])
    cut = PreparedImage("cut", crops.pixels, crops.tiling)
    torch.testing.assert_close(encoder(image), expected(cut), atol=1e-5, rtol=1e-5)
    assert encoder.num_encoded == 1


def test_a_step_that_needs_a_picture_now_completes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    vision, sizes = tiny_model(CONFIG, seed=2).vision, list[int]()
    encode = vision.encode

    def counting(crops: torch.Tensor) -> torch.Tensor:
        sizes.append(len(crops))
        return encode(crops)

    monkeypatch.setattr(vision, "encode", counting)
    encoder = ImageEncoder(vision, CropBatches(vision))
    begun, fresh = picture(0, (2, 3)), picture(1, (1, 2))
    encoder.encode_ahead([Encode(begun, 3)])
    assert encoder.num_missing(begun) == 4
    found = encoder.encode_many([fresh, begun])
    assert sizes == [3, 4, 3]
    torch.testing.assert_close(found[1], expected(begun), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(found[0], expected(fresh), atol=1e-5, rtol=1e-5)
    assert encoder.num_missing(begun) == 0 and encoder.num_encoded == 2


def test_what_is_left_behind_makes_room() -> None:
    encoder = make()
    images = [picture(at, (2, 2)) for at in range(MAX_PARTIAL + 1)]
    for image in images:
        encoder.encode_ahead([Encode(image, 2)])
    assert [encoder.num_missing(image) for image in images] == [5, *[3] * MAX_PARTIAL]


def test_more_pictures_at_once_than_may_be_left_in_part() -> None:
    encoder = make()
    images = [picture(at, (1, 2)) for at in range(MAX_PARTIAL + 3)]
    encoder.encode_ahead([Encode(image, 3) for image in images])
    assert not any(map(encoder.num_missing, images)) and encoder.num_encoded == len(images)
    assert not encoder._partial


def test_where_parts_fail_a_picture_is_left_to_its_step(caplog: pytest.LogCaptureFixture) -> None:
    encoder = make()
    bad = picture(0, (1, 2))._replace(crops=np.zeros((3, 5, 5, 3), np.uint8))
    good = picture(1, (1, 2))
    encoder.encode_ahead([Encode(good, 1), Encode(bad, 2)])
    assert "tried as a whole" in caplog.text
    assert encoder.num_missing(bad) == encoder.num_missing(good) == 0
    with pytest.raises(ValueError, match="broadcast"):
        encoder(bad)
    torch.testing.assert_close(encoder(good), expected(good), atol=1e-5, rtol=1e-5)


def test_a_step_that_cannot_finish_a_picture_encodes_it_as_a_whole(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    encoder, image = make(14), picture(0, (2, 2))
    encoder.encode_ahead([Encode(image, 3)])

    def broken(*_: object) -> None:
        raise RuntimeError("out of memory")

    monkeypatch.setattr(encoder._parts, "advance", broken)
    torch.testing.assert_close(encoder(image), expected(image), atol=1e-5, rtol=1e-5)
    assert "tried as a whole" in caplog.text and not encoder._partial


def test_only_pictures_that_fit_a_batch_go_in_parts() -> None:
    assert make(max_crops=14).num_missing(picture(0, (1, 30))) == 0
    assert make(max_crops=None).num_missing(picture(0, (1, 30))) == 31, "there are no batches"
