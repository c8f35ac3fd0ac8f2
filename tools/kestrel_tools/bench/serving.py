"""`kestrel bench serving`: what Triton and the gateway cost, with the same requests to all.

They go to the engine alone, over gRPC, over Triton's HTTP and over the gateway's.

A closed loop: so many callers, each asking again as soon as it was answered. All ways are measured in one
run, the engine before and after the server, so that whatever else the machine does meanwhile shows.
"""

import asyncio
import base64
import http.client
import json
import os
import platform
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import cycle
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from kestrel_client import AsyncClient
from kestrel_core.build import build_engine
from kestrel_core.config import RuntimeConfig
from kestrel_core.intake.tokenizer import byte_document
from kestrel_core.moondream.config import MOONDREAM_TINY
from kestrel_core.protocol.asking import AsyncCalls
from kestrel_core.protocol.errors import EngineFailed
from kestrel_tools.bench.callers import started
from kestrel_tools.bench.gateway import GatewayCaller
from kestrel_tools.bench.parts import Serving
from kestrel_tools.bench.results import percentile
from kestrel_tools.bench.server import running_server
from kestrel_tools.bench.soak_requests import draw_photo

NUM_PICTURES = 8
SETTINGS: dict[str, Any] = {"temperature": 0.0, "max_tokens": 16}
QUESTION = "What is in this picture?"

# Given a picture and whether to stream, returns the number of pieces.
Ask = Callable[[bytes, bool], Awaitable[int]]


@dataclass(frozen=True)
class Measured:
    way: str
    callers: int
    streams: bool
    requests_per_s: float
    pieces_per_s: float
    p50_ms: float
    p95_ms: float
    piece_us: float | None = None  # cost of a further piece: streaming compared with whole answers
    of_grpc: float | None = None  # requests/s, as a share of gRPC's
    added_ms: float | None = None  # P50, compared with gRPC's


def bench_serving(run: Serving, console: Console) -> None:
    """Print a table; with `run.json` one JSON document instead."""
    with TemporaryDirectory() as folder:
        found = asyncio.run(_measure_all(run, Path(folder), console))
    machine = {
        "machine": f"{os.cpu_count()} cores, {platform.machine()}",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "workload": f"moondream-tiny on the CPU, {run.seconds:g} s each, {NUM_PICTURES} pictures in turn, "
        f"{SETTINGS['max_tokens']} tokens, prefix cache on; gateway workers: {run.gateway_workers}",
    }
    if run.json:
        print(json.dumps({**machine, "measured": [asdict(row) for row in found]}))
        return
    table = Table(title=f"{machine['workload']}\n{machine['machine']}, Python {machine['python']}")
    for column, (is_left, _) in COLUMNS.items():
        table.add_column(column, justify="left" if is_left else "right")
    for row in found:
        table.add_row(*(show(row) for _, show in COLUMNS.values()))
    console.print(table)


def _shown(number: float | None, form: str) -> str:
    return "" if number is None else format(number, form)


# By title: whether it stands on the left, and what it shows.
COLUMNS: dict[str, tuple[bool, Callable[[Measured], str]]] = {
    "way": (True, lambda row: row.way),
    "callers": (False, lambda row: str(row.callers)),
    "streams": (False, lambda row: "yes" if row.streams else "no"),
    "requests/s": (False, lambda row: _shown(row.requests_per_s, ".1f")),
    "pieces/s": (False, lambda row: _shown(row.pieces_per_s, ".1f")),
    "P50 ms": (False, lambda row: _shown(row.p50_ms, ".1f")),
    "P95 ms": (False, lambda row: _shown(row.p95_ms, ".1f")),
    "µs/piece": (False, lambda row: _shown(row.piece_us, ".0f")),
    "of gRPC": (False, lambda row: _shown(row.of_grpc, ".1%")),
    "P50 added": (False, lambda row: _shown(row.added_ms, "+.1f")),
}


