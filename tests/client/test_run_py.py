"""What client/run.py makes of several pictures, of outlines, and of a skill it has never heard of."""

import json
from pathlib import Path

import pytest
from client.fake_triton import OUTPUTS, FakeTriton, say
from PIL import Image

from kestrel_client import command
from kestrel_client.drawing import outlines
from kestrel_core.protocol.results import Box, Segment

ROOT = Path(__file__).parents[2]
SHAPES, CIRCLES = ROOT / "client/samples/shapes.png", ROOT / "client/samples/circles.png"
BBOX = {"x_min": 0.25, "y_min": 0.5, "x_max": 0.75, "y_max": 1.0}
SQUARE = "M 0 0 L 1 0 L 1 1 L 0 1 Z"


def run(fake: FakeTriton, *options: str) -> int:
    return command.main(["--url", fake.url, *options])


def test_two_pictures_are_both_asked(fake: FakeTriton, capsys: pytest.CaptureFixture[str]) -> None:
    pictures = ("--image", str(SHAPES), "--image", str(CIRCLES))
    assert run(fake, *pictures, "--skill", "detect") == 0
    assert [asked.inputs["IMAGE"] for asked in fake.asked] == [[SHAPES.read_bytes()], [CIRCLES.read_bytes()]]
    shown = capsys.readouterr().out
    assert "shapes.png: detect" in shown and "circles.png: detect" in shown
    assert run(fake, *pictures, "--json", "--skill", "detect") == 0
    document = json.loads(capsys.readouterr().out)
    assert [picture["image"] for picture in document["images"]] == [str(SHAPES), str(CIRCLES)]
    assert all(
        OUTPUTS["detect"].items() <= p["skills"]["detect"]["response"].items() for p in document["images"]
    )


def test_a_bad_picture_is_one_error_and_the_other_is_still_asked(
    fake: FakeTriton, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(fake, "--image", "nowhere.png", "--image", str(CIRCLES)) == 1
    assert [asked.skill for asked in fake.asked] == list(command.SKILLS)
    printed = capsys.readouterr()
    assert printed.err.count("cannot be read") == 1 and "nowhere.png" in printed.err
    assert run(fake, "--image", "nowhere.png", "--image", str(CIRCLES), "--json") == 1
    first, second = json.loads(capsys.readouterr().out)["images"]
    assert first["error"]["code"] == "INVALID_ARG" and list(second["skills"]) == list(command.SKILLS)


def test_a_bad_picture_alone_leaves_nothing_to_ask(
    fake: FakeTriton, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(fake, "--image", "nowhere.png") == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_outlines_are_counted_instead_of_printed(
    fake: FakeTriton, capsys: pytest.CaptureFixture[str]
) -> None:
    many = "M 0 0 " + " ".join(f"L 0.{i} 0.5" for i in range(15)) + " Z"
    segments = [{"svg_path": path, "bbox": BBOX} for path in (SQUARE, many)]
    document = {"request_id": "1", "finish_reason": "stop", "segments": segments, "metrics": {}}
    fake.scripts.append(lambda asked, context: iter([say(document)]))
    assert run(fake, "--image", str(SHAPES), "--skill", "segment") == 0
    shown = capsys.readouterr().out
    assert "2 outlines, 4 to 16 vertices" in shown and "M 0 0" not in shown


def test_outlines_are_drawn(fake: FakeTriton, tmp_path: Path) -> None:
    picture, drawn = tmp_path / "plain.png", tmp_path / "drawn.png"
    Image.new("RGB", (400, 200), "black").save(picture)
    document = {
        "request_id": "1",
        "finish_reason": "stop",
        "segments": [{"svg_path": SQUARE, "bbox": BBOX}],
        "metrics": {},
    }
    fake.scripts.append(lambda asked, context: iter([say(document)]))
    assert run(fake, "--image", str(picture), "--skill", "segment", "--draw", str(drawn)) == 0
    with Image.open(drawn) as copy:
        assert copy.getpixel((100, 150)) == (255, 0, 200), "the left side lies at a quarter of the picture"
        assert copy.getpixel((200, 150)) == (0, 0, 0), "and inside there is nothing"


def test_a_path_is_relative_to_its_box() -> None:
    hole = "M 0.25 0.25 L 0.75 0.25 L 0.75 0.75 Z"
    first, second = outlines(Segment(f"{SQUARE} {hole}", Box(0.2, 0.4, 0.6, 0.8)))
    flat = [number for corner in first for number in corner]
    assert flat == pytest.approx([0.2, 0.4, 0.6, 0.4, 0.6, 0.8, 0.2, 0.8])
    assert second[0] == pytest.approx((0.3, 0.5))


def test_several_pictures_are_drawn_into_files_of_their_own(fake: FakeTriton, tmp_path: Path) -> None:
    pictures = ("--image", str(SHAPES), "--image", str(CIRCLES))
    assert run(fake, *pictures, "--skill", "detect", "--draw", str(tmp_path / "out.png")) == 0
    assert {path.name for path in tmp_path.iterdir()} == {"out-shapes.png", "out-circles.png"}


def test_a_skill_of_the_servers_own_is_asked_with_what_is_given(
    fake: FakeTriton, capsys: pytest.CaptureFixture[str]
) -> None:
    document = {"request_id": "1", "finish_reason": "stop", "count": 5, "enough": True, "metrics": {}}
    fake.scripts.append(lambda asked, context: iter([say(document)]))
    own = ("--skill", "count", "--object", "cat", "--argument", "least=3", "--argument", "colour=red")
    assert run(fake, "--image", str(SHAPES), *own) == 0
    [asked] = fake.asked
    assert asked.inputs["OBJECT"] == [b"cat"] and "QUESTION" not in asked.inputs
    assert json.loads(asked.inputs["ARGUMENTS"][0]) == {"least": 3, "colour": "red"}
    assert "count: 5, enough: True" in capsys.readouterr().out
