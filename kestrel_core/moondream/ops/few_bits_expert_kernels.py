"""The products of mixtures of experts with weights in 8 or 4 bits. CUDA.

As `ops.expert_kernels`, whose words these are. Up to 64 tokens a program finds its expert's pairs, beyond
they are sorted. Weights are converted where they are used: unpacked they are as large as a small model.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from kestrel_core.moondream.ops.early_launch import launch_options, wait
from kestrel_core.moondream.ops.expert_kernels import FEW_TOKENS, FIRST, SECOND
from kestrel_core.moondream.ops.expert_lora_kernels import PairAdapters, add_pairs, no_arguments
from kestrel_core.moondream.ops.few_bits import FewBits
from kestrel_core.moondream.ops.few_bits_kernels import bytes_or_words, cut_for, single_or_four
from kestrel_core.moondream.ops.few_bits_product import fetch_rows, few_rows_product, many_rows_product
from kestrel_core.moondream.ops.one_row_kernels import one_token_experts
from kestrel_core.moondream.ops.plain import sort_pairs
from kestrel_core.moondream.ops.protocol import Cut, Pairs, StepAdapters
from kestrel_core.moondream.ops.routing_kernels import gelu, invert


@triton.jit
def _outputs(
    x: tl.tensor,
    rows: tl.tensor,
    valid: tl.tensor,
    expert: tl.tensor,
    values: tl.tensor,
    scales: tl.tensor,
    low: tl.tensor,
    pair_rows: tl.tensor,
    adapters: tl.tensor,
    low_ranks: tl.tensor,
    low_matrices: tl.tensor,
    adapter_stride: tl.tensor,
    out: tl.tensor,
    IN_DIM: tl.constexpr,
    OUT_DIM: tl.constexpr,
    ROW_UNITS: tl.constexpr,
    ROW_SCALES: tl.constexpr,
    INT4: tl.constexpr,
    GATED: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    PARTS: tl.constexpr,
    MAX_RANK: tl.constexpr,
    TARGET: tl.constexpr,
    NUM_TARGETS: tl.constexpr,
) -> None:
    """Some outputs of one expert for these rows of x, stored at `pair_rows`.

    GATED: the matrix has activations and then gates, OUT_DIM rows each. PARTS: 0 for many rows.
    """
    HALVES: tl.constexpr = 2 if GATED else 1
    OWN: tl.constexpr = BLOCK_N // HALVES
    row = tl.arange(0, BLOCK_N)
    n = tl.program_id(1) * OWN + tl.arange(0, OWN)
    of_row = tl.program_id(1) * OWN + row % OWN
    inside = n < OUT_DIM
    matrix = expert * (HALVES * OUT_DIM)
    of_row, known = of_row + (row // OWN) * OUT_DIM, of_row < OUT_DIM
    values += matrix * ROW_UNITS
    scales += matrix * ROW_SCALES
    if PARTS > 0:
        parts = few_rows_product(
            x,
            rows * IN_DIM,
            valid,
            values,
            scales,
            of_row,
            known,
            IN_DIM,
            INT4,
            BLOCK_M,
            BLOCK_N,
            BLOCK_K,
            PARTS,
        )
        total = tl.trans(tl.sum(parts, axis=0))  # [rows, outputs]
    else:
        total = tl.trans(
            many_rows_product(
                x,
                rows * IN_DIM,
                valid,
                values,
                scales,
                of_row,
                known,
                IN_DIM,
                INT4,
                BLOCK_M,
                BLOCK_N,
                BLOCK_K,
            )
        )
    if GATED:
        value, gate = tl.split(tl.permute(tl.reshape(total, (BLOCK_M, 2, OWN)), (0, 2, 1)))
    else:
        value, gate = total, total
    if MAX_RANK > 0:
        rank = tl.load(low_ranks + adapters * NUM_TARGETS + TARGET, mask=valid, other=0)
        own = low_matrices + matrix * MAX_RANK
        value = add_pairs(
            value, low, pair_rows, adapters, rank, own, adapter_stride, n, inside, MAX_RANK, BLOCK_M, 16
        )
        if GATED:
            own += OUT_DIM * MAX_RANK
            gate = add_pairs(
                gate, low, pair_rows, adapters, rank, own, adapter_stride, n, inside, MAX_RANK, BLOCK_M, 16
            )
    if GATED:
        value = gelu(value) * (gate + 1.0)
    tl.store(
        out + pair_rows[:, None] * OUT_DIM + n[None, :],
        value.to(out.dtype.element_ty),
        mask=valid[:, None] & inside[None, :],
    )


@triton.jit(do_not_specialize=["num_tokens"])
def _few_tokens(
    x: tl.tensor,
    ids: tl.tensor,
    values: tl.tensor,
    scales: tl.tensor,
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
    ROW_UNITS: tl.constexpr,
    ROW_SCALES: tl.constexpr,
    INT4: tl.constexpr,
    GATED: tl.constexpr,
    ONE_TOKEN: tl.constexpr,
    BLOCK_T: tl.constexpr,
    BLOCK_TOP: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    PARTS: tl.constexpr,
    EARLY: tl.constexpr,
) -> None:
    """Some outputs of one expert, for all tokens that chose it.

    GATED: x has a row for each token. Otherwise it has a row for each pair, as `out` has in both cases.
    """
    slot = tl.program_id(0)
    expert = (tl.load(ids + slot) if ONE_TOKEN else slot).to(tl.int64)
    if EARLY:
        OWN: tl.constexpr = BLOCK_N // 2 if GATED else BLOCK_N
        row = tl.arange(0, BLOCK_N)
        own = tl.minimum(tl.program_id(1) * OWN + row % OWN, OUT_DIM - 1) + (row // OWN) * OUT_DIM
        fetch_rows(values, expert * (BLOCK_N // OWN * OUT_DIM) + own, IN_DIM, INT4)
    wait(EARLY)
    tokens = tl.arange(0, BLOCK_T)
    ranks = tl.arange(0, BLOCK_TOP)
    known = (tokens[:, None] < num_tokens) & (ranks[None, :] < TOP)
    chosen = tl.load(ids + tokens[:, None] * TOP + ranks[None, :], mask=known, other=-1) == expert
    rank = tl.max(tl.where(chosen, ranks[None, :], -1), axis=1)
    hit = (rank >= 0).to(tl.int32)
    count = tl.sum(hit, axis=0)
    before = tl.cumsum(hit, axis=0) - hit
    for start in range(0, count, BLOCK_M):
        m = start + tl.arange(0, BLOCK_M)
        taken = (before[:, None] == m[None, :]) & (hit[:, None] > 0)
        pair = tl.sum(tl.where(taken, (tokens * TOP + rank)[:, None], 0), axis=0)
        valid = m < count
        adapters = tl.load(of_token + pair // TOP, mask=valid, other=0).to(tl.int64) if MAX_RANK > 0 else pair
        _outputs(
            x,
            pair // TOP if GATED else pair,
            valid,
            expert,
            values,
            scales,
            low,
            pair,
            adapters,
            low_ranks,
            low_matrices,
            adapter_stride,
            out,
            IN_DIM,
            OUT_DIM,
            ROW_UNITS,
            ROW_SCALES,
            INT4,
            GATED,
            BLOCK_M,
            BLOCK_N,
            BLOCK_K,
            PARTS,
            MAX_RANK,
            TARGET,
            NUM_TARGETS,
        )


@triton.jit
def _many_tokens(
    x: tl.tensor,
    order: tl.tensor,
    ends: tl.tensor,
    values: tl.tensor,
    scales: tl.tensor,
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
    ROW_UNITS: tl.constexpr,
    ROW_SCALES: tl.constexpr,
    INT4: tl.constexpr,
    GATED: tl.constexpr,
    BLOCK_E: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    PARTS: tl.constexpr,
) -> None:
    """Some of one expert's sorted pairs, and some of its outputs.

    There are enough programs for any distribution over the experts; some find no pairs.
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
        rows = (first + tl.arange(0, BLOCK_M)).to(tl.int64)
        valid = rows < stop
        token = tl.load(order + rows, mask=valid, other=0) // TOP
        adapters = tl.load(of_token + token, mask=valid, other=0).to(tl.int64) if MAX_RANK > 0 else rows
        _outputs(
            x,
            token.to(tl.int64) if GATED else rows,
            valid,
            expert.to(tl.int64),
            values,
            scales,
            low,
            rows,
            adapters,
            low_ranks,
            low_matrices,
            adapter_stride,
            out,
            IN_DIM,
            OUT_DIM,
            ROW_UNITS,
            ROW_SCALES,
            INT4,
            GATED,
            BLOCK_M,
            BLOCK_N,
            BLOCK_K,
            PARTS,
            MAX_RANK,
            TARGET,
            NUM_TARGETS,
        )


