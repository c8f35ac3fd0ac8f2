"""Time of products with weights in 8 and 4 bits, cut in several ways, beside bfloat16 and what memory allows.

For those who write kernels: `python tools/few_bits_stages.py`, which needs a GPU. Full widths, random weights
that no cache holds; first every kernel is held against plain torch. Compiling all cuts takes
longer than measuring them: `--share 2/8` compiles an eighth of them and does nothing else, so that several
processes can do it at once before the one that measures.
"""

import argparse
import math
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from typing import NamedTuple

import torch
from rich.console import Console
from torch import Tensor

from kestrel_core.moondream.config import MOONDREAM2, MOONDREAM3, MoondreamConfig, TextConfig
from kestrel_core.moondream.ops import few_bits, plain
from kestrel_core.moondream.ops.few_bits import KINDS, FewBits, Kind, pack_weights, unpack
from kestrel_core.moondream.ops.protocol import Cut
from stages import Case, Place, Report, Work, compile_share, distance, floor_ms, print_stages

SETS = 8  # of weights, which take turns: the smallest matrix of a block in 4 bits is 2 MB, a cache holds 60
ROWS = (1, 4, 16)
SECONDS = 0.03
CUTS: dict[Kind, tuple[Cut, ...]] = {
    "fp8": (
        Cut(16, 128, 4, 4),
        Cut(16, 128, 4, 2),
        Cut(16, 64, 4, 4),
        Cut(16, 128, 2, 4),
        Cut(16, 64, 8, 4),
        Cut(16, 128, 8, 4),
        Cut(32, 128, 4, 3),
        Cut(32, 128, 2, 4),
    ),
    "int4": (
        Cut(16, 128, 4, 3),
        Cut(16, 128, 4, 2),
        Cut(16, 128, 2, 3),
        Cut(16, 128, 2, 4),
        Cut(16, 128, 8, 2),
        Cut(16, 128, 8, 3),
        Cut(32, 128, 4, 2),
        Cut(32, 128, 2, 3),
    ),
}
EXPERT_CUTS: dict[Kind, tuple[tuple[Cut, Cut], ...]] = {
    "fp8": (
        (Cut(16, 128, 4, 4), Cut(16, 128, 4, 2)),
        (Cut(32, 128, 4, 3), Cut(16, 64, 4, 4)),
        (Cut(32, 128, 2, 4), Cut(32, 128, 2, 4)),
        (Cut(32, 64, 4, 4), Cut(32, 64, 4, 4)),
    ),
    "int4": (
        (Cut(16, 128, 4, 3), Cut(16, 128, 4, 2)),
        (Cut(32, 128, 4, 2), Cut(16, 128, 2, 2)),
        (Cut(32, 128, 2, 3), Cut(32, 128, 2, 2)),
        (Cut(32, 128, 4, 3), Cut(32, 128, 4, 2)),
    ),
}


class Product(NamedTuple):
    name: str
    out_dim: int
    x_dim: int
    y_dim: int


def products(two: TextConfig) -> tuple[Product, ...]:
    """A dense block's two, the attention's of a block with experts, and the output layer's."""
    return (
        Product("first", two.qkv_dim + two.ff_dim, two.dim, 0),
        Product("second", two.dim, two.dim, two.ff_dim),
        Product("qkv", two.qkv_dim, two.dim, 0),
        Product("proj", two.dim, two.dim, 0),
        Product("output", two.vocab_size, two.dim, 0),
    )


def weight(place: Place, *shape: int) -> Tensor:
    return place.randn(*shape) / math.sqrt(shape[-1])


def product_cases(two: TextConfig, place: Place, rows: Sequence[int]) -> Iterator[Case]:
    for one in products(two):
        sets = 2 if one.name == "output" else SETS
        matrices = [
            (weight(place, one.out_dim, one.x_dim), weight(place, one.out_dim, max(one.y_dim, 1)))
            for _ in range(sets)
        ]
        bias = place.randn(one.out_dim)
        packed = {kind: [tuple(pack_weights(w, kind) for w in pair) for pair in matrices] for kind in KINDS}
        for num in rows:
            x, y = place.randn(num, one.x_dim), place.randn(num, max(one.y_dim, 1))
            cuts = CUTS if one.name in ("first", "second") else {kind: cut[:3] for kind, cut in CUTS.items()}
            size = one.out_dim * (one.x_dim + one.y_dim)
            yield _case(one.name, num, 2.0 * size, sets, {"bf16": partial(_wide, one, matrices, x, y, bias)})
            for kind in KINDS:
                num_bytes = sum(w.nbytes for w in packed[kind][0][: 1 + (one.y_dim > 0)])
                ways = _ways(one, packed[kind], x, y, bias, cuts[kind])
                yield _case(one.name, num, num_bytes, sets, ways)


