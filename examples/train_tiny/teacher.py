"""The true answers of the small world as the server would feed and read them. No torch.

A `Task` is a prompt, as `kestrel_core.skills` builds it, and the answer as `Sample`s: what is read off one
hidden state, which is also what is fed next.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kestrel_core.loop.step import Input, Sample, Size
from kestrel_core.moondream.config import TokenizerConfig
from kestrel_tools.scenes.facts import caption_text
from kestrel_tools.scenes.phrases import sentence_of
from kestrel_tools.scenes.world import Boxed, Scene, Thing, outline_on_picture

from .words import Words

Paths = Sequence[NDArray[np.float64]]  # closed, [corners, 2], fractions of the picture


class Fact(Protocol):
    """What both worlds know: a question, its answer, and what shows it."""

    @property
    def kind(self) -> str: ...
    @property
    def question(self) -> str: ...
    @property
    def answer(self) -> str: ...
    @property
    def sentence(self) -> str: ...
    @property
    def evidence(self) -> tuple[tuple[str, tuple[Boxed, ...]], ...]: ...


@dataclass(frozen=True, slots=True)
class Task:
    kind: str  # what it is scored as
    prompt: tuple[Input, ...]
    answer: tuple[Sample, ...]
    text: str = ""  # the answer, if it is in words
    things: tuple[Boxed, ...] = ()  # what is to be found
    alone: bool = False  # it sees no picture

    @property
    def length(self) -> int:
        """Positions it takes; the last sample is read and never fed."""
        return len(self.prompt) + len(self.answer) - 1


@dataclass(frozen=True)
class Teacher:
    """Makes tasks in one model's ids and words."""

    ids: TokenizerConfig
    words: Words = field(default_factory=Words)

    def query(self, rng: Random, fact: Fact, reasoning: bool = False, refs: Sequence[Input] = ()) -> Task:
        template = self.ids.templates.query
        question, answer = fact.question, fact.answer
        if fact.sentence and not reasoning and rng.random() < 0.2:
            question, answer = sentence_of(rng, question), fact.sentence
        prompt = (*template.prefix, *refs, *self.words.encode(question))
        kind = f"reason {fact.kind}" if reasoning else fact.kind
        if reasoning:
            thought = (*self._thought(fact), Sample(self.ids.answer_id))
            samples = (*thought, *self._text(answer))
            return Task(kind, (*prompt, self.ids.thinking_id), samples, answer)
        return Task(kind, (*prompt, *template.suffix), self._text(answer), answer)

    def _thought(self, fact: Fact) -> tuple[Sample, ...]:
        """Reasoning that points at what counts, between the grounding tokens."""
        shown = [(words, things) for words, things in fact.evidence if things]
        if fact.kind == "count" and not shown:
            return self._plain(f"I see no {fact.evidence[0][0]}.")
        if not shown:
            return self._plain("I look at the whole picture.")
        samples = self._plain("I see " if fact.kind == "count" else "I look at ")
        for index, (words, things) in enumerate(shown):
            if index:
                samples += self._plain(" and ")
            points = (Sample(self.ids.coord_id, c) for thing in things for c in thing.point)
            samples += (Sample(self.ids.start_ground_points_id), *self._plain(words), *points)
            samples += (Sample(self.ids.end_ground_id),)
        return samples + self._plain(f", {fact.answer} in all." if fact.kind == "count" else ".")

    def caption(self, scene: Scene, length: str) -> Task:
        return self.captioned(length, caption_text(scene, length), scene.things)

    def captioned(self, length: str, text: str, things: tuple[Boxed, ...]) -> Task:
        prompt = getattr(self.ids.templates.caption, length)
        return Task(f"caption {length}", prompt, self._text(text), text, things)

    def point(self, words: str, things: tuple[Boxed, ...]) -> Task:
        samples = tuple(sample for thing in things for sample in self._point(*thing.point))
        return self._spatial("point", words, samples, things)

    def detect(self, words: str, things: tuple[Boxed, ...]) -> Task:
        samples = tuple(sample for thing in things for sample in self._box(thing))
        return self._spatial("detect", words, samples, things)

    def segment(self, words: str, things: tuple[Thing, ...], unit: tuple[float, float]) -> Task:
        return self.outlined(words, [(thing, outline_on_picture(thing, unit)) for thing in things])

    def outlined(self, words: str, things: Sequence[tuple[Boxed, Paths]]) -> Task:
        """As `kestrel_core.skills.segment` reads it: a box, then paths relative to the box."""
        samples: tuple[Sample, ...] = ()
        for thing, paths in things:
            samples += self._box(thing)
            low, high = np.array(thing.box[:2]), np.array(thing.box[2:])
            for path in paths:
                samples += (Sample(self.ids.start_ground_points_id),)
                for value in np.clip((path - low) / (high - low), 0, 1).flatten().tolist():
                    samples += (Sample(self.ids.coord_id, value),)
            samples += (Sample(self.ids.end_ground_id),)
        return self._spatial("segment", words, samples, tuple(thing for thing, _ in things))

    def talk(self, question: str, answer: str, with_image: bool) -> Task:
        template = self.ids.templates.query
        start = () if with_image else (self.ids.bos_id,)
        prompt = (*start, *template.prefix, *self.words.encode(question), *template.suffix)
        return Task("talk", prompt, self._text(answer), answer, alone=not with_image)

    def _spatial(
        self, skill: str, words: str, samples: tuple[Sample, ...], things: tuple[Boxed, ...]
    ) -> Task:
        template = getattr(self.ids.templates, skill)
        prompt = (*template.prefix, *self.words.encode(" " + words), *template.suffix)
        kind = skill if things else f"{skill} none"
        return Task(kind, prompt, (*samples, Sample(self.ids.eos_id)), things=things)

    def _point(self, x: float, y: float) -> tuple[Sample, ...]:
        return Sample(self.ids.coord_id, x), Sample(coord=y)

    def _box(self, thing: Boxed) -> tuple[Sample, ...]:
        x_min, y_min, x_max, y_max = thing.box
        return *self._point(*thing.centre), Sample(size=Size(x_max - x_min, y_max - y_min))

    def _plain(self, text: str) -> tuple[Sample, ...]:
        return tuple(map(_token, self.words.encode_answer(text)))

    def _text(self, text: str) -> tuple[Sample, ...]:
        return (*self._plain(text), Sample(self.ids.eos_id))


@cache
def _token(token: int) -> Sample:
    """One for each token of a training's many millions."""
    return Sample(token)
