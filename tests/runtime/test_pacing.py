"""Engines over both runtimes, on a CPU: streams beside pictures, paced or not, say the same."""

from dataclasses import replace

import pytest
import torch
from paced import NUM_PICTURES, NUM_STREAMS, answers, prepare_at_once
from tiny import tiny_config, tiny_model

from kestrel_core import build
from kestrel_core.build import LoadedModel
from kestrel_core.config import RuntimeConfig
from kestrel_core.intake.tokenizer import Tokenizer
from kestrel_core.runtime.cuda_runtime import CudaRuntime
from kestrel_core.runtime.vision.crop_batches import CropBatches
from kestrel_core.runtime.vision.image_encoder import ImageEncoder
from kestrel_core.skills.spec import Language


@pytest.mark.parametrize(("generation", "fast"), [(2, True), (3, True), (2, False)])
def test_streams_and_pictures_say_the_same_whatever_the_pacing(
    generation: int, fast: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare_at_once(monkeypatch)
    shape = tiny_config(generation, vocab_size=300)
    language = Language(shape, Tokenizer.of_bytes(shape))
    model = LoadedModel(tiny_model(shape), language, torch.device("cpu"))
    batches = CropBatches(model.network.vision, max_crops=16)

    def on_cpu(
        model: LoadedModel, config: RuntimeConfig, page_size: int, max_context: int, *_: bool | None
    ) -> CudaRuntime:
        encoder = ImageEncoder(model.network.vision, batches)
        return CudaRuntime(model.network, 400, page_size, config.max_batch_size, max_context, encoder)

    if fast:
        monkeypatch.setattr(build, "_runtime", on_cpu)
    config = RuntimeConfig(device="cpu", max_batch_size=16, step_tokens=256)
    expected, plans = answers(model, config, side=80)
    assert len(expected) == NUM_STREAMS + NUM_PICTURES and not any(plan.encodes for plan in plans)
    found, plans = answers(model, replace(config, vision_pacing="slices"), side=80)
    assert found == expected
    assert sum(bool(plan.encodes) for plan in plans) > 1
