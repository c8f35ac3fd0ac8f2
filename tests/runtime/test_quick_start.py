"""A runtime that starts quickly, on a CPU with replays in place of graphs: what it captures, and when."""

import copy

import pytest
import torch
from replays import Replays
from storms import NUM_PAGES, Pictures, Storm, assert_same
from tiny import tiny_config, tiny_model

from kestrel_core.loop.step import Kind, PreparedImage, Readout, Running, Span, StepPlan
from kestrel_core.moondream.fast_text import FastText
from kestrel_core.moondream.lora import Stacks
from kestrel_core.moondream.model import Moondream
from kestrel_core.moondream.ops import plain
from kestrel_core.runtime.buckets import first_steps, small_steps
from kestrel_core.runtime.cuda_runtime import GRAPH_BYTES, CudaRuntime
from kestrel_core.runtime.graphs import Graphs, Work
from kestrel_core.runtime.readouts.captured import SamplesInFlight
from kestrel_core.runtime.rehearsal import COMPILED_TOKENS, compile_text
from kestrel_core.runtime.timeline import Timeline
from kestrel_core.runtime.torch_runtime import TorchRuntime
from kestrel_core.runtime.vision.crop_batches import FIRST_CROPS, CropBatches, batch_sizes
from kestrel_core.runtime.vision.image_encoder import ImageEncoder, encode_image

TOKEN = Readout(Kind.TOKEN)
PREFIX = tiny_config(2).image_prefix_length


@pytest.fixture(scope="module")
def model() -> Moondream:
    return tiny_model(tiny_config(2), seed=2)


class Failing(Replays):
    """Late captures fail."""

    fails = False

    def capture(self, work: Work) -> Work:
        if self.fails:
            raise RuntimeError("no memory")
        return super().capture(work)


def runtime(model: Moondream, graphs: Replays, max_batch: int = 6, max_adapters: int = 0) -> CudaRuntime:
    fast = copy.deepcopy(model)
    weight = fast.text.wte
    stacks = Stacks(fast.config.text, max_adapters, 4, weight.device, weight.dtype) if max_adapters else None
    made = CudaRuntime(
        fast,
        NUM_PAGES,
        4,
        max_batch,
        64,
        Pictures(fast.config, weight),  # type: ignore[arg-type]
        forward=FastText(fast.text, plain),
        graphs=graphs,  # type: ignore[arg-type]
        stacks=stacks,
    )
    made.encode_image.capture_more = lambda idle: False  # type: ignore[method-assign]
    return made


def plan(num_rows: int, num_read: int = 1) -> StepPlan:
    spans = [
        Span(Running(slot, [slot]), 0, 1, (0,), None, TOKEN if slot <= num_read else None)
        for slot in range(1, num_rows + 1)
    ]
    return StepPlan(spans)


def test_the_first_sizes_are_few_and_the_largest_of_each_kind_is_among_them() -> None:
    sizes = small_steps(192, 1 << 30)
    first = first_steps(sizes)
    assert first <= set(sizes) and len(sizes) == 49
    assert sorted(first) == [
        *((0, size) for size in (1, 2, 4, 8, 16, 32, 64, 128, 192)),
        *((1, 32), (1, 192), (2, 192), (3, 192), (4, 192), (5, 192)),
    ]


def test_a_quick_start_captures_a_few_sizes_and_idle_moments_the_others(model: Moondream) -> None:
    whole, lazy = Replays(), Replays(lazy=True)
    runtime(model, whole, max_batch=24).warm_up(8 * PREFIX)
    ours = runtime(model, lazy, max_batch=24)
    ours.warm_up(8 * PREFIX)
    at_start, left = lazy.num_captured, ours.num_put_off
    assert at_start < 0.6 * whole.num_captured and ours.in_use()["graphs"] == "on"
    assert not ours.capture_more(idle=False), "no step has missed anything"
    pieces = 0
    while ours.capture_more(idle=True):
        pieces += 1
    assert pieces == left and ours.num_put_off == 0
    assert lazy.num_captured == whole.num_captured and ours.in_use()["graphs"] == "on"
    orders = [bucket.order for bucket in ours._buckets]
    assert orders == sorted(orders) and all(bucket.forward is not None for bucket in ours._buckets)


