"""Time of every stage of the network in each way it can be computed, beside what memory and arithmetic allow.

`python -m kestrel_tools.bench.stages` takes some two minutes on a GPU: full widths, random weights,
few layers where all are alike. Attention over the cache is left out of the text stages: in its place is one
that gives back the queries. Small stages are replayed from a graph, so the host's share is not in them.
"""

import argparse
import json
import logging
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from statistics import median
from time import perf_counter

import torch
import torch.nn.functional as F
from rich.console import Console
from rich.table import Table
from torch import Tensor

from kestrel_core.moondream.checkpoint.weights import random_weights
from kestrel_core.moondream.config import MOONDREAM2, MOONDREAM3, MoondreamConfig, TextConfig, VisionConfig
from kestrel_core.moondream.fast_text import FastText
from kestrel_core.moondream.fast_vision import AttentionBackend, FastVision, attention_by, deviation
from kestrel_core.moondream.model import Moondream
from kestrel_core.moondream.moe import MoE
from kestrel_core.moondream.ops import plain
from kestrel_core.moondream.ops.choose import choose_fused
from kestrel_core.moondream.ops.protocol import Fused
from kestrel_core.moondream.text import MLP, Block, Text
from kestrel_core.moondream.vision import Vision

log = logging.getLogger(__name__)

BYTES_PER_S = 4.17e12  # an H200: a large copy
FLOPS = 769e12  # and a large product in bfloat16
CROPS = (2, 7, 16, 56)
TOKENS = (1, 4, 16, 64, 745, 11920)
TEXT_LAYERS = 4  # their weights are more than any cache holds
GRAPHED_TOKENS = 64
SECONDS = 0.25  # that each measurement is repeated for


@dataclass(frozen=True)
class Measured:
    stage: str
    size: int
    variant: str
    ms: float
    floor_ms: float
    remark: str = ""


@dataclass(frozen=True)
class Place:
    """Where stages run, and for how long."""

    device: torch.device
    dtype: torch.dtype
    seconds: float = SECONDS

    def randn(self, *shape: int) -> Tensor:
        return torch.randn(shape, device=self.device).to(self.dtype)

    def ms(self, work: Callable[[], object], graphed: bool = False) -> float:
        """Median time of one call. NaN where it fails, so that the other measurements go on."""
        try:
            return self._median_ms(work, graphed)
        except Exception:
            log.exception("this way fails")
            return math.nan

    def _median_ms(self, work: Callable[[], object], graphed: bool) -> float:
        for _ in range(3):  # kernels are compiled, plans are made
            work()
        if self.device.type != "cuda":
            return median(self._wall_ms(work) for _ in range(3))
        call, calls = work, 1
        if graphed:
            call, calls = captured(work, 10), 10
        times: list[float] = []
        end = perf_counter() + self.seconds
        while perf_counter() < end or len(times) < 5:
            began, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            began.record()
            call()
            ended.record()
            ended.synchronize()
            times.append(began.elapsed_time(ended) / calls)
        return median(times)

    @staticmethod
    def _wall_ms(work: Callable[[], object]) -> float:
        began = perf_counter()
        work()
        return 1e3 * (perf_counter() - began)


def captured(work: Callable[[], object], calls: int) -> Callable[[], None]:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(calls):
            work()
    return graph.replay


def floor_ms(num_bytes: float, flops: float) -> float:
    return 1e3 * max(num_bytes / BYTES_PER_S, flops / FLOPS)


def bare_model(config: MoondreamConfig, place: Place) -> Moondream:
    with torch.device("meta"):
        model = Moondream(config)
    random_weights(model, place.device, place.dtype, seed=0)
    return model.eval()


# Vision.


