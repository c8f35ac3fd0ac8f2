"""An engine in which streams decode while pictures come, stepped in the caller's thread."""

import numpy as np
import pytest

from kestrel_core import build
from kestrel_core.build import Engine, LoadedModel, assemble_engine
from kestrel_core.config import RuntimeConfig
from kestrel_core.loop.step import StepInFlight, StepPlan
from kestrel_core.protocol.messages import Event, Finished, Request, Settings
from kestrel_tools.bench.parts.scheduler import InlineWorkers
from kestrel_tools.bench.requests.endless_query import endless_skills

NUM_STREAMS, NUM_PICTURES = 3, 5


def prepare_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """All pictures are there as soon as they are sent; otherwise the streams might have ended before."""
    monkeypatch.setattr(build, "FairWorkers", lambda *_: InlineWorkers())


def answers(model: LoadedModel, config: RuntimeConfig, side: int) -> tuple[dict[str, object], list[StepPlan]]:
    """What is said, and what was computed once the streams were under way. `side`: of pictures, about."""
    engine = assemble_engine(model, config, endless_skills())
    rng, said, plans = np.random.default_rng(7), dict[str, Event](), list[StepPlan]()
    for number in range(NUM_STREAMS):
        _ask(engine, said, f"stream {number}", None, 80)
    while engine.loop.metrics.output_tokens < 6 * NUM_STREAMS:
        engine.loop.step(wait=True)
    launch = engine.loop.runtime.launch

    def watched(plan: StepPlan) -> StepInFlight:
        plans.append(plan)
        return launch(plan)

    engine.loop.runtime.launch = watched  # type: ignore[method-assign]
    for number in range(NUM_PICTURES):
        shape = (side * (4 + number) // 8, side * (9 - number) // 8, 3)
        _ask(engine, said, f"picture {number}", rng.integers(0, 256, shape, np.uint8), 3)
    while engine.loop.num_open:
        engine.loop.step(wait=True)
    engine.loop.scheduler.check()
    assert engine.metrics()["images_encoded"] == NUM_PICTURES
    engine.close()
    assert all(isinstance(event, Finished) for event in said.values())
    return {name: said[name].result.output for name in sorted(said)}, plans  # type: ignore[union-attr]


def _ask(engine: Engine, said: dict[str, Event], name: str, image: object, tokens: int) -> None:
    settings = Settings(temperature=0.0, max_tokens=tokens)
    request = Request("query", {"question": f"{name}?"}, image, settings, name)  # type: ignore[arg-type]
    engine.loop.submit(request, lambda event: said.__setitem__(name, event))
