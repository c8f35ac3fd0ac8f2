"""Kernels around the products of experts: choosing them, their activation, and the order of pairs."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from kestrel_core.moondream.ops.early_launch import launch_options, wait


@triton.jit
def gelu(x: tl.tensor) -> tl.tensor:
    return 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))


@triton.jit
def _route(
    scores: tl.tensor,
    stride: tl.tensor,
    ids: tl.tensor,
    weights: tl.tensor,
    NUM_EXPERTS: tl.constexpr,
    TOP: tl.constexpr,
    BLOCK_E: tl.constexpr,
    BLOCK_TOP: tl.constexpr,
    EARLY: tl.constexpr,
) -> None:
    wait(EARLY)
    token = tl.program_id(0).to(tl.int64)
    expert = tl.arange(0, BLOCK_E)
    ranks = tl.arange(0, BLOCK_TOP)
    score = tl.load(scores + token * stride + expert, mask=expert < NUM_EXPERTS, other=float("-inf"))
    score = score.to(tl.float32)
    peak = tl.max(score, axis=0)
    shares = tl.zeros((BLOCK_TOP,), tl.float32)
    for rank in tl.static_range(TOP):
        best = tl.max(score, axis=0)
        # If a score is NaN the index may be any, but must not be behind the last expert's.
        at = tl.minimum(tl.argmax(score, axis=0), NUM_EXPERTS - 1)
        tl.store(ids + token * TOP + rank, at)
        shares = tl.where(ranks == rank, tl.exp(best - peak), shares)
        score = tl.where(expert == at, float("-inf"), score)
    shares = shares / tl.sum(shares, axis=0)
    tl.store(weights + token * TOP + ranks, shares.to(weights.dtype.element_ty), mask=ranks < TOP)


def route(scores: Tensor, top: int, early: bool = False) -> tuple[Tensor, Tensor]:
    """The best experts of each row of scores and the softmax of theirs: int32 and `scores.dtype`."""
    num_tokens, num_experts = scores.shape
    ids = torch.empty((num_tokens, top), dtype=torch.int32, device=scores.device)
    weights = torch.empty((num_tokens, top), dtype=scores.dtype, device=scores.device)
    _route[(num_tokens,)](
        scores,
        scores.stride(0),
        ids,
        weights,
        NUM_EXPERTS=num_experts,
        TOP=top,
        BLOCK_E=triton.next_power_of_2(num_experts),
        BLOCK_TOP=triton.next_power_of_2(top),
        num_warps=1,
        **launch_options(early),
    )
    return ids, weights


@triton.jit
def _geglu(u: tl.tensor, out: tl.tensor, INNER: tl.constexpr, BLOCK: tl.constexpr) -> None:
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(u + row * (2 * INNER) + at, mask=at < INNER, other=0.0).to(tl.float32)
    gate = tl.load(u + row * (2 * INNER) + INNER + at, mask=at < INNER, other=0.0).to(tl.float32)
    tl.store(out + row * INNER + at, (gelu(value) * (gate + 1.0)).to(out.dtype.element_ty), mask=at < INNER)


def geglu(u: Tensor) -> Tensor:
    num_rows, inner = len(u), u.shape[1] // 2
    out = torch.empty((num_rows, inner), dtype=u.dtype, device=u.device)
    block = min(1024, triton.next_power_of_2(inner))
    _geglu[(num_rows, triton.cdiv(inner, block))](u, out, INNER=inner, BLOCK=block, num_warps=4)
    return out


@triton.jit
def _invert(order: tl.tensor, places: tl.tensor, count: tl.tensor, BLOCK: tl.constexpr) -> None:
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(places + tl.load(order + at, mask=at < count, other=0), at, mask=at < count)


def invert(order: Tensor) -> Tensor:
    places = torch.empty_like(order)
    _invert[(triton.cdiv(len(order), 512),)](order, places, len(order), BLOCK=512, num_warps=4)
    return places
