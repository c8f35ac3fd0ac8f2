"""The kernels for weights in few bits against plain torch, on the CPU: interpreted, not compiled."""

from collections.abc import Iterator
from importlib.util import find_spec
from types import ModuleType

import pytest
import torch
from lora_rows import adapter_rows, drawn, mixed_stacks
from tiny import tiny_config
from torch import Tensor

from kestrel_core.moondream.ops import few_bits, plain
from kestrel_core.moondream.ops.few_bits import KINDS, Kind, pack_weights, unpack
from kestrel_core.moondream.ops.protocol import Cut, StepAdapters

pytestmark = pytest.mark.skipif(
    find_spec("triton") is None or torch.cuda.is_available(), reason="needs the kernel language, and no GPU"
)


@pytest.fixture(scope="module")
def kernels() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_INTERPRET", "1")  # read at import, and again at every launch
        from kestrel_core.moondream.ops import few_bits_kernels

        yield few_bits_kernels


@pytest.fixture(scope="module")
def expert_kernels(kernels: ModuleType) -> ModuleType:
    from kestrel_core.moondream.ops import few_bits_expert_kernels

    return few_bits_expert_kernels


def randn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [1, 8, 11, 17])
@pytest.mark.parametrize(("out_dim", "x_dim", "y_dim"), [(24, 512, 1024), (40, 256, 80), (16, 538, 7)])
def test_products(kernels: ModuleType, kind: Kind, rows: int, out_dim: int, x_dim: int, y_dim: int) -> None:
    x, y, bias = randn(rows, x_dim + 3)[:, 3:], randn(rows, y_dim, seed=1), randn(out_dim, seed=2)
    w, other = (pack_weights(randn(out_dim, dim, seed=dim), kind) for dim in (x_dim, y_dim))
    for ours, expected in (
        (kernels.linear(x, w, bias), few_bits.linear(x, w, bias)),
        (kernels.linear(x, w, None), few_bits.linear(x, w, None)),
        (kernels.linear_sum(x, w, y, other, bias), few_bits.linear_sum(x, w, y, other, bias)),
    ):
        torch.testing.assert_close(ours, expected, atol=1e-3, rtol=1e-4)


@pytest.mark.parametrize(("kind", "other_kind"), [("fp8", "int4"), ("int4", "fp8"), ("fp8", "fp8")])
@pytest.mark.parametrize("rows", [3, 16, 20])
def test_two_matrices_of_different_kinds(
    kernels: ModuleType, kind: Kind, other_kind: Kind, rows: int
) -> None:
    x, y, bias = randn(rows, 512), randn(rows, 1024, seed=1), randn(72, seed=2)
    w, beside = pack_weights(randn(40, 512, seed=3), kind), pack_weights(randn(32, 512, seed=4), other_kind)
    other = pack_weights(randn(40, 1024, seed=5), other_kind)
    for ours, expected in (
        (kernels.linear_beside(x, w, beside, bias), few_bits.linear_beside(x, w, beside, bias)),
        (
            kernels.linear_sum(x, w, y, other, bias[:40]),
            few_bits.linear_sum(x, w, y, other, bias[:40]),
        ),
    ):
        torch.testing.assert_close(ours, expected, atol=1e-3, rtol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cut", [(16, 64, 1), (32, 128, 2), (16, 32, 8), (64, 256, 1)])
def test_every_cut_gives_the_same(kernels: ModuleType, kind: Kind, cut: tuple[int, int, int]) -> None:
    x, y, bias = randn(3, 512), randn(3, 2048, seed=1), randn(50, seed=2)
    w, other = (pack_weights(randn(50, dim, seed=dim), kind) for dim in (512, 2048))
    fitting = kernels.fitting(Cut(*cut, stages=2), w, other)
    assert fitting.warps == (min(cut[2], 2) if kind == "int4" else cut[2])
    ours = kernels.few_rows(x, w, y, other, bias, fitting)
    torch.testing.assert_close(ours, few_bits.linear_sum(x, w, y, other, bias), atol=1e-3, rtol=1e-4)


def test_small_gpus_get_fewer_parts(kernels: ModuleType) -> None:
    """Of 8 parts with 16 rows: 160 kB in int4, 144 in fp8, as the compiler says."""
    for kind, stages, needed in (("int4", 3, 163_840), ("fp8", 4, 147_456)):
        w = pack_weights(torch.zeros(16, 2048), kind)
        cut = Cut(16, 128, 8, stages)
        assert kernels.within(cut, 16, 2, needed, w) == cut
        assert kernels.within(cut, 16, 2, needed - 1, w).warps == 4
        assert kernels.within(cut, 16, 2, 99 * 1024, w).warps == 4


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(20, 256), (3, 7, 80), (2, 5, 1300)])
def test_unpacking(kernels: ModuleType, kind: Kind, shape: tuple[int, ...]) -> None:
    w = pack_weights(randn(*shape), kind)
    out = torch.full(shape, torch.nan)
    kernels.unpack_into(w, out)
    assert torch.equal(out, unpack(w, torch.float32))


