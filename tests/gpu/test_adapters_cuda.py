"""Adapters on a GPU, in captured and in large steps, against the plain runtime on the same GPU."""

import copy
import importlib.util
import logging
import threading
from collections import Counter
from pathlib import Path

import pytest
import torch
from random_adapters import MAX_ADAPTERS, empty_stacks, load_all, random_adapter, some_adapters
from storms import Pictures, Storm
from tiny import tiny_config, tiny_model
from torch.profiler import ProfilerActivity, profile

from kestrel_core.build import assemble_engine, open_model
from kestrel_core.config import RuntimeConfig
from kestrel_core.intake.models import MODELS
from kestrel_core.loop.step import Kind, PreparedImage, Readout, Running, Sampling, Span, StepPlan
from kestrel_core.moondream.config import MoEConfig
from kestrel_core.moondream.fast_text import FastText
from kestrel_core.moondream.lora import Stacks
from kestrel_core.moondream.model import Moondream
from kestrel_core.moondream.ops.choose import choose_fused
from kestrel_core.runtime.cuda_runtime import CudaRuntime
from kestrel_core.runtime.graphs import Graphs, no_waiting
from kestrel_core.runtime.torch_runtime import TorchRuntime

pytestmark = pytest.mark.gpu

HEADS = {"dim": 128, "n_heads": 2, "n_kv_heads": 2}  # of 64, as FlashInfer has kernels for
EXPERTS = MoEConfig(num_experts=8, start_layer=1, experts_per_token=2, expert_inner_dim=64)
CONFIGS = {"dense": tiny_config(2, **HEADS), "experts": tiny_config(3, **HEADS, moe=EXPERTS)}
DEVICE = torch.device("cuda")
NUM_PAGES, PAGE_SIZE = 400, 5
ALL = Sampling(logprobs=64)  # the whole vocabulary
TOKEN = Readout(Kind.TOKEN)
LAUNCHES = ("cudaLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernel", "cuLaunchKernelEx")
CALLS = (*LAUNCHES, "cudaGraphLaunch", "cudaMemcpyAsync", "cudaMemsetAsync")


Runtimes = tuple[CudaRuntime, TorchRuntime]


@pytest.fixture(scope="module", params=CONFIGS.values(), ids=CONFIGS)
def model(request: pytest.FixtureRequest) -> Moondream:
    return tiny_model(request.param, seed=2).cuda()


def needs_flashinfer() -> None:
    if importlib.util.find_spec("flashinfer") is None:
        pytest.skip("FlashInfer is not installed here")


def make(model: Moondream, stacks: Stacks | None, graphs: bool = True, warm: bool = True) -> CudaRuntime:
    """Over a copy of the model, with kernels of our own."""
    mine = copy.deepcopy(model)
    runtime = CudaRuntime(
        mine,
        NUM_PAGES,
        PAGE_SIZE,
        6,
        64,
        Pictures(model.config, model.text.wte),  # type: ignore[arg-type]
        forward=FastText(mine.text, choose_fused(DEVICE)),
        graphs=Graphs(DEVICE) if graphs else None,
        stacks=stacks,
    )
    if warm:
        runtime.warm_up(64)
    return runtime


def room(model: Moondream) -> Stacks:
    return empty_stacks(model.config.text, "cuda", model.text.wte.dtype)


def both(model: Moondream, graphs: bool = True) -> Runtimes:
    """The fast one and the plain one, with the same adapters."""
    ours = make(model, room(model), graphs)
    assert (ours._graphs is not None) == graphs, "a capture failed"
    theirs = TorchRuntime(model, NUM_PAGES, PAGE_SIZE, stacks=room(model))
    theirs.encode_image = ours.encode_image
    for runtime in (ours, theirs):
        load_all(runtime, some_adapters(model.config.text))
    return ours, theirs


@pytest.fixture(scope="module")
def captured(model: Moondream) -> Runtimes:
    return both(model)


@pytest.fixture
def pair(captured: Runtimes, model: Moondream) -> Runtimes:
    """Captured once for all tests, which find the same adapters."""
    for runtime in captured:
        load_all(runtime, some_adapters(model.config.text))
    return captured


def prompts(*adapters: int, length: int = 6) -> StepPlan:
    """The same picture and question once for each adapter."""
    spans = []
    for slot, adapter in enumerate(adapters, 1):
        running = Running(slot, list(range(16 * slot, 16 * slot + 16)), ALL, adapter)
        words = [(7 * at) % 60 for at in range(length)]
        spans.append(Span(running, 0, 5, None, PreparedImage("1", None, (1, 1))))
        spans.append(Span(running, 5, 5 + length, words, None, TOKEN))
    return StepPlan(spans)


def decodes(*adapters: int, at: int = 11) -> StepPlan:
    spans = []
    for slot, adapter in enumerate(adapters, 1):
        running = Running(slot, list(range(16 * slot, 16 * slot + 16)), ALL, adapter)
        spans.append(Span(running, at, at + 1, (9,), None, TOKEN))
    return StepPlan(spans)


