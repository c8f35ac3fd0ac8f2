"""Products with a matrix in 8 or 4 bits, as parts of kernels. `ops.few_bits` says how its numbers lie.

For few rows a program has 16 or more outputs and all of their weights, which it reads once. Its warps have
the same outputs and different inputs: there are enough warps to convert as fast as memory delivers, even
where a matrix has few outputs. The matrix is the left operand, since its tiles need at least 16 rows, and the
rows of inputs, of which there may be one, are the right one, whose tiles need 8. For many rows the warps have
different outputs.
"""

import triton
import triton.language as tl

from kestrel_core.moondream.ops.early_launch import FETCHED_LINES, LINE_BYTES, prefetch

LINE = tl.constexpr(LINE_BYTES)
LINES = tl.constexpr(FETCHED_LINES)
INTERPRETED = tl.constexpr(triton.knobs.runtime.interpret)  # where there are no instructions of a device

# Two words of 16 bits to four pairs of bfloat16: a nibble under the exponent of 128 is 128 + nibble, and
# 136 less is what it stands for. All of it is exact.
STEPS = tl.constexpr(
    """{
    .reg .b32 second, third, fourth, one, less;
    mov.b32 one, 0x3f803f80;
    mov.b32 less, 0xc308c308;
    shr.u32 second, $4, 4;
    shr.u32 third, $4, 8;
    shr.u32 fourth, $4, 12;
    lop3.b32 $0, $4, 0x000f000f, 0x43004300, 0xea;
    lop3.b32 $1, second, 0x000f000f, 0x43004300, 0xea;
    lop3.b32 $2, third, 0x000f000f, 0x43004300, 0xea;
    lop3.b32 $3, fourth, 0x000f000f, 0x43004300, 0xea;
    fma.rn.bf16x2 $0, $0, one, less;
    fma.rn.bf16x2 $1, $1, one, less;
    fma.rn.bf16x2 $2, $2, one, less;
    fma.rn.bf16x2 $3, $3, one, less;
    }"""
)
# Four float8 numbers to two pairs of bfloat16: their bits fit under a wider exponent, where they stand for
# 2^-120 of what they were. This is exact too; the instruction that converts them is slower than memory is,
# and older devices have none.
WIDER = tl.constexpr(
    """{
    .reg .b32 a, b, c, d, zero, large;
    mov.b32 zero, 0x80008000;
    mov.b32 large, 0x7b807b80;
    prmt.b32 a, $2, 0, 0x1404;
    prmt.b32 b, $2, 0, 0x3424;
    shr.u32 c, a, 4;
    shr.u32 d, b, 4;
    and.b32 c, c, 0x07f007f0;
    and.b32 d, d, 0x07f007f0;
    lop3.b32 a, a, 0x80008000, c, 0xea;
    lop3.b32 b, b, 0x80008000, d, 0xea;
    fma.rn.bf16x2 $0, a, large, zero;
    fma.rn.bf16x2 $1, b, large, zero;
    }"""
)
# The same to four numbers of float32: the sign is spread by the shift, and all but its first copy is cut off.
WIDEST = tl.constexpr(
    """{
    .reg .b32 first, second, third, fourth;
    shl.b32 first, $4, 24;
    shl.b32 second, $4, 16;
    shl.b32 third, $4, 8;
    shr.s32 first, first, 4;
    shr.s32 second, second, 4;
    shr.s32 third, third, 4;
    shr.s32 fourth, $4, 4;
    and.b32 $0, first, 0x87f00000;
    and.b32 $1, second, 0x87f00000;
    and.b32 $2, third, 0x87f00000;
    and.b32 $3, fourth, 0x87f00000;
    }"""
)
# By the instruction that converts pairs, which devices have from 8.9 on.
CONVERTED = tl.constexpr(
    """{
    .reg .b16 low, high, first, second, third, fourth;
    .reg .b32 a, b;
    mov.b32 {low, high}, $4;
    cvt.rn.f16x2.e4m3x2 a, low;
    cvt.rn.f16x2.e4m3x2 b, high;
    mov.b32 {first, second}, a;
    mov.b32 {third, fourth}, b;
    cvt.f32.f16 $0, first;
    cvt.f32.f16 $1, second;
    cvt.f32.f16 $2, third;
    cvt.f32.f16 $3, fourth;
    }"""
)


@triton.jit
def fetch_rows(values: tl.tensor, rows: tl.tensor, IN_DIM: tl.constexpr, INT4: tl.constexpr) -> None:
    """Have the beginnings of these rows fetched: the first turns of a product's loop read them."""
    ROW: tl.constexpr = (IN_DIM + 255) // 256 * 64 if INT4 else IN_DIM  # words of 16 bits, or bytes
    AT_ONCE: tl.constexpr = LINE // 2 if INT4 else LINE
    at = tl.minimum(tl.arange(0, LINES) * AT_ONCE, ROW - 1)
    prefetch(values + rows.to(tl.int64)[:, None] * ROW + at[None, :])


