"""A folder of questions: questions.jsonl with a rule beside each, and what its rules refer to.

`truth.json` says of every picture what it is drawn with, which things are on it and where, and the values of
a chart. `names.json` has other names that people give to the things. So a rule says "cow", and means its
boxes, or the word cow, or cattle.
"""

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kestrel_core.protocol.errors import InvalidRequest
from kestrel_core.protocol.messages import Request, Settings
from kestrel_core.protocol.names import shown
from kestrel_tools.scenes.score import Outcome
from kestrel_tools.scenes.world import Box

from .rules import Rule, first, plain

ARGUMENTS = {"query": "question", "caption": "length", "detect": "object", "point": "object"}
TEXT = Settings(temperature=0.0, max_tokens=200)  # an answer that is longer is no answer to such a question
PLACES = Settings(max_objects=50)
NO_PICTURE = "no picture"


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= sys.float_info.max  # which leaves out NaN too


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _are_terms(value: object) -> bool:
    return _is_text(value) or _are_texts(value)


def _are_groups(value: object) -> bool:
    return isinstance(value, list) and all(map(_are_terms, value))


NUMBER = (_is_number, "a number")
FLAG = (_is_flag, "true or false")
NAMES = (_are_texts, "a list of texts")
TERMS = (_are_terms, "a text or a list of texts")
# What each part of a rule may be, and how that is said.
PARTS: dict[str, tuple[Callable[[object], bool], str]] = {
    **dict.fromkeys(("number", "within"), NUMBER),
    **dict.fromkeys(("yes", "others", "unknown"), FLAG),
    **dict.fromkeys(("boxes", "points"), NAMES),
    **dict.fromkeys(("any", "after"), TERMS),
    "all": (_are_groups, "a list of texts, or of lists of them"),
    "least": (_is_whole, "a whole number"),
}


@dataclass(frozen=True, slots=True)
class Question:
    number: int  # its line
    kind: str
    drawn: str  # what its picture is made of
    request: Request
    rules: tuple[Rule, ...]  # one of them has to hold
    wanted: str  # the rules, as they are written
    forbidden: tuple[str, ...]  # names of things that a right answer does not say

    def is_right(self, outcome: Outcome) -> bool:
        return any(rule.accepts(self.request.skill, outcome, self.forbidden) for rule in self.rules)


def read_questions(folder: Path) -> list[Question]:
    truth, names = _json(folder / "truth.json"), _json(folder / "names.json")
    questions = []
    for number, line in enumerate(_text(folder / "questions.jsonl").splitlines(), 1):
        try:
            questions.append(_question(number, json.loads(line), folder, truth, names))
        except (ValueError, KeyError, TypeError, OSError) as error:
            # The plain ones are sentences of this file.
            said = error if type(error) is ValueError else f"{type(error).__name__}: {error}"
            raise InvalidRequest(f"questions.jsonl, line {number}: {said}") from None
    if not questions:
        raise InvalidRequest("questions.jsonl has no lines; each is a JSON object with a question and a rule")
    return questions


def _question(
    number: int, line: Mapping[str, Any], folder: Path, truth: Mapping[str, Any], names: Mapping[str, Any]
) -> Question:
    skill, argument = line["skill"], ARGUMENTS[line["skill"]]
    asked, image = line[argument], line.get("image")
    for name in (argument, "kind"):
        _check(name, line[name], _is_text, "a text")
    seen: Mapping[str, Any] = {"drawn": NO_PICTURE, "things": []}
    if image is not None:
        seen = truth[Path(image).name]
    data = (folder / image).read_bytes() if image is not None else None
    accept = line["accept"] if isinstance(line["accept"], list) else [line["accept"]]
    if not accept:
        raise ValueError("accept is empty; it is a rule, or a list of which one has to hold")
    printed = [thing["name"].strip('"') for thing in seen["things"] if thing["name"].startswith('"')]
    known = [*names, *printed, *seen.get("values", ())]
    shown = asked if skill == "query" else f"{skill} {asked}"
    settings = TEXT if skill in ("query", "caption") else PLACES
    return Question(
        number,
        line["kind"],
        seen["drawn"],
        Request(skill, {argument: asked}, data, settings, request_id=f"{image or NO_PICTURE}: {shown}"),
        tuple(_rule(rule, seen["things"], names) for rule in accept),
        json.dumps(line["accept"]),
        tuple(name for name in known if first(plain(asked), [name, *names.get(name, ())]) is None),
    )


def _rule(given: Mapping[str, Any], things: Sequence[Mapping[str, Any]], names: Mapping[str, Any]) -> Rule:
    _check("a rule", given, lambda value: isinstance(value, dict), "an object")
    if unknown := set(given) - PARTS.keys():
        raise ValueError(f"a rule has no {', '.join(sorted(unknown))}")
    if not given:
        raise ValueError("a rule is empty")
    for name, value in given.items():
        _check(name, value, *PARTS[name])

    def terms(said: str | Iterable[str]) -> tuple[str, ...]:
        said = [said] if isinstance(said, str) else said
        return tuple(other for term in said for other in (term, *names.get(term, ())))

    parsed: dict[str, Any] = dict(given)
    for key in {"any", "after"} & set(given):
        parsed[key] = terms(given[key])
    if "all" in given:
        parsed["all"] = tuple(map(terms, given["all"]))
    for key in {"boxes", "points"} & set(given):
        parsed[key] = tuple(box for name in given[key] for box in _boxes_of(name, things))
    return Rule(**parsed)


def _check(name: str, value: object, fits: Callable[[object], bool], kind: str) -> None:
    """Now, since a rule is applied only when all questions have been asked."""
    if not fits(value):
        raise ValueError(f"{name} is {shown(json.dumps(value))}, and must be {kind}")


def _boxes_of(name: str, things: Sequence[Mapping[str, Any]]) -> list[Box]:
    found = [thing["box"] for thing in things if thing["name"] == name]
    if not found:
        raise ValueError(f'no "{name}" is on the picture')
    return [(box[0], box[1], box[2], box[3]) for box in found]


def _json(path: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(_text(path))
    except ValueError as error:
        raise InvalidRequest(f"{path.name} is no JSON: {error}") from None
    return found


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except OSError as error:
        raise InvalidRequest(f"{path} cannot be read ({error.strerror})") from None
    except UnicodeDecodeError as error:
        number = error.object.count(b"\n", 0, error.start) + 1
        raise InvalidRequest(f"{path.name}, line {number} is not UTF-8: save it as UTF-8") from None
