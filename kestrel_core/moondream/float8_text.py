"""The text model in float8, with scales that were measured beforehand. `Text.forward` says what it computes.

Many rows are rounded too: norms write float8, GELU and its rounding are part of a product where cuBLASLt can
be called. Few rows, whose time is that of reading the weights, stay as they are and meet the same weights.
"""

from torch import Tensor

from kestrel_core.moondream.config import TextConfig
from kestrel_core.moondream.fast_text import FastText
from kestrel_core.moondream.few_bits_text import FewBitsTextBlock
from kestrel_core.moondream.lora import AdapterRows
from kestrel_core.moondream.ops.choose_few_bits import Float8Ops
from kestrel_core.moondream.ops.few_bits import FEW_ROWS
from kestrel_core.moondream.ops.float8_products import FixedScale, pack_float8
from kestrel_core.moondream.ops.protocol import Pairs, RotaryTables, StepAdapters
from kestrel_core.moondream.scales import InputScales
from kestrel_core.moondream.text import MLP, Attend, Block, Text


def float8_text(text: Text, ops: Float8Ops, scales: InputScales, free: bool = False) -> FastText:
    """With `free` each block's own matrices are given up as soon as they are packed."""

    def make(block: Block) -> Float8TextBlock:
        return Float8TextBlock(block, text.config, ops, scales, free)

    return FastText(text, ops.few.fused, make)


class Float8TextBlock(FewBitsTextBlock):
    def __init__(
        self, block: Block, config: TextConfig, ops: Float8Ops, scales: InputScales, free: bool
    ) -> None:
        self._ops = ops
        self._scales = scales
        super().__init__(block, config, ops.few, "fp8", free)

    def _take_weights(self, block: Block) -> None:
        attn, mlp, name = block.attn, block.mlp, f"text.blocks.{block.layer}"
        device = attn.qkv.weight.device
        self._h_scale = FixedScale.of(self._scales(f"{name}.attn.qkv"), device)
        self._mixed_scale = FixedScale.of(self._scales(f"{name}.attn.proj"), device)
        self._inner_scale = FixedScale.of(self._scales(f"{name}.mlp.fc2"), device)
        weight, self._bias = self._first_layer(block)
        self._first = pack_float8(weight, self._bias, self._h_scale)
        self._qkv_8 = self._first.rows(0, attn.qkv.out_features)
        self._fc1_8 = self._first.rows(attn.qkv.out_features, len(weight))
        self._proj_8 = pack_float8(attn.proj.weight, self._out_bias, self._mixed_scale)
        self._first_bits, self._proj_bits = self._first.few_bits, self._proj_8.few_bits
        if isinstance(mlp, MLP):
            self._fc2_8 = pack_float8(mlp.fc2.weight, None, self._inner_scale)
            self._fc2_bits = self._fc2_8.few_bits
        else:
            self._experts = self._packed(mlp.fc1.weight), self._packed(mlp.fc2.weight)

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
        if len(x) <= FEW_ROWS:
            return super().__call__(x, y, pairs, positions, tables, attend, rows)
        adapters = StepAdapters(rows, self._layer) if rows is not None else None
        keep = adapters is not None or not isinstance(self._mlp, MLP)
        x, h, h8 = self._fused.add_norm_fixed(x, y, pairs, self._norm, self._h_scale.value, keep)
        if h is None:
            return self._dense(x, h8, positions, tables, attend)
        return self._with_h(x, h, h8, positions, tables, attend, adapters)

    def _dense(
        self, x: Tensor, h8: Tensor, positions: Tensor, tables: RotaryTables, attend: Attend
    ) -> tuple[Tensor, Tensor, None]:
        """Where nothing comes between the first product and GELU."""
        products = self._ops.products
        mixed, _ = self._mix(products.linear(h8, self._qkv_8), 0, positions, tables, attend)
        inner8 = products.gelu_linear(h8, self._fc1_8, self._inner_scale)
        return x, self._second(mixed.flatten(1), inner8), None

    def _with_h(
        self,
        x: Tensor,
        h: Tensor,
        h8: Tensor,
        positions: Tensor,
        tables: RotaryTables,
        attend: Attend,
        adapters: StepAdapters | None,
    ) -> tuple[Tensor, Tensor, Pairs | None]:
        """Where adapters or a router need h itself."""
        mlp, inner8 = self._mlp, None
        packed = self._ops.products.linear(h8, self._first)
        low = self._adapt_first(packed, h, adapters) if adapters is not None else None
        mixed, inner = self._mix(packed, self._inner_dim, positions, tables, attend)
        mixed = mixed.flatten(1)
        if isinstance(mlp, MLP):
            inner8 = self._fused.round_float8(inner, self._inner_scale.value, gelu=False)
        y = self._second(mixed, inner8)
        if adapters is not None and low is not None:
            self._adapt_second(y, mixed, inner, low, adapters)
        if isinstance(mlp, MLP):
            return x, y, None
        ids, weights = self._route(h)
        scales = self._h_scale.value, self._inner_scale.value
        return x, y, self._ops.experts(h, h8, ids, weights, *self._experts, *scales, adapters)

    def _second(self, mixed: Tensor, inner8: Tensor | None) -> Tensor:
        mixed8 = self._fused.round_float8(mixed, self._mixed_scale.value, gelu=False)
        y = self._ops.products.linear(mixed8, self._proj_8)
        return y if inner8 is None else self._ops.products.linear(inner8, self._fc2_8, add=y)
