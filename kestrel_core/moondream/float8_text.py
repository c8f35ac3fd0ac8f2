"""The text model in float8, with scales that were measured beforehand. `Text.forward` says what it computes.

Many rows are rounded too: norms write float8, GELU and its rounding are part of a product where cuBLASLt can be
called. Few rows, whose time is that of reading the weights, stay as they are and meet the same float8 weights.
The router stays as it is, since a rounded score could choose another expert; so do adapters.
"""

import torch
from torch import Tensor

from kestrel_core.moondream.config import TextConfig
from kestrel_core.moondream.fast_text import FastText, FastTextBlock
from kestrel_core.moondream.lora import AdapterRows
from kestrel_core.moondream.ops.choose_float8 import Float8Ops
from kestrel_core.moondream.ops.few_bits import FEW_ROWS, FewBits, pack_weights
from kestrel_core.moondream.ops.float8_products import FixedScale, Matrix8, pack_float8, release
from kestrel_core.moondream.ops.protocol import Pairs, RotaryTables, StepAdapters
from kestrel_core.moondream.scales import InputScales
from kestrel_core.moondream.text import MLP, Attend, Block, Text


def float8_text(text: Text, ops: Float8Ops, scales: InputScales, free: bool = False) -> FastText:
    """With `free` each block's own matrices are given up as soon as they are packed."""

    def make(block: Block) -> Float8TextBlock:
        return Float8TextBlock(block, text.config, ops, scales, free)

    return FastText(text, ops.fused, make)


