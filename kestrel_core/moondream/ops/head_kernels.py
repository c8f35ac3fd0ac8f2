"""Kernels between the first matrices of a text block and attention: heads are rotated and scaled by tau.

They follow the rules in `ops.kernels`, which exports them.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from kestrel_core.moondream.ops.early_launch import LINE_BYTES, launch_options, prefetch, wait
from kestrel_core.moondream.ops.protocol import Cells, Heads, RotaryTables, Rotated, TauWeights
from kestrel_core.moondream.ops.rounding import to_float8
from kestrel_core.moondream.ops.routing_kernels import gelu

MULTIPROCESSORS = 132  # of an H100 or H200; on other devices the pieces are a little too large or too small


@triton.jit
def gelu_tanh(x: tl.tensor) -> tl.tensor:
    # 1 + tanh(z) is 2 sigmoid(2 z).
    return x * tl.sigmoid(1.5957691216057308 * (x + 0.044715 * x * x * x))


@triton.jit
def _content(row: tl.tensor, weights: tl.tensor, DIM: tl.constexpr, BLOCK: tl.constexpr) -> tl.tensor:
    """GELU of the first columns of a row, times as many weights. All are asked for at once."""
    at = tl.arange(0, BLOCK)
    w = tl.load(weights + at, mask=at < DIM, other=0.0).to(tl.float32)
    x = tl.load(row + at, mask=at < DIM, other=0.0)
    return tl.sum(gelu(x.to(tl.float32)).to(x.dtype).to(tl.float32) * w, axis=0)


@triton.jit
def _angles(
    position: tl.tensor, cos: tl.tensor, sin: tl.tensor, d: tl.tensor, HALF: tl.constexpr
) -> tuple[tl.tensor, tl.tensor]:
    c = tl.load(cos + position * HALF + d % HALF, mask=d < 2 * HALF, other=1.0)
    s = tl.load(sin + position * HALF + d % HALF, mask=d < 2 * HALF, other=0.0)
    return c, s


@triton.jit
def _rotate_heads(
    packed: tl.tensor,
    stride: tl.tensor,
    positions: tl.tensor,
    cos: tl.tensor,
    sin: tl.tensor,
    log: tl.tensor,
    partials: tl.tensor,
    matrix: tl.tensor,
    alpha: tl.tensor,
    cells: tl.tensor,
    q: tl.tensor,
    k: tl.tensor,
    v: tl.tensor,
    inner: tl.tensor,
    num_tokens: tl.tensor,
    inner_dim: tl.tensor,
    k_inverse: tl.tensor,
    v_inverse: tl.tensor,
    HEADS: tl.constexpr,
    KV_HEADS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    HALF: tl.constexpr,
    GROUP: tl.constexpr,
    SPLITS: tl.constexpr,
    TAU_DIM: tl.constexpr,
    HAS_CELLS: tl.constexpr,
    FLOAT8: tl.constexpr,
    BLOCK_D: tl.constexpr,
    CHUNK: tl.constexpr,
    LINE: tl.constexpr,
    TAU_BLOCK: tl.constexpr,
    EARLY: tl.constexpr,
) -> None:
    """SPLITS: the parts of tau's content that were computed before, or 0 where TAU_DIM says how many columns
    a program computes it from, for the one head that it has then. Both 0: no tau.
    """
    token = tl.program_id(0).to(tl.int64)
    group = tl.program_id(1)
    first = group * GROUP  # the first head, counted over q, k and v
    if EARLY and TAU_DIM > 0:
        # Programs without a tau fetch what another one needs.
        factor_row = tl.minimum(tl.where(first < HEADS, first, first - KV_HEADS), 2 * HEADS - 1)
        ahead = tl.minimum(tl.arange(0, TAU_BLOCK // LINE) * LINE, TAU_DIM - 1)
        prefetch(matrix + factor_row * TAU_DIM + ahead)
    heads = first + tl.arange(0, GROUP)
    d = tl.arange(0, BLOCK_D)
    is_v = first >= HEADS + KV_HEADS
    head = tl.minimum(tl.where(is_v, heads - HEADS - KV_HEADS, heads), HEADS - 1)  # of q or v, for its tau
    if EARLY:  # what all layers of a step share was there long before
        position = tl.load(positions + token)
        place = tl.load(cells + token).to(tl.int64) if HAS_CELLS else token
        c, s = _angles(position, cos, sin, d, HALF)
        if SPLITS + TAU_DIM > 0:
            spread = tl.load(alpha + head).to(tl.float32) * tl.load(log + position)
    wait(EARLY)
    row = packed + token * stride
    if first >= HEADS + 2 * KV_HEADS:
        at = (group - (HEADS + 2 * KV_HEADS) // GROUP) * CHUNK + tl.arange(0, CHUNK)
        u = tl.load(row + (HEADS + 2 * KV_HEADS) * HEAD_DIM + at, mask=at < inner_dim, other=0.0)
        tl.store(
            inner + token * inner_dim + at,
            gelu_tanh(u.to(tl.float32)).to(inner.dtype.element_ty),
            mask=at < inner_dim,
        )
    else:
        if not EARLY:
            position = tl.load(positions + token)
        inside = (heads[:, None] >= 0) & (d[None, :] < HEAD_DIM)
        source = row + heads[:, None] * HEAD_DIM
        x = tl.load(source + d[None, :], mask=inside, other=0.0).to(tl.float32)
        if SPLITS + TAU_DIM > 0:  # tau
            if is_v or first < HEADS:
                column = tl.where(is_v, HEADS, 0) + head
                content = tl.zeros((GROUP,), tl.float32)
                for split in range(SPLITS):
                    content += tl.load(partials + (split * num_tokens + token) * (2 * HEADS) + column)
                if TAU_DIM > 0:
                    of_head = tl.where(is_v, first - KV_HEADS, first) * TAU_DIM
                    content += _content(row, matrix + of_head, TAU_DIM, TAU_BLOCK)
                if not EARLY:
                    spread = tl.load(alpha + head).to(tl.float32) * tl.load(log + position)
                factor = 2.0 * tl.sigmoid(2.0 * content) - 1.0 + 0.5 + tl.sigmoid(spread)
            else:
                factor = tl.full((GROUP,), 1.0, tl.float32)
            x = x * factor[:, None]
        if is_v == 0:
            turning = inside & (d[None, :] < 2 * HALF)
            partner = tl.where(d < HALF, d + HALF, d - HALF)
            other = tl.load(source + partner[None, :], mask=turning, other=0.0).to(tl.float32)
            if SPLITS + TAU_DIM > 0:
                other = other * factor[:, None]
            if not EARLY:
                c, s = _angles(position, cos, sin, d, HALF)
            x = x * c[None, :] + other * tl.where(d < HALF, -s, s)[None, :]
        if first < HEADS:
            out = q + token * (HEADS * HEAD_DIM) + heads[:, None] * HEAD_DIM + d[None, :]
            tl.store(out, x.to(q.dtype.element_ty), mask=inside)
        else:
            if not EARLY:
                place = tl.load(cells + token).to(tl.int64) if HAS_CELLS else token
            kv_head = (heads - HEADS) % KV_HEADS
            offset = place * (KV_HEADS * HEAD_DIM) + kv_head[:, None] * HEAD_DIM + d[None, :]
            kept = x.to(q.dtype.element_ty)
            if FLOAT8:
                kept = to_float8(
                    kept.to(tl.float32), tl.where(is_v, v_inverse, k_inverse), k.dtype.element_ty
                )
            if is_v:
                tl.store(v + offset, kept, mask=inside)
            else:
                tl.store(k + offset, kept, mask=inside)


def rotate(
    packed: Tensor,
    positions: Tensor,
    tables: RotaryTables,
    heads: Heads,
    tau: TauWeights | None,
    kv: Cells | None,
    inner_dim: int,
    tau_inside: bool = False,
    early: bool = False,
) -> Rotated:
    """`tau_inside`: each head's program computes the content part of its tau, which few tokens are best
    served with. Without, it is a product of its own before, as for many.
    """
    num_tokens, (num_heads, num_kv_heads, head_dim) = len(packed), heads
    empty = packed.new_empty
    q = empty((num_tokens, num_heads, head_dim))
    new = (num_tokens, num_kv_heads, head_dim)
    k, v, cells, k_scale, v_scale = kv or (*empty((2, *new)), positions, 1.0, 1.0)
    inner = empty((num_tokens, inner_dim))
    inside, before = (tau, None) if tau_inside else (None, tau)
    partials = tau_content(packed, before.matrix) if before is not None else packed
    sizes = (1,) if inside is not None else (8, 4, 2, 1)
    group = next(size for size in sizes if num_heads % size == num_kv_heads % size == 0)
    chunk, line = 1024, LINE_BYTES // packed.element_size()
    tau_dim = 0 if inside is None else inside.matrix.shape[1]
    groups = (num_heads + 2 * num_kv_heads) // group + triton.cdiv(inner_dim, chunk)
    _rotate_heads[(num_tokens, groups)](
        packed,
        packed.stride(0),
        positions,
        *tables,
        partials,
        packed if inside is None else inside.matrix,
        packed if tau is None else tau.alpha,
        cells,
        q,
        k,
        v,
        inner,
        num_tokens,
        inner_dim,
        1.0 / k_scale,
        1.0 / v_scale,
        HEADS=num_heads,
        KV_HEADS=num_kv_heads,
        HEAD_DIM=head_dim,
        HALF=tables.cos.shape[1],
        GROUP=group,
        SPLITS=0 if before is None else len(partials),
        TAU_DIM=tau_dim,
        HAS_CELLS=kv is not None,
        FLOAT8=k.dtype == torch.float8_e4m3fn,
        BLOCK_D=triton.next_power_of_2(head_dim),
        CHUNK=chunk,
        LINE=line,
        TAU_BLOCK=max(line, triton.next_power_of_2(tau_dim)) if tau_dim else line,
        num_warps=4 if inside is None else 8,
        **launch_options(early),
    )
    return Rotated(q, k, v, inner)


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
    few = (
        num_tokens <= 256 or packed.dtype == torch.float32
    )  # a larger tile of float32 would not fit the registers
    block_m, block_k = 16 if few else 64, 128
    # The sum is split into pieces, two for each multiprocessor.
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
