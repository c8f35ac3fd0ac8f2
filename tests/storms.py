"""Random steps for two runtimes: sequences join, come in pieces, decode, are prompted again and preempted.

The subject gets the plans as a scheduler would make them, overlapping or not. The reference gets the same
ones with every input spelled out as the subject's samples gave it, so that one difference breeds no others.
"""

import random
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
import torch
from torch import Tensor

from kestrel_core.loop.step import (
    GREEDY,
    Coord,
    Input,
    Kind,
    PreparedImage,
    Readout,
    Running,
    Runtime,
    Sample,
    Sampling,
    Size,
    Span,
    StepInFlight,
    StepPlan,
)
from kestrel_core.moondream.config import MoondreamConfig

NUM_PAGES = 96
BAD = "bad"  # the key of a picture whose embeddings are no numbers


class Pictures:
    """In place of an image encoder: a key's embeddings, the same for every runtime."""

    def __init__(self, config: MoondreamConfig, like: Tensor) -> None:
        self._shape = (config.vision.num_patches, config.text.dim)
        self._like = like
        self._known: dict[str, Tensor] = {}
        self.num_encoded = 0
        self.captured = (0, 0)

    def __call__(self, image: PreparedImage) -> Tensor:
        if image.key not in self._known:
            seeded = torch.Generator().manual_seed(sum(image.key.encode()))
            values = 0.5 * torch.randn(self._shape, generator=seeded)
            self._known[image.key] = values.to(self._like) * (torch.nan if image.key == BAD else 1.0)
        return self._known[image.key]

    def encode_many(self, images: Sequence[PreparedImage]) -> list[Tensor]:
        return [self(image) for image in images]

    def warm_up(self) -> None:
        pass

    def on_its_stream(self) -> AbstractContextManager[object]:
        return nullcontext()


@dataclass
class Life:
    """A sequence, as the storm sees it."""

    slot: int
    image: PreparedImage | None
    inputs: list[Input]
    adapter: int = 0
    pages: list[int] = field(default_factory=list)
    computed: int = 0
    num_reading: int = 0  # readouts under way
    sampled: bool = False  # the last input is the last sample
    ended: bool = False


