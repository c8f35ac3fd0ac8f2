"""The data file: JSON lines as Moondream's batch has them, with the wanted answers beside. No torch.

Every line is checked before anything is trained: its fields, its picture, its answer, and its length. All
that are bad are told together, each with its number and one reason.
"""

import hashlib
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from kestrel_core.intake.image_limits import ImageLimits
from kestrel_core.intake.images import ImageFile
from kestrel_core.loop.step import PreparedImage
from kestrel_core.protocol.errors import BadImage, InvalidRequest, KestrelError, PromptTooLong
from kestrel_core.protocol.messages import Request, parse_settings
from kestrel_core.protocol.names import nearest, shown
from kestrel_core.protocol.wire import decode_image_input
from kestrel_core.skills.registry import SkillRegistry
from kestrel_core.skills.spec import Language, SkillSpec

from .lessons import TEXTS, WANTED, Lesson, make_lesson

# As Moondream's batch has them.
MAX_LINES = 100_000
MAX_LINE_BYTES = 10 * 2**20
TOLD = 20  # bad lines
AT_ONCE = 64
LONGEST_PATH = 1024  # letters; a longer text can only be the picture itself, in base64
OF_A_BOX = ("x_min", "y_min", "x_max", "y_max")
OF_A_POINT = ("x", "y")

T = TypeVar("T")
Prepare = Callable[[Any], PreparedImage]
Advance = Callable[[int], None]


class BadLine(NamedTuple):
    number: int
    reason: str


class BadLines(InvalidRequest):
    """All of a file's bad lines, of which the first are told."""

    def __init__(self, name: str, bad: list[BadLine]) -> None:
        self.bad = bad
        told = [f"  line {number}: {reason}" for number, reason in bad[:TOLD]]
        if len(bad) > TOLD:
            told.append(f"  and {len(bad) - TOLD:,} more")
        lines = "1 bad line" if len(bad) == 1 else f"{len(bad):,} bad lines"
        super().__init__("\n".join((f"{name} has {lines}; nothing was begun:", *told)))


class Asked(NamedTuple):
    """A line: what is asked, with the picture's path or bytes, and the answer that is wanted."""

    number: int
    request: Request
    wanted: Any


@dataclass(frozen=True, slots=True)
class Line:
    asked: Asked
    lesson: Lesson

    @property
    def group(self) -> str:
        """Lines of one group are never divided between training and evaluation."""
        return self.lesson.picture or json.dumps(dict(self.asked.request.arguments), sort_keys=True)


class Data(NamedTuple):
    lines: list[Line]
    digest: str  # of all lines and pictures


class Lessons:
    """Makes lessons of lines, for one model. Used by several threads at once."""

    def __init__(self, language: Language, skills: SkillRegistry, prepare: Prepare) -> None:
        self._language = language
        self._skills = skills
        self._prepare = prepare

    def __call__(self, asked: Asked) -> Line:
        request = asked.request
        picture = self._prepare(request.image).key if request.image is not None else None
        lesson = make_lesson(request, self._skills[request.skill], picture, asked.wanted, self._language)
        self._check_length(lesson)
        return Line(asked, lesson)

    def _check_length(self, lesson: Lesson) -> None:
        config = self._language.config
        image = config.image_prefix_length if lesson.picture is not None else 0
        needed, most = image + len(lesson.inputs), config.text.max_context
        if needed > most:
            raise PromptTooLong(
                f"prompt and answer need {needed:,} positions ({image:,} image + {needed - image:,} text) "
                f"and max_context is {most:,}; shorten them"
            )


def read_data(path: Path, skills: SkillRegistry, lessons: Lessons, advance: Advance) -> Data:
    """Raises `BadLines`. `advance` is told how many bytes were checked."""
    if os.path.exists(path) and not os.path.isfile(path):  # a pipe would be empty when the digest is made
        raise InvalidRequest(f"{path} is no regular file; write the lines to one, since they are read twice")
    lines = _read(path, skills, lessons, advance)
    digest = hashlib.sha256(path.read_bytes())
    for key in sorted({line.lesson.picture for line in lines if line.lesson.picture}):
        digest.update(key.encode())
    return Data(lines, digest.hexdigest())


def read_asked(path: Path, skills: SkillRegistry) -> list[Asked]:
    """The lines alone, for no model in particular. Raises `BadLines`."""
    return _read(path, skills, lambda asked: asked, lambda count: None)


def _read(path: Path, skills: SkillRegistry, make: Callable[[Asked], T], advance: Advance) -> list[T]:
    parser = Parser(path.parent, skills)

    def check(numbered: tuple[int, bytes]) -> T | str | None:
        """What a good line makes, why it is a bad one, or None for an empty one."""
        number, raw = numbered
        try:
            return make(parser.asked(number, raw)) if raw.strip() else None
        except KestrelError as error:
            return str(error)

    good, bad = list[T](), list[BadLine]()
    with ThreadPoolExecutor() as threads:
        for number, raw, found in _in_order(threads, check, path):
            if isinstance(found, str):
                bad.append(BadLine(number, found))
            elif found is not None:
                good.append(found)
            advance(len(raw))
    if bad:
        raise BadLines(path.name, bad)
    if not good:
        raise InvalidRequest(f"{path.name} has no lines; each is a JSON object with a skill and an answer")
    return good


