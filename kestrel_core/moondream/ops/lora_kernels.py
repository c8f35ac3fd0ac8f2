"""What adapters add to a block's matrices, for a step whose tokens have different ones.

Tokens come in tiles of one adapter each (`moondream.lora.AdapterRows`), so that a program multiplies many
rows by the same matrix. Its rank is read on the device. Adapter 0 has rank 0, and so has a target that an
adapter does not have: their programs end at once. Those of experts are in `ops.expert_lora_kernels`.
"""

from collections.abc import Mapping, Sequence

import torch
import triton
import triton.language as tl
from torch import Tensor

from kestrel_core.moondream.lora import TARGETS, Target
from kestrel_core.moondream.ops.head_kernels import MULTIPROCESSORS
from kestrel_core.moondream.ops.protocol import StepAdapters

MAX_SPLITS = 8  # every program of `expand` adds up as many parts
BLOCK_R = 16  # ranks of a program, the least that a product takes
NUM_TARGETS = tl.constexpr(len(TARGETS))


@triton.jit
def _part(
    x: tl.tensor,
    stride: tl.tensor,
    tokens: tl.tensor,
    valid: tl.tensor,
    a: tl.tensor,
    r: tl.tensor,
    rank: tl.tensor,
    DIM: tl.constexpr,
    SPAN: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_R: tl.constexpr,
    BLOCK_K: tl.constexpr,
) -> tl.tensor:
    """Rows of x times rows of a, summed over this program's span of columns."""
    total = tl.zeros((BLOCK_M, BLOCK_R), tl.float32)
    for start in range(0, SPAN, BLOCK_K):
        k = tl.program_id(2) * SPAN + start + tl.arange(0, BLOCK_K)
        inside = k[None, :] < DIM
        h = tl.load(x + tokens[:, None] * stride + k[None, :], mask=valid[:, None] & inside, other=0.0)
        w = tl.load(a + r[:, None] * DIM + k[None, :], mask=(r[:, None] < rank) & inside, other=0.0)
        total = tl.dot(h, tl.trans(w), total, input_precision="ieee")
    return total


@triton.jit
def _shrink(
    x: tl.tensor,
    x_stride: tl.tensor,
    x_matrices: tl.tensor,
    y: tl.tensor,
    y_stride: tl.tensor,
    y_matrices: tl.tensor,
    adapter_stride: tl.tensor,
    order: tl.tensor,
    tiles: tl.tensor,
    ranks: tl.tensor,
    low: tl.tensor,
    num_tokens: tl.tensor,
    X_DIM: tl.constexpr,
    Y_DIM: tl.constexpr,
    X_SPAN: tl.constexpr,
    Y_SPAN: tl.constexpr,
    X_TARGETS: tl.constexpr,
    FIRST: tl.constexpr,
    STEP: tl.constexpr,
    MAX_RANK: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_R: tl.constexpr,
    BLOCK_K: tl.constexpr,
) -> None:
    """Some ranks of one target, over part of its input, for the tokens of one tile.

    The first X_TARGETS targets read x, and their matrices lie one behind the other; one more reads y.
    """
    BLOCKS: tl.constexpr = (MAX_RANK + BLOCK_R - 1) // BLOCK_R
    place = tl.program_id(1) // BLOCKS
    first_rank = (tl.program_id(1) % BLOCKS) * BLOCK_R
    target = FIRST + STEP * place
    adapter = tl.load(tiles + 3 * tl.program_id(0)).to(tl.int64)
    rank = tl.load(ranks + adapter * NUM_TARGETS + target)
    if first_rank < rank:
        m = tl.load(tiles + 3 * tl.program_id(0) + 1) + tl.arange(0, BLOCK_M)
        valid = m < tl.load(tiles + 3 * tl.program_id(0) + 2)
        tokens = tl.load(order + m, mask=valid, other=0).to(tl.int64)
        r = first_rank + tl.arange(0, BLOCK_R)
        if place < X_TARGETS:
            a = x_matrices + adapter * adapter_stride + place * (MAX_RANK * X_DIM)
            total = _part(x, x_stride, tokens, valid, a, r, rank, X_DIM, X_SPAN, BLOCK_M, BLOCK_R, BLOCK_K)
        else:
            a = y_matrices + adapter * adapter_stride
            total = _part(y, y_stride, tokens, valid, a, r, rank, Y_DIM, Y_SPAN, BLOCK_M, BLOCK_R, BLOCK_K)
        row = low + (tl.program_id(2) * num_tokens + tokens) * (NUM_TARGETS * MAX_RANK) + target * MAX_RANK
        tl.store(row[:, None] + r[None, :], total, mask=valid[:, None] & (r[None, :] < rank))