def vision_stages(
    vision: Vision, fused: Fused, place: Place, sizes: Sequence[int], compiled: bool
) -> Iterator[Measured]:
    config = vision.config
    side = config.crop_size
    backends: list[AttentionBackend] = (
        ["cudnn", "flash", "efficient"] if place.device.type == "cuda" else ["default"]
    )
    fast = FastVision(vision, fused)
    ways: dict[str, Callable[[Tensor], Tensor]] = {"plain": vision.encode}
    ways |= {f"fused, {name}": FastVision(vision, fused, attention=name) for name in backends}
    ways[f"fused, auto ({fast.attention})"] = fast
    ways["no kernels"] = FastVision(vision, plain, attention=fast.attention)
    ways["fp8"] = FastVision(vision, fused, float8=True, attention=fast.attention)
    if compiled:
        ways["torch.compile"] = compiled_encoder(vision, fast.attention)
    for size in sizes:
        crops = torch.randint(0, 256, (size, side, side, 3), dtype=torch.uint8, device=place.device)
        floor = floor_ms(*vision_cost(config, size))
        for name, way in ways.items():
            ms = place.ms(partial(way, crops))
            remark = f"{size / ms * 1e3:.0f} crops/s"
            if isinstance(way, FastVision) and size == sizes[0] and not math.isnan(ms):
                remark += f", deviates {100 * deviation(vision, way, crops):.2f} %"
            yield Measured("vision", size, name, ms, floor, remark)


def compiled_encoder(vision: Vision, attention: AttentionBackend) -> Callable[[Tensor], Tensor]:
    encode = torch.compile(vision.encode, dynamic=True)

    def run(crops: Tensor) -> Tensor:
        with attention_by(attention):
            features: Tensor = encode(crops)
            return features

    return run


def vision_cost(config: VisionConfig, crops: int) -> tuple[float, float]:
    """Bytes of the weights, and operations."""
    dim, rows = config.enc_dim, crops * config.num_patches
    weights = config.enc_n_layers * (4 * dim * dim + 2 * dim * config.enc_ff_dim) + dim * config.patch_dim
    mixing = 4 * config.enc_n_layers * rows * config.num_patches * dim
    return 2.0 * weights, 2.0 * rows * weights + mixing


def product_stages(config: VisionConfig, place: Place, crops: int) -> Iterator[Measured]:
    """The four products of a vision block, by dtype and by the kind of scales."""
    dim, inner, rows = config.enc_dim, config.enc_ff_dim, crops * config.num_patches
    for name, n, k in (("qkv", 3 * dim, dim), ("proj", dim, dim), ("fc1", inner, dim), ("fc2", dim, inner)):
        x, w, b = place.randn(rows, k), place.randn(n, k), place.randn(n)
        xs, ws = plain.quantise(x, gelu=False), plain.quantise(w, gelu=False)
        one = torch.ones((), device=place.device)
        unscaled = partial(torch._scaled_mm, scale_a=one, scale_b=one, out_dtype=b.dtype, use_fast_accum=True)
        ways: dict[str, Callable[[], object]] = {
            "bf16": partial(F.linear, x, w, b),
            "bf16, GELU epilogue": partial(torch._addmm_activation, b, x, w.T, use_gelu=True),
            "fp8, scales by row": partial(plain.scaled_linear, xs, ws, b),
            "fp8, one scale": partial(unscaled, xs.values, ws.values.T, bias=b),
        }
        flops = 2.0 * rows * n * k
        for way, work in ways.items():
            ms = place.ms(work, graphed=True)
            yield Measured(
                f"product {name}", rows, way, ms, floor_ms(0, flops), f"{flops / ms / 1e9:.0f} TFLOP/s"
            )


