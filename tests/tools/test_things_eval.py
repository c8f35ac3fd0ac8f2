"""`kestrel eval scenes --world things`: true answers score full marks, and false ones do not."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, get_type_hints

import numpy as np
import pytest
from rich.console import Console

from kestrel_core.intake.image_limits import ImageLimits
from kestrel_core.intake.images import decode_image
from kestrel_core.protocol.errors import InvalidRequest
from kestrel_core.protocol.messages import Request
from kestrel_tools.scenes import command
from kestrel_tools.scenes.answers import Answer
from kestrel_tools.scenes.asking import Asked
from kestrel_tools.scenes.named import named
from kestrel_tools.scenes.options import EvalOptions
from kestrel_tools.scenes.score import WORLD_TARGETS, Outcome, Scores, grade, near_value, same_description
from kestrel_tools.things.atlas import HELD_OUT, UNSEEN_FONTS, open_atlas
from kestrel_tools.things.pictures import NewPictures, Picture, open_things
from tests.small_atlas import small_atlas

pytestmark = pytest.mark.usefixtures("one_thread")

ATLAS = small_atlas()


@pytest.fixture(scope="module")
def pictures() -> list[Picture]:
    made = NewPictures(3, 14, ATLAS)
    return [made[index] for index in range(len(made))]


def truth(asked: Asked, picture: Picture) -> Outcome:
    """What a model that knows everything would answer."""
    match asked.skill:
        case "caption":
            return {"caption": asked.answer}
        case "query":
            points = [list(thing.point) for thing in asked.things]
            return {"answer": asked.answer, "reasoning": {"grounding": [{"points": points}]}}
        case "point":
            return {"points": [dict(zip("xy", thing.point, strict=True)) for thing in asked.things]}
    boxes = [dict(zip(("x_min", "y_min", "x_max", "y_max"), t.box, strict=True)) for t in asked.things]
    if asked.skill == "detect":
        return {"objects": boxes}
    return {
        "segments": [
            {"bbox": box, "svg_path": svg(picture, t)} for box, t in zip(boxes, asked.things, strict=True)
        ]
    }


def svg(picture: Picture, thing: Any) -> str:
    low, high = np.array(thing.box[:2]), np.array(thing.box[2:])
    paths = [(path - low) / (high - low) for path in picture.outlines[thing]]
    return " ".join("M" + " L".join(f"{x} {y}" for x, y in path.tolist()) + " Z" for path in paths)


def test_the_truth_scores_full_marks_in_every_row(pictures: list[Picture]) -> None:
    scores = Scores("things")
    for picture in pictures:
        for asked in picture.requests(Random(f"requests {picture.name}")):
            scores.add(asked, grade(asked, truth(asked, picture), picture), picture)
    rows = {row.name: row.value for row in scores.rows()}
    wanted = {
        "naming",
        "reading",
        "caption",
        "detect F1",
        "chart label",
        "chart value",
        "query",
        "segment IoU",
    }
    assert wanted <= rows.keys()
    for name, value in rows.items():
        assert value == pytest.approx(
            1.0, abs=0.06 if name in ("segment IoU", "point inside", "point F1") else 1e-9
        )
    assert {row.name for row in scores.rows() if row.target} >= wanted - {"query", "segment IoU"}


def test_the_wide_world_is_scored_by_the_sort_of_its_pictures() -> None:
    made, scores, wrong = NewPictures(5, 24, ATLAS, wide=True), Scores("wide"), Scores("wide")
    for index in range(len(made)):
        picture = made[index]
        for asked in picture.requests(Random(f"requests {index}")):
            scores.add(asked, grade(asked, truth(asked, picture), picture), picture)
            wrong.add(asked, grade(asked, {"answer": "wrong", "caption": "Wrong."}, picture), picture)
    rows, worst = ({row.name: row.value for row in of.rows()} for of in (scores, wrong))
    sorts = {"about pages", "about cards", "about charts", "about things", "page caption"}
    assert sorts | {"query", "detect F1"} <= rows.keys()
    assert all(value == pytest.approx(1.0) for name, value in rows.items() if name != "detect IoU")
    assert {worst[name] for name in sorts} == {0.0}


def test_false_answers_score_nothing(pictures: list[Picture]) -> None:
    scores = Scores("unseen")
    for picture in pictures:
        for asked in picture.requests(Random(picture.name)):
            if asked.skill in ("query", "caption"):
                wrong = {"answer": "wrong", "caption": "A wrong answer about a dog."}
                scores.add(asked, grade(asked, wrong, picture), picture)
    rows = {row.name: row for row in scores.rows()}
    assert all(rows[name].value == 0 for name in ("naming", "reading", "chart label", "chart value"))
    assert not rows["naming"].met


def test_a_caption_names_each_thing_as_often_as_it_says() -> None:
    assert named("Two dogs, a hot dog and an orange.") == Counter(dog=2, orange=1, **{"hot dog": 1})
    assert named("A red circle, three red circles and grapes.") == Counter({"red circle": 4, "grapes": 1})
    assert named("A cat and the text dog.", ("dog",)) == Counter(cat=1)
    told = "There are 2 things. A small dog at the top left. A big orange ring at the center."
    assert named(told) == Counter({"dog": 1, "orange ring": 1})
    assert named("An orange circle and two oranges.") == Counter({"orange circle": 1, "orange": 2})


@pytest.mark.parametrize(
    ("said", "right", "complete"),
    [
        ("Two dogs and a cat.", True, True),
        ("A dog and a cat.", False, True),
        ("Two dogs, a cat and a car.", False, True),
        ("Two dogs.", False, False),
    ],
)
def test_a_caption_may_name_everything_and_still_miscount(
    said: str, right: bool, complete: bool, pictures: list[Picture]
) -> None:
    asked = Asked("caption short", "caption", {}, "Two dogs and a cat.", names=("dog", "dog", "cat"))
    rates = grade(asked, {"caption": said}, pictures[0]).rates
    assert (rates["caption"], rates["caption names"]) == (right, complete)


@pytest.mark.parametrize(
    ("texts", "row"),
    [
        (("Open", "No. 42"), "reading, known words"),
        (("$5.99",), "reading, known words"),
        (("Open", "Sisdunk"), "reading, other letters"),
        (("KB-7",), "reading, other letters"),
    ],
)
def test_print_that_has_to_be_spelt_is_scored_apart(
    texts: tuple[str, ...], row: str, pictures: list[Picture]
) -> None:
    asked = Asked("read", "query", {}, ", ".join(texts), texts=texts)
    assert grade(asked, {"answer": asked.answer}, pictures[0]).rates == {"reading": True, row: True}


def test_descriptions_are_the_same_whether_they_count_or_not() -> None:
    assert same_description("Two dogs and the text STOP.", "A dog, a dog and the text STOP.")
    assert not same_description("Two dogs and the text STOP.", "A dog, a dog and the text SHOP.")
    assert not same_description("Two dogs.", "A dog.")


@pytest.mark.parametrize(("said", "near"), [("40", True), ("41.9", True), ("43", False), ("many", False)])
def test_a_value_counts_as_read_within_five_percent(said: str, near: bool) -> None:
    assert near_value(said, 40.0) is near


def test_a_picture_is_a_file_of_its_size_and_the_same_again(pictures: list[Picture]) -> None:
    again = NewPictures(3, 14, ATLAS)[5]
    assert again.data == pictures[5].data
    height, width, _ = decode_image(again.data, ImageLimits()).shape
    assert (width, height) == (again.width, again.height)


def write_atlas(folder: Path, *sets: str) -> None:
    for name in sets:
        replace(ATLAS.sprites, sets=(name,) * len(ATLAS.sprites)).save(folder / f"things-{name}.npz")
    for name in ("dots", UNSEEN_FONTS[0]):
        replace(ATLAS.fonts, names=(name,)).save(folder / f"font-{name}.npz")


@pytest.mark.parametrize(("world", "held_out"), [("unseen", "twemoji"), ("line-art", "openmoji")])
def test_a_held_out_part_of_an_atlas_shares_nothing_with_the_others(
    world: str, held_out: str, tmp_path: Path
) -> None:
    write_atlas(tmp_path, "mine", "twemoji", "openmoji")
    whole = open_atlas(tmp_path)
    seen, unseen = whole.part("things"), whole.part(world)
    assert len(seen.sprites) == len(unseen.sprites) == len(ATLAS.sprites)
    assert set(seen.sprites.sets) == {"mine"} and set(unseen.sprites.sets) == {held_out}
    assert HELD_OUT[world] == (held_out,)
    assert seen.fonts.names == ("dots",) and unseen.fonts.names == (UNSEEN_FONTS[0],)
    drawn_by = {
        a.drawn_by for a in open_things(world, 1, 3, tmp_path)[1].requests(Random(1)) if a.kind == "naming"
    }
    assert drawn_by <= {held_out, ""}


def test_a_world_whose_drawings_are_missing_says_how_to_make_them(tmp_path: Path) -> None:
    write_atlas(tmp_path, "mine", "twemoji")
    with pytest.raises(InvalidRequest, match=r"line-art.*make_atlas"):
        open_things("line-art", 1, 3, tmp_path)


def test_every_world_that_may_be_asked_for_has_its_targets() -> None:
    choices = get_type_hints(EvalOptions, include_extras=True)["world"].__metadata__[0].how["choices"]
    assert set(choices) == WORLD_TARGETS.keys() == {"shapes", "things", "wide", *HELD_OUT}
    assert not WORLD_TARGETS["line-art"]


def test_without_drawings_it_says_how_to_make_them(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="make_atlas"):
        open_atlas(tmp_path)


def test_a_server_is_asked_about_fifty_scenes_unless_told_otherwise() -> None:
    assert EvalOptions().num_scenes == 500
    assert EvalOptions(url="localhost:8001").num_scenes == 50
    assert EvalOptions(7, url="localhost:8001").num_scenes == 7
    with pytest.raises(InvalidRequest, match="world"):
        EvalOptions(pictures=Path("."), world="things")


def test_a_run_says_early_how_long_it_will_take(capsys: pytest.CaptureFixture[str]) -> None:
    def answers(requests: list[Request]) -> list[Answer]:
        return [Answer({"answer": "", "caption": ""}, 0.0) for _ in requests]

    console = Console(width=200)
    found = command.evaluate(answers, [], NewPictures(1, 5, ATLAS), 1, console, "things", at_once=2)  # type: ignore[arg-type]
    said = capsys.readouterr().out
    assert "about " in said
    assert said.index("for 5 pictures") < said.index("5 of 5")
    assert found.scores.num_answers > 40
