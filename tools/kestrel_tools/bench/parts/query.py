"""`kestrel bench query`: how long one caller waits who asks one thing after another.

Pictures are six boxes on a plain ground, and each is new, so that nothing of it is cached. Answers are as
long as the model makes them, up to a limit.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from itertools import count, islice
from time import monotonic

import numpy as np
import pyvips

from kestrel_core.config import RuntimeConfig
from kestrel_core.protocol.asking import AsyncCalls
from kestrel_core.protocol.messages import Usage
from kestrel_tools.bench.options import Query
from kestrel_tools.bench.requests.callers import calls_of
from kestrel_tools.bench.results import Bench, Row, percentile
from kestrel_tools.progress import told

Size = tuple[int, int]  # width, height
SIZES: tuple[Size, ...] = (
    *((320, 240), (480, 640), (512, 512), (640, 480)),
    *((800, 600), (1024, 768), (600, 1000), (1280, 720)),
)
BOXES = 6
LARGEST, SMALLEST = 0.35, 0.1  # of a side
QUESTION = "How many shapes are there?"
WARM_UP = 5
TIMEOUT_S = 120.0
Asked = tuple[str, str, list[bytes]]  # what is measured, the skill, its pictures


def bench_query(run: Query, bench: Bench) -> None:
    with told(bench.console) as say:
        rows = asyncio.run(_measure(run, bench.config, say))
    workload = {
        "asked": f"the server at {run.url}" if run.url else "an engine",
        "question": QUESTION,
        "tokens": f"{run.tokens} at most, captions {4 * run.tokens}",
        "latency": "from sending the picture's file to the whole answer, one request at a time",
    }
    bench.finish("query", None if run.url else bench.config, workload, rows)


async def _measure(run: Query, config: RuntimeConfig, say: Callable[[str], None]) -> list[Row]:
    say(f"warming up {run.url}" if run.url else "starting")
    rows, numbers = [], count(run.seed * 1_000_000)
    async with calls_of(config, run.url, TIMEOUT_S) as calls:
        for picture in _new(numbers, run.size, WARM_UP):
            await _ask(calls, "query", picture, run.tokens)
        for name, skill, pictures in _cases(run, numbers):
            say(name)
            answered = [await _timed(_ask(calls, skill, picture, run.tokens)) for picture in pictures]
            rows.append(_row(name, answered))
    return rows


def _cases(run: Query, numbers: Iterator[int]) -> Iterator[Asked]:
    width, height = run.size
    yield f"new pictures of {width} x {height}", "query", _new(numbers, run.size, run.requests)
    sizes = [SIZES[index % len(SIZES)] for index in range(run.requests)]
    mixed = [drawn(next(numbers), size) for size in sizes]
    yield f"new pictures of {len(SIZES)} sizes, up to 1280 x 720", "query", mixed
    yield "a picture asked about before", "query", [mixed[-1]] * max(1, run.requests // 2)
    captioned = _new(numbers, run.size, max(1, run.requests // 2))
    yield f"a caption of new pictures of {width} x {height}", "caption", captioned


def _new(numbers: Iterator[int], size: Size, how_many: int) -> list[bytes]:
    return [drawn(number, size) for number in islice(numbers, how_many)]


async def _ask(calls: AsyncCalls, skill: str, picture: bytes, tokens: int) -> Usage:
    if skill == "caption":
        caption = await calls.caption(picture, temperature=0.0, max_tokens=4 * tokens)
        return caption.metrics
    answer = await calls.query(picture, QUESTION, temperature=0.0, max_tokens=tokens)
    return answer.metrics


async def _timed(asked: Awaitable[Usage]) -> tuple[float, Usage]:
    began = monotonic()
    usage = await asked
    return 1000 * (monotonic() - began), usage


def _row(name: str, answered: list[tuple[float, Usage]]) -> Row:
    latencies = [ms for ms, _ in answered]
    tokens = [usage.output_tokens for _, usage in answered]
    return {
        "asked": name,
        "requests": len(answered),
        "least_ms": min(latencies),
        **{f"p{share}_ms": percentile(latencies, share / 100) for share in (50, 95, 99)},
        "ttft_p50_ms": percentile([usage.ttft_ms for _, usage in answered], 0.5),
        "mean_tokens": sum(tokens) / len(tokens),
    }


def drawn(number: int, size: Size) -> bytes:
    """The PNG file of picture `number`; no two are equal."""
    rng, (width, height) = np.random.default_rng(number), size
    pixels = np.empty((height, width, 3), np.uint8)
    pixels[:] = rng.integers(170, 256, 3)
    for _ in range(BOXES):
        sides = rng.uniform(SMALLEST, LARGEST, 2) * size
        left, top = (rng.uniform(0, 1, 2) * (size - sides)).astype(int)
        wide, tall = sides.astype(int)
        pixels[top : top + tall, left : left + wide] = rng.integers(0, 256, 3)
    image = pyvips.Image.new_from_memory(pixels, width, height, 3, "uchar")
    return bytes(image.pngsave_buffer(compression=6))
