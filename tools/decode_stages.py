"""Decode steps of few rows, in parts and whole, in each way they can be computed.

For those who write kernels: `python tools/decode_stages.py`, which needs a GPU. First everything is compared
with plain torch, then timed: attention over pages, the products of one row, experts, and whole captured steps
with each choice of `decode_kernels`. Weights are random. Kernels are compiled once for each way, which takes
longer than timing them: `--share 2/6` runs every sixth way once, for several processes to fill the cache.
"""

import argparse
import logging
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial

import torch
from rich.console import Console
from torch import Tensor

from decode_checks import check_attention, check_products
from decode_rows import CONTEXT, MAX_CONTEXT, copied, fill, filled_cache, rows_of
from decode_steps import print_steps
from kestrel_core.moondream.config import MOONDREAM2, MOONDREAM3
from kestrel_core.moondream.fast_text import make_rotary_tables
from kestrel_core.moondream.ops.protocol import Cut, Heads, Norm, Pairs, TauWeights
from kestrel_core.runtime.attention.choose import choose_attention
from kestrel_core.runtime.attention.protocol import DecodeAttention
from kestrel_core.runtime.kv_cache import KVCache
from stages import Case, Place, Report, Work, compile_share, floor_ms, print_stages

log = logging.getLogger(__name__)

LAYERS = 8  # copies of the weights, more than any cache holds
SECONDS = 0.03
STAGES = ("check", "attention", "products", "experts", "small", "step")
PIECES = (
    (16, 32, 2),
    (16, 64, 4),
    (16, 64, 2),
    (16, 32, 4),
    (8, 128, 8),
    (8, 64, 4),
    (8, 64, 2),
    (32, 32, 2),
)
FEWER_PIECES = ((4, 32, 2), (2, 32, 2), (1, 32, 2), (2, 64, 4), (1, 64, 4), (1, 64, 2), (1, 128, 8))
WIDE = (
    Cut(4, 2048, 4),
    Cut(2, 2048, 4),
    Cut(2, 2048, 2),
    Cut(8, 2048, 8),
    Cut(8, 1024, 4),
    Cut(8, 256, 4),
    Cut(16, 256, 4),
)
NARROW = (
    Cut(4, 1024, 4),
    Cut(2, 2048, 4),
    Cut(4, 2048, 8),
    Cut(2, 1024, 2),
    Cut(4, 512, 2),
    Cut(8, 256, 4),
    Cut(2, 2048, 8),
)
EXPERT_CUTS = (
    (Cut(4, 2048, 4), Cut(8, 1024, 4)),
    (Cut(2, 2048, 4), Cut(4, 1024, 4)),
    (Cut(8, 2048, 8), Cut(16, 1024, 4)),
    (Cut(4, 1024, 4), Cut(4, 1024, 2)),
    (Cut(8, 256, 4), Cut(16, 256, 4)),
)


def lazily(make: Callable[[], Work]) -> Work:
    """Made at the first call, so that a way that cannot be made leaves the others alone."""
    made: list[Work] = []

    def work() -> None:
        if not made:
            made.append(make())
        made[0]()

    return work


def named(what: object, early: bool) -> str:
    return f"{'/'.join(map(str, what)) if isinstance(what, tuple) else what}{', early' * early}"


def attention_cases(place: Place) -> Iterator[Case]:
    config = MOONDREAM2.text

    @lru_cache(maxsize=1)
    def cache_for(num_rows: int) -> KVCache:
        return filled_cache(config, num_rows * 85 + 2, place.device, place.dtype)

    def layers(decode: DecodeAttention, num_rows: int) -> Work:
        q = place.randn(num_rows, config.n_heads, config.head_dim)

        def work() -> None:
            attend = decode.begin()
            torch.add(q, 0.0)  # a launch between plan and attention, as in a step
            for layer in range(config.n_layers):
                attend.read(layer, q)

        return work

    def ours(num_rows: int, pieces: Sequence[int], early: bool) -> Work:
        from kestrel_core.runtime.attention.few_rows import FewRowsDecode
        from kestrel_core.runtime.attention.page_kernels import Pieces

        cache = cache_for(num_rows)
        rows = rows_of([CONTEXT] * num_rows, cache)
        return layers(FewRowsDecode(cache, config, MAX_CONTEXT, rows, Pieces(*pieces), early), num_rows)

    def flashinfer(num_rows: int) -> Work:
        cache = cache_for(num_rows)
        rows = rows_of([CONTEXT] * num_rows, cache)
        decode = choose_attention(cache, config, MAX_CONTEXT, "required").for_decode(rows, captured=True)
        saved = copied(rows)
        decode.plan(rows.indptr.cpu().numpy())
        fill(rows, saved)
        return layers(decode, num_rows)

    for num_rows in (1, 4, 16, 32):
        ways = {"flashinfer": lazily(partial(flashinfer, num_rows))}
        for pieces in PIECES if num_rows < 4 else FEWER_PIECES:
            for early in (False, True) if pieces == PIECES[0] else (False,):
                ways[named(pieces, early)] = lazily(partial(ours, num_rows, pieces, early))
        num_bytes = 2 * num_rows * CONTEXT * config.n_kv_heads * config.head_dim * place.dtype.itemsize
        yield Case("attention", num_rows, floor_ms(num_bytes, 0), ways, calls=config.n_layers)


# Products and experts of one row


