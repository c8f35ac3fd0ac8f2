"""Float8 with fixed scales, stage by stage: how far it is off, and how long it takes beside other ways.

For those who write kernels, as `kernel_stages.py` is: `python tools/float8_stages.py`, which needs a GPU of
compute capability 8.9. Full widths, random weights, few layers; a stage is replayed from a graph.
"""

import argparse
import logging
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from rich.console import Console
from torch import Tensor, nn

from kestrel_core.moondream.checkpoint.weights import random_weights
from kestrel_core.moondream.config import MOONDREAM2, MOONDREAM3, MoondreamConfig
from kestrel_core.moondream.fast_text import FastText
from kestrel_core.moondream.fast_vision import FastVision, deviation
from kestrel_core.moondream.float8_text import float8_text
from kestrel_core.moondream.float8_vision import float8_vision
from kestrel_core.moondream.model import Moondream
from kestrel_core.moondream.moe import MoE
from kestrel_core.moondream.ops import float8_experts, plain
from kestrel_core.moondream.ops.choose import choose_fused
from kestrel_core.moondream.ops.choose_few_bits import Float8Ops, choose_float8
from kestrel_core.moondream.ops.few_bits import FewBits, pack_weights
from kestrel_core.moondream.ops.float8_products import FixedScale, Products, TorchProducts, pack_float8
from kestrel_core.moondream.ops.protocol import Cut, Fused, Norm, Pairs
from kestrel_core.moondream.scales import InputScales, measure_scales, sample_pictures, sample_prompts
from stages import FLOAT8_FLOPS, Case, Place, Report, Work, distance, floor_ms, print_stages

CROPS = (37, 56)
ROWS = (1, 16, 64, 745, 3714)
LAYERS = 4
MANY_ROWS = 3000
# Of the first and the second product of experts.
TRIED_CUTS = (
    (Cut(128, 128, 8, 3, rows=128), Cut(256, 128, 8, 3, rows=128)),
    (Cut(64, 128, 4, 4, rows=64), Cut(128, 128, 4, 4, rows=64)),
)
# Of bfloat16, where torch's grouped products take over at many tokens.
BFLOAT16_CUTS = (
    (Cut(64, 64, 8, 4, rows=128), Cut(128, 64, 8, 4, rows=128)),
    (Cut(128, 64, 8, 3, rows=128), Cut(256, 64, 8, 3, rows=128)),
    (Cut(128, 64, 8, 3, rows=128), Cut(128, 64, 8, 4, rows=128)),
    (Cut(64, 64, 4, 4, rows=64), Cut(128, 64, 4, 4, rows=64)),
    (Cut(64, 64, 4, 4, rows=128), Cut(128, 64, 4, 4, rows=128)),
)
PARTS = ("products", "vision", "text", "experts", "rounding")

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Sizes:
    two: MoondreamConfig = MOONDREAM2
    three: MoondreamConfig = MOONDREAM3
    crops: Sequence[int] = CROPS
    rows: Sequence[int] = ROWS
    vision_layers: int = 27
    layers: int = LAYERS


def judge(report: Report, what: str, ours: Tensor, expected: Tensor, limit: float = 0.02) -> None:
    """Of the row in the middle, since rounding may send a row to another expert; and of all rows."""
    wide, right = ours.float().flatten(0, -2), expected.float().flatten(0, -2)
    by_row = (wide - right).norm(dim=1) / right.norm(dim=1).clamp(min=1e-9)
    report.say(what, float(by_row.median()), limit, f"all {distance(wide, right):.4f}")


def network(config: MoondreamConfig, place: Place, layers: int, vision_layers: int) -> Moondream:
    text = replace(config.text, n_layers=layers)
    if text.moe is not None:
        text = replace(text, moe=replace(text.moe, start_layer=1))
    with torch.device("meta"):
        vision = replace(config.vision, enc_n_layers=vision_layers)
        model = Moondream(replace(config, text=text, vision=vision))
    random_weights(model, place.device, place.dtype, seed=0)
    return model.eval()


def measured(model: Moondream) -> InputScales:
    return measure_scales(model, sample_pictures(model.config.vision), sample_prompts(model.config))


def ways_to_multiply(ops: Float8Ops, place: Place) -> dict[str, Products]:
    products = ops.products
    by_torch: dict[str, Products] = {"torch": TorchProducts(ops.few.fused, place.device)}
    return by_torch if products.name == "torch" else {**by_torch, products.name: products}