def mixed_cases(two: TextConfig, place: Place, rows: Sequence[int]) -> Iterator[Case]:
    """A dense block's products as quantize=int4 has them: attention in 8 bits, the MLP in 4."""
    if place.device.type != "cuda":
        return
    from kestrel_core.moondream.ops import few_bits_kernels as kernels

    shapes = (two.qkv_dim, two.dim), (two.ff_dim, two.dim), (two.dim, two.dim), (two.dim, two.ff_dim)
    packed = [
        tuple(pack_weights(weight(place, *shape), KINDS[i % 2]) for i, shape in enumerate(shapes))
        for _ in range(SETS)
    ]
    bias = place.randn(two.qkv_dim + two.ff_dim)
    cuts = [Cut(16, 128, warps, stages) for warps, stages in ((2, 3), (8, 3), (4, 3), (8, 2))]
    for num in rows:
        x, y = place.randn(num, two.dim), place.randn(num, two.ff_dim)

        def first(cut: Cut, x: Tensor = x) -> None:
            for qkv, fc1, _, _ in packed:
                kernels.few_rows_beside(x, qkv, fc1, bias, cut)

        def second(cut: Cut, x: Tensor = x, y: Tensor = y) -> None:
            for _, _, proj, fc2 in packed:
                kernels.few_rows(x, proj, y, fc2, bias[: two.dim], cut)

        for name, run, some in (("first", first, packed[0][:2]), ("second", second, packed[0][2:])):
            ways: dict[str, Work] = {f"mixed {_named(cut)}": partial(run, cut) for cut in cuts}
            yield _case(name, num, sum(w.nbytes for w in some), SETS, ways)


def _case(name: str, num: int, num_bytes: float, calls: int, ways: dict[str, Work]) -> Case:
    def remark(ms: float) -> str:
        return f"{num_bytes / ms / 1e9:.2f} TB/s"

    return Case(name, num, floor_ms(num_bytes, 0), ways, remark, calls=calls)


def _wide(
    one: Product, matrices: Sequence[tuple[Tensor, Tensor]], x: Tensor, y: Tensor, bias: Tensor
) -> None:
    ops = _fused(x.device)
    for w, other in matrices:
        if one.y_dim:
            ops.linear_sum(x, w, y, other, bias)
        else:
            ops.linear(x, w, bias)


def _ways(
    one: Product,
    packed: Sequence[tuple[FewBits, ...]],
    x: Tensor,
    y: Tensor,
    bias: Tensor,
    cuts: Sequence[Cut],
) -> dict[str, Work]:
    kind = packed[0][0].kind
    if x.device.type != "cuda":
        return {f"{kind} plain": lambda: [few_bits.linear(x, w, bias) for w, _ in packed]}
    from kestrel_core.moondream.ops import few_bits_kernels as kernels

    def run(cut: Cut) -> None:
        for w, other in packed:
            if one.y_dim:
                kernels.few_rows(x, w, y, other, bias, cut)
            else:
                kernels.few_rows(x, w, None, None, bias, cut)

    first = packed[0] if one.y_dim else packed[0][:1]
    chosen = {kernels.fitting(cut, *first): None for cut in cuts}
    default = kernels.cut_for(one.out_dim, *first)
    named = {f"{kind} {_named(cut)}": partial(run, cut) for cut in chosen if cut != default}
    return {f"{kind} {_named(default)} *": partial(run, default), **named}


def _named(cut: Cut) -> str:
    return "/".join(map(str, cut[:4]))


def _fused(device: torch.device):  # type: ignore[no-untyped-def]
    if device.type != "cuda":
        return plain
    from kestrel_core.moondream.ops import kernels

    return kernels


