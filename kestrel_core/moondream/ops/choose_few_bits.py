"""What computes with weights of few bits on this device, and whether it can at all."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from kestrel_core.moondream.config import MoondreamConfig
from kestrel_core.moondream.ops.few_bits import FewBits
from kestrel_core.moondream.ops.float8_products import ALIGNED, Products, choose_products
from kestrel_core.moondream.ops.protocol import Fused, Pairs

CAPABILITY = (8, 9)  # from here on a GPU multiplies float8 numbers


class Linear(Protocol):
    def __call__(self, x: Tensor, w: FewBits, bias: Tensor | None) -> Tensor: ...


class LinearSum(Protocol):
    def __call__(self, x: Tensor, w: FewBits, y: Tensor, other: FewBits, bias: Tensor) -> Tensor: ...


class LinearBeside(Protocol):
    def __call__(self, x: Tensor, w: FewBits, other: FewBits, bias: Tensor) -> Tensor: ...


class FewBitsOps(NamedTuple):
    """As in `ops.few_bits`, which says what they compute."""

    fused: Fused
    linear: Linear
    linear_sum: LinearSum
    experts: Callable[..., Pairs]
    linear_beside: LinearBeside


class Float8Ops(NamedTuple):
    few: FewBitsOps
    products: Products
    experts: Callable[..., Pairs]  # as `ops.float8_experts.experts_float8`


def choose_few_bits(fused: Fused) -> FewBitsOps:
    """Kernels of our own where `fused` is ours."""
    if fused.name != "ours":
        from kestrel_core.moondream.ops import few_bits

        return FewBitsOps(
            fused, few_bits.linear, few_bits.linear_sum, few_bits.experts_few, few_bits.linear_beside
        )
    from kestrel_core.moondream.ops import few_bits_expert_kernels, few_bits_kernels

    return FewBitsOps(
        fused,
        few_bits_kernels.linear,
        few_bits_kernels.linear_sum,
        few_bits_expert_kernels.experts_few,
        few_bits_kernels.linear_beside,
    )


def choose_float8(fused: Fused, device: torch.device, dtype: torch.dtype) -> Float8Ops:
    """Streams that run side by side need one each, since products have a workspace."""
    few, products = choose_few_bits(fused), choose_products(fused, device, dtype)
    if fused.name != "ours":
        from kestrel_core.moondream.ops import float8_experts

        return Float8Ops(few, products, float8_experts.experts_float8)
    from kestrel_core.moondream.ops import float8_expert_kernels

    return Float8Ops(few, products, float8_expert_kernels.experts_float8)


def why_not_few_bits(
    kind: str, config: MoondreamConfig, dtype: torch.dtype, capability: tuple[int, int] | None
) -> str | None:
    """What stands in the way, or None. `capability` is that of the CUDA device, None without one."""
    if capability is None:
        return "it needs a CUDA device"
    if dtype not in (torch.bfloat16, torch.float16):
        return f"it needs 16 bits for the rest, and dtype is {str(dtype).removeprefix('torch.')}"
    if kind == "int4":
        return None
    if capability < CAPABILITY:
        told = ".".join(map(str, capability))
        return f"this GPU's compute capability is {told}, and float8 products begin with 8.9"
    vision, text = config.vision, config.text
    widths = {"enc_dim": vision.enc_dim, "enc_ff_dim": vision.enc_ff_dim, "dim": text.dim}
    widths |= {"ff_dim": text.ff_dim, "qkv_dim": text.qkv_dim}
    if text.moe is not None:
        widths["expert_inner_dim"] = text.moe.expert_inner_dim
    for name, width in widths.items():
        if width % ALIGNED:
            return f"the model's {name} is {width}, and float8 products need multiples of {ALIGNED}"
    return None