def test_every_float8_number_is_widened(kernels: ModuleType) -> None:
    numbers = torch.arange(256, dtype=torch.uint8)
    numbers = numbers[numbers & 127 != 127].view(torch.float8_e4m3fn)[None]  # without the two NaN
    out = torch.empty(numbers.shape)
    kernels.unpack_into(few_bits.FewBits(numbers, torch.ones(1), "fp8", numbers.shape[1]), out)
    assert torch.equal(out, numbers.float())


@pytest.mark.filterwarnings("ignore:Conversion of an array:DeprecationWarning")  # as in test_lora_kernels.py
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("num_tokens", [1, 5, 21, 70])
@pytest.mark.parametrize("adapted", [False, True])
def test_experts(expert_kernels: ModuleType, kind: Kind, num_tokens: int, adapted: bool) -> None:
    text = tiny_config(3).text
    assert text.moe is not None
    num_experts, inner = text.moe.num_experts, text.moe.expert_inner_dim
    h = randn(num_tokens, text.dim)
    fc1 = pack_weights(randn(num_experts, 2 * inner, text.dim, seed=1) * text.dim**-0.5, kind)
    fc2 = pack_weights(randn(num_experts, text.dim, inner, seed=2) * inner**-0.5, kind)
    ids, weights = plain.route(randn(num_tokens, num_experts, seed=3), 2)
    rows = adapter_rows(mixed_stacks(text, 12), drawn(num_tokens, seed=num_tokens), 16) if adapted else None
    step = StepAdapters(rows, text.moe.start_layer) if rows is not None else None
    ours = expert_kernels.experts_few(h, ids, weights, fc1, fc2, step)
    expected = few_bits.experts_few(h, ids, weights, fc1, fc2, step)
    for pairs in (ours, expected):
        assert (pairs.rows is None) == (pairs is ours and num_tokens <= 64)
    both = (plain.add_norm(h, None, pairs, None)[0] for pairs in (ours, expected))
    torch.testing.assert_close(*both, atol=1e-4, rtol=1e-4)


@pytest.mark.filterwarnings("ignore:Conversion of an array:DeprecationWarning")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("num_tokens", [2, 66])
def test_experts_of_several_blocks(expert_kernels: ModuleType, kind: Kind, num_tokens: int) -> None:
    h, weights = randn(num_tokens, 512), randn(num_tokens, 1, seed=3)
    fc1 = pack_weights(randn(2, 2 * 264, 512, seed=1) / 22, kind)
    fc2 = pack_weights(randn(2, 512, 264, seed=2) / 16, kind)
    ids = torch.arange(num_tokens).remainder(2)[:, None].int()
    ours = expert_kernels.experts_few(h, ids, weights, fc1, fc2)
    expected = few_bits.experts_few(h, ids, weights, fc1, fc2)
    both = (plain.add_norm(h, None, pairs, None)[0] for pairs in (ours, expected))
    torch.testing.assert_close(*both, atol=1e-4, rtol=1e-4)
