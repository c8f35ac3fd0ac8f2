"""Products of float8 matrices, with one scale for a matrix and one for its inputs, both known beforehand.

A float8 number has its own exponent, so one scale loses little against a scale for each row: numbers keep
their four digits down to a 28,000th of the largest. And one scale can be folded into what comes before and
behind a product, which leaves the product alone with its bytes.
"""

from typing import NamedTuple, Protocol

import torch
from torch import Tensor, nn

from kestrel_core.moondream.ops.few_bits import FewBits
from kestrel_core.moondream.ops.plain import FLOAT8_MAX, round_float8
from kestrel_core.moondream.ops.protocol import Fused

ALIGNED = 16  # numbers: rows of float8 matrices have to begin at multiples of 16 bytes


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
    values = round_float8(weight, scale, gelu=False)
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