def test_the_plan_of_memory_holds_what_comes_later(model: Moondream) -> None:
    ours = runtime(model, Replays(lazy=True))
    ours.warm_up(8 * PREFIX)
    assert ours.planned_bytes == ours.used_bytes + ours.num_put_off * GRAPH_BYTES > 0


@pytest.mark.parametrize("seed", [3, 4])
def test_a_storm_in_the_midst_of_which_the_rest_is_captured_gives_the_same(
    model: Moondream, seed: int
) -> None:
    lazy = Replays(lazy=True)
    ours = runtime(model, lazy)
    ours.warm_up(8 * PREFIX)
    theirs = TorchRuntime(model, NUM_PAGES, 4)
    theirs.encode_image = ours.encode_image
    launch, captures = ours.launch, list[bool]()

    def capture_and_launch(plan: StepPlan) -> SamplesInFlight:
        captures.append(ours.capture_more(idle=True))  # while a step is under way
        return launch(plan)

    ours.launch = capture_and_launch  # type: ignore[method-assign]
    storm = Storm(model.config, ours, theirs, seed=seed, max_batch=6, overlaps=True)
    storm.run(60)
    assert sum(captures) > 8 and ours.num_put_off == 0
    for span, mine, other in storm.pairs:
        assert_same(span, mine, other)
    assert storm.num_decodes > 15 and lazy.num_replayed > 40


def test_a_step_is_padded_to_a_size_that_is_captured_and_asks_for_its_own(model: Moondream) -> None:
    lazy = Replays(lazy=True)
    ours = runtime(model, lazy, max_batch=24)
    ours.warm_up(8 * PREFIX)
    before = lazy.num_captured, lazy.num_replayed
    ours.launch(plan(20, 20)).collect()
    assert (lazy.num_captured, lazy.num_replayed) == (before[0], before[1] + 2), "forward and readout"
    assert ours.capture_more(idle=False)
    assert (0, 24) in [bucket.order for bucket in ours._buckets]
    ours._put_off._next_s = 0.0
    assert not ours.capture_more(idle=False), "its readouts are padded to the largest, which is this size"


def test_reading_for_a_capture_feeds_no_sequence(model: Moondream) -> None:
    """What was read last in each slot stays as it is."""
    ours = runtime(model, Replays(lazy=True), max_batch=12)
    ours.warm_up(8 * PREFIX)
    ours.launch(plan(12, 12)).collect()
    ours.launch(plan(11, 11)).collect()  # so that both host buffers name real slots
    fed = ours._feeds.rows[1:13].clone()
    while ours.capture_more(idle=True):
        pass
    assert torch.equal(ours._feeds.rows[1:13], fed)


def test_steps_with_adapters_are_captured_with_the_others(model: Moondream) -> None:
    lazy = Replays(lazy=True)
    ours = runtime(model, lazy, max_adapters=2)
    ours.warm_up(8 * PREFIX)
    while ours.capture_more(idle=True):
        pass
    assert all(bucket.captured(True) and bucket.captured(False) for bucket in ours._buckets)


def test_a_late_capture_that_fails_disturbs_nobody(
    model: Moondream, caplog: pytest.LogCaptureFixture
) -> None:
    lazy = Failing(lazy=True)
    ours = runtime(model, lazy, max_batch=24)
    ours.warm_up(8 * PREFIX)
    expected = ours.launch(plan(20, 20)).collect()
    lazy.fails = True
    while ours.capture_more(idle=True):
        pass
    assert len(caplog.records) == 1 and "stay padded to larger ones: no memory" in caplog.text
    assert ours.launch(plan(20, 20)).collect() == expected
    assert ours.in_use()["graphs"] == "partly"


