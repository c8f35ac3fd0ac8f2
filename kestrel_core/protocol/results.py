"""What comes back, typed: a class for each kind of answer, over the document of the contract.

Coordinates are fractions of the picture, (0, 0) top left. `output` is the answer as it came, with whatever
has no type here (`logprobs`, what a skill of your own gives). The class follows from the keys of `output`, so
the result of a skill of your own can have one too.
"""

from dataclasses import dataclass, fields
from typing import Any

from kestrel_core.protocol.messages import EngineResult


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
    """`svg_path` is relative to `bbox`: 0 to 1 across it."""

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


class Answer(EngineResult):
    @property
    def reasoning(self) -> Reasoning | None:
        thoughts = self.output.get("reasoning")
        if thoughts is None:
            return None
        parts = (
            Grounding(part["start_idx"], part["end_idx"], tuple(Point(x, y) for x, y in part["points"]))
            for part in thoughts["grounding"]
        )
        return Reasoning(thoughts["text"], tuple(parts))


class Caption(EngineResult):
    pass


class Detection(EngineResult):
    @property
    def objects(self) -> tuple[Box, ...]:
        return tuple(_box(found) for found in self.output["objects"])


class Points(EngineResult):
    @property
    def points(self) -> tuple[Point, ...]:
        return tuple(Point(found["x"], found["y"]) for found in self.output["points"])


class Segments(EngineResult):
    @property
    def segments(self) -> tuple[Segment, ...]:
        return tuple(Segment(part["svg_path"], _box(part["bbox"])) for part in self.output["segments"])


BY_KEY: dict[str, type[EngineResult]] = {
    "answer": Answer,
    "caption": Caption,
    "objects": Detection,
    "points": Points,
    "segments": Segments,
}


def typed(result: EngineResult) -> EngineResult:
    """The same, as the class that its output asks for."""
    kind = next((kind for key, kind in BY_KEY.items() if key in result.output), EngineResult)
    return kind(**{field.name: getattr(result, field.name) for field in fields(EngineResult)})


def check(result: EngineResult) -> None:
    """Raises KeyError, TypeError or ValueError if the output does not follow the contract."""
    for name in ("reasoning", "objects", "points", "segments"):
        getattr(result, name, None)


def _box(found: Any) -> Box:
    return Box(**{side.name: found[side.name] for side in fields(Box)})