async def _measure_all(run: Serving, folder: Path, console: Console) -> list[Measured]:
    async def measure(way: str, ask: Ask) -> list[Measured]:
        rows = []
        for callers in run.callers:
            pair = []
            for streams in (False, True):
                with console.status(
                    f"{way}, {callers} callers, {'streaming' if streams else 'whole answers'}"
                ):
                    await asyncio.gather(*(ask(picture, streams) for picture in pictures))  # warm
                    pair.append(await _closed_loop(way, ask, callers, streams, pictures, run.seconds))
            rows += _with_cost_of_a_piece(*pair)
        return rows

    async def measure_engine(way: str) -> list[Measured]:
        async with started(partial(build_engine, config)) as engine:
            return await measure(way, _through(engine))

    pictures = [draw_photo((240 + number, 160)) for number in range(NUM_PICTURES)]
    tokenizer = folder / "tokenizer.json"
    tokenizer.write_text(_wordy_tokenizer())
    config = RuntimeConfig(
        model="moondream-tiny",
        device="cpu",
        max_batch_size=max(run.callers),
        weights="random",
        tokenizer_path=str(tokenizer),
    )
    found = await measure_engine("engine alone")
    with running_server(config, gateway_workers=run.gateway_workers) as ports:
        async with AsyncClient(f"localhost:{ports.grpc}") as client:
            found += (over_grpc := await measure("gRPC", _through(client)))
        with ThreadPoolExecutor(max(run.callers)) as threads:
            found += _compared(await measure("HTTP", _over_http(ports.http, threads)), over_grpc)
        async with GatewayCaller(ports.gateway) as gateway:
            found += _compared(await measure("gateway", _over_gateway(gateway)), over_grpc)
    return found + await measure_engine("engine alone, again")


async def _closed_loop(
    way: str, ask: Ask, callers: int, streams: bool, pictures: list[bytes], seconds: float
) -> Measured:
    """Unlike in `callers`, a request that ends after the time counts too, and so does its time."""
    latencies, pieces = list[float](), 0
    asked = cycle(pictures)
    began = monotonic()

    async def caller() -> None:
        nonlocal pieces
        while (asked_s := monotonic()) < began + seconds:
            got = await ask(next(asked), streams)  # first: `pieces` changes meanwhile
            pieces += got
            latencies.append(1000 * (monotonic() - asked_s))

    await asyncio.gather(*(caller() for _ in range(callers)))
    took = monotonic() - began
    rates = len(latencies) / took, pieces / took
    return Measured(way, callers, streams, *rates, median(latencies), percentile(latencies, 0.95))


def _with_cost_of_a_piece(whole: Measured, streamed: Measured) -> list[Measured]:
    pieces = streamed.pieces_per_s / streamed.requests_per_s
    slower_s = 1 / streamed.requests_per_s - 1 / whole.requests_per_s
    return [whole, replace(streamed, piece_us=1e6 * slower_s / max(pieces - 1, 1))]


def _compared(rows: list[Measured], over_grpc: list[Measured]) -> list[Measured]:
    """Both were measured for the same callers in the same order."""
    return [
        replace(row, of_grpc=row.requests_per_s / grpc.requests_per_s, added_ms=row.p50_ms - grpc.p50_ms)
        for row, grpc in zip(rows, over_grpc, strict=True)
    ]


def _through(calls: AsyncCalls) -> Ask:
    """Through the engine's own calls, or those of its client: they are alike."""

    async def ask(picture: bytes, streams: bool) -> int:
        answer = await calls.ask("query", picture, question=QUESTION, settings=SETTINGS, stream=streams)
        return len([piece async for piece in answer]) if streams else 1

    return ask


def _over_http(port: int, threads: ThreadPoolExecutor) -> Ask:
    def post(picture: bytes, streams: bool) -> int:
        fields = {"SKILL": "query", "QUESTION": QUESTION, "IMAGE": base64.b64encode(picture).decode()}
        limits = {name.upper(): value for name, value in SETTINGS.items()}
        path = f"/v2/models/moondream/generate{'_stream' if streams else ''}"
        with closing(http.client.HTTPConnection("localhost", port, timeout=60)) as connection:
            connection.request("POST", path, json.dumps({**fields, **limits, "STREAM": streams}))
            answer = connection.getresponse()
            body = answer.read()
        if answer.status != 200:
            raise EngineFailed(f"the server answered {answer.status}: {body[:200]!r}")
        return body.count(b"data: ") if streams else 1

    async def ask(picture: bytes, streams: bool) -> int:
        return await asyncio.get_running_loop().run_in_executor(threads, post, picture, streams)

    return ask


def _over_gateway(gateway: GatewayCaller) -> Ask:
    async def ask(picture: bytes, streams: bool) -> int:
        if streams:
            return await gateway.count_events(picture, QUESTION, SETTINGS)
        await gateway.query(picture, QUESTION, SETTINGS)
        return 1

    return ask


def _wordy_tokenizer() -> str:
    """A word with a space behind it for every id that is no byte: nearly every token then makes a piece."""
    document = json.loads(byte_document(MOONDREAM_TINY))
    vocabulary = document["model"]["vocab"]
    free = sorted(set(range(MOONDREAM_TINY.text.vocab_size)) - set(vocabulary.values()))
    vocabulary |= {f"word{token_id}\u0120": token_id for token_id in free}
    return json.dumps(document)
