"""What is asked, how answers are judged, and which models can be judged at all."""

from dataclasses import replace
from pathlib import Path

import pytest

from examples.train_tiny.samples import SCENES
from kestrel_core.moondream.config import (
    LEGACY_TOKENIZER,
    MOONDREAM05,
    MOONDREAM2,
    MOONDREAM3,
    MOONDREAM_TINY,
    MoondreamConfig,
)
from kestrel_core.protocol.messages import EngineResult, Usage
from kestrel_tools.doctor.consistency import QUESTIONS, compare
from kestrel_tools.doctor.formats import PICTURES
from kestrel_tools.doctor.questions import (
    GREEN_CIRCLES,
    PUBLISHED,
    RED_CIRCLE,
    TINY,
    Question,
    ask_known,
    finds,
    hits,
    known_as,
    mentions,
)
from kestrel_tools.doctor.report import Report, Verdict
from kestrel_tools.scenes.score import box_iou

ROOT = Path(__file__).parents[3]


def test_the_pictures_are_those_of_the_client_and_the_truth_is_as_they_were_drawn() -> None:
    for name in ("circles.png", "shapes.png"):
        assert (PICTURES / name).read_bytes() == (ROOT / "client/samples" / name).read_bytes()
    for name, colour, boxes in (("circles.png", "green", GREEN_CIRCLES), ("shapes.png", "red", RED_CIRCLE)):
        drawn = [t.box for t in SCENES[name].things if (t.colour, t.shape) == (colour, "circle")]
        assert len(drawn) == len(boxes)
        assert all(max(box_iou(one, box) for one in drawn) > 0.98 for box in boxes)


def test_answers_are_judged() -> None:
    assert mentions("5")({"answer": "There are FIVE of them."}) and not mentions("5")({"answer": "four"})
    assert mentions("green", "circle")({"caption": "Green circles."})
    exact = {"objects": [box._asdict() for box in GREEN_CIRCLES]}
    assert finds(GREEN_CIRCLES, 0.9)(exact)
    assert not finds(GREEN_CIRCLES, 0.5)({"objects": exact["objects"][:4]})
    assert not finds(GREEN_CIRCLES, 0.5)({"objects": exact["objects"][:1] * 5})
    middles = [{"x": (b.x_min + b.x_max) / 2, "y": (b.y_min + b.y_max) / 2} for b in GREEN_CIRCLES]
    assert hits(GREEN_CIRCLES)({"points": middles}) and not hits(GREEN_CIRCLES)({"points": middles[:1] * 5})


class Parrot:
    """An engine that gives the same output to everybody."""

    def __init__(self, **output: object) -> None:
        self.output = {"answer": "", "objects": [], "points": [], "caption": "", **output}

    async def submit(self, skill: str, *_: object, **__: object) -> EngineResult:
        name = {"query": "answer", "caption": "caption", "detect": "objects", "point": "points"}[skill]
        return result({name: self.output[name]})


def result(output: dict[str, object], tokens: int = 3) -> EngineResult:
    return EngineResult("", "stop", output, Usage(10, tokens, 0, 0.0, 0.0, 0.0, 0.0))


def test_a_published_model_is_judged_loosely_but_not_when_most_is_wrong() -> None:
    boxes = [box._asdict() for box in GREEN_CIRCLES]
    points = [{"x": (b.x_min + b.x_max) / 2, "y": (b.y_min + b.y_max) / 2} for b in GREEN_CIRCLES]
    able = Parrot(answer="5 white circles", caption="Green circles", objects=boxes, points=points)
    report = Report()
    ask_known(report, able, "moondream2")  # type: ignore[arg-type]
    assert report.is_healthy and report.count(Verdict.WARNING) == 1  # the red circle of the other picture
    assert len(report.rows) == len(PUBLISHED) + 1
    noise = Report()
    ask_known(noise, Parrot(), "moondream2")  # type: ignore[arg-type]
    assert noise.count(Verdict.WARNING) == len(PUBLISHED)
    assert noise.rows[-1].found == f"0 of {len(PUBLISHED)} answers are right" and not noise.is_healthy
    strict = Report()
    ask_known(strict, able, "moondream-tiny")  # type: ignore[arg-type]
    assert not strict.is_healthy


def test_settings_are_greedy_and_bounded() -> None:
    for question in (*TINY, *PUBLISHED, *QUESTIONS):
        assert isinstance(question, Question)
        bound = "max_tokens" if question.skill in ("query", "caption") else "max_objects"
        assert bound in question.settings and question.settings.get("temperature", 0.0) == 0.0


def test_answers_that_differ_in_a_batch_are_a_fault_unless_rounding_may_explain_them() -> None:
    alone = [
        result({"answer": "a"}),
        result({"caption": "b"}),
        result({"objects": []}),
        result({"points": []}),
    ]
    assert compare(alone, alone, is_exact=True).verdict is Verdict.OK
    other = [result({"answer": "x"}), *alone[1:]]
    assert compare(alone, other, is_exact=True).verdict is Verdict.FAULT
    assert compare(alone, other, is_exact=False).verdict is Verdict.WARNING
    longer = [result({"answer": "a"}, tokens=4), *alone[1:]]
    assert compare(alone, longer, is_exact=True).verdict is Verdict.FAULT


@pytest.mark.parametrize(
    ("config", "name"),
    [
        (MOONDREAM2, "moondream2"),
        (MOONDREAM05, "moondream 0.5B"),
        (replace(MOONDREAM2, tokenizer=LEGACY_TOKENIZER), "moondream2"),
        (replace(MOONDREAM3, region=replace(MOONDREAM3.region, norm=False)), "moondream3"),
        (MOONDREAM_TINY, "moondream-tiny"),
        (replace(MOONDREAM2, text=replace(MOONDREAM2.text, n_layers=3)), None),
    ],
)
def test_a_published_model_is_known_by_its_dimensions(config: MoondreamConfig, name: str | None) -> None:
    assert known_as(config) == name