def few_rows_stages(
    config: TextConfig, fused: Fused, place: Place, sizes: Sequence[int]
) -> Iterator[Measured]:
    """The two products of a dense text block at decode: torch's, and ours."""
    dim, inner, first = config.dim, config.ff_dim, config.qkv_dim + config.ff_dim
    layers = range(TEXT_LAYERS)
    weights = [place.randn(first, dim) for _ in layers]
    seconds = [(place.randn(dim, dim), place.randn(dim, inner)) for _ in layers]
    for rows in sizes:
        x, y, bias = place.randn(rows, dim), place.randn(rows, inner), place.randn(first)
        for name, ops in ways_to_run(fused).items():

            def run_first(ops: Fused = ops, x: Tensor = x, bias: Tensor = bias) -> None:
                for weight in weights:
                    ops.linear(x, weight, bias)

            def run_second(ops: Fused = ops, x: Tensor = x, y: Tensor = y, bias: Tensor = bias) -> None:
                for weight, other in seconds:
                    ops.linear_sum(x, weight, y, other, bias[:dim])

            for stage, work, size in (
                ("first products", run_first, dim * first),
                ("second products", run_second, dim * (dim + inner)),
            ):
                ms = place.ms(work, graphed=True) / len(layers)
                floor = floor_ms(2.0 * size, 2.0 * rows * size)
                yield Measured(stage, rows, name, ms, floor, f"{2 * size / ms / 1e9:.2f} TB/s")


def ways_to_run(fused: Fused) -> dict[str, Fused]:
    return {"no kernels": plain} if fused is plain else {"no kernels": plain, "kernels": fused}


# Experts and text blocks.


def expert_stages(mlp: MoE, dim: int, fused: Fused, place: Place, sizes: Sequence[int]) -> Iterator[Measured]:
    for tokens in sizes:
        h = place.randn(tokens, dim)
        floor = floor_ms(*expert_cost(mlp, h))
        yield Measured("experts", tokens, "loop", place.ms(partial(mlp, h)), floor)
        for name, ops in ways_to_run(fused).items():
            graphed = place.dtype == torch.bfloat16  # other dtypes make the host wait, so no graph holds them
            ms = place.ms(partial(run_experts, mlp, h, ops), graphed)
            yield Measured("experts", tokens, name, ms, floor)


def run_experts(mlp: MoE, h: Tensor, ops: Fused) -> Tensor:
    ids, weights = ops.route(mlp.router(h), mlp.experts_per_token)
    pairs = ops.experts(h, ids, weights, mlp.fc1.weight, mlp.fc2.weight)
    return ops.add_norm(h, None, pairs, None)[0]


def expert_cost(mlp: MoE, h: Tensor) -> tuple[float, float]:
    """Bytes of the experts that these tokens touch, and operations."""
    per_expert = mlp.fc1.weight[0].numel() + mlp.fc2.weight[0].numel()
    touched = len(mlp.route(h)[0].unique())
    return 2.0 * touched * per_expert, 2.0 * len(h) * mlp.experts_per_token * per_expert


def text_stages(
    name: str, text: Text, fused: Fused, place: Place, sizes: Sequence[int]
) -> Iterator[Measured]:
    """One block, as the mean of a few. Plain comes first: the others change the layout of the weights."""
    ways: dict[str, Fused | None] = {"plain": None, "packed, no kernels": plain}
    if fused is not plain:
        ways["packed, kernels"] = fused
    for way, ops in ways.items():
        forward = text if ops is None else FastText(text, ops)
        for tokens in sizes:
            x = place.randn(tokens, text.config.dim)
            positions = torch.arange(tokens, device=place.device) % text.config.max_context
            has_loop = ops is None and text.config.moe is not None
            graphed = tokens <= GRAPHED_TOKENS and not has_loop and place.dtype == torch.bfloat16
            ms = place.ms(partial(forward, x, positions, queries), graphed)
            num_bytes, flops = text_cost(text, x)
            layers = text.config.n_layers
            floor = floor_ms(num_bytes / layers, flops / layers)
            yield Measured(f"block {name}", tokens, way, ms / layers, floor)


