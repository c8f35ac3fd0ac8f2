import random
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytest
import reference
import torch
from tiny import tiny_config, tiny_model
from torch import Tensor

from kestrel_core.loop.step import (
    Coord,
    Input,
    Kind,
    PreparedImage,
    Readout,
    Running,
    Sample,
    Sampling,
    Size,
    Span,
    StepPlan,
)
from kestrel_core.moondream.config import MOONDREAM3, MoondreamConfig
from kestrel_core.moondream.model import Moondream
from kestrel_core.runtime.batch import embed_inputs
from kestrel_core.runtime.kv_cache import KVCache
from kestrel_core.runtime.torch_runtime import TorchRuntime, best_page_size
from kestrel_core.runtime.vision.image_encoder import ImageEncoder, encode_image

CONFIGS = {"dense": tiny_config(2), "grouped": tiny_config(2, n_kv_heads=2), "experts": tiny_config(3)}
PREFIX = 5  # BOS and 2 x 2 patches
ALL = Sampling(logprobs=64)
TOKEN = Readout(Kind.TOKEN)


@pytest.fixture(scope="module", params=CONFIGS.values(), ids=CONFIGS)
def model(request: pytest.FixtureRequest) -> Moondream:
    config: MoondreamConfig = request.param
    return tiny_model(config, seed=2)


def picture(seed: int, tiling: tuple[int, int] = (1, 2)) -> PreparedImage:
    shape = (1 + tiling[0] * tiling[1], 28, 28, 3)
    return PreparedImage(
        f"picture {seed}", np.random.default_rng(seed).integers(0, 256, shape, np.uint8), tiling
    )


class Asked(NamedTuple):
    """A sequence of a test: what is fed, behind a picture or without one."""

    inputs: Sequence[Input]
    image: PreparedImage | None = None

    @property
    def length(self) -> int:
        return len(self.inputs) + (PREFIX if self.image else 0)

    def spans(self, slot: int, pages: Sequence[int]) -> list[Span]:
        start = PREFIX if self.image else 0
        image = [Span(Running(slot, pages), 0, start, None, self.image)] if self.image else []
        return [*image, Span(Running(slot, pages, ALL), start, self.length, self.inputs, None, TOKEN)]


ASKED = [
    Asked([1, 20, 2, 33, 40, 3], picture(1)),
    Asked([0, 1, 20, 2, 50, 51, 52, 53, 3]),
    Asked([1, 20, 2, Coord(0.25), Coord(0.5), Size(0.5, 0.125), 3], picture(2, (2, 2))),
    Asked([11], picture(1)),
    Asked([0]),
]


def make_runtime(model: Moondream, page_size: int = 4) -> TorchRuntime:
    return TorchRuntime(model, 40, page_size)


def log_probabilities(sample: Sample) -> Tensor:
    """[vocabulary], by token."""
    assert sample.finite
    return torch.tensor([value for _, value in sorted(sample.top)])


def run(runtime: TorchRuntime, spans: list[Span]) -> dict[int, Tensor]:
    samples = runtime.launch(StepPlan(spans)).collect()
    return {slot: log_probabilities(sample) for slot, sample in samples.items()}


def alone(model: Moondream, asked: Asked) -> Tensor:
    return run(make_runtime(model), asked.spans(1, range(1, 40)))[1]


