"""The steps of a block that a device best runs in one go.

`ops.plain` says what each step computes, and runs everywhere; `ops.kernels` does the same on CUDA in one pass
over memory. Both are modules of functions with these signatures, which are handed to the fast paths.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from torch import Tensor, nn

from kestrel_core.moondream.lora import AdapterRows, LowRank, Target

FEW_ROWS = 16  # up to here reading the weights takes the time of a product, and tiles of 16 rows are enough


class Cut(NamedTuple):
    """How the work of a product is cut, where there are several ways."""

    outputs: int  # of a program
    depth: int  # inputs that it takes at a time
    warps: int
    stages: int = 3  # times as much as that is being loaded, and used
    rows: int = 16  # of inputs that a program has, where it has not all


class Norm(NamedTuple):
    weight: Tensor
    bias: Tensor
    eps: float

    @classmethod
    def of(cls, layer: nn.LayerNorm) -> "Norm":
        return cls(layer.weight, layer.bias, layer.eps)


class Pairs(NamedTuple):
    """Outputs of experts. A pair is a token and one of its experts: token * experts_per_token + rank."""

    values: Tensor  # [pairs, dim], not weighted
    weights: Tensor  # [tokens, experts_per_token]
    rows: Tensor | None  # [pairs]: the row of each pair's values; None: values are in the order of pairs


class Scaled(NamedTuple):
    """float8 numbers [rows, dim], to be multiplied by their row's scale, float32 [rows]."""

    values: Tensor
    scales: Tensor


class RotaryTables(NamedTuple):
    """Rotary, and the part of tau that depends on the position, for all positions. All float32."""

    cos: Tensor  # [positions, rotary_dim / 2]
    sin: Tensor
    log: Tensor  # [positions]: ln(position + 1)


class TauWeights(NamedTuple):
    matrix: Tensor  # [2 * heads, qkv_dim]: factors on queries, then on values
    alpha: Tensor  # [heads]


class Cells(NamedTuple):
    """One layer of the cache, and the cells of this step's tokens in it."""

    k: Tensor  # [cells, kv_heads, head_dim]
    v: Tensor
    cells: Tensor  # [tokens]
    k_scale: float = 1.0  # in float8, what its numbers are multiplied by when they are read
    v_scale: float = 1.0


class Heads(NamedTuple):
    num: int
    num_kv: int
    dim: int


class Rotated(NamedTuple):
    q: Tensor  # [tokens, heads, head_dim]
    k: Tensor  # [tokens, kv_heads, head_dim], or the whole layer of the cache where that was given
    v: Tensor
    inner: Tensor  # [tokens, inner_dim]


class StepAdapters(NamedTuple):
    """The adapters of a step's tokens in one block."""

    rows: AdapterRows
    layer: int

    def of(self, target: Target) -> LowRank:
        return self.rows.blocks[self.layer][target]


class Fused(Protocol):
    name: str
    early: bool  # whether its kernels for few rows are launched early, as `ops.early_launch` says

    def add_norm(
        self, x: Tensor, y: Tensor | None, pairs: Pairs | None, norm: Norm | None
    ) -> tuple[Tensor, Tensor]:
        """x + y + each token's weighted pairs, and the norm of that sum (the sum again, without a norm)."""
        ...

    def add_norm_float8(self, x: Tensor, y: Tensor | None, norm: Norm) -> tuple[Tensor, Scaled]: ...

    def add_norm_fixed(
        self, x: Tensor, y: Tensor | None, pairs: Pairs | None, norm: Norm, scale: float, keep: bool
    ) -> tuple[Tensor, Tensor | None, Tensor]:
        """As `add_norm`, with the norm in float8, divided by `scale`, and with `keep` also as it is."""
        ...

    def round_float8(self, x: Tensor, scale: float, gelu: bool) -> Tensor:
        """Numbers to float8, divided by `scale`, cut at its largest; with `gelu`, after the tanh GELU."""
        ...

    def quantise(self, x: Tensor, gelu: bool) -> Scaled:
        """Rows [rows, dim] to float8, each scaled by its largest number; with `gelu`, after the tanh GELU."""
        ...

    def linear(self, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor: ...

    def linear_sum(self, x: Tensor, weight: Tensor, y: Tensor, other: Tensor, bias: Tensor) -> Tensor:
        """The sum of two products, x with weight and y with other, and the bias."""
        ...

    def rotate(
        self,
        packed: Tensor,
        positions: Tensor,
        tables: RotaryTables,
        heads: Heads,
        tau: TauWeights | None,
        kv: Cells | None,
        inner_dim: int,
    ) -> Rotated:
        """What attention and the second matrices take, from rows of q, k, v and `inner_dim` more columns.

        Queries and keys are rotated, tau scales queries and values, and the other columns pass the tanh GELU.
        With `kv`, keys and values are written there. Columns behind these are not read.
        """
        ...

    def route(self, scores: Tensor, top: int) -> tuple[Tensor, Tensor]:
        """Each token's best experts, int32, and the softmax of their scores, both [tokens, top]."""
        ...

    def experts(
        self,
        h: Tensor,
        ids: Tensor,
        weights: Tensor,
        fc1: Tensor,
        fc2: Tensor,
        adapters: StepAdapters | None = None,
    ) -> Pairs: ...

    def shrink(self, inputs: Mapping[Target, Tensor], adapters: StepAdapters, low: Tensor | None) -> Tensor:
        """The A matrices of these targets times their inputs, as numbers that `expand` takes.

        They are added to those in `low`, if that is given. Targets with the same input come first.
        """
        ...

    def expand(
        self, y: Tensor, low: Tensor, targets: Sequence[Target], adapters: StepAdapters, beside: bool
    ) -> None:
        """Add the B matrices of these targets, times what `shrink` made of their inputs, to rows of y.

        With `beside`, their outputs are the first columns of y, one target's behind the other's; without,
        every target has all columns of y. Rows without an adapter are left alone.
        """
        ...