def product_cases(place: Place) -> Iterator[Case]:
    from kestrel_core.moondream.ops.kernels import few_rows_product
    from kestrel_core.moondream.ops.one_row_kernels import one_row_product

    shapes = {
        "first of Moondream 2": (14336, 2048, 0, WIDE),
        "second of Moondream 2": (2048, 2048, 8192, NARROW),
        "first of Moondream 3": (6208, 2048, 0, WIDE),
        "output of Moondream 3": (2048, 2048, 0, NARROW),
    }
    for name, (out_dim, x_dim, y_dim, cuts) in shapes.items():
        weights = [(place.randn(out_dim, x_dim), place.randn(out_dim, y_dim)) for _ in range(LAYERS)]
        x, y, bias = place.randn(1, x_dim), place.randn(1, y_dim), place.randn(out_dim)

        def run(
            multiply: Callable[..., Tensor],
            weights: Sequence[tuple[Tensor, Tensor]] = weights,
            x: Tensor = x,
            y: Tensor = y,
            bias: Tensor = bias,
        ) -> None:
            for w, other in weights:
                multiply(x, w, y, other, bias)

        ways: dict[str, Work] = {
            named("matrix units", early): partial(run, partial(few_rows_product, early=early))
            for early in (False, True)
        }
        for cut in cuts:
            for early in (False, True) if cut == cuts[0] else (True,):
                ways[named(cut[:3], early)] = partial(run, partial(one_row_product, early=early, cut=cut))
        floor = floor_ms(2.0 * out_dim * (x_dim + y_dim), 0)
        yield Case(name, 1, floor, ways, calls=LAYERS)


def expert_cases(place: Place) -> Iterator[Case]:
    from kestrel_core.moondream.ops.expert_kernels import few_tokens_experts
    from kestrel_core.moondream.ops.one_row_kernels import one_token_experts

    fc1, fc2, h = place.randn(64, 2048, 2048), place.randn(64, 2048, 1024), place.randn(1, 2048)
    ids = torch.randperm(64, device=place.device).int().view(8, 1, 8)  # others at each call

    def run(multiply: Callable[..., Tensor]) -> None:
        for one in ids:
            multiply(h, one, fc1, fc2)

    ways: dict[str, Work] = {"matrix units": partial(run, partial(few_tokens_experts, adapters=None))}
    for cuts in EXPERT_CUTS:
        for early in (False, True) if cuts == EXPERT_CUTS[0] else (True,):
            ours = partial(one_token_experts, early=early, first=cuts[0], second=cuts[1])
            ways[named(" ".join(named(cut[:3], False) for cut in cuts), early)] = partial(run, ours)
    yield Case("experts of a token", 1, floor_ms(8 * 2 * 3 * 2048 * 1024, 0), ways, calls=len(ids))


def small_cases(place: Place) -> Iterator[Case]:
    """What lies between the products: tau and rotation, sums and norms."""
    from kestrel_core.moondream.ops import kernels

    config = MOONDREAM3.text
    heads = Heads(config.n_heads, config.n_kv_heads, config.head_dim)
    tables = make_rotary_tables(config, place.device)
    tau = TauWeights(place.randn(2 * heads.num, config.qkv_dim), place.randn(heads.num))
    norm = Norm(place.randn(2048), place.randn(2048), 1e-5)
    for rows in (1, 4, 8, 16):
        packed, positions = place.randn(rows, config.qkv_dim + 64), torch.arange(rows, device=place.device)
        x, y = place.randn(rows, 2048), place.randn(rows, 2048)
        pairs = Pairs(place.randn(8 * rows, 2048).float(), place.randn(rows, 8), None)
        rotate = partial(kernels.rotate, packed, positions, tables, heads, tau, None, 0)
        add_norm = partial(kernels.add_norm, x, y, pairs, norm)
        for stage, work in (("tau and rotation", rotate), ("sum of pairs and norm", add_norm)):
            ways: dict[str, Work] = {
                named("new" if new else "before", early): partial(work, new, early)
                for new, early in ((False, False), (True, False), (True, True))
            }
            yield Case(stage, rows, 0.0, ways)


def cases(place: Place, stages: Sequence[str]) -> Iterator[Case]:
    for stage, make in (
        ("attention", attention_cases),
        ("products", product_cases),
        ("experts", expert_cases),
        ("small", small_cases),
    ):
        if stage in stages:
            yield from make(place)


@torch.inference_mode()
def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=STAGES, default=STAGES)
    parser.add_argument("--models", nargs="+", choices=("2", "3"), default=("2", "3"))
    parser.add_argument("--rows", nargs="+", type=int, default=(1, 4, 16), help="of whole steps")
    parser.add_argument("--share", metavar="I/N", help="only compile the I-th of N parts")
    asked = parser.parse_args(arguments)
    device, console = torch.device("cuda"), Console(stderr=True, width=140)
    place, report = Place(device, torch.bfloat16, SECONDS), Report(console)
    if asked.share:
        compile_share(cases(place, asked.only), asked.share)
        return
    if "check" in asked.only:
        for check in (check_attention, check_products):
            try:
                check(device, report)
            except Exception:
                log.exception("a check fails")
                report.failed.append(check.__name__)
    print_stages(place, cases(place, asked.only), False, console)
    report.sum_up()
    if "step" in asked.only:
        for name, shape in (("2", MOONDREAM2), ("3", MOONDREAM3)):
            if name in asked.models:
                print_steps(f"Moondream {name}", shape, device, asked.rows)


if __name__ == "__main__":
    main()
