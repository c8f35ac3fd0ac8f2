"""The products of experts in float8, for more than a few tokens: inputs and weights have 8 bits. Plain torch.

Inputs have one scale that is known beforehand, weights one for each row. `ops.float8_expert_kernels` computes
the same on CUDA.
"""

import torch
from torch import Tensor

from kestrel_core.moondream.ops.few_bits import FewBits, unpack
from kestrel_core.moondream.ops.plain import (
    adapt_pairs,
    geglu,
    grouped_product,
    invert,
    round_float8,
    sort_pairs,
)
from kestrel_core.moondream.ops.protocol import Pairs, StepAdapters


def experts_float8(
    h: Tensor,
    h8: Tensor,
    ids: Tensor,
    weights: Tensor,
    fc1: FewBits,
    fc2: FewBits,
    h_scale: float,
    inner_scale: float,
    adapters: StepAdapters | None = None,
) -> Pairs:
    """`h8` is h divided by its scale, in float8. Adapters are given h itself."""
    order, ends = sort_pairs(ids, len(fc1.values))
    token = order // ids.shape[1]
    u = _product(h8.view(torch.uint8)[token].view(h8.dtype), h_scale, fc1, ends, h.dtype)
    if adapters is not None:
        of_row, expert_of_row = adapters.rows.of_token[token], ids.flatten()[order]
        adapt_pairs(u, h[token], of_row, expert_of_row, adapters.of("expert_fc1"))
    inner = geglu(u)
    values = _product(round_float8(inner, inner_scale, gelu=False), inner_scale, fc2, ends, h.dtype)
    if adapters is not None:
        adapt_pairs(values, inner, of_row, expert_of_row, adapters.of("expert_fc2"))
    return Pairs(values, weights, invert(order))


def _product(x: Tensor, scale: float, matrices: FewBits, ends: Tensor, dtype: torch.dtype) -> Tensor:
    wide = x.to(torch.float32) * scale
    return grouped_product(wide, unpack(matrices, torch.float32), ends).to(dtype)
