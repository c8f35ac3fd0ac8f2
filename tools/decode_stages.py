"""Decode steps of few rows, in parts and whole, in each way they can be computed.

For those who write kernels: `python tools/decode_stages.py`, which needs a GPU. First everything is compared
with plain torch, then timed: attention over pages, the products of one row, experts, and whole captured steps
with each choice of `decode_kernels`. Weights are random. Kernels are compiled once for each way, which takes
longer than timing them: `--shard 2/6` runs every sixth way once, for several processes to fill the cache.
"""

import argparse
import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from statistics import median
from typing import NamedTuple

import torch
from torch import Tensor

from decode_checks import check_attention, check_products
from decode_rows import CONTEXT, MAX_CONTEXT, copied, fill, filled_cache, rows_of
from decode_steps import print_steps
from kernel_stages import captured
from kestrel_core.moondream.config import MOONDREAM2, MOONDREAM3
from kestrel_core.moondream.fast_text import make_rotary_tables
from kestrel_core.moondream.ops.protocol import Heads, Norm, Pairs, TauWeights
from kestrel_core.runtime.attention.choose import choose_attention
from kestrel_core.runtime.kv_cache import KVCache

log = logging.getLogger(__name__)

LAYERS = 8  # copies of the weights, more than any cache holds
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
WIDE = ((4, 2048, 4), (2, 2048, 4), (2, 2048, 2), (8, 2048, 8), (8, 1024, 4), (8, 256, 4), (16, 256, 4))
NARROW = ((4, 1024, 4), (2, 2048, 4), (4, 2048, 8), (2, 1024, 2), (4, 512, 2), (8, 256, 4), (2, 2048, 8))
EXPERT_TILES = (
    ((4, 2048, 4), (8, 1024, 4)),
    ((2, 2048, 4), (4, 1024, 4)),
    ((8, 2048, 8), (16, 1024, 4)),
    ((4, 1024, 4), (4, 1024, 2)),
    ((8, 256, 4), (16, 256, 4)),
)

Work = Callable[[], object]


class Way(NamedTuple):
    stage: str
    name: str
    make: Callable[[], tuple[Work, int]]  # the work, and how many calls it makes


def time_us(work: Work, calls: int) -> float:
    """Median microseconds of one of the calls, replayed from a graph."""
    work()
    replay, times = captured(work, 1), []
    for _ in range(15):
        began, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        began.record()
        replay()
        ended.record()
        ended.synchronize()
        times.append(1000 * began.elapsed_time(ended) / calls)
    return float(median(times))


def attention_ways(device: torch.device) -> Iterator[Way]:
    config = MOONDREAM2.text
    caches: dict[int, KVCache] = {}

    def cache_for(num_rows: int) -> KVCache:
        if num_rows not in caches:
            caches.clear()
            caches[num_rows] = filled_cache(config, num_rows * 85 + 2, device, torch.bfloat16)
        return caches[num_rows]

    def ours(num_rows: int, pieces: Sequence[int], early: bool) -> tuple[Work, int]:
        from kestrel_core.runtime.attention.few_rows import FewRowsDecode
        from kestrel_core.runtime.attention.page_kernels import Pieces

        cache = cache_for(num_rows)
        rows = rows_of([CONTEXT] * num_rows, cache)
        decode = FewRowsDecode(cache, config, MAX_CONTEXT, rows, Pieces(*pieces), early)
        return layers(decode.begin, num_rows)

    def layers(begin: Callable[[], object], num_rows: int) -> tuple[Work, int]:
        q = torch.randn((num_rows, config.n_heads, config.head_dim), device=device).bfloat16()
        count = config.n_layers

        def work() -> None:
            attend = begin()
            torch.add(q, 0.0)  # a launch between plan and attention, as in a step
            for layer in range(count):
                attend.read(layer, q)  # type: ignore[attr-defined]

        return work, count

    def flashinfer(num_rows: int) -> tuple[Work, int]:
        cache = cache_for(num_rows)
        rows = rows_of([CONTEXT] * num_rows, cache)
        decode = choose_attention(cache, config, MAX_CONTEXT, "required").for_decode(rows, captured=True)
        indptr = rows.indptr.cpu().numpy()
        saved = copied(rows)
        decode.plan(indptr)
        fill(rows, saved)
        return layers(decode.begin, num_rows)

    for num_rows in (1, 4, 16, 32):
        stage = f"attention, {num_rows} rows"
        yield Way(stage, "flashinfer", partial(flashinfer, num_rows))
        for pieces in PIECES if num_rows < 4 else FEWER_PIECES:
            for early in (False, True) if pieces == PIECES[0] else (False,):
                yield Way(stage, f"{pieces}{', early' * early}", partial(ours, num_rows, pieces, early))