class Float8TextBlock(FastTextBlock):
    def __init__(
        self, block: Block, config: TextConfig, ops: Float8Ops, scales: InputScales, free: bool
    ) -> None:
        self._ops = ops
        self._scales = scales
        self._free = free
        super().__init__(block, config, ops.fused)

    def _take_weights(self, block: Block) -> None:
        attn, mlp, name = block.attn, block.mlp, f"text.blocks.{block.layer}"
        qkv, proj, device = attn.qkv, attn.proj, attn.qkv.weight.device
        self._h_scale = FixedScale.of(self._scales(f"{name}.attn.qkv"), device)
        self._mixed_scale = FixedScale.of(self._scales(f"{name}.attn.proj"), device)
        self._inner_scale = FixedScale.of(self._scales(f"{name}.mlp.fc2"), device)
        weight, bias = qkv.weight, qkv.bias
        if isinstance(mlp, MLP):
            weight, bias = torch.cat((weight, mlp.fc1.weight)), torch.cat((bias, mlp.fc1.bias))
            fc2 = pack_float8(mlp.fc2.weight, None, self._inner_scale)
            self._fc2_few: FewBits = fc2.few_bits
            self._fc2_8: Matrix8 = fc2
        else:
            self._router = mlp.router
            self._experts = tuple(pack_weights(part.weight, "fp8") for part in (mlp.fc1, mlp.fc2))
        self._first = pack_float8(weight, bias, self._h_scale)
        self._qkv_8 = self._first.rows(0, qkv.out_features)
        self._fc1_8 = self._first.rows(qkv.out_features, len(weight))
        self._proj_8 = pack_float8(proj.weight, self._out_bias, self._mixed_scale)
        self._first_few, self._proj_few = self._first.few_bits, self._proj_8.few_bits
        if self._free:
            for layer in (qkv, proj, mlp.fc1, mlp.fc2):
                release(layer)

    def __call__(
        self,
        x: Tensor,
        y: Tensor | None,
        pairs: Pairs | None,
        positions: Tensor,
        tables: RotaryTables,
        attend: Attend,
        rows: AdapterRows | None,
    ) -> tuple[Tensor, Tensor, Pairs | None]:
        adapters = StepAdapters(rows, self._layer) if rows is not None else None
        if len(x) <= FEW_ROWS:
            x, h = self._fused.add_norm(x, y, pairs, self._norm)
            return self._few_rows(x, h, positions, tables, attend, adapters)
        keep = adapters is not None or not isinstance(self._mlp, MLP)
        x, kept, h8 = self._fused.add_norm_fixed(x, y, pairs, self._norm, self._h_scale.value, keep)
        if kept is None:
            return self._dense(x, h8, positions, tables, attend)
        return self._many_rows(x, kept, h8, positions, tables, attend, adapters)

    def _dense(
        self, x: Tensor, h8: Tensor, positions: Tensor, tables: RotaryTables, attend: Attend
    ) -> tuple[Tensor, Tensor, None]:
        """Where nothing comes between the first product and GELU."""
        products = self._ops.products
        mixed, _ = self._mix(products.linear(h8, self._qkv_8), 0, positions, tables, attend)
        inner8 = products.gelu_linear(h8, self._fc1_8, self._inner_scale)
        return x, self._second(mixed.flatten(1), inner8), None

    def _second(self, mixed: Tensor, inner8: Tensor | None) -> Tensor:
        products = self._ops.products
        mixed8 = self._fused.round_float8(mixed, self._mixed_scale.value, gelu=False)
        y = products.linear(mixed8, self._proj_8)
        return y if inner8 is None else products.linear(inner8, self._fc2_8, add=y)

    def _many_rows(
        self,
        x: Tensor,
        h: Tensor,
        h8: Tensor,
        positions: Tensor,
        tables: RotaryTables,
        attend: Attend,
        adapters: StepAdapters | None,
    ) -> tuple[Tensor, Tensor, Pairs | None]:
        mlp, is_dense = self._mlp, isinstance(self._mlp, MLP)
        packed = self._ops.products.linear(h8, self._first)
        low = self._adapt_first(packed, h, adapters) if adapters is not None else None
        inner_dim = len(self._fc1_8.values) if is_dense else 0
        mixed, inner = self._mix(packed, inner_dim, positions, tables, attend)
        mixed, inner8 = mixed.flatten(1), None
        if is_dense:
            inner8 = self._fused.round_float8(inner, self._inner_scale.value, gelu=False)
        y = self._second(mixed, inner8)
        if adapters is not None and low is not None:
            self._adapt_second(y, mixed, inner, low, adapters)
        if isinstance(mlp, MLP):
            return x, y, None
        ids, weights = self._route(h)
        scales = self._h_scale.value, self._inner_scale.value
        return x, y, self._ops.experts(h, h8, ids, weights, *self._experts, *scales, adapters)

    def _few_rows(
        self,
        x: Tensor,
        h: Tensor,
        positions: Tensor,
        tables: RotaryTables,
        attend: Attend,
        adapters: StepAdapters | None,
    ) -> tuple[Tensor, Tensor, Pairs | None]:
        mlp, few, bias = self._mlp, self._ops.few, self._first.bias
        packed = few.linear(h, self._first_few, bias)
        low = self._adapt_first(packed, h, adapters) if adapters is not None else None
        inner_dim = len(self._fc1_8.values) if isinstance(mlp, MLP) else 0
        mixed, inner = self._mix(packed, inner_dim, positions, tables, attend)
        mixed = mixed.flatten(1)
        if isinstance(mlp, MLP):
            y = few.linear_sum(mixed, self._proj_few, inner, self._fc2_few, self._out_bias)
        else:
            y = few.linear(mixed, self._proj_few, self._out_bias)
        if adapters is not None and low is not None:
            self._adapt_second(y, mixed, inner, low, adapters)
        if isinstance(mlp, MLP):
            return x, y, None
        ids, weights = self._route(h)
        return x, y, few.experts_few(h, ids, weights, *self._experts, adapters)

    def _route(self, h: Tensor) -> tuple[Tensor, Tensor]:
        assert not isinstance(self._mlp, MLP)
        scores = self._fused.linear(h, self._router.weight, self._router.bias)
        return self._fused.route(scores, self._mlp.experts_per_token)
