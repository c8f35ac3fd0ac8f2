"""Products of few rows with weights in 8 or 4 bits; those of many unpack them first. CUDA.

`ops.few_bits` says what each computes and how the numbers lie, `ops.few_bits_product` how they are read.
"""

import sys
from functools import cache

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch import Tensor

from kestrel_core.moondream.ops.early_launch import EARLY_DIM, launch_options, wait
from kestrel_core.moondream.ops.few_bits import TOGETHER, FewBits, padded_dim
from kestrel_core.moondream.ops.few_bits_product import fetch_rows, few_rows_product
from kestrel_core.moondream.ops.one_row_kernels import one_row_float8
from kestrel_core.moondream.ops.protocol import FEW_ROWS, Cut
from kestrel_core.moondream.ops.unpack_kernels import bytes_or_words as bytes_or_words
from kestrel_core.moondream.ops.unpack_kernels import unpack_into as unpack_into


@triton.jit(do_not_specialize=["num_rows"])  # one kernel for all counts
def _few_rows(
    x: tl.tensor,
    x_stride: tl.tensor,
    values: tl.tensor,
    scales: tl.tensor,
    y: tl.tensor,
    y_stride: tl.tensor,
    other_values: tl.tensor,
    other_scales: tl.tensor,
    bias: tl.tensor,
    out: tl.tensor,
    num_rows: tl.tensor,
    OUT_DIM: tl.constexpr,
    X_DIM: tl.constexpr,
    Y_DIM: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    INT4: tl.constexpr,
    OTHER_INT4: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    PARTS: tl.constexpr,
    EARLY: tl.constexpr,
) -> None:
    m = tl.arange(0, BLOCK_M)
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    valid, inside = m < num_rows, n < OUT_DIM
    if EARLY:
        fetch_rows(values, tl.minimum(n, OUT_DIM - 1), X_DIM, INT4)
    wait(EARLY)
    parts = few_rows_product(
        x,
        m * x_stride,
        valid,
        values,
        scales,
        n,
        inside,
        X_DIM,
        INT4,
        BLOCK_M,
        BLOCK_N,
        BLOCK_K,
        PARTS,
    )
    if Y_DIM > 0:
        parts += few_rows_product(
            y,
            m * y_stride,
            valid,
            other_values,
            other_scales,
            n,
            inside,
            Y_DIM,
            OTHER_INT4,
            BLOCK_M,
            BLOCK_N,
            BLOCK_K,
            PARTS,
        )
    _store(parts, bias, out, m, n, valid, inside, OUT_DIM, HAS_BIAS)


@triton.jit
def _store(
    parts: tl.tensor,
    bias: tl.tensor,
    out: tl.tensor,
    m: tl.tensor,
    n: tl.tensor,
    valid: tl.tensor,
    inside: tl.tensor,
    OUT_STRIDE: tl.constexpr,
    HAS_BIAS: tl.constexpr,
) -> None:
    total = tl.sum(parts, axis=0)  # [outputs, rows]
    if HAS_BIAS:
        total += tl.load(bias + n, mask=inside, other=0.0).to(tl.float32)[:, None]
    tl.store(
        out + m[None, :] * OUT_STRIDE + n[:, None],
        total.to(out.dtype.element_ty),
        mask=valid[None, :] & inside[:, None],
    )


