"""`kestrel bench load`: how much can be asked of an engine or of a running server before it falls behind.

An open loop: requests of the ChartQA mix arrive at random moments, at a rate that rises from step to step,
and nobody waits for anybody. The knee is the highest rate at which, as at all below it, every threshold held.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console

from kestrel_core.build import build_engine
from kestrel_core.config import RuntimeConfig
from kestrel_core.engine import InferenceEngine
from kestrel_core.protocol.errors import InvalidRequest
from kestrel_core.protocol.messages import EngineResult, Usage
from kestrel_tools.bench.callers import Ask, Outcome, arrivals, open_loop
from kestrel_tools.bench.load_report import html_report
from kestrel_tools.bench.results import Row, make_document, percentile, show
from kestrel_tools.bench.skill import endless_skills
from kestrel_tools.bench.workload import OF_WORDS, ChartQuestions, Question, question_texts
from kestrel_tools.progress import told

WARM_UP_REQUESTS = 20


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What a step has to keep; None: no matter."""

    p95_ms: float | None = 1000.0
    ttft_p95_ms: float | None = None
    error_share: float = 0.01

    def hold(self, row: Row) -> bool:
        """Where nothing was answered, no latency was kept either."""

        def within(name: str, limit: float | None) -> bool:
            return limit is None or (row[name] is not None and row[name] <= limit)

        errors = row["errors"] <= self.error_share * row["requests"]
        return errors and within("p95_ms", self.p95_ms) and within("ttft_p95_ms", self.ttft_p95_ms)


@dataclass(frozen=True, slots=True)
class Ramp:
    start: float = 1.0  # requests/s
    factor: float = 1.5
    max_steps: int = 12
    seconds: float = 15.0  # a step
    rate: float | None = None  # at which the thresholds are promised: measured first
    tokens: int = 3
    timeout_s: float = 30.0

    def __post_init__(self) -> None:
        if not (self.start > 0 and self.factor > 1 and self.seconds > 0 and self.timeout_s > 0):
            raise InvalidRequest("a ramp starts above 0, rises by a factor above 1, and its steps take time")
        if self.tokens < 1 or (self.rate is not None and not self.rate > 0) or self.max_steps < 0:
            raise InvalidRequest("tokens, and a promised rate, must be above 0")
        if self.max_steps == 0 and self.rate is None:
            raise InvalidRequest("there is nothing to measure: neither steps nor a rate")


def bench_load(
    ramp: Ramp,
    thresholds: Thresholds,
    url: str | None,
    config: RuntimeConfig,
    file: Path | None,
    html: Path | None,
    commit: str | None,
    console: Console,
) -> bool:
    """Whether the thresholds held at `ramp.rate`; True where none was named."""
    with told(console) as say:
        rows = asyncio.run(_measure(ramp, thresholds, url, config, say))
    knee = find_knee(rows)
    workload = {
        "requests": "the ChartQA mix, arriving as a Poisson process",
        "tokens": f"{ramp.tokens} at most" if url else f"exactly {ramp.tokens}, the end token ignored",
        "step_s": ramp.seconds,
        "asked": f"the server at {url}" if url else f"an engine, {config.max_batch_size} at a time",
        "latency": "from when a request was due",
    }
    promised = next((row["held"] for row in rows if row["offered_per_s"] == ramp.rate), None)
    document = make_document(
        "load",
        config if url is None else None,
        workload,
        rows,
        commit,
        thresholds=asdict(thresholds),
        knee_per_s=knee,
        rate=ramp.rate,
        held_at_rate=promised,
    )
    show(document, console, file)
    limits = ", ".join(f"{name} {limit:g}" for name, limit in asdict(thresholds).items() if limit is not None)
    console.print(f"knee: {'none' if knee is None else f'{knee:,.2f} requests/s'} within {limits}")
    if html is not None:
        html.parent.mkdir(parents=True, exist_ok=True)
        html.write_text(html_report(document))
    return promised is not False


