"""Adapters with seeded random numbers, large enough to change what a tiny model says."""

from collections.abc import Collection

import torch

from kestrel_core.loop.step import Runtime
from kestrel_core.moondream.config import TextConfig
from kestrel_core.moondream.lora import TARGETS, Adapter, LowRank, Stacks, Target, rank_of, target_shapes

MAX_ADAPTERS, MAX_RANK = 3, 8


def random_adapter(
    config: TextConfig,
    seed: int,
    rank: int = 4,
    targets: Collection[Target] = TARGETS,
    dtype: torch.dtype = torch.float32,
) -> Adapter:
    generator = torch.Generator().manual_seed(1000 + seed)

    def randn(shape: tuple[int, ...], scale: float) -> torch.Tensor:
        return (scale * torch.randn(shape, generator=generator)).to(dtype)

    blocks = []
    for layer in range(config.n_layers):
        block: dict[Target, LowRank] = {}
        for target, shape in target_shapes(config, layer).items():
            if target in targets:
                own = rank_of(config, target, rank)
                a = randn(shape.a(own), shape.in_dim**-0.5)
                block[target] = LowRank(a, randn(shape.b(own), 0.5 * own**-0.5))
        blocks.append(block)
    return Adapter(f"adapter {seed}", rank, blocks)


def empty_stacks(
    config: TextConfig,
    device: str = "cpu",
    dtype: torch.dtype = torch.float32,
    max_adapters: int = MAX_ADAPTERS,
    max_rank: int = MAX_RANK,
) -> Stacks:
    return Stacks(config, max_adapters, max_rank, torch.device(device), dtype)


def load_all(runtime: Runtime, adapters: dict[int, Adapter]) -> None:
    for index, adapter in adapters.items():
        runtime.adapter_loader(index)(adapter)
