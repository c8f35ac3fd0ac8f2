"""The kernels for decoding against plain torch, interpreted; `early` needs a device and is in tests/gpu."""

from collections.abc import Iterator
from importlib.util import find_spec
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from kestrel_core.moondream.config import TextConfig
from kestrel_core.moondream.fast_text import make_rotary_tables
from kestrel_core.moondream.ops import choose, plain
from kestrel_core.moondream.ops.protocol import Cells, Fused, Heads, Norm, Pairs, TauWeights

pytestmark = [
    pytest.mark.skipif(
        find_spec("triton") is None or torch.cuda.is_available(),
        reason="needs the kernel language, and no GPU",
    ),
    pytest.mark.filterwarnings("ignore:Conversion of an array:DeprecationWarning"),
]
CLOSE = {"atol": 2e-5, "rtol": 2e-5}


@pytest.fixture(scope="module")
def module() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_INTERPRET", "1")  # read at import, and again at every launch
        from kestrel_core.moondream.ops import decode_kernels

        yield decode_kernels


@pytest.fixture
def fused(module: ModuleType) -> Fused:
    made: Fused = module.DecodeKernels(early=False)
    return made


def randn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("rows", [1, 3, 17])
@pytest.mark.parametrize(("out_dim", "x_dim", "y_dim"), [(7, 24, 40), (33, 70, 3), (4, 2100, 1100)])
def test_products(fused: Fused, rows: int, out_dim: int, x_dim: int, y_dim: int) -> None:
    x, y = randn(rows, x_dim), randn(rows, y_dim, seed=1)
    weight, other, bias = randn(out_dim, x_dim, seed=2), randn(out_dim, y_dim, seed=3), randn(out_dim, seed=4)
    close = {"atol": 5e-4, "rtol": 1e-4}
    torch.testing.assert_close(fused.linear(x, weight, bias), plain.linear(x, weight, bias), **close)
    ours, expected = (ops.linear_sum(x, weight, y, other, bias) for ops in (fused, plain))
    torch.testing.assert_close(ours, expected, **close)


def test_a_row_may_be_one_of_a_larger_matrix(fused: Fused) -> None:
    packed, weight, bias = randn(3, 40), randn(5, 24, seed=1), randn(5, seed=2)
    x = packed[1:2, 8:32]
    torch.testing.assert_close(fused.linear(x, weight, bias), plain.linear(x, weight, bias), **CLOSE)


@pytest.mark.parametrize(("num_heads", "num_kv_heads", "tau"), [(4, 2, False), (4, 4, True), (3, 3, True)])
@pytest.mark.parametrize("rows", [1, 4, 5])
def test_tau_is_computed_where_heads_are_rotated(
    fused: Fused, rows: int, num_heads: int, num_kv_heads: int, tau: bool
) -> None:
    heads, inner_dim = Heads(num_heads, num_kv_heads, 16), 37
    qkv_dim = (num_heads + 2 * num_kv_heads) * 16
    config = TextConfig(dim=16 * num_heads, n_heads=num_heads, n_kv_heads=num_kv_heads, max_context=64)
    tables = make_rotary_tables(config, torch.device("cpu"))
    positions = torch.tensor([17, 0, 1, 1000, 2047])[:rows]
    packed = randn(rows, qkv_dim + inner_dim + 3)
    weights = TauWeights(randn(2 * num_heads, qkv_dim, seed=1) * 0.1, randn(num_heads, seed=2))
    made = []
    for ops in (fused, plain):
        cells = torch.tensor([9, 0, 3, 4, 11])[:rows]
        kv = Cells(randn(12, num_kv_heads, 16, seed=3), randn(12, num_kv_heads, 16, seed=4), cells)
        made.append(ops.rotate(packed, positions, tables, heads, weights if tau else None, kv, inner_dim))
    for ours, expected in zip(*made, strict=True):
        torch.testing.assert_close(ours, expected, **CLOSE)


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize(("dim", "inner_dim"), [(32, 24), (70, 9), (2100, 40)])
def test_tokens_meet_their_experts(fused: Fused, rows: int, dim: int, inner_dim: int) -> None:
    fc1, fc2 = randn(5, 2 * inner_dim, dim, seed=1) * 0.05, randn(5, dim, inner_dim, seed=2) * 0.2
    h = randn(rows, dim, seed=3)
    ids, weights = fused.route(randn(rows, 5, seed=4), 3)
    ours, expected = (ops.experts(h, ids, weights, fc1, fc2) for ops in (fused, plain))
    assert ours.rows is None and ours.values.dtype == torch.float32 and expected.rows is not None
    torch.testing.assert_close(ours.values, expected.values[expected.rows], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("rows", [2, 17])
@pytest.mark.parametrize("has_order", [False, True])
def test_pairs_are_weighted_and_added_at_once(fused: Fused, rows: int, has_order: bool) -> None:
    x, y, norm = randn(rows, 24), randn(rows, 24, seed=1), Norm(randn(24, seed=2), randn(24, seed=3), 1e-5)
    order = torch.randperm(3 * rows, generator=torch.Generator().manual_seed(4)) if has_order else None
    for pairs in (None, Pairs(randn(3 * rows, 24, seed=5), randn(rows, 3, seed=6), order)):
        ours, expected = (ops.add_norm(x, y, pairs, norm) for ops in (fused, plain))
        torch.testing.assert_close(ours, expected, **CLOSE)


@pytest.mark.parametrize("capability", [(8, 0), (9, 0), (12, 0)])
@pytest.mark.parametrize("knows_how", [True, False])
def test_early_launches_need_a_device_and_a_language_that_have_them(
    module: ModuleType, monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int], knows_how: bool
) -> None:
    from kestrel_core.moondream.ops import early_launch

    cuda = SimpleNamespace(gdc_wait=None) if knows_how else SimpleNamespace()
    language: Any = SimpleNamespace(extra=SimpleNamespace(cuda=cuda))
    monkeypatch.setattr(early_launch, "tl", language)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    able = knows_how and capability >= (9, 0)
    assert choose.launches_early(torch.device("cuda"), "early") is able
    assert not choose.launches_early(torch.device("cuda"), "products")
    assert not choose.launches_early(torch.device("cpu"), "early")


def test_what_is_chosen(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (8, 0))
    cuda = torch.device("cuda")
    kinds = {
        option: type(choose.choose_fused(cuda, "auto", option)).__name__
        for option in ("off", "attention", "products", "early")
    }
    assert kinds == {"off": "module", "attention": "module"} | dict.fromkeys(
        ("products", "early"), "DecodeKernels"
    )
    assert choose.choose_fused(torch.device("cpu"), "auto", "early") is plain