# Products and experts of one row


def product_ways(device: torch.device) -> Iterator[Way]:
    shapes = {
        "first of Moondream 2": (14336, 2048, 0, WIDE),
        "second of Moondream 2": (2048, 2048, 8192, NARROW),
        "first of Moondream 3": (6208, 2048, 0, WIDE),
        "output of Moondream 3": (2048, 2048, 0, NARROW),
    }
    weights: dict[str, list[tuple[Tensor, Tensor]]] = {}

    def work(name: str, multiply: Callable[..., Tensor]) -> tuple[Work, int]:
        out_dim, x_dim, y_dim, _ = shapes[name]
        if name not in weights:
            weights.clear()
            weights[name] = [
                (randn(device, out_dim, x_dim), randn(device, out_dim, y_dim)) for _ in range(LAYERS)
            ]
        x, y, bias = randn(device, 1, x_dim), randn(device, 1, y_dim), randn(device, out_dim)
        return lambda: [multiply(x, w, y, o, bias) for w, o in weights[name]], LAYERS

    def one_row(name: str, tile: Sequence[int], early: bool) -> tuple[Work, int]:
        from kestrel_core.moondream.ops.one_row_kernels import Tile, one_row_product

        return work(name, partial(one_row_product, early=early, tile=Tile(*tile)))

    def few_rows(name: str, early: bool) -> tuple[Work, int]:
        from kestrel_core.moondream.ops.kernels import few_rows_product

        return work(name, partial(few_rows_product, early=early))

    for name, (out_dim, x_dim, y_dim, tiles) in shapes.items():
        stage = f"{name} (floor {2 * out_dim * (x_dim + y_dim) / 4.17e6:.1f})"
        for early in (False, True):
            yield Way(stage, f"matrix units{', early' * early}", partial(few_rows, name, early))
        for tile in tiles:
            for early in (False, True) if tile == tiles[0] else (True,):
                yield Way(stage, f"{tile}{', early' * early}", partial(one_row, name, tile, early))


def randn(device: torch.device, *shape: int) -> Tensor:
    return torch.randn(shape, device=device, dtype=torch.bfloat16)


def expert_ways(device: torch.device) -> Iterator[Way]:
    made: list[Tensor] = []

    def weights() -> tuple[Tensor, Tensor]:
        if not made:
            made.extend((randn(device, 64, 2048, 2048), randn(device, 64, 2048, 1024)))
        return made[0], made[1]

    def work(multiply: Callable[..., Tensor]) -> tuple[Work, int]:
        fc1, fc2 = weights()
        h = randn(device, 1, 2048)
        ids = torch.randperm(64, device=device).int().view(8, 1, 8)
        return lambda: [multiply(h, one, fc1, fc2) for one in ids], 8

    def before() -> tuple[Work, int]:
        from kestrel_core.moondream.ops.expert_kernels import few_tokens_experts

        return work(partial(few_tokens_experts, adapters=None))

    def ours(tiles: Sequence[Sequence[int]], early: bool) -> tuple[Work, int]:
        from kestrel_core.moondream.ops.one_row_kernels import Tile, one_token_experts

        first, second = (Tile(*tile) for tile in tiles)
        return work(partial(one_token_experts, early=early, first=first, second=second))

    stage = f"experts of a token (floor {8 * 2 * 3 * 2048 * 1024 / 4.17e6:.1f})"
    yield Way(stage, "matrix units", before)
    for tiles in EXPERT_TILES:
        for early in (False, True) if tiles == EXPERT_TILES[0] else (True,):
            yield Way(stage, f"{tiles}{', early' * early}", partial(ours, tiles, early))


