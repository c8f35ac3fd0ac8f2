"""Adapters of seeded random numbers as files, in the format of a model's generation: to measure and mix."""

from collections.abc import Sequence
from pathlib import Path

import torch

from kestrel_core.moondream.checkpoint.adapter_formats import MOONDREAM2, MOONDREAM3
from kestrel_core.moondream.checkpoint.adapter_writing import write_moondream
from kestrel_core.moondream.config import TextConfig
from kestrel_core.moondream.lora import Adapter, LowRank, Target, rank_of, target_shapes


def write_random_adapters(
    folder: Path, config: TextConfig, ranks: Sequence[int], strength: float = 0.5
) -> list[str]:
    """One for each rank, in bfloat16. Returns their names."""
    names = [f"random{number}-rank{rank}" for number, rank in enumerate(ranks)]
    for seed, (name, rank) in enumerate(zip(names, ranks, strict=True)):
        adapter = random_adapter(config, rank, seed, strength)
        write_moondream(adapter, config, folder / f"{name}.safetensors")
    return names


def random_adapter(config: TextConfig, rank: int, seed: int, strength: float = 0.5) -> Adapter:
    """What it adds to a product is about `strength` times as large as the product's input."""
    generator = torch.Generator().manual_seed(seed)
    known = MOONDREAM2 if config.moe is None else MOONDREAM3
    reached = {(place.layer, place.target) for place in known.written(config)}
    blocks = []
    for layer in range(config.n_layers):
        block: dict[Target, LowRank] = {}
        for target, shape in target_shapes(config, layer).items():
            if (layer, target) in reached:
                own = rank_of(config, target, rank)
                a = torch.randn(shape.a(own), generator=generator) * shape.in_dim**-0.5
                b = torch.randn(shape.b(own), generator=generator) * strength * own**-0.5
                block[target] = LowRank(a.bfloat16(), b.bfloat16())
        blocks.append(block)
    return Adapter(f"random, seed {seed}", rank, blocks)
