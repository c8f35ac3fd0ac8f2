"""The launch path of the CUDA runtime on a CPU: no graphs, no FlashInfer, the same code around them."""

import copy

import numpy as np
import pytest
import torch
from replays import Replays
from storms import NUM_PAGES, Pictures, Storm, assert_same
from tiny import tiny_config, tiny_model

from kestrel_core import build
from kestrel_core.build import LoadedModel, assemble_engine
from kestrel_core.config import RuntimeConfig
from kestrel_core.intake.tokenizer import Tokenizer
from kestrel_core.loop.step import Kind, Readout, Running, Sampling, Span, StepPlan
from kestrel_core.moondream.fast_text import FastText
from kestrel_core.moondream.model import Moondream
from kestrel_core.moondream.ops import plain
from kestrel_core.moondream.text import Forward
from kestrel_core.protocol.messages import Event, Request, Settings
from kestrel_core.runtime.cuda_runtime import CudaRuntime
from kestrel_core.runtime.graphs import Work
from kestrel_core.runtime.torch_runtime import TorchRuntime
from kestrel_core.runtime.vision.image_encoder import ImageEncoder
from kestrel_core.skills.spec import Language

CONFIGS = {"dense": tiny_config(2), "grouped": tiny_config(2, n_kv_heads=2), "experts": tiny_config(3)}
TOKEN = Readout(Kind.TOKEN)


@pytest.fixture(scope="module")
def model() -> Moondream:
    return tiny_model(CONFIGS["dense"], seed=2)


def runtimes(
    model: Moondream,
    page_size: int = 4,
    max_batch: int = 6,
    graphs: Replays | None = None,
    forward: Forward | None = None,
) -> tuple[CudaRuntime, TorchRuntime]:
    pictures = Pictures(model.config, model.text.wte)
    ours = CudaRuntime(
        model,
        NUM_PAGES,
        page_size,
        max_batch,
        64,
        pictures,  # type: ignore[arg-type]
        forward=forward,
        graphs=graphs,  # type: ignore[arg-type]
    )
    theirs = TorchRuntime(model, NUM_PAGES, page_size)
    theirs.encode_image = pictures  # type: ignore[assignment]
    return ours, theirs


@pytest.mark.parametrize(
    ("name", "page_size", "overlaps", "num_steps"),
    [("dense", 5, False, 60), ("dense", 4, True, 60), ("grouped", 1, True, 60), ("experts", 4, True, 40)],
)
def test_a_storm_of_steps_gives_what_the_plain_runtime_gives(
    name: str, page_size: int, overlaps: bool, num_steps: int
) -> None:
    model = tiny_model(CONFIGS[name], seed=2)
    storm = Storm(model.config, *runtimes(model, page_size), seed=page_size, max_batch=6, overlaps=overlaps)
    storm.run(num_steps)
    for span, ours, theirs in storm.pairs:
        assert_same(span, ours, theirs)
    read = {span.readout.kind for span, _, _ in storm.pairs if span.readout is not None}
    assert read == set(Kind) and len(storm.pairs) > 100
    assert 0 < sum(not ours.finite for _, ours, _ in storm.pairs) < 20
    assert any(span.sequence.sampling.logprobs for span, _, _ in storm.pairs)


def test_a_storm_of_replayed_steps_gives_the_same(model: Moondream) -> None:
    """With the fast text model, which writes keys and values into the cache by itself."""
    graphs, fast = Replays(), copy.deepcopy(model)
    _, theirs = runtimes(model)
    ours, _ = runtimes(fast, graphs=graphs, forward=FastText(fast.text, plain))
    ours.warm_up(64)
    assert graphs.num_captured == 11 + 5 * 2 + 4 * 4  # rows alone, rows beside images, four forms of readouts
    storm = Storm(model.config, ours, theirs, seed=3, max_batch=6, overlaps=True)
    storm.run(60)
    for span, mine, other in storm.pairs:
        assert_same(span, mine, other)
    assert storm.num_decodes > 15 and graphs.num_replayed > 40


def test_no_step_is_captured_that_there_cannot_be(model: Moondream) -> None:
    graphs, prefix = Replays(), model.config.image_prefix_length
    ours, _ = runtimes(model, graphs=graphs)
    ours.warm_up(3 * prefix - 1)
    assert graphs.num_captured == 11 + 2 * 2 + 4 * 4, "two images at most"


def test_what_cannot_be_captured_is_computed_step_by_step(
    model: Moondream, caplog: pytest.LogCaptureFixture
) -> None:
    class Refusing(Replays):
        def capture(self, work: Work) -> Work:
            raise RuntimeError("there is a wait in it")

    ours, theirs = runtimes(model, graphs=Refusing())
    ours.warm_up(16)
    assert [record.message for record in caplog.records if record.levelname == "WARNING"] == [
        "decoding without CUDA graphs, which is several times slower: there is a wait in it"
    ]
    spans = [Span(Running(1, [1]), 0, 1, (0,), None, TOKEN)]
    assert ours.launch(StepPlan(spans)).collect() == theirs.launch(StepPlan(spans)).collect()


