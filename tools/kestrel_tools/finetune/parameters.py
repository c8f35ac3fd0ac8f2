"""The matrices that are trained: which there are, what they begin as, and the adapter that they make.

They are float32 whatever the network is, and are rounded to its dtype where they are used. Every token of a
training step has the same adapter, so there is no index: `adapt` computes what `lora.BlockAdapters` would.
"""

import math
from collections.abc import Iterator, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from kestrel_core.moondream.checkpoint.adapter_tensors import identity
from kestrel_core.moondream.config import MoondreamConfig
from kestrel_core.moondream.lora import Adapt, Adapter, LowRank, Target, rank_of, target_shapes

# By generation, unless others are asked for. Moondream 2's own format has a term for `proj` too, which reads
# another input than PEFT's; without it, both formats say the same. Moondream 3's own reaches the MLPs alone.
TRAINED: dict[int, tuple[Target, ...]] = {
    2: ("qkv", "fc1", "fc2"),
    3: ("fc1", "fc2", "expert_fc1", "expert_fc2"),
}


def trained(generation: int, names: str | None) -> tuple[Target, ...]:
    """The targets of names with commas between, where `mlp` is all matrices of an MLP."""
    if names is None:
        return TRAINED[generation]
    asked = names.split(",")
    attention: tuple[Target, ...] = ("qkv", "proj")
    return (*(target for target in attention if target in asked), *(TRAINED[3] if "mlp" in asked else ()))


class Parameters:
    def __init__(
        self,
        config: MoondreamConfig,
        rank: int,
        device: torch.device,
        seed: int = 0,
        targets: Sequence[Target] | None = None,
        blocks: int | None = None,
    ) -> None:
        """A is random, so that gradients reach B; B is 0, so that training begins at the model as it is.

        `blocks`: so many of the last ones. Those before them need no gradients, which saves their time.
        """
        generator = torch.Generator().manual_seed(seed)
        self.rank = rank
        targets = TRAINED[config.generation] if targets is None else targets
        first = 0 if blocks is None else config.text.n_layers - blocks
        self.blocks: list[dict[Target, LowRank]] = []
        for layer in range(config.text.n_layers):
            block: dict[Target, LowRank] = {}
            for target, shape in target_shapes(config.text, layer).items():
                if target in targets and layer >= first:
                    own_rank = rank_of(config.text, target, rank)
                    bound = math.sqrt(3.0 / shape.in_dim)  # a variance of 1 / in_dim
                    a = torch.empty(shape.a(own_rank)).uniform_(-bound, bound, generator=generator)
                    block[target] = LowRank(_leaf(a, device), _leaf(torch.zeros(shape.b(own_rank)), device))
            self.blocks.append(block)

    def named(self) -> Iterator[tuple[str, Tensor]]:
        for layer, block in enumerate(self.blocks):
            for target, low_rank in block.items():
                yield f"{layer}.{target}.a", low_rank.a
                yield f"{layer}.{target}.b", low_rank.b

    @property
    def targets(self) -> set[Target]:
        return {target for block in self.blocks for target in block}

    @property
    def num_numbers(self) -> int:
        return sum(tensor.numel() for _, tensor in self.named())

    def in_block(self, layer: int) -> Adapt:
        block = self.blocks[layer]

        def adapt(
            target: Target, x: Tensor, y: Tensor, tokens: Tensor | None = None, expert: int = 0
        ) -> Tensor:
            if target not in block:
                return y
            a, b = (m[expert] if m.ndim == 3 else m for m in block[target])
            return y + F.linear(F.linear(x, a.to(x.dtype)), b.to(x.dtype))

        return adapt

    def copy(self) -> dict[str, Tensor]:
        """All matrices on the host."""
        return {name: tensor.detach().cpu().clone() for name, tensor in self.named()}

    @torch.no_grad()
    def load(self, copied: dict[str, Tensor]) -> None:
        for name, tensor in self.named():
            tensor.copy_(copied[name])

    def adapter(self, dtype: torch.dtype) -> Adapter:
        """As it is stored, in this dtype."""
        blocks = [
            {
                target: LowRank(*(m.detach().to("cpu", dtype).contiguous() for m in low_rank))
                for target, low_rank in block.items()
            }
            for block in self.blocks
        ]
        return Adapter(identity(blocks), self.rank, blocks)


def _leaf(tensor: Tensor, device: torch.device) -> Tensor:
    return tensor.to(device).requires_grad_()
