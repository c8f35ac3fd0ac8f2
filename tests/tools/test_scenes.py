"""`kestrel eval scenes`: what it draws is what it asks about, and its scores are what the answers deserve."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import pyvips
import torch
from rich.console import Console
from tiny import tiny_config, tiny_model
from tiny_folder import save_tiny

from kestrel_core.build import LoadedModel
from kestrel_core.config import RuntimeConfig
from kestrel_core.intake.images import ImageLimits, decode_image
from kestrel_core.intake.models import MODELS
from kestrel_core.intake.tokenizer import Tokenizer
from kestrel_core.loop.step import PreparedImage
from kestrel_core.moondream.config import MOONDREAM_TINY
from kestrel_core.protocol.errors import EngineFailed, InvalidRequest, KestrelError
from kestrel_core.protocol.messages import Request, Settings
from kestrel_core.skills.registry import builtin_skills
from kestrel_core.skills.spec import Language
from kestrel_tools.commands import main
from kestrel_tools.scenes import asking, command, compare
from kestrel_tools.scenes.answers import Answer, ServerAnswers, check_pieces
from kestrel_tools.scenes.asking import Asked, scene_requests
from kestrel_tools.scenes.compare import Way
from kestrel_tools.scenes.pictures import (
    Folder,
    NewPictures,
    Picture,
    draw_size,
    encode,
    new_picture,
)
from kestrel_tools.scenes.score import (
    TARGETS,
    Outcome,
    Scores,
    box_iou,
    grade,
    inside,
    match_boxes,
    named,
    outline_iou,
    path_of,
)
from kestrel_tools.scenes.sheet import Card, Shown, write_picture, write_sheet
from kestrel_tools.scenes.world import Thing

pytestmark = pytest.mark.usefixtures("one_thread")

QUIET = Console(quiet=True)
SQUARE = np.array([[0.2, 0.2], [0.6, 0.2], [0.6, 0.6], [0.2, 0.6]])


@pytest.fixture(scope="module")
def pictures() -> list[Picture]:
    return [new_picture(1, index) for index in range(6)]


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Random weights do not know when to stop."""
    monkeypatch.setattr(asking, "SETTINGS", Settings(temperature=0.0, max_tokens=6, max_objects=2))


def asked_about(picture: Picture) -> list[Asked]:
    return scene_requests(Random(picture.name), picture.scene)


def box(thing: Thing) -> dict[str, float]:
    return dict(zip(("x_min", "y_min", "x_max", "y_max"), thing.box, strict=True))


def segment(thing: Thing, picture: Picture) -> dict[str, Any]:
    low, high = np.array(thing.box[:2]), np.array(thing.box[2:])
    paths = [
        " L ".join(f"{x:.4g} {y:.4g}" for x, y in (path - low) / (high - low))
        for path in picture.outlines[thing]
    ]
    return {"svg_path": " ".join(f"M {path} Z" for path in paths), "bbox": box(thing)}


def truth(asked: Asked, picture: Picture) -> dict[str, Any]:
    """What a model that knows everything would answer."""
    things = asked.things
    match asked.skill:
        case "caption":
            return {"caption": asked.answer}
        case "detect":
            return {"objects": [box(thing) for thing in things]}
        case "point":
            return {"points": [{"x": x, "y": y} for x, y in (thing.centre for thing in things)]}
        case "segment":
            return {"segments": [segment(thing, picture) for thing in things]}
    grounding = [{"start_idx": 0, "end_idx": 5, "points": [list(thing.centre) for thing in things]}]
    thoughts = {"text": "I see", "grounding": grounding if things else []}
    return {"answer": asked.answer} | ({"reasoning": thoughts} if asked.kind == "reasoning" else {})


def scores_of(outcomes: Sequence[tuple[Asked, Outcome, Picture]]) -> dict[str, float]:
    scores = Scores()
    for asked, outcome, picture in outcomes:
        scores.add(asked, grade(asked, outcome, picture), picture)
    return {row.name: row.value for row in scores.rows()}