@triton.jit(do_not_specialize=["num_rows"])
def _two_of_few_rows(
    x: tl.tensor,
    x_stride: tl.tensor,
    values: tl.tensor,
    scales: tl.tensor,
    other_values: tl.tensor,
    other_scales: tl.tensor,
    bias: tl.tensor,
    out: tl.tensor,
    num_rows: tl.tensor,
    OUT_DIM: tl.constexpr,
    OTHER_DIM: tl.constexpr,
    X_DIM: tl.constexpr,
    INT4: tl.constexpr,
    OTHER_INT4: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    PARTS: tl.constexpr,
    EARLY: tl.constexpr,
) -> None:
    """Programs of the first matrix, and then those of the other."""
    PROGRAMS: tl.constexpr = (OUT_DIM + BLOCK_N - 1) // BLOCK_N
    program = tl.program_id(0)
    m = tl.arange(0, BLOCK_M)
    valid = m < num_rows
    if program < PROGRAMS:
        n = program * BLOCK_N + tl.arange(0, BLOCK_N)
        if EARLY:
            fetch_rows(values, tl.minimum(n, OUT_DIM - 1), X_DIM, INT4)
        wait(EARLY)
        parts = few_rows_product(
            x,
            m * x_stride,
            valid,
            values,
            scales,
            n,
            n < OUT_DIM,
            X_DIM,
            INT4,
            BLOCK_M,
            BLOCK_N,
            BLOCK_K,
            PARTS,
        )
        _store(parts, bias, out, m, n, valid, n < OUT_DIM, OUT_DIM + OTHER_DIM, True)
    else:
        n = (program - PROGRAMS) * BLOCK_N + tl.arange(0, BLOCK_N)
        if EARLY:
            fetch_rows(other_values, tl.minimum(n, OTHER_DIM - 1), X_DIM, OTHER_INT4)
        wait(EARLY)
        parts = few_rows_product(
            x,
            m * x_stride,
            valid,
            other_values,
            other_scales,
            n,
            n < OTHER_DIM,
            X_DIM,
            OTHER_INT4,
            BLOCK_M,
            BLOCK_N,
            BLOCK_K,
            PARTS,
        )
        bias += OUT_DIM
        out += OUT_DIM
        _store(parts, bias, out, m, n, valid, n < OTHER_DIM, OUT_DIM + OTHER_DIM, True)


# A cut's warps have a part of the inputs each. Its depth is that of float8: nibbles are taken 256 at a time.


def cut_for(num_outputs: int, *matrices: FewBits) -> Cut:
    """With few outputs there is one program for each multiprocessor, which needs many warps and long loads.
    With many, several programs share one, and all of them should find room at once."""
    narrow = num_outputs <= 4096
    if any(w.kind == "int4" for w in matrices):
        return fitting(Cut(16, 128, 8 if narrow else 2, 3), *matrices)
    return fitting(Cut(16, 128, 8, 4) if narrow else Cut(16, 64, 4, 4), *matrices)


def fitting(cut: Cut, *matrices: FewBits) -> Cut:
    """With as many parts as every matrix has whole blocks for."""
    parts = cut.warps
    while any(_num_blocks(w, cut) % parts for w in matrices):
        parts //= 2
    return cut._replace(warps=parts)


