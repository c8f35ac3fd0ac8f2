"""Which lines are taken, and what is said of those that are not."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from lines_to_learn import BOX, all_skills, read, tiny_loaded, write_lines, write_pictures

from kestrel_core.build import LoadedModel
from kestrel_core.loop.step import Kind
from kestrel_core.protocol.errors import InvalidRequest
from kestrel_core.skills.registry import builtin_skills
from kestrel_tools.finetune.lines import BadLines, read_asked

QUERY = {"skill": "query", "image": "red.png", "question": "which?", "answer": "red"}
DETECT = {"skill": "detect", "image": "red.png", "object": "it", "objects": [BOX]}
CUT_SHORT = base64.b64encode(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR").decode()
POINT = {"skill": "point", "image": "red.png", "object": "it", "points": [{"x": 0.5, "y": 1}]}


@pytest.fixture(scope="module")
def model() -> LoadedModel:
    return tiny_loaded(2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("lines")
    write_pictures(made)
    (made / "torn.png").write_bytes((made / "red.png").read_bytes()[:60])
    return made


def without(line: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in line.items() if key != name}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{skill}", "it is no JSON at letter 2"),
        ("[]", "it is no JSON object"),
        (without(QUERY, "skill"), "skill is missing; it can be query, caption, detect, point"),
        (QUERY | {"skill": "segment"}, 'skill is "segment"; it can be'),
        (without(QUERY, "answer"), "answer is missing"),
        (without(QUERY, "question"), "QUESTION is required for query"),
        (QUERY | {"anser": "x"}, 'query has no field "anser"; did you mean answer?'),
        (QUERY | {"image_url": "x"}, "did you mean image?"),
        (QUERY | {"settings": {"temprature": 1}}, "did you mean temperature?"),
        (QUERY | {"answer": " "}, "answer is empty"),
        (QUERY | {"answer": 4}, "answer must be a string"),
        (QUERY | {"answer": "half a pair: \ud83d"}, "answer is not UTF-8 text"),
        (QUERY | {"answer": "x" * 200}, "(5 image + 211 text) and max_context is 128"),
        (QUERY | {"image": "absent.png"}, 'there is no picture "absent.png" beside the data file'),
        (QUERY | {"image": "cats"}, 'there is no picture "cats" beside'),  # also 3 bytes in base64
        (QUERY | {"image": CUT_SHORT}, "beside the data file, and it is not the base64 of one"),
        (QUERY | {"image": "https://x.org/1.png"}, 'there is no picture "https://x.org/1.png" beside'),
        (QUERY | {"image": "é.png" * 100}, 'there is no picture "é.png'),  # no file system has such names
        (QUERY | {"image": "a\0b.png"}, 'there is no picture "a\\x00b.png" beside the data file'),
        (QUERY | {"image": "torn.png"}, "the PNG image is damaged or cut short"),
        (QUERY | {"image": "data:image/png;base64,!!"}, "neither an encoded picture nor valid base64"),
        (without(DETECT, "image"), "IMAGE is required for detect"),
        (DETECT | {"objects": {}}, "objects must be a list"),
        (DETECT | {"objects": [without(BOX, "x_min")]}, "must be an object with x_min, y_min, x_max, y_max"),
        (DETECT | {"objects": [BOX | {"x_max": 1.2}]}, "x_max of objects is 1.2; it is a fraction"),
        (DETECT | {"objects": [BOX | {"x_max": 0.25}]}, "has no area"),
        (POINT | {"points": [{"x": True, "y": 0}]}, "x of points is no number"),
        (POINT | {"points": [{"x": -0.1, "y": 0}]}, "x of points is -0.1"),
        (POINT | {"points": [{"x": 10**400, "y": 0}]}, "x of points is 1000"),  # no float is so large
        (POINT | {"points": [{"x": float("inf"), "y": 0}]}, "x of points is no number"),
        (POINT | {"points": [{"x": float("nan"), "y": 0}]}, "x of points is no number"),
    ],
)
def test_a_bad_line_is_told_with_its_number_and_one_reason(
    line: Any, reason: str, folder: Path, tmp_path: Path, model: LoadedModel
) -> None:
    path = folder / f"{tmp_path.name}.jsonl"
    bad = line if isinstance(line, str) else json.dumps(line)
    path.write_text(f"{json.dumps(QUERY)}\n\n{bad}\n")
    with pytest.raises(BadLines) as refused:
        read(path, model)
    [found] = refused.value.bad
    assert found.number == 3 and reason in found.reason
    assert str(folder) not in str(refused.value)


def test_all_bad_lines_are_counted_and_the_first_are_told(folder: Path, model: LoadedModel) -> None:
    lines = [QUERY, *[QUERY | {"answer": ""}] * 30]
    with pytest.raises(BadLines) as refused:
        read(write_lines(folder / "many.jsonl", lines), model)
    assert [number for number, _ in refused.value.bad] == list(range(2, 32))
    said = str(refused.value).splitlines()
    assert said[0].startswith("many.jsonl has 30 bad lines") and said[-1] == "  and 10 more"
    assert len(said) == 22


def test_a_file_without_lines_is_refused(folder: Path, model: LoadedModel) -> None:
    with pytest.raises(InvalidRequest, match="has no lines"):
        read(write_lines(folder / "none.jsonl", []), model)
    with pytest.raises(InvalidRequest, match="cannot be read"):
        read(folder / "absent.jsonl", model)


def test_the_same_picture_by_path_data_url_and_base64_is_one_picture(
    folder: Path, model: LoadedModel
) -> None:
    data = (folder / "red.png").read_bytes() + bytes(2000)  # longer than any path
    (folder / "long.png").write_bytes(data)
    text = base64.b64encode(data).decode()
    images = ["long.png", f"data:image/png;base64,{text}", text]
    found = read(write_lines(folder / "same.jsonl", [QUERY | {"image": one} for one in images]), model)
    assert len({line.lesson.picture for line in found.lines}) == 1


def test_a_picture_in_base64_may_be_as_short_as_a_path(folder: Path, model: LoadedModel) -> None:
    text = base64.b64encode((folder / "red.png").read_bytes()).decode()
    assert len(text) < 1000
    images = ["red.png", text]
    path = write_lines(folder / "short.jsonl", [QUERY | {"image": one} for one in images])
    assert len({line.lesson.picture for line in read(path, model).lines}) == 1
    assert [asked.request.image for asked in read_asked(path, builtin_skills())] == [
        folder / "red.png",
        (folder / "red.png").read_bytes(),
    ]


def test_a_lesson_reads_what_the_reply_would_sample(tmp_path: Path, model: LoadedModel) -> None:
    lines = read(all_skills(tmp_path, ["red"]), model).lines
    ids = model.language.config.tokenizer
    by_skill = {line.asked.request.skill: line.lesson for line in reversed(lines)}
    query, detect, point = by_skill["query"], by_skill["detect"], by_skill["point"]
    words = [read.sample.token for read in query.reads]
    assert model.language.tokenizer.decode(words) == "me"  # type: ignore[arg-type]
    assert words[-1] == ids.eos_id and query.reads[0].at == len(query.inputs) - len(words)
    assert [read.readout.suppressed for read in query.reads] == [(), (ids.answer_id,), (ids.answer_id,)]
    kinds = [read.readout.kind for read in detect.reads]
    assert kinds == [Kind.OBJECT, Kind.COORD, Kind.SIZE] * 2 + [Kind.OBJECT]
    assert detect.num_choices == 2 * 5 + 1
    assert [read.sample.coord for read in point.reads] == [0.5, 0.25, None]
