"""Products of one row: nothing but reading the weights, straight into registers, as fast as they come.

Tiles of 16 rows pass the weights through shared memory for the matrix units, of which one row uses a
sixteenth. Here every program has a few rows of the matrix. The first of their columns are on their way before
the kernels in front have ended, where early launches are on (`ops.early_launch`).

Weights are as wide as the row, or bytes of float8 with a scale for each of their rows. Those become float32
by an instruction, or where there is none by their bits, as 2^-120 of what they stand for; half of the factor
goes into the inputs and half into the result, so that nothing between them gets too small.
"""

from functools import cache

import torch
import triton
import triton.language as tl
from torch import Tensor

from kestrel_core.moondream.ops.early_launch import launch_options, wait
from kestrel_core.moondream.ops.few_bits import FewBits
from kestrel_core.moondream.ops.few_bits_product import widest
from kestrel_core.moondream.ops.protocol import Cut
from kestrel_core.moondream.ops.routing_kernels import gelu

# The fastest of those tried on an H200: docs/performance-log.md.
NARROW = Cut(4, 2048, 8)  # for matrices of few rows, each of them long
WIDE = Cut(8, 1024, 4)
NARROW_DIM = 4096  # rows of a matrix up to which it is narrow
FIRST_OF_EXPERT = Cut(8, 256, 4)
SECOND_OF_EXPERT = Cut(16, 256, 4)
# Of float8; of five cuts tried on an H200 none was more than a tenth faster.
NARROW_8 = Cut(4, 2048, 8)
WIDE_8 = Cut(8, 1024, 4)
FIRST_OF_EXPERT_8 = Cut(8, 512, 4)
SECOND_OF_EXPERT_8 = Cut(16, 512, 4)
CONVERTING = (8, 9)  # compute capability of the first devices with an instruction that widens float8
HALF = tl.constexpr(2.0**60)


@cache
def converts(device: torch.device) -> bool:
    return device.type == "cuda" and torch.cuda.get_device_capability(device) >= CONVERTING


def fitting(cut: Cut, dim: int) -> Cut:
    """Without columns beyond the matrix."""
    return cut._replace(depth=min(cut.depth, triton.next_power_of_2(dim)))


@triton.jit
def _columns(
    matrix: tl.tensor, n: tl.tensor, k: tl.tensor, OUT_DIM: tl.constexpr, IN_DIM: tl.constexpr
) -> tl.tensor:
    inside = (n < OUT_DIM)[:, None] & (k < IN_DIM)[None, :]
    # Read once, so they should not push out of the first cache what all programs read.
    places = matrix + n.to(tl.int64)[:, None] * IN_DIM + k[None, :]
    return tl.load(places, mask=inside, other=0, eviction_policy="evict_first")


@triton.jit
def _wide(w: tl.tensor, FLOAT8: tl.constexpr, CONVERT: tl.constexpr) -> tl.tensor:
    return widest(w, CONVERT) if FLOAT8 else w.to(tl.float32)


@triton.jit
def _inputs(
    x: tl.tensor, k: tl.tensor, DIM: tl.constexpr, FLOAT8: tl.constexpr, CONVERT: tl.constexpr
) -> tl.tensor:
    h = tl.load(x + k, mask=k < DIM, other=0.0).to(tl.float32)
    if FLOAT8 and not CONVERT:
        h *= HALF
    return h[None, :]


