"""Time of a text block without adapters and with them, and of each launch that they add.

For those who write kernels: `python tools/adapter_stages.py`, which needs a GPU. Full widths, random weights,
rank 16 in stacks of rank 32; everything is replayed from a graph. Attention is left out. The floor of a block
with adapters is its own and, behind it, the bytes that adapters add.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise

import torch
from rich.console import Console
from torch import Tensor

from kernel_stages import LAYERS
from kestrel_core.moondream.checkpoint.weights import random_weights
from kestrel_core.moondream.config import MOONDREAM2, MOONDREAM3, MoondreamConfig, TextConfig
from kestrel_core.moondream.fast_text import FastText
from kestrel_core.moondream.lora import TARGETS, AdapterRows, Stacks, Target, rank_of, target_shapes
from kestrel_core.moondream.model import Moondream
from kestrel_core.moondream.moe import MoE
from kestrel_core.moondream.ops import plain
from kestrel_core.moondream.ops.choose import choose_fused
from kestrel_core.moondream.ops.protocol import Fused, StepAdapters
from kestrel_core.moondream.text import Text
from stages import Case, Place, Work, floor_ms, print_stages

TOKENS = (1, 16, 64, 762, 3714)  # decode steps, a prompt with a picture, five of them
NUM_ADAPTERS = (1, 8)
RANK, MAX_RANK = 16, 32


def adapter_cases(
    config: MoondreamConfig, fused: Fused, place: Place, sizes: Sequence[int]
) -> Iterator[Case]:
    """Blocks without adapters and with, and the launches that these add."""
    text = replace(config.text, n_layers=LAYERS)
    kind = "dense"
    if text.moe is not None:
        text, kind = replace(text, moe=replace(text.moe, start_layer=0)), "experts'"
    with torch.device("meta"):
        model = Moondream(replace(config, text=text, vision=replace(config.vision, enc_n_layers=0)))
    random_weights(model, place.device, place.dtype, seed=0)
    stacks = Stacks(text, max(NUM_ADAPTERS), MAX_RANK, place.device, place.dtype)
    stacks.numbers[1:].normal_(std=0.02)
    for target in target_shapes(text, 0):
        stacks.ranks[1:, TARGETS.index(target)] = rank_of(text, target, RANK)
    forward = FastText(model.text, fused)
    for tokens in sizes:
        x, positions = place.randn(tokens, text.dim), torch.arange(tokens, device=place.device) % 700
        bare = partial(forward, x, positions, lambda layer, q, k, v: q)
        touched, flops = (cost / LAYERS for cost in blocks_cost(model.text, tokens))
        graphed = place.dtype == torch.bfloat16 and fused is not plain
        yield Case(
            f"{kind} block",
            tokens,
            floor_ms(touched, flops),
            {"without": bare},
            graphed=graphed,
            calls=LAYERS,
        )
        for count in NUM_ADAPTERS:
            rows, name = rows_of(stacks, tokens, count), f"{count} adapter{'s' * (count > 1)}"
            more = floor_ms(touched, flops) + floor_ms(adapter_bytes(text, rows), 0.0)
            ways: dict[str, Work] = {name: partial(bare, adapters=rows)}
            yield Case(f"{kind} block", tokens, more, ways, graphed=graphed, calls=LAYERS)
            for launch, work in adapter_launches(model.text, stacks, rows, fused, place).items():
                yield Case(f"  {launch}", tokens, 0.0, {name: work}, graphed=graphed, calls=LAYERS)


def adapter_launches(
    text: Text, stacks: Stacks, rows: AdapterRows, fused: Fused, place: Place
) -> dict[str, Work]:
    """The same launch in every block, so that its matrices come from memory as they do in life."""
    config, tokens = text.config, len(rows.of_token)
    h, inner, y = (place.randn(tokens, dim) for dim in (config.dim, config.ff_dim, config.dim))
    packed = place.randn(tokens, config.qkv_dim + config.ff_dim)
    blocks = [StepAdapters(rows, layer) for layer in range(LAYERS)]
    dense = "fc1" in stacks.blocks[0]
    first: tuple[Target, ...] = ("qkv", "fc1") if dense else ("qkv",)
    second: dict[Target, Tensor] = {"proj": h, "fc2": inner} if dense else {"proj": h}
    low = fused.shrink(dict.fromkeys((*first, "input_proj"), h), blocks[0], None)
    fused.shrink(second, blocks[0], low)

    def each(launch: Callable[[StepAdapters], object]) -> Work:
        return lambda: [launch(block) for block in blocks]

    launches = {
        "shrink, first": each(lambda at: fused.shrink(dict.fromkeys((*first, "input_proj"), h), at, None)),
        "expand, first": each(lambda at: fused.expand(packed, low, first, at, beside=True)),
        "shrink, second": each(lambda at: fused.shrink(second, at, low)),
        "expand, second": each(lambda at: fused.expand(y, low, ("input_proj", *second), at, beside=False)),
    }
    mlp = text.blocks[0].mlp
    if isinstance(mlp, MoE):
        ids, weights = fused.route(mlp.router(h), mlp.experts_per_token)
        run = partial(fused.experts, h, ids, weights, mlp.fc1.weight, mlp.fc2.weight)
        launches |= {"experts, without": each(lambda at: run()), "experts": each(run)}
    return launches


def rows_of(stacks: Stacks, tokens: int, count: int) -> AdapterRows:
    """So many adapters, or as many as there are tokens, each for a run of them."""
    size = 16 if tokens <= 256 else 64
    of_token = [1 + token * count // tokens for token in range(tokens)]
    starts = [token for token in range(tokens) if token == 0 or of_token[token] != of_token[token - 1]]
    tiles = [
        (of_token[first], first, min(first + size, stop))
        for start, stop in pairwise([*starts, tokens])
        for first in range(start, stop, size)
    ]
    device = stacks.numbers.device
    ints = partial(torch.tensor, dtype=torch.int32, device=device)
    return AdapterRows(stacks.blocks, ints(of_token), ints(range(tokens)), ints(tiles), size, stacks)


def blocks_cost(text: Text, tokens: int) -> tuple[float, float]:
    """Bytes of all matrices (of experts, those that so many tokens are likely to choose), and operations."""
    moe, num_bytes, flops = text.config.moe, 0.0, 0.0
    for weight in text.blocks.parameters():
        chosen = moe.experts_per_token / moe.num_experts if moe and weight.ndim > 2 else 1.0
        num_bytes += weight.nbytes * (1 - (1 - chosen) ** tokens)
        flops += 2.0 * tokens * weight.numel() * chosen
    return num_bytes, flops


def adapter_bytes(config: TextConfig, rows: AdapterRows) -> float:
    """Of one block: adapters, as if all their experts were chosen, and rows that are read and changed."""
    shapes, each = target_shapes(config, 0), rows.of_token.bincount().count_nonzero().item()
    element = rows.blocks[0]["qkv"].a.element_size()
    numbers = sum(
        max(1, shape.num_experts) * rank_of(config, target, RANK) * (shape.in_dim + shape.out_dim)
        for target, shape in shapes.items()
    )
    columns = sum(shape.in_dim + 2 * shape.out_dim for shape in shapes.values() if not shape.num_experts)
    return float(element * (each * numbers + len(rows.of_token) * columns))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", nargs="+", type=int, default=TOKENS)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args(arguments)
    place = Place(torch.device("cuda"), torch.bfloat16)
    fused = choose_fused(place.device)
    cases = (
        case
        for config in (MOONDREAM2, MOONDREAM3)
        for case in adapter_cases(config, fused, place, asked.tokens)
    )
    print_stages(place, cases, asked.json, Console(stderr=True, width=140))


if __name__ == "__main__":
    main()
