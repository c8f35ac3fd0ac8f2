"""The products of mixtures of experts, for few tokens and for many.

A pair is a token and one of its experts: pair = token * experts_per_token + rank.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from kestrel_core.moondream.lora import Target
from kestrel_core.moondream.ops.expert_lora_kernels import PairAdapters, add_pairs, no_arguments
from kestrel_core.moondream.ops.plain import grouped_experts, grouped_product, sort_pairs
from kestrel_core.moondream.ops.protocol import Cut, Pairs, StepAdapters
from kestrel_core.moondream.ops.routing_kernels import geglu, gelu, invert

FEW_TOKENS = 64  # up to here a program finds the tokens of its expert itself; beyond, pairs are sorted first
TILED_TOKENS = 2048  # up to here our tiles are used, which copy nothing; beyond, torch's products are faster
ADAPTED_TILED_TOKENS = 2048  # the same for tokens with adapters, which torch's products know nothing of
TILES = Cut(64, 64, 4, 3, rows=64), Cut(128, 64, 4, 3, rows=64)  # of the first product and the second
WIDE_TILES = Cut(64, 64, 4, 2, rows=32), Cut(128, 64, 4, 2, rows=32)  # of float32
FIRST: Target = "expert_fc1"
SECOND: Target = "expert_fc2"


@triton.jit
def _product(
    x: tl.tensor,
    rows: tl.tensor,
    valid: tl.tensor,
    matrix: tl.tensor,
    n: tl.tensor,
    low: tl.tensor,
    out_rows: tl.tensor,
    adapters: tl.tensor,
    low_ranks: tl.tensor,
    low_matrix: tl.tensor,
    adapter_stride: tl.tensor,
    IN_DIM: tl.constexpr,
    OUT_DIM: tl.constexpr,
    GATED: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    MAX_RANK: tl.constexpr,
    TARGET: tl.constexpr,
    NUM_TARGETS: tl.constexpr,
) -> tl.tensor:
    """These rows of x times columns `n` of an expert's output.

    GATED: its matrix has twice OUT_DIM rows, activations and then gates. MAX_RANK: that of adapters, or 0.
    """
    k = tl.arange(0, BLOCK_K)
    in_matrix = n[:, None] < OUT_DIM
    inputs = x + rows[:, None] * IN_DIM + k[None, :]
    weights = matrix + n[:, None] * IN_DIM + k[None, :]
    value = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    gate = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for at in range(0, IN_DIM, BLOCK_K):
        in_row = (at + k)[None, :] < IN_DIM
        h = tl.load(inputs + at, mask=valid[:, None] & in_row, other=0.0)
        w = tl.load(weights + at, mask=in_matrix & in_row, other=0.0)
        value = tl.dot(h, tl.trans(w), value, input_precision="ieee")
        if GATED:
            g = tl.load(weights + at + OUT_DIM * IN_DIM, mask=in_matrix & in_row, other=0.0)
            gate = tl.dot(h, tl.trans(g), gate, input_precision="ieee")
    if MAX_RANK > 0:
        rank = tl.load(low_ranks + adapters * NUM_TARGETS + TARGET, mask=valid, other=0)
        inside = n < OUT_DIM
        value = add_pairs(
            value,
            low,
            out_rows,
            adapters,
            rank,
            low_matrix,
            adapter_stride,
            n,
            inside,
            MAX_RANK,
            BLOCK_M,
            16,
        )
        if GATED:
            gate = add_pairs(
                gate,
                low,
                out_rows,
                adapters,
                rank,
                low_matrix + OUT_DIM * MAX_RANK,
                adapter_stride,
                n,
                inside,
                MAX_RANK,
                BLOCK_M,
                16,
            )
    if GATED:
        value = gelu(value) * (gate + 1.0)
    return value


@triton.jit
def _experts(
    x: tl.tensor,
    ids: tl.tensor,
    matrices: tl.tensor,
    out: tl.tensor,
    num_tokens: tl.tensor,
    low: tl.tensor,
    low_matrices: tl.tensor,
    of_token: tl.tensor,
    low_ranks: tl.tensor,
    adapter_stride: tl.tensor,
    MAX_RANK: tl.constexpr,
    TARGET: tl.constexpr,
    NUM_TARGETS: tl.constexpr,
    TOP: tl.constexpr,
    IN_DIM: tl.constexpr,
    OUT_DIM: tl.constexpr,
    GATED: tl.constexpr,
    ONE_TOKEN: tl.constexpr,
    BLOCK_T: tl.constexpr,
    BLOCK_TOP: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
) -> None:
    """Some columns of one expert's output, for all tokens that chose it. Its weights are read at most once.

    GATED: x has a row for each token. Otherwise it has a row for each pair, as `out` has in both cases.
    """
    slot = tl.program_id(0)
    expert = (tl.load(ids + slot) if ONE_TOKEN else slot).to(tl.int64)
    tokens = tl.arange(0, BLOCK_T)
    ranks = tl.arange(0, BLOCK_TOP)
    known = (tokens[:, None] < num_tokens) & (ranks[None, :] < TOP)
    chosen = tl.load(ids + tokens[:, None] * TOP + ranks[None, :], mask=known, other=-1) == expert
    rank = tl.max(tl.where(chosen, ranks[None, :], -1), axis=1)
    hit = (rank >= 0).to(tl.int32)
    count = tl.sum(hit, axis=0)
    before = tl.cumsum(hit, axis=0) - hit
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    matrix = matrices + expert * ((2 * OUT_DIM if GATED else OUT_DIM) * IN_DIM)
    for start in range(0, count, BLOCK_M):
        m = start + tl.arange(0, BLOCK_M)
        taken = (before[:, None] == m[None, :]) & (hit[:, None] > 0)
        pair = tl.sum(tl.where(taken, (tokens * TOP + rank)[:, None], 0), axis=0)
        source = pair // TOP if GATED else pair
        valid = m < count
        adapters = tl.load(of_token + pair // TOP, mask=valid, other=0).to(tl.int64) if MAX_RANK > 0 else pair
        value = _product(
            x,
            source,
            valid,
            matrix,
            n,
            low,
            pair,
            adapters,
            low_ranks,
            low_matrices + expert * ((2 * OUT_DIM if GATED else OUT_DIM) * MAX_RANK),
            adapter_stride,
            IN_DIM,
            OUT_DIM,
            GATED,
            BLOCK_M,
            BLOCK_N,
            BLOCK_K,
            MAX_RANK,
            TARGET,
            NUM_TARGETS,
        )
        tl.store(
            out + pair[:, None] * OUT_DIM + n[None, :],
            value.to(out.dtype.element_ty),
            mask=valid[:, None] & (n[None, :] < OUT_DIM),
        )


def experts(
    h: Tensor,
    ids: Tensor,
    weights: Tensor,
    fc1: Tensor,
    fc2: Tensor,
    adapters: StepAdapters | None = None,
) -> Pairs:
    if len(h) <= FEW_TOKENS:
        pairs = PairAdapters(adapters, ids, None) if adapters is not None else None
        return Pairs(few_tokens_experts(h, ids, fc1, fc2, pairs), weights, None)
    most = TILED_TOKENS if adapters is None else ADAPTED_TILED_TOKENS
    tiled = len(h) <= most or h.dtype != torch.bfloat16
    if adapters is None and not tiled:
        return grouped_experts(h, ids, weights, fc1, fc2, geglu, invert)
    order, ends = sort_pairs(ids, len(fc1))
    pairs = PairAdapters(adapters, ids, order) if adapters is not None else None
    if pairs is None or tiled:
        values = tiled_experts(h, order, ends, fc1, fc2, pairs)
    else:
        values = adapted_grouped_experts(h, order, ends, fc1, fc2, pairs)
    return Pairs(values, weights, invert(order))


def few_tokens_experts(
    h: Tensor, ids: Tensor, fc1: Tensor, fc2: Tensor, adapters: PairAdapters | None
) -> Tensor:
    """Every pair's values [pairs, dim] in float32. Experts that no token chose are not read."""
    (num_tokens, dim), top = h.shape, ids.shape[1]
    num_experts, _, inner_dim = fc2.shape
    inner = torch.empty((num_tokens * top, inner_dim), dtype=h.dtype, device=h.device)
    out = torch.empty((num_tokens * top, dim), dtype=torch.float32, device=h.device)
    for x, matrices, y, gated in ((h, fc1, inner, True), (inner, fc2, out, False)):
        out_dim, target = y.shape[1], FIRST if gated else SECOND
        block_n = min(32 if gated else 64, max(16, triton.next_power_of_2(out_dim)))
        # The experts of one token are all different, so only those it chose get a program.
        slots = top if num_tokens == 1 else num_experts
        _experts[(slots, triton.cdiv(out_dim, block_n))](
            x,
            ids,
            matrices,
            y,
            num_tokens,
            TOP=top,
            IN_DIM=x.shape[1],
            OUT_DIM=out_dim,
            GATED=gated,
            ONE_TOKEN=num_tokens == 1,
            BLOCK_T=max(16, triton.next_power_of_2(num_tokens)),
            BLOCK_TOP=triton.next_power_of_2(top),
            BLOCK_M=16,
            BLOCK_N=block_n,
            BLOCK_K=min(128, max(16, triton.next_power_of_2(x.shape[1]))),
            num_warps=4,
            num_stages=4,
            **(no_arguments(x) if adapters is None else adapters.arguments(target, x)),
        )
    return out


