"""A folder of questions: questions.jsonl with a rule beside each, and what its rules refer to.

`truth.json` says of every picture what it is drawn with, which things are on it and where, and the values of
a chart. `names.json` has other names that people give to the things. So a rule says "cow", and means its
boxes, or the word cow, or cattle.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from kestrel_core.protocol.errors import InvalidRequest
from kestrel_core.protocol.messages import Request, Settings
from kestrel_tools.scenes.score import Outcome
from kestrel_tools.scenes.world import Box

from .rules import Rule, first, plain

ARGUMENTS = {"query": "question", "caption": "length", "detect": "object", "point": "object"}
TEXT = Settings(temperature=0.0, max_tokens=200)  # an answer that is longer is no answer to such a question
PLACES = Settings(max_objects=50)
NO_PICTURE = "no picture"


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
            raise InvalidRequest(f"questions.jsonl, line {number}: {type(error).__name__}: {error}") from None
    if not questions:
        raise InvalidRequest("questions.jsonl has no lines; each is a JSON object with a question and a rule")
    return questions


def _question(
    number: int, line: Mapping[str, Any], folder: Path, truth: Mapping[str, Any], names: Mapping[str, Any]
) -> Question:
    skill, argument = line["skill"], ARGUMENTS[line["skill"]]
    asked, image = line[argument], line.get("image")
    seen: Mapping[str, Any] = {"drawn": NO_PICTURE, "things": []}
    if image is not None:
        seen = truth[Path(image).name]
    data = (folder / image).read_bytes() if image is not None else None
    accept = line["accept"] if isinstance(line["accept"], list) else [line["accept"]]
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
    if unknown := set(given) - {field.name for field in fields(Rule)}:
        raise ValueError(f"a rule has no {', '.join(sorted(unknown))}")
    if not given:
        raise ValueError("a rule is empty")

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