@triton.jit
def steps_of(words: tl.tensor) -> tuple[tl.tensor, tl.tensor, tl.tensor, tl.tensor]:
    """The steps from -8 to 7 of four groups, whose nibbles share these words."""
    if INTERPRETED:
        first = ((words & 15) - 8).to(tl.float32)
        second = (((words >> 4) & 15) - 8).to(tl.float32)
        third = (((words >> 8) & 15) - 8).to(tl.float32)
        fourth = (((words >> 12) & 15) - 8).to(tl.float32)
    else:
        first, second, third, fourth = tl.inline_asm_elementwise(
            STEPS,
            "=r,=r,=r,=r,r",
            [words],
            dtype=(tl.bfloat16, tl.bfloat16, tl.bfloat16, tl.bfloat16),
            is_pure=True,
            pack=2,
        )
    return first, second, third, fourth


@triton.jit
def _interpreted(values: tl.tensor) -> tl.tensor:
    exponent = ((values >> 3) & 15).to(tl.float32)
    fraction = (values & 7).to(tl.float32)
    small = tl.where(exponent == 0, fraction / 512, (8 + fraction) * tl.exp2(exponent - 10))
    return tl.where((values >> 7) > 0, -small, small)


@triton.jit
def wider(values: tl.tensor) -> tl.tensor:
    """The numbers behind the bytes of float8 ones."""
    if INTERPRETED:
        wide = _interpreted(values)
    else:
        wide = tl.inline_asm_elementwise(WIDER, "=r,=r,r", [values], dtype=tl.bfloat16, is_pure=True, pack=4)
    return wide


@triton.jit
def widest(values: tl.tensor, CONVERT: tl.constexpr) -> tl.tensor:
    """2^-120 of the same numbers in float32; with CONVERT the numbers themselves."""
    if INTERPRETED:
        wide = _interpreted(values) * (1.0 if CONVERT else 2.0**-120)
    elif CONVERT:
        wide = tl.inline_asm_elementwise(
            CONVERTED, "=r,=r,=r,=r,r", [values], dtype=tl.float32, is_pure=True, pack=4
        )
    else:
        wide = tl.inline_asm_elementwise(
            WIDEST, "=r,=r,=r,=r,r", [values], dtype=tl.float32, is_pure=True, pack=4
        )
    return wide


@triton.jit
def scales_of(four: tl.tensor) -> tuple[tl.tensor, tl.tensor, tl.tensor, tl.tensor]:
    """Four bfloat16 numbers that were loaded together, in float32."""
    low, high = four.to(tl.int32), (four >> 32).to(tl.int32)
    first = (low << 16).to(tl.float32, bitcast=True)
    second = (low & -65536).to(tl.float32, bitcast=True)
    third = (high << 16).to(tl.float32, bitcast=True)
    fourth = (high & -65536).to(tl.float32, bitcast=True)
    return first, second, third, fourth


@triton.jit
def _add_group(
    total: tl.tensor,
    inputs: tl.tensor,
    valid: tl.tensor,
    known: tl.tensor,
    steps: tl.tensor,
    scale: tl.tensor,
    EVEN: tl.constexpr,
) -> tl.tensor:
    """total and the products with one group of 64 inputs of each part."""
    h = tl.load(inputs, mask=valid if EVEN else valid & known, other=0.0)
    part = tl.dot(steps.to(h.dtype), tl.permute(h, (0, 2, 1)), input_precision="ieee")
    return total + part * scale[:, :, None]


@triton.jit
def int4_product(
    x: tl.tensor,
    rows: tl.tensor,
    valid: tl.tensor,
    values: tl.tensor,
    scales: tl.tensor,
    n: tl.tensor,
    inside: tl.tensor,
    IN_DIM: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    PARTS: tl.constexpr,
) -> tl.tensor:
    """[PARTS, BLOCK_N, BLOCK_M]: outputs n of rows of x, which begin at `rows`; their parts are to be summed.

    values: words of 16 bits. scales: those of four groups as one number. PARTS divides the blocks of 256.
    """
    BLOCKS: tl.constexpr = (IN_DIM + 255) // 256
    EVEN: tl.constexpr = IN_DIM % 256 == 0
    part = tl.arange(0, PARTS)
    k = tl.arange(0, 64)
    place = part[:, None, None] * 256 + k[None, None, :]
    inputs = x + rows[None, :, None] + place
    words = values + part[:, None, None] * 64 + n[None, :, None] * (BLOCKS * 64) + k[None, None, :]
    factors = scales + part[:, None] + n[None, :] * BLOCKS
    valid, inside = valid[None, :, None], inside[None, :]
    total = tl.zeros((PARTS, BLOCK_N, BLOCK_M), tl.float32)
    four = tl.load(factors, mask=inside, other=0)
    for block in range(0, BLOCKS, PARTS):
        s0, s1, s2, s3 = scales_of(four)
        # Those of the next blocks, since nothing else keeps a warp from waiting for them.
        four = tl.load(factors + block + PARTS, mask=inside & (block + PARTS < BLOCKS), other=0)
        packed = tl.load(words + block * 64, mask=inside[:, :, None], other=0)
        first, second, third, fourth = steps_of(packed)
        h, left = inputs + block * 256, IN_DIM - block * 256
        total = _add_group(total, h, valid, place < left, first, s0, EVEN)
        total = _add_group(total, h + 64, valid, place + 64 < left, second, s1, EVEN)
        total = _add_group(total, h + 128, valid, place + 128 < left, third, s2, EVEN)
        total = _add_group(total, h + 192, valid, place + 192 < left, fourth, s3, EVEN)
    return total


