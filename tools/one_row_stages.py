"""Time of one row's products with weights in float8, cut in several ways, beside bfloat16 and memory's floor.

For those who write kernels: `python tools/one_row_stages.py`, which needs a GPU. Full widths, random weights
that no cache holds; first every way is held against plain torch. `--share 2/8` compiles an eighth of the ways
and does nothing else, so that several processes can do it at once before the one that measures.
"""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import NamedTuple

import torch
from rich.console import Console
from torch import Tensor

from few_bits_stages import Product, products, weight
from kestrel_core.moondream.config import MOONDREAM2, MOONDREAM3, TextConfig
from kestrel_core.moondream.ops import few_bits
from kestrel_core.moondream.ops.few_bits import FewBits, pack_weights
from kestrel_core.moondream.ops.protocol import Cut
from stages import Case, Place, Report, Work, compile_share, distance, floor_ms, print_stages

SETS = 12  # of weights, which take turns: a cache holds 60 MB
SECONDS = 0.03
LIMIT = 0.01  # of the RMS: rounding to bfloat16
NARROW = (Cut(4, 2048, 8), Cut(4, 2048, 4), Cut(2, 2048, 4), Cut(8, 1024, 8), Cut(4, 1024, 4))
WIDE = (Cut(8, 1024, 4), Cut(16, 512, 4), Cut(4, 2048, 4), Cut(8, 2048, 8), Cut(16, 1024, 8))
OF_EXPERTS = (
    (Cut(8, 512, 4), Cut(16, 512, 4)),
    (Cut(4, 1024, 4), Cut(8, 1024, 4)),
    (Cut(8, 256, 4), Cut(16, 256, 4)),
    (Cut(4, 2048, 8), Cut(8, 1024, 8)),
    (Cut(4, 512, 4), Cut(8, 512, 4)),
)

Once = Callable[[], Tensor]


class Way(NamedTuple):
    """Of float8."""

    first: Cut
    second: Cut  # of experts
    early: bool
    convert: bool

    @property
    def name(self) -> str:
        cuts = (self.first,) if self.first == self.second else (self.first, self.second)
        named = " ".join("/".join(map(str, cut[:3])) for cut in cuts)
        return f"fp8 {named}{' convert' * self.convert}{' early' * self.early}"


def ways(cuts: Sequence[tuple[Cut, Cut]]) -> list[Way]:
    return [
        Way(*pair, early, convert) for pair in cuts for early in (False, True) for convert in (False, True)
    ]


def product_calls(one: Product, place: Place, sets: int) -> dict[str, list[Once]]:
    """What each way calls, once for each set of weights. The first way is the other's of plain torch."""
    from kestrel_core.moondream.ops.one_row_kernels import NARROW_DIM, one_row_float8, one_row_product

    x, bias = place.randn(1, one.x_dim), place.randn(one.out_dim)
    y = place.randn(1, one.y_dim)
    wide = [(weight(place, one.out_dim, one.x_dim), _other(place, one)) for _ in range(sets)]
    packed = [(pack_weights(w, "fp8"), pack_weights(other, "fp8")) for w, other in wide]
    cuts = [(cut, cut) for cut in (NARROW if one.out_dim <= NARROW_DIM else WIDE)]

    def float8(w: FewBits, other: FewBits, way: Way) -> Tensor:
        of_y = other if one.y_dim else None
        return one_row_float8(x, w, y if one.y_dim else None, of_y, bias, way.early, way.first, way.convert)

    def plain(w: FewBits, other: FewBits) -> Tensor:
        made = few_bits.linear(x.float(), w, bias.float())
        return made if not one.y_dim else made + few_bits.linear(y.float(), other, None)

    calls: dict[str, list[Once]] = {"plain": [partial(plain, *pair) for pair in packed]}
    of_y = [other if one.y_dim else w[:, :0] for w, other in wide]
    for early in (False, True):
        calls[f"bf16{' early' * early}"] = [
            partial(one_row_product, x, w, y, other, bias, early)
            for (w, _), other in zip(wide, of_y, strict=True)
        ]
    for way in ways(cuts):
        calls[way.name] = [partial(float8, *pair, way) for pair in packed]
    return calls


