"""`InferenceEngine`: the public async API. Thin: it hands requests to the step loop and awaits their events.

May be called from any thread and any event loop; each call's events come back to the loop that made it.
"""

import asyncio
import itertools
from collections import deque
from collections.abc import AsyncIterator, Mapping
from typing import Any, Literal, overload

from kestrel_core.build import Engine, build_engine
from kestrel_core.config import RuntimeConfig
from kestrel_core.loop.inbox import Ticket
from kestrel_core.protocol.errors import InvalidRequest, KestrelError
from kestrel_core.protocol.messages import (
    Chunk,
    EngineResult,
    Event,
    Finished,
    Request,
    number,
    parse_settings,
)
from kestrel_core.skills.spec import SkillRegistry


class EngineStream:
    """An answer while it is given: iterate for chunks, `await result()` for the whole, `cancel()` to stop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._arrived: deque[Event] = deque()
        self._wakeups_due = False
        self._chunks: deque[Chunk] = deque()
        self._news = asyncio.Event()
        self._outcome: EngineResult | KestrelError | None = None
        self._ticket: Ticket | None = None
        self._engine: Engine | None = None

    def cancel(self) -> None:
        """Its pages and slot are free within one step; `result` then tells what was said so far."""
        if self._ticket is not None and self._engine is not None and self._outcome is None:
            self._engine.loop.cancel(self._ticket)

    async def result(self) -> EngineResult:
        while self._outcome is None:
            await self._wait()
        if isinstance(self._outcome, KestrelError):
            raise self._outcome
        return self._outcome

    async def __aiter__(self) -> AsyncIterator[Chunk]:
        while True:
            while self._chunks:
                yield self._chunks.popleft()
            if isinstance(self._outcome, KestrelError):
                raise self._outcome
            if self._outcome is not None:
                return
            await self._wait()

    def sink(self, event: Event) -> None:
        """From the engine's thread. One wake-up of the event loop serves all events until it runs."""
        self._arrived.append(event)
        # A wake-up that is due in a closed event loop never comes.
        if not self._wakeups_due or self._loop.is_closed():
            self._wakeups_due = True
            try:
                self._loop.call_soon_threadsafe(self._receive)
            except RuntimeError:  # the caller's event loop is closed: nobody listens any more
                self.cancel()

    def _receive(self) -> None:
        self._wakeups_due = False
        while self._arrived:
            event = self._arrived.popleft()
            if isinstance(event, Chunk):
                self._chunks.append(event)
            elif isinstance(event, Finished):
                if event.rest.text:
                    self._chunks.append(event.rest)
                self._outcome = event.result
            else:
                self._outcome = event
        self._news.set()

    async def _wait(self) -> None:
        self._news.clear()
        try:
            await self._news.wait()
        except asyncio.CancelledError:
            self.cancel()
            raise


class InferenceEngine:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._ids = itertools.count(1)

    @classmethod
    async def create(
        cls, config: RuntimeConfig | None = None, *, skills: SkillRegistry | None = None
    ) -> "InferenceEngine":
        """Load the model and start the engine. Blocking work is done in a thread."""
        built = await asyncio.to_thread(build_engine, config or RuntimeConfig.from_environment(), skills)
        return cls(built)

    @overload
    async def query(
        self, image: Any = ..., question: str | None = ..., *, stream: Literal[True], **rest: Any
    ) -> EngineStream: ...
    @overload
    async def query(
        self, image: Any = ..., question: str | None = ..., *, stream: Literal[False] = ..., **rest: Any
    ) -> EngineResult: ...
    async def query(
        self,
        image: Any = None,
        question: str | None = None,
        *,
        reasoning: bool = False,
        spatial_refs: Any = None,
        settings: Mapping[str, Any] | None = None,
        stream: bool = False,
        **options: Any,
    ) -> EngineResult | EngineStream:
        """Answer a question, about a picture or without one."""
        arguments = {"question": question, "reasoning": reasoning, "spatial_refs": spatial_refs}
        return await self.submit("query", image, arguments, settings=settings, stream=stream, **options)

    @overload
    async def caption(
        self, image: Any, length: str = ..., *, stream: Literal[True], **rest: Any
    ) -> EngineStream: ...
    @overload
    async def caption(
        self, image: Any, length: str = ..., *, stream: Literal[False] = ..., **rest: Any
    ) -> EngineResult: ...
    async def caption(
        self,
        image: Any,
        length: str = "normal",
        *,
        settings: Mapping[str, Any] | None = None,
        stream: bool = False,
        **options: Any,
    ) -> EngineResult | EngineStream:
        """Describe a picture: `short`, `normal` or `long`."""
        return await self.submit(
            "caption", image, {"length": length}, settings=settings, stream=stream, **options
        )

    async def point(
        self,
        image: Any,
        object: str,
        *,
        spatial_refs: Any = None,
        settings: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> EngineResult:
        """The points of everything in the picture that fits the words."""
        arguments = {"object": object, "spatial_refs": spatial_refs}
        return await self._result("point", image, arguments, settings=settings, **options)

    async def detect(
        self, image: Any, object: str, *, settings: Mapping[str, Any] | None = None, **options: Any
    ) -> EngineResult:
        """The boxes of everything in the picture that fits the words."""
        return await self._result("detect", image, {"object": object}, settings=settings, **options)

    async def segment(
        self,
        image: Any,
        object: str,
        *,
        spatial_refs: Any = None,
        settings: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> EngineResult:
        """The outline of what fits the words, where the model has the skill."""
        arguments = {"object": object, "spatial_refs": spatial_refs}
        return await self._result("segment", image, arguments, settings=settings, **options)

    async def submit(
        self,
        skill: str = "tokens",
        image: Any = None,
        arguments: Mapping[str, Any] | None = None,
        *,
        settings: Mapping[str, Any] | None = None,
        stream: bool = False,
        priority: int = 0,
        timeout_s: float | None = None,
        request_id: str | None = None,
        **more: Any,
    ) -> EngineResult | EngineStream:
        """Any skill by name, your own among them; `submit(tokens=[...])` continues raw prompt tokens."""
        request = Request(
            skill=skill,
            arguments={**(arguments or {}), **more},
            image=image,
            settings=parse_settings(settings),
            request_id=request_id if request_id is not None else str(next(self._ids)),
            stream=stream,
            priority=number("PRIORITY", priority, int, -(2**31), 2**31 - 1),
            timeout_s=timeout_s,
        )
        if timeout_s is not None and not timeout_s > 0:
            raise InvalidRequest(f"timeout_s is {timeout_s}; it must be more than 0")
        running = EngineStream(asyncio.get_running_loop())
        running._engine = self._engine
        running._ticket = self._engine.loop.submit(request, running.sink)
        return running if stream else await running.result()

    async def shutdown(self, drain: bool = True) -> None:
        """Refuse new requests, finish those under way (or, without `drain`, end them), free everything."""
        await asyncio.to_thread(self._engine.close, drain)

    def metrics(self) -> dict[str, Any]:
        """Counters and histograms as plain values."""
        return self._engine.metrics()

    async def _result(
        self, skill: str, image: Any, arguments: dict[str, Any], **options: Any
    ) -> EngineResult:
        result = await self.submit(skill, image, arguments, **options)
        assert isinstance(result, EngineResult), "this skill does not stream"
        return result
