"""Stand-ins for the device half and for time: scripted samples, no torch, and KV that notices mistakes.

`FakeRuntime` keeps for every cell what was fed there, with which adapter and upon which history. A span is
only computed if the cells below it are one unbroken history of one adapter, and its sample follows from that
history alone. So whatever mixes up pages, positions, prefixes, adapters, order or draws is either noticed at
once or changes an answer.
"""

import threading
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple
from zlib import crc32

from fake_adapters import FakePlaces, FakeSource, FakeThreads
from fake_preparation import FakeWorkers, fake_prepare

from kestrel_core.intake.tokenizer import Tokenizer
from kestrel_core.loop.adapters import Adapters
from kestrel_core.loop.inbox import Ticket
from kestrel_core.loop.limits import QueueLimits
from kestrel_core.loop.metrics import Metrics
from kestrel_core.loop.preparation import PrepareImage
from kestrel_core.loop.step import (
    Adapter,
    Coord,
    Input,
    Kind,
    PreparedImage,
    Sample,
    Size,
    Span,
    StepPlan,
)
from kestrel_core.loop.step_loop import StepLoop
from kestrel_core.moondream.config import MOONDREAM3, Captions, MoondreamConfig, Template, Templates
from kestrel_core.protocol.errors import KestrelError
from kestrel_core.protocol.messages import Chunk, Event, Finished, Request, parse_settings
from kestrel_core.scheduler.adapter_slots import AdapterSlots
from kestrel_core.scheduler.pages import PagePool
from kestrel_core.scheduler.prefix_cache import PrefixCache
from kestrel_core.scheduler.scheduler import Limits, Scheduler
from kestrel_core.skills.registry import SkillRegistry, builtin_skills
from kestrel_core.skills.spec import Language

IMAGE_LENGTH = 5  # BOS and 2 x 2 patches
PAGE_SIZE = 5


def fake_config() -> MoondreamConfig:
    """Moondream 3 as far as the upper half can tell, with a picture of five positions and a word a byte."""
    templates = Templates(
        Captions((1, 24, 2, 25, 3), (1, 24, 2, 26, 3), (1, 24, 2, 27, 3)),
        query=Template((1, 20, 2), (3,)),
        detect=Template((1, 21, 22, 2), (3,)),
        point=Template((1, 23, 2), (3,)),
    )
    return replace(
        MOONDREAM3,
        text=replace(MOONDREAM3.text, vocab_size=300),
        vision=replace(MOONDREAM3.vision, crop_size=28, overlap_margin=0),
        tokenizer=replace(MOONDREAM3.tokenizer, templates=templates),
    )


LANGUAGE = Language(fake_config(), Tokenizer.of_bytes(fake_config()))
IDS = LANGUAGE.config.tokenizer
LETTERS = tuple(LANGUAGE.tokenizer.encode("ab c"))  # few, so that answers part late and stop strings are met


class Cell(NamedTuple):
    position: int
    fed: object
    before: int  # digest of the history it was computed upon
    digest: int
    adapter: str  # empty: none


@dataclass(eq=False)
class FakeStep:
    runtime: "FakeRuntime"
    samples: Mapping[int, Sample]

    def collect(self) -> Mapping[int, Sample]:
        assert self.runtime.under_way.popleft() is self, "steps are collected in the order of their launch"
        return self.samples


