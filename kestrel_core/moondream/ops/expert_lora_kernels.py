"""What adapters add to the products of experts. A pair is a token and one of its experts.

Tokens of one expert have different adapters, and the rank of each expert's matrices is small: so the first
product is taken pair by pair, and the second where the product of the expert itself is at hand.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from kestrel_core.moondream.lora import TARGETS, Target
from kestrel_core.moondream.ops.protocol import StepAdapters
from kestrel_core.moondream.ops.routing_kernels import gelu


@triton.jit
def _shrink_pairs(
    x: tl.tensor,
    order: tl.tensor,
    ids: tl.tensor,
    of_token: tl.tensor,
    low_ranks: tl.tensor,
    matrices: tl.tensor,
    adapter_stride: tl.tensor,
    low: tl.tensor,
    TOP: tl.constexpr,
    DIM: tl.constexpr,
    MAX_RANK: tl.constexpr,
    TARGET: tl.constexpr,
    NUM_TARGETS: tl.constexpr,
    BY_TOKEN: tl.constexpr,
    SORTED: tl.constexpr,
    BLOCK_R: tl.constexpr,
    BLOCK_K: tl.constexpr,
) -> None:
    """The A matrix of one pair times its row of x.

    BY_TOKEN: x has a row for each token. Otherwise it has a row for each pair, as `low` has in both cases.
    """
    row = tl.program_id(0).to(tl.int64)
    pair = tl.load(order + row).to(tl.int64) if SORTED else row
    adapter = tl.load(of_token + pair // TOP).to(tl.int64)
    rank = tl.load(low_ranks + adapter * NUM_TARGETS + TARGET)
    if rank > 0:
        expert = tl.load(ids + pair).to(tl.int64)
        a = matrices + adapter * adapter_stride + expert * (MAX_RANK * DIM)
        source = x + (pair // TOP if BY_TOKEN else row) * DIM
        for start in range(0, rank, BLOCK_R):
            r = start + tl.arange(0, BLOCK_R)
            products = tl.zeros((BLOCK_R, BLOCK_K), tl.float32)
            for at in range(0, DIM, BLOCK_K):
                k = at + tl.arange(0, BLOCK_K)
                h = tl.load(source + k, mask=k < DIM, other=0.0).to(tl.float32)
                mask = (r[:, None] < rank) & (k[None, :] < DIM)
                w = tl.load(a + r[:, None] * DIM + k[None, :], mask=mask, other=0.0).to(tl.float32)
                products += h[None, :] * w
            tl.store(
                low + row * MAX_RANK + r, tl.sum(products, axis=1).to(low.dtype.element_ty), mask=r < rank
            )


@triton.jit
def add_pairs(
    value: tl.tensor,
    low: tl.tensor,
    rows: tl.tensor,
    adapters: tl.tensor,
    ranks: tl.tensor,
    matrices: tl.tensor,
    adapter_stride: tl.tensor,
    n: tl.tensor,
    inside: tl.tensor,
    MAX_RANK: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_R: tl.constexpr,
) -> tl.tensor:
    """value [rows, columns n] and the B matrix of each row's adapter times its row of `low`.

    Few rows each read their own matrix. Many would need too many registers for that: they have few adapters,
    so these are taken one after the other.
    """
    if BLOCK_M > 16:
        last = tl.max(adapters, axis=0)
        first = tl.min(tl.where(adapters > 0, adapters, last), axis=0)
        for adapter in range(first, last + 1):
            mine = adapters == adapter
            rank = tl.max(tl.where(mine, ranks, 0), axis=0)
            for start in range(0, rank, BLOCK_R):
                r = start + tl.arange(0, BLOCK_R)
                used = r[None, :] < rank
                factors = tl.load(
                    low + rows[:, None] * MAX_RANK + r[None, :], mask=mine[:, None] & used, other=0.0
                )
                b = matrices + adapter * adapter_stride + n[:, None] * MAX_RANK + r[None, :]
                w = tl.load(b, mask=inside[:, None] & used, other=0.0)
                value = tl.dot(factors, tl.trans(w), value, input_precision="ieee")
    else:
        own = matrices + adapters[:, None] * adapter_stride + n[None, :] * MAX_RANK
        for r in range(0, tl.max(ranks, axis=0)):
            used = (r < ranks)[:, None]  # a column: version 3.6 of the compiler fails at a flat load
            factors = tl.load(low + rows[:, None] * MAX_RANK + r, mask=used, other=0.0).to(tl.float32)
            b = tl.load(own + r, mask=used & inside[None, :], other=0.0)
            value += factors * b.to(tl.float32)
    return value


@triton.jit
def _columns(
    row: tl.tensor, n: tl.tensor, inside: tl.tensor, low: tl.tensor, b: tl.tensor, rank: tl.tensor
) -> tl.tensor:
    """Columns n of a row, and of its B matrix times its numbers in `low`."""
    value = tl.load(row + n, mask=inside, other=0.0).to(tl.float32)
    for r in range(0, rank):
        value += tl.load(low + r).to(tl.float32) * tl.load(b + r, mask=inside, other=0.0).to(tl.float32)
    return value


@triton.jit
def _adapt_rows(
    u: tl.tensor,
    out: tl.tensor,
    order: tl.tensor,
    ids: tl.tensor,
    low: tl.tensor,
    low_matrices: tl.tensor,
    of_token: tl.tensor,
    low_ranks: tl.tensor,
    adapter_stride: tl.tensor,
    TOP: tl.constexpr,
    DIM: tl.constexpr,
    GATED: tl.constexpr,
    MAX_RANK: tl.constexpr,
    TARGET: tl.constexpr,
    NUM_TARGETS: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    """Some columns of a sorted pair's row of u, with what its adapter adds.

    GATED: u has twice DIM columns, activations and then gates, and `out` gets one through the other.
    """
    row = tl.program_id(0).to(tl.int64)
    pair = tl.load(order + row).to(tl.int64)
    adapter = tl.load(of_token + pair // TOP).to(tl.int64)
    rank = tl.load(low_ranks + adapter * NUM_TARGETS + TARGET)
    if GATED or rank > 0:
        n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        inside = n < DIM
        width: tl.constexpr = 2 * DIM if GATED else DIM
        expert = tl.load(ids + pair).to(tl.int64)
        b = low_matrices + adapter * adapter_stride + (expert * width + n) * MAX_RANK
        source, numbers = u + row * width, low + row * MAX_RANK
        value = _columns(source, n, inside, numbers, b, rank)
        if GATED:
            gate = _columns(source + DIM, n, inside, numbers, b + DIM * MAX_RANK, rank)
            value = gelu(value) * (gate + 1.0)
        tl.store(out + row * DIM + n, value.to(out.dtype.element_ty), mask=inside)


class PairAdapters:
    """The adapters of a step's pairs, for kernels whose rows are pairs: in their own order, or sorted."""

    def __init__(self, adapters: StepAdapters, ids: Tensor, order: Tensor | None) -> None:
        assert adapters.rows.stacks is not None
        self._adapters, self._stacks = adapters, adapters.rows.stacks
        self._ids, self._order = ids, order

    def shrink(self, target: Target, x: Tensor) -> Tensor:
        """The first product of every pair that has an adapter: [pairs, the largest rank]."""
        a = self._adapters.of(target).a
        max_rank, dim, num_pairs = a.shape[2], a.shape[3], self._ids.numel()
        low = torch.empty((num_pairs, max_rank), dtype=x.dtype, device=x.device)
        _shrink_pairs[(num_pairs,)](
            x,
            self._ids if self._order is None else self._order,
            self._ids,
            matrices=a,
            low=low,
            DIM=dim,
            BY_TOKEN=target == "expert_fc1",
            SORTED=self._order is not None,
            BLOCK_R=min(4, triton.next_power_of_2(max_rank)),
            BLOCK_K=min(512, triton.next_power_of_2(dim)),
            TOP=self._ids.shape[1],
            num_warps=4,
            **self._lookup(target),
        )
        return low

    def arguments(self, target: Target, x: Tensor) -> dict[str, Any]:
        """What a kernel needs that adds the second product itself."""
        matrices = self._adapters.of(target).b
        return {"low": self.shrink(target, x), "low_matrices": matrices, **self._lookup(target)}

    def geglu(self, target: Target, x: Tensor, u: Tensor) -> Tensor:
        """The activation of u and what the sorted pairs' adapters make of x."""
        out = torch.empty((len(u), u.shape[1] // 2), dtype=u.dtype, device=u.device)
        self._adapt_rows(target, x, u, out, gated=True)
        return out

    def add(self, target: Target, x: Tensor, y: Tensor) -> None:
        """Add what the sorted pairs' adapters make of x to y."""
        self._adapt_rows(target, x, y, y, gated=False)

    def _adapt_rows(self, target: Target, x: Tensor, u: Tensor, out: Tensor, gated: bool) -> None:
        assert self._order is not None
        (num_pairs, dim), block = out.shape, min(1024, triton.next_power_of_2(out.shape[1]))
        _adapt_rows[(num_pairs, triton.cdiv(dim, block))](
            u,
            out,
            self._order,
            self._ids,
            TOP=self._ids.shape[1],
            DIM=dim,
            GATED=gated,
            BLOCK=block,
            num_warps=4,
            **self.arguments(target, x),
        )

    def _lookup(self, target: Target) -> dict[str, Any]:
        return {
            "of_token": self._adapters.rows.of_token,
            "low_ranks": self._stacks.ranks,
            "adapter_stride": self._stacks.numbers.stride(0),
            "MAX_RANK": self._adapters.of(target).a.shape[2],
            "TARGET": TARGETS.index(target),
            "NUM_TARGETS": len(TARGETS),
        }


def no_arguments(x: Tensor) -> dict[str, Any]:
    """For the same kernels when no token has an adapter: with a rank of 0 nothing of them is compiled."""
    return {
        "low": x,
        "low_matrices": x,
        "of_token": x,
        "low_ranks": x,
        "adapter_stride": 0,
        "MAX_RANK": 0,
        "TARGET": 0,
        "NUM_TARGETS": 0,
    }
