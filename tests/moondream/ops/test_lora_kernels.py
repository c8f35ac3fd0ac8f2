"""The kernels of adapters against plain torch, on the CPU: interpreted, not compiled.

Where there is a CUDA device, tests/gpu/test_lora_kernels.py runs them for real.
"""

from collections.abc import Iterator
from importlib.util import find_spec
from types import ModuleType

import pytest
import torch
from lora_rows import adapter_rows, drawn, filled_stacks, mixed_stacks
from random_adapters import random_adapter
from tiny import tiny_config, tiny_model
from torch import Tensor

from kestrel_core.moondream.fast_text import FastText
from kestrel_core.moondream.lora import AdapterRows
from kestrel_core.moondream.moe import MoE
from kestrel_core.moondream.ops import plain
from kestrel_core.moondream.ops.protocol import StepAdapters

pytestmark = [
    pytest.mark.skipif(
        find_spec("triton") is None or torch.cuda.is_available(),
        reason="needs the kernel language, and no GPU",
    ),
    # Version 3.6 of the interpreter takes the bounds of loops from arrays of one number.
    pytest.mark.filterwarnings("ignore:Conversion of an array:DeprecationWarning"),
]
DENSE, EXPERTS = tiny_config(2), tiny_config(3)
CLOSE = {"atol": 2e-5, "rtol": 2e-5}


@pytest.fixture(scope="module")
def kernels() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_INTERPRET", "1")  # read at import, and again at every launch
        from kestrel_core.moondream.ops import kernels

        yield kernels


def randn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def rows_of(num_tokens: int, max_rank: int, tile_size: int, generation: int = 2) -> AdapterRows:
    stacks = mixed_stacks(tiny_config(generation).text, max_rank)
    return adapter_rows(stacks, drawn(num_tokens, seed=num_tokens), tile_size)


@pytest.mark.parametrize(
    ("num_tokens", "tile_size", "max_rank"),
    [(1, 16, 1), (1, 64, 16), (17, 16, 12), (17, 64, 40), (150, 16, 20), (150, 64, 16)],
)
def test_targets_are_added_where_they_belong(
    kernels: ModuleType, num_tokens: int, tile_size: int, max_rank: int
) -> None:
    step = StepAdapters(rows_of(num_tokens, max_rank, tile_size), 1)
    h, inner = randn(num_tokens, 32, seed=1), randn(num_tokens, 48, seed=2)
    mixed = randn(num_tokens, 40, seed=3)[:, 8:]  # not contiguous
    for ops in (kernels, plain):
        packed, y = randn(num_tokens, 96 + 48 + 5, seed=4), randn(num_tokens, 32, seed=5)
        low = ops.shrink({"qkv": h, "fc1": h, "input_proj": h}, step, None)
        ops.expand(packed, low, ("qkv", "fc1"), step, beside=True)
        low = ops.shrink({"proj": mixed, "fc2": inner}, step, low)
        ops.expand(y, low, ("input_proj", "proj", "fc2"), step, beside=False)
        if ops is kernels:
            ours = packed, y
    torch.testing.assert_close(ours, (packed, y), **CLOSE)


def test_blocks_with_experts_have_fewer_targets(kernels: ModuleType) -> None:
    step, h, mixed = StepAdapters(rows_of(30, 8, 16, generation=3), 2), randn(30, 32), randn(30, 32, seed=1)
    made = []
    for ops in (kernels, plain):
        packed, y = randn(30, 96 + 6, seed=2), randn(30, 32, seed=3)
        low = ops.shrink({"qkv": h, "input_proj": h}, step, None)
        ops.expand(packed, low, ("qkv",), step, beside=True)
        ops.expand(y, ops.shrink({"proj": mixed}, step, low), ("input_proj", "proj"), step, beside=False)
        made.append((packed, y))
    torch.testing.assert_close(*made, **CLOSE)


def test_sums_are_rounded_as_the_model_rounds(kernels: ModuleType) -> None:
    """float16, since the interpreter has no bfloat16 of its own."""
    config = DENSE.text
    stacks = filled_stacks(config, [random_adapter(config, 24)], 32, dtype=torch.float16)
    step = StepAdapters(adapter_rows(stacks, torch.ones(9, dtype=torch.int32), 16), 0)
    x, y = randn(9, 32, seed=1).half(), randn(9, 32, seed=2).half()
    expected = step.rows.in_block(0)("proj", x, y)
    kernels.expand(y, kernels.shrink({"proj": x}, step, None), ("proj",), step, beside=False)
    torch.testing.assert_close(y, expected, atol=4e-3, rtol=4e-3)


