"""The readout in one launch against the one that says what it computes, interpreted."""

from collections.abc import Iterator
from importlib.util import find_spec
from types import ModuleType

import pytest
import torch
from tiny import tiny_config, tiny_model
from torch import Tensor

from kestrel_core.moondream.fast_text import FastText
from kestrel_core.moondream.few_bits_layers import OutputLayer8, PackedLinear
from kestrel_core.moondream.ops import plain
from kestrel_core.moondream.ops.few_bits import pack_weights
from kestrel_core.runtime.readouts import batched
from kestrel_core.runtime.readouts.batched import NONE, NUM_VALUES, Asked, Form
from kestrel_core.runtime.readouts.choose import choose_token_readout

pytestmark = [
    pytest.mark.skipif(
        find_spec("triton") is None or torch.cuda.is_available(),
        reason="needs the kernel language, and no GPU",
    ),
    pytest.mark.filterwarnings("ignore:Conversion of an array:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning"),
]
MODEL = tiny_model(tiny_config(2, vocab_size=100), seed=1)
NOTHING = [NONE] * 4


@pytest.fixture(scope="module")
def kernels() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_INTERPRET", "1")  # read at import, and again at every launch
        from kestrel_core.runtime.readouts import token_kernels

        patch.setattr(token_kernels, "BLOCK", 32)
        yield token_kernels


def asked_for(suppressed: list[list[int]], choices: list[list[int]], slots: list[int]) -> Asked:
    zeros = torch.zeros(len(slots))
    lists = torch.tensor(suppressed), torch.tensor(choices)
    return Asked(torch.tensor(slots), zeros.int(), zeros, zeros, zeros.int(), zeros, *lists)


def read_both(kernels: ModuleType, hidden: Tensor, asked: Asked) -> tuple[Tensor, Tensor]:
    """Results and feeds by the kernel, compared with those of `batched`."""
    results, feeds = torch.full((len(hidden), NUM_VALUES), 7.0), torch.zeros(9, hidden.shape[1])
    kernels.TokenReadout(MODEL, plain)(hidden, asked, feeds, results)
    expected, expected_feeds = batched.read(MODEL, hidden, asked, Form())
    finite = expected[:, -1] == 1.0
    assert torch.equal(results[:, -1], expected[:, -1])
    assert torch.equal(results[finite], expected[finite])
    assert torch.equal(feeds[asked.slots][finite], expected_feeds[finite])
    return results, feeds


@torch.inference_mode()
def test_tokens_with_and_without_lists(kernels: ModuleType) -> None:
    hidden = torch.randn((6, MODEL.config.text.dim), generator=torch.Generator().manual_seed(2))
    best = MODEL.text.logits(hidden).argsort(descending=True)[:, :3].tolist()
    suppressed = [
        NOTHING,
        [best[1][0]] * 4,
        [best[2][0], best[2][1], best[2][0], 5],
        NOTHING,
        [0, 1, 2, 3],
        NOTHING,
    ]
    choices = [NOTHING, NOTHING, NOTHING, [5, 99, 17, 5], [0, 40, 0, 0], [7, 7, 7, 7]]
    results, _ = read_both(kernels, hidden, asked_for(suppressed, choices, [1, 2, 3, 4, 5, 8]))
    tokens = results[:, 0].int().tolist()
    assert tokens[:3] == [best[0][0], best[1][1], best[2][2]]
    assert tokens[3] in (5, 99, 17) and tokens[4] == 40 and tokens[5] == 7


@torch.inference_mode()
def test_the_first_of_equal_tokens_is_taken(kernels: ModuleType) -> None:
    hidden = torch.zeros((2, MODEL.config.text.dim))
    bias = MODEL.text.lm_head.bias
    norm = MODEL.text.post_ln.bias
    before, norm_before = bias.clone(), norm.clone()
    norm.zero_()
    bias.zero_()
    bias[[70, 33, 99]] = 1.0
    read, _ = read_both(kernels, hidden, asked_for([NOTHING, [33] * 4], [NOTHING] * 2, [1, 2]))
    bias.copy_(before)
    norm.copy_(norm_before)
    assert read[:, 0].tolist() == [33.0, 70.0]


@torch.inference_mode()
@pytest.mark.parametrize("wrong", [torch.nan, torch.inf])
def test_what_is_no_number_is_told(kernels: ModuleType, wrong: float) -> None:
    hidden = torch.randn((2, MODEL.config.text.dim), generator=torch.Generator().manual_seed(3))
    hidden[1, 0] = wrong
    results, feeds = read_both(kernels, hidden, asked_for([NOTHING] * 2, [NOTHING] * 2, [1, 2]))
    assert results[:, -1].tolist() == [1.0, 0.0] and 0 <= results[1, 0] < 100
    assert torch.isfinite(feeds).all()


@torch.inference_mode()
def test_a_packed_output_layer_is_not_unpacked(kernels: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    head, hidden = MODEL.text.lm_head, torch.randn((3, MODEL.config.text.dim))
    packed = PackedLinear(pack_weights(head.weight, "fp8"), head.bias, torch.float32)
    asked = asked_for([NOTHING] * 3, [NOTHING] * 3, [1, 2, 3])
    monkeypatch.setitem(MODEL.text._modules, "lm_head", packed)
    unpacked = packed.weight

    def refuse(_: PackedLinear) -> Tensor:
        raise AssertionError("it was unpacked")

    monkeypatch.setattr(PackedLinear, "weight", property(refuse))
    results, _ = read_both(kernels, hidden, asked)
    assert results[:, 0].tolist() == (MODEL.text.post_ln(hidden) @ unpacked.T + head.bias).argmax(-1).tolist()


def test_it_is_tried_out_before_it_is_used(kernels: ModuleType) -> None:
    made = kernels.try_out(MODEL, plain)
    assert isinstance(made, kernels.TokenReadout)


def test_only_fast_paths_on_cuda_have_it() -> None:
    model = tiny_model(tiny_config(2), seed=1)
    for level in ("off", "attention", "products", "early"):
        assert choose_token_readout(model, FastText(model.text, plain), level) is None
        assert choose_token_readout(model, None, level) is None


@torch.inference_mode()
@pytest.mark.parametrize("rows", [1, 17])
def test_an_output_layer_may_have_few_bits(kernels: ModuleType, rows: int) -> None:
    model = tiny_model(tiny_config(2, vocab_size=100), seed=1)
    hidden = torch.randn((rows, model.config.text.dim), generator=torch.Generator().manual_seed(3))
    asked = asked_for([NOTHING] * rows, [NOTHING] * rows, list(range(rows)))
    packed = pack_weights(model.text.lm_head.weight, "fp8")
    for output in (
        OutputLayer8(model.text.lm_head),
        PackedLinear(packed, model.text.lm_head.bias, torch.float32),
    ):
        model.text.add_module("lm_head", output)
        results, feeds = torch.zeros(rows, NUM_VALUES), torch.zeros(rows, hidden.shape[1])
        kernels.TokenReadout(model, plain)(hidden, asked, feeds, results)
        expected, expected_feeds = batched.read(model, hidden, asked, Form())
        assert torch.equal(results, expected) and torch.equal(feeds, expected_feeds)