def expert_cases(three: TextConfig, place: Place, tokens: Sequence[int], many: int) -> Iterator[Case]:
    """Tokens that choose others of the experts at each call."""
    moe = three.moe
    assert moe is not None
    shapes = (2 * moe.expert_inner_dim, three.dim), (three.dim, moe.expert_inner_dim)
    fc1, fc2 = (weight(place, moe.num_experts, *shape) for shape in shapes)
    packed = {kind: (pack_weights(fc1, kind), pack_weights(fc2, kind)) for kind in KINDS}
    calls = moe.num_experts // moe.experts_per_token
    for num in (*tokens, many):
        h, weights = place.randn(num, three.dim), place.randn(num, moe.experts_per_token)
        scores = [place.randn(num, moe.num_experts) for _ in range(calls)]
        if num == 1:  # disjoint, so that no cache helps
            order = torch.randperm(moe.num_experts, device=place.device)
            of_call = order.view(calls, 1, -1).int().unbind(0)
        else:
            of_call = tuple(plain.route(score, moe.experts_per_token)[0] for score in scores)
        touched = sum(len(ids.unique()) for ids in of_call) / calls
        for kind in (None, *KINDS):
            pair = (fc1, fc2) if kind is None else packed[kind]
            num_bytes = touched / moe.num_experts * sum(w.nbytes for w in pair)
            ways = _expert_ways(h, of_call, weights, pair, num == many)
            case = _case("experts", num, num_bytes, calls, ways)
            yield case if num != many else case._replace(stage="experts, many")


def _expert_ways(
    h: Tensor,
    of_call: Sequence[Tensor],
    weights: Tensor,
    pair: tuple[Tensor, Tensor] | tuple[FewBits, FewBits],
    many: bool,
) -> dict[str, Work]:
    fc1, fc2 = pair
    if isinstance(fc1, Tensor):
        fused = _fused(h.device)
        return {"bf16": lambda: [fused.experts(h, ids, weights, fc1, fc2) for ids in of_call]}
    assert isinstance(fc2, FewBits)
    if h.device.type != "cuda":
        return {f"{fc1.kind} plain": lambda: [few_bits.experts_few(h, i, weights, fc1, fc2) for i in of_call]}
    from kestrel_core.moondream.ops import few_bits_expert_kernels as experts
    from kestrel_core.moondream.ops import few_bits_kernels as kernels

    def run(cuts: tuple[Cut, Cut] | None) -> None:
        for ids in of_call:
            if cuts is None:
                experts.experts_few(h, ids, weights, fc1, fc2)
            else:
                experts.few_tokens_experts(h, ids, fc1, fc2, None, cuts)

    ways: dict[str, Work] = {f"{fc1.kind} *": partial(run, None)}
    for first, second in () if many else EXPERT_CUTS[fc1.kind]:
        cuts = kernels.fitting(first, fc1), kernels.fitting(second, fc2)
        ways[f"{fc1.kind} {_named(cuts[0])} {_named(cuts[1])}"] = partial(run, cuts)
    return ways


def unpack_cases(two: TextConfig, place: Place) -> Iterator[Case]:
    """Unpacking before a product of many rows, and the product."""
    out_dim, in_dim = two.qkv_dim + two.ff_dim, two.dim
    matrices = [weight(place, out_dim, in_dim) for _ in range(2)]
    x, bias = place.randn(745, in_dim), place.randn(out_dim)
    yield _case(
        "745 rows",
        745,
        2.0 * out_dim * in_dim,
        2,
        {"bf16": lambda: [plain.linear(x, w, bias) for w in matrices]},
    )
    if place.device.type != "cuda":
        return
    from kestrel_core.moondream.ops import few_bits_kernels as kernels

    out = torch.empty((out_dim, in_dim), dtype=place.dtype, device=place.device)
    for kind in KINDS:
        packed = [pack_weights(w, kind) for w in matrices]
        num_bytes = packed[0].nbytes + out.nbytes

        def unpacked(packed: Sequence[FewBits] = packed) -> None:
            for w in packed:
                kernels.unpack_into(w, out)

        def multiplied(packed: Sequence[FewBits] = packed) -> None:
            for w in packed:
                kernels.linear(x, w, bias)

        yield _case("unpack", out_dim, num_bytes, 2, {kind: unpacked})
        yield _case("745 rows", 745, num_bytes, 2, {kind: multiplied})


