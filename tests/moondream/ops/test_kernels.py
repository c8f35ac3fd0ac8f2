"""Every kernel against the plain torch that says what it computes, on the CPU: interpreted, not compiled.

Where there is a CUDA device, tests/gpu/test_fast_network.py runs them for real.
"""

from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from types import ModuleType

import pytest
import torch
from float8_numbers import same_float8
from torch import Tensor

from kestrel_core.moondream.config import TextConfig
from kestrel_core.moondream.fast_text import make_rotary_tables
from kestrel_core.moondream.ops import plain
from kestrel_core.moondream.ops.protocol import Cells, Heads, Norm, Pairs, TauWeights

pytestmark = pytest.mark.skipif(
    find_spec("triton") is None or torch.cuda.is_available(), reason="needs the kernel language, and no GPU"
)


@pytest.fixture(scope="module")
def kernels() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_INTERPRET", "1")  # read at import, and again at every launch
        from kestrel_core.moondream.ops import kernels

        yield kernels


def randn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def norm_of(dim: int) -> Norm:
    return Norm(randn(dim, seed=10), randn(dim, seed=11), 1e-5)


@pytest.mark.parametrize("dim", [16, 72])
@pytest.mark.parametrize("has_y", [False, True])
@pytest.mark.parametrize("has_norm", [False, True])
def test_sums_are_normalised(kernels: ModuleType, dim: int, has_y: bool, has_norm: bool) -> None:
    x, y = 3 * randn(5, dim) + 2, randn(5, dim, seed=1) if has_y else None
    norm = norm_of(dim) if has_norm else None
    for ours, expected in zip(
        kernels.add_norm(x, y, None, norm), plain.add_norm(x, y, None, norm), strict=True
    ):
        torch.testing.assert_close(ours, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("sorted_rows", [False, True])
def test_pairs_are_weighted_and_added(kernels: ModuleType, sorted_rows: bool) -> None:
    x, y, values, weights = randn(5, 24), randn(5, 24, seed=1), randn(15, 24, seed=2), randn(5, 3, seed=3)
    rows = torch.randperm(15, generator=torch.Generator().manual_seed(4)) if sorted_rows else None
    pairs = Pairs(values, weights, rows)
    for ours, expected in zip(
        kernels.add_norm(x, y, pairs, norm_of(24)), plain.add_norm(x, y, pairs, norm_of(24)), strict=True
    ):
        torch.testing.assert_close(ours, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
def test_rows_are_rounded_to_float8_by_their_largest_number(kernels: ModuleType) -> None:
    x = randn(6, 40) * torch.tensor([1e-3, 1.0, 5.0, 1e3, 0.0, 7.0])[:, None]
    for gelu in (False, True):
        ours, expected = kernels.quantise(x, gelu), plain.quantise(x, gelu)
        torch.testing.assert_close(ours.scales, expected.scales, atol=0, rtol=1e-5)
        assert same_float8(ours.values, expected.values)
    total, normed = kernels.add_norm_float8(x, x, norm_of(40))
    expected_total, expected_normed = plain.add_norm_float8(x, x, norm_of(40))
    torch.testing.assert_close(total, expected_total)
    torch.testing.assert_close(normed.scales, expected_normed.scales, atol=0, rtol=1e-4)
    assert same_float8(normed.values, expected_normed.values)


@pytest.mark.parametrize("rows", [1, 5, 16, 17])
@pytest.mark.parametrize(("out_dim", "x_dim", "y_dim"), [(24, 32, 80), (4100, 16, 7)])
def test_products_of_few_rows(kernels: ModuleType, rows: int, out_dim: int, x_dim: int, y_dim: int) -> None:
    x, y, bias = randn(rows, x_dim + 3)[:, 3:], randn(rows, y_dim, seed=1), randn(out_dim, seed=2)
    weight, other = randn(out_dim, x_dim, seed=3), randn(out_dim, y_dim, seed=4)
    for ours, expected in (
        (kernels.linear(x, weight, bias), plain.linear(x, weight, bias)),
        (kernels.linear_sum(x, weight, y, other, bias), plain.linear_sum(x, weight, y, other, bias)),
    ):
        torch.testing.assert_close(ours, expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize(
    ("num_heads", "num_kv_heads", "tau"), [(4, 4, False), (4, 2, False), (4, 4, True), (3, 3, True)]
)
def test_heads_turn(kernels: ModuleType, stored: bool, num_heads: int, num_kv_heads: int, tau: bool) -> None:
    heads, inner_dim, behind = Heads(num_heads, num_kv_heads, 16), 37, 3
    qkv_dim = (num_heads + 2 * num_kv_heads) * 16
    config = TextConfig(dim=16 * num_heads, n_heads=num_heads, n_kv_heads=num_kv_heads, max_context=64)
    tables = make_rotary_tables(config, torch.device("cpu"))
    positions = torch.tensor([0, 1, 17, 1000, 2047])
    packed = randn(5, qkv_dim + inner_dim + behind)
    weights = TauWeights(randn(2 * num_heads, qkv_dim, seed=1) * 0.1, randn(num_heads, seed=2))
    made = []
    for ops in (kernels, plain):
        cells = torch.tensor([9, 0, 3, 4, 11])
        kv = Cells(randn(12, num_kv_heads, 16, seed=3), randn(12, num_kv_heads, 16, seed=4), cells)
        made.append(
            ops.rotate(
                packed, positions, tables, heads, weights if tau else None, kv if stored else None, inner_dim
            )
        )
    for ours, expected in zip(*made, strict=True):
        torch.testing.assert_close(ours, expected, atol=1e-5, rtol=1e-5)
    assert made[0].k.shape[0] == (12 if stored else 5)


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize(("num_heads", "num_kv_heads", "tau"), [(4, 2, False), (3, 3, True)])
def test_keys_and_values_are_written_in_float8(
    kernels: ModuleType, num_heads: int, num_kv_heads: int, tau: bool, inside: bool
) -> None:
    heads, qkv_dim = Heads(num_heads, num_kv_heads, 16), (num_heads + 2 * num_kv_heads) * 16
    config = TextConfig(dim=16 * num_heads, n_heads=num_heads, n_kv_heads=num_kv_heads, max_context=64)
    tables, cells = make_rotary_tables(config, torch.device("cpu")), torch.tensor([9, 0, 3, 4, 11])
    packed, positions = randn(5, qkv_dim), torch.tensor([0, 1, 17, 1000, 2047])
    packed[2] *= 1e6  # is cut off
    weights = (
        TauWeights(randn(2 * num_heads, qkv_dim, seed=1) * 0.1, randn(num_heads, seed=2)) if tau else None
    )
    made = []
    for rotate in (partial(kernels.rotate, tau_inside=inside), plain.rotate):
        kept = (torch.ones(12, num_kv_heads, 16).to(plain.FLOAT8) for _ in range(2))
        kv = Cells(*kept, cells, k_scale=0.25, v_scale=4.0)
        made.append(rotate(packed, positions, tables, heads, weights, kv, 0))
    torch.testing.assert_close(made[0].q, made[1].q, atol=1e-5, rtol=1e-5)
    for ours, expected in zip(made[0][1:3], made[1][1:3], strict=True):
        assert ours.dtype == plain.FLOAT8 and same_float8(ours, expected)
        assert (ours.float()[[1, 2, 5, 6, 7, 8, 10]] == 1).all() and ours.float().abs().max() == 448


@pytest.mark.parametrize(("num_experts", "top"), [(64, 8), (6, 2), (7, 3), (4, 4), (1, 1)])
def test_the_best_experts_are_found(kernels: ModuleType, num_experts: int, top: int) -> None:
    scores = randn(9, num_experts + 5)[:, 5:]
    ids, weights = kernels.route(scores, top)
    expected_ids, expected_weights = plain.route(scores, top)
    assert torch.equal(ids, expected_ids)
    torch.testing.assert_close(weights, expected_weights, atol=1e-6, rtol=1e-5)


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_scores_that_are_no_numbers_still_name_experts(kernels: ModuleType) -> None:
    ids, _ = kernels.route(torch.full((2, 5), torch.nan), 3)
    assert ((ids >= 0) & (ids < 5)).all()


@pytest.mark.parametrize("num_tokens", [1, 2, 5, 40])
def test_few_tokens_meet_their_experts(kernels: ModuleType, num_tokens: int) -> None:
    fc1, fc2 = randn(7, 48, 32, seed=1) * 0.2, randn(7, 32, 24, seed=2) * 0.2
    h, scores = randn(num_tokens, 32, seed=3), randn(num_tokens, 7, seed=4)
    scores[:, 2] -= 100  # nobody asks for this one
    scores[:, 4] += 100 * (num_tokens > 16)  # and everybody for that: more than fit one pass
    fc1[2] = fc2[2] = torch.nan
    ids, weights = plain.route(scores, 3)
    ours, expected = (ops.experts(h, ids, weights, fc1, fc2) for ops in (kernels, plain))
    assert ours.rows is None and expected.rows is not None
    torch.testing.assert_close(ours.values, expected.values[expected.rows], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("num_tokens", [65, 70, 150, 300])  # one tile an expert, and several
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_many_tokens_are_sorted_by_expert(kernels: ModuleType, num_tokens: int, dtype: torch.dtype) -> None:
    fc1, fc2 = (randn(7, 48, 32, seed=1) * 0.2).to(dtype), (randn(7, 40, 24, seed=2) * 0.2).to(dtype)
    h, scores = randn(num_tokens, 32, seed=3).to(dtype), randn(num_tokens, 7, seed=4)
    scores[:, 2] -= 100  # nobody asks for this one
    scores[:, 6] += 100 * (num_tokens != 70)  # and everybody for that, which is the last
    fc1[2] = fc2[2] = torch.nan
    ids, weights = plain.route(scores, 3)
    ours = kernels.experts(h, ids, weights, fc1, fc2)
    expected = plain.experts(h.float(), ids, weights, fc1.float(), fc2.float())
    assert torch.equal(ours.rows, expected.rows) and ours.values.dtype == dtype
    close = 1e-5 if dtype == torch.float32 else 2e-3
    torch.testing.assert_close(ours.values.float(), expected.values, atol=close, rtol=close)


def test_very_many_tokens_in_bfloat16_go_to_torch(
    kernels: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kestrel_core.moondream.ops import expert_kernels

    asked: list[int] = []
    monkeypatch.setattr(expert_kernels, "TILED_TOKENS", 80)
    monkeypatch.setattr(expert_kernels, "grouped_experts", lambda h, *_: asked.append(len(h)))
    fc1, fc2, h = randn(7, 48, 32, seed=1), randn(7, 32, 24, seed=2), randn(90, 32, seed=3)
    ids, weights = plain.route(randn(90, 7, seed=4), 3)
    kernels.experts(h, ids, weights, fc1, fc2)
    kernels.experts(h.bfloat16(), ids, weights, fc1.bfloat16(), fc2.bfloat16())
    kernels.experts(h[:80].bfloat16(), ids[:80], weights[:80], fc1.bfloat16(), fc2.bfloat16())
    assert asked == [90]
