"""Moondream's own clients, unchanged, against our REST: Python 2.6.1, and Node 0.2.0 with an empty key."""

from typing import Any

import pytest
from other_clients import SAMPLE, Drive, are_pieces_of, near

pytestmark = [pytest.mark.ecosystem, pytest.mark.triton]


@pytest.fixture(scope="module")
def of_python(drive: Drive, address: str) -> Any:
    return drive("clients", "moondream_python.py", address, SAMPLE)


@pytest.fixture(scope="module")
def of_node(drive: Drive, address: str) -> Any:
    return drive("node", "moondream_node.cjs", address, SAMPLE)


@pytest.fixture(params=["of_python", "of_node"])
def told(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(request.param)


def test_a_question_is_answered(told: Any, truth: dict[str, Any]) -> None:
    assert truth["answer"] == "5"
    assert told["query"] == {"answer": "5"}
    assert "".join(told["query_stream"]) == "5"


def test_a_question_without_a_picture_is_answered(told: Any) -> None:
    assert told["without_picture"] == {"answer": "There is no picture to look at."}


def test_reasoning_points_at_what_it_counted(told: Any, truth: dict[str, Any]) -> None:
    assert told["reasoning"]["answer"] == "5"
    reasoning = told["reasoning"]["reasoning"]
    [grounding] = reasoning["grounding"]
    assert reasoning["text"][grounding["start_idx"] : grounding["end_idx"]] == "circles"
    assert [{"x": x, "y": y} for x, y in grounding["points"]] == near(truth["points"])


def test_a_caption_is_the_same_whole_and_in_pieces(told: Any, truth: dict[str, Any]) -> None:
    assert told["caption"] == truth["caption"]
    assert are_pieces_of(truth["caption"], told["caption_stream"])
    assert len(told["caption_short"]) < len(told["caption"])


def test_objects_are_found_where_our_client_finds_them(told: Any, truth: dict[str, Any]) -> None:
    assert len(truth["objects"]) == 5
    assert told["detect_encoded"] == {"objects": near(truth["objects"])}
    assert told["named"] == {"objects": near(truth["objects"])}  # with `model`, which Node calls `variant`
    assert told["point"] == {"points": near(truth["points"])}


def test_what_is_not_there_is_an_empty_list(told: Any) -> None:
    assert told["point_nothing"] == {"points": []}


def test_an_outline_comes_with_its_box(told: Any, truth: dict[str, Any]) -> None:
    [first, *_] = truth["segments"]
    assert told["segment"]["path"].startswith("M ")
    assert [told["segment"]["bbox"]] == near([first["bbox"]])


def test_an_outline_is_streamed_box_first(told: Any) -> None:
    box, *pieces, last = told["segment_stream"]
    assert box == {"bbox": last["bbox"]}
    assert "".join(piece["chunk"] for piece in pieces) == last["path"] == told["segment"]["path"]
    assert last["completed"] is True


def test_an_unknown_finetune_is_not_found(told: Any) -> None:
    assert told["stranger"] == 404


def test_settings_of_python_are_obeyed(of_python: Any, truth: dict[str, Any]) -> None:
    assert of_python["detect"] == {"objects": near(truth["objects"][:3])}  # max_objects is 3


def test_python_can_chat(of_python: Any) -> None:
    assert of_python["chat"]["message"]["content"] == "5"
    assert of_python["chat"]["finish_reason"] == "stop"
    assert of_python["chat_thinking"]["message"]["content"] == "5"
    assert "5 in all" in of_python["chat_thinking"]["message"]["reasoning"]
    assert "".join(of_python["chat_stream"]) == "5"