def find_knee(rows: Sequence[Row]) -> float | None:
    """Of steps in the order of their rates."""
    knee = None
    for row in rows:
        if not row["held"]:
            break
        knee = row["offered_per_s"]
    return knee


async def _measure(
    ramp: Ramp, thresholds: Thresholds, url: str | None, config: RuntimeConfig, say: Callable[[str], None]
) -> list[Row]:
    rows: list[Row] = []
    questions = ChartQuestions(question_texts(config) if url is None else OF_WORDS)
    say("starting" if url is None else f"warming up {url}")
    async with _server(url, ramp) if url is not None else _engine(config, ramp) as ask:

        async def step(rate: float) -> Row:
            moments = arrivals(rate, ramp.seconds, seed=len(rows))
            supply = await asyncio.to_thread(questions.ahead, len(moments))
            say(f"{rate:,.2f} requests/s for {ramp.seconds:g} s")
            row = summary(rate, ramp.seconds, await open_loop(ask, supply, moments))
            row["held"] = thresholds.hold(row)
            rows.append(row)
            return row

        for question in await asyncio.to_thread(questions.ahead, WARM_UP_REQUESTS):
            await ask(question)
        if ramp.rate is not None:
            await step(ramp.rate)
        for index in range(ramp.max_steps):
            if not (await step(ramp.start * ramp.factor**index))["held"]:
                break
    return sorted(rows, key=lambda row: float(row["offered_per_s"]))


def summary(rate: float, seconds: float, outcomes: Sequence[Outcome]) -> Row:
    """Latencies are of those that were answered; what was not is an error, and counted as one.

    The pace of answers is over the whole step, and beyond it where the last ones came later.
    """
    latencies = [one.latency_ms for one in outcomes if one.usage is not None]
    ttfts = [one.usage.ttft_ms for one in outcomes if one.usage is not None]
    last = max(one.due_s + one.latency_ms / 1000 for one in outcomes)

    def at(values: Sequence[float], share: float) -> float | None:
        return percentile(values, share) if values else None

    return {
        "offered_per_s": rate,
        "requests_per_s": len(latencies) / max(seconds, last),
        "requests": len(outcomes),
        "errors": len(outcomes) - len(latencies),
        "errors_by_kind": dict(Counter(one.error for one in outcomes if one.error is not None)),
        "p50_ms": at(latencies, 0.50),
        "p95_ms": at(latencies, 0.95),
        "p99_ms": at(latencies, 0.99),
        "ttft_p95_ms": at(ttfts, 0.95),
        "late_p99_ms": percentile([one.late_ms for one in outcomes], 0.99),
        "output_tokens": sum(one.usage.output_tokens for one in outcomes if one.usage is not None),
    }


@asynccontextmanager
async def _engine(config: RuntimeConfig, ramp: Ramp) -> AsyncIterator[Ask]:
    engine = InferenceEngine(await asyncio.to_thread(build_engine, config, endless_skills()))
    settings = {"temperature": 0.0, "max_tokens": ramp.tokens}

    async def ask(question: Question) -> Usage:
        result = await engine.query(
            question.image, question.text, settings=settings, timeout_s=ramp.timeout_s
        )
        assert isinstance(result, EngineResult)
        return result.metrics

    try:
        yield ask
    finally:
        await engine.shutdown()


@asynccontextmanager
async def _server(url: str, ramp: Ramp) -> AsyncIterator[Ask]:
    from kestrel_client import AsyncClient, Retry  # late: gRPC is needed for this way alone

    # A refusal is an answer here, and must not be hidden by asking again.
    async with AsyncClient(url, timeout_s=ramp.timeout_s, retry=Retry(limit=0)) as client:

        async def ask(question: Question) -> Usage:
            answer = await client.query(
                question.image, question.text, temperature=0.0, max_tokens=ramp.tokens
            )
            return answer.metrics

        yield ask
