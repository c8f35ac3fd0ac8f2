"""The text model in as few passes over memory as possible. `Text.forward` says what it computes.

Besides the attention it is handed, a dense block takes four launches: the sum of the block before and its
norm; the block's first matrices as one product; all element-wise work on its result; the second matrices as
one product. Matrices that are multiplied together are stored together, and the model's parameters become
views of them. Adapters take four launches more, two before each sum of products that they are added to.
"""

from collections.abc import Callable
from copy import copy

import torch
from torch import Tensor, nn

from kestrel_core.moondream.config import TextConfig
from kestrel_core.moondream.lora import AdapterRows, Target
from kestrel_core.moondream.ops.plain import gelu_linear
from kestrel_core.moondream.ops.protocol import (
    Cells,
    Fused,
    Heads,
    Norm,
    Pairs,
    RotaryTables,
    StepAdapters,
    TauWeights,
)
from kestrel_core.moondream.text import MLP, Attend, Block, OpenAttend, Text, rotary_at

# Up to here one large product is faster than two; beyond, GELU is faster in the epilogue of a product.
PACKED_TOKENS = 256


class FastText:
    """A `Forward` over the weights of a text model. In bfloat16 it never waits for the device."""

    def __init__(
        self, text: Text, fused: Fused, make_block: "Callable[[Block], FastTextBlock] | None" = None
    ) -> None:
        """`make_block` makes other blocks than those of this module."""
        self.fused = fused
        self._blocks = [
            make_block(block) if make_block is not None else FastTextBlock(block, text.config, fused)
            for block in text.blocks
            if isinstance(block, Block)
        ]
        self._tables = make_rotary_tables(text.config, text.wte.device)

    def computed_by(self, fused: Fused) -> "FastText":
        """The same weights with these kernels."""
        if fused is self.fused:
            return self
        other = copy(self)
        other.fused = fused
        other._blocks = [block.computed_by(fused) for block in self._blocks]
        return other

    def __call__(
        self, x: Tensor, positions: Tensor, attend: Attend, adapters: AdapterRows | None = None
    ) -> Tensor:
        y, pairs = None, None
        for block in self._blocks:
            x, y, pairs = block(x, y, pairs, positions, self._tables, attend, adapters)
        return self.fused.add_norm(x, y, pairs, None)[0]


class FastTextBlock:
    """A block whose result the next block adds: it returns x and what is to be added to it."""

    def __init__(self, block: Block, config: TextConfig, fused: Fused) -> None:
        attn = block.attn
        self._fused = fused
        self._layer = block.layer
        self._norm = Norm.of(block.ln)
        self._heads = Heads(config.n_heads, config.n_kv_heads, config.head_dim)
        self._qkv, self._proj, self._mlp = attn.qkv, attn.proj, block.mlp
        self._tau = None
        if attn.tau is not None:
            self._tau = TauWeights(torch.cat((attn.tau.wq, attn.tau.wv)), attn.tau.alpha)
        bias: Tensor = attn.proj.bias
        self._out_bias = bias + block.mlp.fc2.bias if isinstance(block.mlp, MLP) else bias
        self._take_weights(block)

    def _take_weights(self, block: Block) -> None:
        attn = block.attn
        beside = block.mlp.fc1 if isinstance(block.mlp, MLP) else block.mlp.router
        self._weight, self._bias = pack(attn.qkv, beside)

    def computed_by(self, fused: Fused) -> "FastTextBlock":
        other = copy(self)
        other._fused = fused
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
        mlp, fused = self._mlp, self._fused
        x, h = fused.add_norm(x, y, pairs, self._norm)
        adapters = StepAdapters(rows, self._layer) if rows is not None else None
        low, routed = None, None
        if adapters is None and isinstance(mlp, MLP) and len(h) > PACKED_TOKENS:
            mixed, _ = self._mix(self._qkv(h), 0, positions, tables, attend)
            inner = gelu_linear(h, mlp.fc1)
        else:
            inner_dim = mlp.fc1.out_features if isinstance(mlp, MLP) else 0
            packed = fused.linear(h, self._weight, self._bias)
            if adapters is not None:  # they come before GELU, which is no part of this product
                low = self._adapt_first(packed, h, adapters)
            if not isinstance(mlp, MLP):  # long before the experts, whose weights can then be fetched early
                routed = fused.route(packed[:, self._qkv.out_features :], mlp.experts_per_token)
            mixed, inner = self._mix(packed, inner_dim, positions, tables, attend)
        mixed, proj = mixed.flatten(1), self._proj.weight
        if isinstance(mlp, MLP):
            y = fused.linear_sum(mixed, proj, inner, mlp.fc2.weight, self._out_bias)
        else:
            y = fused.linear(mixed, proj, self._out_bias)
        if adapters is not None and low is not None:
            self._adapt_second(y, mixed, inner, low, adapters)
        if isinstance(mlp, MLP) or routed is None:
            return x, y, None
        return x, y, fused.experts(h, *routed, mlp.fc1.weight, mlp.fc2.weight, adapters)

    def _adapt_first(self, packed: Tensor, h: Tensor, adapters: StepAdapters) -> Tensor:
        """All that adapters make of h is begun here; returns what is left for the second matrices."""
        first: tuple[Target, ...] = ("qkv", "fc1") if isinstance(self._mlp, MLP) else ("qkv",)
        low = self._fused.shrink(dict.fromkeys((*first, "input_proj"), h), adapters, None)
        self._fused.expand(packed, low, first, adapters, beside=True)
        return low

    def _adapt_second(
        self, y: Tensor, mixed: Tensor, inner: Tensor, low: Tensor, adapters: StepAdapters
    ) -> None:
        inputs: dict[Target, Tensor] = {"proj": mixed}
        if isinstance(self._mlp, MLP):
            inputs["fc2"] = inner
        low = self._fused.shrink(inputs, adapters, low)
        self._fused.expand(y, low, ("input_proj", *inputs), adapters, beside=False)

    def _mix(
        self, packed: Tensor, inner_dim: int, positions: Tensor, tables: RotaryTables, attend: Attend
    ) -> tuple[Tensor, Tensor]:
        kv = Cells(*attend.cells(self._layer)) if isinstance(attend, OpenAttend) else None
        rotated = self._fused.rotate(packed, positions, tables, self._heads, self._tau, kv, inner_dim)
        if isinstance(attend, OpenAttend):
            return attend.read(self._layer, rotated.q), rotated.inner
        return attend(self._layer, rotated.q, rotated.k, rotated.v), rotated.inner


def make_rotary_tables(config: TextConfig, device: torch.device) -> RotaryTables:
    longest = max(config.max_context, config.usable_context)
    at = rotary_at(torch.arange(longest, device=device), config)
    return RotaryTables(at.cos[:, 0].contiguous(), at.sin[:, 0].contiguous(), at.log[:, 0].contiguous())


@torch.no_grad()
def pack(*layers: nn.Linear) -> tuple[Tensor, Tensor]:
    """The weights and biases of layers with the same input, as one layer's. Their own become views."""
    weight = torch.cat([layer.weight for layer in layers])
    bias = torch.cat([layer.bias for layer in layers])
    sizes = [layer.out_features for layer in layers]
    for layer, rows, numbers in zip(layers, weight.split(sizes), bias.split(sizes), strict=True):
        layer.weight = nn.Parameter(rows, requires_grad=False)
        layer.bias = nn.Parameter(numbers, requires_grad=False)
    return weight, bias