def test_what_no_tile_names_is_not_touched(kernels: ModuleType) -> None:
    rows, y = rows_of(40, 8, 16), randn(40, 32)
    before, step = y.clone(), StepAdapters(rows, 0)
    low = kernels.shrink({"proj": randn(40, 32, seed=1)}, step, None)
    kernels.expand(y, low, ("proj",), step, beside=False)
    untouched = (rows.of_token == 0) | (rows.of_token == 3)  # the third has no such target
    assert torch.equal(y[untouched], before[untouched])
    assert (y[~untouched] != before[~untouched]).any(1).all()


def test_numbers_of_other_adapters_and_of_unused_ranks_are_not_read(kernels: ModuleType) -> None:
    config = DENSE.text
    stacks = filled_stacks(config, [random_adapter(config, 5)] * 2, 24)
    of_token = torch.full((5,), 2, dtype=torch.int32)
    rows = adapter_rows(stacks, of_token, 16)
    expected = rows.in_block(0)("fc2", randn(5, 48, seed=1), randn(5, 32))
    stacks.numbers[:2] = torch.nan
    fc2 = stacks.blocks[0]["fc2"]
    fc2.a[2, 5:] = fc2.b[2, :, 5:] = torch.nan
    y, step = randn(5, 32), StepAdapters(rows, 0)
    kernels.expand(y, kernels.shrink({"fc2": randn(5, 48, seed=1)}, step, None), ("fc2",), step, beside=False)
    torch.testing.assert_close(y, expected, **CLOSE)


@pytest.mark.parametrize(
    ("num_tokens", "max_rank"),
    [(1, 1), (2, 16), (40, 6), (70, 16), (150, 1)],  # few, and sorted into tiles
)
def test_each_pair_has_its_own_adapter(kernels: ModuleType, num_tokens: int, max_rank: int) -> None:
    mlp = tiny_model(EXPERTS, seed=5).text.blocks[1].mlp
    assert isinstance(mlp, MoE)
    step, h = StepAdapters(rows_of(num_tokens, max_rank, 16, generation=3), 1), randn(num_tokens, 32, seed=6)
    ids, weights = plain.route(mlp.router(h), 2)
    made = []
    for ops in (kernels, plain):
        pairs = ops.experts(h, ids, weights, mlp.fc1.weight, mlp.fc2.weight, step)
        made.append(ops.add_norm(torch.zeros_like(h), None, pairs, None)[0])
    torch.testing.assert_close(*made, **CLOSE)


def test_a_pass_over_torch_s_products_adds_the_same(kernels: ModuleType) -> None:
    from kestrel_core.moondream.ops import expert_kernels
    from kestrel_core.moondream.ops.expert_lora_kernels import PairAdapters

    mlp = tiny_model(EXPERTS, seed=5).text.blocks[1].mlp
    assert isinstance(mlp, MoE)
    step, h = StepAdapters(rows_of(90, 8, 16, generation=3), 1), randn(90, 32, seed=6)
    ids, weights = plain.route(mlp.router(h), 2)
    order, ends = plain.sort_pairs(ids, 6)
    adapters = PairAdapters(step, ids, order)
    fc1, fc2 = mlp.fc1.weight, mlp.fc2.weight
    ours = expert_kernels.adapted_grouped_experts(h, order, ends, fc1, fc2, adapters)
    torch.testing.assert_close(ours, plain.experts(h, ids, weights, fc1, fc2, step).values, **CLOSE)


class Mean:
    """An `Attend` that mixes all it sees."""

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return q + k.mean(0) + v.mean(0)


@pytest.mark.parametrize("generation", [2, 3])
@pytest.mark.parametrize(("length", "tile_size"), [(1, 16), (20, 64)])
def test_the_text_model_adapts_the_same(
    kernels: ModuleType, generation: int, length: int, tile_size: int
) -> None:
    config = tiny_config(generation)
    text, x, positions = tiny_model(config, seed=3).text, randn(length, 32), torch.arange(length)
    rows = adapter_rows(mixed_stacks(config.text, 8), drawn(length, seed=2), tile_size)
    expected = text(x, positions, Mean(), rows)
    ours = FastText(text, kernels)(x, positions, Mean(), rows)
    torch.testing.assert_close(ours, expected, atol=2e-4, rtol=2e-4)
