"""Vision attention in the kernel language, beside which `vision_attention_tiles.py` holds that in CUDA C++.

A head of 72 columns is 64 and a tail of 16, whose upper half belongs to the next head: q has zeros there, and
what v gives is not stored. The same is true of rows: those after a crop's last are another's, and masked.
"""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.tools.tensor_descriptor import TensorDescriptor

MAIN, TAIL = 64, 16
LOG2_E = 1.4426950408889634


@triton.jit
def _attention(
    q_main: tl.tensor,
    q_tail: tl.tensor,
    k_main: tl.tensor,
    k_tail: tl.tensor,
    out: tl.tensor,
    scale: tl.tensor,
    HEADS: tl.constexpr,
    PATCHES: tl.constexpr,
    WIDTH: tl.constexpr,
    QUERIES: tl.constexpr,
    KEYS: tl.constexpr,
    SPECIALISED: tl.constexpr,
) -> None:
    first = tl.program_id(0) * QUERIES
    head = tl.program_id(1) % HEADS
    crop = tl.program_id(1) // HEADS
    row = crop * PATCHES
    column = head * WIDTH
    dim: tl.constexpr = HEADS * WIDTH
    tail_columns = tl.arange(0, 16)
    q = q_main.load([row + first, column])
    qt = q_tail.load([row + first, column + 64])
    qt = tl.where(tail_columns[None, :] < WIDTH - 64, qt, 0.0)
    most = tl.full((QUERIES,), float("-inf"), tl.float32)
    total = tl.zeros((QUERIES,), tl.float32)
    o = tl.zeros((QUERIES, 64), tl.float32)
    ot = tl.zeros((QUERIES, 16), tl.float32)
    for start in tl.range(0, PATCHES, KEYS, warp_specialize=SPECIALISED):
        k = k_main.load([row + start, dim + column])
        kt = k_tail.load([row + start, dim + column + 64])
        s = tl.dot(q, k.T)
        s = tl.dot(qt, kt.T, s)
        s = tl.where(start + tl.arange(0, KEYS)[None, :] < PATCHES, s, float("-inf"))
        top = tl.maximum(most, tl.max(s, 1) * scale)
        shrink = tl.exp2(most - top)
        p = tl.exp2(s * scale - top[:, None])
        total = total * shrink + tl.sum(p, 1)
        o = o * shrink[:, None]
        ot = ot * shrink[:, None]
        v = k_main.load([row + start, 2 * dim + column])
        weights = p.to(v.dtype)
        vt = k_tail.load([row + start, 2 * dim + column + 64])
        o = tl.dot(weights, v, o)
        ot = tl.dot(weights, vt, ot)
        most = top
    o = o / total[:, None]
    ot = ot / total[:, None]
    patches = first + tl.arange(0, QUERIES)
    at = out + (row + patches).to(tl.int64)[:, None] * dim + column
    inside = patches[:, None] < PATCHES
    tl.store(at + tl.arange(0, 64)[None, :], o.to(out.dtype.element_ty), inside)
    tails = inside & (tail_columns < WIDTH - 64)[None, :]
    tl.store(at + 64 + tail_columns[None, :], ot.to(out.dtype.element_ty), tails)


@dataclass(frozen=True)
class LanguageTiles:
    queries: int = 128
    keys: int = 64
    warps: int = 8
    stages: int = 3
    specialised: bool = False

    def __call__(self, qkv: Tensor, num_crops: int, num_heads: int) -> Tensor:
        dim = qkv.shape[1] // 3
        patches, width = len(qkv) // num_crops, dim // num_heads
        out = torch.empty((len(qkv), dim), dtype=qkv.dtype, device=qkv.device)
        boxes = [(self.queries, MAIN), (self.queries, TAIL), (self.keys, MAIN), (self.keys, TAIL)]
        cut = [TensorDescriptor.from_tensor(qkv, list(box)) for box in boxes]
        _attention[(triton.cdiv(patches, self.queries), num_crops * num_heads)](
            *cut,
            out,
            width**-0.5 * LOG2_E,
            num_heads,
            patches,
            width,
            self.queries,
            self.keys,
            self.specialised,
            num_warps=self.warps,
            num_stages=self.stages,
        )
        return out


LANGUAGE_CHOICES = (
    LanguageTiles(),
    LanguageTiles(warps=4, specialised=True),
    LanguageTiles(keys=128, stages=2),
    LanguageTiles(queries=64, warps=4),
)
