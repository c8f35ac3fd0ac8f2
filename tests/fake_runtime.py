"""A runtime of scripted samples without torch, whose KV notices mistakes, and the language it speaks.

`FakeRuntime` keeps for every cell what was fed there, with which adapter and upon which history. A span is
only computed if the cells below it are one unbroken history of one adapter, and its sample follows from that
history alone. So whatever mixes up pages, positions, prefixes, adapters, order or draws is either noticed at
once or changes an answer.
"""

import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple
from zlib import crc32

from fake_adapters import FakePlaces
from fake_pictures import FakePictures

from kestrel_core.intake.tokenizer import Tokenizer
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
from kestrel_core.moondream.config import MOONDREAM3, Captions, MoondreamConfig, Template, Templates
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
        pictures: FakePictures | None = None,
    ) -> None:
        self.num_pages = num_pages
        self._pictures = pictures
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
        self.put_off: list[str] = []  # captures that are left for later
        self.captures: list[tuple[str, bool]] = []  # those that were done, and whether the loop was idle
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
            replace(span, sequence=replace(span.sequence, pages=[*span.sequence.pages]))  # as they are now
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
        self.plans.append(StepPlan(spans, plan.encodes))
        if plan.encodes:
            assert self._pictures is not None
            self._pictures.encode(plan.encodes)
        step = FakeStep(self, read)
        self.under_way.append(step)
        return step

    def vision_s(self, image: PreparedImage) -> float:
        return self.took_s.get(image.key, 0.0)

    def adapter_loader(self, index: int) -> Callable[[Adapter], None]:
        return self.adapters.loader(index)

    def capture_more(self, idle: bool) -> bool:
        if not self.put_off:
            return False
        self.captures.append((self.put_off.pop(0), idle))
        return True

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