@triton.jit
def _expert_tiles(
    x: tl.tensor,
    order: tl.tensor,
    ends: tl.tensor,
    matrices: tl.tensor,
    out: tl.tensor,
    low: tl.tensor,
    low_matrices: tl.tensor,
    of_token: tl.tensor,
    low_ranks: tl.tensor,
    adapter_stride: tl.tensor,
    MAX_RANK: tl.constexpr,
    TARGET: tl.constexpr,
    NUM_TARGETS: tl.constexpr,
    TOP: tl.constexpr,
    NUM_EXPERTS: tl.constexpr,
    IN_DIM: tl.constexpr,
    OUT_DIM: tl.constexpr,
    GATED: tl.constexpr,
    BLOCK_E: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
) -> None:
    """Some rows of one expert's pairs, and some columns of its output. There are enough programs for any
    distribution over the experts; those that are not needed find no rows.

    GATED: x has a row for each token. Otherwise it has a row for each pair, sorted like those of `out`.
    """
    tile = tl.program_id(0)
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
        source = tl.load(order + rows, mask=valid, other=0) // TOP if GATED else rows.to(tl.int64)
        n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
        matrix = matrices + expert.to(tl.int64) * ((2 * OUT_DIM if GATED else OUT_DIM) * IN_DIM)
        if MAX_RANK > 0:
            token = tl.load(order + rows, mask=valid, other=0) // TOP
            adapters = tl.load(of_token + token, mask=valid, other=0).to(tl.int64)
        else:
            adapters = source
        value = _product(
            x,
            source,
            valid,
            matrix,
            n,
            low,
            rows.to(tl.int64),
            adapters,
            low_ranks,
            low_matrices + expert.to(tl.int64) * ((2 * OUT_DIM if GATED else OUT_DIM) * MAX_RANK),
            adapter_stride,
            IN_DIM,
            OUT_DIM,
            GATED,
            BLOCK_M,
            BLOCK_N,
            BLOCK_K,
            MAX_RANK,
            TARGET,
            NUM_TARGETS,
        )
        tl.store(
            out + rows.to(tl.int64)[:, None] * OUT_DIM + n[None, :],
            value.to(out.dtype.element_ty),
            mask=valid[:, None] & (n[None, :] < OUT_DIM),
        )