def experts_few(
    h: Tensor,
    ids: Tensor,
    weights: Tensor,
    fc1: FewBits,
    fc2: FewBits,
    adapters: StepAdapters | None = None,
    early: bool = False,
) -> Pairs:
    """For any number of tokens; made for few. `early` as for `few_tokens_experts`."""
    if len(h) <= FEW_TOKENS:
        if len(h) == 1 and adapters is None and fc1.kind == fc2.kind == "fp8":
            return Pairs(one_token_experts(h, ids, fc1, fc2, early), weights, None)
        pairs = PairAdapters(adapters, ids, None) if adapters is not None else None
        return Pairs(few_tokens_experts(h, ids, fc1, fc2, pairs, early=early), weights, None)
    order, ends = sort_pairs(ids, len(fc1.values))
    pairs = PairAdapters(adapters, ids, order) if adapters is not None else None
    return Pairs(many_tokens_experts(h, order, ends, fc1, fc2, pairs), weights, invert(order))


def few_tokens_experts(
    h: Tensor,
    ids: Tensor,
    fc1: FewBits,
    fc2: FewBits,
    adapters: PairAdapters | None,
    cuts: tuple[Cut, Cut] | None = None,
    early: bool = False,
) -> Tensor:
    """Every pair's values, float32. Unchosen experts are not read. `early`: `ids` are two launches old."""
    (num_tokens, dim), top, num_experts = h.shape, ids.shape[1], len(fc1.values)
    inner = torch.empty((num_tokens * top, fc2.in_dim), dtype=h.dtype, device=h.device)
    out = torch.empty((num_tokens * top, dim), dtype=torch.float32, device=h.device)
    # The experts of a token run side by side.
    first, second = cuts or (cut_for(top * dim, fc1), cut_for(top * dim, fc2))
    for x, w, y, gated, cut in ((h, fc1, inner, True, first), (inner, fc2, out, False, second)):
        slots = top if num_tokens == 1 else num_experts  # one token's experts are all different
        own = cut.outputs // 2 if gated else cut.outputs
        _few_tokens[(slots, triton.cdiv(y.shape[1], own))](
            x,
            ids,
            bytes_or_words(w),
            single_or_four(w),
            y,
            num_tokens,
            TOP=top,
            ONE_TOKEN=num_tokens == 1,
            BLOCK_T=max(16, triton.next_power_of_2(num_tokens)),
            BLOCK_TOP=triton.next_power_of_2(top),
            BLOCK_M=8 if num_tokens <= 16 else 16,
            PARTS=cut.warps,
            **launch_options(early and num_tokens == 1 and adapters is None),
            **_matrix(w, y.shape[1], gated, cut),
            **_lora(adapters, gated, x),
        )
    return out