def check(two: TextConfig, three: TextConfig, place: Place, report: Report) -> None:
    """Every kernel against plain torch with the same packed numbers: they may differ by rounding only."""
    from kestrel_core.moondream.ops import few_bits_expert_kernels as experts
    from kestrel_core.moondream.ops import few_bits_kernels as kernels

    moe = three.moe
    assert moe is not None

    def judge(what: str, ours: Tensor, expected: Tensor) -> None:
        report.say(what, distance(ours, expected), 0.01)

    numbers = torch.arange(256, dtype=torch.uint8, device=place.device)
    numbers = numbers[numbers & 127 != 127].view(torch.float8_e4m3fn)[None]  # without the two NaN
    wide = torch.empty(numbers.shape, dtype=place.dtype, device=place.device)
    kernels.unpack_into(FewBits(numbers, wide.new_ones(1, dtype=torch.float32), "fp8", wide.shape[1]), wide)
    differ = float((wide.float() != numbers.float()).float().mean())
    report.say("unpacked float8 numbers that differ", differ, 1e-9)
    dim = two.dim
    qkv, proj = (pack_weights(weight(place, out, dim), "fp8") for out in (two.qkv_dim, dim))
    fc1, fc2 = (
        pack_weights(weight(place, *shape), "int4") for shape in ((two.ff_dim, dim), (dim, two.ff_dim))
    )
    for rows in (1, 16, 40):
        x, y, bias = (
            place.randn(rows, dim),
            place.randn(rows, two.ff_dim),
            place.randn(two.qkv_dim + two.ff_dim),
        )
        expected = few_bits.linear_beside(x.float(), qkv, fc1, bias.float())
        judge(f"mixed first, {rows} rows", kernels.linear_beside(x, qkv, fc1, bias), expected)
        expected = few_bits.linear_sum(x.float(), proj, y.float(), fc2, bias[:dim].float())
        judge(f"mixed second, {rows} rows", kernels.linear_sum(x, proj, y, fc2, bias[:dim]), expected)
    for kind in KINDS:
        for one in products(two)[:2]:
            w = pack_weights(weight(place, one.out_dim, one.x_dim), kind)
            other = pack_weights(weight(place, one.out_dim, one.y_dim or 64), kind)
            wide, wide_other, bias = (
                unpack(w, torch.float32),
                unpack(other, torch.float32),
                place.randn(one.out_dim),
            )
            for rows in (1, 4, 11, 16, 40):
                x, y = place.randn(rows, one.x_dim), place.randn(rows, one.y_dim or 64)
                expected = plain.linear(x.float(), wide, bias.float())
                judge(f"{kind} {one.name}, {rows} rows", kernels.linear(x, w, bias), expected)
                if one.y_dim:
                    expected = plain.linear_sum(x.float(), wide, y.float(), wide_other, bias.float())
                    judge(f"{kind} sum, {rows} rows", kernels.linear_sum(x, w, y, other, bias), expected)
            out = torch.empty(w.shape, dtype=place.dtype, device=place.device)
            kernels.unpack_into(w, out)
            judge(f"{kind} unpacked", out, wide)
        shapes = (2 * moe.expert_inner_dim, three.dim), (three.dim, moe.expert_inner_dim)
        fc1, fc2 = (pack_weights(weight(place, moe.num_experts, *shape), kind) for shape in shapes)
        wide_fc1, wide_fc2 = unpack(fc1, place.dtype), unpack(fc2, place.dtype)
        for tokens in (1, 4, 16, 60, 300):
            h = place.randn(tokens, three.dim)
            ids, weights = plain.route(place.randn(tokens, moe.num_experts), moe.experts_per_token)
            pairs = (
                experts.experts_few(h, ids, weights, fc1, fc2),
                plain.experts(h, ids, weights, wide_fc1, wide_fc2),
            )
            ours, expected = (plain.add_norm(torch.zeros_like(h), None, one, None)[0] for one in pairs)
            judge(f"{kind} experts, {tokens} tokens", ours, expected.float())


def all_cases(
    place: Place,
    two: MoondreamConfig = MOONDREAM2,
    three: MoondreamConfig = MOONDREAM3,
    rows: Sequence[int] = ROWS,
    many: int = 745,
) -> Iterator[Case]:
    return chain(
        product_cases(two.text, place, rows),
        mixed_cases(two.text, place, rows),
        expert_cases(three.text, place, rows, many),
        unpack_cases(two.text, place),
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--share", metavar="I/N", help="only compile the I-th of N parts")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args(arguments)
    place, console = Place(torch.device("cuda"), torch.bfloat16, SECONDS), Console(stderr=True, width=140)
    if asked.share:
        compile_share(all_cases(place, rows=(1, 16)), asked.share)
        return
    report = Report(console)
    with torch.inference_mode():
        check(MOONDREAM2.text, MOONDREAM3.text, place, report)
    print_stages(place, all_cases(place), asked.json, console)
    report.sum_up()


if __name__ == "__main__":
    main()
