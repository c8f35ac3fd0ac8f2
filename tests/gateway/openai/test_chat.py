"""OpenAI's chat over a scripted upstream: what is asked, and what comes back, whole and in chunks."""

import base64
import http.client
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

import pytest
from gateway_server import USAGE, Running, Script, endless, failing, running
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kestrel_core.protocol.errors import EngineFailed, Overloaded
from kestrel_core.protocol.messages import Chunk, FinishReason, Request

CHAT = "/v1/chat/completions"
URL = f"data:image/png;base64,{base64.b64encode(b'picture').decode()}"
LOGPROBS: list[dict[str, Any]] = [
    {
        "token_id": 5,
        "token": "é",
        "bytes": [195, 169],
        "logprob": -0.5,
        "top": [
            {"token_id": 5, "token": "é", "bytes": [195, 169], "logprob": -0.5},
            {"token_id": 6, "token": "\ufffd", "bytes": [195], "logprob": -1.5},
        ],
    }
]


@pytest.fixture
def gateway() -> Iterator[Running]:
    with running() as it:
        it.call_model("moondream-tiny")
        yield it


def chat(text: Any = "What?", **fields: Any) -> dict[str, Any]:
    return {"model": "moondream", "messages": [{"role": "user", "content": text}], **fields}


def saying(pieces: list[str], thoughts: list[str] | None = None) -> Script:
    async def script(request: Request) -> AsyncIterator[Chunk]:
        for index, text in enumerate(thoughts or []):
            yield Chunk(text, index + 1, "reasoning")
        for index, text in enumerate(pieces):
            yield Chunk(text, index + 1)

    return script


def joined(events: list[Any], key: str = "content") -> str:
    deltas = [choice["delta"] for event in events if event != "[DONE]" for choice in event["choices"]]
    return "".join(delta.get(key) or "" for delta in deltas)


def test_a_chat_is_a_query_about_its_picture(gateway: Running) -> None:
    image = {"type": "image_url", "image_url": {"url": URL, "detail": "auto"}}
    body = chat([image, {"type": "text", "text": "What?"}], temperature=0.2, top_p=0.9, seed=7, stop="\n")
    gateway.upstream.usage = replace(USAGE, image_tokens=730, reasoning_tokens=2)
    status, answer, headers = gateway.post(CHAT, {**body, "max_tokens": 9, "top_k": 3}, x_request_id="me")
    assert (status, headers["x-request-id"]) == (200, "me")
    [asked] = gateway.upstream.asked
    assert (asked.skill, asked.image, asked.arguments) == ("query", b"picture", {"question": "What?"})
    given = asked.settings
    assert (given.temperature, given.top_p, given.top_k, given.seed) == (0.2, 0.9, 3, 7)
    assert (given.max_tokens, given.stop, given.logprobs) == (9, ("\n",), 0)
    assert (asked.request_id, asked.timeout_s, asked.stream) == ("me", 60.0, False)
    assert (answer["id"], answer["object"], answer["model"]) == (
        "chatcmpl-me",
        "chat.completion",
        "moondream-tiny",
    )
    assert answer["system_fingerprint"].startswith("kc-")
    assert answer["choices"] == [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "a red circle", "refusal": None},
            "logprobs": None,
            "finish_reason": "stop",
        }
    ]
    usage = answer["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == (740, 3, 743)
    assert usage["prompt_tokens_details"] == {"cached_tokens": 730, "image_tokens": 730, "text_tokens": 10}
    assert usage["completion_tokens_details"] == {"reasoning_tokens": 2}


def test_a_bare_address_and_several_turns_are_taken(gateway: Running) -> None:
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "image_url", "image_url": URL}]},
        {"role": "assistant", "content": "A dog.", "refusal": None, "tool_calls": None, "annotations": []},
        {"role": "user", "content": "Which breed?"},
    ]
    gateway.post(CHAT, {"model": "moondream", "messages": messages})
    [asked] = gateway.upstream.asked
    assert asked.image == b"picture"
    assert asked.arguments["question"] == "Be brief.\n\nAssistant: A dog.\n\nWhich breed?"


