"""The text model with weights of few bits, and inputs as they are. `Text.forward` says what it computes.

The router keeps its weights, since a rounded score could choose another expert; adapters keep theirs.
"""

from copy import copy

import torch
from torch import Tensor, nn

from kestrel_core.moondream.config import TextConfig
from kestrel_core.moondream.fast_text import FastText, FastTextBlock
from kestrel_core.moondream.few_bits_layers import PackedExperts, PackedLinear
from kestrel_core.moondream.lora import AdapterRows
from kestrel_core.moondream.moe import Experts, MoE
from kestrel_core.moondream.ops.choose_few_bits import FewBitsOps, choose_few_bits
from kestrel_core.moondream.ops.few_bits import FewBits, Kind, pack_weights
from kestrel_core.moondream.ops.float8_products import release
from kestrel_core.moondream.ops.protocol import Fused, Pairs, RotaryTables, StepAdapters
from kestrel_core.moondream.text import MLP, Attend, Block, Text


def few_bits_text(text: Text, ops: FewBitsOps, kind: Kind, free: bool = False) -> FastText:
    """With `free` each block's own matrices are given up as soon as they are packed."""
    return FastText(text, ops.fused, lambda block: FewBitsTextBlock(block, text.config, ops, kind, free=free))


class FewBitsTextBlock(FastTextBlock):
    def __init__(
        self, block: Block, config: TextConfig, ops: FewBitsOps, kind: Kind = "fp8", free: bool = False
    ) -> None:
        self._few = ops
        self._kind = kind
        self._beside: FewBits | None = None  # the rest of the first matrices, in other bits
        super().__init__(block, config, ops.fused)
        if free:
            for layer in (block.attn.qkv, block.attn.proj, block.mlp.fc1, block.mlp.fc2):
                if not isinstance(layer, (PackedLinear, PackedExperts)):
                    release(layer)

    def _take_weights(self, block: Block) -> None:
        qkv, mlp = block.attn.qkv, block.mlp
        if isinstance(qkv, PackedLinear):
            self._take_first_packed(qkv, mlp)
        else:
            weight, self._bias = self._first_layer(block)
            self._first_bits = self._packed(weight)
        self._proj_bits = self._bits_of(block.attn.proj)
        if isinstance(mlp, MLP):
            self._fc2_bits = self._bits_of(mlp.fc2)
        else:
            self._experts = self._bits_of(mlp.fc1), self._bits_of(mlp.fc2)

    def _take_first_packed(self, qkv: PackedLinear, mlp: MLP | MoE) -> None:
        self._inner_dim = mlp.fc1.out_features if isinstance(mlp, MLP) else 0
        self._first_bits, self._bias = qkv.packed, qkv.bias
        if isinstance(mlp, MLP):
            self._beside, self._bias = self._bits_of(mlp.fc1), torch.cat((qkv.bias, mlp.fc1.bias))

    def _bits_of(self, layer: nn.Linear | Experts) -> FewBits:
        """A network for small GPUs is packed when it is loaded, others now."""
        if isinstance(layer, (PackedLinear, PackedExperts)):
            return layer.packed
        return self._packed(layer.weight)

    def _packed(self, weight: Tensor) -> FewBits:
        return pack_weights(weight, self._kind)

    def _first_layer(self, block: Block) -> tuple[Tensor, Tensor]:
        """The first matrices as one, and its bias."""
        qkv, mlp = block.attn.qkv, block.mlp
        self._inner_dim = mlp.fc1.out_features if isinstance(mlp, MLP) else 0
        if not isinstance(mlp, MLP):
            return qkv.weight, qkv.bias
        return torch.cat((qkv.weight, mlp.fc1.weight)), torch.cat((qkv.bias, mlp.fc1.bias))

    def computed_by(self, fused: Fused) -> "FewBitsTextBlock":
        other = copy(self)
        other._fused = fused
        other._few = choose_few_bits(fused)
        return other

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
        mlp, few = self._mlp, self._few
        x, h = self._fused.add_norm(x, y, pairs, self._norm)
        adapters = StepAdapters(rows, self._layer) if rows is not None else None
        if self._beside is None:
            packed = few.linear(h, self._first_bits, self._bias)
        else:
            packed = few.linear_beside(h, self._first_bits, self._beside, self._bias)
        low = self._adapt_first(packed, h, adapters) if adapters is not None else None
        # Long before the experts, whose weights can then be fetched early.
        routed = self._route(h) if not isinstance(mlp, MLP) else None
        mixed, inner = self._mix(packed, self._inner_dim, positions, tables, attend)
        mixed = mixed.flatten(1)
        del packed  # before the next matrices are unpacked, which takes as much again
        if isinstance(mlp, MLP):
            y = few.linear_sum(mixed, self._proj_bits, inner, self._fc2_bits, self._out_bias)
        else:
            y = few.linear(mixed, self._proj_bits, self._out_bias)
        if adapters is not None and low is not None:
            self._adapt_second(y, mixed, inner, low, adapters)
        if routed is None:
            return x, y, None
        return x, y, few.experts(h, *routed, *self._experts, adapters)

    def _route(self, h: Tensor) -> tuple[Tensor, Tensor]:
        mlp = self._mlp
        assert not isinstance(mlp, MLP)
        scores = self._fused.linear(h, mlp.router.weight, mlp.router.bias)
        return self._fused.route(scores, mlp.experts_per_token)
