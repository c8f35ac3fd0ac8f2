"""OpenAI's own clients, unchanged: Python 3.x and Node 7.x."""

import json
from typing import Any

import pytest
from other_clients import SAMPLE, Drive, are_pieces_of, near

pytestmark = [pytest.mark.ecosystem, pytest.mark.triton]


@pytest.fixture(scope="module")
def of_python(drive: Drive, address: str) -> Any:
    return drive("clients", "openai_python.py", address, SAMPLE)


@pytest.fixture(scope="module")
def of_node(drive: Drive, address: str) -> Any:
    return drive("node", "openai_node.cjs", address, SAMPLE)


@pytest.fixture(params=["of_python", "of_node"])
def told(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(request.param)


def text_of(chunks: list[Any]) -> list[str]:
    """The pieces of text in a stream of a chat."""
    deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
    return [delta["content"] for delta in deltas if delta.get("content")]


def test_a_chat_about_a_picture_is_answered(told: Any) -> None:
    [choice] = told["chat"]["choices"]
    assert (choice["message"]["role"], choice["message"]["content"]) == ("assistant", "5")
    assert choice["finish_reason"] == "stop"
    usage = told["chat"]["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert usage["prompt_tokens"] > 196  # the picture's positions
    assert set(told["async"]) == {"5"}


def test_reasoning_comes_beside_the_answer(told: Any) -> None:
    message = told["thinking"]["choices"][0]["message"]
    assert message["content"] == "5"
    assert "5 in all" in message["reasoning"]


def test_log_probabilities_are_those_of_the_answer(told: Any) -> None:
    [choice] = told["logprobs"]["choices"]
    first = choice["logprobs"]["content"][0]
    assert first["token"].strip() == "5"
    assert len(first["top_logprobs"]) == 2
    assert first["logprob"] == max(one["logprob"] for one in first["top_logprobs"])


def test_a_stop_string_ends_the_answer_before_it(told: Any, truth: dict[str, Any]) -> None:
    before, found, _ = truth["description"].partition("circle")
    assert found
    assert told["stopped"]["choices"][0]["message"]["content"].rstrip() == before.rstrip()


def test_a_streamed_chat_is_the_whole_answer_in_pieces(told: Any, truth: dict[str, Any]) -> None:
    assert are_pieces_of(truth["description"], text_of(told["stream"]))
    assert len({chunk["id"] for chunk in told["stream"]}) == 1
    ends = [choice["finish_reason"] for chunk in told["stream"] for choice in chunk["choices"]]
    assert ends[-1] == "stop"
    assert set(ends[:-1]) == {None}


def test_usage_is_the_last_chunk_where_it_is_asked_for(told: Any) -> None:
    *others, last = told["stream_usage"]
    assert last["choices"] == []
    counted = ("prompt_tokens", "completion_tokens", "total_tokens")
    assert [last["usage"][name] for name in counted] == [told["chat"]["usage"][name] for name in counted]
    assert not any(chunk.get("usage") for chunk in [*others, *told["stream"]])


def test_a_slash_command_gives_what_detect_gives(told: Any, truth: dict[str, Any]) -> None:
    document = json.loads(told["detect"]["choices"][0]["message"]["content"])
    assert document == {"objects": near(truth["objects"])}
    assert json.loads("".join(text_of(told["detect_stream"]))) == document


def test_models_are_listed_and_shown(told: Any) -> None:
    assert "moondream-tiny" in [model["id"] for model in told["models"]]
    assert told["model"] == told["models"][0]
    assert told["model"]["object"] == "model"


def test_a_response_is_given_whole(told: Any) -> None:
    assert told["response_text"] == "5"
    assert told["response"]["status"] == "completed"
    usage = told["response"]["usage"]
    assert usage["input_tokens"] == told["chat"]["usage"]["prompt_tokens"]
    assert usage["output_tokens"] == told["chat"]["usage"]["completion_tokens"]


def test_a_response_is_streamed_as_events(told: Any) -> None:
    events = told["response_events"]
    assert (events[0], events[-1]) == ("response.created", "response.completed")
    assert "".join(told["response_deltas"]) == "5"
    [item] = told["response_end"]["response"]["output"]
    assert item["content"][0]["text"] == "5"


def test_a_completion_is_answered(told: Any) -> None:
    [choice] = told["completion"]["choices"]
    assert choice["text"].strip() == "There is no picture to look at."
    pieces = [choice["text"] for chunk in told["completion_stream"] for choice in chunk["choices"]]
    assert "".join(pieces) == choice["text"]


@pytest.mark.parametrize(
    ("case", "error", "status", "param"),
    [
        ("no_such_model", "NotFoundError", 404, "model"),
        ("no_such_model_listed", "NotFoundError", 404, "model"),
        ("bad_field", "BadRequestError", 400, "temperature"),
        ("tools", "BadRequestError", 400, "tools"),
        ("bad_picture", "BadRequestError", 400, "messages[0].content[0].image_url"),
        ("far_picture", "BadRequestError", 400, "messages[0].content[0].image_url"),
    ],
)
def test_a_refusal_is_the_error_that_its_class_says(
    told: Any, case: str, error: str, status: int, param: str
) -> None:
    refusal = told[case]
    assert (refusal["error"], refusal["status"]) == (error, status)
    assert refusal["param"].startswith(param)


def test_an_unknown_model_is_called_by_its_whole_name(told: Any) -> None:
    assert told["no_such_model_listed"]["code"] == "model_not_found"
    assert "a/b@1" in told["no_such_model_listed"]["message"]
