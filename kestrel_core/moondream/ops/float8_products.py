"""Products of float8 matrices, with one scale for a matrix and one for its inputs, both known beforehand.

A float8 number has its own exponent, so one scale loses little against a scale for each row: numbers keep
their four digits down to a 28,000th of the largest. And one scale can be folded into what comes before and
behind a product, which leaves the product alone with its bytes.
"""

import logging
from typing import NamedTuple, Protocol

import torch
from torch import Tensor, nn

from kestrel_core.moondream.ops.few_bits import FewBits
from kestrel_core.moondream.ops.plain import FLOAT8, FLOAT8_MAX, round_float8
from kestrel_core.moondream.ops.protocol import Fused

log = logging.getLogger("kestrel")

ALIGNED = 16  # numbers: rows of float8 matrices have to begin at multiples of 16 bytes
TRIED = (96, 64, 32)  # rows, columns and depth of the product that is tried first
CLOSE = 0.02  # how far it may be off, as a share of its RMS


class FixedScale(NamedTuple):
    """Inputs of a product are divided by it and rounded to float8."""

    value: float
    inverse: Tensor  # float32 [1], on the device

    @classmethod
    def of(cls, largest: float, device: torch.device) -> "FixedScale":
        """`largest` becomes float8's largest number, and so does whatever is larger."""
        value = max(largest, 1e-12) / FLOAT8_MAX
        return cls(value, torch.tensor([1.0 / value], device=device))


class Matrix8(NamedTuple):
    """A linear layer in float8."""

    values: Tensor  # [out, in]
    scale: float
    factor: Tensor  # float32 [1], on the device: the matrix's scale times that of its inputs
    bias: Tensor | None
    dtype: torch.dtype  # of results

    def rows(self, start: int, stop: int) -> "Matrix8":
        bias = None if self.bias is None else self.bias[start:stop]
        return self._replace(values=self.values[start:stop], bias=bias)

    @property
    def few_bits(self) -> FewBits:
        """The same matrix for the products of few rows, whose inputs are not rounded."""
        scales = torch.full((len(self.values),), self.scale, device=self.values.device)
        return FewBits(self.values, scales, "fp8", self.values.shape[1])


@torch.no_grad()
def pack_float8(weight: Tensor, bias: Tensor | None, inputs: FixedScale) -> Matrix8:
    scale = max(float(weight.abs().max()), 1e-12) / FLOAT8_MAX
    values = (weight.float() / scale).clamp(-FLOAT8_MAX, FLOAT8_MAX).to(FLOAT8)
    factor = torch.tensor([scale * inputs.value], device=weight.device)
    return Matrix8(values, scale, factor, bias, weight.dtype)


def release(layer: nn.Module) -> None:
    """Give up a layer's own weight, of which there is a packed one now."""
    weight = layer.weight
    assert isinstance(weight, Tensor)
    layer.weight = nn.Parameter(weight.new_empty(0), requires_grad=False)


class Products(Protocol):
    name: str

    def linear(self, x: Tensor, matrix: Matrix8, add: Tensor | None = None) -> Tensor:
        """Rows of float8 times the matrix, plus its bias, plus `add`."""
        ...

    def gelu_linear(self, x: Tensor, matrix: Matrix8, scale: FixedScale) -> Tensor:
        """The tanh GELU of the product and the bias, in float8."""
        ...


class TorchProducts:
    """By torch's own call; GELU and rounding are another pass over the result."""

    name = "torch"

    def __init__(self, fused: Fused, device: torch.device) -> None:
        self._fused = fused
        self._one = torch.ones(1, device=device)

    def linear(self, x: Tensor, matrix: Matrix8, add: Tensor | None = None) -> Tensor:
        out = torch._scaled_mm(
            x,
            matrix.values.T,
            scale_a=self._one,
            scale_b=matrix.factor,
            bias=matrix.bias,
            out_dtype=matrix.dtype,
            use_fast_accum=True,
        )
        return out if add is None else out.add_(add)

    def gelu_linear(self, x: Tensor, matrix: Matrix8, scale: FixedScale) -> Tensor:
        return self._fused.round_float8(self.linear(x, matrix), scale.value, gelu=True)


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
    except (OSError, RuntimeError) as error:
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
