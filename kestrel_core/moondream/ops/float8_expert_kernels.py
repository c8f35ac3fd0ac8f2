"""The products of experts in float8 on CUDA, for more than a few tokens. `ops.float8_experts` is plain torch.

A pair is a token and one of its experts: pair = token * experts_per_token + rank. Nothing is copied, and the
activation and its rounding are inside; torch's grouped product, which has neither, took longer on an H200.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from kestrel_core.moondream.ops.expert_kernels import FIRST, SECOND
from kestrel_core.moondream.ops.expert_lora_kernels import PairAdapters
from kestrel_core.moondream.ops.few_bits import FewBits
from kestrel_core.moondream.ops.float8_kernels import round_float8
from kestrel_core.moondream.ops.plain import sort_pairs
from kestrel_core.moondream.ops.protocol import Cut, Pairs, StepAdapters
from kestrel_core.moondream.ops.rounding import to_float8
from kestrel_core.moondream.ops.routing_kernels import gelu, invert

SMALL_TOKENS = 256  # up to here an expert has few pairs, and tiles are 64 rows high


@triton.jit
def _float8_tiles(
    x: tl.tensor,
    order: tl.tensor,
    ends: tl.tensor,
    matrices: tl.tensor,
    scales: tl.tensor,
    out: tl.tensor,
    x_scale: tl.tensor,
    inverse: tl.tensor,
    TOP: tl.constexpr,
    NUM_EXPERTS: tl.constexpr,
    IN_DIM: tl.constexpr,
    OUT_DIM: tl.constexpr,
    BY_TOKEN: tl.constexpr,
    GATED: tl.constexpr,
    BLOCK_E: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
) -> None:
    """Some rows of one expert's pairs, and some columns of its output, as `expert_kernels._expert_tiles`.

    BY_TOKEN: x has a row for each token, otherwise for each sorted pair. GATED: matrices have twice OUT_DIM
    rows, activations and then gates, and the result is float8.
    """
    tile = tl.program_id(1)
    experts = tl.arange(0, BLOCK_E)
    known = experts < NUM_EXPERTS
    stops = tl.load(ends + experts, mask=known, other=0)
    starts = tl.load(ends + experts - 1, mask=known & (experts > 0), other=0)
    tiles = tl.where(known, (stops - starts + BLOCK_M - 1) // BLOCK_M, 0)
    upto = tl.cumsum(tiles, axis=0)
    expert = tl.sum((upto <= tile).to(tl.int32), axis=0)
    if expert < NUM_EXPERTS:
        mine = experts == expert
        first = tl.sum(tl.where(mine, starts + (tile - upto + tiles) * BLOCK_M, 0), axis=0)
        stop = tl.sum(tl.where(mine, stops, 0), axis=0)
        rows = first + tl.arange(0, BLOCK_M)
        valid = rows < stop
        source = tl.load(order + rows, mask=valid, other=0) // TOP if BY_TOKEN else rows.to(tl.int64)
        n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
        k = tl.arange(0, BLOCK_K)
        in_matrix = n[:, None] < OUT_DIM
        width: tl.constexpr = 2 * OUT_DIM if GATED else OUT_DIM
        inputs = x + source[:, None] * IN_DIM + k[None, :]
        weights = matrices + expert.to(tl.int64) * (width * IN_DIM) + n[:, None] * IN_DIM + k[None, :]
        value = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        gate = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for at in range(0, IN_DIM, BLOCK_K):
            in_row = (at + k)[None, :] < IN_DIM
            h = tl.load(inputs + at, mask=valid[:, None] & in_row, other=0.0)
            w = tl.load(weights + at, mask=in_matrix & in_row, other=0.0)
            value = tl.dot(h, tl.trans(w), value)
            if GATED:
                g = tl.load(weights + at + OUT_DIM * IN_DIM, mask=in_matrix & in_row, other=0.0)
                gate = tl.dot(h, tl.trans(g), gate)
        inside = n < OUT_DIM
        of_expert = scales + expert * width + n
        value *= (tl.load(of_expert, mask=inside, other=0.0) * x_scale)[None, :]
        if GATED:
            gate *= (tl.load(of_expert + OUT_DIM, mask=inside, other=0.0) * x_scale)[None, :]
            small = to_float8(gelu(value) * (gate + 1.0), inverse, out.dtype.element_ty)
        else:
            small = value.to(out.dtype.element_ty)
        tl.store(
            out + rows.to(tl.int64)[:, None] * OUT_DIM + n[None, :],
            small,
            mask=valid[:, None] & inside[None, :],
        )


def tiled_product(
    x: Tensor,
    scale: float,
    matrices: FewBits,
    order: Tensor,
    ends: Tensor,
    num_tokens: int,
    by_token: bool,
    gated: float | None,
    dtype: torch.dtype,
    cut: Cut | None = None,
) -> Tensor:
    """Every sorted pair's row of x times its expert's matrix. `gated`: the scale of the activated result."""
    num_experts, width, in_dim = matrices.values.shape
    out_dim = width if gated is None else width // 2
    kind = dtype if gated is None else x.dtype
    out = torch.empty((len(order), out_dim), dtype=kind, device=x.device)
    cut = cut or cut_for(num_tokens, gated is not None)
    block_n = min(cut.outputs, max(16, triton.next_power_of_2(out_dim)))
    tiles = triton.cdiv(len(order), cut.rows) + num_experts
    # Columns change fastest: the programs that read the same rows of x run at the same time.
    _float8_tiles[(triton.cdiv(out_dim, block_n), tiles)](
        x,
        order,
        ends,
        matrices.values,
        matrices.scales,
        out,
        scale,
        1.0 / (gated or 1.0),
        TOP=len(order) // num_tokens,
        NUM_EXPERTS=num_experts,
        IN_DIM=in_dim,
        OUT_DIM=out_dim,
        BY_TOKEN=by_token,
        GATED=gated is not None,
        BLOCK_E=triton.next_power_of_2(num_experts),
        BLOCK_M=cut.rows,
        BLOCK_N=block_n,
        BLOCK_K=min(cut.depth, max(32, triton.next_power_of_2(in_dim))),
        num_warps=cut.warps,
        num_stages=cut.stages,
    )
    return out


def cut_for(num_tokens: int, gated: bool) -> Cut:
    if num_tokens <= SMALL_TOKENS:
        return Cut(32 if gated else 64, 128, 4, 4, rows=64)
    return Cut(128 if gated else 256, 128, 8, 3, rows=128)  # the fastest of those tried on an H200


def experts_float8(
    h: Tensor,
    h8: Tensor,
    ids: Tensor,
    weights: Tensor,
    fc1: FewBits,
    fc2: FewBits,
    h_scale: float,
    inner_scale: float,
    adapters: StepAdapters | None = None,
) -> Pairs:
    order, ends = sort_pairs(ids, len(fc1.values))
    tokens, dtype = len(h8), h.dtype
    if adapters is None:
        inner8 = tiled_product(h8, h_scale, fc1, order, ends, tokens, True, inner_scale, dtype)
        values = tiled_product(inner8, inner_scale, fc2, order, ends, tokens, False, None, dtype)
    else:  # adapters are added before the activation and to what is not rounded
        pairs = PairAdapters(adapters, ids, order)
        u = tiled_product(h8, h_scale, fc1, order, ends, tokens, True, None, dtype)
        inner = pairs.geglu(FIRST, h, u)
        inner8 = round_float8(inner, inner_scale, gelu=False)
        values = tiled_product(inner8, inner_scale, fc2, order, ends, tokens, False, None, dtype)
        pairs.add(SECOND, inner, values)
    return Pairs(values, weights, invert(order))
