"""A scheduler and a fake runtime, stepped by hand. A letter of a prompt is a token."""

from collections.abc import Callable
from typing import Any

import pytest
from fake_adapters import FakeAdapter
from fake_pictures import FakePictures
from fake_runtime import IMAGE_LENGTH, PAGE_SIZE, FakeRuntime

from kestrel_core.loop.sequence import GO_ON, Outcome, Sequence
from kestrel_core.loop.step import (
    Adapter,
    Input,
    Kind,
    PreparedImage,
    Readout,
    Sample,
    Sampling,
    Span,
    StepInFlight,
)
from kestrel_core.protocol.errors import EngineFailed
from kestrel_core.scheduler.adapter_slots import AdapterSlots
from kestrel_core.scheduler.pacing import Pacing
from kestrel_core.scheduler.pages import PagePool
from kestrel_core.scheduler.prefix_cache import PrefixCache
from kestrel_core.scheduler.scheduler import Limits, Scheduler, Update

both = pytest.mark.parametrize("overlaps", [False, True])


class Talk:
    """A reply of so many tokens. `second` is prompted in place of the sample that ends the first half."""

    def __init__(self, num_tokens: int, second: str = "") -> None:
        self.tokens: list[int] = []
        self.num_tokens = num_tokens
        self.second = second

    def readout(self, ahead: int = 0) -> Readout:
        return Readout(Kind.TOKEN)

    def take(self, sample: Sample) -> Outcome:
        assert sample.token is not None
        self.tokens.append(sample.token)
        if len(self.tokens) == self.num_tokens:
            return Outcome(finish="stop")
        if self.second and len(self.tokens) == self.num_tokens // 2:
            return Outcome(feed=tuple(map(ord, self.second)))
        return GO_ON

    def cut(self) -> Outcome:
        return Outcome("and so on", "...")

    def output(self) -> dict[str, Any]:
        return {"tokens": self.tokens}


class ShortTalk(Talk):
    """One that says where it ends."""

    def readout(self, ahead: int = 0) -> Readout | None:
        return Readout(Kind.TOKEN) if len(self.tokens) + ahead < self.num_tokens else None


class Stage:
    """A scheduler and a runtime, stepped by hand. Every step checks the books."""

    def __init__(
        self,
        *,
        num_pages: int = 41,
        max_running: int = 4,
        max_context: int = 100,
        step_tokens: int = 40,
        overlaps: bool = False,
        prefix_cache: bool = True,
        max_adapters: int = 0,
        pacing: Pacing | None = None,
    ) -> None:
        pictures = pacing.pictures if pacing is not None else None
        assert pictures is None or isinstance(pictures, FakePictures)
        self.pictures = pictures or FakePictures()
        self.pool = PagePool(num_pages)
        self.cache = PrefixCache(self.pool, prefix_cache)
        self.slots = AdapterSlots(max_adapters)
        limits = Limits(max_running, max_context, step_tokens)
        self.scheduler = Scheduler(self.pool, self.cache, PAGE_SIZE, limits, self.slots, pacing)
        self.runtime = FakeRuntime(
            num_pages, overlaps=overlaps, max_adapters=max_adapters, pictures=self.pictures
        )
        self.loads: list[tuple[Adapter, Callable[[Adapter], None]]] = []  # that have begun
        self._pending: StepInFlight | None = None

    def admit(
        self,
        prompt: str,
        num_tokens: int = 4,
        image: str | None = None,
        order: float = 0.0,
        second: str = "",
        sampling: Sampling | None = None,
        adapter: str | None = None,
    ) -> Sequence:
        inputs: list[Input] = list(map(ord, prompt))
        sequence = Sequence(prompt, Talk(num_tokens, second), inputs, root=(adapter, image), order=order)
        sequence.adapter = FakeAdapter(adapter) if adapter is not None else None
        if image is not None:
            sequence.image = PreparedImage(image, None, (1, 1))
            sequence.image_length = IMAGE_LENGTH
        if sampling is not None:
            sequence.sampling = sampling
        self.scheduler.admit(sequence)
        return sequence

    def step(self) -> list[Update]:
        plan = self.scheduler.plan()
        self.scheduler.check()
        launched: StepInFlight | None = self.runtime.launch(plan) if plan is not None else None
        for index, adapter in self.scheduler.take_loads():
            self.loads.append((adapter, self.runtime.adapter_loader(index)))
        self.scheduler.check()
        if self.runtime.overlaps:
            launched, self._pending = self._pending, launched
        updates = self.scheduler.commit(launched.collect()) if launched is not None else []
        self.scheduler.check()
        return updates

    def load(self, count: int = 99) -> list[Update]:
        """Let so many loads end that have begun."""
        updates: list[Update] = []
        for adapter, put in self.loads[:count]:
            try:
                put(adapter)
                self.scheduler.adapter_loaded(adapter.identity)
            except RuntimeError as error:
                updates += self.scheduler.adapter_failed(adapter.identity, EngineFailed(str(error)))
        del self.loads[:count]
        self.scheduler.check()
        return updates

    def run(self) -> list[Update]:
        """Until all have ended. What ended, in that order."""
        ends: list[Update] = []
        while self.scheduler.num_running or self.scheduler.num_waiting or self._pending is not None:
            ends += [update for update in self.load() + self.step() if update[1].finish or update[2]]
        return ends

    @property
    def spans(self) -> dict[int, list[Span]]:
        """The last plan, by slot."""
        slots: dict[int, list[Span]] = {}
        for span in self.runtime.plans[-1].spans:
            slots.setdefault(span.slot, []).append(span)
        return slots

    @property
    def num_unused(self) -> int:
        return self.pool.num_free + self.cache.num_evictable_pages


def said(sequence: Sequence) -> list[int]:
    tokens: list[int] = sequence.reply.output()["tokens"]
    return tokens


def alone(prompt: str, num_tokens: int = 4, **options: Any) -> list[int]:
    stage = Stage(max_adapters=1)
    sequence = stage.admit(prompt, num_tokens, **options)
    stage.run()
    return said(sequence)
