"""The true answers of the small world as the server would feed and read them. No torch.

A `Task` is a prompt, as `kestrel_core.skills` builds it, and the answer as `Event`s: what is read off one
hidden state, which is also what is fed next.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

import numpy as np

from kestrel_core.commands.scenes.facts import Fact, caption_text, talk
from kestrel_core.commands.scenes.phrases import sentence_of
from kestrel_core.commands.scenes.world import Scene, Thing, outline_on_picture
from kestrel_core.moondream.config import TokenizerConfig
from kestrel_core.step import Coord, Input, Size

from .words import Words


class Event(NamedTuple):
    """A token to choose, a coordinate or a size to read, or a token with a coordinate ("another one")."""

    token: int | None = None
    coord: float | None = None
    size: Size | None = None

    @property
    def feed(self) -> Input:
        if self.size is not None:
            return self.size
        if self.coord is not None:
            return Coord(self.coord)
        assert self.token is not None
        return self.token


@dataclass(frozen=True, slots=True)
class Task:
    kind: str  # what it is scored as
    prompt: tuple[Input, ...]
    answer: tuple[Event, ...]
    text: str = ""  # the answer in words, where it is in words
    things: tuple[Thing, ...] = ()  # what is to be found, where something is

    @property
    def length(self) -> int:
        """Positions it takes; the last event is read and never fed."""
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
            thought = (*self._thought(fact), Event(self.ids.answer_id))
            events = (*thought, *self._text(answer))
            return Task(kind, (*prompt, self.ids.thinking_id), events, answer)
        return Task(kind, (*prompt, *template.suffix), self._text(answer), answer)

    def _thought(self, fact: Fact) -> tuple[Event, ...]:
        """Looks before it answers: what counts is pointed at, between the grounding tokens."""
        shown = [(words, things) for words, things in fact.evidence if things]
        if fact.kind == "count" and not shown:
            return self._plain(f"I see no {fact.evidence[0][0]}.")
        if not shown:
            return self._plain("I look at the whole picture.")
        events = self._plain("I see " if fact.kind == "count" else "I look at ")
        for index, (words, things) in enumerate(shown):
            if index:
                events += self._plain(" and ")
            points = (Event(self.ids.coord_id, c) for thing in things for c in thing.centre)
            events += (Event(self.ids.start_ground_points_id), *self._plain(words), *points)
            events += (Event(self.ids.end_ground_id),)
        return events + self._plain(f", {fact.answer} in all." if fact.kind == "count" else ".")

    def caption(self, scene: Scene, length: str) -> Task:
        text = caption_text(scene, length)
        return Task(
            f"caption {length}",
            getattr(self.ids.templates.caption, length),
            self._text(text),
            text,
            scene.things,
        )

    def point(self, words: str, things: tuple[Thing, ...]) -> Task:
        events = tuple(event for thing in things for event in self._point(*thing.centre))
        return self._spatial("point", words, events, things)

    def detect(self, words: str, things: tuple[Thing, ...]) -> Task:
        events = tuple(event for thing in things for event in self._box(thing))
        return self._spatial("detect", words, events, things)

    def segment(self, words: str, things: tuple[Thing, ...], unit: tuple[float, float]) -> Task:
        """As `kestrel_core.skills.segment` reads it: a box, then paths relative to the box."""
        events: tuple[Event, ...] = ()
        for thing in things:
            events += self._box(thing)
            low, high = np.array(thing.box[:2]), np.array(thing.box[2:])
            for path in outline_on_picture(thing, unit):
                events += (Event(self.ids.start_ground_points_id),)
                for value in np.clip((path - low) / (high - low), 0, 1).flatten().tolist():
                    events += (Event(self.ids.coord_id, value),)
            events += (Event(self.ids.end_ground_id),)
        return self._spatial("segment", words, events, things)

    def talk(self, question: str, answer: str, with_image: bool) -> Task:
        template = self.ids.templates.query
        start = () if with_image else (self.ids.bos_id,)
        prompt = (*start, *template.prefix, *self.words.encode(question), *template.suffix)
        return Task("talk", prompt, self._text(answer), answer)

    def _spatial(self, skill: str, words: str, events: tuple[Event, ...], things: tuple[Thing, ...]) -> Task:
        template = getattr(self.ids.templates, skill)
        prompt = (*template.prefix, *self.words.encode(" " + words), *template.suffix)
        kind = skill if things else f"{skill} none"
        return Task(kind, prompt, (*events, Event(self.ids.eos_id)), things=things)

    def _point(self, x: float, y: float) -> tuple[Event, ...]:
        return Event(self.ids.coord_id, x), Event(coord=y)

    def _box(self, thing: Thing) -> tuple[Event, ...]:
        x_min, y_min, x_max, y_max = thing.box
        return *self._point(*thing.centre), Event(size=Size(x_max - x_min, y_max - y_min))

    def _plain(self, text: str) -> tuple[Event, ...]:
        return tuple(map(Event, self.words.encode_answer(text)))

    def _text(self, text: str) -> tuple[Event, ...]:
        return (*self._plain(text), Event(self.ids.eos_id))


def small_talk(rng: Random, teacher: Teacher, with_image: bool) -> Task:
    return teacher.talk(*talk(rng, with_image), with_image)


def bin_of_coord(value: float, bins: int) -> int:
    return min(bins - 1, max(0, round(value * bins)))


def bin_of_size(value: float, bins: int) -> int:
    exponent = (math.log2(max(value, 2.0**-10)) + 10) / 10 * (bins - 1)
    return min(bins - 1, max(0, round(exponent)))
