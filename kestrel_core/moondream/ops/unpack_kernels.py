"""Weights of 8 or 4 bits to wide ones, for products of many rows. CUDA.

`ops.few_bits` says what they mean and how they lie. A program has some rows and 256 columns.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from kestrel_core.moondream.ops.few_bits import TOGETHER, FewBits
from kestrel_core.moondream.ops.few_bits_product import steps_of, wider


@triton.jit
def _unpack(
    values: tl.tensor,
    scales: tl.tensor,
    out: tl.tensor,
    num_rows: tl.tensor,
    IN_DIM: tl.constexpr,
    INT4: tl.constexpr,
    BLOCK_R: tl.constexpr,
) -> None:
    row = tl.program_id(0).to(tl.int64) * BLOCK_R + tl.arange(0, BLOCK_R)
    block = tl.program_id(1)
    inside = row < num_rows
    if INT4:
        BLOCKS: tl.constexpr = (IN_DIM + 255) // 256
        k = tl.arange(0, 64)
        words = values + row[:, None] * (BLOCKS * 64) + block * 64 + k[None, :]
        packed = tl.load(words, mask=inside[:, None], other=0)
        first, second, third, fourth = steps_of(packed)
        factors = scales + row * (BLOCKS * 4) + block * 4
        _store_group(out, row, block * 256 + k, first, factors, inside, IN_DIM)
        _store_group(out, row, block * 256 + 64 + k, second, factors + 1, inside, IN_DIM)
        _store_group(out, row, block * 256 + 128 + k, third, factors + 2, inside, IN_DIM)
        _store_group(out, row, block * 256 + 192 + k, fourth, factors + 3, inside, IN_DIM)
    else:
        k = block * 256 + tl.arange(0, 256)
        mask = inside[:, None] & (k[None, :] < IN_DIM)
        wide = wider(tl.load(values + row[:, None] * IN_DIM + k[None, :], mask=mask, other=0))
        scale = tl.load(scales + row, mask=inside, other=0.0)
        numbers = wide.to(tl.float32) * scale[:, None]
        tl.store(out + row[:, None] * IN_DIM + k[None, :], numbers.to(out.dtype.element_ty), mask=mask)


@triton.jit
def _store_group(
    out: tl.tensor,
    row: tl.tensor,
    k: tl.tensor,
    steps: tl.tensor,
    scales: tl.tensor,
    inside: tl.tensor,
    IN_DIM: tl.constexpr,
) -> None:
    scale = tl.load(scales, mask=inside, other=0.0).to(tl.float32)
    numbers = (steps.to(tl.float32) * scale[:, None]).to(out.dtype.element_ty)
    mask = inside[:, None] & (k[None, :] < IN_DIM)
    tl.store(out + row[:, None] * IN_DIM + k[None, :], numbers, mask=mask)


def unpack_into(w: FewBits, out: Tensor) -> None:
    """`out`: contiguous, of the matrices' shape."""
    assert out.is_contiguous() and tuple(out.shape) == w.shape
    num_rows, block_r = w.values[..., 0].numel(), 16
    _unpack[(triton.cdiv(num_rows, block_r), triton.cdiv(w.in_dim, TOGETHER))](
        bytes_or_words(w),
        w.scales,
        out,
        num_rows,
        IN_DIM=w.in_dim,
        INT4=w.kind == "int4",
        BLOCK_R=block_r,
        num_warps=4,
    )


def bytes_or_words(w: FewBits) -> Tensor:
    """The values as kernels take them: float8 numbers as bytes, nibbles in words of 16 bits."""
    return w.values.view(torch.int16 if w.kind == "int4" else torch.uint8)
