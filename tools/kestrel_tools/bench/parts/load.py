"""`kestrel bench load`: how much can be asked of an engine or of a running server before it falls behind.

An open loop: requests of the ChartQA mix arrive at random moments, at a rate that rises from step to step,
and nobody waits for anybody. The knee is the highest rate at which, as at all below it, every threshold held.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict

from kestrel_core.config import RuntimeConfig
from kestrel_core.protocol.messages import Usage
from kestrel_tools.bench.load_report import html_report
from kestrel_tools.bench.options import Ramp, Thresholds
from kestrel_tools.bench.requests.callers import Outcome, arrivals, ask_for, calls_of, open_loop
from kestrel_tools.bench.requests.chart_questions import OF_WORDS, ChartQuestions, Question, question_texts
from kestrel_tools.bench.requests.endless_query import endless_skills
from kestrel_tools.bench.results import Bench, Row, percentile
from kestrel_tools.progress import told

WARM_UP_REQUESTS = 20


def bench_load(ramp: Ramp, thresholds: Thresholds, bench: Bench) -> bool:
    """Whether the thresholds held at `ramp.rate`; True where none was named."""
    config, url = bench.config, ramp.url
    with told(bench.console) as say:
        rows = asyncio.run(_measure(ramp, thresholds, config, say))
    knee = find_knee(rows)
    workload = {
        "requests": "the ChartQA mix, arriving as a Poisson process",
        "tokens": f"{ramp.tokens} at most" if url else f"exactly {ramp.tokens}, the end token ignored",
        "step_s": ramp.seconds,
        "asked": f"the server at {url}" if url else f"an engine, {config.max_batch_size} at a time",
        "latency": "from when a request was due",
    }
    limits = asdict(thresholds)
    promised = next((row["held"] for row in rows if row["offered_per_s"] == ramp.rate), None)
    found = {"thresholds": limits, "knee_per_s": knee, "rate": ramp.rate, "held_at_rate": promised}
    document = bench.finish("load", config if url is None else None, workload, rows, **found)
    told_limits = ", ".join(f"{name} {limit:g}" for name, limit in limits.items() if limit is not None)
    told_knee = "none" if knee is None else f"{knee:,.2f} requests/s"
    bench.console.print(f"knee: {told_knee} within {told_limits}")
    if ramp.html is not None:
        ramp.html.parent.mkdir(parents=True, exist_ok=True)
        ramp.html.write_text(html_report(document))
    return promised is not False


def find_knee(rows: Sequence[Row]) -> float | None:
    """The highest rate up to which all held. `rows` are in the order of their rates."""
    knee = None
    for row in rows:
        if not row["held"]:
            break
        knee = row["offered_per_s"]
    return knee


async def _measure(
    ramp: Ramp, thresholds: Thresholds, config: RuntimeConfig, say: Callable[[str], None]
) -> list[Row]:
    rows: list[Row] = []
    questions = ChartQuestions(question_texts(config) if ramp.url is None else OF_WORDS)
    say("starting" if ramp.url is None else f"warming up {ramp.url}")
    async with calls_of(config, ramp.url, ramp.timeout_s, endless_skills()) as calls:
        ask_once = ask_for(calls, ramp.timeout_s)

        async def ask(question: Question) -> Usage:
            return await ask_once(question, ramp.tokens)

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
    """Latencies are those of answered requests; all others are counted as errors.

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
        **{f"p{share}_ms": at(latencies, share / 100) for share in (50, 95, 99)},
        "ttft_p95_ms": at(ttfts, 0.95),
        "late_p99_ms": percentile([one.late_ms for one in outcomes], 0.99),
        "output_tokens": sum(one.usage.output_tokens for one in outcomes if one.usage is not None),
    }