def test_what_was_refused_before_may_be_sent_back(gateway: Running) -> None:
    refused = {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}
    messages = [
        {"role": "user", "content": "Who is this?"},
        refused,
        {"role": "user", "content": "And this?"},
    ]
    status, answer, _ = gateway.post(CHAT, {"model": "moondream", "messages": messages})
    assert status == 200, answer
    assert "No." not in gateway.upstream.asked[0].arguments["question"]


def test_a_stream_begins_with_the_role_and_ends_with_done(gateway: Running) -> None:
    events = gateway.events(CHAT, chat(stream=True), x_request_id="s")
    assert events.pop() == "[DONE]"
    assert gateway.upstream.asked[0].stream
    assert [event["choices"][0]["delta"].get("content") for event in events] == [
        "",
        "a ",
        "red ",
        "circle",
        None,
    ]
    assert [event["choices"][0]["delta"].get("role") for event in events] == ["assistant", *[None] * 4]
    assert [event["choices"][0]["finish_reason"] for event in events] == [*[None] * 4, "stop"]
    assert {(event["id"], event["object"]) for event in events} == {("chatcmpl-s", "chat.completion.chunk")}
    assert len({event["created"] for event in events}) == 1
    assert all("usage" not in event for event in events)


def test_usage_is_a_chunk_of_its_own_where_it_is_asked_for(gateway: Running) -> None:
    body = chat(stream=True, stream_options={"include_usage": True, "include_obfuscation": False})
    *events, last, done = gateway.events(CHAT, body)
    assert done == "[DONE]"
    assert (last["choices"], last["usage"]["total_tokens"]) == ([], 743)
    assert [event["usage"] for event in events] == [None] * 5


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pieces=st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1)), thoughts=st.booleans())
def test_all_deltas_together_are_the_whole_content(
    gateway: Running, pieces: list[str], thoughts: bool
) -> None:
    text = "".join(pieces)
    thought = ["I see ", "it"] if thoughts else []
    output: dict[str, Any] = {"answer": text}
    gateway.upstream.outputs["query"] = output
    if thoughts:
        output["reasoning"] = {"text": "I see it", "grounding": []}
    gateway.upstream.scripts = [saying(pieces, thought)]
    events = gateway.events(CHAT, chat(stream=True, reasoning=thoughts))
    _, answer, _ = gateway.post(CHAT, chat(reasoning=thoughts))
    message = answer["choices"][0]["message"]
    assert joined(events) == message["content"] == text
    assert joined(events, "reasoning") == message.get("reasoning", "") == "".join(thought)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, None),
        ({"reasoning": True}, True),
        ({"reasoning": False}, None),
        ({"reasoning_effort": "none"}, None),
        ({"reasoning_effort": "low"}, True),
        ({"reasoning": True, "reasoning_effort": "high"}, True),
    ],
)
def test_any_effort_but_none_is_to_think(gateway: Running, fields: Any, expected: bool | None) -> None:
    gateway.post(CHAT, chat(**fields))
    assert gateway.upstream.asked[0].arguments.get("reasoning") is expected


@pytest.mark.parametrize(("num_top", "asked"), [(None, 1), (0, 1), (2, 2)])
def test_log_probabilities_have_the_shape_of_openai(
    gateway: Running, num_top: int | None, asked: int
) -> None:
    gateway.upstream.outputs["query"] = {"answer": "é", "logprobs": LOGPROBS}
    body = chat(logprobs=True, top_logprobs=num_top)
    _, answer, _ = gateway.post(CHAT, body)
    logprobs = answer["choices"][0]["logprobs"]
    top = [
        {"token": "é", "logprob": -0.5, "bytes": [195, 169]},
        {"token": "\ufffd", "logprob": -1.5, "bytes": [195]},
    ]
    assert logprobs == {"content": [{**top[0], "top_logprobs": top[: num_top or 0]}], "refusal": None}
    assert gateway.upstream.asked[0].settings.logprobs == asked


