"""`kestrel bench chartqa`: whole requests in a closed loop, with a caller for each sequence of the batch.

The engine alone and, with the same requests and the same skills, behind a real Triton over gRPC, and behind a
gateway in front of that Triton. Every answer has exactly the tokens that were asked for, or the run is worth
nothing and says so. The server is measured before an engine is built here, so that each has the GPU's memory
to itself.
"""

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from types import MappingProxyType

import torch

from kestrel_core.build import LoadedModel, open_model, parse_device, start_engine
from kestrel_core.config import RuntimeConfig
from kestrel_core.engine import InferenceEngine
from kestrel_core.loop.metrics import totals
from kestrel_core.protocol.errors import EngineFailed
from kestrel_core.protocol.messages import Usage
from kestrel_tools.bench.machine.gpu import GpuWatch, find_gpu
from kestrel_tools.bench.options import ChartQA
from kestrel_tools.bench.requests.callers import (
    Answered,
    Ask,
    AskFor,
    Counts,
    Window,
    ask_for,
    closed_loop,
    started,
)
from kestrel_tools.bench.requests.chart_questions import ChartQuestions, Question, question_texts
from kestrel_tools.bench.requests.charts import SIZES
from kestrel_tools.bench.requests.endless_query import endless_skills
from kestrel_tools.bench.requests.gateway import GatewayCaller
from kestrel_tools.bench.requests.server import Ports, read_counts, running_server, write_endless_repository
from kestrel_tools.bench.results import Bench, Row, percentile
from kestrel_tools.progress import told
from kestrel_tools.random_adapters import write_random_adapters

SUPPLY = 1.5  # charts are drawn for so many times the requests that the warm-up's pace predicts
COUNTED = {
    "steps": "kestrel_steps_total",
    "prefix_hits": "kestrel_prefix_hits_total",
    "prefix_misses": "kestrel_prefix_misses_total",
    "preemptions": "kestrel_preemptions_total",
    "images_encoded": "kestrel_images_encoded_total",
}
MEMORY = {"planned_gib": "device_bytes_planned", "used_gib": "device_bytes_used"}  # as the runtime tells it


# Which adapter a question asks for, by what the rows call it.
Choices = Mapping[str | None, Callable[[Question], str] | None]


@dataclass(frozen=True, slots=True)
class Subject:
    """What is asked, and where its counters are read."""

    ask: AskFor
    look: Callable[[], Awaitable[Counts]]


def bench_chartqa(run: ChartQA, bench: Bench) -> None:
    parse_device(bench.config.device)  # what is wrong with it is said before a server is started
    with told(bench.console) as say, GpuWatch(find_gpu(bench.config.device)) as watch:
        rows = asyncio.run(Measuring(run, bench.config, watch, say).rows())
    workload = {
        "pictures": ", ".join(f"{width}x{height}" for width, height in SIZES) + ", in equal shares, as PNG",
        "order": "A B A C B: five questions over every three pictures, none of which comes back",
        "tokens": f"exactly {' or '.join(map(str, run.tokens))}, greedy, the end token ignored",
        "callers": "as many as max_batch_size",
        "ttft": "the engine's own, from a request's arrival in it",
        "window_s": run.seconds,
        "warm_up": "excluded",
        **(
            {"adapters": "random, bfloat16, the next one for each request or each picture"}
            if run.num_adapters
            else {}
        ),
    }
    bench.finish("chartqa", bench.config, workload, rows)


