"""Every choice an engine made, in a file: a line of JSON for the run, then one for each request.

A skill around each skill notes what its reply is given. What is fed after a sample is written only where it
is not the sample itself.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple, Self, TextIO

from kestrel_core.intake.image_limits import ImageLimits
from kestrel_core.intake.images import decode_image
from kestrel_core.loop.sequence import Prompt, Reply
from kestrel_core.loop.step import Coord, Input, Kind, PreparedImage, Sample, Size
from kestrel_core.moondream.config import VisionConfig
from kestrel_core.moondream.crops.cutting import cut_crops
from kestrel_core.protocol.errors import InvalidRequest, KestrelError, UnsupportedSkill
from kestrel_core.protocol.messages import Request, Settings, parse_settings
from kestrel_core.skills.registry import SkillRegistry, builtin_skills
from kestrel_core.skills.spec import Language, SkillSpec
from kestrel_tools.noted import Choice, NotedReply

from .answers import Answer, Answers

FORMAT = "kestrel choices 1"
SKILLS = ("query", "caption", "detect", "point", "segment")
TOP = 2  # tokens whose log probabilities are noted with --logprobs


def choice_to_json(choice: Choice) -> dict[str, Any]:
    sample = choice.sample
    document = {
        "kind": choice.kind.value,
        "token": sample.token,
        "coord": sample.coord,
        "size": sample.size,
        "top": sample.top or None,
        "fed": choice.fed,  # a coordinate is a list of one number, a size one of two
    }
    return {name: value for name, value in document.items() if value is not None}


def choice_from_json(document: Mapping[str, Any]) -> Choice:
    size = Size(*map(float, document["size"])) if "size" in document else None
    top = tuple((int(token), float(logprob)) for token, logprob in document.get("top", ()))
    sample = Sample(document.get("token"), document.get("coord"), size, top=top)
    fed = tuple(map(_input, document["fed"])) if "fed" in document else None
    return Choice(Kind(document["kind"]), sample, fed)


def _input(value: Any) -> Input:
    if isinstance(value, list):
        return Coord(*value) if len(value) == 1 else Size(*value)
    return int(value)


class Recorded(NamedTuple):
    """A request and what the engine chose for it."""

    picture: str  # its name
    number: int  # counts the requests about this picture
    skill: str
    arguments: Mapping[str, Any]
    crops: str | None  # a digest of what the encoder saw; None: asked without the picture
    choices: Sequence[Choice]
    error: str | None = None  # why there are no more choices

    def to_json(self) -> dict[str, Any]:
        return {**self._asdict(), "choices": [*map(choice_to_json, self.choices)]}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        return cls(**{**document, "choices": [*map(choice_from_json, document["choices"])]})

    def __str__(self) -> str:
        return f"picture {self.picture}, request {self.number}, {self.skill}"


class NotedSkill(SkillSpec):
    """A skill whose replies are remembered, by request."""

    def __init__(self, skill: SkillSpec, replies: dict[str, NotedReply]) -> None:
        self._skill = skill
        self._replies = replies
        for said in SkillSpec.__annotations__:  # it takes and is all that the other takes and is
            setattr(self, said, getattr(skill, said))
        self.settings = SkillSpec.settings  # the log probabilities of any choice can be noted

    def prompt(self, request: Request, language: Language) -> Prompt:
        return self._skill.prompt(request, language)

    def reply(self, request: Request, language: Language) -> Reply:
        noted = NotedReply(self._skill.reply(request, language))
        self._replies[request.request_id] = noted
        return noted


class Recording:
    """Give `skills` to an engine, then ask that engine by what `through` returns."""

    def __init__(self, file: TextIO, vision: VisionConfig, logprobs: bool) -> None:
        self._replies: dict[str, NotedReply] = {}
        self.skills = SkillRegistry(NotedSkill(skill, self._replies) for skill in builtin_skills())
        self._file = file
        self._vision = vision
        self._logprobs = TOP if logprobs else 0

    def through(self, answers: Answers) -> Answers:
        def ask(requests: Sequence[Request]) -> list[Answer]:
            settings = [replace(request.settings, logprobs=self._logprobs) for request in requests]
            numbered = [
                replace(request, request_id=str(i), settings=asked_with)
                for i, (request, asked_with) in enumerate(zip(requests, settings, strict=True))
            ]
            given = answers(numbered)
            self._write(requests, given)
            return given

        return ask

    def _write(self, requests: Sequence[Request], given: Sequence[Answer]) -> None:
        digests = {
            request.request_id: crops_digest(prepare(request.image, self._vision))
            for request in {r.request_id: r for r in requests if r.image is not None}.values()
        }
        numbers: defaultdict[str, int] = defaultdict(int)
        for i, (request, answer) in enumerate(zip(requests, given, strict=True)):
            picture, outcome = request.request_id, answer.outcome
            noted = self._replies.pop(str(i), None)
            if not isinstance(outcome, UnsupportedSkill):
                line = Recorded(
                    picture,
                    numbers[picture],
                    request.skill,
                    request.arguments,
                    digests[picture] if request.image is not None else None,
                    noted.choices if noted is not None else (),
                    f"{type(outcome).__name__}: {outcome}" if isinstance(outcome, KestrelError) else None,
                )
                write_line(self._file, line.to_json())
            numbers[picture] += 1
        self._file.flush()


def prepare(picture: bytes, vision: VisionConfig) -> PreparedImage:
    crops = cut_crops(decode_image(picture, ImageLimits()), vision)
    return PreparedImage("", crops.pixels, crops.tiling)


def crops_digest(image: PreparedImage) -> str:
    """Of the pixels and not of the file: two machines may draw or decode a file slightly differently."""
    return blake2b(image.crops.tobytes(), digest_size=8).hexdigest()


class Record:
    """The file, read back. Requests are read when they are asked for."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.about: dict[str, Any] = next(self._lines(), {})
        if not isinstance(self.about, dict) or self.about.get("format") != FORMAT:
            raise InvalidRequest(f"{path} holds no choices; make it with kestrel eval scenes --record")

    @cached_property
    def settings(self) -> Settings:
        return parse_settings(self.about["settings"])

    def __iter__(self) -> Iterator[Recorded]:
        lines = self._lines()
        next(lines)
        for number, line in enumerate(lines, 2):
            try:
                yield Recorded.from_json(line)
            except (KeyError, TypeError, ValueError) as error:
                raise InvalidRequest(f"{self._path}, line {number} is no request: {error!r}") from None

    def _lines(self) -> Iterator[dict[str, Any]]:
        try:
            with self._path.open(encoding="utf-8") as file:
                yield from map(json.loads, file)
        except (OSError, ValueError) as error:
            raise InvalidRequest(f"{self._path} cannot be read: {error}") from None


@contextmanager
def recording(
    path: Path, about: Mapping[str, Any], settings: Settings, vision: VisionConfig, logprobs: bool
) -> Iterator[Recording]:
    """The file is written as answers come, so a run that is stopped leaves what it had."""
    with path.open("w", encoding="utf-8") as file:
        write_line(file, {"format": FORMAT, **about, "settings": asdict(settings)})
        yield Recording(file, vision, logprobs)


def write_line(file: TextIO, document: Mapping[str, Any]) -> None:
    file.write(json.dumps(document, separators=(",", ":")) + "\n")