def tiled_experts(
    h: Tensor,
    order: Tensor,
    ends: Tensor,
    fc1: Tensor,
    fc2: Tensor,
    adapters: PairAdapters | None,
    cuts: tuple[Cut, Cut] | None = None,
) -> Tensor:
    """Every pair's values [pairs, dim], sorted by expert as `order` is."""
    num_pairs, (num_experts, dim, inner_dim) = len(order), fc2.shape
    inner = torch.empty((num_pairs, inner_dim), dtype=h.dtype, device=h.device)
    out = torch.empty((num_pairs, dim), dtype=h.dtype, device=h.device)
    first, second = cuts or (TILES if h.dtype != torch.float32 else WIDE_TILES)
    for x, matrices, y, gated, cut in ((h, fc1, inner, True, first), (inner, fc2, out, False, second)):
        in_dim, out_dim, target = x.shape[1], y.shape[1], FIRST if gated else SECOND
        block_n = min(cut.outputs, max(16, triton.next_power_of_2(out_dim)))
        _expert_tiles[(triton.cdiv(num_pairs, cut.rows) + num_experts, triton.cdiv(out_dim, block_n))](
            x,
            order,
            ends,
            matrices,
            y,
            TOP=num_pairs // len(h),
            NUM_EXPERTS=num_experts,
            IN_DIM=in_dim,
            OUT_DIM=out_dim,
            GATED=gated,
            BLOCK_E=triton.next_power_of_2(num_experts),
            BLOCK_M=cut.rows,
            BLOCK_N=block_n,
            BLOCK_K=min(cut.depth, max(16, triton.next_power_of_2(in_dim))),
            num_warps=cut.warps,
            num_stages=cut.stages,
            **(no_arguments(x) if adapters is None else adapters.arguments(target, x)),
        )
    return out


def adapted_grouped_experts(
    h: Tensor, order: Tensor, ends: Tensor, fc1: Tensor, fc2: Tensor, adapters: PairAdapters
) -> Tensor:
    """The same with torch's products, and a pass over the result of each for the adapters."""
    u = grouped_product(h[order // (len(order) // len(h))], fc1, ends)
    inner = adapters.geglu(FIRST, h, u)
    values = grouped_product(inner, fc2, ends)
    adapters.add(SECOND, inner, values)
    return values