def _in_order(
    threads: ThreadPoolExecutor, check: Callable[[tuple[int, bytes]], T], path: Path
) -> Iterator[tuple[int, bytes, T]]:
    """A few lines at a time, since each may hold a picture."""
    raw_lines = _raw_lines(path)
    while chunk := list(islice(raw_lines, AT_ONCE)):
        for (number, raw), found in zip(chunk, threads.map(check, chunk), strict=True):
            yield number, raw, found


def _raw_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    try:
        with path.open("rb") as file:
            for number, raw in enumerate(file, 1):
                if number > MAX_LINES:
                    raise InvalidRequest(f"{path.name} has more than {MAX_LINES:,} lines; split it")
                yield number, raw
    except OSError as error:
        raise InvalidRequest(f"{path.name} cannot be read ({error.strerror})") from None


class Parser:
    """One line's JSON becomes a request that can be asked, and a wanted answer that can be given."""

    def __init__(self, folder: Path, skills: SkillRegistry) -> None:
        self._folder = folder
        self._skills = skills

    def asked(self, number: int, raw: bytes) -> Asked:
        given = _parsed(raw)
        skill = self._skill(given)
        wanted_key = WANTED[skill.name]
        arguments = [argument.name for argument in skill.arguments if argument.name != "reasoning"]
        known = ["skill", "image", *arguments, wanted_key, "id", "settings"]
        for name in given:
            if name not in known:
                raise InvalidRequest(f'{skill.name} has no field "{shown(name)}"{nearest(name, known)}')
        if wanted_key not in given:
            raise InvalidRequest(f"{wanted_key} is missing: the answer that is wanted")
        settings = given.get("settings")
        if settings is not None and not isinstance(settings, Mapping):
            raise InvalidRequest("settings must be an object")
        parse_settings(settings)  # a misspelt one is told; training itself needs none of them
        said = {name: given[name] for name in arguments if given.get(name) is not None}
        request = Request(skill.name, said, self._source(given.get("image")))
        self._skills.check(request)
        return Asked(number, request, _wanted(skill.name, given[wanted_key]))

    def _skill(self, given: Mapping[str, Any]) -> SkillSpec:
        name = given.get("skill")
        if not isinstance(name, str) or name not in WANTED:
            said = "skill is missing" if name is None else f'skill is "{shown(name)}"'
            raise InvalidRequest(f"{said}; it can be {', '.join(WANTED)}")
        return self._skills[name]

    def _source(self, image: Any) -> Path | bytes | None:
        if image is None:
            return None
        if not isinstance(image, str) or not image:
            raise InvalidRequest("image must be a path, a data URL or base64")
        if image.startswith("data:") or len(image) > LONGEST_PATH:
            return decode_image_input(image.encode("utf-8", "replace"))
        path = self._folder / image
        if os.path.isfile(path):  # unlike Path's, it has an answer for what can be no path at all
            return path
        try:
            data = decode_image_input(image.encode("utf-8", "replace"))
            ImageFile(data, ImageLimits())  # short words are base64 too, but of no picture
        except BadImage:
            raise InvalidRequest(
                f'there is no picture "{shown(image)}" beside the data file, and it is not the base64 of one'
            ) from None
        return data


def _parsed(raw: bytes) -> dict[str, Any]:
    if len(raw) > MAX_LINE_BYTES:
        raise InvalidRequest(f"it has {len(raw):,} bytes and the limit is {MAX_LINE_BYTES:,}")
    try:
        given = json.loads(raw)
    except (ValueError, RecursionError) as error:
        at = f" at letter {error.pos + 1}" if isinstance(error, json.JSONDecodeError) else ""
        raise InvalidRequest(f"it is no JSON{at}") from None
    if not isinstance(given, dict):
        raise InvalidRequest("it is no JSON object")
    return given


def _wanted(skill: str, value: Any) -> Any:
    key = WANTED[skill]
    if skill in TEXTS:
        if not isinstance(value, str):
            raise InvalidRequest(f"{key} must be a string")
        if any("\ud800" <= letter <= "\udfff" for letter in value):  # JSON can escape half of a pair
            raise InvalidRequest(f"{key} is not UTF-8 text")
        if not value.strip():
            raise InvalidRequest(f"{key} is empty; say what the model shall answer")
        return value
    if not isinstance(value, list):
        raise InvalidRequest(f"{key} must be a list, empty if there is none")
    return [_place(key, one, OF_A_BOX if skill == "detect" else OF_A_POINT) for one in value]


def _place(key: str, given: Any, names: tuple[str, ...]) -> dict[str, float]:
    if not isinstance(given, dict) or set(given) != set(names):
        raise InvalidRequest(f"each of {key} must be an object with {', '.join(names)}")
    for name in names:
        value = given[name]
        is_whole = isinstance(value, int) and not isinstance(value, bool)  # maybe too large for a float
        if not is_whole and not (isinstance(value, float) and math.isfinite(value)):
            raise InvalidRequest(f"{name} of {key} is no number")
        if not 0 <= value <= 1:
            raise InvalidRequest(f"{name} of {key} is {shown(value, 20)}; it is a fraction, from 0 to 1")
    if names is OF_A_BOX and (given["x_max"] <= given["x_min"] or given["y_max"] <= given["y_min"]):
        raise InvalidRequest(f"a box of {key} has no area: x_max and y_max must exceed x_min and y_min")
    return {name: float(given[name]) for name in names}
