"""Random adapters for runtimes: room for a few, and some to load."""

from collections.abc import Mapping

import torch
from lora_rows import random_adapter

from kestrel_core.loop.step import Runtime
from kestrel_core.moondream.config import TextConfig
from kestrel_core.moondream.lora import Adapter, Stacks, Target

MAX_ADAPTERS, MAX_RANK = 3, 8


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