def small_ways(device: torch.device) -> Iterator[Way]:
    """What lies between the products: tau and rotation, sums and norms."""
    config = MOONDREAM3.text
    heads = Heads(config.n_heads, config.n_kv_heads, config.head_dim)

    def rotate(rows: int, inside: bool, early: bool) -> tuple[Work, int]:
        from kestrel_core.moondream.ops import kernels

        tables = make_rotary_tables(config, device)
        packed, positions = randn(device, rows, config.qkv_dim + 64), torch.arange(rows, device=device)
        tau = TauWeights(randn(device, 2 * heads.num, config.qkv_dim), randn(device, heads.num))
        work = partial(kernels.rotate, packed, positions, tables, heads, tau, None, 0, inside, early)
        return lambda: [work() for _ in range(LAYERS)], LAYERS

    def norm(rows: int, few: bool, early: bool) -> tuple[Work, int]:
        from kestrel_core.moondream.ops import kernels

        x, y, gain, shift = (randn(device, count, 2048) for count in (rows, rows, 1, 1))
        norm = Norm(gain[0], shift[0], 1e-5)
        pairs = Pairs(randn(device, 8 * rows, 2048).float(), randn(device, rows, 8), None)
        return lambda: [kernels.add_norm(x, y, pairs, norm, few, early) for _ in range(LAYERS)], LAYERS

    for name, make in (("tau and rotation", rotate), ("sum of pairs and norm", norm)):
        for rows in (1, 4, 8, 16):
            for new, early in ((False, False), (True, False), (True, True)):
                way = f"{'new' if new else 'before'}{', early' * early}"
                yield Way(f"{name}, {rows} rows", way, partial(make, rows, new, early))


def ways(device: torch.device, stages: Sequence[str]) -> Iterator[Way]:
    for stage, make in (
        ("attention", attention_ways),
        ("products", product_ways),
        ("experts", expert_ways),
        ("small", small_ways),
    ):
        if stage in stages:
            yield from make(device)


@torch.inference_mode()
def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=STAGES, default=STAGES)
    parser.add_argument("--models", nargs="+", choices=("2", "3"), default=("2", "3"))
    parser.add_argument("--rows", nargs="+", type=int, default=(1, 4, 16), help="of whole steps")
    parser.add_argument("--shard", help="I/N: only compile every Nth way, from the Ith on", default="")
    asked = parser.parse_args(arguments)
    device = torch.device("cuda")
    if asked.shard:
        at, count = map(int, asked.shard.split("/"))
        for way in list(ways(device, asked.only))[at::count]:
            try:
                way.make()[0]()
            except Exception:
                log.exception("%s: %s fails", way.stage, way.name)
        torch.cuda.synchronize()
        return
    if "check" in asked.only:
        for check in (check_attention, check_products):
            try:
                for line in check(device):
                    print(line, flush=True)
            except Exception:
                log.exception("a check fails")
    stage = ""
    for way in ways(device, asked.only):
        try:
            us = f"{time_us(*way.make()):.1f}"
        except Exception as error:
            us = f"failed ({type(error).__name__}: {str(error)[:80]})"
        print(f"\n{way.stage}, us: " * (way.stage != stage) + f"{way.name} {us};", end=" ", flush=True)
        stage = way.stage
    print()
    if "step" in asked.only:
        for name, shape in (("2", MOONDREAM2), ("3", MOONDREAM3)):
            if name in asked.models:
                print_steps(f"Moondream {name}", shape, device, asked.rows)


if __name__ == "__main__":
    main()
