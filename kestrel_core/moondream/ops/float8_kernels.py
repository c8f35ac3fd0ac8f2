"""Numbers to float8 by a scale that is known beforehand, so that no row has to be seen whole first.

Bytes are all that counts here: two read and one written for each number.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from kestrel_core.moondream.ops.head_kernels import gelu_tanh
from kestrel_core.moondream.ops.rounding import to_float8

BLOCK = 4096


@triton.jit
def _round_float8(
    x: tl.tensor,
    out: tl.tensor,
    count: tl.tensor,
    inverse: tl.tensor,
    GELU: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    value = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
    if GELU:
        value = gelu_tanh(value)
    tl.store(out + at, to_float8(value, inverse, out.dtype.element_ty), mask=inside)


def round_float8(x: Tensor, scale: float, gelu: bool) -> Tensor:
    x = x.contiguous()
    out = torch.empty_like(x, dtype=torch.float8_e4m3fn)
    _round_float8[(triton.cdiv(x.numel(), BLOCK),)](
        x, out, x.numel(), 1.0 / scale, GELU=gelu, BLOCK=BLOCK, num_warps=8
    )
    return out