@triton.jit
def _one_row(
    x: tl.tensor,
    weight: tl.tensor,
    scales: tl.tensor,
    y: tl.tensor,
    other: tl.tensor,
    other_scales: tl.tensor,
    bias: tl.tensor,
    out: tl.tensor,
    OUT_DIM: tl.constexpr,
    X_DIM: tl.constexpr,
    Y_DIM: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    FLOAT8: tl.constexpr,
    CONVERT: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    EARLY: tl.constexpr,
) -> None:
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    inside = n < OUT_DIM
    w = _columns(weight, n, k, OUT_DIM, X_DIM)
    if HAS_BIAS:
        start = tl.load(bias + n, mask=inside, other=0.0).to(tl.float32)
    if FLOAT8:
        scale = tl.load(scales + n, mask=inside, other=1.0)
        if Y_DIM > 0:
            other_scale = tl.load(other_scales + n, mask=inside, other=1.0)
    wait(EARLY)
    total = tl.zeros((BLOCK_N, BLOCK_K), tl.float32)
    # Each turn of these loops asks for the columns of the next before it uses its own.
    for at in tl.static_range(0, X_DIM, BLOCK_K):
        h = _inputs(x, at + k, X_DIM, FLOAT8, CONVERT)
        if at + BLOCK_K < X_DIM:
            following = _columns(weight, n, at + BLOCK_K + k, OUT_DIM, X_DIM)
        elif Y_DIM > 0:
            following = _columns(other, n, k, OUT_DIM, Y_DIM)
        else:
            following = w
        total += h * _wide(w, FLOAT8, CONVERT)
        w = following
    if FLOAT8 and Y_DIM > 0:
        total *= (scale / other_scale)[:, None]
        scale = other_scale
    for at in tl.static_range(0, Y_DIM, BLOCK_K):
        h = _inputs(y, at + k, Y_DIM, FLOAT8, CONVERT)
        following = _columns(other, n, at + BLOCK_K + k, OUT_DIM, Y_DIM) if at + BLOCK_K < Y_DIM else w
        total += h * _wide(w, FLOAT8, CONVERT)
        w = following
    result = tl.sum(total, axis=1)
    if FLOAT8:
        result *= scale if CONVERT else scale * HALF
    if HAS_BIAS:
        result += start
    tl.store(out + n, result.to(out.dtype.element_ty), mask=inside)


def one_row_product(
    x: Tensor, weight: Tensor, y: Tensor, other: Tensor, bias: Tensor, early: bool, cut: Cut | None = None
) -> Tensor:
    """x and y: [1, in_dim], of which y may have no columns; weight and other: [out_dim, in_dim]."""
    cut = cut or (NARROW if len(weight) <= NARROW_DIM else WIDE)
    return _launch(x, weight, weight, y, other, other, bias, early, cut, False, False)


def one_row_float8(
    x: Tensor,
    w: FewBits,
    y: Tensor | None,
    other: FewBits | None,
    bias: Tensor | None,
    early: bool,
    cut: Cut | None = None,
    convert: bool | None = None,
) -> Tensor:
    """The same for float8, where y may be None. `convert`: by instruction; None: where there is one."""
    convert = converts(x.device) if convert is None else convert
    cut = cut or (NARROW_8 if w.out_dim <= NARROW_DIM else WIDE_8)
    y, other = (x[:, :0], w) if y is None or other is None else (y, other)
    values, others = (one.values.view(torch.uint8) for one in (w, other))
    return _launch(x, values, w.scales, y, others, other.scales, bias, early, cut, True, convert)


def _launch(
    x: Tensor,
    weight: Tensor,
    scales: Tensor,
    y: Tensor,
    other: Tensor,
    other_scales: Tensor,
    bias: Tensor | None,
    early: bool,
    cut: Cut,
    float8: bool,
    convert: bool,
) -> Tensor:
    out_dim = len(weight)
    cut = fitting(cut, max(x.shape[1], y.shape[1]))
    out = torch.empty((1, out_dim), dtype=x.dtype, device=x.device)
    _one_row[(triton.cdiv(out_dim, cut.outputs),)](
        x,
        weight,
        scales,
        y,
        other,
        other_scales,
        x if bias is None else bias,
        out,
        OUT_DIM=out_dim,
        X_DIM=x.shape[1],
        Y_DIM=y.shape[1],
        HAS_BIAS=bias is not None,
        FLOAT8=float8,
        CONVERT=convert,
        BLOCK_N=cut.outputs,
        BLOCK_K=cut.depth,
        num_warps=cut.warps,
        **launch_options(early),
    )
    return out