class FakeRuntime:
    def __init__(
        self,
        num_pages: int,
        page_size: int = PAGE_SIZE,
        overlaps: bool = False,
        max_adapters: int = 0,
    ) -> None:
        self.num_pages = num_pages
        self.adapters = FakePlaces(max_adapters)
        self.page_size = page_size
        self.overlaps = overlaps
        self.failing: set[object] = set()  # tokens and keys of images: feeding one of them raises
        self.took_s: dict[str, float] = {}  # by key of an image: seconds of the vision encoder
        self.late_failures = 0  # so many launches fail after they have written what they read
        self.not_finite: set[object] = set()  # a sequence that was fed one of these tokens reads no numbers
        self._gate = threading.Event()  # while it is not set, launches take their time
        self._gate.set()
        self._num_free = 0  # so many launches do not wait
        self.held = threading.Event()  # a launch waits
        self.plans: list[StepPlan] = []
        self.violations: list[str] = []
        self.under_way: deque[FakeStep] = deque()
        self.closed = False
        self._cells: dict[int, Cell] = {}
        self._last: dict[int, Input] = {}

    @property
    def num_images(self) -> int:
        """Image prefixes computed so far."""
        return sum(span.image is not None for plan in self.plans for span in plan.spans)

    def launch(self, plan: StepPlan) -> FakeStep:
        if len(self.plans) >= self._num_free and not self._gate.is_set():
            self.held.set()
            assert self._gate.wait(60), "the runtime was never released"
        assert not self.closed
        self._require(len(self.under_way) <= self.overlaps, "more steps under way than may be")
        spans = [
            span._replace(sequence=replace(span.sequence, pages=[*span.sequence.pages]))  # as they are now
            for span in plan.spans
        ]
        for span in spans:
            self._write(span)
        # Only now, as on a device: what one span wrote over another's cells is there for both to see.
        samples = {span.slot: self._read(span) for span in spans}
        read = {span.slot: samples[span.slot] for span in spans if span.readout is not None}
        self._last.update((slot, sample.feed) for slot, sample in read.items())
        if self.late_failures:
            self.late_failures -= 1
            raise RuntimeError("no memory for the results")
        self.plans.append(StepPlan(spans))
        step = FakeStep(self, read)
        self.under_way.append(step)
        return step

    def vision_s(self, image: PreparedImage) -> float:
        return self.took_s.get(image.key, 0.0)

    def adapter_loader(self, index: int) -> Callable[[Adapter], None]:
        return self.adapters.loader(index)

    def hold(self, after: int = 0) -> None:
        """Let every launch wait for `release`, once there were `after` of them."""
        self._num_free = after
        self._gate.clear()

    def release(self) -> None:
        self._gate.set()

    def close(self) -> None:
        self.closed = True

    def _write(self, span: Span) -> None:
        self._require(
            span.slot > 0 and 0 not in span.sequence.pages, "the scratch slot and page belong to no sequence"
        )
        self._require(len(span.sequence.pages) * self.page_size >= span.stop, "the page table is too short")
        fed: tuple[object, ...]
        if span.image is not None:
            self._require((span.start, span.stop) == (0, IMAGE_LENGTH), "an image prefix was split")
            fed = tuple((crc32(span.image.key.encode()), at, "image") for at in range(IMAGE_LENGTH))
            if span.image.key in self.failing:
                raise RuntimeError("no such convolution")
        else:
            fed = tuple(span.inputs) if span.inputs is not None else (self._last[span.slot],)
        self._require(len(fed) == span.stop - span.start > 0, "a span without an input for each position")
        if not self.failing.isdisjoint(fed):
            raise RuntimeError("no such embedding")
        adapter = self._adapter(span)
        before = self._cells[self._cell(span, span.start - 1)].digest if span.start else 0
        for position, value in enumerate(fed, span.start):
            digest = hash((before, _number(value), *([crc32(adapter.encode())] if adapter else [])))
            self._cells[self._cell(span, position)] = Cell(position, value, before, digest, adapter)
            before = digest

    def _read(self, span: Span) -> Sample:
        digest, finite, adapter = 0, True, self._adapter(span)
        for position in range(span.stop):
            cell = self._cells[self._cell(span, position)]
            sound = (cell.position, cell.before, cell.adapter) == (position, digest, adapter)
            self._require(sound, f"slot {span.slot}: position {position} of {span.stop} holds {cell}")
            digest = cell.digest
            finite = finite and cell.fed not in self.not_finite
        return self._sample(span, digest)._replace(finite=finite) if span.readout is not None else Sample()

    def _sample(self, span: Span, digest: int) -> Sample:
        """What the history gives; with a temperature, what it gives with this seed in this draw."""
        assert span.readout is not None
        kind, sampling = span.readout.kind, span.sequence.sampling
        chance = hash((digest, sampling.seed, span.draw) if sampling.temperature else (digest,))
        chance, coin = divmod(chance % 2**61, 64)
        coord = chance % 64 / 64
        if kind is Kind.COORD:
            return Sample(coord=coord)
        if kind is Kind.SIZE:
            return Sample(size=Size(coord, chance // 64 % 64 / 64))
        if kind is Kind.OBJECT:
            return Sample(token=IDS.eos_id if coin < 12 else IDS.coord_id, coord=coord)
        token = LETTERS[chance % len(LETTERS)]
        if kind is Kind.TOKEN:
            token = IDS.eos_id if coin < 3 else token
        elif coin < 24:
            token = (IDS.answer_id, IDS.coord_id, IDS.start_ground_points_id, IDS.end_ground_id)[coin % 4]
        assert token not in span.readout.suppressed
        sample = Sample(token=token, coord=coord if token == IDS.coord_id else None)
        if sampling.logprobs:
            top = tuple((LETTERS[(chance + i) % 4], -float(i)) for i in range(sampling.logprobs))
            sample = sample._replace(logprob=-coin / 8, top=top)
        return sample

    def _adapter(self, span: Span) -> str:
        identity = self.adapters.identity(span.sequence.adapter)
        self._require(identity is not None, "an index is used that holds no adapter")
        return identity or ""

    def _cell(self, span: Span, position: int) -> int:
        return span.sequence.pages[position // self.page_size] * self.page_size + position % self.page_size

    def _require(self, true: bool, rule: str) -> None:
        if not true:
            self.violations.append(rule)
            raise AssertionError(rule)


def _number(fed: object) -> object:
    """What equal inputs share in every process: the hash of a text is salted, so texts stay out of it."""
    if isinstance(fed, Coord | Size):
        return (type(fed) is Coord, *fed)
    return fed[:2] if isinstance(fed, tuple) else fed


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
        **sharing: bool,
    ) -> None:
        self.clock = Clock()
        self.workers = FakeWorkers()
        self.source, self.local, self.remote = FakeSource(), FakeThreads(), FakeThreads()
        self.runtime = FakeRuntime(num_pages, overlaps=overlaps, max_adapters=max_adapters)
        pool, limits = PagePool(num_pages), Limits(max_running, max_context, step_tokens)
        self.slots = AdapterSlots(max_adapters)
        self.scheduler = Scheduler(pool, PrefixCache(pool, prefix_cache), PAGE_SIZE, limits, self.slots)
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
