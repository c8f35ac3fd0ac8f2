"""OpenAI's responses over a scripted upstream: whole, as events, and what is refused."""

import base64
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

import pytest
from gateway_server import OUTPUTS, USAGE, Running, failing, running

from kestrel_core.protocol.errors import EngineFailed, Overloaded
from kestrel_core.protocol.messages import Chunk, Request

PATH = "/v1/responses"
URL = f"data:image/png;base64,{base64.b64encode(b'picture').decode()}"
PICTURE = {"type": "input_image", "image_url": URL, "detail": "auto"}
TEXT = {"type": "input_text", "text": "What?"}


@pytest.fixture
def gateway() -> Iterator[Running]:
    with running() as it:
        yield it


def ask(given: Any = "What?", **fields: Any) -> dict[str, Any]:
    return {"model": "moondream", "input": given, **fields}


async def thinking(request: Request) -> AsyncIterator[Chunk]:
    yield Chunk("I ", 1, "reasoning")
    yield Chunk("see", 2, "reasoning")
    yield Chunk("a dog", 3)


def think(gateway: Running) -> None:
    gateway.upstream.scripts = [thinking]
    gateway.upstream.outputs["query"] = {
        "answer": "a dog",
        "reasoning": {"text": "I see", "grounding": []},
    }


