"""Time of the network's kernels in each way they can be computed, beside what memory and arithmetic allow.

For those who write kernels, so it lies beside the package and not in it: `python tools/kernel_stages.py`,
which needs a GPU. Full widths, random weights; small stages are replayed from a graph, so the host's share is
not in them. Whole steps and the whole encoder are `kestrel bench decode`, `prefill` and `vision`; `--compile
off` leaves our kernels out there.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import torch
import torch.nn.functional as F
from rich.console import Console
from torch import Tensor

from kestrel_core.moondream.checkpoint.weights import random_weights
from kestrel_core.moondream.config import MOONDREAM2, MOONDREAM3, MoondreamConfig, TextConfig, VisionConfig
from kestrel_core.moondream.model import Moondream
from kestrel_core.moondream.moe import MoE
from kestrel_core.moondream.ops import plain
from kestrel_core.moondream.ops.choose import choose_fused
from kestrel_core.moondream.ops.protocol import Fused
from stages import Case, Place, Work, floor_ms, print_stages

CROPS = 56  # that are encoded together
TOKENS = (1, 4, 16, 64, 745, 11920)
LAYERS = 4  # their weights are more than any cache holds
FEW_ROWS = 64
STAGES = ("products", "experts")


def product_cases(config: VisionConfig, place: Place) -> Iterator[Case]:
    """The four products of a vision block, by dtype and by the kind of scales."""
    dim, inner, rows = config.enc_dim, config.enc_ff_dim, CROPS * config.num_patches
    for name, n, k in (("qkv", 3 * dim, dim), ("proj", dim, dim), ("fc1", inner, dim), ("fc2", dim, inner)):
        x, w, b = place.randn(rows, k), place.randn(n, k), place.randn(n)
        xs, ws = plain.quantise(x, gelu=False), plain.quantise(w, gelu=False)
        one = torch.ones((), device=place.device)
        unscaled = partial(torch._scaled_mm, scale_a=one, scale_b=one, out_dtype=b.dtype, use_fast_accum=True)
        ways: dict[str, Work] = {
            "bf16": partial(F.linear, x, w, b),
            "bf16, GELU epilogue": partial(torch._addmm_activation, b, x, w.T, use_gelu=True),
            "fp8, scales by row": partial(plain.scaled_linear, xs, ws, b),
            "fp8, one scale": partial(unscaled, xs.values, ws.values.T, bias=b),
        }
        flops = 2.0 * rows * n * k

        def remark(ms: float, flops: float = flops) -> str:
            return f"{flops / ms / 1e9:.0f} TFLOP/s"

        yield Case(f"product {name}", rows, floor_ms(0, flops), ways, remark)


def few_rows_cases(config: TextConfig, fused: Fused, place: Place, sizes: Sequence[int]) -> Iterator[Case]:
    """The two products of a dense text block at decode: torch's, and ours."""
    dim, inner, first = config.dim, config.ff_dim, config.qkv_dim + config.ff_dim
    firsts = [place.randn(first, dim) for _ in range(LAYERS)]
    seconds = [(place.randn(dim, dim), place.randn(dim, inner)) for _ in range(LAYERS)]

    def run_first(ops: Fused, x: Tensor, bias: Tensor) -> None:
        for weight in firsts:
            ops.linear(x, weight, bias)

    def run_second(ops: Fused, x: Tensor, y: Tensor, bias: Tensor) -> None:
        for weight, other in seconds:
            ops.linear_sum(x, weight, y, other, bias)

    for rows in sizes:
        x, y, bias = place.randn(rows, dim), place.randn(rows, inner), place.randn(first)
        kinds = ways_to_run(fused).items()
        for stage, size, ways in (
            ("first products", dim * first, {n: partial(run_first, ops, x, bias) for n, ops in kinds}),
            (
                "second products",
                dim * (dim + inner),
                {n: partial(run_second, ops, x, y, bias[:dim]) for n, ops in kinds},
            ),
        ):

            def remark(ms: float, size: int = size) -> str:
                return f"{2 * size / ms / 1e9:.2f} TB/s"

            yield Case(stage, rows, floor_ms(2.0 * size, 2.0 * rows * size), ways, remark, calls=LAYERS)


def ways_to_run(fused: Fused) -> dict[str, Fused]:
    return {"no kernels": plain} if fused is plain else {"no kernels": plain, "kernels": fused}


def expert_cases(mlp: MoE, dim: int, fused: Fused, place: Place, sizes: Sequence[int]) -> Iterator[Case]:
    # Other dtypes make the host wait, so no graph holds them, as none holds the loop over experts.
    graphed = place.dtype == torch.bfloat16
    for tokens in sizes:
        h = place.randn(tokens, dim)
        floor = floor_ms(*expert_cost(mlp, h))
        yield Case("experts", tokens, floor, {"loop": partial(mlp, h)}, graphed=False)
        ways = {name: partial(run_experts, mlp, h, ops) for name, ops in ways_to_run(fused).items()}
        yield Case("experts", tokens, floor, ways, graphed=graphed)


def run_experts(mlp: MoE, h: Tensor, ops: Fused) -> Tensor:
    ids, weights = ops.route(mlp.router(h), mlp.experts_per_token)
    pairs = ops.experts(h, ids, weights, mlp.fc1.weight, mlp.fc2.weight)
    return ops.add_norm(h, None, pairs, None)[0]


def expert_cost(mlp: MoE, h: Tensor) -> tuple[float, float]:
    """Bytes of the experts that these tokens touch, and operations."""
    per_expert = mlp.fc1.weight[0].numel() + mlp.fc2.weight[0].numel()
    touched = len(mlp.route(h)[0].unique())
    return 2.0 * touched * per_expert, 2.0 * len(h) * mlp.experts_per_token * per_expert


def cases(
    place: Place,
    stages: Sequence[str] = STAGES,
    two: MoondreamConfig = MOONDREAM2,
    three: MoondreamConfig = MOONDREAM3,
    tokens: Sequence[int] = TOKENS,
) -> Iterator[Case]:
    fused = choose_fused(place.device)
    if "products" in stages:
        yield from product_cases(two.vision, place)
        yield from few_rows_cases(two.text, fused, place, [size for size in tokens if size <= FEW_ROWS])
    if "experts" in stages:
        assert three.text.moe is not None
        one_block = replace(three.text, moe=replace(three.text.moe, start_layer=0), n_layers=1)
        with torch.device("meta"):
            model = Moondream(replace(three, text=one_block, vision=replace(two.vision, enc_n_layers=0)))
        random_weights(model, place.device, place.dtype, seed=0)
        mlp = model.text.blocks[0].mlp
        assert isinstance(mlp, MoE)
        yield from expert_cases(mlp, one_block.dim, fused, place, tokens)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=STAGES, default=STAGES)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args(arguments)
    place = Place(torch.device("cuda"), torch.bfloat16)
    print_stages(place, cases(place, asked.only), asked.json, Console(stderr=True, width=140))


if __name__ == "__main__":
    main()