def values(runtime: CudaRuntime | TorchRuntime, plan: StepPlan) -> dict[int, dict[int, float]]:
    """Log probabilities of all tokens, by slot."""
    return {slot: dict(sample.top) for slot, sample in runtime.launch(plan).collect().items()}


def assert_close(ours: dict[int, dict[int, float]], theirs: dict[int, dict[int, float]]) -> None:
    assert ours.keys() == theirs.keys()
    for slot, expected in theirs.items():
        assert ours[slot] == pytest.approx(expected, abs=1e-3), slot


@pytest.mark.parametrize("overlaps", [False, True], ids=["one by one", "overlapping"])
@pytest.mark.parametrize("graphs", [True, False], ids=["graphs", "eager"])
def test_a_storm_with_adapters_gives_what_the_plain_runtime_gives(
    model: Moondream, pair: Runtimes, graphs: bool, overlaps: bool
) -> None:
    ours, theirs = pair if graphs else both(model, graphs)
    storm = Storm(model.config, ours, theirs, 5, 6, overlaps, num_adapters=MAX_ADAPTERS)
    storm.run(120)
    assert {span.sequence.adapter for span, _, _ in storm.pairs} == {0, 1, 2, 3}
    assert all(mine.finite == other.finite for _, mine, other in storm.pairs)
    sound = [(mine, other) for _, mine, other in storm.pairs if mine.finite]
    same = [
        (mine, other)
        for mine, other in sound
        if (mine.token, mine.coord, mine.size) == (other.token, other.coord, other.size)
    ]
    apart = sorted(
        abs(mine.logprob - other.logprob)
        for mine, other in same
        if mine.logprob is not None and other.logprob is not None
    )
    print(f"{len(same)} of {len(sound)} equal, log probabilities at worst {apart[-1]:.1e} apart")
    assert apart[-1] < 1e-3 and len(same) >= 0.99 * len(sound)