def test_a_response_has_a_message_and_what_it_cost(gateway: Running) -> None:
    gateway.upstream.usage = replace(USAGE, reasoning_tokens=2)
    body = ask([{"role": "user", "content": [PICTURE, TEXT]}], instructions="Be brief.", temperature=0.5)
    status, answer, _ = gateway.post(PATH, {**body, "max_output_tokens": 9, "store": True}, x_request_id="me")
    [asked] = gateway.upstream.asked
    assert (asked.image, asked.arguments) == (b"picture", {"question": "Be brief.\n\nWhat?"})
    assert (asked.settings.max_tokens, asked.settings.temperature) == (9, 0.5)
    assert (status, answer["id"], answer["status"], answer["store"]) == (200, "resp_me", "completed", False)
    part = {"type": "output_text", "text": "a red circle", "annotations": [], "logprobs": []}
    assert answer["output"] == [
        {"id": "msg_me", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
    ]
    assert answer["usage"] == {
        "input_tokens": 740,
        "input_tokens_details": {"cached_tokens": 730, "cache_write_tokens": 0},
        "output_tokens": 3,
        "output_tokens_details": {"reasoning_tokens": 2},
        "total_tokens": 743,
    }


def test_an_answer_can_be_sent_back_as_it_came(gateway: Running) -> None:
    think(gateway)
    _, answer, _ = gateway.post(PATH, ask(reasoning={"effort": "low"}))
    assert gateway.upstream.asked[0].arguments["reasoning"] is True
    assert [item["type"] for item in answer["output"]] == ["reasoning", "message"]
    assert answer["output"][0]["content"] == [{"type": "reasoning_text", "text": "I see"}]
    turns = [{"role": "user", "content": "What?"}, *answer["output"], {"role": "user", "content": "Sure?"}]
    status, again, _ = gateway.post(PATH, ask(turns))
    assert status == 200, again
    assert gateway.upstream.asked[1].arguments == {"question": "User: What?\nAssistant: a dog\n\nSure?"}


def test_events_tell_how_the_answer_grows(gateway: Running) -> None:
    events = gateway.events(PATH, ask(stream=True))
    assert [event["type"].removeprefix("response.") for event in events] == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    assert [event["sequence_number"] for event in events] == list(range(11))
    deltas = [event["delta"] for event in events if event["type"].endswith("delta")]
    assert "".join(deltas) == events[7]["text"] == events[8]["part"]["text"] == "a red circle"
    assert events[-1]["response"]["output"] == [events[-2]["item"]]
    assert events[-1]["response"]["usage"]["total_tokens"] == 743


def test_every_event_is_named_by_its_type(gateway: Running) -> None:
    _, text, _ = gateway.post(PATH, ask(stream=True))
    for part in text.strip().split("\n\n"):
        name, data = part.split("\n")
        assert name == f"event: {json.loads(data.removeprefix('data: '))['type']}"


def test_thoughts_are_an_item_before_the_message(gateway: Running) -> None:
    think(gateway)
    events = gateway.events(PATH, ask(stream=True, reasoning={"effort": "high", "summary": "auto"}))
    told = [(event["type"].removeprefix("response."), event.get("output_index")) for event in events[2:-1]]
    assert told == [
        ("output_item.added", 0),
        ("content_part.added", 0),
        ("reasoning_text.delta", 0),
        ("reasoning_text.delta", 0),
        ("reasoning_text.done", 0),
        ("content_part.done", 0),
        ("output_item.done", 0),
        ("output_item.added", 1),
        ("content_part.added", 1),
        ("output_text.delta", 1),
        ("output_text.done", 1),
        ("content_part.done", 1),
        ("output_item.done", 1),
    ]
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert events[-1]["response"]["output"] == done


def test_log_probabilities_come_where_they_are_included(gateway: Running) -> None:
    token = {"token_id": 1, "token": "a", "logprob": -0.5, "bytes": [97]}
    gateway.upstream.outputs["query"] = {"answer": "a", "logprobs": [{**token, "top": [token]}]}
    body = ask(include=["message.output_text.logprobs"], top_logprobs=1)
    _, answer, _ = gateway.post(PATH, body)
    item = {"token": "a", "logprob": -0.5, "bytes": [97]}
    assert answer["output"][0]["content"][0]["logprobs"] == [{**item, "top_logprobs": [item]}]


@pytest.mark.parametrize("stream", [False, True])
def test_a_command_gives_its_document(gateway: Running, stream: bool) -> None:
    body = ask([{"role": "user", "content": [PICTURE, {**TEXT, "text": '/point {"object": "cat"}'}]}])
    if stream:
        answer = gateway.events(PATH, {**body, "stream": True})[-1]["response"]
    else:
        _, answer, _ = gateway.post(PATH, body)
    assert json.loads(answer["output"][0]["content"][0]["text"]) == OUTPUTS["point"]


def test_an_answer_at_its_limit_is_incomplete(gateway: Running) -> None:
    gateway.upstream.finish_reason = "length"
    events = gateway.events(PATH, ask(stream=True, max_output_tokens=3))
    assert events[-1]["type"] == "response.incomplete"
    told = events[-1]["response"]
    assert (told["status"], told["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})
    assert told["output"][0]["status"] == "incomplete"


def test_an_error_in_mid_stream_is_a_failed_response(gateway: Running) -> None:
    gateway.upstream.scripts = [failing(EngineFailed("broken"), after=1)]
    last = gateway.events(PATH, ask(stream=True))[-1]
    assert (last["type"], last["response"]["status"]) == ("response.failed", "failed")
    assert last["response"]["error"] == {"code": "server_error", "message": "broken"}


@pytest.mark.parametrize("stream", [False, True])
def test_an_error_before_the_first_event_keeps_its_status(gateway: Running, stream: bool) -> None:
    gateway.upstream.scripts = [failing(Overloaded("full"))]
    status, answer, _ = gateway.post(PATH, ask(stream=stream))
    assert (status, answer["error"]["code"]) == (429, "queue_full")


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
        ({"conversation": "c"}, "conversation"),
        ({"background": True}, "background"),
        ({"prompt": {"id": "p"}}, "prompt"),
        ({"tools": [{"type": "web_search"}]}, "tools"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"max_tool_calls": 1}, "max_tool_calls"),
        ({"truncation": "auto"}, "truncation"),
        ({"context_management": []}, "context_management"),
        ({"moderation": {}}, "moderation"),
        ({"image": {}}, "image"),
        ({"access_programs": {}}, "access_programs"),
        ({"text": {"format": {"type": "json_object"}}}, "text.format.type"),
        ({"include": ["file_search_call.results"]}, "include[0]"),
        ({"top_logprobs": 2}, "top_logprobs"),
        ({"stream_options": {}}, "stream_options"),
        ({"reasoning": {"effort": "huge"}}, "reasoning.effort"),
        ({"max_tokens": 5}, "max_tokens"),
        ({"metadata": {"a": 1}}, "metadata[...]"),
        ({"input": []}, "input"),
        ({"input": ""}, "input"),
        ({"input": None}, "input"),
        ({"input": [{"content": "a"}]}, "input[0].role"),
        ({"input": [{"type": "function_call_output", "output": "a"}]}, "input[0].type"),
        ({"input": [{"role": "user", "content": [PICTURE]}]}, "input[0].content"),
        ({"input": [{"role": "user", "content": [TEXT, PICTURE, PICTURE]}]}, "input[0].content[1]"),
        ({"input": [{"role": "user", "content": [{"type": "input_file"}]}]}, "input[0].content[0].type"),
        (
            {"input": [{"role": "user", "content": [{"type": "input_image", "file_id": "f"}]}]},
            "input[0].content[0].file_id",
        ),
        (
            {"input": [{"role": "user", "content": [TEXT, {**PICTURE, "image_url": "http://a/b"}]}]},
            "input[0].content[1].image_url",
        ),
    ],
)
def test_a_refusal_names_its_field(gateway: Running, fields: dict[str, Any], param: str) -> None:
    status, answer, _ = gateway.post(PATH, ask() | fields)
    assert (status, answer["error"]["param"]) == (400, param)
    assert gateway.upstream.asked == []
