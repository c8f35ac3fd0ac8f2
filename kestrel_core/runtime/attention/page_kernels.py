"""Kernels of attention over pages for few rows: a plan once a step, then one launch in every layer.

A row's positions are divided into parts of equal length, as many as make the device busy, and each program
reads one part for one head. The last program of a row and head to finish merges the parts. How many programs
there are is fixed; how many of them have something to read depends on the lengths, which only the device
knows. So a plan is made there: where the positions of each part lie, and how many parts a row has.
"""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from kestrel_core.moondream.ops.early_launch import LINE_BYTES, launch_options, prefetch, wait

SHORTEST_PART = 32  # positions; merging shorter parts would take longer than reading them
NOTHING = tl.constexpr(-1)  # in place of a cell: there is no such position


class Pieces(NamedTuple):
    """How the work is cut: programs for each row and head, positions they read at a time, and their warps."""

    parts: int  # a power of two
    block: int
    warps: int


class PartTable(NamedTuple):
    """The plan of a step."""

    cells: Tensor  # [rows, parts, width]: where each part's positions lie, int32 like all below
    used: Tensor  # [rows]: parts that have positions; the others' programs have nothing to do
    length: Tensor  # [rows]: positions of each part, at most

    @classmethod
    def empty(cls, rows: int, max_context: int, pieces: Pieces, device: torch.device) -> "PartTable":
        longest = max(triton.cdiv(max_context, pieces.parts), SHORTEST_PART)
        width = triton.cdiv(longest, pieces.block) * pieces.block
        shapes = ((rows, pieces.parts, width), (rows,), (rows,))
        return cls(*(torch.zeros(shape, dtype=torch.int32, device=device) for shape in shapes))


class Merging(NamedTuple):
    """Where programs leave what they found for the one that merges it. Made once for all steps."""

    sums: Tensor  # [rows, heads, parts, head_dim], float32 like the next two: values by weight
    peaks: Tensor  # [rows, heads, parts]: the largest score
    totals: Tensor  # [rows, heads, parts]: of weights
    arrived: Tensor  # [rows, heads], int32: programs that have finished; 0 between launches

    @classmethod
    def empty(cls, rows: int, heads: int, head_dim: int, parts: int, device: torch.device) -> "Merging":
        numbers = torch.empty((rows, heads, parts, head_dim + 2), device=device)
        sums, peaks, totals = (part.contiguous() for part in numbers.split((head_dim, 1, 1), dim=-1))
        return cls(sums, peaks, totals, torch.zeros((rows, heads), dtype=torch.int32, device=device))


