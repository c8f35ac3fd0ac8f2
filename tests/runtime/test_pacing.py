"""An engine over the CUDA runtime, on a CPU: streams beside pictures, paced or not, say the same."""

import numpy as np
import pytest
import torch
from tiny import tiny_config, tiny_model

from kestrel_core import build
from kestrel_core.build import Engine, LoadedModel, assemble_engine
from kestrel_core.config import RuntimeConfig
from kestrel_core.intake.tokenizer import Tokenizer
from kestrel_core.loop.step import StepPlan
from kestrel_core.protocol.messages import Event, Finished, Request, Settings
from kestrel_core.runtime.cuda_runtime import CudaRuntime
from kestrel_core.runtime.readouts.captured import SamplesInFlight
from kestrel_core.runtime.vision.crop_batches import CropBatches
from kestrel_core.runtime.vision.image_encoder import ImageEncoder
from kestrel_core.skills.spec import Language
from kestrel_tools.bench.endless_query import endless_skills
from kestrel_tools.bench.scheduler import InlineWorkers

NUM_STREAMS, NUM_PICTURES = 3, 5


class Watched(CudaRuntime):
    """Keeps its plans."""

    plans: list[StepPlan]

    def launch(self, plan: StepPlan) -> SamplesInFlight:
        self.plans.append(plan)
        return super().launch(plan)


@pytest.fixture(autouse=True)
def cuda_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    def on_cpu(
        model: LoadedModel, config: RuntimeConfig, page_size: int, max_context: int, *_: bool | None
    ) -> CudaRuntime:
        vision = model.network.vision
        encoder = ImageEncoder(vision, CropBatches(vision))
        runtime = Watched(model.network, 400, page_size, config.max_batch_size, max_context, encoder)
        runtime.plans = []
        return runtime

    monkeypatch.setattr(build, "_runtime", on_cpu)
    # All pictures are there at once; otherwise the streams might have ended before.
    monkeypatch.setattr(build, "FairWorkers", lambda *_: InlineWorkers())


def ask(engine: Engine, said: dict[str, Event], name: str, image: object, tokens: int) -> None:
    settings = Settings(temperature=0.0, max_tokens=tokens)
    request = Request("query", {"question": f"{name}?"}, image, settings, name)  # type: ignore[arg-type]
    engine.loop.submit(request, lambda event: said.__setitem__(name, event))


def answers(generation: int, pacing: str) -> tuple[dict[str, object], list[StepPlan]]:
    """What is said, and what was computed."""
    config = tiny_config(generation, vocab_size=300)
    language = Language(config, Tokenizer.of_bytes(config))
    loaded = LoadedModel(tiny_model(config), language, torch.device("cpu"))
    options = RuntimeConfig(device="cpu", max_batch_size=16, vision_pacing=pacing)
    engine = assemble_engine(loaded, options, endless_skills())
    assert isinstance(engine.runtime, Watched)
    engine.runtime.plans.clear()  # of the warm-up
    rng, said = np.random.default_rng(7), dict[str, Event]()
    for number in range(NUM_STREAMS):
        ask(engine, said, f"stream {number}", None, 80)
    while engine.loop.metrics.output_tokens < 6 * NUM_STREAMS:
        engine.loop.step(wait=True)
    for number in range(NUM_PICTURES):
        pixels = rng.integers(0, 256, (40 + 9 * number, 90 - 5 * number, 3), np.uint8)
        ask(engine, said, f"picture {number}", pixels, 3)
    while engine.loop.num_open:
        engine.loop.step(wait=True)
    engine.loop.scheduler.check()
    assert engine.metrics()["images_encoded"] == NUM_PICTURES
    plans = engine.runtime.plans
    engine.close()
    assert all(isinstance(event, Finished) for event in said.values())
    return {name: said[name].result.output for name in sorted(said)}, plans  # type: ignore[union-attr]


@pytest.mark.parametrize("generation", [2, 3])
def test_streams_and_pictures_say_the_same_whatever_the_pacing(generation: int) -> None:
    expected, plans = answers(generation, "off")
    assert len(expected) == NUM_STREAMS + NUM_PICTURES and not any(plan.encodes for plan in plans)
    for pacing in ("slices", "beside"):
        found, plans = answers(generation, pacing)
        assert found == expected
        assert sum(bool(plan.encodes) for plan in plans) > 1
