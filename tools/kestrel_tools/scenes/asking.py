"""Which requests a scene gets, and their true answers. No model."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from kestrel_core.loop.step import Coord, Input, Size
from kestrel_core.protocol.messages import Request, Settings

from . import facts
from .facts import Fact
from .phrases import sentence_of
from .world import Boxed, Scene, Thing

TEXTS = {"query": "answer", "caption": "caption"}  # skills that stream, and where their text is

# Greedy. The longest true answers have some 350 tokens; a bad model is stopped soon after.
SETTINGS = Settings(temperature=0.0, max_tokens=400, max_objects=20)


@dataclass(frozen=True, slots=True)
class Asked:
    """A request and what is true: words, or things to be found."""

    kind: str
    skill: str
    arguments: Mapping[str, Any]
    answer: str = ""
    things: tuple[Boxed, ...] = ()
    has_picture: bool = True
    names: tuple[str, ...] = ()  # what a caption has to name
    texts: tuple[str, ...] = ()  # what is printed, and so names nothing
    drawn_by: str = ""  # the set of drawings, where there are several
    about: str = ""  # the sort of the picture, where each is scored apart

    def request(self, picture: bytes, request_id: str = "", stream: bool = False) -> Request:
        image, settings = picture if self.has_picture else None, settings_of(self.skill, SETTINGS)
        return Request(self.skill, self.arguments, image, settings, request_id, stream)

    @property
    def words(self) -> str:
        """What is asked, in short."""
        return str(next(iter(self.arguments.values())))


def settings_of(skill: str, settings: Settings) -> Settings:
    """Answers of objects are limited by their number and not by tokens."""
    return settings if skill in TEXTS else replace(settings, max_tokens=None)


def scene_requests(rng: Random, scene: Scene) -> list[Asked]:
    """About fifteen requests, of every kind."""
    asked = [_query(rng, facts.facts(rng, scene)) for _ in range(4)]
    if scene.print is not None and (read := facts.read_fact(rng, scene)) is not None:
        asked.append(_query(rng, read))
    count = facts.count_fact(rng, scene)
    thought = {"question": count.question, "reasoning": True}
    asked.append(Asked("reasoning", "query", thought, count.answer, count.evidence[0][1]))
    if (spatial := facts.spatial_fact(rng, scene)) is not None:
        asked.append(_pointed(*spatial))
    asked += [_caption(scene, length) for length in ("short", "normal", "long")]
    asked += [objects(skill, *facts.target(rng, scene)) for skill in ("detect", "point") for _ in range(2)]
    asked.append(objects("segment", *_outlined(rng, scene)))
    asked.append(objects(rng.choice(("detect", "point", "segment")), absent(rng, scene), ()))
    return asked


def _outlined(rng: Random, scene: Scene) -> tuple[str, tuple[Thing, ...]]:
    """Names at most two things, because outlines make long answers."""
    for _ in range(20):
        words, things = facts.target(rng, scene)
        if len(things) <= 2:
            return words, things
    return facts.other_thing(rng), ()


def absent(rng: Random, scene: Scene) -> str:
    """The name of something the scene has none of."""
    for _ in range(20):
        what = facts.wanted(rng, scene, present=0.0)
        if not what.among(scene):
            return what.words()
    return facts.other_thing(rng)


def _query(rng: Random, fact: Fact) -> Asked:
    if fact.sentence and rng.random() < 0.2:
        return Asked(fact.kind, "query", {"question": sentence_of(rng, fact.question)}, fact.sentence)
    return Asked(fact.kind, "query", {"question": fact.question}, fact.answer)


def _pointed(fact: Fact, refs: tuple[Input, ...]) -> Asked:
    arguments = {"question": fact.question, "spatial_refs": [spatial_ref(refs)]}
    return Asked(fact.kind, "query", arguments, fact.answer)


def spatial_ref(refs: tuple[Input, ...]) -> list[float]:
    """A point, or the corners of a box, within the picture."""
    match refs:
        case (Coord(x), Coord(y)):
            numbers = [x, y]
        case (Coord(x), Coord(y), Size(width, height)):
            numbers = [x - width / 2, y - height / 2, x + width / 2, y + height / 2]
        case _:
            raise AssertionError(refs)
    return [min(1.0, max(0.0, number)) for number in numbers]


def _caption(scene: Scene, length: str) -> Asked:
    text = facts.caption_text(scene, length)
    names = tuple(thing.name for thing in scene.things)
    return Asked(f"caption {length}", "caption", {"length": length}, text, scene.things, names=names)


def objects(skill: str, words: str, things: tuple[Boxed, ...]) -> Asked:
    return Asked(skill if things else "none there", skill, {"object": words}, things=things)
