"""The kernels of adapters on a CUDA device, against plain torch and the specification, at the real widths."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cache

import pytest
import torch
from cuda_tensors import CUDA, assert_near, randn
from lora_rows import adapter_rows, drawn, filled_stacks, mixed_stacks
from random_adapters import random_adapter
from torch import Tensor, nn

from kestrel_core.moondream.checkpoint.weights import random_weights
from kestrel_core.moondream.config import MOONDREAM2, MOONDREAM3, MoondreamConfig, TextConfig
from kestrel_core.moondream.fast_text import PACKED_TOKENS, FastText
from kestrel_core.moondream.lora import AdapterRows, Stacks
from kestrel_core.moondream.model import Moondream
from kestrel_core.moondream.moe import MoE
from kestrel_core.moondream.ops import plain
from kestrel_core.moondream.ops.protocol import Fused, StepAdapters
from kestrel_core.moondream.text import Text

pytestmark = pytest.mark.gpu

# Of the root mean square: rounding once differs from rounding at every step, and float32 sums by their order.
CLOSE = {torch.float32: 2e-5, torch.bfloat16: 1.5e-2}
DTYPES = list(CLOSE)


def shape_of(config: MoondreamConfig) -> TextConfig:
    """Two blocks; where there are experts, the second has them."""
    text = replace(config.text, n_layers=2)
    return text if text.moe is None else replace(text, moe=replace(text.moe, start_layer=1))


@cache
def network(config: MoondreamConfig, dtype: torch.dtype) -> Text:
    with torch.device("meta"):
        vision = replace(config.vision, enc_n_layers=0)
        model = Moondream(replace(config, text=shape_of(config), vision=vision))
    random_weights(model, CUDA, dtype, seed=1)
    return model.eval().text


@cache
def stacks_of(config: MoondreamConfig, max_rank: int, dtype: torch.dtype) -> Stacks:
    return mixed_stacks(shape_of(config), max_rank, CUDA, dtype)


def rows_of(stacks: Stacks, num_tokens: int, tile_size: int, seed: int = 0) -> AdapterRows:
    return adapter_rows(stacks, drawn(num_tokens, seed=seed + num_tokens), tile_size)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("tile_size", [16, 64])
@pytest.mark.parametrize(
    ("num_tokens", "max_rank"), [(1, 32), (16, 1), (64, 32), (65, 12), (762, 32), (3714, 16), (100, 512)]
)
def test_targets_are_added_where_they_belong(
    kernels: Fused, dtype: torch.dtype, tile_size: int, num_tokens: int, max_rank: int
) -> None:
    step = StepAdapters(rows_of(stacks_of(MOONDREAM2, max_rank, dtype), num_tokens, tile_size), 1)
    h, mixed = randn(num_tokens, 2048, seed=1, dtype=dtype), randn(num_tokens, 2048, seed=2, dtype=dtype)
    inner = randn(num_tokens, 8192, seed=3, dtype=dtype)
    made = []
    for ops in (kernels, plain):
        packed = randn(num_tokens, 6144 + 8192, seed=4, dtype=dtype)
        y = randn(num_tokens, 2048, seed=5, dtype=dtype)
        low = ops.shrink({"qkv": h, "fc1": h, "input_proj": h}, step, None)
        ops.expand(packed, low, ("qkv", "fc1"), step, beside=True)
        low = ops.shrink({"proj": mixed, "fc2": inner}, step, low)
        ops.expand(y, low, ("input_proj", "proj", "fc2"), step, beside=False)
        made.append((packed, y))
    for ours, expected in zip(*made, strict=True):
        assert_near(ours, expected, CLOSE[dtype])


@pytest.mark.parametrize("seed", range(8))
def test_any_shape_will_do(kernels: Fused, seed: int) -> None:
    """Odd widths and ranks. float32, where nothing but the order of sums may differ."""
    generator = torch.Generator().manual_seed(seed)

    def number(low: int, high: int) -> int:
        return int(torch.randint(low, high, (), generator=generator))

    config = replace(
        MOONDREAM2.text, n_layers=1, dim=16 * number(1, 9), n_heads=1, n_kv_heads=1, ff_dim=number(1, 300)
    )
    num_tokens, tile_size = number(1, 300), (16, 64)[seed % 2]
    step = StepAdapters(rows_of(mixed_stacks(config, number(1, 70), CUDA), num_tokens, tile_size), 0)
    inputs = {"proj": randn(num_tokens, config.dim), "fc2": randn(num_tokens, config.ff_dim, seed=1)}
    made = []
    for ops in (kernels, plain):
        y = randn(num_tokens, config.dim, seed=2)
        low = ops.shrink({"input_proj": inputs["proj"]}, step, None)
        low = ops.shrink(inputs, step, low)
        ops.expand(y, low, ("input_proj", "proj", "fc2"), step, beside=False)
        made.append(y)
    assert_near(*made, limit=CLOSE[torch.float32])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("max_rank", [32, 256])
@pytest.mark.parametrize("num_tokens", [1, 7, 64, 65, 762, 2100])
def test_each_pair_has_its_own_adapter(
    kernels: Fused, dtype: torch.dtype, max_rank: int, num_tokens: int
) -> None:
    mlp = network(MOONDREAM3, dtype).blocks[1].mlp
    assert isinstance(mlp, MoE)
    step = StepAdapters(rows_of(stacks_of(MOONDREAM3, max_rank, dtype), num_tokens, 64), 1)
    h = randn(num_tokens, 2048, seed=num_tokens, dtype=dtype)
    ids, weights = kernels.route(mlp.router(h), 8)
    made = []
    for ops in (kernels, plain):
        pairs = ops.experts(h, ids, weights, mlp.fc1.weight, mlp.fc2.weight, step)
        made.append(ops.add_norm(torch.zeros_like(h), None, pairs, None)[0])
    assert_near(*made, limit=CLOSE[dtype])


class Mean:
    """An `Attend` that mixes all it sees, and is cheap to compare."""

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return (q + k.mean(0) + v.mean(0)).to(q.dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("config", [MOONDREAM2, MOONDREAM3], ids=["Moondream 2", "Moondream 3"])
def test_text_adapts_the_same(kernels: Fused, config: MoondreamConfig, dtype: torch.dtype) -> None:
    """In bfloat16 rounding may send a token to another expert where two are about as likely."""
    text, stacks = network(config, dtype), stacks_of(config, 32, dtype)
    fast = FastText(text, kernels)
    assert PACKED_TOKENS < 745
    for tokens, tile_size in ((1, 16), (16, 16), (64, 16), (745, 64)):
        x, rows = randn(tokens, 2048, seed=tokens, dtype=dtype), rows_of(stacks, tokens, tile_size)
        positions = torch.arange(tokens, device=CUDA, dtype=torch.int32) + 17
        with near_ties(text) as ties:
            expected = text(x, positions, Mean(), rows)
        ours = fast(x, positions, Mean(), rows)
        off = (ours.float() - expected.float()).norm(dim=1) / expected.float().norm(dim=1)
        tie = torch.stack(ties).any(0) if ties else torch.zeros(tokens, dtype=torch.bool, device=CUDA)
        assert float(tie.float().mean()) < 0.5 or tokens == 1
        assert bool((off[~tie] < 2 * CLOSE[dtype]).all()), (tokens, off, tie)
        assert float(off.median()) < CLOSE[dtype] or (tokens == 1 and bool(tie)), (tokens, off)


@contextmanager
def near_ties(text: Text) -> Iterator[list[Tensor]]:
    """For every router that passes inside: which tokens have a next expert about as likely as their last."""
    ties: list[Tensor] = []
    with ExitStack() as hooks:
        for block in text.blocks:
            if isinstance(block.mlp, MoE):
                count = block.mlp.experts_per_token

                def hook(
                    router: nn.Module, inputs: tuple[Tensor, ...], logits: Tensor, n: int = count
                ) -> None:
                    values = logits.float().topk(n + 1, dim=-1).values
                    ties.append(values[:, -2] - values[:, -1] <= 0.03 * logits.float().std(-1))

                hooks.callback(block.mlp.router.register_forward_hook(hook).remove)
        yield ties


@pytest.mark.parametrize("config", [MOONDREAM2, MOONDREAM3], ids=["Moondream 2", "Moondream 3"])
@pytest.mark.parametrize(("num_tokens", "tile_size"), [(1, 16), (64, 16), (300, 64)])
def test_a_captured_step_follows_its_tokens_adapters(
    kernels: Fused, config: MoondreamConfig, num_tokens: int, tile_size: int
) -> None:
    """The same graph serves steps with other adapters, tiles and numbers in the stacks."""
    dtype, text = torch.bfloat16, network(config, torch.bfloat16)
    stacks, fast = mixed_stacks(text.config, 32, CUDA, dtype), FastText(text, kernels)
    x, positions = randn(num_tokens, 2048, dtype=dtype), torch.arange(num_tokens, device=CUDA)
    rows = padded(rows_of(stacks, num_tokens, tile_size), num_tiles=num_tokens // tile_size + 5)
    assert rows.order is not None and rows.tiles is not None
    with torch.inference_mode():
        fast(x, positions, Mean(), rows)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = fast(x, positions, Mean(), rows)
        for seed in (5, 6, 7):
            other = padded(rows_of(stacks, num_tokens, tile_size, seed), len(rows.tiles))
            assert other.order is not None and other.tiles is not None
            rows.of_token.copy_(other.of_token)
            rows.order.copy_(other.order)
            rows.tiles.copy_(other.tiles)
            if seed == 7:  # a load replaces the second adapter by one of another rank
                loaded = filled_stacks(text.config, [random_adapter(text.config, 9, seed=9)], 32, CUDA, dtype)
                stacks.numbers[2], stacks.ranks[2] = loaded.numbers[1], loaded.ranks[1]
            graph.replay()
            replayed = out.clone()
            torch.testing.assert_close(replayed, fast(x, positions, Mean(), other), atol=0, rtol=0)


def padded(rows: AdapterRows, num_tiles: int) -> AdapterRows:
    """With that many tiles, as a captured graph has them."""
    assert rows.tiles is not None
    used = rows.tiles[rows.tiles[:, 0] > 0]
    tiles = torch.zeros((num_tiles, 3), dtype=torch.int32, device=CUDA)
    tiles[: len(used)] = used
    return replace(rows, tiles=tiles)