def others_of_cublas(ops: Float8Ops, place: Place, rows: int) -> dict[str, Products]:
    """With the algorithms that the library thinks second and third best, for the largest products."""
    if ops.products.name != "cublas" or rows < MANY_ROWS:
        return {}
    from kestrel_core.moondream.ops.cublas import CublasProducts

    by_torch = TorchProducts(ops.few.fused, place.device)
    return {f"cublas, number {rank + 1}": CublasProducts(by_torch, place.device, rank) for rank in (1, 2)}


def tflops(flops: float, ms: float) -> str:
    return f"{flops / ms / 1e9:.0f} TFLOP/s"


def rounding_cases(sizes: Sizes, fused: Fused, place: Place, report: Report) -> Iterator[Case]:
    vision = sizes.two.vision
    rows = sizes.crops[-1] * vision.num_patches
    for name, dim, gelu in (("attention", vision.enc_dim, False), ("GELU", vision.enc_ff_dim, True)):
        x = place.randn(rows, dim)
        ours, expected = (ops.round_float8(x, 0.02, gelu).float() for ops in (fused, plain))
        report.say(f"rounding, {name}: numbers that differ", float((ours != expected).float().mean()), 0.01)
        ways: dict[str, Work] = {
            "by row": partial(fused.quantise, x, gelu),
            "fixed scale": partial(fused.round_float8, x, 0.02, gelu),
        }
        yield Case(f"rounding {name}", rows, floor_ms(3 * x.numel(), 0), ways)
    dim = vision.enc_dim
    x, y = place.randn(rows, dim), place.randn(rows, dim)
    norm = Norm(place.randn(dim), place.randn(dim), 1e-5)
    for keep in (False, True):
        ours, expected = (
            ops.add_norm_fixed(x, y, None, norm, 0.02, keep)[2].float() for ops in (fused, plain)
        )
        judge(report, f"norm in float8, keep {keep}", ours, expected)
    ways = {
        "bf16": partial(fused.add_norm, x, y, None, norm),
        "by row": partial(fused.add_norm_float8, x, y, norm),
        "fixed scale": partial(fused.add_norm_fixed, x, y, None, norm, 0.02, False),
    }
    yield Case("norm", rows, floor_ms(7 * x.numel(), 0), ways)


def product_cases(sizes: Sizes, ops: Float8Ops, place: Place, report: Report) -> Iterator[Case]:
    """Each product as torch calls it and as we do; with GELU and rounding, and with a sum."""
    vision, text = sizes.two.vision, sizes.two.text
    dim, inner = vision.enc_dim, vision.enc_ff_dim
    shapes = [
        (f"vision {name}", crops * vision.num_patches, columns, depth)
        for crops in sizes.crops[-1:]
        for name, columns, depth in (
            ("qkv", 3 * dim, dim),
            ("proj", dim, dim),
            ("fc1", inner, dim),
            ("fc2", dim, inner),
        )
    ]
    for rows in [rows for rows in sizes.rows if rows > 16]:
        shapes += [
            ("text qkv", rows, text.qkv_dim, text.dim),
            ("text fc1", rows, text.ff_dim, text.dim),
            ("text fc2", rows, text.dim, text.ff_dim),
        ]
    for name, rows, columns, depth in shapes:
        yield product_case(name, rows, columns, depth, ops, place, report)


def product_case(
    name: str, rows: int, columns: int, depth: int, ops: Float8Ops, place: Place, report: Report
) -> Case:
    x, weight = place.randn(rows, depth), place.randn(columns, depth)
    inputs, bias = FixedScale.of(8.0, place.device), place.randn(columns)
    inner = FixedScale.of(6 * depth**0.5, place.device)
    matrix, x8 = pack_float8(weight, bias, inputs), ops.few.fused.round_float8(x, inputs.value, gelu=False)
    with_gelu, with_sum = name.endswith("fc1"), name == "text fc2"
    add = place.randn(rows, columns) if with_sum else None
    wide = (x8[:64].float() * inputs.value) @ (matrix.values.float() * matrix.scale).T

    def run(products: Products) -> Tensor:
        if with_gelu:
            return products.gelu_linear(x8, matrix, inner)
        return products.linear(x8, matrix._replace(bias=None) if with_sum else matrix, add)

    expected = wide + (add[:64].float() if add is not None else bias.float())
    if with_gelu:
        expected = plain.round_float8(expected, inner.value, gelu=True).float()
    ways: dict[str, Work] = {"bf16": partial(plain.linear, x, weight, bias)}
    for way, products in {**ways_to_multiply(ops, place), **others_of_cublas(ops, place, rows)}.items():
        # A number that falls to float8's other side is off by up to an eighth.
        limit = 0.04 if with_gelu else 0.02
        judge(report, f"{name} {rows} rows by {way}", run(products)[:64], expected, limit)
        ways[f"fp8, {way}"] = partial(run, products)
    flops = 2.0 * rows * columns * depth
    more = " + GELU" if with_gelu else " + sum" if with_sum else ""
    return Case(f"{name}{more}", rows, floor_ms(0, flops, FLOAT8_FLOPS), ways, partial(tflops, flops))


