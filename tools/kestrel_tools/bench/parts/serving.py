"""`kestrel bench serving`: what Triton and the gateway cost, with the same requests to all.

They go to the engine alone, over gRPC straight and through the gateway, over Triton's HTTP and the gateway's.

A closed loop: so many callers, each asking again as soon as it was answered. All ways are measured in one
run: those to the server in turn, several times, so that whatever else the machine does meanwhile disturbs all
of them alike; the engine before and after, so that it shows.
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
from dataclasses import asdict, dataclass, field, replace
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
from kestrel_tools.bench.options import Serving
from kestrel_tools.bench.requests.callers import started
from kestrel_tools.bench.requests.gateway import GatewayCaller
from kestrel_tools.bench.requests.mixed import draw_photo
from kestrel_tools.bench.requests.server import running_guard, running_server
from kestrel_tools.bench.results import percentile

NUM_PICTURES = 8
ROUNDS = 9
QUESTION = "What is in this picture?"

Settings = dict[str, Any]
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
        f"{run.tokens} tokens, prefix cache on; gateway workers: {run.gateway_workers}",
    }
    if run.json:
        print(json.dumps({**machine, "measured": [asdict(row) for row in found]}))
        return
    title = f"{machine['workload']}\n{machine['machine']}, Python {machine['python']}"
    table = Table(title=title, box=None, pad_edge=False)
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
    "stream": (False, lambda row: "yes" if row.streams else "no"),
    "req/s": (False, lambda row: _shown(row.requests_per_s, ".1f")),
    "pieces/s": (False, lambda row: _shown(row.pieces_per_s, ".1f")),
    "P50 ms": (False, lambda row: _shown(row.p50_ms, ".1f")),
    "P95 ms": (False, lambda row: _shown(row.p95_ms, ".1f")),
    "µs/piece": (False, lambda row: _shown(row.piece_us, ".0f")),
    "of gRPC": (False, lambda row: _shown(row.of_grpc, ".1%")),
    "added ms": (False, lambda row: _shown(row.added_ms, "+.1f")),
}


@dataclass
class Tally:
    """What was measured so far, one way."""

    seconds: float = 0.0
    pieces: int = 0
    latencies: list[float] = field(default_factory=list)

    def measured(self, way: str, callers: int, streams: bool) -> Measured:
        rates = len(self.latencies) / self.seconds, self.pieces / self.seconds
        median_ms, p95_ms = median(self.latencies), percentile(self.latencies, 0.95)
        return Measured(way, callers, streams, *rates, median_ms, p95_ms)


async def _measure_all(run: Serving, folder: Path, console: Console) -> list[Measured]:
    async def measure(ways: dict[str, Ask]) -> list[Measured]:
        rows: dict[str, list[Measured]] = {way: [] for way in ways}
        for callers in run.callers:
            whole, streamed = [await measure_case(ways, callers, streams) for streams in (False, True)]
            for way, found in rows.items():
                found += _with_cost_of_a_piece(whole[way], streamed[way])
        return [row for found in rows.values() for row in _compared(found, rows.get("gRPC", []))]

    async def measure_case(ways: dict[str, Ask], callers: int, streams: bool) -> dict[str, Measured]:
        tallies = {way: Tally() for way in ways}
        with console.status("") as status:
            for number in range(ROUNDS):
                for way, ask in ways.items():
                    kind = "streaming" if streams else "whole answers"
                    status.update(f"{way}, {callers} callers, {kind}: {number + 1} of {ROUNDS}")
                    if number == 0:
                        await asyncio.gather(*(ask(picture, streams) for picture in pictures))  # warm
                    await _closed_loop(tallies[way], ask, callers, streams, pictures, run.seconds / ROUNDS)
        return {way: tally.measured(way, callers, streams) for way, tally in tallies.items()}

    async def measure_engine(way: str) -> list[Measured]:
        async with started(partial(build_engine, config)) as engine:
            return await measure({way: _through(engine, settings)})

    settings = {"temperature": 0.0, "max_tokens": run.tokens}
    pictures = [draw_photo((240 + number, 160)) for number in range(NUM_PICTURES)]
    tokenizer = folder / "tokenizer.json"
    tokenizer.write_text(_wordy_tokenizer())
    config = RuntimeConfig(
        model="moondream-tiny",
        device="cpu",
        max_batch_size=max(run.callers),
        weights="random",
        tokenizer_path=str(tokenizer),
        threads=1,  # otherwise it shows how many the engine has at the moment, which changes by itself
    )
    found = await measure_engine("engine alone")
    with (
        running_server(config, gateway_workers=run.gateway_workers) as ports,
        running_guard(ports.grpc, run.gateway_workers) as guard,
        ThreadPoolExecutor(max(run.callers)) as threads,
    ):
        async with (
            AsyncClient(f"localhost:{ports.grpc}") as client,
            AsyncClient(f"localhost:{guard}") as guarded,
            GatewayCaller(ports.gateway) as gateway,
        ):
            found += await measure(
                {
                    "gRPC": _through(client, settings),
                    "gRPC, guarded": _through(guarded, settings),
                    "HTTP": _over_http(ports.http, threads, settings),
                    "gateway": _over_gateway(gateway, settings),
                }
            )
    return found + await measure_engine("engine alone, again")


async def _closed_loop(
    tally: Tally, ask: Ask, callers: int, streams: bool, pictures: list[bytes], seconds: float
) -> None:
    """Unlike in `callers`, a request that ends after the time counts too, and so does its time."""
    asked = cycle(pictures)
    began = monotonic()

    async def caller() -> None:
        while (asked_s := monotonic()) < began + seconds:
            pieces = await ask(next(asked), streams)
            tally.pieces += pieces
            tally.latencies.append(1000 * (monotonic() - asked_s))

    await asyncio.gather(*(caller() for _ in range(callers)))
    tally.seconds += monotonic() - began


def _with_cost_of_a_piece(whole: Measured, streamed: Measured) -> list[Measured]:
    pieces = streamed.pieces_per_s / streamed.requests_per_s
    slower_s = 1 / streamed.requests_per_s - 1 / whole.requests_per_s
    return [whole, replace(streamed, piece_us=1e6 * slower_s / max(pieces - 1, 1))]


def _compared(rows: list[Measured], over_grpc: list[Measured]) -> list[Measured]:
    """Both were measured for the same callers in the same order; gRPC is not compared with itself."""
    if rows is over_grpc or not over_grpc:
        return rows
    return [
        replace(row, of_grpc=row.requests_per_s / grpc.requests_per_s, added_ms=row.p50_ms - grpc.p50_ms)
        for row, grpc in zip(rows, over_grpc, strict=True)
    ]


def _through(calls: AsyncCalls, settings: Settings) -> Ask:
    """Through the engine's own calls, or those of its client: they are alike."""

    async def ask(picture: bytes, streams: bool) -> int:
        answer = await calls.ask("query", picture, question=QUESTION, settings=settings, stream=streams)
        return len([piece async for piece in answer]) if streams else 1

    return ask


def _over_http(port: int, threads: ThreadPoolExecutor, settings: Settings) -> Ask:
    def post(picture: bytes, streams: bool) -> int:
        fields = {"SKILL": "query", "QUESTION": QUESTION, "IMAGE": base64.b64encode(picture).decode()}
        limits = {name.upper(): value for name, value in settings.items()}
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


def _over_gateway(gateway: GatewayCaller, settings: Settings) -> Ask:
    async def ask(picture: bytes, streams: bool) -> int:
        if streams:
            return await gateway.count_events(picture, QUESTION, settings)
        await gateway.query(picture, QUESTION, settings)
        return 1

    return ask


def _wordy_tokenizer() -> str:
    """A word with a space behind it for every id that is no byte: nearly every token then makes a piece."""
    document = json.loads(byte_document(MOONDREAM_TINY))
    vocabulary = document["model"]["vocab"]
    free = sorted(set(range(MOONDREAM_TINY.text.vocab_size)) - set(vocabulary.values()))
    vocabulary |= {f"word{token_id}\u0120": token_id for token_id in free}
    return json.dumps(document)
