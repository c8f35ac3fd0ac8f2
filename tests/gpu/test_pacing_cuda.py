"""Pictures beside streams on a GPU: in slices, with the same answers as without."""

from dataclasses import replace

import pytest
import torch
from paced import NUM_PICTURES, NUM_STREAMS, answers, prepare_at_once

from kestrel_core.build import open_model
from kestrel_core.config import RuntimeConfig
from kestrel_core.intake.models import DEMO
from kestrel_core.loop.step import Encode, PreparedImage
from kestrel_core.moondream.vision import num_crops
from kestrel_core.runtime.vision.image_encoder import ImageEncoder

pytestmark = pytest.mark.gpu

CONFIG = RuntimeConfig(model=DEMO, weights="random", device="cuda", dtype="float32", max_batch_size=16)


def test_streams_and_pictures_say_the_same_whatever_the_pacing(monkeypatch: pytest.MonkeyPatch) -> None:
    prepare_at_once(monkeypatch)
    model = open_model(CONFIG)
    side = 2 * model.network.config.vision.crop_size
    expected, plans = answers(model, CONFIG, side)
    assert len(expected) == NUM_STREAMS + NUM_PICTURES and not any(plan.encodes for plan in plans)
    found, plans = answers(model, replace(CONFIG, vision_pacing="slices"), side)
    assert found == expected
    assert sum(bool(plan.encodes) for plan in plans) > 1


def test_a_picture_in_parts_has_the_embeddings_it_has_as_a_whole() -> None:
    """While the current stream is busy, and with other pictures in the same batches."""
    model = open_model(CONFIG)
    network = model.network
    size, batches = network.config.vision.crop_size, model.fast_paths.crop_batches("auto", "auto", "auto")
    generator = torch.Generator().manual_seed(1)
    images = []
    for number, tiling in enumerate([(2, 2), (1, 1), (1, 3), (3, 2)]):
        crops = torch.randint(0, 256, (1 + tiling[0] * tiling[1], size, size, 3), generator=generator)
        images.append(PreparedImage(str(number), crops.byte().numpy(), tiling))
    whole, parts = ImageEncoder(network.vision, batches), ImageEncoder(network.vision, batches)
    whole.warm_up()
    expected = [embeddings.clone() for embeddings in whole.encode_many(images)]
    busy = torch.randn(2048, 2048, device="cuda")
    while any(map(parts.num_missing, images)):
        for _ in range(20):
            busy = busy @ busy.sigmoid() / 2048
        left, encodes = 3, []
        for image in images:
            if left and (missing := parts.num_missing(image)):
                encodes.append(Encode(image, min(left, missing)))
                left -= encodes[-1].num_crops
        parts.encode_ahead(encodes)
    found = parts.encode_many(images)
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, atol=2e-5, rtol=1e-4)
    assert parts.num_encoded == len(images) and not parts._whole
    torch.cuda.synchronize()
    assert all(map(parts.seconds, images))
    assert sum(num_crops(image.tiling) for image in images) == 17