def _other(place: Place, one: Product) -> Tensor:
    return weight(place, one.out_dim, one.y_dim or 64)


def expert_calls(three: TextConfig, place: Place) -> dict[str, list[Once]]:
    """Each call has other experts."""
    from kestrel_core.moondream.ops.one_row_kernels import one_token_experts

    moe = three.moe
    assert moe is not None
    shapes = (2 * moe.expert_inner_dim, three.dim), (three.dim, moe.expert_inner_dim)
    wide_fc1, wide_fc2 = (weight(place, moe.num_experts, *shape) for shape in shapes)
    fc1, fc2 = pack_weights(wide_fc1, "fp8"), pack_weights(wide_fc2, "fp8")
    h, num_calls = place.randn(1, three.dim), moe.num_experts // moe.experts_per_token
    ids = torch.randperm(moe.num_experts, device=place.device).int().view(num_calls, 1, -1).unbind(0)
    weights = torch.ones_like(ids[0], dtype=torch.float32)

    def plain(chosen: Tensor) -> Tensor:
        pairs = few_bits.experts_few(h.float(), chosen, weights, fc1, fc2)
        return pairs.values if pairs.rows is None else pairs.values[pairs.rows]

    def ours(chosen: Tensor, way: Way) -> Tensor:
        return one_token_experts(h, chosen, fc1, fc2, way.early, way.first, way.second, way.convert)

    calls: dict[str, list[Once]] = {"plain": [partial(plain, one) for one in ids]}
    for early in (False, True):
        calls[f"bf16{' early' * early}"] = [
            partial(one_token_experts, h, one, wide_fc1, wide_fc2, early) for one in ids
        ]
    for way in ways(OF_EXPERTS):
        calls[way.name] = [partial(ours, one, way) for one in ids]
    return calls


def all_calls(
    place: Place, two: TextConfig, three: TextConfig, sets: int = SETS
) -> Iterator[tuple[str, float, dict[str, list[Once]]]]:
    """Each stage's name, numbers in its weights, and calls."""
    for one in products(two):
        some = 2 if one.name == "output" else sets
        yield one.name, one.out_dim * (one.x_dim + one.y_dim), product_calls(one, place, some)
    moe = three.moe
    assert moe is not None
    numbers = moe.experts_per_token * 3 * three.dim * moe.expert_inner_dim
    yield "experts", numbers, expert_calls(three, place)


def check(stages: Iterator[tuple[str, float, dict[str, list[Once]]]], report: Report) -> None:
    for name, _, calls in stages:
        expected = calls["plain"][0]()
        for way, some in calls.items():
            if way.startswith("fp8"):
                report.say(f"{name}, {way}", distance(some[0](), expected), LIMIT)


def case(name: str, numbers: float, calls: Mapping[str, Sequence[Once]]) -> Iterator[Case]:
    def run(some: Sequence[Once]) -> None:
        for one in some:
            one()

    for bits, size in (("bf16", 2), ("fp8", 1)):
        timed: dict[str, Work] = {
            way: partial(run, some) for way, some in calls.items() if way.startswith(bits)
        }
        num_bytes = numbers * size

        def remark(ms: float, num_bytes: float = num_bytes) -> str:
            return f"{num_bytes / ms / 1e9:.2f} TB/s"

        num_calls = len(next(iter(calls.values())))
        yield Case(name, 1, floor_ms(num_bytes, 0), timed, remark, calls=num_calls)


@torch.inference_mode()
def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--share", metavar="I/N", help="only compile the I-th of N parts")
    asked = parser.parse_args(arguments)
    place, console = Place(torch.device("cuda"), torch.bfloat16, SECONDS), Console(stderr=True, width=140)
    shapes = place, MOONDREAM2.text, MOONDREAM3.text

    def cases(sets: int) -> Iterator[Case]:
        return chain.from_iterable(case(*stage) for stage in all_calls(*shapes, sets))

    if asked.share:
        compile_share(cases(1), asked.share)
        return
    report = Report(console)
    check(all_calls(*shapes, 1), report)
    print_stages(place, cases(SETS), False, console)
    report.sum_up()


if __name__ == "__main__":
    main()
