"""`InferenceEngine`: the public async API. Thin: it hands requests to the step loop and awaits their events.

May be called from any thread and any event loop; each call's events come back to the loop that made it.
"""

import asyncio
import itertools
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from kestrel_core.build import Engine, build_engine
from kestrel_core.config import RuntimeConfig, moondream_api_key
from kestrel_core.loop.inbox import Ticket
from kestrel_core.protocol.about import ABOUT
from kestrel_core.protocol.asking import AnswerStream, AsyncCalls
from kestrel_core.protocol.errors import KestrelError
from kestrel_core.protocol.messages import Chunk, EngineResult, Event, Finished, Request
from kestrel_core.protocol.results import typed
from kestrel_core.skills.registry import SkillRegistry
from kestrel_core.wanted import Wanted


class EngineStream(AnswerStream[EngineResult]):
    """One request's events, from the engine's thread to an event loop."""

    def __init__(self, engine: Engine, loop: asyncio.AbstractEventLoop) -> None:
        self._engine = engine
        self._loop = loop
        self._ticket: Ticket | None = None
        self._arrived: deque[Event] = deque()
        self._is_waking = False
        self._chunks: deque[Chunk] = deque()
        self._news = asyncio.Event()
        self._ending: EngineResult | KestrelError | None = None

    def begin(self, request: Request) -> None:
        if request.skill == ABOUT:
            return self.sink(self._engine.about.answer(request))
        self._ticket = self._engine.loop.submit(request, self.sink)

    @property
    def is_done(self) -> bool:
        return self._ending is not None

    def cancel(self) -> None:
        if self._ticket is not None and self._ending is None:
            self._engine.loop.cancel(self._ticket)

    async def result(self) -> EngineResult:
        while self._ending is None:
            await self._wait()
        if isinstance(self._ending, KestrelError):
            raise self._ending
        return self._ending

    async def next_chunk(self) -> Chunk | None:
        while not self._chunks and self._ending is None:
            await self._wait()
        if self._chunks:
            return self._chunks.popleft()
        if isinstance(self._ending, KestrelError):
            raise self._ending
        return None

    def sink(self, event: Event) -> None:
        """Called in the engine's thread. The event loop is woken once for all events until it runs."""
        self._arrived.append(event)
        # In an event loop that was closed, a wake-up that is due never comes.
        if not self._is_waking or self._loop.is_closed():
            self._is_waking = True
            try:
                self._loop.call_soon_threadsafe(self._receive)
            except RuntimeError:  # the caller's event loop is closed
                self.cancel()

    def _receive(self) -> None:
        self._is_waking = False
        while self._arrived:
            event = self._arrived.popleft()
            if isinstance(event, Chunk):
                self._chunks.append(event)
            elif isinstance(event, Finished):
                if event.rest.text or event.rest.logprobs:
                    self._chunks.append(event.rest)
                self._ending = typed(event.result)
            else:
                self._ending = event
        self._news.set()

    async def _wait(self) -> None:
        self._news.clear()
        try:
            await self._news.wait()
        except asyncio.CancelledError:
            self.cancel()
            raise


def _close_unwanted(building: "Future[Engine]") -> None:
    if not building.cancelled() and building.exception() is None:
        building.result().close(drain=False)


class InferenceEngine(AsyncCalls):
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._ids = itertools.count(1)

    @classmethod
    async def create(
        cls,
        config: RuntimeConfig | None = None,
        *,
        skills: SkillRegistry | None = None,
        api_key: str | None = None,
    ) -> "InferenceEngine":
        """Load the model and start the engine. Blocking work is done in a thread.

        `api_key` is for adapters that Moondream hosts, and is sent to Moondream only; without it the
        environment's is taken. Whoever is cancelled meanwhile leaves no engine behind.
        """
        wanted = Wanted()
        own = ThreadPoolExecutor(1, "kestrel-build")
        building = own.submit(
            build_engine,
            config or RuntimeConfig.from_environment(),
            skills,
            wanted,
            wanted,
            api_key or moondream_api_key(),
        )
        own.shutdown(wait=False)
        try:
            return cls(await asyncio.wrap_future(building))
        except asyncio.CancelledError:
            wanted.leave()
            building.add_done_callback(_close_unwanted)
            raise

    async def open(self, request: Request) -> EngineStream:
        stream = EngineStream(self._engine, asyncio.get_running_loop())
        if not request.request_id:
            request = replace(request, request_id=str(next(self._ids)))
        stream.begin(request)
        return stream

    async def shutdown(self, drain: bool = True) -> None:
        """Refuse new requests, finish those under way (or, without `drain`, end them), free everything."""
        await asyncio.to_thread(self._engine.close, drain)

    def metrics(self) -> dict[str, Any]:
        """Counters and histograms as plain values."""
        return self._engine.metrics()