# Pictures.


def test_a_seed_and_an_index_name_one_picture(pictures: list[Picture]) -> None:
    assert new_picture(1, 2).data == pictures[2].data == NewPictures(1, 6)[2].data
    assert len({picture.data for picture in (*pictures, new_picture(2, 2))}) == 7


def test_pictures_are_of_all_sizes_and_both_formats() -> None:
    rng = Random(0)
    sizes = [draw_size(rng) for _ in range(300)]
    assert all(120 <= side <= 1200 for size in sizes for side in size)
    assert min(map(min, sizes)) == 120 and max(map(max, sizes)) > 1000
    ratios = [width / height for width, height in sizes]
    assert min(ratios) < 0.4 and max(ratios) > 2.5
    pixels = np.zeros((130, 140, 3), np.uint8)
    assert encode(pixels, None).startswith(b"\x89PNG") and encode(pixels, 60).startswith(b"\xff\xd8")


def test_a_thing_is_drawn_where_its_outline_is_in_its_colour(pictures: list[Picture]) -> None:
    seen = 0
    for picture in pictures:
        rgb = decode_image(picture.data, ImageLimits())
        assert rgb.shape == (picture.height, picture.width, 3)
        y, x = np.mgrid[0 : picture.height, 0 : picture.width] + 0.5
        places = np.stack((x.ravel() / picture.width, y.ravel() / picture.height), 1)
        for thing in picture.scene.things:
            if thing.edge:  # whose rim has another colour
                continue
            covered = inside(picture.outlines[thing], places).reshape(picture.height, picture.width)
            middle = np.median(rgb[covered], axis=0)
            assert np.abs(middle - 255 * np.array(thing.rgb)).max() < 16, thing.name
            seen += 1
    assert seen > 10


def test_somebody_elses_pictures_are_read_with_their_truth(pictures: list[Picture], tmp_path: Path) -> None:
    picture = next(p for p in pictures if p.scene.print and len(p.scene.things) > 1)
    printed, things = picture.scene.print, picture.scene.things
    assert printed is not None
    (tmp_path / "one.png").write_bytes(picture.data)
    shapes = [
        {
            "shape": thing.shape,
            "colour": thing.colour,
            "size": thing.size,
            "box": thing.box,
            "outline": [path.tolist() for path in picture.outlines[thing]],
        }
        for thing in reversed(things)
    ]
    entry = {"file": "one.png", "shapes": shapes, "print": {"text": printed.text, "box": [0, 0, 1, 0.5]}}
    (tmp_path / "truth.json").write_text(json.dumps([entry]))
    [read] = [Folder(tmp_path)[index] for index in range(len(Folder(tmp_path)))]
    assert [thing.name for thing in read.scene.things] == [thing.name for thing in things]
    assert (read.width, read.height) == (picture.width, picture.height)
    assert read.scene.print is not None and read.scene.print.text == printed.text
    every = [(asked, truth(asked, read), read) for asked in asked_about(read)]
    assert min(scores_of(every).values()) > 0.99


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("nonsense", "cannot be read"),
        ("{}", "must be a list"),
        ('[{"file": "gone.png"}]', "picture 0: FileNotFoundError"),
    ],
)
def test_a_truth_that_cannot_be_is_refused(text: str, complaint: str, tmp_path: Path) -> None:
    (tmp_path / "truth.json").write_text(text)
    with pytest.raises(InvalidRequest, match=complaint):
        Folder(tmp_path)[0]


