"""Kernels of our own, in the kernel language that comes with torch for CUDA: all of `ops.protocol.Fused`.

`ops.plain` says what each computes. Sums and functions are taken in float32 and rounded once, when they are
stored. Nothing here waits for the device or lets a shape depend on its data, so all of it can be captured in
a graph. The first call of a kernel compiles it, so it has to come before the capture.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from kestrel_core.moondream.ops.early_launch import LINE_BYTES, launch_options, prefetch, wait
from kestrel_core.moondream.ops.expert_kernels import experts as experts
from kestrel_core.moondream.ops.float8_kernels import round_float8 as round_float8
from kestrel_core.moondream.ops.head_kernels import gelu_tanh
from kestrel_core.moondream.ops.head_kernels import rotate as rotate
from kestrel_core.moondream.ops.lora_kernels import expand as expand
from kestrel_core.moondream.ops.lora_kernels import shrink as shrink
from kestrel_core.moondream.ops.plain import linear as plain_linear
from kestrel_core.moondream.ops.plain import linear_sum as plain_linear_sum
from kestrel_core.moondream.ops.protocol import FEW_ROWS, Norm, Pairs, Scaled
from kestrel_core.moondream.ops.rounding import to_float8
from kestrel_core.moondream.ops.routing_kernels import route as route

name = "ours"
early = False

FLOAT8_MAX = tl.constexpr(448.0)


@triton.jit
def _store_float8(
    x: tl.tensor,
    inside: tl.tensor,
    row: tl.tensor,
    at: tl.tensor,
    out: tl.tensor,
    scales: tl.tensor,
    dim: tl.tensor,
) -> None:
    """Store one row, divided by the scale that makes its largest number the largest of float8."""
    scale = tl.maximum(tl.max(tl.where(inside, tl.abs(x), 0.0), axis=0), 1e-12) / FLOAT8_MAX
    small = tl.minimum(tl.maximum(x / scale, -FLOAT8_MAX), FLOAT8_MAX)
    tl.store(out + row * dim + at, small.to(out.dtype.element_ty), mask=inside)
    tl.store(scales + row, scale)


# x + y + the weighted pairs of each token, then LayerNorm. There is one program for each row.


@triton.jit
def _add_norm(
    x: tl.tensor,
    y: tl.tensor,
    pairs: tl.tensor,
    weights: tl.tensor,
    rows: tl.tensor,
    gain: tl.tensor,
    shift: tl.tensor,
    total: tl.tensor,
    normed: tl.tensor,
    scales: tl.tensor,
    rounded8: tl.tensor,
    inverse: tl.tensor,
    dim: tl.tensor,
    eps: tl.tensor,
    HAS_Y: tl.constexpr,
    TOP: tl.constexpr,
    HAS_ROWS: tl.constexpr,
    NORM: tl.constexpr,
    FLOAT8: tl.constexpr,
    FIXED: tl.constexpr,
    KEEP: tl.constexpr,
    BLOCK: tl.constexpr,
    BLOCK_TOP: tl.constexpr,
    FEW: tl.constexpr,
    EARLY: tl.constexpr,
) -> None:
    """FEW: of few rows, where nothing hides how long memory takes, so all is asked for at once."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    inside = at < dim
    if FEW and NORM:
        weight_row = tl.load(gain + at, mask=inside, other=0.0).to(tl.float32)
        bias_row = tl.load(shift + at, mask=inside, other=0.0).to(tl.float32)
    wait(EARLY)
    value = tl.load(x + row * dim + at, mask=inside, other=0.0).to(tl.float32)
    if HAS_Y:
        value += tl.load(y + row * dim + at, mask=inside, other=0.0).to(tl.float32)
    if FEW and TOP > 0:
        ranks = tl.arange(0, BLOCK_TOP)
        there = ranks < TOP
        pair = row * TOP + ranks
        source = tl.load(rows + pair, mask=there, other=0).to(tl.int64) if HAS_ROWS else pair
        weight = tl.load(weights + pair, mask=there, other=0.0).to(tl.float32)
        of_pairs = pairs + source[:, None] * dim + at[None, :]
        parts = tl.load(of_pairs, mask=there[:, None] & inside[None, :], other=0.0).to(tl.float32)
        value += tl.sum(weight[:, None] * parts, axis=0)
    else:
        for rank in tl.static_range(TOP):
            pair = row * TOP + rank
            source = tl.load(rows + pair).to(tl.int64) if HAS_ROWS else pair
            weight = tl.load(weights + pair).to(tl.float32)
            value += weight * tl.load(pairs + source * dim + at, mask=inside, other=0.0).to(tl.float32)
    if HAS_Y or TOP > 0:
        rounded = value.to(total.dtype.element_ty)
        tl.store(total + row * dim + at, rounded, mask=inside)
        value = rounded.to(tl.float32)  # what is stored is normalised, not what was summed
    if NORM:
        mean = tl.sum(value, axis=0) / dim
        centred = tl.where(inside, value - mean, 0.0)
        deviation = tl.sum(centred * centred, axis=0) / dim
        if not FEW:
            weight_row = tl.load(gain + at, mask=inside, other=0.0).to(tl.float32)
            bias_row = tl.load(shift + at, mask=inside, other=0.0).to(tl.float32)
        out = centred * tl.rsqrt(deviation + eps) * weight_row + bias_row
        if FLOAT8:
            _store_float8(out, inside, row, at, normed, scales, dim)
        elif KEEP:
            tl.store(normed + row * dim + at, out.to(normed.dtype.element_ty), mask=inside)
        if FIXED:
            small = to_float8(out, inverse, rounded8.dtype.element_ty)
            tl.store(rounded8 + row * dim + at, small, mask=inside)