def queries(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Stands in for attention."""
    return q


def text_cost(text: Text, x: Tensor) -> tuple[float, float]:
    num_bytes = flops = 0.0
    for block in text.blocks:
        assert isinstance(block, Block)
        dense = block.attn.qkv.weight.numel() + block.attn.proj.weight.numel()
        if block.attn.tau is not None:
            dense += block.attn.tau.wq.numel() + block.attn.tau.wv.numel()
        if isinstance(block.mlp, MLP):
            dense += block.mlp.fc1.weight.numel() + block.mlp.fc2.weight.numel()
        else:
            expert_bytes, expert_flops = expert_cost(block.mlp, block.ln(x))
            num_bytes, flops = num_bytes + expert_bytes, flops + expert_flops
        num_bytes, flops = num_bytes + 2 * dense, flops + 2 * len(x) * dense
    return num_bytes, flops


# The command.

STAGES = ("vision", "products", "experts", "text")


@torch.inference_mode()
def measure(
    place: Place,
    stages: Sequence[str] = STAGES,
    two: MoondreamConfig = MOONDREAM2,
    three: MoondreamConfig = MOONDREAM3,
    crops: Sequence[int] = CROPS,
    tokens: Sequence[int] = TOKENS,
    compiled: bool = False,
) -> Iterator[Measured]:
    fused = choose_fused(place.device)
    assert three.text.moe is not None
    dense = replace(two.text, n_layers=TEXT_LAYERS)
    sparse = replace(three.text, moe=replace(three.text.moe, start_layer=0), n_layers=TEXT_LAYERS)
    no_vision = replace(two.vision, enc_n_layers=0)
    if "vision" in stages:
        yield from vision_stages(
            bare_model(replace(two, text=replace(two.text, n_layers=0)), place).vision,
            fused,
            place,
            crops,
            compiled,
        )
    if "products" in stages:
        yield from product_stages(two.vision, place, crops[-1])
        yield from few_rows_stages(
            two.text, fused, place, [size for size in tokens if size <= GRAPHED_TOKENS]
        )
    if "text" in stages:
        text = bare_model(replace(two, text=dense, vision=no_vision), place).text
        yield from text_stages("of Moondream 2", text, fused, place, tokens)
        del text
    if {"text", "experts"} & set(stages):
        text = bare_model(replace(three, text=sparse, vision=no_vision), place).text
        if "experts" in stages:
            mlp = text.blocks[0].mlp
            assert isinstance(mlp, MoE)
            yield from expert_stages(mlp, sparse.dim, fused, place, tokens)
        if "text" in stages:
            yield from text_stages("of Moondream 3", text, fused, place, tokens)


def print_stages(
    place: Place, stages: Sequence[str], compiled: bool, as_json: bool, console: Console
) -> None:
    began, found = perf_counter(), []
    for one in measure(place, stages, compiled=compiled):
        found.append(one)
        console.print(
            f"{one.stage:20} {one.size:6} {one.variant:24} {one.ms:9.4f} ms "
            f"(floor {one.floor_ms:8.4f}) {one.remark}"
        )
    name = torch.cuda.get_device_name(place.device) if place.device.type == "cuda" else "CPU"
    table = Table(
        title=f"Stages, milliseconds; {name}, torch {torch.__version__}, {perf_counter() - began:.0f} s"
    )
    for column in ("stage", "size", "variant", "ms", "floor", "of floor", "remark"):
        table.add_column(column, justify="left" if column in ("stage", "variant", "remark") else "right")
    for one in found:
        times = f"{one.ms:.4f}", f"{one.floor_ms:.4f}", f"{one.floor_ms / one.ms:.0%}"
        table.add_row(one.stage, str(one.size), one.variant, *times, one.remark)
    console.print(table)
    if as_json:
        json.dump([asdict(one) for one in found], sys.stdout)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=STAGES, default=STAGES)
    parser.add_argument("--compile", action="store_true", help="try torch.compile on the vision encoder, too")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args(arguments)
    place = Place(torch.device("cuda"), torch.bfloat16)
    print_stages(place, asked.only, asked.compile, asked.json, Console(stderr=True, width=140))


if __name__ == "__main__":
    main()