@triton.jit
def _plan_parts(
    indptr: tl.tensor,
    indices: tl.tensor,
    last_page_len: tl.tensor,
    cells: tl.tensor,
    used: tl.tensor,
    lengths: tl.tensor,
    width: tl.tensor,
    PAGE_SIZE: tl.constexpr,
    SHORTEST: tl.constexpr,
    PARTS: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    row, part = tl.program_id(0), tl.program_id(1)
    first = tl.load(indptr + row)
    num_pages = tl.load(indptr + row + 1) - first
    num_positions = (num_pages - 1) * PAGE_SIZE + tl.load(last_page_len + row)
    length = tl.maximum((num_positions + PARTS - 1) // PARTS, SHORTEST)
    table = cells + (row * PARTS + part) * width
    if part == 0:
        tl.store(used + row, (num_positions + length - 1) // length)
        tl.store(lengths + row, length)
    if part * length < num_positions:
        for start in range(0, length, BLOCK):
            at = start + tl.arange(0, BLOCK)
            position = part * length + at
            there = (at < length) & (position < num_positions)
            page = tl.load(indices + first + position // PAGE_SIZE, mask=there, other=0)
            tl.store(table + at, tl.where(there, page * PAGE_SIZE + position % PAGE_SIZE, NOTHING))


def plan_parts(
    indptr: Tensor, indices: Tensor, last_page_len: Tensor, page_size: int, table: PartTable, block: int
) -> None:
    num_rows, parts, width = table.cells.shape
    _plan_parts[(num_rows, parts)](
        indptr,
        indices,
        last_page_len,
        *table,
        width,
        PAGE_SIZE=page_size,
        SHORTEST=SHORTEST_PART,
        PARTS=parts,
        BLOCK=block,
        num_warps=max(1, min(4, block // 32)),
    )


@triton.jit
def _load_block(
    source: tl.tensor, cell: tl.tensor, d: tl.tensor, STRIDE: tl.constexpr, HEAD_DIM: tl.constexpr
) -> tl.tensor:
    inside = (cell >= 0)[:, None] & (d < HEAD_DIM)[None, :]
    return tl.load(source + cell.to(tl.int64)[:, None] * STRIDE + d[None, :], mask=inside, other=0.0)


@triton.jit
def _attend(
    q: tl.tensor,
    k: tl.tensor,
    v: tl.tensor,
    out: tl.tensor,
    cells: tl.tensor,
    used: tl.tensor,
    lengths: tl.tensor,
    sums: tl.tensor,
    peaks: tl.tensor,
    totals: tl.tensor,
    arrived: tl.tensor,
    width: tl.tensor,
    scale: tl.tensor,
    v_scale: tl.tensor,
    HEADS: tl.constexpr,
    KV_HEADS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    PARTS: tl.constexpr,
    BLOCK: tl.constexpr,
    BLOCK_D: tl.constexpr,
    LINES: tl.constexpr,
    EARLY: tl.constexpr,
) -> None:
    head, part, row = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    at, d = tl.arange(0, BLOCK), tl.arange(0, BLOCK_D)
    table = cells + (row * PARTS + part) * width
    # A table's first block can be read whatever it holds, so nothing waits for the number of parts first.
    cell = tl.load(table + at)
    num_parts = tl.load(used + row)
    length = tl.load(lengths + row)
    if part < num_parts:
        in_head = (head // (HEADS // KV_HEADS)) * HEAD_DIM
        if EARLY:
            # Keys of this step are not there yet, but what is fetched into the second cache stays current.
            line = tl.arange(0, LINES)[None, :] * (HEAD_DIM // LINES)
            begin = tl.maximum(cell, 0).to(tl.int64)[:, None] * (KV_HEADS * HEAD_DIM) + in_head + line
            prefetch(k + begin)
            prefetch(v + begin)
        wait(EARLY)
        in_dim = d < HEAD_DIM
        of_head = row * HEADS + head
        # The keys and values of a block are on their way while the block before it is computed.
        keys = _load_block(k + in_head, cell, d, KV_HEADS * HEAD_DIM, HEAD_DIM)
        values = _load_block(v + in_head, cell, d, KV_HEADS * HEAD_DIM, HEAD_DIM)
        following = tl.load(table + BLOCK + at, mask=BLOCK + at < length, other=NOTHING)
        query = tl.load(q + of_head * HEAD_DIM + d, mask=in_dim, other=0.0).to(tl.float32) * scale
        peak, total = float("-inf"), 0.0
        found = tl.zeros((BLOCK_D,), tl.float32)
        for start in range(0, length, BLOCK):
            next_keys = _load_block(k + in_head, following, d, KV_HEADS * HEAD_DIM, HEAD_DIM)
            next_values = _load_block(v + in_head, following, d, KV_HEADS * HEAD_DIM, HEAD_DIM)
            ahead = start + 2 * BLOCK + at
            after = tl.load(table + ahead, mask=ahead < length, other=NOTHING)
            score = tl.where(cell >= 0, tl.sum(keys.to(tl.float32) * query[None, :], axis=1), float("-inf"))
            # A part's first position is always there, so the peak is a number from the first block on.
            higher = tl.maximum(peak, tl.max(score, axis=0))
            weight = tl.exp2(score - higher)
            shrunk = tl.exp2(peak - higher)
            total = total * shrunk + tl.sum(weight, axis=0)
            found = found * shrunk + tl.sum(weight[:, None] * values.to(tl.float32), axis=0)
            peak = higher
            cell, keys, values, following = following, next_keys, next_values, after
        to = out + of_head * HEAD_DIM + d
        if num_parts == 1:
            tl.store(to, (found / total * v_scale).to(out.dtype.element_ty), mask=in_dim)
        else:
            slot = of_head * PARTS + part
            tl.store(sums + slot * HEAD_DIM + d, found, mask=in_dim)
            tl.store(peaks + slot, peak)
            tl.store(totals + slot, total)
            # All threads have stored when one of them counts, and whoever counts last sees all of it.
            tl.debug_barrier()
            before = tl.atomic_add(arrived + of_head, 1, sem="acq_rel", scope="gpu")
            if before == num_parts - 1:
                tl.store(arrived + of_head, 0)  # for the next launch
                parts = tl.arange(0, PARTS)
                there = parts < num_parts
                slots = of_head * PARTS + parts
                # Past the first cache, which may hold what another launch left here.
                high = tl.load(peaks + slots, mask=there, other=float("-inf"), cache_modifier=".cg")
                sizes = tl.load(totals + slots, mask=there, other=0.0, cache_modifier=".cg")
                pieces = tl.load(
                    sums + slots[:, None] * HEAD_DIM + d[None, :],
                    mask=there[:, None] & in_dim[None, :],
                    other=0.0,
                    cache_modifier=".cg",
                )
                share = tl.exp2(high - tl.max(high, axis=0))
                merged = tl.sum(share[:, None] * pieces, axis=0) / tl.sum(share * sizes, axis=0) * v_scale
                tl.store(to, merged.to(out.dtype.element_ty), mask=in_dim)


LOG2_E = 1.4426950408889634


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    scales: tuple[float, float],
    table: PartTable,
    merging: Merging,
    pieces: Pieces,
    early: bool,
) -> Tensor:
    """q: [rows, heads, head_dim], of a plan's rows; k and v: a layer of the cache, with their scales."""
    q = q.contiguous()
    num_rows, heads, head_dim = q.shape
    out = torch.empty_like(q)
    _attend[(heads, pieces.parts, num_rows)](
        q,
        k,
        v,
        out,
        *table,
        *merging,
        table.cells.shape[2],
        LOG2_E / head_dim**0.5 * scales[0],
        scales[1],
        HEADS=heads,
        KV_HEADS=k.shape[1],
        HEAD_DIM=head_dim,
        PARTS=pieces.parts,
        BLOCK=pieces.block,
        BLOCK_D=triton.next_power_of_2(head_dim),
        LINES=max(1, triton.next_power_of_2(head_dim) * k.element_size() // LINE_BYTES),
        num_warps=pieces.warps,
        **launch_options(early),
    )
    return out
