"""The steps that adapters add, in plain torch, against the specification in `moondream.lora`."""

from dataclasses import replace

import pytest
import torch
from lora_rows import adapter_rows, drawn, mixed_stacks
from tiny import tiny_config, tiny_model
from torch import Tensor

from kestrel_core.moondream.fast_text import PACKED_TOKENS, FastText
from kestrel_core.moondream.lora import AdapterRows, Target, target_shapes
from kestrel_core.moondream.moe import MoE
from kestrel_core.moondream.ops import plain
from kestrel_core.moondream.ops.protocol import StepAdapters

DENSE, EXPERTS = tiny_config(2), tiny_config(3)
CLOSE = {"atol": 2e-5, "rtol": 2e-5}


def randn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def rows_of(num_tokens: int, max_rank: int = 6, generation: int = 2) -> AdapterRows:
    config = tiny_config(generation).text
    return adapter_rows(mixed_stacks(config, max_rank), drawn(num_tokens), tile_size=16)


def test_targets_with_one_input_are_added_side_by_side() -> None:
    rows, x, config = rows_of(40), randn(40, 32, seed=1), DENSE.text
    sizes = {target: target_shapes(config, 1)[target].out_dim for target in ("qkv", "fc1")}
    packed = randn(40, sum(sizes.values()) + 5, seed=2)
    expected = packed.clone()
    adapt = rows.in_block(1)
    qkv, fc1, _ = expected.split((*sizes.values(), 5), dim=1)
    qkv.copy_(adapt("qkv", x, qkv.clone()))
    fc1.copy_(adapt("fc1", x, fc1.clone()))
    step = StepAdapters(rows, 1)
    low = plain.shrink({"qkv": x, "fc1": x, "input_proj": x}, step, None)
    plain.expand(packed, low, ("qkv", "fc1"), step, beside=True)
    torch.testing.assert_close(packed, expected, **CLOSE)


def test_targets_with_one_output_are_summed() -> None:
    rows, y = rows_of(40), randn(40, 32, seed=2)
    inputs: dict[Target, Tensor] = {
        "input_proj": randn(40, 32, seed=3),
        "proj": randn(40, 32, seed=4),
        "fc2": randn(40, 48, seed=5),
    }
    expected = y
    for target, x in inputs.items():
        expected = rows.in_block(2)(target, x, expected)
    step = StepAdapters(rows, 2)
    low = plain.shrink({"input_proj": inputs.pop("input_proj")}, step, None)
    low = plain.shrink(inputs, step, low)
    plain.expand(y, low, ("input_proj", "proj", "fc2"), step, beside=False)
    torch.testing.assert_close(y, expected, **CLOSE)


@pytest.mark.parametrize("max_rank", [1, 6])
def test_each_token_meets_its_experts_with_its_own_adapter(max_rank: int) -> None:
    mlp = tiny_model(EXPERTS, seed=5).text.blocks[1].mlp
    assert isinstance(mlp, MoE)
    rows, h = rows_of(30, max_rank, generation=3), randn(30, 32, seed=6)
    ids, weights = mlp.route(h)
    pairs = plain.experts(h, ids.int(), weights, mlp.fc1.weight, mlp.fc2.weight, StepAdapters(rows, 1))
    ours, _ = plain.add_norm(torch.zeros_like(h), None, pairs, None)
    torch.testing.assert_close(ours, mlp(h, rows.in_block(1)), **CLOSE)


class Mean:
    """An `Attend` that mixes all it sees."""

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return q + k.mean(0) + v.mean(0)


@pytest.mark.parametrize("config", [DENSE, EXPERTS], ids=["dense", "experts"])
@pytest.mark.parametrize("length", [1, 23, PACKED_TOKENS + 3])
@pytest.mark.parametrize("max_rank", [1, 8])
def test_the_fast_way_adapts_the_same(config: object, length: int, max_rank: int) -> None:
    assert isinstance(config, type(DENSE))
    text, x, positions = tiny_model(config, seed=3).text, randn(length, 32), torch.arange(length) * 3 % 128
    of_token = drawn(length, seed=length) if length > 1 else torch.ones(1, dtype=torch.int32)
    rows = adapter_rows(mixed_stacks(config.text, max_rank), of_token, tile_size=16)
    expected, without = text(x, positions, Mean(), rows), text(x, positions, Mean())
    assert (expected - without).abs().max() > 0.1
    ours = FastText(text, plain)(x, positions, Mean(), rows)
    torch.testing.assert_close(ours, expected, atol=2e-4, rtol=2e-4)
    unsorted = replace(rows, order=None, tiles=None, tile_size=0, stacks=None)
    assert torch.equal(FastText(text, plain)(x, positions, Mean(), unsorted), ours)


def test_tokens_without_an_adapter_stay_what_they_are() -> None:
    rows, y = rows_of(40), randn(40, 32)
    before, step = y.clone(), StepAdapters(rows, 0)
    plain.expand(y, plain.shrink({"proj": randn(40, 32, seed=1)}, step, None), ("proj",), step, beside=False)
    untouched = (rows.of_token == 0) | (rows.of_token == 3)  # the third has no such target
    assert torch.equal(y[untouched], before[untouched])
    assert (y[~untouched] != before[~untouched]).any(1).all()


@pytest.mark.parametrize("config", [DENSE, EXPERTS], ids=["dense", "experts"])
def test_a_step_without_adapters_does_nothing_for_them(
    config: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(config, type(DENSE))
    text, experts, seen = tiny_model(config, seed=3).text, plain.experts, list[object]()
    monkeypatch.setattr(plain, "shrink", None)
    monkeypatch.setattr(plain, "expand", None)
    monkeypatch.setattr(plain, "experts", lambda *given: seen.append(given[5]) or experts(*given))
    FastText(text, plain)(randn(5, 32), torch.arange(5), Mean())
    assert seen == [None] * (2 if config is EXPERTS else 0)
