"""What comes back, typed: one frozen class per skill, each made from the JSON document of the contract.

Coordinates are fractions of the picture, (0, 0) top left. `raw` is the document as it came, with whatever a
newer server may have added, and with what has no type here (`logprobs`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

from kestrel_core.protocol.messages import Usage


@dataclass(frozen=True, slots=True)
class Point:
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Box:
    x_min: float
    y_min: float
    x_max: float
    y_max: float


@dataclass(frozen=True, slots=True)
class Segment:
    svg_path: str
    bbox: Box


@dataclass(frozen=True, slots=True)
class Grounding:
    """The part `[start_idx, end_idx)` of a reasoning's text, and the points it speaks of."""

    start_idx: int
    end_idx: int
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Reasoning:
    text: str
    grounding: tuple[Grounding, ...]


@dataclass(frozen=True)
class Result:
    request_id: str
    finish_reason: str  # stop, length or cancelled
    metrics: Usage
    raw: Mapping[str, Any] = field(repr=False, hash=False)

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Self:
        """Raises KeyError, TypeError, ValueError or AttributeError for what is not the contract's."""
        return cls(
            request_id=str(document["request_id"]),
            finish_reason=str(document["finish_reason"]),
            metrics=Usage(**{f.name: document["metrics"].get(f.name, 0) for f in fields(Usage)}),
            raw=document,
            **cls._own(document),
        )

    @classmethod
    def _own(cls, document: Mapping[str, Any]) -> dict[str, Any]:
        """What this skill's document has beside the fields of all."""
        raise NotImplementedError


@dataclass(frozen=True)
class Answer(Result):
    text: str
    reasoning: Reasoning | None

    @classmethod
    def _own(cls, document: Mapping[str, Any]) -> dict[str, Any]:
        thoughts = document.get("reasoning")
        return {"text": document["answer"], "reasoning": _reasoning(thoughts) if thoughts else None}


@dataclass(frozen=True)
class Caption(Result):
    text: str

    @classmethod
    def _own(cls, document: Mapping[str, Any]) -> dict[str, Any]:
        return {"text": document["caption"]}


@dataclass(frozen=True)
class Detection(Result):
    objects: tuple[Box, ...]

    @classmethod
    def _own(cls, document: Mapping[str, Any]) -> dict[str, Any]:
        return {"objects": tuple(_box(found) for found in document["objects"])}


@dataclass(frozen=True)
class Points(Result):
    points: tuple[Point, ...]

    @classmethod
    def _own(cls, document: Mapping[str, Any]) -> dict[str, Any]:
        return {"points": tuple(Point(found["x"], found["y"]) for found in document["points"])}


@dataclass(frozen=True)
class Segments(Result):
    segments: tuple[Segment, ...]

    @classmethod
    def _own(cls, document: Mapping[str, Any]) -> dict[str, Any]:
        found = document["segments"]
        return {"segments": tuple(Segment(part["svg_path"], _box(part["bbox"])) for part in found)}


def _box(found: Mapping[str, Any]) -> Box:
    return Box(**{side.name: found[side.name] for side in fields(Box)})


def _reasoning(thoughts: Mapping[str, Any]) -> Reasoning:
    return Reasoning(
        thoughts["text"],
        tuple(
            Grounding(part["start_idx"], part["end_idx"], tuple(Point(x, y) for x, y in part["points"]))
            for part in thoughts["grounding"]
        ),
    )
