"""`kestrel eval scenes`: what it draws is what it asks about, and its scores are what the answers deserve."""

import json
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest
from rich.console import Console
from scene_truth import asked_about, scores_of, truth

from kestrel_core.intake.image_limits import ImageLimits
from kestrel_core.intake.images import decode_image
from kestrel_core.intake.models import MODELS
from kestrel_core.intake.tokenizer import Tokenizer
from kestrel_core.loop.step import PreparedImage
from kestrel_core.moondream.config import MOONDREAM_TINY
from kestrel_core.protocol.errors import EngineFailed, InvalidRequest, KestrelError
from kestrel_core.skills.registry import builtin_skills
from kestrel_core.skills.spec import Language
from kestrel_tools.scenes.asking import Asked
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
    box_iou,
    grade,
    inside,
    match_boxes,
    named,
    outline_iou,
    path_of,
)

pytestmark = pytest.mark.usefixtures("one_thread")

QUIET = Console(quiet=True)
SQUARE = np.array([[0.2, 0.2], [0.6, 0.2], [0.6, 0.6], [0.2, 0.6]])


@pytest.fixture(scope="module")
def pictures() -> list[Picture]:
    return [new_picture(1, index) for index in range(6)]


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
    assert named("A red circle, a big red circle and a blue dog.") == {"red circle": 2, "dog": 1}
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