@pytest.mark.parametrize("in_chunk", [True, False])
def test_a_token_is_told_with_its_text_or_at_the_end(gateway: Running, in_chunk: bool) -> None:
    async def script(request: Request) -> AsyncIterator[Chunk]:
        yield Chunk("é", 1, logprobs=tuple(LOGPROBS) if in_chunk else ())

    gateway.upstream.scripts = [script]
    gateway.upstream.outputs["query"] = {"answer": "é", "logprobs": LOGPROBS}
    events = gateway.events(CHAT, chat(logprobs=True, stream=True))
    told = [event["choices"][0]["logprobs"] for event in events[:-1]]
    assert [one and len(one["content"]) for one in told] == [None, *([1, None] if in_chunk else [None, 1])]


@pytest.mark.parametrize(("reason", "told"), [("length", "length"), ("cancelled", "length")])
def test_an_answer_that_is_not_whole_says_so(gateway: Running, reason: FinishReason, told: str) -> None:
    gateway.upstream.finish_reason = reason
    _, answer, _ = gateway.post(CHAT, chat())
    assert answer["choices"][0]["finish_reason"] == told
    events = gateway.events(CHAT, chat(stream=True))
    assert events[-2]["choices"][0]["finish_reason"] == told


@pytest.mark.parametrize("stream", [False, True])
def test_an_error_before_the_first_chunk_keeps_its_status(gateway: Running, stream: bool) -> None:
    gateway.upstream.scripts = [failing(Overloaded("full"))]
    status, answer, headers = gateway.post(CHAT, chat(stream=stream))
    assert (status, answer["error"]["type"], headers["retry-after"]) == (429, "rate_limit_error", "1")


def test_an_error_in_mid_stream_is_the_last_event_and_nothing_is_done(gateway: Running) -> None:
    gateway.upstream.scripts = [failing(EngineFailed("broken"), after=2)]
    events = gateway.events(CHAT, chat(stream=True))
    assert events[-1]["error"]["code"] == "engine_failed"
    assert [len(event.get("choices", [])) for event in events] == [1, 1, 1, 0]


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_goes_is_cancelled(gateway: Running, stream: bool) -> None:
    gateway.upstream.scripts = [endless]
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=60)
    connection.request(
        "POST", CHAT, json.dumps(chat(stream=stream)).encode(), {"Content-Type": "application/json"}
    )
    while not gateway.upstream.answers:
        pass
    if stream:
        connection.getresponse().read1()
    connection.close()
    assert gateway.upstream.answers[0].is_cancelled.wait(60)


def test_a_cache_key_salts_what_is_shared(gateway: Running) -> None:
    gateway.post(CHAT, chat(prompt_cache_key="tenant-1"))
    assert gateway.upstream.asked[0].cache_salt == "tenant-1"


def test_an_adapter_is_named_behind_the_model(gateway: Running) -> None:
    _, answer, _ = gateway.post(CHAT, {**chat(), "model": "moondream/a@1"})
    assert gateway.upstream.asked[0].settings.adapter == "a@1"
    assert answer["model"] == "moondream-tiny/a@1"


def test_what_others_send_and_means_nothing_here_is_taken(gateway: Running) -> None:
    fields: dict[str, Any] = {
        "user": "u",
        "metadata": {"a": "b"},
        "store": True,
        "service_tier": "auto",
        "safety_identifier": "s",
        "parallel_tool_calls": True,
        "verbosity": "low",
        "n": 1,
        "presence_penalty": 0,
        "frequency_penalty": 0.0,
        "tools": [],
        "tool_choice": "auto",
        "logit_bias": {},
        "modalities": ["text"],
        "response_format": {"type": "text"},
        "ignore_eos": False,
        "min_tokens": 0,
        "audio": None,
    }
    status, answer, _ = gateway.post(CHAT, chat(**fields))
    assert status == 200, answer
