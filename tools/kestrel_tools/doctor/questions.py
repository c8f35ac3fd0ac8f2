"""Questions about two bundled pictures whose answers are known, asked greedily.

moondream-tiny has to answer as it was trained to. Published models were not trained on such drawings: they
are judged loosely, and one odd answer is a warning, while mostly wrong ones say that something is broken.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from kestrel_core.engine import InferenceEngine
from kestrel_core.moondream.config import (
    MOONDREAM05,
    MOONDREAM2,
    MOONDREAM3,
    MOONDREAM_TINY,
    MoondreamConfig,
)
from kestrel_core.protocol.messages import EngineResult
from kestrel_tools.doctor.formats import PICTURES
from kestrel_tools.doctor.report import Finding, Report, Verdict, fault, ok, warning

SECTION = "questions"
BROKEN = "Look at the rows above first; if they are all ok, send this report to the project."
WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


class Box(NamedTuple):
    x_min: float
    y_min: float
    x_max: float
    y_max: float

    def iou(self, other: "Box") -> float:
        width = min(self.x_max, other.x_max) - max(self.x_min, other.x_min)
        height = min(self.y_max, other.y_max) - max(self.y_min, other.y_min)
        shared = max(0.0, width) * max(0.0, height)
        return shared / (self.area + other.area - shared)

    @property
    def area(self) -> float:
        return (self.x_max - self.x_min) * (self.y_max - self.y_min)

    def holds(self, x: float, y: float) -> bool:
        return self.x_min <= x <= self.x_max and self.y_min <= y <= self.y_max


def circle(x: float, y: float, radius: float) -> Box:
    """`radius` is a share of the height. The pictures are 640 x 480, so across it is three quarters."""
    return Box(x - 0.75 * radius, y - radius, x + 0.75 * radius, y + radius)


# As drawn by examples/train_tiny/samples.py.
GREEN_CIRCLES = (
    circle(0.17, 0.27, 0.14),
    circle(0.52, 0.22, 0.07),
    circle(0.80, 0.33, 0.16),
    circle(0.36, 0.68, 0.17),
    circle(0.86, 0.82, 0.08),
)
RED_CIRCLE = (circle(0.20, 0.27, 0.17),)


@dataclass(frozen=True)
class Question:
    picture: str
    skill: str
    arguments: dict[str, Any]
    expected: str
    is_right: Callable[[dict[str, Any]], bool]
    max_tokens: int = 128  # a broken model may never end
    max_objects: int = 20

    @property
    def settings(self) -> dict[str, Any]:
        """The likeliest of everything; boxes and points are that always."""
        if self.skill in ("query", "caption"):
            return {"temperature": 0.0, "max_tokens": self.max_tokens}
        return {"max_objects": self.max_objects}

    @property
    def name(self) -> str:
        said = ", ".join(name if value is True else str(value) for name, value in self.arguments.items())
        return f"{self.skill}: {said} ({self.picture})"


def says(word: str) -> Callable[[dict[str, Any]], bool]:
    return lambda output: str(output["answer"]).strip().lower().rstrip(".") == word


def mentions(*words: str) -> Callable[[dict[str, Any]], bool]:
    """Every word, of which a digit may also be written out."""

    def is_in(word: str, text: str) -> bool:
        return word in text or (word.isdigit() and WORDS[int(word)] in text)

    return lambda output: all(
        is_in(word, str(output.get("answer", output.get("caption"))).lower()) for word in words
    )


def finds(boxes: Sequence[Box], iou: float) -> Callable[[dict[str, Any]], bool]:
    """As many boxes as there are, and for each its own with this overlap."""

    def is_right(output: dict[str, Any]) -> bool:
        found = [Box(**box) for box in output["objects"]]
        return len(found) == len(boxes) and all(any(box.iou(one) > iou for one in found) for box in boxes)

    return is_right


def hits(boxes: Sequence[Box]) -> Callable[[dict[str, Any]], bool]:
    """As many points as there are boxes, and one in each."""

    def is_right(output: dict[str, Any]) -> bool:
        points = output["points"]
        return len(points) == len(boxes) and all(any(box.holds(**p) for p in points) for box in boxes)

    return is_right


HOW_MANY = {"question": "How many green circles are there?"}
TINY = (
    Question("circles.png", "query", HOW_MANY, "5", says("5")),
    Question("circles.png", "query", {**HOW_MANY, "reasoning": True}, "5, by reasoning", says("5")),
    Question("circles.png", "query", {"question": "What color is the star?"}, "white", says("white")),
    Question(
        "circles.png",
        "caption",
        {"length": "short"},
        "green circle ... star",
        mentions("green circle", "star"),
    ),
    Question(
        "circles.png", "detect", {"object": "green circle"}, "5 boxes, IoU > 0.8", finds(GREEN_CIRCLES, 0.8)
    ),
    Question(
        "circles.png", "point", {"object": "green circle"}, "5 points, one a circle", hits(GREEN_CIRCLES)
    ),
    Question("shapes.png", "query", {"question": "How many shapes are there?"}, "6", says("6")),
    Question("shapes.png", "query", {"question": "What color is the star?"}, "green", says("green")),
    Question("shapes.png", "detect", {"object": "red circle"}, "1 box, IoU > 0.8", finds(RED_CIRCLE, 0.8)),
    Question("shapes.png", "detect", {"object": "black ring"}, "no box", finds((), 0.8)),
)
PUBLISHED = (
    Question("circles.png", "query", HOW_MANY, "5 is in it", mentions("5")),
    Question(
        "circles.png", "query", {"question": "What color is the star?"}, "white is in it", mentions("white")
    ),
    Question(
        "circles.png",
        "caption",
        {"length": "short"},
        "green and circle are in it",
        mentions("green", "circle"),
    ),
    Question(
        "circles.png", "detect", {"object": "green circle"}, "5 boxes, IoU > 0.5", finds(GREEN_CIRCLES, 0.5)
    ),
    Question(
        "circles.png", "point", {"object": "green circle"}, "5 points, one a circle", hits(GREEN_CIRCLES)
    ),
    Question(
        "shapes.png", "query", {"question": "What shape is red?"}, "circle is in it", mentions("circle")
    ),
    Question("shapes.png", "detect", {"object": "red circle"}, "1 box, IoU > 0.5", finds(RED_CIRCLE, 0.5)),
)
KNOWN = {
    "moondream2": MOONDREAM2,
    "moondream 0.5B": MOONDREAM05,
    "moondream3": MOONDREAM3,
    "moondream-tiny": MOONDREAM_TINY,
}


def known_as(config: MoondreamConfig) -> str | None:
    """The known model whose network has these dimensions."""
    for name, known in KNOWN.items():
        if (known.generation, _dimensions(known)) == (config.generation, _dimensions(config)):
            return name
    return None


def _dimensions(config: MoondreamConfig) -> tuple[object, ...]:
    text, vision, region = config.text, config.vision, config.region
    return (
        (text.dim, text.ff_dim, text.n_layers, text.vocab_size, text.n_heads, text.n_kv_heads, text.moe),
        (vision.enc_dim, vision.enc_ff_dim, vision.enc_n_layers, vision.enc_n_heads, vision.crop_size),
        (region.dim, region.coord_out_dim, region.size_out_dim, region.inner_dim),
    )


def ask_known(report: Report, engine: InferenceEngine, name: str) -> None:
    """A row for each question, and one for all of a published model's together."""
    is_tiny = name == "moondream-tiny"
    before = report.count(Verdict.OK)
    asked = TINY if is_tiny else PUBLISHED
    for question in asked:
        report.check(SECTION, question.name, partial(ask, engine, question, is_tiny), BROKEN)
    right = report.count(Verdict.OK) - before
    if is_tiny:
        return
    found = f"{right} of {len(asked)} answers are right"
    report.add(SECTION, "all answers", ok(found) if 2 * right >= len(asked) else fault(found, BROKEN))


def ask(engine: InferenceEngine, question: Question, strict: bool) -> Finding:
    result = asyncio.run(submit(engine, question, (PICTURES / question.picture).read_bytes()))
    said = _shown(result.output)
    if question.is_right(result.output):
        return ok(f"{said} (expected: {question.expected})")
    found = f"{said}, expected: {question.expected}"
    return fault(found, BROKEN) if strict else warning(found, BROKEN)


async def submit(engine: InferenceEngine, question: Question, image: Any) -> EngineResult:
    result = await engine.submit(question.skill, image, question.arguments, settings=question.settings)
    assert isinstance(result, EngineResult), "it was not asked to stream"
    return result


def _shown(output: dict[str, Any]) -> str:
    for name in ("answer", "caption"):
        if name in output:
            return repr(output[name])
    [(name, items)] = output.items()
    numbers = ["(" + ", ".join(f"{number:.2f}" for number in item.values()) + ")" for item in items]
    return f"{len(items)} {name} {' '.join(numbers)}".strip()