def add_norm(
    x: Tensor,
    y: Tensor | None,
    pairs: Pairs | None,
    norm: Norm | None,
    few: bool = False,
    early: bool = False,
) -> tuple[Tensor, Tensor]:
    """`few`: made for few rows. `early`, here and below: as `ops.early_launch` says."""
    total, normed, _, _ = _launch_add_norm(x, y, pairs, norm, x.dtype, few=few, early=early)
    return total, normed


def add_norm_float8(x: Tensor, y: Tensor | None, norm: Norm) -> tuple[Tensor, Scaled]:
    total, normed, scales, _ = _launch_add_norm(x, y, None, norm, torch.float8_e4m3fn)
    return total, Scaled(normed, scales)


def add_norm_fixed(
    x: Tensor, y: Tensor | None, pairs: Pairs | None, norm: Norm, scale: float, keep: bool
) -> tuple[Tensor, Tensor | None, Tensor]:
    total, normed, _, rounded = _launch_add_norm(x, y, pairs, norm, x.dtype, scale, keep)
    return total, normed if keep else None, rounded


def _launch_add_norm(
    x: Tensor,
    y: Tensor | None,
    pairs: Pairs | None,
    norm: Norm | None,
    dtype: torch.dtype,
    fixed: float | None = None,
    keep: bool = True,
    few: bool = False,
    early: bool = False,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """With a `fixed` scale the norm is rounded to float8 by it, and without `keep` stored as that alone."""
    (num_rows, dim), float8 = x.shape, dtype != x.dtype
    total = x if y is None and pairs is None else torch.empty_like(x)
    normed = torch.empty_like(x, dtype=dtype) if norm is not None and keep else total
    rounded = normed if fixed is None else torch.empty_like(x, dtype=torch.float8_e4m3fn)
    scales = torch.empty(num_rows if float8 else 0, dtype=torch.float32, device=x.device)
    values, weights, rows = pairs if pairs is not None else (x, x, None)
    gain, shift, eps = norm if norm is not None else (x, x, 0.0)
    top = 0 if pairs is None else weights.shape[1]
    _add_norm[(num_rows,)](
        x,
        x if y is None else y,
        values,
        weights,
        x if rows is None else rows,
        gain,
        shift,
        total,
        normed,
        scales,
        rounded,
        1.0 / (fixed or 1.0),
        dim,
        eps,
        HAS_Y=y is not None,
        TOP=top,
        HAS_ROWS=rows is not None,
        NORM=norm is not None,
        FLOAT8=float8,
        FIXED=fixed is not None,
        KEEP=keep,
        BLOCK=triton.next_power_of_2(dim),
        BLOCK_TOP=triton.next_power_of_2(max(top, 1)),
        FEW=few,
        num_warps=16 if few else 8 if num_rows <= 1024 else 4,  # with few rows, each should be done soon
        # Told of no limit, the compiler takes so few registers that loads wait for each other.
        **({"maxnreg": 64} if few else {}),
        **launch_options(early),
    )
    return total, normed, scales, rounded


# Products of few rows: every program reads its part of the weights once, with many loads at a time.


@triton.jit
def _few_rows(
    x: tl.tensor,
    x_stride: tl.tensor,
    weight: tl.tensor,
    y: tl.tensor,
    y_stride: tl.tensor,
    other: tl.tensor,
    bias: tl.tensor,
    out: tl.tensor,
    num_rows: tl.tensor,
    OUT_DIM: tl.constexpr,
    X_DIM: tl.constexpr,
    Y_DIM: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    LINE: tl.constexpr,
    EARLY: tl.constexpr,
) -> None:
    m = tl.arange(0, BLOCK_M)
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    if EARLY:  # what the first turns of the loop read
        first = tl.minimum(tl.arange(0, 4 * BLOCK_K // LINE) * LINE, X_DIM - 1)
        prefetch(weight + tl.minimum(n, OUT_DIM - 1)[:, None] * X_DIM + first[None, :])
    wait(EARLY)
    rows, columns = m[:, None] < num_rows, n[:, None] < OUT_DIM
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for at in range(0, X_DIM, BLOCK_K):
        inside = (at + k)[None, :] < X_DIM
        h = tl.load(x + m[:, None] * x_stride + at + k[None, :], mask=rows & inside, other=0.0)
        w = tl.load(weight + n[:, None] * X_DIM + at + k[None, :], mask=columns & inside, other=0.0)
        total = tl.dot(h, tl.trans(w), total, input_precision="ieee")
    for at in range(0, Y_DIM, BLOCK_K):
        inside = (at + k)[None, :] < Y_DIM
        h = tl.load(y + m[:, None] * y_stride + at + k[None, :], mask=rows & inside, other=0.0)
        w = tl.load(other + n[:, None] * Y_DIM + at + k[None, :], mask=columns & inside, other=0.0)
        total = tl.dot(h, tl.trans(w), total, input_precision="ieee")
    total += tl.load(bias + n, mask=n < OUT_DIM, other=0.0).to(tl.float32)[None, :]
    tl.store(
        out + m[:, None] * OUT_DIM + n[None, :],
        total.to(out.dtype.element_ty),
        mask=rows & (n[None, :] < OUT_DIM),
    )


def linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    if len(x) > FEW_ROWS:
        return plain_linear(x, weight, bias)
    return few_rows_product(x, weight, x[:, :0], weight[:, :0], bias)


def linear_sum(x: Tensor, weight: Tensor, y: Tensor, other: Tensor, bias: Tensor) -> Tensor:
    if len(x) > FEW_ROWS:
        return plain_linear_sum(x, weight, y, other, bias)
    return few_rows_product(x, weight, y, other, bias)


def few_rows_product(
    x: Tensor, weight: Tensor, y: Tensor, other: Tensor, bias: Tensor, early: bool = False
) -> Tensor:
    out_dim = len(weight)
    out = torch.empty((len(x), out_dim), dtype=x.dtype, device=x.device)
    narrow = out_dim <= 4096  # small pieces, since larger ones would be fewer than there are multiprocessors
    block_n, block_k = (16, 256) if narrow else (32, 128)
    _few_rows[(triton.cdiv(out_dim, block_n),)](
        x,
        x.stride(0),
        weight,
        y,
        y.stride(0),
        other,
        bias,
        out,
        len(x),
        OUT_DIM=out_dim,
        X_DIM=x.shape[1],
        Y_DIM=y.shape[1],
        BLOCK_M=16,
        BLOCK_N=block_n,
        BLOCK_K=block_k,
        LINE=LINE_BYTES // x.element_size(),
        num_warps=2 if narrow else 4,  # 8 columns each; more warps would read the same shared memory again
        num_stages=5 if narrow else 4,
        **launch_options(early),
    )
    return out


# Rows to float8, optionally through GELU.


@triton.jit
def _quantise(
    x: tl.tensor,
    stride: tl.tensor,
    out: tl.tensor,
    scales: tl.tensor,
    dim: tl.tensor,
    GELU: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    inside = at < dim
    value = tl.load(x + row * stride + at, mask=inside, other=0.0).to(tl.float32)
    if GELU:
        value = gelu_tanh(value)
    _store_float8(value, inside, row, at, out, scales, dim)


def quantise(x: Tensor, gelu: bool) -> Scaled:
    num_rows, dim = x.shape
    out = torch.empty((num_rows, dim), dtype=torch.float8_e4m3fn, device=x.device)
    scales = torch.empty(num_rows, dtype=torch.float32, device=x.device)
    block = triton.next_power_of_2(dim)
    _quantise[(num_rows,)](
        x, x.stride(0), out, scales, dim, GELU=gelu, BLOCK=block, num_warps=max(4, block // 1024)
    )
    return Scaled(out, scales)
