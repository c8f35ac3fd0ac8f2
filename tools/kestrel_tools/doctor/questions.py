"""Questions about two bundled pictures whose answers are known, asked greedily.

moondream-tiny has to answer as it was trained to. Published models were not trained on such drawings: they
are judged loosely, and one odd answer is a warning, while mostly wrong ones say that something is broken.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
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
from kestrel_tools.scenes.score import box_iou, box_of

SECTION = "questions"
BROKEN = "Look at the rows above first; if they are all ok, send this report to the project."
WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


Output = Mapping[str, Any]


class Box(NamedTuple):
    x_min: float
    y_min: float
    x_max: float
    y_max: float


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
    expected: str = ""
    is_right: Callable[[Output], bool] = lambda output: True
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


def says(word: str) -> Callable[[Output], bool]:
    return lambda output: str(output["answer"]).strip().lower().rstrip(".") == word


def mentions(*words: str) -> Callable[[Output], bool]:
    """Every word, of which a digit may also be written out."""

    def is_in(word: str, text: str) -> bool:
        return word in text or (word.isdigit() and WORDS[int(word)] in text)

    return lambda output: all(
        is_in(word, str(output.get("answer", output.get("caption"))).lower()) for word in words
    )


def finds(boxes: Sequence[Box], iou: float) -> Callable[[Output], bool]:
    """As many boxes as there are, and for each its own with this overlap."""
    return lambda output: (
        len(output["objects"]) == len(boxes)
        and all(any(box_iou(box, box_of(found)) > iou for found in output["objects"]) for box in boxes)
    )


def hits(boxes: Sequence[Box]) -> Callable[[Output], bool]:
    """As many points as there are boxes, and one in each."""

    def is_in(point: Mapping[str, float], box: Box) -> bool:
        return box.x_min <= point["x"] <= box.x_max and box.y_min <= point["y"] <= box.y_max

    return lambda output: (
        len(output["points"]) == len(boxes)
        and all(any(is_in(point, box) for point in output["points"]) for box in boxes)
    )


CIRCLES, SHAPES = "circles.png", "shapes.png"
HOW_MANY = "How many circles are there?"
STAR = "What color is the star?"


def query(picture: str, question: str, expected: str, reasoning: bool = False) -> Question:
    """To be answered by this word alone."""
    arguments = {"question": question, "reasoning": True} if reasoning else {"question": question}
    return Question(picture, "query", arguments, expected + ", by reasoning" * reasoning, says(expected))


def loose_query(picture: str, question: str, word: str) -> Question:
    return Question(picture, "query", {"question": question}, f"{word} is in it", mentions(word))


def caption(expected: str, *words: str) -> Question:
    return Question(CIRCLES, "caption", {"length": "short"}, expected, mentions(*words))


def detect(picture: str, what: str, boxes: Sequence[Box], iou: float) -> Question:
    number = f"{len(boxes)} box{'es' * (len(boxes) > 1)}, IoU > {iou}" if boxes else "no box"
    return Question(picture, "detect", {"object": what}, number, finds(boxes, iou))


POINTS = Question(CIRCLES, "point", {"object": "green circle"}, "5 points, one a circle", hits(GREEN_CIRCLES))
TINY = (
    query(CIRCLES, HOW_MANY, "5"),
    query(CIRCLES, HOW_MANY, "5", reasoning=True),
    query(CIRCLES, STAR, "white"),
    caption("green circle ... star", "green circle", "star"),
    detect(CIRCLES, "green circle", GREEN_CIRCLES, 0.8),
    POINTS,
    query(SHAPES, "How many shapes are there?", "6"),
    query(SHAPES, STAR, "green"),
    detect(SHAPES, "red circle", RED_CIRCLE, 0.8),
    detect(SHAPES, "black ring", (), 0.8),
)
PUBLISHED = (
    loose_query(CIRCLES, HOW_MANY, "5"),
    loose_query(CIRCLES, STAR, "white"),
    caption("green and circle are in it", "green", "circle"),
    detect(CIRCLES, "green circle", GREEN_CIRCLES, 0.5),
    POINTS,
    loose_query(SHAPES, "What shape is red?", "circle"),
    detect(SHAPES, "red circle", RED_CIRCLE, 0.5),
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


def _shown(output: Output) -> str:
    for name in ("answer", "caption"):
        if name in output:
            return repr(output[name])
    [(name, items)] = output.items()
    numbers = ["(" + ", ".join(f"{number:.2f}" for number in item.values()) + ")" for item in items]
    return f"{len(items)} {name} {' '.join(numbers)}".strip()
