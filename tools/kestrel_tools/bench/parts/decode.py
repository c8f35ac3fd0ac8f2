"""`kestrel bench decode`: tokens/s of decode steps, through any `Runtime`: `launch`, `collect`, nothing else.

Every slot is given a prompt first, then all decode together, as the step loop has them do it: where the
runtime overlaps, the next step is launched before the last one is collected. The context grows by a position
a step, as it does in life, and is the stated one in the middle of the run.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import median
from time import perf_counter
from typing import NamedTuple

import numpy as np

from kestrel_core.build import assemble_engine
from kestrel_core.loop.step import Kind, Readout, Running, Runtime, Span, StepInFlight, StepPlan
from kestrel_core.moondream.config import MoondreamConfig
from kestrel_core.protocol.errors import InvalidRequest
from kestrel_tools.bench.machine.floors import decode_bytes, paced_model
from kestrel_tools.bench.options import Decode
from kestrel_tools.bench.results import Bench, Row, percentile

WARM_UP_STEPS = 20


class StepTime(NamedTuple):
    launch_s: float
    collect_s: float  # waiting for the device included
    step_s: float


def bench_decode(run: Decode, bench: Bench) -> None:
    batches, context, steps = run.batches, run.context, run.steps
    if not batches or min(*batches, 1) < 1 or steps < 1 or context <= steps // 2 + WARM_UP_STEPS:
        raise InvalidRequest(
            "decode needs batch sizes and steps of 1 or more, and a context beyond half of them"
        )
    most, config = max(batches), bench.config
    cache = config.kv_cache_tokens or most * (context + steps + 16) + 16
    config = replace(config, max_batch_size=most, kv_cache_tokens=cache)
    rows: list[Row] = []
    with paced_model(config, bench.console) as (model, pace, say):
        text = model.network.text
        if context + steps > (config.max_context or text.config.max_context):
            raise InvalidRequest(f"a context of {context:,} and {steps:,} steps exceed max_context; raise it")
        # Counted before an engine is built, since that may change the layout of the weights.
        floors_ms = [1000 * decode_bytes(text, batch, context) / pace.bytes_per_s for batch in batches]
        engine = assemble_engine(model, config)
        for batch, floor_ms in zip(batches, floors_ms, strict=True):
            say(f"decoding, {batch} at a time")
            times = time_decode(
                engine.loop.runtime, model.network.config, batch, context, steps, config.max_step_tokens
            )
            rows.append({"batch": batch, "context": context, **step_row(times, batch, floor_ms)})
        engine.loop.runtime.close()
    workload = {
        "context": context,
        "steps": steps,
        "copy": f"{pace.bytes_per_s / 1e12:.3g} TB/s",
        "floor": "weights, expected experts and keys and values, read once at that pace",
    }
    bench.finish("decode", config, workload, rows, pace=pace._asdict())


def step_row(times: Sequence[StepTime], batch: int, floor_ms: float) -> Row:
    step_ms = 1000 * median(time.step_s for time in times)
    return {
        "tokens_per_s": 1000 * batch / step_ms,
        "step_ms": step_ms,
        "step_p95_ms": 1000 * percentile([time.step_s for time in times], 0.95),
        "launch_ms": 1000 * median(time.launch_s for time in times),
        "collect_ms": 1000 * median(time.collect_s for time in times),
        "steps": len(times),
        "floor_ms": floor_ms,
        "of_floor": floor_ms / step_ms,
    }


def time_decode(
    runtime: Runtime, shape: MoondreamConfig, batch: int, context: int, steps: int, step_tokens: int
) -> list[StepTime]:
    """Times of the steps after the warm-up. `step_tokens` limits the positions in a step of the prompts."""
    start = context - steps // 2 - WARM_UP_STEPS
    tables = page_tables(runtime, batch, start + WARM_UP_STEPS + steps)
    for plan in _prompts(tables, shape, start, step_tokens):
        runtime.launch(plan).collect()
    readout = Readout(Kind.TOKEN, suppressed=(shape.tokenizer.answer_id,))  # as later in a query
    plans = (
        StepPlan(
            [Span(Running(slot, pages), at, at + 1, None, None, readout) for slot, pages in tables.items()]
        )
        for at in range(start, start + WARM_UP_STEPS + steps)
    )
    return _time_steps(runtime, plans)[WARM_UP_STEPS:]


def page_tables(runtime: Runtime, batch: int, length: int) -> dict[int, list[int]]:
    """Separate pages for each sequence of `length` positions, by slot. Slot 0 and page 0 are scratch."""
    each = -(-length // runtime.page_size)
    if 1 + batch * each > runtime.num_pages:
        raise InvalidRequest(
            f"{batch} sequences of {length:,} positions need {batch * each:,} pages of {runtime.page_size}, "
            f"and there are {runtime.num_pages - 1:,}; raise kv_cache_tokens or measure less at a time"
        )
    return {1 + row: list(range(1 + row * each, 1 + (row + 1) * each)) for row in range(batch)}


def _prompts(
    tables: dict[int, list[int]], shape: MoondreamConfig, length: int, step_tokens: int
) -> Iterator[StepPlan]:
    """Random words for each slot, one sequence after the other; its last position is read."""
    rng = np.random.default_rng(0)
    readout = Readout(Kind.TOKEN)
    for slot, pages in tables.items():
        words = rng.integers(16, shape.text.vocab_size, length).tolist()
        for start in range(0, length, step_tokens):
            stop = min(start + step_tokens, length)
            read = readout if stop == length else None
            yield StepPlan([Span(Running(slot, pages), start, stop, words[start:stop], None, read)])


def _time_steps(runtime: Runtime, plans: Iterator[StepPlan]) -> list[StepTime]:
    times: list[StepTime] = []
    pending: StepInFlight | None = None
    for plan in plans:
        began = perf_counter()
        launched: StepInFlight | None = runtime.launch(plan)
        launched_at = perf_counter()
        if runtime.overlaps:
            launched, pending = pending, launched
        if launched is not None:
            launched.collect()
        ended = perf_counter()
        times.append(StepTime(launched_at - began, ended - launched_at, ended - began))
    if pending is not None:
        pending.collect()
    return times
