"""OpenAI's older completions over a scripted upstream."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from gateway_server import Running, failing, running

from kestrel_core.protocol.errors import EngineFailed
from kestrel_core.protocol.messages import Chunk, Request

PATH = "/v1/completions"
LOGPROBS: list[dict[str, Any]] = [
    {"token": "a ", "logprob": -0.5, "top": [{"token": "a ", "logprob": -0.5}]},
    {"token": "dog", "logprob": -1, "top": [{"token": "cat", "logprob": -0.2}]},
]


@pytest.fixture
def gateway() -> Iterator[Running]:
    with running() as it:
        yield it


def ask(prompt: Any = "Why?", **fields: Any) -> dict[str, Any]:
    return {"model": "moondream", "prompt": prompt, **fields}


@pytest.mark.parametrize("prompt", ["Why?", ["Why?"]])
def test_a_prompt_is_a_question_without_a_picture(gateway: Running, prompt: Any) -> None:
    body = ask(prompt, max_tokens=5, temperature=0, stop=["x", "y"], seed=-1, top_p=1)
    status, answer, _ = gateway.post(PATH, body, x_request_id="me")
    [asked] = gateway.upstream.asked
    assert (asked.skill, asked.image, asked.arguments) == ("query", None, {"question": "Why?"})
    assert (asked.settings.max_tokens, asked.settings.stop, asked.settings.seed) == (5, ("x", "y"), -1)
    assert (status, answer["id"], answer["object"]) == (200, "cmpl-me", "text_completion")
    assert answer["choices"] == [
        {"text": "a red circle", "index": 0, "logprobs": None, "finish_reason": "stop"}
    ]
    assert answer["usage"]["total_tokens"] == 743


def test_a_stream_gives_the_text_in_pieces(gateway: Running) -> None:
    body = ask(stream=True, stream_options={"include_usage": True})
    *events, told, done = gateway.events(PATH, body)
    assert done == "[DONE]"
    assert [event["choices"][0]["text"] for event in events] == ["a ", "red ", "circle", ""]
    assert [event["choices"][0]["finish_reason"] for event in events] == [None, None, None, "stop"]
    assert (told["choices"], told["usage"]["completion_tokens"]) == ([], 3)


@pytest.mark.parametrize(("num_top", "top"), [(0, [{}, {}]), (1, [{"a ": -0.5}, {"cat": -0.2}])])
def test_log_probabilities_have_their_older_shape(gateway: Running, num_top: int, top: Any) -> None:
    gateway.upstream.outputs["query"] = {"answer": "a dog", "logprobs": LOGPROBS}
    _, answer, _ = gateway.post(PATH, ask(logprobs=num_top))
    assert answer["choices"][0]["logprobs"] == {
        "tokens": ["a ", "dog"],
        "token_logprobs": [-0.5, -1],
        "top_logprobs": top,
        "text_offset": [0, 2],
    }
    assert gateway.upstream.asked[0].settings.logprobs == 1


def test_streamed_log_probabilities_are_those_of_the_whole(gateway: Running) -> None:
    async def script(request: Request) -> AsyncIterator[Chunk]:
        yield Chunk("a ", 1, logprobs=(LOGPROBS[0],))
        yield Chunk("dog", 2)  # its token is only told at the end

    gateway.upstream.scripts = [script]
    gateway.upstream.outputs["query"] = {"answer": "a dog", "logprobs": LOGPROBS}
    events = gateway.events(PATH, ask(logprobs=1, stream=True))
    told = [event["choices"][0]["logprobs"] for event in events[:-1]]
    assert [one and one["tokens"] for one in told] == [["a "], None, ["dog"]]
    assert [one and one["text_offset"] for one in told] == [[0], None, [2]]


def test_an_error_in_mid_stream_is_the_last_event(gateway: Running) -> None:
    gateway.upstream.scripts = [failing(EngineFailed("broken"), after=1)]
    assert gateway.events(PATH, ask(stream=True))[-1]["error"]["code"] == "engine_failed"


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"echo": True}, "echo"),
        ({"suffix": "x"}, "suffix"),
        ({"best_of": 2}, "best_of"),
        ({"n": 2}, "n"),
        ({"logit_bias": {"1": 1}}, "logit_bias"),
        ({"prompt": [1, 2]}, "prompt"),
        ({"prompt": [1]}, "prompt[0]"),
        ({"prompt": ["a", "b"]}, "prompt"),
        ({"prompt": []}, "prompt"),
        ({"prompt": " "}, "prompt"),
        ({"logprobs": True}, "logprobs"),
        ({"logprobs": 21}, "logprobs"),
        ({"stream_options": {}}, "stream_options"),
        ({"messages": []}, "messages"),
    ],
)
def test_a_refusal_names_its_field(gateway: Running, fields: dict[str, Any], param: str) -> None:
    status, answer, _ = gateway.post(PATH, ask() | fields)
    assert (status, answer["error"]["param"]) == (400, param)
    assert gateway.upstream.asked == []


def test_a_prompt_has_the_limit_of_a_question(gateway: Running) -> None:
    status, answer, _ = gateway.post(PATH, ask("a" * 70_000))
    assert (status, answer["error"]["param"], answer["error"]["code"]) == (413, "prompt", "payload_too_large")
