"""A quick start on a GPU: captures between real steps, the same samples, and memory that does not grow."""

import copy
import logging
import time

import pytest
import torch
from storms import NUM_PAGES, Pictures, Storm
from tiny import tiny_config, tiny_model

from kestrel_core.build import assemble_engine, open_model
from kestrel_core.config import RuntimeConfig
from kestrel_core.loop.step import StepPlan
from kestrel_core.moondream.config import MoEConfig
from kestrel_core.moondream.fast_text import FastText
from kestrel_core.moondream.ops.choose import choose_fused
from kestrel_core.runtime.cuda_runtime import CudaRuntime
from kestrel_core.runtime.graphs import Graphs
from kestrel_core.runtime.readouts.captured import SamplesInFlight
from kestrel_core.runtime.torch_runtime import TorchRuntime

pytestmark = pytest.mark.gpu

HEADS = {"dim": 128, "n_heads": 2, "n_kv_heads": 2}
EXPERTS = MoEConfig(num_experts=8, start_layer=1, experts_per_token=2, expert_inner_dim=64)
CONFIGS = {"dense": tiny_config(2, **HEADS), "experts": tiny_config(3, **HEADS, moe=EXPERTS)}
DEVICE = torch.device("cuda")


@pytest.mark.parametrize("name", CONFIGS)
def test_late_captures_between_steps_change_no_sample(name: str, caplog: pytest.LogCaptureFixture) -> None:
    model = tiny_model(CONFIGS[name], seed=2).cuda()
    fast, pictures = copy.deepcopy(model), Pictures(model.config, model.text.wte)
    pictures.capture_more = lambda idle: False  # type: ignore[attr-defined]
    ours = CudaRuntime(
        fast,
        NUM_PAGES,
        5,
        6,
        64,
        pictures,  # type: ignore[arg-type]
        forward=FastText(fast.text, choose_fused(DEVICE)),
        graphs=Graphs(DEVICE, lazy=True),
    )
    with caplog.at_level(logging.WARNING, "kestrel"):
        ours.warm_up(512)
    launch, captures = ours.launch, list[bool]()

    def capture_and_launch(plan: StepPlan) -> SamplesInFlight:
        captures.append(ours.capture_more(idle=True))
        return launch(plan)

    ours.launch = capture_and_launch  # type: ignore[method-assign]
    theirs = TorchRuntime(model, NUM_PAGES, 5)
    theirs.encode_image = pictures  # type: ignore[assignment]
    storm = Storm(model.config, ours, theirs, seed=5, max_batch=6, overlaps=True)
    storm.run(120)
    assert sum(captures) > 4 and ours.num_put_off == 0 and ours.in_use()["graphs"] == "on"
    assert not [
        record for record in caplog.records if record.name == "kestrel" and "captur" in record.message
    ]
    sound = [(mine, other) for _, mine, other in storm.pairs if mine.finite]
    same = [mine.token == other.token and mine.size == other.size for mine, other in sound]
    assert sum(same) > 0.99 * len(same), "float32, summed in another order"


def test_an_engine_captures_the_rest_in_idle_moments_within_its_plan_of_memory() -> None:
    options = {"model": "moondream2", "weights": "random", "max_batch_size": 8, "kv_cache_tokens": 40_000}
    config = RuntimeConfig(quick_start=True, **options)  # type: ignore[arg-type]
    engine = assemble_engine(open_model(config), config)
    runtime = engine.runtime
    assert isinstance(runtime, CudaRuntime)
    assert runtime.num_put_off > 30 and engine.in_use()["graphs"] == "on"
    engine.loop.start()
    try:
        until_s = time.monotonic() + 300  # of a GPU that others use too
        while runtime.num_put_off and time.monotonic() < until_s:
            time.sleep(0.05)
        assert runtime.num_put_off == 0 and engine.in_use()["graphs"] == "on"
        assert runtime.used_bytes <= 1.03 * runtime.planned_bytes, (
            "the loop's thread has workspaces of its own"
        )
    finally:
        engine.close()
