"""Who is asked: an engine in this process or a server, in the same words."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from kestrel_core.build import Engine
from kestrel_core.engine import InferenceEngine
from kestrel_core.protocol.messages import EngineResult, Usage
from kestrel_tools.bench.chart_questions import Question

if TYPE_CHECKING:
    from kestrel_client import AsyncClient  # which needs gRPC, and an engine does not

AskFor = Callable[[Question, int], Awaitable[Usage]]  # a question, and how many tokens its answer may have


@asynccontextmanager
async def started(start: Callable[[], Engine]) -> AsyncIterator[InferenceEngine]:
    """An engine that is started in a thread, for as long as the block lasts."""
    engine = InferenceEngine(await asyncio.to_thread(start))
    try:
        yield engine
    finally:
        await engine.shutdown()


def ask_engine(engine: InferenceEngine, timeout_s: float | None = None) -> AskFor:
    async def ask(question: Question, tokens: int) -> Usage:
        settings = {"temperature": 0.0, "max_tokens": tokens}
        result = await engine.query(question.image, question.text, settings=settings, timeout_s=timeout_s)
        assert isinstance(result, EngineResult)
        return result.metrics

    return ask


def ask_server(client: "AsyncClient") -> AskFor:
    async def ask(question: Question, tokens: int) -> Usage:
        answer = await client.query(question.image, question.text, temperature=0.0, max_tokens=tokens)
        return answer.metrics

    return ask
