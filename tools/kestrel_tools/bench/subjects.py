"""Who is asked: an engine in this process or a server, in the same words."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from kestrel_core.build import Engine
from kestrel_core.engine import InferenceEngine
from kestrel_core.protocol.asking import AsyncCalls
from kestrel_core.protocol.messages import Usage
from kestrel_tools.bench.chart_questions import Question

AskFor = Callable[[Question, int], Awaitable[Usage]]  # a question, and how many tokens its answer may have


@asynccontextmanager
async def started(start: Callable[[], Engine]) -> AsyncIterator[InferenceEngine]:
    """An engine that is started in a thread, for as long as the block lasts."""
    engine = InferenceEngine(await asyncio.to_thread(start))
    try:
        yield engine
    finally:
        await engine.shutdown()


def ask_for(calls: AsyncCalls, timeout_s: float | None = None) -> AskFor:
    """Engine and client have the same calls."""

    async def ask(question: Question, tokens: int) -> Usage:
        answer = await calls.query(
            question.image, question.text, temperature=0.0, max_tokens=tokens, timeout_s=timeout_s
        )
        return answer.metrics

    return ask
