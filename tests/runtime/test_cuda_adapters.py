"""Adapters in the launch path of the CUDA runtime, on a CPU, against the plain runtime."""

import copy

import pytest
from random_adapters import MAX_ADAPTERS, empty_stacks, load_all, some_adapters
from replays import Replays
from storms import NUM_PAGES, Pictures, Storm, assert_same
from tiny import tiny_config, tiny_model

from kestrel_core.loop.step import Kind, PreparedImage, Readout, Running, Span, StepPlan
from kestrel_core.moondream.fast_text import FastText
from kestrel_core.moondream.model import Moondream
from kestrel_core.moondream.ops import plain
from kestrel_core.moondream.text import Forward
from kestrel_core.runtime.cuda_runtime import CudaRuntime
from kestrel_core.runtime.graphs import Work
from kestrel_core.runtime.torch_runtime import TorchRuntime

pytestmark = pytest.mark.usefixtures("one_thread")

CONFIGS = {"dense": tiny_config(2), "grouped": tiny_config(2, n_kv_heads=2), "experts": tiny_config(3)}
TOKEN = Readout(Kind.TOKEN)
NUM_WITHOUT = 11 + 5 * 2 + 4 * 4  # captures: rows alone, rows beside images, four forms of readouts
NUM_ADAPTED = 11 + 5 * 2


@pytest.fixture(params=CONFIGS.values(), ids=CONFIGS)
def model(request: pytest.FixtureRequest) -> Moondream:
    return tiny_model(request.param, seed=2)


def runtimes(
    model: Moondream, graphs: Replays | None = None, fast: bool = False
) -> tuple[CudaRuntime, TorchRuntime]:
    pictures, text = Pictures(model.config, model.text.wte), model.config.text
    theirs = TorchRuntime(model, NUM_PAGES, 4, stacks=empty_stacks(text))
    theirs.encode_image = pictures  # type: ignore[assignment]
    mine, forward = copy.deepcopy(model), None
    if fast:
        forward = FastText(mine.text, plain)
    ours = make(mine, pictures, forward, graphs)
    for runtime in (ours, theirs):
        load_all(runtime, some_adapters(text))
    return ours, theirs


def make(
    model: Moondream, pictures: Pictures, forward: Forward | None, graphs: Replays | None
) -> CudaRuntime:
    return CudaRuntime(
        model,
        NUM_PAGES,
        4,
        6,
        64,
        pictures,  # type: ignore[arg-type]
        forward=forward,
        graphs=graphs,  # type: ignore[arg-type]
        stacks=empty_stacks(model.config.text),
    )


def prompts(*adapters: int) -> StepPlan:
    """The same picture and question once for each adapter."""
    spans = []
    for slot, adapter in enumerate(adapters, 1):
        running = Running(slot, [3 * slot, 3 * slot + 1, 3 * slot + 2], adapter=adapter)
        spans.append(Span(running, 0, 5, None, PreparedImage("1", None, (1, 1))))
        spans.append(Span(running, 5, 8, (1, 2, 3), None, TOKEN))
    return StepPlan(spans)


def decodes(*adapters: int, at: int = 8) -> StepPlan:
    spans = []
    for slot, adapter in enumerate(adapters, 1):
        running = Running(slot, [3 * slot, 3 * slot + 1, 3 * slot + 2], adapter=adapter)
        spans.append(Span(running, at, at + 1, None, None, TOKEN))
    return StepPlan(spans)


@pytest.mark.parametrize("overlaps", [False, True])
def test_a_storm_with_adapters_gives_what_the_plain_runtime_gives(model: Moondream, overlaps: bool) -> None:
    storm = Storm(model.config, *runtimes(model), 5, 6, overlaps, num_adapters=MAX_ADAPTERS)
    storm.run(40)
    for span, ours, theirs in storm.pairs:
        assert_same(span, ours, theirs)
    assert {span.sequence.adapter for span, _, _ in storm.pairs} == {0, 1, 2, 3} and len(storm.pairs) > 60


def test_a_storm_of_replayed_steps_with_adapters_gives_the_same(model: Moondream) -> None:
    graphs = Replays()
    ours, theirs = runtimes(model, graphs, fast=True)
    ours.warm_up(64)
    assert graphs.num_captured == NUM_WITHOUT + NUM_ADAPTED
    storm = Storm(model.config, ours, theirs, 3, 6, overlaps=True, num_adapters=MAX_ADAPTERS)
    storm.run(40)
    for span, mine, other in storm.pairs:
        assert_same(span, mine, other)
    assert graphs.num_replayed > 40


def test_one_picture_under_several_adapters_in_one_step(model: Moondream) -> None:
    ours, theirs = runtimes(model, Replays(), fast=True)
    ours.warm_up(64)
    for plan in (prompts(2, 0, 1, 3), decodes(2, 0, 1, 3), decodes(2, 0, 1, 3, at=9)):
        assert ours.launch(plan).collect() == theirs.launch(plan).collect()


def test_steps_without_adapters_replay_what_they_did_before() -> None:
    graphs, model = Replays(), tiny_model(CONFIGS["dense"], seed=2)
    ours, _ = runtimes(model, graphs, fast=True)
    seen: list[tuple[int, int]] = []
    ours.warm_up(64, lambda *at: seen.append(at))
    assert seen[-1] == (len(seen), len(seen)) and len(seen) == NUM_ADAPTED + 4 + NUM_ADAPTED
    given: list[bool] = []
    forward = ours._text

    def watched(x, positions, attend, adapters):  # type: ignore[no-untyped-def]
        given.append(adapters is not None)
        return forward(x, positions, attend, adapters)

    ours._text = watched
    for plan in (prompts(0, 0), decodes(0, 0), decodes(0, 1, at=9), decodes(0, 0, at=10)):
        ours.launch(plan).collect()
    assert given == [False, False, True, False]


def test_the_plain_forward_is_captured_without_adapters_only() -> None:
    graphs, model = Replays(), tiny_model(CONFIGS["dense"], seed=2)
    ours, theirs = runtimes(model, graphs)
    ours.warm_up(64)
    assert graphs.num_captured == NUM_WITHOUT and ours._graphs_in_use() == "on"
    for plan in (prompts(1, 0), decodes(1, 0), decodes(1, 2, at=9), prompts(0, 0), decodes(0, 0)):
        assert ours.launch(plan).collect() == theirs.launch(plan).collect()


def test_if_only_adapters_cannot_be_captured_other_steps_still_are(caplog: pytest.LogCaptureFixture) -> None:
    class Refusing(Replays):
        def capture(self, work: Work) -> Work:
            if self.num_captured == NUM_WITHOUT:
                raise RuntimeError("there is a wait in it")
            return super().capture(work)

    graphs = Refusing()
    ours, theirs = runtimes(tiny_model(CONFIGS["dense"], seed=2), graphs, fast=True)
    ours.warm_up(64)
    assert [record.message for record in caplog.records if record.levelname == "WARNING"] == [
        "decoding with adapters without CUDA graphs, which is several times slower: there is a wait in it"
    ]
    assert ours._graphs_in_use() == "partly"
    replayed = graphs.num_replayed
    for plan in (prompts(0, 0), prompts(2, 1), decodes(0, 1), decodes(0, 0, at=9)):
        assert ours.launch(plan).collect() == theirs.launch(plan).collect()
    assert graphs.num_replayed == replayed + 4 + 2, "readouts of all, and the forward of two"