def expert_cases(sizes: Sizes, ops: Float8Ops, place: Place, report: Report) -> Iterator[Case]:
    model = network(sizes.three, place, 2, 0)
    mlp = model.text.blocks[1].mlp
    assert isinstance(mlp, MoE)
    fc1, fc2 = (pack_weights(part.weight, "fp8") for part in (mlp.fc1, mlp.fc2))
    h_scale, inner_scale = 6.0 / 448, 30.0 / 448
    fused = ops.few.fused
    for rows in [rows for rows in sizes.rows if rows >= 64]:
        h = place.randn(rows, sizes.three.text.dim)
        h8 = fused.round_float8(h, h_scale, gelu=False)
        ids, weights = fused.route(mlp.router(h), mlp.experts_per_token)
        arguments = (h, h8, ids, weights, fc1, fc2, h_scale, inner_scale)
        ways: dict[str, Work] = {
            "bf16": partial(fused.experts, h, ids, weights, mlp.fc1.weight, mlp.fc2.weight),
            "weights in 8 bits": partial(ops.few.experts, h, ids, weights, fc1, fc2),
            "fp8, tiles": partial(ops.experts, *arguments),
        }
        expected = float8_experts.experts_float8(*arguments)
        made = ops.experts(*arguments)
        judge(report, f"experts, tiles, {rows} tokens", made.values, expected.values, 0.04)
        if place.device.type == "cuda" and rows > 256:
            ways |= more_expert_ways(h8, ids, fc1, fc2, h_scale, inner_scale)
            ways |= bfloat16_expert_ways(h, ids, weights, mlp, report)
        flops = 2.0 * rows * mlp.experts_per_token * (fc1.values[0].numel() + fc2.values[0].numel())
        yield Case(
            "experts",
            rows,
            floor_ms(fc1.nbytes + fc2.nbytes, flops, FLOAT8_FLOPS),
            ways,
            partial(tflops, flops),
        )


def more_expert_ways(
    h8: Tensor, ids: Tensor, fc1: FewBits, fc2: FewBits, h_scale: float, inner_scale: float
) -> dict[str, Work]:
    """Other sizes of tiles. Pairs are sorted before the clock runs."""
    from kestrel_core.moondream.ops.float8_expert_kernels import tiled_product

    order, ends = plain.sort_pairs(ids, len(fc1.values))

    def tiled(first: Cut, second: Cut) -> Tensor:
        rows, dtype = len(h8), torch.bfloat16
        inner8 = tiled_product(h8, h_scale, fc1, order, ends, rows, True, inner_scale, dtype, first)
        return tiled_product(inner8, inner_scale, fc2, order, ends, rows, False, None, dtype, second)

    return {
        f"tiles {' '.join('x'.join(map(str, cut)) for cut in cuts)}": partial(tiled, *cuts)
        for cuts in TRIED_CUTS
    }


def bfloat16_expert_ways(
    h: Tensor, ids: Tensor, weights: Tensor, mlp: MoE, report: Report
) -> dict[str, Work]:
    """Tiles in place of torch's grouped products, sorting included."""
    from kestrel_core.moondream.ops.expert_kernels import tiled_experts
    from kestrel_core.moondream.ops.routing_kernels import invert

    def tiled(first: Cut, second: Cut) -> Pairs:
        order, ends = plain.sort_pairs(ids, len(mlp.fc1.weight))
        values = tiled_experts(h, order, ends, mlp.fc1.weight, mlp.fc2.weight, None, (first, second))
        return Pairs(values, weights, invert(order))

    nothing = torch.zeros_like(h)
    expected = plain.experts(h, ids, weights, mlp.fc1.weight, mlp.fc2.weight)
    right = plain.add_norm(nothing, None, expected, None)[0]
    found: dict[str, Work] = {}
    for cuts in BFLOAT16_CUTS:
        name = f"bf16 tiles {' '.join('x'.join(map(str, cut)) for cut in cuts)}"
        found[name] = partial(tiled, *cuts)
        made = plain.add_norm(nothing, None, tiled(*cuts), None)[0]
        judge(report, f"experts, {name}", made, right, 0.02)
    return found