@triton.jit
def fp8_product(
    x: tl.tensor,
    rows: tl.tensor,
    valid: tl.tensor,
    values: tl.tensor,
    scales: tl.tensor,
    n: tl.tensor,
    inside: tl.tensor,
    IN_DIM: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    PARTS: tl.constexpr,
) -> tl.tensor:
    """The same for a float8 matrix, given as bytes."""
    EVEN: tl.constexpr = IN_DIM % (PARTS * BLOCK_K) == 0
    place = tl.arange(0, PARTS)[:, None, None] * BLOCK_K + tl.arange(0, BLOCK_K)[None, None, :]
    inputs = x + rows[None, :, None] + place
    weights = values + n[None, :, None] * IN_DIM + place
    row_known, n_known = valid[None, :, None], inside[None, :, None]
    total = tl.zeros((PARTS, BLOCK_N, BLOCK_M), tl.float32)
    for at in range(0, IN_DIM, PARTS * BLOCK_K):
        known = at + place < IN_DIM
        h = tl.load(inputs + at, mask=row_known if EVEN else row_known & known, other=0.0)
        w = tl.load(weights + at, mask=n_known if EVEN else n_known & known, other=0)
        total = tl.dot(wider(w).to(h.dtype), tl.permute(h, (0, 2, 1)), total, input_precision="ieee")
    return total * tl.load(scales + n, mask=inside, other=0.0)[None, :, None]


@triton.jit
def few_rows_product(
    x: tl.tensor,
    rows: tl.tensor,
    valid: tl.tensor,
    values: tl.tensor,
    scales: tl.tensor,
    n: tl.tensor,
    inside: tl.tensor,
    IN_DIM: tl.constexpr,
    INT4: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    PARTS: tl.constexpr,
) -> tl.tensor:
    if INT4:
        total = int4_product(x, rows, valid, values, scales, n, inside, IN_DIM, BLOCK_M, BLOCK_N, PARTS)
    else:
        total = fp8_product(
            x, rows, valid, values, scales, n, inside, IN_DIM, BLOCK_M, BLOCK_N, BLOCK_K, PARTS
        )
    return total


@triton.jit
def _group_of_tile(
    total: tl.tensor, inputs: tl.tensor, mask: tl.tensor, steps: tl.tensor, scale: tl.tensor
) -> tl.tensor:
    h = tl.load(inputs, mask=mask, other=0.0)
    return total + tl.dot(steps.to(h.dtype), tl.trans(h), input_precision="ieee") * scale[:, None]


@triton.jit
def many_rows_product(
    x: tl.tensor,
    rows: tl.tensor,
    valid: tl.tensor,
    values: tl.tensor,
    scales: tl.tensor,
    n: tl.tensor,
    inside: tl.tensor,
    IN_DIM: tl.constexpr,
    INT4: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
) -> tl.tensor:
    """[BLOCK_N, BLOCK_M]: outputs n of rows of x, which begin at `rows`."""
    total = tl.zeros((BLOCK_N, BLOCK_M), tl.float32)
    valid = valid[:, None]
    if INT4:
        BLOCKS: tl.constexpr = (IN_DIM + 255) // 256
        k = tl.arange(0, 64)
        inputs = x + rows[:, None] + k[None, :]
        words = values + n[:, None] * (BLOCKS * 64) + k[None, :]
        factors, k = scales + n * BLOCKS, k[None, :]
        for block in range(0, BLOCKS):
            s0, s1, s2, s3 = scales_of(tl.load(factors + block, mask=inside, other=0))
            packed = tl.load(words + block * 64, mask=inside[:, None], other=0)
            first, second, third, fourth = steps_of(packed)
            h, left = inputs + block * 256, IN_DIM - block * 256
            total = _group_of_tile(total, h, valid & (k < left), first, s0)
            total = _group_of_tile(total, h + 64, valid & (k + 64 < left), second, s1)
            total = _group_of_tile(total, h + 128, valid & (k + 128 < left), third, s2)
            total = _group_of_tile(total, h + 192, valid & (k + 192 < left), fourth, s3)
    else:
        k = tl.arange(0, BLOCK_K)
        inputs = x + rows[:, None] + k[None, :]
        weights = values + n[:, None] * IN_DIM + k[None, :]
        for at in range(0, IN_DIM, BLOCK_K):
            known = (at + k)[None, :] < IN_DIM
            h = tl.load(inputs + at, mask=valid & known, other=0.0)
            w = tl.load(weights + at, mask=inside[:, None] & known, other=0)
            total = tl.dot(wider(w).to(h.dtype), tl.trans(h), total, input_precision="ieee")
        total *= tl.load(scales + n, mask=inside, other=0.0)[:, None]
    return total
