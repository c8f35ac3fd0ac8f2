"""Kernels of our own, in the kernel language that comes with torch for CUDA: all of `moondream.fused`.

`moondream.plain` says what each computes. Sums and functions are taken in float32 and rounded once, where
they are stored. Nothing here waits for the device or lets a shape depend on its data, so all of it can be
captured in a graph, once it has run: the first call of each kernel compiles it.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from kestrel_core.moondream.expert_kernels import experts as experts
from kestrel_core.moondream.expert_kernels import gelu
from kestrel_core.moondream.expert_kernels import route as route
from kestrel_core.moondream.fused import Cells, Heads, Norm, Pairs, Scaled, TauWeights, Turned, Turns
from kestrel_core.moondream.plain import linear as plain_linear
from kestrel_core.moondream.plain import linear_sum as plain_linear_sum

FLOAT8_MAX = tl.constexpr(448.0)
MULTIPROCESSORS = 132  # of an H100 or H200; elsewhere pieces are a little too large or small
FEW_ROWS = 16  # up to here a product is bound by the reading of its weights, and tiles of 16 rows suffice


@triton.jit
def _gelu_tanh(x: tl.tensor) -> tl.tensor:
    # 1 + tanh(z) is 2 sigmoid(2 z).
    return x * tl.sigmoid(1.5957691216057308 * (x + 0.044715 * x * x * x))


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
    """One row of numbers and the scale that brings its largest to the end of float8."""
    scale = tl.maximum(tl.max(tl.where(inside, tl.abs(x), 0.0), axis=0), 1e-12) / FLOAT8_MAX
    small = tl.minimum(tl.maximum(x / scale, -FLOAT8_MAX), FLOAT8_MAX)
    tl.store(out + row * dim + at, small.to(out.dtype.element_ty), mask=inside)
    tl.store(scales + row, scale)


# x + y + the weighted pairs of each token, then LayerNorm. A program is a row.


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
    dim: tl.tensor,
    eps: tl.tensor,
    HAS_Y: tl.constexpr,
    TOP: tl.constexpr,
    HAS_ROWS: tl.constexpr,
    NORM: tl.constexpr,
    FLOAT8: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    inside = at < dim
    value = tl.load(x + row * dim + at, mask=inside, other=0.0).to(tl.float32)
    if HAS_Y:
        value += tl.load(y + row * dim + at, mask=inside, other=0.0).to(tl.float32)
    for rank in tl.static_range(TOP):
        pair = row * TOP + rank
        source = tl.load(rows + pair).to(tl.int64) if HAS_ROWS else pair
        weight = tl.load(weights + pair).to(tl.float32)
        value += weight * tl.load(pairs + source * dim + at, mask=inside, other=0.0).to(tl.float32)
    if HAS_Y or TOP > 0:
        rounded = value.to(total.dtype.element_ty)
        tl.store(total + row * dim + at, rounded, mask=inside)
        value = rounded.to(tl.float32)  # the norm of what is stored
    if NORM:
        mean = tl.sum(value, axis=0) / dim
        centred = tl.where(inside, value - mean, 0.0)
        deviation = tl.sum(centred * centred, axis=0) / dim
        weight_row = tl.load(gain + at, mask=inside, other=0.0).to(tl.float32)
        bias_row = tl.load(shift + at, mask=inside, other=0.0).to(tl.float32)
        out = centred * tl.rsqrt(deviation + eps) * weight_row + bias_row
        if FLOAT8:
            _store_float8(out, inside, row, at, normed, scales, dim)
        else:
            tl.store(normed + row * dim + at, out.to(normed.dtype.element_ty), mask=inside)


def add_norm(x: Tensor, y: Tensor | None, pairs: Pairs | None, norm: Norm | None) -> tuple[Tensor, Tensor]:
    total, normed, _ = _launch_add_norm(x, y, pairs, norm, x.dtype)
    return total, normed


def add_norm_float8(x: Tensor, y: Tensor | None, norm: Norm) -> tuple[Tensor, Scaled]:
    total, normed, scales = _launch_add_norm(x, y, None, norm, torch.float8_e4m3fn)
    return total, Scaled(normed, scales)


def _launch_add_norm(
    x: Tensor, y: Tensor | None, pairs: Pairs | None, norm: Norm | None, dtype: torch.dtype
) -> tuple[Tensor, Tensor, Tensor]:
    (num_rows, dim), float8 = x.shape, dtype != x.dtype
    total = x if y is None and pairs is None else torch.empty_like(x)
    normed = total if norm is None else torch.empty_like(x, dtype=dtype)
    scales = torch.empty(num_rows if float8 else 0, dtype=torch.float32, device=x.device)
    values, weights, rows = pairs if pairs is not None else (x, x, None)
    gain, shift, eps = norm if norm is not None else (x, x, 0.0)
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
        dim,
        eps,
        HAS_Y=y is not None,
        TOP=0 if pairs is None else weights.shape[1],
        HAS_ROWS=rows is not None,
        NORM=norm is not None,
        FLOAT8=float8,
        BLOCK=triton.next_power_of_2(dim),
        num_warps=8 if num_rows <= 1024 else 4,  # few rows: what counts is how soon one is done
    )
    return total, normed, scales


# Products of few rows: every program reads its part of the weights once, with many loads under way.


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
) -> None:
    m = tl.arange(0, BLOCK_M)
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
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
    return _launch_few_rows(x, weight, x[:, :0], weight[:, :0], bias)


def linear_sum(x: Tensor, weight: Tensor, y: Tensor, other: Tensor, bias: Tensor) -> Tensor:
    if len(x) > FEW_ROWS:
        return plain_linear_sum(x, weight, y, other, bias)
    return _launch_few_rows(x, weight, y, other, bias)


def _launch_few_rows(x: Tensor, weight: Tensor, y: Tensor, other: Tensor, bias: Tensor) -> Tensor:
    out_dim = len(weight)
    out = torch.empty((len(x), out_dim), dtype=x.dtype, device=x.device)
    narrow = out_dim <= 4096  # small pieces, else there are fewer of them than multiprocessors
    block_n = 16 if narrow else 32
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
        BLOCK_K=256 if narrow else 128,
        num_warps=2 if narrow else 4,  # of 8 columns each: more would read the same shared memory again
        num_stages=5 if narrow else 4,
    )
    return out


# Rows to float8, maybe through GELU on the way.


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
        value = _gelu_tanh(value)
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


# From the first matrices of a text block to what attention and the second matrices take.


@triton.jit
def _turn(
    packed: tl.tensor,
    stride: tl.tensor,
    positions: tl.tensor,
    cos: tl.tensor,
    sin: tl.tensor,
    log: tl.tensor,
    partials: tl.tensor,
    alpha: tl.tensor,
    cells: tl.tensor,
    q: tl.tensor,
    k: tl.tensor,
    v: tl.tensor,
    inner: tl.tensor,
    num_tokens: tl.tensor,
    inner_dim: tl.tensor,
    HEADS: tl.constexpr,
    KV_HEADS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    HALF: tl.constexpr,
    GROUP: tl.constexpr,
    SPLITS: tl.constexpr,
    HAS_CELLS: tl.constexpr,
    BLOCK_D: tl.constexpr,
    CHUNK: tl.constexpr,
) -> None:
    token = tl.program_id(0).to(tl.int64)
    group = tl.program_id(1)
    first = group * GROUP  # head, counted through q, k and v
    row = packed + token * stride
    if first >= HEADS + 2 * KV_HEADS:
        at = (group - (HEADS + 2 * KV_HEADS) // GROUP) * CHUNK + tl.arange(0, CHUNK)
        u = tl.load(row + (HEADS + 2 * KV_HEADS) * HEAD_DIM + at, mask=at < inner_dim, other=0.0)
        tl.store(
            inner + token * inner_dim + at,
            _gelu_tanh(u.to(tl.float32)).to(inner.dtype.element_ty),
            mask=at < inner_dim,
        )
    else:
        position = tl.load(positions + token)
        heads = first + tl.arange(0, GROUP)
        d = tl.arange(0, BLOCK_D)
        inside = (heads[:, None] >= 0) & (d[None, :] < HEAD_DIM)
        source = row + heads[:, None] * HEAD_DIM
        x = tl.load(source + d[None, :], mask=inside, other=0.0).to(tl.float32)
        is_v = first >= HEADS + KV_HEADS
        if SPLITS > 0:  # tau
            if is_v or first < HEADS:
                head = tl.where(is_v, heads - HEADS - KV_HEADS, heads)
                column = tl.where(is_v, HEADS, 0) + head
                content = tl.zeros((GROUP,), tl.float32)
                for split in range(SPLITS):
                    content += tl.load(partials + (split * num_tokens + token) * (2 * HEADS) + column)
                spread = tl.load(alpha + head).to(tl.float32) * tl.load(log + position)
                factor = 2.0 * tl.sigmoid(2.0 * content) - 1.0 + 0.5 + tl.sigmoid(spread)
            else:
                factor = tl.full((GROUP,), 1.0, tl.float32)
            x = x * factor[:, None]
        if is_v == 0:
            turning = inside & (d[None, :] < 2 * HALF)
            partner = tl.where(d < HALF, d + HALF, d - HALF)
            other = tl.load(source + partner[None, :], mask=turning, other=0.0).to(tl.float32)
            if SPLITS > 0:
                other = other * factor[:, None]
            c = tl.load(cos + position * HALF + d % HALF, mask=d < 2 * HALF, other=1.0)
            s = tl.load(sin + position * HALF + d % HALF, mask=d < 2 * HALF, other=0.0)
            x = x * c[None, :] + other * tl.where(d < HALF, -s, s)[None, :]
        if first < HEADS:
            out = q + token * (HEADS * HEAD_DIM) + heads[:, None] * HEAD_DIM + d[None, :]
            tl.store(out, x.to(q.dtype.element_ty), mask=inside)
        else:
            place = tl.load(cells + token).to(tl.int64) if HAS_CELLS else token
            head = (heads - HEADS) % KV_HEADS
            offset = place * (KV_HEADS * HEAD_DIM) + head[:, None] * HEAD_DIM + d[None, :]
            if is_v:
                tl.store(v + offset, x.to(v.dtype.element_ty), mask=inside)
            else:
                tl.store(k + offset, x.to(k.dtype.element_ty), mask=inside)


def turn(
    packed: Tensor,
    positions: Tensor,
    turns: Turns,
    heads: Heads,
    tau: TauWeights | None,
    kv: Cells | None,
    inner_dim: int,
) -> Turned:
    num_tokens, (num_heads, num_kv_heads, head_dim) = len(packed), heads
    empty = packed.new_empty
    q = empty((num_tokens, num_heads, head_dim))
    k, v, cells = kv or (*empty((2, num_tokens, num_kv_heads, head_dim)), positions)
    inner = empty((num_tokens, inner_dim))
    partials = tau_content(packed, tau.matrix) if tau is not None else packed
    group = next(size for size in (8, 4, 2, 1) if num_heads % size == num_kv_heads % size == 0)
    chunk = 1024
    groups = (num_heads + 2 * num_kv_heads) // group + triton.cdiv(inner_dim, chunk)
    _turn[(num_tokens, groups)](
        packed,
        packed.stride(0),
        positions,
        *turns,
        partials,
        packed if tau is None else tau.alpha,
        cells,
        q,
        k,
        v,
        inner,
        num_tokens,
        inner_dim,
        HEADS=num_heads,
        KV_HEADS=num_kv_heads,
        HEAD_DIM=head_dim,
        HALF=turns.cos.shape[1],
        GROUP=group,
        SPLITS=0 if tau is None else len(partials),
        HAS_CELLS=kv is not None,
        BLOCK_D=triton.next_power_of_2(head_dim),
        CHUNK=chunk,
        num_warps=4,
    )
    return Turned(q, k, v, inner)


# The content part of tau: GELU of a row of q, k and v, times a narrow matrix.


@triton.jit
def _tau_content(
    packed: tl.tensor,
    stride: tl.tensor,
    matrix: tl.tensor,
    partials: tl.tensor,
    num_tokens: tl.tensor,
    DIM: tl.constexpr,
    WIDTH: tl.constexpr,
    SPAN: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
) -> None:
    rows = (tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)
    split = tl.program_id(1)
    n = tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, SPAN, BLOCK_K):
        at = split * SPAN + start + tl.arange(0, BLOCK_K)
        inside = at < DIM
        x = tl.load(
            packed + rows[:, None] * stride + at[None, :],
            mask=(rows[:, None] < num_tokens) & inside[None, :],
            other=0.0,
        )
        w = tl.load(
            matrix + n[:, None] * DIM + at[None, :], mask=(n[:, None] < WIDTH) & inside[None, :], other=0.0
        )
        content = gelu(x.to(tl.float32)).to(x.dtype)
        total = tl.dot(content, tl.trans(w), total, input_precision="ieee")
    tl.store(
        partials + (split * num_tokens + rows[:, None]) * WIDTH + n[None, :],
        total,
        mask=(rows[:, None] < num_tokens) & (n[None, :] < WIDTH),
    )


def tau_content(packed: Tensor, matrix: Tensor) -> Tensor:
    """GELU of the first columns of `packed`, times `matrix` [width, dim]: parts [splits, tokens, width]."""
    num_tokens, (width, dim) = len(packed), matrix.shape
    few = num_tokens <= 256 or packed.dtype == torch.float32  # which would not fit the registers
    block_m, block_k = 16 if few else 64, 128
    # The sum is cut into pieces, so many that all multiprocessors get two.
    piece = dim * triton.cdiv(num_tokens, block_m) // (2 * MULTIPROCESSORS)
    span = min(max(256, triton.next_power_of_2(piece)), 2048, triton.cdiv(dim, block_k) * block_k)
    splits = triton.cdiv(dim, span)
    partials = torch.empty((splits, num_tokens, width), dtype=torch.float32, device=packed.device)
    _tau_content[(triton.cdiv(num_tokens, block_m), splits)](
        packed,
        packed.stride(0),
        matrix,
        partials,
        num_tokens,
        DIM=dim,
        WIDTH=width,
        SPAN=span,
        BLOCK_M=block_m,
        BLOCK_N=max(16, triton.next_power_of_2(width)),
        BLOCK_K=block_k,
        num_warps=4,
        num_stages=3,
    )
    return partials