def shrink(inputs: Mapping[Target, Tensor], adapters: StepAdapters, low: Tensor | None) -> Tensor:
    """Parts of sums over a target's inputs, float32 [splits, tokens, targets * the largest rank]."""
    (rows, layer), targets = adapters, list(inputs)
    stacks, tiles, order = rows.stacks, rows.tiles, rows.order
    assert stacks is not None and tiles is not None and order is not None
    x, last = inputs[targets[0]], inputs[targets[-1]]
    same = [target for target in targets if inputs[target] is x]
    assert len(targets) - len(same) == (x is not last), "one target may have another input, and comes last"
    places = [TARGETS.index(target) for target in targets]
    step = places[1] - places[0] if len(places) > 1 else 1
    assert places == [places[0] + step * place for place in range(len(places))]
    if low is None:
        # Two programs for each multiprocessor, if adapters have the rank of one block: most do.
        splits = min(MAX_SPLITS, max(1, 2 * MULTIPROCESSORS // (len(tiles) * len(targets))))
        shape = (splits, len(x), len(TARGETS) * stacks.max_rank)
        low = torch.empty(shape, dtype=torch.float32, device=x.device)
    splits = len(low)
    wide = rows.tile_size <= 16 and x.dtype != torch.float32  # otherwise it would take much shared memory
    block_k = min(256 if wide else 64, max(16, triton.next_power_of_2(x.shape[1])))
    _shrink[(len(tiles), len(targets) * triton.cdiv(stacks.max_rank, BLOCK_R), splits)](
        x,
        x.stride(0),
        stacks.joined(layer, "a", same),
        last,
        last.stride(0),
        adapters.of(targets[-1]).a,
        stacks.numbers.stride(0),
        order,
        tiles,
        stacks.ranks,
        low,
        len(x),
        X_DIM=x.shape[1],
        Y_DIM=last.shape[1],
        X_SPAN=_span(x, splits, block_k),
        Y_SPAN=_span(last, splits, block_k),
        X_TARGETS=len(same),
        FIRST=places[0],
        STEP=step,
        MAX_RANK=stacks.max_rank,
        BLOCK_M=max(16, rows.tile_size),
        BLOCK_R=BLOCK_R,
        BLOCK_K=block_k,
        num_warps=4,
        num_stages=3,
    )
    return low


def _span(x: Tensor, splits: int, block_k: int) -> int:
    """Columns that each of the splits sums over: whole blocks."""
    return -(-x.shape[1] // (splits * block_k)) * block_k


@triton.jit
def _expand(
    y: tl.tensor,
    y_stride: tl.tensor,
    low: tl.tensor,
    matrices: tl.tensor,
    adapter_stride: tl.tensor,
    order: tl.tensor,
    tiles: tl.tensor,
    ranks: tl.tensor,
    num_tokens: tl.tensor,
    FIRST: tl.constexpr,
    TARGETS: tl.constexpr,
    FIRST_DIM: tl.constexpr,
    OTHER_DIM: tl.constexpr,
    MAX_RANK: tl.constexpr,
    SPLITS: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_R: tl.constexpr,
) -> None:
    """Some columns of y for the tokens of one tile.

    With OTHER_DIM, FIRST_DIM columns belong to the first target and the OTHER_DIM behind them to the next.
    Otherwise all targets have FIRST_DIM columns, which are summed. Matrices lie one behind the other.
    """
    adapter = tl.load(tiles + 3 * tl.program_id(0)).to(tl.int64)
    if adapter > 0:
        FIRST_BLOCKS: tl.constexpr = (FIRST_DIM + BLOCK_N - 1) // BLOCK_N
        place = (tl.program_id(1) >= FIRST_BLOCKS).to(tl.int32)
        n = (tl.program_id(1) - place * FIRST_BLOCKS) * BLOCK_N + tl.arange(0, BLOCK_N)
        in_y = n < tl.where(place > 0, OTHER_DIM, FIRST_DIM)
        n += place * FIRST_DIM
        m = tl.load(tiles + 3 * tl.program_id(0) + 1) + tl.arange(0, BLOCK_M)
        valid = m < tl.load(tiles + 3 * tl.program_id(0) + 2)
        tokens = tl.load(order + m, mask=valid, other=0).to(tl.int64)
        total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        most = 0
        for term in tl.static_range(TARGETS):
            target = FIRST + term + place
            rank = tl.load(ranks + adapter * NUM_TARGETS + target)
            most = tl.maximum(most, rank)
            b = matrices + adapter * adapter_stride + term * (FIRST_DIM * MAX_RANK)
            for start in range(0, rank, BLOCK_R):
                r = start + tl.arange(0, BLOCK_R)
                used = r[None, :] < rank
                source = low + target * MAX_RANK + r[None, :]
                part = tl.zeros((BLOCK_M, BLOCK_R), tl.float32)
                for split in tl.static_range(SPLITS):
                    row = (split * num_tokens + tokens[:, None]) * (NUM_TARGETS * MAX_RANK)
                    part += tl.load(source + row, mask=valid[:, None] & used, other=0.0)
                w = tl.load(b + n[:, None] * MAX_RANK + r[None, :], mask=in_y[:, None] & used, other=0.0)
                total = tl.dot(part.to(w.dtype), tl.trans(w), total, input_precision="ieee")
        if most > 0:
            out = y + tokens[:, None] * y_stride + n[None, :]
            mask = valid[:, None] & in_y[None, :]
            total += tl.load(out, mask=mask, other=0.0).to(tl.float32)
            tl.store(out, total.to(y.dtype.element_ty), mask=mask)


def expand(y: Tensor, low: Tensor, targets: Sequence[Target], adapters: StepAdapters, beside: bool) -> None:
    (rows, layer), sizes = adapters, [adapters.of(target).b.shape[1] for target in targets]
    stacks, tiles, order = rows.stacks, rows.tiles, rows.order
    assert stacks is not None and tiles is not None and order is not None
    assert len(sizes) <= 2 if beside else len(set(sizes)) == 1
    other_dim = sizes[1] if beside and len(sizes) > 1 else 0
    columns = sizes[0] + other_dim
    wide = columns > 4096 or len(tiles) > 16  # enough programs, even if each has many columns
    block_n = min(128 if wide else 32, max(16, triton.next_power_of_2(columns)))
    _expand[(len(tiles), triton.cdiv(sizes[0], block_n) + triton.cdiv(other_dim, block_n))](
        y,
        y.stride(0),
        low,
        stacks.joined(layer, "b", targets),
        stacks.numbers.stride(0),
        order,
        tiles,
        stacks.ranks,
        len(y),
        FIRST=TARGETS.index(targets[0]),
        TARGETS=1 if beside else len(targets),
        FIRST_DIM=sizes[0],
        OTHER_DIM=other_dim,
        MAX_RANK=stacks.max_rank,
        SPLITS=len(low),
        BLOCK_M=max(16, rows.tile_size),
        BLOCK_N=block_n,
        BLOCK_R=BLOCK_R,
        num_warps=4,
    )