def many_tokens_experts(
    h: Tensor, order: Tensor, ends: Tensor, fc1: FewBits, fc2: FewBits, adapters: PairAdapters | None
) -> Tensor:
    """Every pair's values [pairs, dim], sorted by expert as `order` is."""
    num_pairs, num_experts, block_m = len(order), len(fc1.values), 64
    inner = torch.empty((num_pairs, fc2.in_dim), dtype=h.dtype, device=h.device)
    out = torch.empty((num_pairs, h.shape[1]), dtype=h.dtype, device=h.device)
    for x, w, y, gated in ((h, fc1, inner, True), (inner, fc2, out, False)):
        # With int4 each output has a sum of its own for every group, which takes twice the registers.
        stages = 2 if w.kind == "int4" or h.dtype == torch.float32 else 3
        cut = Cut(64 if w.kind == "int4" else 128, 64, 4, stages)
        own = cut.outputs // 2 if gated else cut.outputs
        tiles = triton.cdiv(num_pairs, block_m) + num_experts
        _many_tokens[(tiles, triton.cdiv(y.shape[1], own))](
            x,
            order,
            ends,
            bytes_or_words(w),
            single_or_four(w),
            y,
            TOP=num_pairs // len(h),
            NUM_EXPERTS=num_experts,
            BLOCK_E=triton.next_power_of_2(num_experts),
            BLOCK_M=block_m,
            PARTS=0,
            **_matrix(w, y.shape[1], gated, cut),
            **_lora(adapters, gated, x),
        )
    return out


def _matrix(w: FewBits, out_dim: int, gated: bool, cut: Cut) -> dict[str, int | bool]:
    """What kernels are told of a stack of matrices, and how they are cut."""
    int4 = w.kind == "int4"
    return {
        "IN_DIM": w.in_dim,
        "OUT_DIM": out_dim,
        "ROW_UNITS": w.values.shape[-1] // 2 if int4 else w.in_dim,  # words of 16 bits, or bytes
        "ROW_SCALES": single_or_four(w).shape[-1] if int4 else 1,
        "INT4": int4,
        "GATED": gated,
        "BLOCK_N": cut.outputs,
        "BLOCK_K": cut.depth,
        "num_warps": cut.warps,
        "num_stages": cut.stages,
    }


def _lora(adapters: PairAdapters | None, gated: bool, x: Tensor) -> dict[str, object]:
    return no_arguments(x) if adapters is None else adapters.arguments(FIRST if gated else SECOND, x)
