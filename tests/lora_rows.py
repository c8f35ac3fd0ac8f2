"""Random adapters on a device, and steps whose tokens use them: for tests of what computes with them."""

from collections.abc import Sequence

import torch
from random_adapters import random_adapter
from torch import Tensor

from kestrel_core.moondream.config import TextConfig
from kestrel_core.moondream.lora import Adapter, AdapterRows, Stacks


def filled_stacks(
    config: TextConfig,
    adapters: Sequence[Adapter],
    max_rank: int,
    device: torch.device | None = None,
    dtype: torch.dtype = torch.float32,
) -> Stacks:
    """Adapters at 1 and onwards. One place behind them is left free."""
    stacks = Stacks(config, len(adapters) + 1, max_rank, device or torch.device("cpu"), dtype)
    for index, adapter in enumerate(adapters, 1):
        piece = stacks.host_piece(pinned=False)
        stacks.ranks[index] = torch.tensor(stacks.write(adapter, piece))
        stacks.numbers[index] = piece
    return stacks


def mixed_stacks(
    config: TextConfig,
    max_rank: int,
    device: torch.device | None = None,
    dtype: torch.dtype = torch.float32,
) -> Stacks:
    """Four adapters: of the largest rank, of another, of a small one with few targets, and of rank 1."""
    adapters = [
        random_adapter(config, max_rank, seed=1),
        random_adapter(config, max(1, max_rank - 3), seed=2),
        random_adapter(config, max(1, max_rank // 3), ("fc1", "fc2", "expert_fc2", "input_proj"), seed=3),
        random_adapter(config, 1, ("qkv", "proj", "expert_fc1"), seed=4),
    ]
    return filled_stacks(config, adapters, max_rank, device, dtype)


def drawn(num_tokens: int, num_adapters: int = 4, seed: int = 0) -> Tensor:
    """An adapter for each token, or none."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, num_adapters + 1, (num_tokens,), generator=generator, dtype=torch.int32)


def adapter_rows(stacks: Stacks, of_token: Tensor, tile_size: int, spare_tiles: int = 3) -> AdapterRows:
    """With as many tiles as are needed, and some behind them that are not."""
    indices = of_token.tolist()
    order = sorted(range(len(indices)), key=lambda token: (indices[token] == 0, indices[token]))
    tiles: list[tuple[int, int, int]] = []
    first = 0
    while first < len(order) and indices[order[first]]:
        index, stop = indices[order[first]], first
        while stop < min(len(order), first + tile_size) and indices[order[stop]] == index:
            stop += 1
        tiles.append((index, first, stop))
        first = stop
    tiles += [(0, 0, 0)] * spare_tiles

    def ints(numbers: object) -> Tensor:
        return torch.tensor(numbers, dtype=torch.int32, device=stacks.numbers.device)

    return AdapterRows(stacks.blocks, ints(indices), ints(order), ints(tiles).view(-1, 3), tile_size, stacks)
