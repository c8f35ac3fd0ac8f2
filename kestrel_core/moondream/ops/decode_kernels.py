"""The kernels of `ops.kernels` as decoding with few rows wants them: all of `ops.protocol.Fused`.

One row goes through products that stream its weights, tau is computed where heads are rotated, and with
`early` the kernels of a step overlap at their ends (`ops.early_launch`). More rows are computed as ever.
"""

from torch import Tensor

from kestrel_core.moondream.ops import kernels
from kestrel_core.moondream.ops.early_launch import EARLY_DIM
from kestrel_core.moondream.ops.kernels import few_rows_product
from kestrel_core.moondream.ops.one_row_kernels import one_row_product, one_token_experts
from kestrel_core.moondream.ops.protocol import (
    FEW_ROWS,
    Cells,
    Heads,
    Norm,
    Pairs,
    RotaryTables,
    Rotated,
    StepAdapters,
    TauWeights,
)

TAU_INSIDE_ROWS = 8  # up to here; every head's program takes GELU of its whole row, which adds up


class DecodeKernels:
    name = kernels.name
    add_norm_float8 = staticmethod(kernels.add_norm_float8)
    add_norm_fixed = staticmethod(kernels.add_norm_fixed)
    round_float8 = staticmethod(kernels.round_float8)
    quantise = staticmethod(kernels.quantise)
    shrink = staticmethod(kernels.shrink)
    expand = staticmethod(kernels.expand)

    def __init__(self, early: bool) -> None:
        self.early = early

    def add_norm(
        self, x: Tensor, y: Tensor | None, pairs: Pairs | None, norm: Norm | None
    ) -> tuple[Tensor, Tensor]:
        # The first of a step follows anything, a copy perhaps, which nothing may overlap.
        follows_kernel = y is not None or pairs is not None
        few = len(x) <= FEW_ROWS
        return kernels.add_norm(x, y, pairs, norm, few, self.early and few and follows_kernel)

    def linear(self, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        if len(x) > FEW_ROWS:
            return kernels.linear(x, weight, bias)
        return self._product(x, weight, x[:, :0], weight[:, :0], bias)

    def linear_sum(self, x: Tensor, weight: Tensor, y: Tensor, other: Tensor, bias: Tensor) -> Tensor:
        if len(x) > FEW_ROWS:
            return kernels.linear_sum(x, weight, y, other, bias)
        return self._product(x, weight, y, other, bias)

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
        inside, early = len(packed) <= TAU_INSIDE_ROWS, self._is_early(packed)
        return kernels.rotate(packed, positions, tables, heads, tau, kv, inner_dim, inside, early)

    def route(self, scores: Tensor, top: int) -> tuple[Tensor, Tensor]:
        return kernels.route(scores, top, self._is_early(scores))

    def experts(
        self,
        h: Tensor,
        ids: Tensor,
        weights: Tensor,
        fc1: Tensor,
        fc2: Tensor,
        adapters: StepAdapters | None = None,
    ) -> Pairs:
        """With early launches, `route` must not be the launch before this."""
        if len(h) > 1 or adapters is not None:
            return kernels.experts(h, ids, weights, fc1, fc2, adapters)
        return Pairs(one_token_experts(h, ids, fc1, fc2, self.early), weights, None)

    def _product(self, x: Tensor, weight: Tensor, y: Tensor, other: Tensor, bias: Tensor) -> Tensor:
        if len(x) == 1:
            return one_row_product(x, weight, y, other, bias, self.early)
        return few_rows_product(x, weight, y, other, bias, self.early and len(weight) <= EARLY_DIM)

    def _is_early(self, rows: Tensor) -> bool:
        return self.early and len(rows) <= FEW_ROWS
