"""Products of one row: nothing but reading the weights, straight into registers, as fast as they come.

Tiles of 16 rows pass the weights through shared memory for the matrix units, of which one row uses a
sixteenth. Here every program has a few rows of the matrix. The first of their columns are on their way before
the kernels in front have ended, where early launches are on (`ops.early_launch`).
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from kestrel_core.moondream.ops.early_launch import launch_options, wait
from kestrel_core.moondream.ops.protocol import Cut
from kestrel_core.moondream.ops.routing_kernels import gelu

# The fastest of those tried on an H200: docs/performance-log.md.
NARROW = Cut(4, 2048, 8)  # for matrices of few rows, each of them long
WIDE = Cut(8, 1024, 4)
NARROW_DIM = 4096  # rows of a matrix up to which it is narrow
FIRST_OF_EXPERT = Cut(8, 256, 4)
SECOND_OF_EXPERT = Cut(16, 256, 4)


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
    return tl.load(places, mask=inside, other=0.0, eviction_policy="evict_first")


@triton.jit
def _one_row(
    x: tl.tensor,
    weight: tl.tensor,
    y: tl.tensor,
    other: tl.tensor,
    bias: tl.tensor,
    out: tl.tensor,
    OUT_DIM: tl.constexpr,
    X_DIM: tl.constexpr,
    Y_DIM: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    EARLY: tl.constexpr,
) -> None:
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    w = _columns(weight, n, k, OUT_DIM, X_DIM)
    start = tl.load(bias + n, mask=n < OUT_DIM, other=0.0).to(tl.float32)
    wait(EARLY)
    total = tl.zeros((BLOCK_N, BLOCK_K), tl.float32)
    # Each turn of these loops asks for the columns of the next before it uses its own.
    for at in tl.static_range(0, X_DIM, BLOCK_K):
        h = tl.load(x + at + k, mask=at + k < X_DIM, other=0.0).to(tl.float32)
        if at + BLOCK_K < X_DIM:
            following = _columns(weight, n, at + BLOCK_K + k, OUT_DIM, X_DIM)
        elif Y_DIM > 0:
            following = _columns(other, n, k, OUT_DIM, Y_DIM)
        else:
            following = w
        total += h[None, :] * w.to(tl.float32)
        w = following
    for at in tl.static_range(0, Y_DIM, BLOCK_K):
        h = tl.load(y + at + k, mask=at + k < Y_DIM, other=0.0).to(tl.float32)
        following = _columns(other, n, at + BLOCK_K + k, OUT_DIM, Y_DIM) if at + BLOCK_K < Y_DIM else w
        total += h[None, :] * w.to(tl.float32)
        w = following
    tl.store(out + n, (tl.sum(total, axis=1) + start).to(out.dtype.element_ty), mask=n < OUT_DIM)


def one_row_product(
    x: Tensor, weight: Tensor, y: Tensor, other: Tensor, bias: Tensor, early: bool, cut: Cut | None = None
) -> Tensor:
    """x and y: [1, in_dim], of which y may have no columns; weight and other: [out_dim, in_dim]."""
    out_dim = len(weight)
    cut = fitting(cut or (NARROW if out_dim <= NARROW_DIM else WIDE), max(x.shape[1], y.shape[1]))
    out = torch.empty((1, out_dim), dtype=x.dtype, device=x.device)
    _one_row[(triton.cdiv(out_dim, cut.outputs),)](
        x,
        weight,
        y,
        other,
        bias,
        out,
        OUT_DIM=out_dim,
        X_DIM=x.shape[1],
        Y_DIM=y.shape[1],
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
    out: tl.tensor,
    IN_DIM: tl.constexpr,
    OUT_DIM: tl.constexpr,
    GATED: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    EARLY: tl.constexpr,
) -> None:
    """Some columns of the output of one of the token's experts. GATED as in `expert_kernels`."""
    slot = tl.program_id(1)
    expert = tl.load(ids + slot).to(tl.int64)
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    matrix = matrices + expert * ((2 * OUT_DIM if GATED else OUT_DIM) * IN_DIM)
    gates = matrix + OUT_DIM * IN_DIM
    w = _columns(matrix, n, k, OUT_DIM, IN_DIM)
    if GATED:
        g = _columns(gates, n, k, OUT_DIM, IN_DIM)
    wait(EARLY)
    source = x if GATED else x + slot * IN_DIM
    value = tl.zeros((BLOCK_N, BLOCK_K), tl.float32)
    gate = tl.zeros((BLOCK_N, BLOCK_K), tl.float32)
    for at in tl.static_range(0, IN_DIM, BLOCK_K):
        h = tl.load(source + at + k, mask=at + k < IN_DIM, other=0.0).to(tl.float32)[None, :]
        value += h * w.to(tl.float32)
        if GATED:
            gate += h * g.to(tl.float32)
        if at + BLOCK_K < IN_DIM:
            w = _columns(matrix, n, at + BLOCK_K + k, OUT_DIM, IN_DIM)
            if GATED:
                g = _columns(gates, n, at + BLOCK_K + k, OUT_DIM, IN_DIM)
    result = tl.sum(value, axis=1)
    if GATED:
        result = gelu(result) * (tl.sum(gate, axis=1) + 1.0)
    tl.store(out + slot * OUT_DIM + n, result.to(out.dtype.element_ty), mask=n < OUT_DIM)


def one_token_experts(
    h: Tensor,
    ids: Tensor,
    fc1: Tensor,
    fc2: Tensor,
    early: bool,
    first: Cut = FIRST_OF_EXPERT,
    second: Cut = SECOND_OF_EXPERT,
) -> Tensor:
    """As `expert_kernels.few_tokens_experts`. With `early`, what made `ids` is not the launch before this."""
    top, (_, dim, inner_dim) = ids.shape[1], fc2.shape
    inner = torch.empty((top, inner_dim), dtype=h.dtype, device=h.device)
    out = torch.empty((top, dim), dtype=torch.float32, device=h.device)
    for x, matrices, y, cut in ((h, fc1, inner, first), (inner, fc2, out, second)):
        cut = fitting(cut, x.shape[1])
        _one_token_experts[(triton.cdiv(y.shape[1], cut.outputs), top)](
            x,
            ids,
            matrices,
            y,
            IN_DIM=x.shape[1],
            OUT_DIM=y.shape[1],
            GATED=matrices is fc1,
            BLOCK_N=cut.outputs,
            BLOCK_K=cut.depth,
            num_warps=cut.warps,
            **launch_options(early),
        )
    return out
