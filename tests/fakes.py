"""Stand-ins above the device: an engine that a test drives, what its requests hear, and time."""

import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from fake_adapters import FakeSource, FakeThreads
from fake_pictures import FakePictures
from fake_preparation import FakeWorkers, fake_prepare
from fake_runtime import LANGUAGE, PAGE_SIZE, FakeRuntime

from kestrel_core.loop.adapters import Adapters
from kestrel_core.loop.inbox import Ticket
from kestrel_core.loop.limits import QueueLimits
from kestrel_core.loop.metrics import Metrics
from kestrel_core.loop.preparation import PrepareImage
from kestrel_core.loop.step_loop import StepLoop
from kestrel_core.protocol.errors import KestrelError
from kestrel_core.protocol.messages import Chunk, Event, Finished, Request, parse_settings
from kestrel_core.scheduler.adapter_slots import AdapterSlots
from kestrel_core.scheduler.pacing import Pacing
from kestrel_core.scheduler.pages import PagePool
from kestrel_core.scheduler.prefix_cache import PrefixCache
from kestrel_core.scheduler.scheduler import Limits, Scheduler
from kestrel_core.skills.registry import SkillRegistry, builtin_skills


class Clock:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@dataclass(eq=False)
class Heard:
    """A sink that keeps what it is told, and the ticket it is told about."""

    request: Request
    events: list[Event] = field(default_factory=list)
    ticket: Ticket | None = None
    ended: threading.Event = field(default_factory=threading.Event)

    def __call__(self, event: Event) -> None:
        self.events.append(event)
        if not isinstance(event, Chunk):
            self.ended.set()

    @property
    def end(self) -> Finished | KestrelError:
        """The last event, which is the only end."""
        *before, end = self.events
        assert all(isinstance(event, Chunk) for event in before)
        assert not isinstance(end, Chunk)
        return end

    @property
    def finished(self) -> Finished:
        if isinstance(self.end, KestrelError):
            raise self.end
        return self.end

    @property
    def output(self) -> dict[str, Any]:
        return self.finished.result.output

    @property
    def error(self) -> KestrelError:
        assert isinstance(self.end, KestrelError)
        return self.end

    @property
    def streamed(self) -> str:
        return self._text_of("text") + self.finished.rest.text

    @property
    def reasoned(self) -> str:
        return self._text_of("reasoning")

    def _text_of(self, kind: str) -> str:
        chunks = [event for event in self.events if isinstance(event, Chunk)]
        return "".join(chunk.text for chunk in chunks if chunk.kind == kind)


class FakeEngine:
    """A step loop over a `FakeRuntime`. The test runs it, moves its clock and lets its workers run."""

    def __init__(
        self,
        *,
        num_pages: int = 65,
        max_running: int = 4,
        max_context: int = 60,
        step_tokens: int = 40,
        overlaps: bool = False,
        prefix_cache: bool = True,
        skills: SkillRegistry | None = None,
        max_queue: int = 10_000,
        max_queue_bytes: int = 10_000,
        max_prepared_bytes: int = 10_000,
        default_timeout_s: float | None = None,
        threads: bool = False,
        prepare_image: PrepareImage = fake_prepare,
        max_adapters: int = 0,
        pacing: Pacing | None = None,
        **sharing: bool,
    ) -> None:
        self.clock = Clock()
        self.workers = FakeWorkers()
        self.source, self.local, self.remote = FakeSource(), FakeThreads(), FakeThreads()
        pictures = pacing.pictures if pacing is not None else None
        assert pictures is None or isinstance(pictures, FakePictures)
        self.runtime = FakeRuntime(num_pages, overlaps=overlaps, max_adapters=max_adapters, pictures=pictures)
        pool, limits = PagePool(num_pages), Limits(max_running, max_context, step_tokens)
        self.slots = AdapterSlots(max_adapters)
        self.scheduler = Scheduler(
            pool, PrefixCache(pool, prefix_cache), PAGE_SIZE, limits, self.slots, pacing
        )
        local, remote = (None, None) if threads else (self.local, self.remote)
        adapters = Adapters(self.source, local, remote, self.clock) if max_adapters else None
        queue = (max_queue, max_queue_bytes, max_context, 10.0, default_timeout_s, max_prepared_bytes)
        self.loop = StepLoop(
            self.runtime,
            self.scheduler,
            skills or builtin_skills(),
            LANGUAGE,
            prepare_image,
            ThreadPoolExecutor(2) if threads else self.workers,
            QueueLimits(*queue, **sharing),
            Metrics(),
            self.clock,
            adapters,
        )
        if threads:
            self.loop.start()

    def ask(
        self,
        skill: str = "query",
        image: bytes | None = None,
        *,
        settings: Mapping[str, Any] | None = None,
        stream: bool = False,
        priority: int = 0,
        timeout_s: float | None = None,
        cache_salt: str = "",
        tenant: str = "",
        **arguments: Any,
    ) -> Heard:
        """Submit a request, greedy unless `settings` say otherwise."""
        parsed = parse_settings({"temperature": 0, **(settings or {})})
        request = Request(skill, arguments, image, parsed, "7", stream, priority, timeout_s, cache_salt)
        return self.submit(replace(request, tenant=tenant))

    def submit(self, request: Request) -> Heard:
        heard = Heard(request)
        heard.ticket = self.loop.submit(request, heard)
        return heard

    def cancel(self, heard: Heard) -> None:
        assert heard.ticket is not None
        self.loop.cancel(heard.ticket)

    def step(self, count: int = 1) -> None:
        for _ in range(count):
            self.loop.step()
            self.scheduler.check()

    def run_until_idle(self) -> None:
        while self.loop.num_open or self.local.waiting or self.remote.waiting:
            for workers in (self.local, self.remote, self.workers):
                workers.run()
            self.step()
        self.loop.run_until_idle()

    def check_idle(self) -> None:
        """No request is left, no pin, and no page but those that the prefix cache may drop."""
        loop, scheduler = self.loop, self.scheduler
        assert self.runtime.violations == []
        assert (loop.num_open, loop.num_queued, loop.queued_bytes, loop.prepared_bytes) == (0, 0, 0, 0)
        assert loop.num_waiting_for_adapters == 0
        assert not loop._preparation._aside and not loop._preparation._held
        assert not loop._preparation._costly._begun and not loop._preparation._costly._waiting
        assert (scheduler.num_running, scheduler.num_waiting) == (0, 0)
        assert not loop._tickets and not scheduler._in_flight and not scheduler._building
        scheduler.check()
        cache, pool = scheduler.prefix_cache, scheduler.pool
        assert cache.num_cached_pages == cache.num_evictable_pages
        cache.clear()
        assert pool.num_free == pool.num_pages - 1