@torch.inference_mode()
def test_a_bad_row_of_a_decode_stays_alone_with_it(model: Moondream) -> None:
    """Also when what it left on its pages is not cleared before others get them."""
    ours, _ = runtimes(model)
    ours._kv_cache.k[:, 4 * 9 :] = torch.nan
    ours._kv_cache.v[:, 4 * 9 :] = torch.nan
    good = [
        Span(Running(1, [10]), 0, 2, (0, 7), None, TOKEN),
        Span(Running(2, [11]), 0, 4, (0, 1, 2, 3), None, TOKEN),
    ]
    assert all(sample.finite for sample in ours.launch(StepPlan(good)).collect().values())
    rows = [
        Span(Running(1, [10]), 2, 3, None, None, TOKEN),
        Span(Running(2, [11, 12]), 4, 5, None, None, TOKEN),
    ]
    bad = Span(Running(3, [20, 21]), 7, 8, (5,), None, TOKEN)  # sees what was never computed
    samples = ours.launch(StepPlan([rows[0], bad, rows[1]])).collect()
    assert [samples[slot].finite for slot in (1, 2, 3)] == [True, True, False]
    after = ours.launch(StepPlan([Span(Running(4, [30]), 0, 1, (0,), None, TOKEN)])).collect()
    assert after[4].finite, "the scratch page is still sound"


def answers() -> list[object]:
    """Of an engine on a tiny Moondream 2, all requests at once."""
    config = tiny_config(2, vocab_size=300)
    loaded = LoadedModel(
        tiny_model(config), Language(config, Tokenizer.of_bytes(config)), torch.device("cpu")
    )
    engine = assemble_engine(loaded, RuntimeConfig(device="cpu", max_batch_size=4))
    rng = np.random.default_rng(7)
    pictures = [rng.integers(0, 256, shape, np.uint8) for shape in ((30, 20, 3), (50, 70, 3))]
    said: dict[int, Event] = {}
    for index, (skill, arguments) in enumerate(
        [
            ("query", {"question": "What is this?"}),
            ("query", {"question": "What?", "reasoning": True}),
            ("query", {"question": "Here?", "spatial_refs": [[0.2, 0.3], [0.1, 0.2, 0.5, 0.6]]}),
            ("caption", {"length": "short"}),
            ("detect", {"object": "circle"}),
            ("point", {"object": "circle"}),
        ]
        * 2
    ):
        limit = {"max_objects": 3} if skill in ("detect", "point") else {"max_tokens": 12}
        settings = Settings(temperature=index % 2, seed=index, **limit)
        request = Request(skill, arguments, pictures[index % 2], settings)
        engine.loop.submit(request, lambda event, at=index: said.__setitem__(at, event))  # type: ignore[misc]
    while engine.loop.num_open:
        engine.loop.step(wait=True)
    engine.loop.scheduler.check()
    engine.close()
    return [said[index].result.output for index in range(len(said))]  # type: ignore[union-attr]


def test_an_engine_answers_as_over_the_plain_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    def on_cpu(
        model: LoadedModel, config: RuntimeConfig, page_size: int, max_context: int, *_: bool | None
    ) -> CudaRuntime:
        network = model.network
        encoder = ImageEncoder(network.vision)
        return CudaRuntime(network, 120, page_size, config.max_batch_size, max_context, encoder)

    expected = answers()
    monkeypatch.setattr(build, "_runtime", on_cpu)
    assert answers() == expected and len(expected) == 12


def test_each_kind_answers_for_its_own_logits_only() -> None:
    model = tiny_model(CONFIGS["dense"], seed=2)
    model.text.lm_head.bias.data[7] = torch.nan
    ours, theirs = runtimes(model)
    plan = StepPlan(
        [Span(Running(slot, [slot]), 0, 1, (9,), None, Readout(k)) for slot, k in enumerate(Kind, 1)]
    )
    finite = {slot: sample.finite for slot, sample in ours.launch(plan).collect().items()}
    assert finite == {slot: sample.finite for slot, sample in theirs.launch(plan).collect().items()}
    assert sorted(finite.values()) == [False, False, False, True, True]


def test_steps_are_launched_far_ahead_of_being_collected(model: Moondream) -> None:
    ours, theirs = runtimes(model)
    pages, sampling = [3, 1, 2, 5], Sampling(1.5, seed=8)
    spans = [Span(Running(2, pages, sampling), 0, 3, (0, 1, 20), None, TOKEN)]
    spans += [Span(Running(2, pages, sampling), at, at + 1, None, None, TOKEN, at) for at in range(3, 16)]
    launched = [ours.launch(StepPlan([span])) for span in spans]
    tokens = [step.collect()[2].token for step in launched]
    assert tokens == [theirs.launch(StepPlan([span])).collect()[2].token for span in spans]
    assert len(set(tokens)) > 4


def test_a_full_batch_and_a_piece_without_readout(model: Moondream) -> None:
    ours, theirs = runtimes(model, max_batch=3)
    assert ours.launch(StepPlan([Span(Running(1, [9]), 0, 1, (0,))])).collect() == {}
    first = [Span(Running(slot, [slot]), 0, 2, (0, 30 + slot), None, TOKEN) for slot in (1, 2, 3)]
    then = [Span(Running(slot, [slot]), 2, 3, None, None, TOKEN) for slot in (3, 1, 2)]
    for spans in (first, then):
        samples = ours.launch(StepPlan(spans)).collect()
        assert samples == theirs.launch(StepPlan(spans)).collect() and len(samples) == 3


def test_a_rehearsal_leaves_no_trace(model: Moondream) -> None:
    ours, theirs = runtimes(model)
    ours.encode_image = ImageEncoder(model.vision)
    seen: list[tuple[int, int]] = []
    ours.warm_up(32, lambda done, total: seen.append((done, total)))
    assert seen == [(done, 8) for done in range(1, 9)]  # rows and readouts, each for up to 1, 2, 4 and 6
    assert ours.encode_image.num_encoded == 0
    spans = [Span(Running(1, [1, 2]), 0, 6, (0, 1, 2, 3, 4, 5), None, TOKEN)]
    assert ours.launch(StepPlan(spans)).collect() == theirs.launch(StepPlan(spans)).collect()
