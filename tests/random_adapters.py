"""Adapters with seeded random numbers, large enough to change what a tiny model says."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
import torch

from kestrel_core.loop.step import Runtime
from kestrel_core.moondream.checkpoint.adapter_files import read_adapter
from kestrel_core.moondream.config import TextConfig
from kestrel_core.moondream.lora import TARGETS, Adapter, LowRank, Stacks, Target, rank_of, target_shapes
from kestrel_core.protocol.errors import BadAdapter

MAX_ADAPTERS, MAX_RANK = 3, 8


def random_adapter(
    config: TextConfig, rank: int, targets: Sequence[Target] = TARGETS, seed: int = 0
) -> Adapter:
    generator = torch.Generator().manual_seed(seed)

    def randn(shape: tuple[int, ...], scale: float) -> torch.Tensor:
        return scale * torch.randn(shape, generator=generator)

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


def some_adapters(config: TextConfig) -> dict[int, Adapter]:
    """One for each index, of different ranks; the last one reaches only few matrices."""
    few: tuple[Target, ...] = ("fc2", "proj", "expert_fc1")
    return {
        1: random_adapter(config, 4, seed=1),
        2: random_adapter(config, MAX_RANK, seed=2),
        3: random_adapter(config, 1, few, seed=3),
    }


def empty_stacks(
    config: TextConfig, device: str = "cpu", dtype: torch.dtype = torch.float32, max_rank: int = MAX_RANK
) -> Stacks:
    return Stacks(config, MAX_ADAPTERS, max_rank, torch.device(device), dtype)


def load_all(runtime: Runtime, adapters: Mapping[int, Adapter]) -> None:
    for index, adapter in adapters.items():
        runtime.adapter_loader(index)(adapter)


def refused_adapter(
    path: Path, config: TextConfig, max_rank: int = MAX_RANK, dtype: torch.dtype = torch.float32
) -> str:
    """Why the adapter there is refused: in one sentence, without its path."""
    with pytest.raises(BadAdapter) as caught:
        read_adapter(path, config, dtype, max_rank)
    message = str(caught.value)
    assert "\n" not in message and ". " not in message
    assert str(path.parent) not in message
    return message
