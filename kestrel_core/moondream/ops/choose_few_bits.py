"""What computes with weights of few bits on this device, and whether it can at all."""

import logging
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from kestrel_core.moondream.config import MoondreamConfig
from kestrel_core.moondream.ops.few_bits import FewBits
from kestrel_core.moondream.ops.float8_products import (
    ALIGNED,
    FixedScale,
    Products,
    TorchProducts,
    pack_float8,
)
from kestrel_core.moondream.ops.plain import round_float8
from kestrel_core.moondream.ops.protocol import Fused, Pairs

log = logging.getLogger("kestrel")

CAPABILITY = (8, 9)  # from here on a GPU multiplies float8 numbers
INT4_CAPABILITY = (8, 0)  # and from here on pairs of bfloat16, which packed numbers become
TRIED = (96, 64, 32)  # rows, columns and depth of the product that cuBLASLt is tried with
# How far it may be off, as a share of its RMS: torch's way rounds twice before float8 does, and a number that
# falls to the other side is off by a twelfth.
CLOSE = 0.05


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
    """Kernels of our own where `fused` is ours, and launched early where its are."""
    if fused.name == "torch":
        from kestrel_core.moondream.ops import few_bits

        return FewBitsOps(
            fused, few_bits.linear, few_bits.linear_sum, few_bits.experts_few, few_bits.linear_beside
        )
    from kestrel_core.moondream.ops import few_bits_expert_kernels, few_bits_kernels

    return FewBitsOps(
        fused,
        partial(few_bits_kernels.linear, early=fused.early),
        partial(few_bits_kernels.linear_sum, early=fused.early),
        partial(few_bits_expert_kernels.experts_few, early=fused.early),
        partial(few_bits_kernels.linear_beside, early=fused.early),
    )


def choose_float8(fused: Fused, device: torch.device, dtype: torch.dtype) -> Float8Ops:
    """Streams that run side by side need one each, since products have a workspace."""
    few, products = choose_few_bits(fused), choose_products(fused, device, dtype)
    if fused.name == "torch":
        from kestrel_core.moondream.ops import float8_experts

        return Float8Ops(few, products, float8_experts.experts_float8)
    from kestrel_core.moondream.ops import float8_expert_kernels

    return Float8Ops(few, products, float8_expert_kernels.experts_float8)


def choose_products(fused: Fused, device: torch.device, dtype: torch.dtype) -> Products:
    """cuBLASLt itself where it can be called and does what it should; otherwise torch's call of it.

    Streams that run side by side need products of their own, since these have a workspace.
    """
    plain = TorchProducts(fused, device)
    if device.type != "cuda" or dtype != torch.bfloat16:
        return plain
    from kestrel_core.moondream.ops.cublas import CublasProducts

    try:
        library = CublasProducts(plain, device)
        off = max(_deviations(library, plain, device))
    except (OSError, AttributeError, RuntimeError) as error:  # no library, no such function, or a refusal
        log.warning("GELU takes a pass of its own in float8, since cuBLASLt cannot be called: %s", error)
        return plain
    if not off < CLOSE:
        log.warning("GELU takes a pass of its own in float8, since cuBLASLt's result is off by %.3f", off)
        return plain
    return library


@torch.inference_mode()
def _deviations(library: Products, plain: Products, device: torch.device) -> list[float]:
    rows, columns, depth = TRIED
    seeded = torch.Generator().manual_seed(0)

    def randn(*shape: int) -> Tensor:
        return torch.randn(shape, generator=seeded).to(device, torch.bfloat16)

    inputs, inner = FixedScale.of(8.0, device), FixedScale.of(40.0, device)
    matrix = pack_float8(randn(columns, depth), randn(columns), inputs)
    x, add = round_float8(randn(rows, depth), inputs.value, gelu=False), randn(rows, columns)

    def results(products: Products) -> list[Tensor]:
        summed = products.linear(x, matrix._replace(bias=None), add)
        return [products.linear(x, matrix), summed, products.gelu_linear(x, matrix, inner)]

    pairs = zip(results(library), results(plain), strict=True)
    return [float((ours.float() - own.float()).norm() / own.float().norm()) for ours, own in pairs]


def why_not_few_bits(
    kind: str, config: MoondreamConfig, dtype: torch.dtype, capability: tuple[int, int] | None
) -> str | None:
    """What stands in the way, or None. `capability` is that of the CUDA device, None without one."""
    if capability is None:
        return "it needs a CUDA device"
    if dtype not in (torch.bfloat16, torch.float16):
        return f"it needs 16 bits for the rest, and dtype is {str(dtype).removeprefix('torch.')}"
    told = ".".join(map(str, capability))
    if kind == "int4":
        if capability < INT4_CAPABILITY:
            return f"this GPU's compute capability is {told}, and it needs 8.0"
        return None
    if capability < CAPABILITY:
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
