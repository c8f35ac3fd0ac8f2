"""What computes in float8 on this device, and whether it can at all."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from kestrel_core.moondream.config import MoondreamConfig
from kestrel_core.moondream.ops.few_bits import FewBits
from kestrel_core.moondream.ops.float8_products import ALIGNED, Products, choose_products
from kestrel_core.moondream.ops.protocol import Fused, Pairs, StepAdapters

CAPABILITY = (8, 9)  # from here on a GPU multiplies float8 numbers


class FewRows(Protocol):
    """Products of few rows with weights of few bits."""

    def linear(self, x: Tensor, w: FewBits, bias: Tensor | None) -> Tensor: ...

    def linear_sum(self, x: Tensor, w: FewBits, y: Tensor, other: FewBits, bias: Tensor) -> Tensor: ...

    def experts_few(
        self,
        h: Tensor,
        ids: Tensor,
        weights: Tensor,
        fc1: FewBits,
        fc2: FewBits,
        adapters: StepAdapters | None = None,
    ) -> Pairs: ...


class Float8Ops(NamedTuple):
    fused: Fused
    products: Products
    few: FewRows
    experts: Callable[..., Pairs]  # as `ops.float8_experts.experts_float8`


def choose_float8(fused: Fused, device: torch.device, dtype: torch.dtype) -> Float8Ops:
    """Kernels of our own where `fused` is ours. Streams that run side by side need one each."""
    from kestrel_core.moondream.ops import few_bits, float8_experts

    products = choose_products(fused, device, dtype)
    if fused.name != "ours":
        return Float8Ops(fused, products, few_bits, float8_experts.experts_float8)
    from kestrel_core.moondream.ops import few_bits_kernels, float8_expert_kernels

    return Float8Ops(fused, products, few_bits_kernels, float8_expert_kernels.experts_float8)


def why_not_float8(
    config: MoondreamConfig, dtype: torch.dtype, capability: tuple[int, int] | None
) -> str | None:
    """What stands in float8's way, or None. `capability` is that of the CUDA device, None without one."""
    if capability is None:
        return "it needs a CUDA device"
    if capability < CAPABILITY:
        told = ".".join(map(str, capability))
        return f"this GPU's compute capability is {told}, and float8 products begin with 8.9"
    if dtype not in (torch.bfloat16, torch.float16):
        return f"results would be {str(dtype).removeprefix('torch.')}, and float8 products give 16 bits"
    vision, text = config.vision, config.text
    widths = {"enc_dim": vision.enc_dim, "enc_ff_dim": vision.enc_ff_dim, "dim": text.dim}
    widths |= {"ff_dim": text.ff_dim, "qkv_dim": text.qkv_dim}
    if text.moe is not None:
        widths["expert_inner_dim"] = text.moe.expert_inner_dim
    for name, width in widths.items():
        if width % ALIGNED:
            return f"the model's {name} is {width}, and float8 products need multiples of {ALIGNED}"
    return None