@pytest.mark.parametrize("name", CONFIGS)
def test_a_storm_in_bfloat16_stays_near_the_plain_runtime(name: str) -> None:
    needs_flashinfer()
    model = tiny_model(CONFIGS[name], seed=2, dtype=torch.bfloat16).cuda()
    storm = Storm(model.config, *both(model), 5, 6, overlaps=True, num_adapters=MAX_ADAPTERS)
    storm.run(120)
    sound = [(mine, other) for _, mine, other in storm.pairs if mine.finite]
    same = [one for one in sound if one[0][:3] == one[1][:3]]
    apart = sorted(
        abs(mine.logprob - other.logprob)
        for mine, other in same
        if mine.logprob is not None and other.logprob is not None
    )
    most = apart[len(apart) * 9 // 10]
    print(f"{len(same)} of {len(sound)} equal, log probabilities within {most:.1e}, at worst {apart[-1]:.1e}")
    assert most < 0.1 and len(same) >= 0.8 * len(sound)


@pytest.mark.parametrize(
    "adapters",
    [(1, 0, 2, 3), (2, 2, 2, 2), (0, 0, 3), (1, 2, 3, 1, 2, 3)],
    ids=lambda adapters: str(adapters),
)
@pytest.mark.parametrize("length", [6, 50], ids=["captured", "large"])
def test_prompts_and_decodes_under_mixed_adapters(
    pair: Runtimes, adapters: tuple[int, ...], length: int
) -> None:
    ours, theirs = pair
    for plan in (prompts(*adapters, length=length), decodes(*adapters, at=5 + length)):
        assert_close(values(ours, plan), values(theirs, plan))


def test_an_adapter_is_replaced_behind_the_steps_that_read_it(model: Moondream, pair: Runtimes) -> None:
    """They are still waiting for the device when the load begins."""
    ours, theirs = pair
    text = model.config.text
    new = random_adapter(text, 6, seed=9)
    plans = [prompts(1, 2), decodes(1, 2)]
    before = [values(theirs, plan) for plan in plans]
    torch.cuda._sleep(500_000_000)  # a fraction of a second of the device's time
    launched = [ours.launch(plan) for plan in plans]
    worker = threading.Thread(target=ours.adapter_loader(1), args=(new,))
    worker.start()
    assert_close({slot: dict(sample.top) for slot, sample in launched[0].collect().items()}, before[0])
    assert_close({slot: dict(sample.top) for slot, sample in launched[1].collect().items()}, before[1])
    worker.join()
    load_all(theirs, {1: new})
    for plan, old in zip(plans, before, strict=True):
        after = values(theirs, plan)
        assert_close(values(ours, plan), after)
        assert after[1] != pytest.approx(old[1], abs=1e-2) and after[2] == pytest.approx(old[2], abs=1e-3)


def test_adapters_are_loaded_while_steps_use_others(model: Moondream, pair: Runtimes) -> None:
    ours, theirs = pair
    plans = [prompts(1, 0, 2), *(decodes(1, 0, 2, at=at) for at in range(11, 20))]
    expected = [values(theirs, plan) for plan in plans]
    enough = threading.Event()

    def load() -> None:
        for seed in range(100_000):
            loader(random_adapter(model.config.text, 1 + seed % 8, seed=seed))
            if enough.is_set():
                break

    loader = ours.adapter_loader(3)
    worker = threading.Thread(target=load)
    worker.start()
    for _ in range(20):
        launched = [ours.launch(plan) for plan in plans]
        for step, values_before in zip(launched, expected, strict=True):
            assert_close({slot: dict(s.top) for slot, s in step.collect().items()}, values_before)
    enough.set()
    worker.join()


def test_launching_with_adapters_never_waits_for_the_device(pair: Runtimes) -> None:
    ours, _ = pair
    ours.encode_image(PreparedImage("1", None, (1, 1)))  # this one would wait, where the encoder does not
    plans = [prompts(1, 0, 3), decodes(1, 0, 3), prompts(1, 2, 3, 1, 2, 3, length=50)]
    for plan in plans:
        ours.launch(plan).collect()  # a large step compiles kernels the first time
    with no_waiting():
        launched = [ours.launch(plan) for plan in plans]
        ours.adapter_loader(2)
    assert [len(step.collect()) for step in launched] == [3, 3, 6]


def num_calls(runtime: CudaRuntime, plan: StepPlan) -> dict[str, int]:
    """What a step asks of the device."""
    runtime.launch(plan).collect()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiled:
        runtime.launch(plan).collect()
    counts = Counter(event.name for event in profiled.events() if event.name in CALLS)
    launches = sum(counts.pop(name, 0) for name in LAUNCHES)
    return {**counts, "launches": launches}


@pytest.mark.filterwarnings("ignore:.*Profiler clears events:UserWarning")
def test_steps_without_adapters_ask_no_more_of_the_device_than_where_there_are_none(model: Moondream) -> None:
    without, ours = make(model, None), make(model, room(model))
    load_all(ours, some_adapters(model.config.text))
    for plan in (prompts(0, 0), decodes(0, 0, 0), prompts(0, 0, 0, 0, 0, 0, length=50)):
        assert num_calls(ours, plan) == num_calls(without, plan)
    adapted = num_calls(ours, decodes(0, 1, 0))
    plain = num_calls(ours, decodes(0, 0, 0))
    # The forward pass; log probabilities are read without a graph.
    assert adapted["cudaGraphLaunch"] == plain["cudaGraphLaunch"] == 1
    assert {**ours.in_use(), "adapters": ""} == {**without.in_use(), "adapters": ""}


def test_memory_does_not_grow_with_adapters_after_warming_up(model: Moondream) -> None:
    ours = make(model, room(model))
    load_all(ours, some_adapters(model.config.text))
    for seed in (6, 7):  # its own reference: a step computed twice is the same step
        before = torch.cuda.memory_reserved()
        Storm(model.config, ours, ours, seed, 6, overlaps=False, num_adapters=MAX_ADAPTERS).run(60)
        load_all(ours, some_adapters(model.config.text))
    assert torch.cuda.memory_reserved() <= 1.02 * before
    assert ours.used_bytes == pytest.approx(ours.planned_bytes, rel=0.05)


@pytest.mark.parametrize("name", ["moondream2", "moondream3-preview"])
def test_a_full_size_engine_has_room_for_adapters_and_stays_within_its_plan(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    needs_flashinfer()
    required = {"flashinfer": "required", "cuda_graphs": "required", "compile": "required"}
    config = RuntimeConfig(
        model=name, device="cuda", weights="random", adapters=str(tmp_path), max_batch_size=16, **required
    )
    with caplog.at_level(logging.WARNING, "kestrel"):
        engine = assemble_engine(open_model(config), config)
    assert [record.message for record in caplog.records if record.name.startswith("kestrel")] == []
    assert engine.in_use()["graphs"] == "on" and engine.in_use()["adapters"].startswith("8 x rank 32, ")
    pages = list(range(1, 60))
    engine.runtime.adapter_loader(1)(random_adapter(MODELS[name].config.text, 16))
    for adapter in (0, 1):
        prompt = Span(Running(1, pages, adapter=adapter), 0, 40, [7] * 40, None, TOKEN)
        decode = Span(Running(1, pages, adapter=adapter), 40, 41, None, None, TOKEN)
        for span in (prompt, decode):
            assert engine.runtime.launch(StepPlan([span])).collect()[1].finite
    metrics = engine.metrics()
    print(f"{name}: {metrics['device_bytes_planned'] / 2**30:.2f} GiB planned, {engine.in_use()['adapters']}")
    assert metrics["device_bytes_used"] == pytest.approx(metrics["device_bytes_planned"], rel=0.05)
    engine.close()
    engine.runtime.close()