def test_nothing_is_left_for_later_where_the_start_could_not_capture(model: Moondream) -> None:
    lazy = Failing(lazy=True)
    lazy.fails = True
    ours = runtime(model, lazy)
    ours.warm_up(8 * PREFIX)
    assert ours.num_put_off == 0 and not ours.capture_more(idle=True)
    assert ours.in_use()["graphs"] == "off"


def test_a_runtime_that_is_closed_captures_nothing(model: Moondream) -> None:
    ours = runtime(model, Replays(lazy=True))
    ours.warm_up(8 * PREFIX)
    ours.close()
    assert not ours.capture_more(idle=True)


def test_batches_of_pictures_are_padded_until_their_size_is_captured(model: Moondream) -> None:
    graphs = Replays(lazy=True)
    batches = CropBatches(model.vision, max_crops=64, graphs=graphs)  # type: ignore[arg-type]
    encoder = ImageEncoder(model.vision, batches, max_remembered=1)
    encoder.warm_up()
    sizes = batch_sizes(64)
    assert graphs.num_captured == len(FIRST_CROPS) + 1 and encoder.captured == (7, len(sizes))
    assert encoder.num_put_off == len(sizes) - 7
    crops = torch.randint(0, 256, (7, 28, 28, 3), dtype=torch.uint8)
    image = PreparedImage("a", crops.numpy(), (2, 3))
    expected = encode_image(model.vision, crops, (2, 3))
    torch.testing.assert_close(encoder(image), expected)
    assert not encoder.capture_more(idle=False) or batches._sizes[2] == 7
    while encoder.capture_more(idle=True):
        pass
    assert batches._sizes == sizes and encoder.captured == (len(sizes), len(sizes))
    torch.testing.assert_close(encoder(PreparedImage("b", crops.numpy(), (2, 3))), expected)


def test_a_size_that_pictures_missed_is_captured_between_steps(model: Moondream) -> None:
    batches = CropBatches(model.vision, max_crops=64, graphs=Replays(lazy=True))  # type: ignore[arg-type]
    encoder = ImageEncoder(model.vision, batches)
    encoder.warm_up()
    assert not encoder.capture_more(idle=False)
    crops = torch.randint(0, 256, (7, 28, 28, 3), dtype=torch.uint8)
    encoder(PreparedImage("a", crops.numpy(), (2, 3)))
    assert encoder.capture_more(idle=False) and 7 in batches._sizes


def test_graphs_are_lazy_only_where_they_are_told_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Graphs, "__init__", lambda self, device, required, lazy: setattr(self, "lazy", lazy))
    made = {choice: Graphs.wanted(torch.device("cpu"), choice) for choice in ("auto", "lazy", "required")}
    assert [graphs is not None and graphs.lazy for graphs in made.values()] == [False, True, False]
    assert Graphs.wanted(torch.device("cpu"), "off") is None


def test_the_text_model_runs_alone_in_all_sizes_that_are_compiled_apart(model: Moondream) -> None:
    sizes = list[int]()

    def forward(x: torch.Tensor, *rest: object) -> torch.Tensor:
        sizes.append(len(x))
        return FastText(model.text, plain)(x, *rest) if len(x) < 64 else x  # type: ignore[arg-type]

    compile_text(forward, copy.deepcopy(model), 4)
    assert sizes == list(COMPILED_TOKENS)


def test_a_timeline_adds_up_what_belongs_to_a_part() -> None:
    now_s = iter([10.0, 12.0, 12.02, 15.0, 16.0])
    timeline = Timeline(lambda: next(now_s))
    for part in ("weights", "tokenizer", "graphs", "weights"):
        timeline.mark(part)
    assert timeline.parts["weights"] == 3.0 and timeline.total_s == 6.0
    assert str(timeline) == "6.0 s: weights 3.0, graphs 3.0"