def test_a_shape_nobody_knows_is_refused(pictures: list[Picture], tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(pictures[0].data)
    shape = {"shape": "spiral", "colour": "red", "size": "big", "box": [0, 0, 1, 1], "outline": []}
    (tmp_path / "truth.json").write_text(json.dumps([{"file": "a.png", "shapes": [shape], "print": None}]))
    with pytest.raises(InvalidRequest, match="shape 'spiral' is none of circle, square"):
        Folder(tmp_path)[0]


# Requests.


def test_every_request_is_one_the_server_takes(pictures: list[Picture]) -> None:
    words = Tokenizer.from_file(MODELS["moondream-tiny"].folder / "tokenizer.json", MOONDREAM_TINY)
    language, skills = Language(MOONDREAM_TINY, words), builtin_skills()
    kinds = set()
    for picture in pictures:
        for asked in asked_about(picture):
            kinds.add(asked.kind)
            request = replace(asked.request(b""), image=PreparedImage("", None, (1, 1)))
            assert skills[asked.skill].prompt(request, language).inputs
    assert {"reasoning", "spatial", "read", "caption long", "detect", "point", "segment"} <= kinds


def test_every_scene_is_asked_for_something_it_does_not_have(pictures: list[Picture]) -> None:
    for picture in pictures:
        names = [asked.words for asked in asked_about(picture) if asked.kind == "none there"]
        assert names
        assert not any(thing.name == name for thing in picture.scene.things for name in names)


# Scores.


def test_true_answers_score_one(pictures: list[Picture]) -> None:
    found = scores_of([(a, truth(a, p), p) for p in pictures for a in asked_about(p)])
    assert set(TARGETS) <= set(found)
    assert {name: value for name, value in found.items() if value < 1 and name != "segment IoU"} == {}
    assert found["segment IoU"] > 0.99


@pytest.mark.parametrize("how", ["silent", "failed", "elsewhere"])
def test_wrong_answers_score_nothing(how: str, pictures: list[Picture]) -> None:
    far = {"x_min": 0.98, "y_min": 0.98, "x_max": 0.99, "y_max": 0.99}
    wrong: dict[str, Outcome] = {
        "silent": {"answer": "", "caption": "", "objects": [], "points": [], "segments": []},
        "failed": EngineFailed("it rains"),
        "elsewhere": {
            "answer": "a dog",
            "caption": "a blue dog",
            "objects": [far],
            "points": [{"x": 0.995, "y": 0.995}],
            "segments": [{"svg_path": "M 0 0 L 1 0 L 1 1 Z", "bbox": far}],
            "reasoning": {"text": "", "grounding": [{"points": [[0.995, 0.995]]}]},
        },
    }
    key = {"query": "answer", "caption": "caption", "detect": "objects", "point": "points"}

    def told(asked: Asked) -> Outcome:
        outcome = wrong[how]
        if isinstance(outcome, KestrelError):
            return outcome
        kept = (key.get(asked.skill, "segments"), "reasoning")
        return {name: value for name, value in outcome.items() if name in kept}

    empty = [p for p in pictures if p.scene.things]  # an empty picture's caption names nothing, as "" does
    found = scores_of([(a, told(a), p) for p in empty for a in asked_about(p) if a.kind != "none there"])
    assert set(found.values()) == {0.0}
    none = scores_of([(a, told(a), p) for p in pictures for a in asked_about(p) if a.kind == "none there"])
    assert none == {"none there": 1.0 if how == "silent" else 0.0}


def test_half_of_what_is_there_scores_two_thirds(pictures: list[Picture]) -> None:
    picture = next(p for p in pictures if len(p.scene.things) >= 2)
    things = picture.scene.things[:2]
    for skill in ("detect", "point", "segment"):
        asked = Asked(skill, skill, {"object": "shape"}, things=things)
        half = truth(replace(asked, things=things[:1]), picture)
        found = scores_of([(asked, half, picture)])
        assert found[f"{skill} F1"] == pytest.approx(2 / 3)
        assert not grade(asked, half, picture).right
    assert scores_of([(asked, half, picture)])["segment IoU"] > 0.99


def test_two_points_in_one_shape_are_one_hit(pictures: list[Picture]) -> None:
    picture = next(p for p in pictures if len(p.scene.things) >= 2)
    first = picture.scene.things[0]
    asked = Asked("point", "point", {"object": "shape"}, things=picture.scene.things[:2])
    twice = {"points": [{"x": first.centre[0], "y": first.centre[1]}] * 2}
    found = scores_of([(asked, twice, picture)])
    assert found == {"point inside": 0.5, "point F1": 0.5}


def test_a_count_that_is_right_may_be_pointed_at_wrongly(pictures: list[Picture]) -> None:
    picture = next(p for p in pictures if p.scene.things)
    asked = Asked("reasoning", "query", {"question": "?"}, "1", picture.scene.things[:1])
    told = {"answer": "1", "reasoning": {"text": "", "grounding": [{"points": [[0.999, 0.999]]}]}}
    found = scores_of([(asked, told, picture)])
    assert found == {"reasoning": 1.0, "grounding inside": 0.0, "grounding F1": 0.0}


def test_a_caption_has_to_name_each_shape_as_often_as_it_is_there() -> None:
    assert named("A red circle, a big red circle and a blue dog.") == {"red circle": 2}
    assert named("From left to right: a small gray heart") == {"gray heart": 1}


def test_boxes_are_paired_best_first() -> None:
    wanted = [(0.0, 0.0, 1.0, 1.0), (0.0, 0.0, 1.0, 0.6)]
    given = [(0.0, 0.0, 1.0, 0.7), (0.0, 0.0, 1.0, 0.9), (0.0, 0.0, 0.2, 0.2)]
    assert [(i, j) for i, j, _ in match_boxes(given, wanted)] == [(1, 0), (0, 1)]
    assert box_iou((0, 0, 1, 1), (0.5, 0, 1.5, 1)) == pytest.approx(1 / 3)


def test_outlines_are_compared_by_area_and_holes_count() -> None:
    box = (0.2, 0.2, 0.6, 0.6)
    half = [np.array([[0.2, 0.2], [0.6, 0.2], [0.6, 0.4], [0.2, 0.4]])]
    assert outline_iou([SQUARE], [SQUARE], box) == 1
    assert outline_iou(half, [SQUARE], box) == pytest.approx(0.5, abs=0.02)
    hole = SQUARE / 2 + 0.2
    assert outline_iou([SQUARE, hole], [SQUARE], box) == pytest.approx(0.75, abs=0.02)
    assert list(inside([SQUARE, hole], np.array([[0.25, 0.25], [0.4, 0.4], [0.9, 0.9]]))) == [1, 0, 0]
    told = {"svg_path": "M 0 0 L 1 0 L 1 1 L 0 1 Z M 0.25 0.25 L 0.75 0.25 L 0.75 0.75 Z", "bbox": {}}
    told["bbox"] = {"x_min": 0.2, "y_min": 0.2, "x_max": 0.6, "y_max": 0.6}
    first, second = path_of(told)
    assert np.allclose(first, SQUARE) and np.allclose(second[0], 0.3)


# Who answers.


def tiny_loaded() -> LoadedModel:
    config = tiny_config(3, vocab_size=300)
    language = Language(config, Tokenizer.of_bytes(config))
    return LoadedModel(tiny_model(config), language, torch.device("cpu"))


@pytest.mark.usefixtures("brief")
def test_batched_cached_preempted_and_streamed_answers_are_the_plain_ones(pictures: list[Picture]) -> None:
    requests = [a.request(p.data) for p in pictures[:2] for a in asked_about(p) if a.skill != "segment"]
    with compare.engine_ways(tiny_loaded(), RuntimeConfig(device="cpu")) as (plain, ways):
        answers = plain(requests)
        assert not any(isinstance(answer.outcome, EngineFailed) for answer in answers)
        for way in ways:
            way.compare(requests, answers, Random(0))
    assert [(way.name, way.num_different) for way in ways] == [
        ("batched", 0),
        ("cached", 0),
        ("preempted", 0),
        ("streamed", 0),
    ]
    batched, cached, preempted, streamed = ways
    assert cached.num_compared == 2 * batched.num_compared == 2 * preempted.num_compared
    assert streamed.num_compared == sum(r.skill in ("query", "caption") for r in requests)
    assert int(preempted.happened().split()[0]) > 0
    assert not cached.happened().startswith("0%")


def test_a_planted_difference_is_found_and_told() -> None:
    requests = [Request("query", {"question": f"question {i}"}, request_id=str(i)) for i in range(5)]
    plain = [Answer({"answer": str(i)}, 0.0) for i in range(5)]

    def answers(asked: Sequence[Request]) -> list[Answer]:
        told = [{"answer": "planted" if r.request_id == "3" else r.request_id} for r in asked]
        return [Answer(outcome, 0.0) for outcome in told]

    way = Way("batched", answers, str)
    way.compare(requests, plain, Random(0))
    assert (way.num_compared, way.num_different) == (5, 1)
    [found] = way.different
    assert found["asked"] == "3 query: question 3" and "planted" in found["batched"]
    failing = Way("batched", lambda asked: [Answer(EngineFailed("no"), 0.0)] * len(asked), str)
    failing.compare(requests, [Answer(EngineFailed("no"), 0.0)] * 5, Random(0))
    assert failing.num_different == 5


def test_pieces_that_do_not_add_up_are_an_error() -> None:
    assert check_pieces("yes", "query", {"answer": "yes"}) == {"answer": "yes"}
    found = check_pieces("ye", "caption", {"caption": "yes"})
    assert isinstance(found, EngineFailed) and "the pieces are 'ye'" in str(found)


class FakeClient:
    """As `kestrel_client.Client`, with the truth or a refusal."""

    def __init__(self, url: str) -> None:
        self.url = url

    def query(self, image: bytes | None, question: str, *, stream: bool = False, **options: Any) -> Any:
        if question == "bad?":
            raise InvalidRequest("that is bad")
        assert options["temperature"] == 0.0 and options["max_tokens"] == 400
        document = {"request_id": "", "finish_reason": "stop", "metrics": {}, "answer": "yes!"}
        result = type("Result", (), {"raw": document})()
        return FakeStream(result) if stream else result

    def detect(self, image: bytes, object: str, *, max_objects: int, **options: Any) -> Any:
        return type("Result", (), {"raw": {"request_id": "", "objects": []}})()

    def close(self) -> None:
        pass


class FakeStream(list[str]):
    def __init__(self, result: Any) -> None:
        super().__init__(("yes", "!"))
        self.result = lambda: result


def test_a_server_is_asked_through_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tritonclient")
    monkeypatch.setattr("kestrel_client.Client", FakeClient)
    ask = ServerAnswers("localhost:1", 2)
    picture = b"picture"
    query = Asked("talk", "query", {"question": "what?", "reasoning": True})
    found = ask(
        [
            query.request(picture),
            query.request(picture, stream=True),
            Asked("detect", "detect", {"object": "dog"}).request(picture),
            Asked("talk", "query", {"question": "bad?"}).request(picture),
        ]
    )
    ask.close()
    *outcomes, refused = (answer.outcome for answer in found)
    assert outcomes == [{"answer": "yes!"}, {"answer": "yes!"}, {"objects": []}]
    assert isinstance(refused, InvalidRequest)


# The sheet.


def test_a_sheet_shows_every_answer_and_is_well_formed(pictures: list[Picture], tmp_path: Path) -> None:
    picture = next(p for p in pictures if len(p.scene.things) > 1)
    shown = []
    for asked in asked_about(picture):
        outcome = truth(asked, picture)
        shown.append(Shown(asked, outcome, grade(asked, outcome, picture)))
    hostile = Asked("talk", "query", {"question": "<b>&\x00?"}, "yes")
    said = {"answer": "</svg>\x1b[1m"}
    shown.append(Shown(hostile, said, grade(hostile, said, picture)))
    shown.append(Shown(hostile, EngineFailed("<no>"), grade(hostile, EngineFailed("<no>"), picture)))
    write_sheet(tmp_path / "sheet.svg", [Card(picture, shown)] * 5)
    root = ElementTree.parse(tmp_path / "sheet.svg").getroot()
    tags = [element.tag.rpartition("}")[2] for element in root.iter()]
    assert tags.count("image") == 5 and tags.count("circle") > 0 and tags.count("polygon") > 0
    told = " ".join(element.text or "" for element in root.iter())
    assert "</svg>" in told and "<no>" in told
    write_sheet(tmp_path / "sheet.png", [Card(picture, shown)])
    height, width, _ = decode_image((tmp_path / "sheet.png").read_bytes(), ImageLimits()).shape
    assert width > height / 3 > 100
    with pytest.raises(InvalidRequest, match=r"\.svg or \.png"):
        write_sheet(tmp_path / "sheet.pdf", [])


def test_strangers_svg_stays_refused_after_a_sheet_was_drawn(tmp_path: Path) -> None:
    write_picture(tmp_path / "one.png", encode(np.zeros((20, 30, 3), np.uint8), None), 30, 20, [])
    assert decode_image((tmp_path / "one.png").read_bytes(), ImageLimits()).shape == (30, 45, 3)
    with pytest.raises(pyvips.Error, match="blocked"):
        pyvips.Image.svgload_buffer(b'<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>')


# The command.


@pytest.mark.usefixtures("brief")
def test_the_command_scores_an_engine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = save_tiny(tmp_path / "model", generation=3)
    report, sheet = tmp_path / "report.json", tmp_path / "sheet.svg"
    arguments = ["eval", "scenes", "--scenes=3", "--seed=4", f"--model-path={model}", "--device=cpu"]
    assert main([*arguments, f"--json={report}", f"--sheet={sheet}", "--compare"]) == 0
    printed = capsys.readouterr().out
    document = json.loads(report.read_text())
    assert document["num_pictures"] == 3 and document["num_answers"] > 25
    assert {"machine", "versions", "median_latency_ms", "right_by_tiling"} <= set(document)
    scores = {row["name"]: row for row in document["scores"]}
    assert scores["query"]["target"] == 0.97 and scores["query"]["score"] < 0.5
    assert "segment F1" not in scores  # which this model does not have
    assert [way["way"] for way in document["ways"]] == ["batched", "cached", "preempted", "streamed"]
    assert re.search(r"query\b.*0\.97", printed) and "0 of" in printed
    assert sheet.read_text().count("<image") == 3


@pytest.mark.usefixtures("brief")
def test_a_missed_target_matters_only_when_it_is_required(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = save_tiny(tmp_path / "model", generation=3)
    arguments = ["eval", "scenes", "--scenes=1", f"--model-path={model}", "--device=cpu"]
    assert main(arguments) == 0
    assert main([*arguments, "--require"]) == 1
    assert main([*arguments, "--pictures", str(tmp_path)]) == 2
    assert "truth.json" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "complaint"),
    [
        ("--sheet=sheet.pdf", ".svg or .png"),
        ("--json=nowhere/report.json", "no such folder"),
        ("--scenes=0", "at least 1"),
        ("--concurrency=0", "at least 1"),
    ],
)
def test_what_cannot_be_done_is_said_before_the_work(
    option: str, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["eval", "scenes", option]) == 2
    assert complaint in capsys.readouterr().err


def test_a_perfect_model_passes(pictures: list[Picture]) -> None:
    asked = {p.name: scene_requests(Random(f"requests 1 {p.name}"), p.scene) for p in pictures}
    every = [(a, p) for p in pictures for a in asked[p.name]]

    def answers(requests: Sequence[Request]) -> list[Answer]:
        assert len(requests) == len(every)
        return [Answer(truth(a, p), 0.01) for a, p in every]

    found = command.evaluate(answers, [], pictures, 1, QUIET)
    assert found.passed and not any(found.scores.wrong.values())
    assert sum(map(len, found.by_tiling.values())) == found.scores.num_answers == len(every)
    assert len(found.cards) == len(pictures)