class Storm:
    def __init__(
        self,
        config: MoondreamConfig,
        subject: Runtime,
        reference: Runtime,
        seed: int,
        max_batch: int,
        overlaps: bool,
        num_adapters: int = 0,
    ) -> None:
        self._num_adapters = num_adapters
        self._rng = random.Random(seed)
        self._config = config
        self._prefix = config.image_prefix_length
        self._subject, self._reference = subject, reference
        self._overlaps = overlaps
        self._free_pages = self._rng.sample(range(1, NUM_PAGES), NUM_PAGES - 1)
        self._free_slots = list(range(1, max_batch + 1))
        self._lives: dict[int, Life] = {}
        self._pending: tuple[list[tuple[Life, Span]], StepInFlight] | None = None
        self.num_decodes = 0  # steps of nothing else
        self.pairs: list[tuple[Span, Sample, Sample]] = []  # each readout: the subject's and the reference's

    def run(self, num_steps: int) -> None:
        for _ in range(num_steps):
            spans = self._plan()
            plan = StepPlan([span for _, span in spans])
            step = (spans, self._subject.launch(plan)) if spans else None
            self.num_decodes += all(span.stop - span.start == 1 and span.readout for span in plan.spans)
            if self._overlaps:
                step, self._pending = self._pending, step
            self._settle(step)
        self._settle(self._pending)

    def _settle(self, step: tuple[list[tuple[Life, Span]], StepInFlight] | None) -> None:
        if step is None:
            return
        spans, launched = step
        spelled = []
        for life, span in spans:
            if span.feeds_last_sample:
                fed = life.inputs[span.start - (self._prefix if life.image else 0)]
                span = replace(span, inputs=(fed,))
            spelled.append(span)
        ours = launched.collect()
        theirs = self._reference.launch(StepPlan(spelled)).collect()
        assert ours.keys() == theirs.keys() == {span.slot for span in spelled if span.readout is not None}
        for (life, _), span in zip(spans, spelled, strict=True):
            if span.readout is None:
                continue
            self.pairs.append((span, ours[span.slot], theirs[span.slot]))
            life.inputs.append(ours[span.slot].feed)
            life.num_reading -= 1
            life.sampled = True
            if not ours[span.slot].finite and not life.ended:
                self._end(life)

    def _plan(self) -> list[tuple[Life, Span]]:
        rng, spans = self._rng, list[tuple[Life, Span]]()
        lives = list(self._lives.values())
        rng.shuffle(lives)
        for life in lives:
            chance = rng.random()
            if chance < 0.05:
                self._end(life)
            elif chance < 0.12 and not life.num_reading:
                self._free_pages += life.pages  # preempted: all of it comes again, on other pages
                life.pages, life.computed, life.sampled = [], 0, False
            elif chance < 0.9:
                spans += [(life, span) for span in self._continue(life)]
        while self._free_slots and rng.random() < 0.4:
            slot = self._free_slots.pop(rng.randrange(len(self._free_slots)))
            key = rng.choice(["1", "2", BAD, None, None])
            image = None if key is None else PreparedImage(key, np.zeros(0, np.uint8), (1, 1))
            life = self._lives[slot] = Life(slot, image, self._words(rng.randint(1, 6)))
            if self._num_adapters:
                life.adapter = rng.randint(0, self._num_adapters)
            spans += [(life, span) for span in self._continue(life)]
        if rng.random() < 0.7:
            rng.shuffle(spans)  # the order is the planner's affair
        return spans

    def _continue(self, life: Life) -> list[Span]:
        """The next positions of a sequence, if it has any that can be computed."""
        rng, offset = self._rng, self._prefix if life.image else 0
        known, spans = offset + len(life.inputs), list[Span]()
        if life.num_reading or (life.sampled and life.computed == known - 1 and rng.random() < 0.5):
            at = life.computed
            if rng.random() < 0.2 or at > 40 or not self._grow(life, at + 1):
                return []
            life.computed = at + 1
            life.num_reading += 1
            sampling, draw = self._how()
            running = Running(life.slot, life.pages, sampling, life.adapter)
            return [Span(running, at, at + 1, None, None, self._readout(), draw)]
        if rng.random() < 0.1:
            life.inputs += self._words(rng.randint(1, 3))  # a second prompt
            life.sampled = False
            known = offset + len(life.inputs)
        if known > 40 or not self._grow(life, known + 1):
            return []
        if life.computed < offset:
            running = Running(life.slot, life.pages, adapter=life.adapter)
            spans.append(Span(running, 0, offset, None, life.image))
            life.computed = offset
        start = life.computed
        stop = known if rng.random() < 0.7 else rng.randint(start, known)
        if stop > start:
            fed = tuple(life.inputs[start - offset : stop - offset])
            readout = self._readout() if stop == known else None
            life.num_reading += stop == known
            sampling, draw = self._how()
            running = Running(life.slot, life.pages, sampling, life.adapter)
            spans.append(Span(running, start, stop, fed, None, readout, draw))
            life.computed = stop
        return spans

    def _grow(self, life: Life, length: int) -> bool:
        missing = -(-length // self._subject.page_size) - len(life.pages)
        if missing > len(self._free_pages):
            return False
        life.pages += [self._free_pages.pop() for _ in range(missing)]  # in place, as the scheduler does
        return True

    def _end(self, life: Life) -> None:
        """Its pages and its slot are another's from the next step on, also while it is in one."""
        del self._lives[life.slot]
        self._free_slots.append(life.slot)
        self._free_pages += life.pages
        life.pages, life.ended = [], True

    def _words(self, count: int) -> list[Input]:
        rng, size = self._rng, self._config.text.vocab_size
        kinds = [
            lambda: rng.randrange(size),
            lambda: rng.randrange(size),
            lambda: Coord(rng.random()),
            lambda: Size(rng.random(), rng.random()),
        ]
        return [rng.choice(kinds)() for _ in range(count)]

    def _readout(self) -> Readout:
        rng, tokens = self._rng, range(self._config.text.vocab_size)
        kind = rng.choice(list(Kind))
        some = tuple(rng.sample(tokens, rng.choice((1, 2, 3, 4, 9))))
        coord_id = self._config.tokenizer.coord_id
        return rng.choice(
            (
                Readout(kind),
                Readout(Kind.TOKEN),
                Readout(kind, suppressed=some),
                Readout(kind, choices=some),
                Readout(Kind.GROUNDED, choices=(coord_id, some[0])),
            )
        )

    def _how(self) -> tuple[Sampling, int]:
        rng = self._rng
        sampling = Sampling(
            temperature=rng.choice((0.0, 0.5, 2.0)),
            top_p=rng.choice((0.3, 0.9, 1.0)),
            top_k=rng.choice((0, 0, 3)),
            seed=rng.getrandbits(40),
            logprobs=rng.choice((0, 0, 0, 4)),
        )
        return rng.choice((GREEDY, GREEDY, sampling)), rng.randrange(1000)


def assert_same(span: Span, ours: Sample, theirs: Sample) -> None:
    assert ours.finite == theirs.finite
    if not ours.finite:
        return
    assert (ours.token, ours.coord, ours.size) == (theirs.token, theirs.coord, theirs.size), span
    assert [token for token, _ in ours.top] == [token for token, _ in theirs.top]
    assert (ours.logprob is None) == (theirs.logprob is None)
    if ours.logprob is not None:
        values = [ours.logprob, *(value for _, value in ours.top)]
        assert values == pytest.approx([theirs.logprob, *(value for _, value in theirs.top)], abs=2e-4)
