"""The plain torch path on a CUDA device: answers as on the CPU, and room for the full-size models."""

import copy
import json
import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from kestrel_core.build import LoadedModel, assemble_engine, open_model
from kestrel_core.config import RuntimeConfig
from kestrel_core.protocol.messages import Event, Finished, Request, Settings

pytestmark = pytest.mark.gpu

NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
REQUESTS = [
    Request("query", {"question": "What is this?"}),
    Request("query", {"question": "What is this?", "reasoning": True}),
    Request("query", {"question": "Here?", "spatial_refs": [[0.2, 0.3], [0.1, 0.2, 0.5, 0.6]]}),
    Request("caption", {"length": "short"}),
    Request("detect", {"object": "circle"}),
    Request("point", {"object": "circle"}),
]


def answers(model: LoadedModel, config: RuntimeConfig) -> list[dict[str, object]]:
    """All requests at once, over two pictures."""
    engine = assemble_engine(model, config)
    rng = np.random.default_rng(7)
    pictures = [rng.integers(0, 256, shape, np.uint8) for shape in ((300, 200, 3), (500, 700, 3))]
    events: dict[int, Event] = {}
    for index, request in enumerate(REQUESTS * 2):
        limit = {"max_objects": 3} if request.skill in ("detect", "point") else {"max_tokens": 12}
        asked = replace(request, image=pictures[index % 2], settings=Settings(temperature=0, **limit))
        engine.loop.submit(asked, lambda event, at=index: events.__setitem__(at, event))
    while engine.loop.num_open:
        engine.loop.step(wait=True)
    engine.loop.scheduler.check()
    engine.close()
    outputs = []
    for index in range(len(REQUESTS) * 2):
        event = events[index]
        assert isinstance(event, Finished), event
        outputs.append(event.result.output)
    return outputs


def test_a_model_answers_on_cuda_as_on_the_cpu() -> None:
    config = RuntimeConfig(model="moondream-tiny", device="cpu", max_batch_size=8)
    model = open_model(config)
    on_cuda = LoadedModel(copy.deepcopy(model.network).cuda(), model.language, torch.device("cuda"))
    for ours, expected in zip(
        answers(on_cuda, replace(config, device="cuda")), answers(model, config), strict=True
    ):
        assert ours.keys() == expected.keys()
        for key in ours:  # a box is put together from numbers that differ in their last bits
            mine, other = json.dumps(ours[key]), json.dumps(expected[key])
            assert NUMBER.split(mine) == NUMBER.split(other)
            numbers = [[float(found) for found in NUMBER.findall(text)] for text in (mine, other)]
            assert numbers[0] == pytest.approx(numbers[1], abs=1e-6)


@pytest.mark.parametrize(
    ("name", "parameters"), [("moondream2", 1_927_237_104), ("moondream3-preview", 9_268_626_928)]
)
def test_a_full_size_model_with_random_weights_answers(name: str, parameters: int) -> None:
    config = RuntimeConfig(model=name, device="cuda", weights="random", max_batch_size=64)
    model = open_model(config)
    assert sum(p.numel() for p in model.network.parameters()) == parameters
    assert {p.dtype for p in model.network.parameters()} == {torch.bfloat16}
    assert len(answers(model, config)) == 12