@triton.jit
def _one_token_experts(
    x: tl.tensor,
    ids: tl.tensor,
    matrices: tl.tensor,
    scales: tl.tensor,
    out: tl.tensor,
    IN_DIM: tl.constexpr,
    OUT_DIM: tl.constexpr,
    GATED: tl.constexpr,
    FLOAT8: tl.constexpr,
    CONVERT: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    EARLY: tl.constexpr,
) -> None:
    """Some columns of the output of one of the token's experts. GATED as in `expert_kernels`."""
    slot = tl.program_id(1)
    expert = tl.load(ids + slot).to(tl.int64)
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    inside = n < OUT_DIM
    first_row = expert * (2 * OUT_DIM if GATED else OUT_DIM)
    matrix = matrices + first_row * IN_DIM
    gates = matrix + OUT_DIM * IN_DIM
    w = _columns(matrix, n, k, OUT_DIM, IN_DIM)
    if GATED:
        g = _columns(gates, n, k, OUT_DIM, IN_DIM)
    if FLOAT8:
        scale = tl.load(scales + first_row + n, mask=inside, other=0.0)
        if GATED:
            gate_scale = tl.load(scales + first_row + OUT_DIM + n, mask=inside, other=0.0)
    wait(EARLY)
    source = x if GATED else x + slot * IN_DIM
    value = tl.zeros((BLOCK_N, BLOCK_K), tl.float32)
    gate = tl.zeros((BLOCK_N, BLOCK_K), tl.float32)
    for at in tl.static_range(0, IN_DIM, BLOCK_K):
        h = _inputs(source, at + k, IN_DIM, FLOAT8, CONVERT)
        value += h * _wide(w, FLOAT8, CONVERT)
        if GATED:
            gate += h * _wide(g, FLOAT8, CONVERT)
        if at + BLOCK_K < IN_DIM:
            w = _columns(matrix, n, at + BLOCK_K + k, OUT_DIM, IN_DIM)
            if GATED:
                g = _columns(gates, n, at + BLOCK_K + k, OUT_DIM, IN_DIM)
    result = tl.sum(value, axis=1)
    if FLOAT8:
        result *= scale if CONVERT else scale * HALF
    if GATED:
        gates_sum = tl.sum(gate, axis=1)
        if FLOAT8:
            gates_sum *= gate_scale if CONVERT else gate_scale * HALF
        result = gelu(result) * (gates_sum + 1.0)
    tl.store(out + slot * OUT_DIM + n, result.to(out.dtype.element_ty), mask=inside)


def one_token_experts(
    h: Tensor,
    ids: Tensor,
    fc1: Tensor | FewBits,
    fc2: Tensor | FewBits,
    early: bool,
    first: Cut | None = None,
    second: Cut | None = None,
    convert: bool | None = None,
) -> Tensor:
    """As `expert_kernels.few_tokens_experts`; of few bits only float8. With `early`, what made `ids` is not
    the launch before this."""
    float8 = isinstance(fc1, FewBits)
    convert = converts(h.device) if convert is None else convert
    first = first or (FIRST_OF_EXPERT_8 if float8 else FIRST_OF_EXPERT)
    second = second or (SECOND_OF_EXPERT_8 if float8 else SECOND_OF_EXPERT)
    top, dim, inner_dim = ids.shape[1], h.shape[1], fc2.shape[-1]
    inner = torch.empty((top, inner_dim), dtype=h.dtype, device=h.device)
    out = torch.empty((top, dim), dtype=torch.float32, device=h.device)
    for x, w, y, cut in ((h, fc1, inner, first), (inner, fc2, out, second)):
        cut = fitting(cut, x.shape[1])
        matrices, scales = (w.values.view(torch.uint8), w.scales) if isinstance(w, FewBits) else (w, w)
        _one_token_experts[(triton.cdiv(y.shape[1], cut.outputs), top)](
            x,
            ids,
            matrices,
            scales,
            y,
            IN_DIM=x.shape[1],
            OUT_DIM=y.shape[1],
            GATED=y is inner,
            FLOAT8=float8,
            CONVERT=float8 and convert,
            BLOCK_N=cut.outputs,
            BLOCK_K=cut.depth,
            num_warps=cut.warps,
            **launch_options(early),
        )
    return out