def within(cut: Cut, block_m: int, item_bytes: int, limit: int, *matrices: FewBits) -> Cut:
    """With as many parts as a multiprocessor's shared memory holds: most GPUs have less than an H200."""
    part = 0
    for w in matrices:
        inputs, weights = (TOGETHER, TOGETHER // 2) if w.kind == "int4" else (cut.depth, cut.depth)
        part = max(part, cut.outputs * weights + block_m * inputs * item_bytes)
    while cut.warps > 1 and cut.warps * part * max(cut.stages - 1, 1) > limit:
        cut = cut._replace(warps=cut.warps // 2)
    return cut


@cache
def shared_bytes(device: torch.device) -> int:
    if device.type != "cuda":
        return sys.maxsize
    properties = torch.cuda.get_device_properties(device)
    return getattr(properties, "shared_memory_per_block_optin", 99 * 1024)  # no version types it


def _num_blocks(w: FewBits, cut: Cut) -> int:
    return padded_dim(w.in_dim) // TOGETHER if w.kind == "int4" else triton.cdiv(w.in_dim, cut.depth)


def linear(x: Tensor, w: FewBits, bias: Tensor | None, early: bool = False) -> Tensor:
    """`early`, here and below: for few rows, as `ops.early_launch` says."""
    if len(x) > FEW_ROWS:
        return F.linear(x, _unpacked(w, x.dtype), bias)
    if len(x) == 1 and w.kind == "fp8":
        return one_row_float8(x, w, None, None, bias, early)
    return few_rows(x, w, None, None, bias, cut_for(w.out_dim, w), early)


def linear_sum(x: Tensor, w: FewBits, y: Tensor, other: FewBits, bias: Tensor, early: bool = False) -> Tensor:
    if len(x) > FEW_ROWS:
        return F.linear(x, _unpacked(w, x.dtype), bias).addmm_(y, _unpacked(other, x.dtype).T)
    if len(x) == 1 and w.kind == other.kind == "fp8":
        return one_row_float8(x, w, y, other, bias, early)
    return few_rows(x, w, y, other, bias, cut_for(w.out_dim, w, other), early)


def few_rows(
    x: Tensor,
    w: FewBits,
    y: Tensor | None,
    other: FewBits | None,
    bias: Tensor | None,
    cut: Cut,
    early: bool = False,
) -> Tensor:
    out_dim = w.out_dim
    out = torch.empty((len(x), out_dim), dtype=x.dtype, device=x.device)
    of_y = w if other is None else other
    _few_rows[(triton.cdiv(out_dim, cut.outputs),)](
        x,
        x.stride(0),
        bytes_or_words(w),
        single_or_four(w),
        x if y is None else y,
        0 if y is None else y.stride(0),
        bytes_or_words(of_y),
        single_or_four(of_y),
        x if bias is None else bias,
        out,
        len(x),
        OUT_DIM=out_dim,
        X_DIM=w.in_dim,
        Y_DIM=0 if other is None else other.in_dim,
        HAS_BIAS=bias is not None,
        INT4=w.kind == "int4",
        OTHER_INT4=of_y.kind == "int4",
        **_options(cut, x, w, of_y),
        **launch_options(early and out_dim <= EARLY_DIM),
    )
    return out


def linear_beside(x: Tensor, w: FewBits, other: FewBits, bias: Tensor, early: bool = False) -> Tensor:
    if len(x) > FEW_ROWS:
        weight = torch.empty((w.out_dim + other.out_dim, w.in_dim), dtype=x.dtype, device=x.device)
        unpack_into(w, weight[: w.out_dim])
        unpack_into(other, weight[w.out_dim :])
        return F.linear(x, weight, bias)
    cut = cut_for(w.out_dim + other.out_dim, w, other)
    return few_rows_beside(x, w, other, bias, cut, early)


def few_rows_beside(
    x: Tensor, w: FewBits, other: FewBits, bias: Tensor, cut: Cut, early: bool = False
) -> Tensor:
    dims = w.out_dim, other.out_dim
    out = torch.empty((len(x), sum(dims)), dtype=x.dtype, device=x.device)
    _two_of_few_rows[(sum(triton.cdiv(dim, cut.outputs) for dim in dims),)](
        x,
        x.stride(0),
        bytes_or_words(w),
        single_or_four(w),
        bytes_or_words(other),
        single_or_four(other),
        bias,
        out,
        len(x),
        OUT_DIM=dims[0],
        OTHER_DIM=dims[1],
        X_DIM=w.in_dim,
        INT4=w.kind == "int4",
        OTHER_INT4=other.kind == "int4",
        **_options(cut, x, w, other),
        **launch_options(early and sum(dims) <= EARLY_DIM),
    )
    return out


def _options(cut: Cut, x: Tensor, *matrices: FewBits) -> dict[str, int]:
    block_m = 8 if len(x) <= 8 else 16
    cut = within(cut, block_m, x.element_size(), shared_bytes(x.device), *matrices)
    return {
        "BLOCK_M": block_m,
        "BLOCK_N": cut.outputs,
        "BLOCK_K": cut.depth,
        "PARTS": cut.warps,
        "num_warps": cut.warps,
        "num_stages": cut.stages,
    }


def single_or_four(w: FewBits) -> Tensor:
    """The scales as products take them: one by one, or those of four groups as one number."""
    return w.scales.view(torch.int64) if w.kind == "int4" else w.scales


def _unpacked(w: FewBits, dtype: torch.dtype) -> Tensor:
    out = torch.empty(w.shape, dtype=dtype, device=w.values.device)
    unpack_into(w, out)
    return out
