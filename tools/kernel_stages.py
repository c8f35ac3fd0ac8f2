"""Time of the network's kernels in each way they can be computed, beside what memory and arithmetic allow.

For those who write kernels, so it lies beside the package and not in it: `python tools/kernel_stages.py`,
which needs a GPU. Full widths, random weights; small stages are replayed from a graph, so the host's share is
not in them. Whole steps and the whole encoder are `kestrel bench decode`, `prefill` and `vision`; `--compile
off` leaves our kernels out there.
"""

import argparse
import json
import logging
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from statistics import median
from time import perf_counter
from typing import NamedTuple

import torch
import torch.nn.functional as F
from rich.console import Console
from rich.table import Table
from torch import Tensor

from kestrel_core.moondream.checkpoint.weights import random_weights
from kestrel_core.moondream.config import MOONDREAM2, MOONDREAM3, MoondreamConfig, TextConfig, VisionConfig
from kestrel_core.moondream.model import Moondream
from kestrel_core.moondream.moe import MoE
from kestrel_core.moondream.ops import plain
from kestrel_core.moondream.ops.choose import choose_fused
from kestrel_core.moondream.ops.protocol import Fused
from kestrel_tools.bench.floors import median_ms
from kestrel_tools.bench.machine import find_commit, version_of

log = logging.getLogger(__name__)

BYTES_PER_S = 4.17e12  # an H200: a large copy
FLOPS = 769e12  # and a large product in bfloat16
CROPS = 56  # that are encoded together
TOKENS = (1, 4, 16, 64, 745, 11920)
LAYERS = 4  # their weights are more than any cache holds
FEW_ROWS = 64
SECONDS = 0.25  # that each measurement is repeated for
STAGES = ("products", "experts")

Work = Callable[[], object]


@dataclass(frozen=True)
class Measured:
    stage: str
    size: int
    variant: str
    ms: float
    floor_ms: float
    remark: str = ""


class Case(NamedTuple):
    """The same work in several ways."""

    stage: str
    size: int
    floor_ms: float
    ways: Mapping[str, Work]
    remark: Callable[[float], str] = lambda ms: ""  # of its milliseconds
    graphed: bool = True
    calls: int = 1  # that a way makes of the work, which is why its time is divided


@dataclass(frozen=True)
class Place:
    """Where stages run, and for how long."""

    device: torch.device
    dtype: torch.dtype
    seconds: float = SECONDS

    def randn(self, *shape: int) -> Tensor:
        return torch.randn(shape, device=self.device).to(self.dtype)

    def measured(self, case: Case) -> Iterator[Measured]:
        for way, work in case.ways.items():
            ms = self._ms(work, case.graphed) / case.calls
            yield Measured(case.stage, case.size, way, ms, case.floor_ms, case.remark(ms))

    def _ms(self, work: Work, graphed: bool) -> float:
        """Median time of one call. NaN where it fails, so that the other measurements go on."""
        try:
            return self._median_ms(work, graphed)
        except Exception:
            log.exception("this way fails")
            return math.nan

    def _median_ms(self, work: Work, graphed: bool) -> float:
        waited_ms = median_ms(work, self.device, 3)
        if self.device.type != "cuda":
            return waited_ms
        call, calls = (captured(work, 10), 10) if graphed else (work, 1)
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


def captured(work: Work, calls: int) -> Work:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(calls):
            work()
    return graph.replay


def floor_ms(num_bytes: float, flops: float) -> float:
    return 1e3 * max(num_bytes / BYTES_PER_S, flops / FLOPS)


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


@torch.inference_mode()
def print_stages(place: Place, all_cases: Iterator[Case], as_json: bool, console: Console) -> None:
    began, found = perf_counter(), []
    for case in all_cases:
        for one in place.measured(case):
            found.append(one)
            console.print(
                f"{one.stage:20} {one.size:6} {one.variant:24} {one.ms:9.4f} ms "
                f"(floor {one.floor_ms:8.4f}) {one.remark}"
            )
    name = torch.cuda.get_device_name(place.device) if place.device.type == "cuda" else "CPU"
    versions = f"torch {torch.__version__}, kernel language {version_of('triton')}, commit {find_commit()}"
    table = Table(title=f"Stages, milliseconds; {name}, {versions}, {perf_counter() - began:.0f} s")
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
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args(arguments)
    place = Place(torch.device("cuda"), torch.bfloat16)
    print_stages(place, cases(place, asked.only), asked.json, Console(stderr=True, width=140))


if __name__ == "__main__":
    main()