def assert_same(ours: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(ours, expected, atol=2e-5, rtol=2e-5)


def shuffled_pages(seed: int, counts: Sequence[int]) -> list[list[int]]:
    """A page table for each sequence, all over the cache and in no order."""
    free = random.Random(seed).sample(range(1, 40), sum(counts))
    return [[free.pop() for _ in range(count)] for count in counts]


@pytest.mark.parametrize("asked", ASKED, ids=range(len(ASKED)))
@torch.inference_mode()
def test_a_step_computes_what_the_description_says(model: Moondream, asked: Asked) -> None:
    rows = [embed_inputs(model, asked.inputs)]
    if asked.image:
        image = encode_image(model.vision, torch.from_numpy(asked.image.crops), asked.image.tiling)
        rows = [model.text.embed(torch.tensor([0])), image, *rows]
    x, start = torch.cat(rows), PREFIX if asked.image else 0
    i, j = torch.arange(len(x))[:, None], torch.arange(len(x))
    hidden = reference.hidden_states(model.text, x, (j <= i) | ((i < start) & (j < start)))
    expected = model.text.logits(hidden[-1:].float())[0].log_softmax(-1)
    assert_same(alone(model, asked), expected)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("page_size", [1, 3, 5])
def test_many_sequences_on_scattered_pages_get_what_each_gets_alone(
    model: Moondream, seed: int, page_size: int
) -> None:
    asked = ASKED if page_size > 1 else ASKED[:3]
    tables = shuffled_pages(seed, [-(-one.length // page_size) for one in asked])
    order = random.Random(seed).sample(range(len(asked)), len(asked))
    spans = [s for slot in order for s in asked[slot].spans(slot + 1, tables[slot])]
    together = run(make_runtime(model, page_size), spans)
    for slot, one in enumerate(asked):
        assert_same(together[slot + 1], alone(model, one))


def test_prefill_beside_decode_disturbs_neither(model: Moondream) -> None:
    runtime, (first, second) = make_runtime(model), shuffled_pages(1, [6, 6])
    longer = Asked([*ASKED[0].inputs, 17], ASKED[0].image)
    run(runtime, ASKED[0].spans(1, first))
    step = Span(Running(1, first, ALL), longer.length - 1, longer.length, (17,), None, TOKEN)
    both = run(runtime, [*ASKED[2].spans(2, second), step])
    assert_same(both[1], alone(model, longer))
    assert_same(both[2], alone(model, ASKED[2]))


@pytest.mark.parametrize("asked", ASKED[:3], ids=range(3))
def test_decoding_token_by_token_equals_one_prefill(model: Moondream, asked: Asked) -> None:
    runtime, [pages] = make_runtime(model), shuffled_pages(3, [-(-asked.length // 4)])
    head = asked._replace(inputs=asked.inputs[:1])
    states = [run(runtime, head.spans(1, pages))[1]]
    for at, value in enumerate(asked.inputs[1:], head.length):
        states.append(run(runtime, [Span(Running(1, pages, ALL), at, at + 1, (value,), None, TOKEN)])[1])
    for count, state in enumerate(states, 1):
        assert_same(state, alone(model, asked._replace(inputs=asked.inputs[:count])))


@pytest.mark.parametrize("cut", [1, 4, 8])
def test_a_prompt_may_be_prefilled_in_pieces(model: Moondream, cut: int) -> None:
    asked, runtime, pages = ASKED[1], make_runtime(model), [9, 2, 30]
    assert run(runtime, [Span(Running(1, pages), 0, cut, asked.inputs[:cut])]) == {}, (
        "nothing is read in between"
    )
    rest = Span(Running(1, pages, ALL), cut, asked.length, asked.inputs[cut:], None, TOKEN)
    assert_same(run(runtime, [rest])[1], alone(model, asked))


def test_a_picture_computed_once_serves_another_sequence_on_the_same_page(model: Moondream) -> None:
    runtime, image = make_runtime(model, page_size=PREFIX), ASKED[0].image
    run(runtime, ASKED[0].spans(1, [7, 8, 9]))
    other = Asked([1, 23, 2, 60, 3], image)
    shared = Span(Running(2, [7, 3], ALL), PREFIX, other.length, other.inputs, None, TOKEN)
    assert_same(run(runtime, [shared])[2], alone(model, other))
    longer = Asked([*ASKED[0].inputs, 8], image)
    step = Span(Running(1, [7, 8, 9], ALL), longer.length - 1, longer.length, (8,), None, TOKEN)
    assert_same(run(runtime, [step])[1], alone(model, longer))


@pytest.mark.parametrize("kind", list(Kind), ids=lambda kind: kind.value)
def test_what_was_read_is_what_the_slot_is_fed_next(model: Moondream, kind: Kind) -> None:
    runtime = make_runtime(model)
    start = Span(Running(1, [1, 2]), 0, 3, (0, 1, 20), None, Readout(kind))
    other = Span(Running(2, [3]), 0, 2, (0, 44), None, Readout(Kind.TOKEN))
    samples = runtime.launch(StepPlan([start, other])).collect()
    nexts = [
        Span(Running(1, [1, 2], ALL), 3, 4, None, None, TOKEN),
        Span(Running(2, [3], ALL), 2, 3, None, None, TOKEN),
    ]
    states = run(runtime, nexts)
    assert_same(states[1], alone(model, Asked([0, 1, 20, samples[1].feed])))
    assert_same(states[2], alone(model, Asked([0, 44, samples[2].feed])))


def test_only_spans_with_a_readout_give_samples(model: Moondream) -> None:
    runtime = make_runtime(model)
    plan = StepPlan([Span(Running(3, [1]), 0, 2, (0, 1)), Span(Running(8, [2]), 0, 2, (0, 1), None, TOKEN)])
    assert runtime.launch(plan).collect().keys() == {8}
    assert (runtime.num_pages, runtime.page_size) == (40, 4)


def test_a_sequence_gone_bad_stays_alone_with_it(model: Moondream) -> None:
    runtime = make_runtime(model)
    runtime.encode_image = lambda image: torch.full((4, 32), torch.nan)  # type: ignore[assignment]
    spans = [*ASKED[0].spans(1, [1, 2, 3]), *ASKED[1].spans(2, [4, 5, 6])]
    samples = runtime.launch(StepPlan(spans)).collect()
    assert not samples[1].finite
    assert_same(log_probabilities(samples[2]), alone(model, ASKED[1]))


# Images.


def test_a_picture_asked_for_again_is_not_encoded_again() -> None:
    encoder = ImageEncoder(tiny_model(CONFIGS["dense"]).vision, max_remembered=2)
    first = encoder(picture(1))
    assert encoder(picture(1)) is first and encoder.num_encoded == 1
    encoder(picture(2))
    encoder(picture(1))  # now 2 is the longest unused
    encoder(picture(3))
    assert encoder.num_encoded == 3
    assert encoder(picture(1)) is first and encoder.num_encoded == 3
    encoder(picture(2))
    assert encoder.num_encoded == 4


def test_a_single_tile_is_encoded_once_and_means_the_same() -> None:
    vision, image = tiny_model(CONFIGS["dense"]).vision, picture(4, (1, 1))
    crops = torch.from_numpy(image.crops)
    crops[1] = crops[0]  # as cropping makes them
    both = vision.project(vision.encode(crops), (1, 1))
    torch.testing.assert_close(encode_image(vision, crops, (1, 1)), both, atol=1e-5, rtol=1e-5)


# Memory.


@pytest.mark.parametrize(("prefix", "size"), [(730, 10), (5, 5), (16, 16), (17, 1), (577, 1), (48, 16)])
def test_pages_are_the_largest_that_an_image_prefix_fills(prefix: int, size: int) -> None:
    assert best_page_size(prefix) == size


def test_cells_follow_the_page_table() -> None:
    cache = KVCache(CONFIGS["grouped"].text, 8, 3, torch.device("cpu"), torch.float32)
    assert cache.cells(torch.tensor([5, 1, 7]), 7).tolist() == [15, 16, 17, 3, 4, 5, 21]
    assert cache.k.shape == cache.v.shape == (3, 24, 2, 8)


def test_a_token_of_moondream_3_takes_192_kib() -> None:
    assert KVCache.bytes_per_cell(MOONDREAM3.text, torch.bfloat16) == 192 * 1024
