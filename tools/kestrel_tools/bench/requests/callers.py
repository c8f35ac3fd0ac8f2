"""Who is asked, and when: by callers who each wait for their answer, or at moments fixed beforehand.

Both measure from outside: a latency is what a caller waited. The engine's own account of a request, which
comes with every answer, is kept beside it.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import Any

import numpy as np

from kestrel_core.build import Engine, build_engine
from kestrel_core.config import RuntimeConfig
from kestrel_core.engine import InferenceEngine
from kestrel_core.protocol.asking import AsyncCalls
from kestrel_core.protocol.errors import EngineFailed, KestrelError
from kestrel_core.protocol.messages import Usage
from kestrel_core.skills.registry import SkillRegistry
from kestrel_tools.bench.requests.chart_questions import Question

Ask = Callable[[Question], Awaitable[Usage]]
AskFor = Callable[[Question, int], Awaitable[Usage]]  # a question, and how many tokens its answer may have
Counts = dict[str, float]  # the engine's counters, by their exported names


@asynccontextmanager
async def started(start: Callable[[], Engine]) -> AsyncIterator[InferenceEngine]:
    """An engine that is started in a thread, for as long as the block lasts."""
    engine = InferenceEngine(await asyncio.to_thread(start))
    try:
        yield engine
    finally:
        await engine.shutdown()


@asynccontextmanager
async def calls_of(
    config: RuntimeConfig, url: str | None, timeout_s: float, skills: SkillRegistry | None = None
) -> AsyncIterator[AsyncCalls]:
    """The server at `url`; without one an engine that is started here, with these skills."""
    if url is None:
        async with started(partial(build_engine, config, skills)) as engine:
            yield engine
        return
    from kestrel_client import AsyncClient, Retry  # late: gRPC is needed for this way alone

    # A refusal is an answer here, and must not be hidden by asking again.
    async with AsyncClient(url, timeout_s=timeout_s, retry=Retry(limit=0)) as client:
        yield client


def ask_for(
    calls: AsyncCalls, timeout_s: float | None = None, adapter: Callable[[Question], str] | None = None
) -> AskFor:
    """Engine and client have the same calls. `adapter` names the one of each question."""

    async def ask(question: Question, tokens: int) -> Usage:
        settings: dict[str, Any] = {"temperature": 0.0, "max_tokens": tokens}
        if adapter is not None:
            settings["adapter"] = adapter(question)
        answer = await calls.query(question.image, question.text, settings=settings, timeout_s=timeout_s)
        return answer.metrics

    return ask


@dataclass(frozen=True, slots=True)
class Answered:
    began_s: float
    ended_s: float
    usage: Usage

    @property
    def latency_ms(self) -> float:
        return 1000 * (self.ended_s - self.began_s)


@dataclass(frozen=True, slots=True)
class Window:
    """The requests that ended between two moments, while all callers were busy."""

    begin_s: float
    end_s: float
    answered: Sequence[Answered]
    before: Counts
    after: Counts

    @property
    def seconds(self) -> float:
        return self.end_s - self.begin_s

    def count(self, name: str) -> float:
        return self.after[name] - self.before[name]


async def closed_loop(
    ask: Ask,
    questions: Iterator[Question],
    callers: int,
    lead_in: int,
    seconds: float,
    look: Callable[[], Awaitable[Counts]],
) -> Window:
    """Opens the window when `lead_in` requests have ended; closes it after `seconds` in which one has ended,
    or with the questions. What is under way then is waited for, and not counted.
    """
    done: list[Answered] = []
    led_in, answer, over = asyncio.Event(), asyncio.Event(), False

    async def caller() -> None:
        for question in questions:
            began = monotonic()
            usage = await ask(question)
            done.append(Answered(began, monotonic(), usage))
            answer.set()
            if len(done) >= lead_in:
                led_in.set()
            if over:
                return

    tasks = [asyncio.create_task(caller()) for _ in range(callers)]
    try:
        await _come(led_in, tasks)
        before, begin = await look(), monotonic()
        answer.clear()
        # The first caller who finds no question, or fails, ends it: after that not all are busy.
        await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        await _come(answer, tasks)
        end, after = monotonic(), await look()
        over = True
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
    answered = [one for one in done if begin <= one.ended_s <= end]
    if not answered:
        raise EngineFailed(f"no request ended within {end - begin:.1f} s; measure for longer")
    return Window(begin, end, answered, before, after)


async def _come(event: asyncio.Event, tasks: Sequence[asyncio.Task[None]]) -> None:
    """Waits for it, or for the first of the tasks to end."""
    waiting = asyncio.create_task(event.wait())
    await asyncio.wait((waiting, *tasks), return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one arrival. `latency_ms` counts from when it was due, even if it was sent late."""

    due_s: float
    late_ms: float
    latency_ms: float
    usage: Usage | None
    error: str | None


def arrivals(rate: float, seconds: float, seed: int) -> list[float]:
    """Moments of a Poisson process within `seconds`; at least one, or there would be nothing to measure."""
    rng = np.random.default_rng(seed)
    moments: list[float] = []
    now = float(rng.exponential(1 / rate))
    while now < seconds or not moments:
        moments.append(now)
        now += float(rng.exponential(1 / rate))
    return moments


async def open_loop(ask: Ask, questions: Iterator[Question], moments: Sequence[float]) -> list[Outcome]:
    """Asks at every moment, whether earlier requests have ended or not. Returns when all have."""
    start = monotonic()

    async def one(question: Question, due: float) -> Outcome:
        late, usage, error = monotonic() - due, None, None
        try:
            usage = await ask(question)
        except KestrelError as problem:
            error = type(problem).__name__
        return Outcome(due - start, 1000 * late, 1000 * (monotonic() - due), usage, error)

    tasks = []
    try:
        for question, moment in zip(questions, moments, strict=True):
            await asyncio.sleep(max(0.0, start + moment - monotonic()))
            tasks.append(asyncio.create_task(one(question, start + moment)))
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks, return_exceptions=True)