@dataclass(frozen=True, slots=True)
class Measuring:
    """A run over all ways, batch sizes and lengths."""

    _run: ChartQA
    _config: RuntimeConfig
    _watch: GpuWatch
    _say: Callable[[str], None]

    async def rows(self) -> list[Row]:
        rows: list[Row] = []
        served = [way for way in self._run.ways if way != "engine"]
        if served:
            workers = self._run.gateway_workers if "gateway" in served else 0
            for batch in self._run.batches:
                self._say(f"starting a server for {batch}")
                async with _server(replace(self._config, max_batch_size=batch), workers) as subjects:
                    for way in served:
                        rows += await self._measure(subjects[way], way, batch)
        if "engine" in self._run.ways:
            self._say(f"loading {self._config.model}")
            model = await asyncio.to_thread(open_model, self._config)
            for batch in self._run.batches:
                rows += await self._measure_engine(model, replace(self._config, max_batch_size=batch))
                if self._run.num_adapters:
                    rows += await self._measure_adapters(model, batch)
        rows.sort(key=lambda row: (row["tokens"], row["batch"], row["through"]))  # and as measured
        return [{**row, "of_engine": _of_engine(row, rows)} for row in rows]

    async def _measure_adapters(self, model: LoadedModel, batch: int) -> list[Row]:
        """Of one engine that has room for adapters: while none is asked for, and with each in turn.

        If each request has the next one, the second question about a picture has another than the first, and
        finds nothing in the cache. If each picture has the next one, the mix is the same as without.
        """
        num, rank, text = self._run.num_adapters, self._run.adapter_rank, model.network.config.text
        with TemporaryDirectory() as folder:
            self._say(f"writing {num} adapters of rank {rank}")
            names = await asyncio.to_thread(write_random_adapters, Path(folder), text, [rank] * num)
            config = replace(
                self._config,
                max_batch_size=batch,
                adapters=folder,
                max_adapters=max(num, self._config.max_adapters),
                max_adapter_rank=max(rank, self._config.max_adapter_rank),
            )
            turns, told = cycle(names), f"{num} of rank {rank}"
            choices: Choices = {
                "none used": None,
                f"{told}, by request": lambda question: next(turns),
                f"{told}, by picture": lambda question: names[question.chart % num],
            }
            return await self._measure_engine(model, config, choices)

    async def _measure_engine(
        self,
        model: LoadedModel,
        config: RuntimeConfig,
        adapters: Choices = MappingProxyType({None: None}),
    ) -> list[Row]:
        """With each choice of adapters, by what the rows call it, on one engine."""
        batch, rows = config.max_batch_size, list[Row]()
        async with _engine(model, config, self._say) as (engine, look):
            for told, adapter in adapters.items():
                subject = Subject(ask_for(engine, adapter=adapter), look)
                measured = await self._measure(subject, "engine", batch)
                rows += [{**row, "adapters": told} for row in measured]
        del engine, look  # the next engine plans with what is free
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        return rows

    async def _measure(self, subject: Subject, way: str, batch: int) -> list[Row]:
        run, say, rows = self._run, self._say, []
        questions = ChartQuestions(question_texts(self._config))
        for tokens in run.tokens:
            title = f"{way}, {batch} callers, {tokens} tokens"
            say(f"{title}: warming up")
            ask, num = _exactly(subject.ask, tokens), run.num_warm_up(batch)
            supply = await asyncio.to_thread(questions.ahead, num + batch)
            warm = await closed_loop(ask, supply, batch, max(1, num // 2), 600.0, subject.look)
            pace = len(warm.answered) / warm.seconds
            expected = batch + int(SUPPLY * pace * run.seconds) + 1
            say(f"{title}: drawing charts for {expected:,} requests")
            supply = await asyncio.to_thread(questions.ahead, 2 * batch + expected)
            say(f"{title}: measuring for {run.seconds:g} s, about {pace * run.seconds:,.0f} requests")
            window = await closed_loop(ask, supply, batch, 2 * batch, run.seconds, subject.look)
            rows.append(
                {
                    "through": way,
                    "adapters": None,
                    "batch": batch,
                    "tokens": tokens,
                    **summary(window, self._watch),
                }
            )
        return rows


@asynccontextmanager
async def _engine(
    model: LoadedModel, config: RuntimeConfig, say: Callable[[str], None]
) -> AsyncIterator[tuple[InferenceEngine, Callable[[], Awaitable[Counts]]]]:
    """An engine, and what reads its counters."""

    def warming(done: int, total: int) -> None:
        say(f"starting an engine for {config.max_batch_size}: {done} of {total} sizes of a step")

    async with started(partial(start_engine, model, config, endless_skills(), warming)) as engine:

        async def look() -> Counts:
            snapshot = engine.metrics()
            return totals(snapshot) | {name: snapshot[name] for name in MEMORY.values() if name in snapshot}

        yield engine, look


@asynccontextmanager
async def _server(config: RuntimeConfig, gateway_workers: int) -> AsyncIterator[dict[str, Subject]]:
    """One server, by both ways to it."""
    from kestrel_client import AsyncClient  # late: gRPC is needed for this way alone

    with TemporaryDirectory() as folder:
        context = running_server(config, write_endless_repository(Path(folder)), gateway_workers)
        ports: Ports = await asyncio.to_thread(context.__enter__)
        try:
            look = partial(asyncio.to_thread, read_counts, ports.metrics)
            async with (
                AsyncClient(f"localhost:{ports.grpc}") as client,
                GatewayCaller(ports.gateway) as gateway,
            ):
                yield {
                    "triton": Subject(ask_for(client), look),
                    "gateway": Subject(_ask_over_http(gateway), look),
                }
        finally:
            await asyncio.to_thread(context.__exit__, None, None, None)


def _ask_over_http(gateway: GatewayCaller) -> AskFor:
    async def ask(question: Question, tokens: int) -> Usage:
        return await gateway.query(question.image, question.text, {"temperature": 0.0, "max_tokens": tokens})

    return ask


def _exactly(ask: AskFor, tokens: int) -> Ask:
    async def checked(question: Question) -> Usage:
        usage = await ask(question, tokens)
        if usage.output_tokens != tokens:
            raise EngineFailed(
                f"an answer had {usage.output_tokens} tokens where {tokens} were asked for; "
                "this run measured something else"
            )
        return usage

    return checked


def summary(window: Window, watch: GpuWatch) -> Row:
    answered = window.answered
    latencies = [one.latency_ms for one in answered]
    ttfts = [one.usage.ttft_ms for one in answered]
    used = watch.max_used_bytes(window.begin_s, window.end_s)
    seen = MEMORY["used_gib"]
    memory = {name: window.after.get(series) for name, series in MEMORY.items()}
    return {
        "requests_per_s": len(answered) / window.seconds,
        **{f"p{share}_ms": percentile(latencies, share / 100) for share in (50, 95, 99)},
        **{f"ttft_p{share}_ms": percentile(ttfts, share / 100) for share in (50, 95, 99)},
        "gpu_busy": watch.busy_share(window.begin_s, window.end_s),
        "gpu_used_gib": used / 2**30 if used is not None else None,
        **{name: number / 2**30 if number is not None else None for name, number in memory.items()},
        "grown_mib": window.count(seen) / 2**20 if seen in window.after and seen in window.before else None,
        "requests": len(answered),
        "seconds": window.seconds,
        "stages": _stages(window),
        "counts": {
            "output_tokens": sum(one.usage.output_tokens for one in answered),
            "input_tokens": sum(one.usage.input_tokens for one in answered),
            "cached_tokens": sum(one.usage.cached_tokens for one in answered),
            **{name: int(window.count(series)) for name, series in COUNTED.items()},
        },
    }


def _stages(window: Window) -> dict[str, float | None]:
    """Mean milliseconds. What is outside of the steps is queueing here, the picture's decoding included, and
    the vision encoder is a part of the prefill.
    """

    def mean(value: Callable[[Answered], float]) -> float:
        return fmean(map(value, window.answered))

    def each(seconds: str, count: str) -> float | None:
        number = window.count(count)
        return 1000 * window.count(seconds) / number if number else None

    inside = mean(lambda one: one.usage.ttft_ms + one.usage.decode_time_ms)
    return {
        "queue_ms": mean(lambda one: one.usage.queue_time_ms + one.usage.image_time_ms),
        "image_decode_ms": each("kestrel_image_decode_seconds_sum", "kestrel_image_decode_seconds_count"),
        "vision_ms": each("kestrel_vision_encode_seconds_total", "kestrel_images_encoded_total"),
        "prefill_ms": mean(lambda one: one.usage.prefill_time_ms + one.usage.vision_time_ms),
        "decode_ms": mean(lambda one: one.usage.decode_time_ms),
        "delivery_ms": mean(lambda one: one.latency_ms) - inside,
    }


def _of_engine(row: Row, rows: Sequence[Row]) -> float | None:
    """The throughput as a share of the engine's own without adapters, in the same run."""
    same = [other for other in rows if (other["batch"], other["tokens"]) == (row["batch"], row["tokens"])]
    alone = [other for other in same if other["through"] == "engine" and not other.get("adapters")]
    return row["requests_per_s"] / alone[0]["requests_per_s"] if alone and row is not alone[0] else None