def vision_cases(sizes: Sizes, ops: Float8Ops, place: Place, report: Report) -> Iterator[Case]:
    model = network(sizes.two, place, 1, sizes.vision_layers)
    vision, fused, scales = model.vision, ops.few.fused, measured(model)
    side = vision.config.crop_size
    encoders = {"bf16": FastVision(vision, fused)}
    attention = encoders["bf16"].attention
    encoders["bf16, our attention"] = FastVision(vision, fused, attention="ours")
    encoders["fp8, scales by row"] = FastVision(vision, fused, float8=True, attention=attention)
    for way, products in ways_to_multiply(ops, place).items():
        encoders[f"fp8, fixed, {way}"] = float8_vision(vision, fused, products, scales, attention)
    for summing in (False, True):
        name = f"fp8, our attention{', sums in products' * summing}"
        encoders[name] = float8_vision(vision, fused, ops.products, scales, "ours", sum_in_products=summing)
        if encoders[name].attention != "ours":
            log.warning("our attention cannot serve, and %s has torch's", name)
    few = torch.randint(0, 256, (2, side, side, 3), dtype=torch.uint8, device=place.device)
    for way, encoder in encoders.items():
        report.say(f"vision, {way}", deviation(vision, encoder, few), 0.05)
    flops = sum(layer.weight.numel() for layer in vision.blocks.modules() if isinstance(layer, nn.Linear))
    for crops in sizes.crops:
        pictures = torch.randint(0, 256, (crops, side, side, 3), dtype=torch.uint8, device=place.device)
        ways = {way: partial(encoder, pictures) for way, encoder in encoders.items()}
        needed = 2.0 * flops * crops * vision.config.num_patches
        yield Case("vision", crops, floor_ms(0, needed, FLOAT8_FLOPS), ways, graphed=False)


def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """In place of attention, which takes as long in every way."""
    return q


def text_cases(sizes: Sizes, ops: Float8Ops, place: Place, report: Report) -> Iterator[Case]:
    for name, config in (("Moondream 2", sizes.two), ("Moondream 3", sizes.three)):
        model = network(config, place, sizes.layers, 0)
        text, scales = model.text, measured(model)
        inputs = {
            rows: (place.randn(rows, config.text.dim), torch.arange(rows, device=place.device), attend, None)
            for rows in sizes.rows
        }
        expected = {rows: text(*given) for rows, given in inputs.items()}
        forwards = {
            f"fp8, {way}": float8_text(text, ops._replace(products=products), scales)
            for way, products in ways_to_multiply(ops, place).items()
        }
        forwards = {"bf16": FastText(text, ops.few.fused), **forwards}
        for rows, given in inputs.items():
            for way, forward in forwards.items():
                limit = 0.02 if way == "bf16" else 0.08
                judge(report, f"{name}, {way}, {rows} rows", forward(*given), expected[rows], limit)
            ways = {way: partial(forward, *given) for way, forward in forwards.items()}
            yield Case(f"{name}, a layer", rows, 0.0, ways, calls=sizes.layers)


def cases(parts: Sequence[str], sizes: Sizes, place: Place, report: Report) -> Iterator[Case]:
    fused = choose_fused(place.device)
    ops = choose_float8(fused, place.device, place.dtype)
    makers = {
        "rounding": partial(rounding_cases, sizes, fused),
        "products": partial(product_cases, sizes, ops),
        "experts": partial(expert_cases, sizes, ops),
        "vision": partial(vision_cases, sizes, ops),
        "text": partial(text_cases, sizes, ops),
    }
    for part in parts:
        try:
            yield from makers[part](place, report)
        except Exception:  # so that the other parts go on
            log.exception("%s stops here", part)
            report.failed.append(part)
    left_out = getattr(ops.products, "left_out", "all")
    log.warning("products by %s; without an algorithm of cuBLASLt: %s", ops.products.name, left_out or "none")


@torch.inference_mode()
def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--seconds", type=float, default=0.1, help="of each measurement (%(default)s)")
    asked = parser.parse_args(arguments)
    console = Console(stderr=True, width=150)
    place, report = Place(torch.device("cuda"), torch.bfloat16, asked.seconds), Report(console)
    print_stages(place, cases(asked.only, Sizes(), place, report), False, console)
    report.sum_up()
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
