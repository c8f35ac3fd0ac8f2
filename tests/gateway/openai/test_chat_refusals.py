"""What a chat refuses, each by the name of its field."""

from collections.abc import Iterator
from typing import Any

import pytest
from gateway_server import Running, running

CHAT = "/v1/chat/completions"
URL = "data:image/png;base64,AAAA"
PICTURE = {"type": "image_url", "image_url": {"url": URL}}
TEXT = {"type": "text", "text": "What?"}


@pytest.fixture(scope="module")
def gateway() -> Iterator[Running]:
    with running() as it:
        yield it


def refusal(gateway: Running, body: Any) -> tuple[str, str]:
    """The named field and the text of a 400."""
    status, answer, _ = gateway.post(CHAT, body)
    assert (status, answer["error"]["type"]) == (400, "invalid_request_error"), answer
    assert gateway.upstream.asked == []
    return answer["error"]["param"], answer["error"]["message"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("n", 2),
        ("n", 10**30),
        ("presence_penalty", 0.5),
        ("frequency_penalty", -1),
        ("repetition_penalty", 1.1),
        ("min_tokens", 5),
        ("ignore_eos", True),
        ("response_format", {"type": "json_object"}),
        ("response_format", {"type": "json_schema", "json_schema": {"name": "x", "schema": {}}}),
        ("tools", [{"type": "function", "function": {"name": "f"}}]),
        ("tool_choice", "required"),
        ("functions", [{"name": "f"}]),
        ("function_call", {"name": "f"}),
        ("logit_bias", {"5": 100}),
        ("modalities", ["text", "audio"]),
        ("audio", {"voice": "alloy"}),
        ("prediction", {"type": "content", "content": "x"}),
        ("web_search_options", {}),
        ("moderation", {}),
    ],
)
def test_what_is_not_served_is_refused_by_its_name(gateway: Running, field: str, value: Any) -> None:
    param, text = refusal(gateway, chat(**{field: value}))
    assert param == field
    assert text.startswith(f"{field} is not served here; leave it out")


@pytest.mark.parametrize(
    ("fields", "param", "words"),
    [
        ({"temperature": 2.5}, "temperature", "<= 2"),
        ({"temperature": "hot"}, "temperature", "got str"),
        ({"top_p": -0.1}, "top_p", ">= 0"),
        ({"top_k": -1}, "top_k", ">= 0"),
        ({"max_tokens": 0}, "max_tokens", ">= 1"),
        ({"max_completion_tokens": 1.5}, "max_completion_tokens", "got float"),
        ({"max_tokens": 5, "max_completion_tokens": 6}, "max_tokens", "send one of them"),
        ({"seed": 2**63}, "seed", "<= 9223372036854775807"),
        ({"stop": ["a", "b", "c", "d", "e"]}, "stop", "up to 4"),
        ({"stop": ["a", ""]}, "stop[1]", "length >= 1"),
        ({"logprobs": 1}, "logprobs", "got int"),
        ({"logprobs": True, "top_logprobs": 21}, "top_logprobs", "<= 20"),
        ({"top_logprobs": 5}, "top_logprobs", "needs logprobs"),
        ({"stream": "yes"}, "stream", "got str"),
        ({"stream_options": {"include_usage": True}}, "stream_options", "needs stream"),
        ({"reasoning": "yes"}, "reasoning", "got str"),
        ({"reasoning_effort": "huge"}, "reasoning_effort", "huge"),
        ({"reasoning": False, "reasoning_effort": "low"}, "reasoning", "disagree"),
        ({"prompt_cache_key": 5}, "prompt_cache_key", "got int"),
        ({"temprature": 1}, "temprature", "did you mean temperature?"),
        ({"top_p" * 300_000: 1}, "top_p" * 15 + "to...", "there is no field"),
        ({"model": None}, "model", "got null"),
        ({"model": ""}, "model", "length >= 1"),
        ({"model": 5}, "model", "got int"),
        ({"messages": []}, "messages", "length >= 1"),
        ({"messages": "hi"}, "messages", "got str"),
        ({"messages": [5]}, "messages[0]", "got int"),
    ],
)
def test_a_wrong_value_is_named_with_what_it_can_be(
    gateway: Running, fields: dict[str, Any], param: str, words: str
) -> None:
    found, text = refusal(gateway, chat(**fields))
    assert found == param
    assert param in text and words in text


@pytest.mark.parametrize(
    ("message", "param", "words"),
    [
        ({"content": "a"}, "messages[0].role", "required"),
        ({"role": "tool", "content": "a"}, "messages[0].role", "tools are not served"),
        ({"role": "user"}, "messages[0].content", "no text"),
        ({"role": "user", "content": 5}, "messages[0].content", "got int"),
        ({"role": "user", "content": [PICTURE]}, "messages[0].content", "no text"),
        ({"role": "user", "content": [TEXT, PICTURE, PICTURE]}, "messages[0].content[1]", "leave all but"),
        (
            {"role": "user", "content": [TEXT, {"type": "input_audio"}]},
            "messages[0].content[1].type",
            "text or image_url",
        ),
        ({"role": "x - at `$.y`", "content": "a"}, "messages[0].role", "x - at $.y"),
        (
            {"role": "user", "content": [TEXT, {"type": "image_url"}]},
            "messages[0].content[1].image_url",
            "required",
        ),
        (
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": 5}}]},
            "messages[0].content[0].image_url.url",
            "got int",
        ),
        (
            {"role": "user", "content": [TEXT, {"type": "image_url", "image_url": "https://a/b.png"}]},
            "messages[0].content[1].image_url",
            "address",
        ),
        (
            {"role": "assistant", "content": "", "tool_calls": [{"id": "1"}]},
            "messages[0].tool_calls",
            "tools are not served",
        ),
        ({"role": "user", "content": "a", "weight": 1}, "messages[0].weight", "no such field"),
        ({"role": "assistant", "content": "a"}, "messages", "must end with what the user says"),
    ],
)
def test_a_wrong_message_is_named_by_its_place(
    gateway: Running, message: Any, param: str, words: str
) -> None:
    found, text = refusal(gateway, chat(messages=[message]))
    assert found == param
    assert words in text


def test_a_picture_of_an_earlier_turn_is_refused_if_there_is_a_later_one(gateway: Running) -> None:
    messages = [{"role": "user", "content": [PICTURE, TEXT]}, {"role": "user", "content": [PICTURE, TEXT]}]
    param, text = refusal(gateway, chat(messages=messages))
    assert param == "messages[0].content[0]"
    assert "so is messages[1].content[0]" in text


def test_a_model_has_to_be_named(gateway: Running) -> None:
    body = chat()
    del body["model"]
    assert refusal(gateway, body) == ("model", "model: it is required")


def test_another_model_is_not_found(gateway: Running) -> None:
    status, answer, _ = gateway.post(CHAT, chat(model="gpt"))
    error = answer["error"]
    assert (status, error["code"], error["param"]) == (404, "model_not_found", "model")


def chat(**fields: Any) -> dict[str, Any]:
    return {"model": "moondream", "messages": [{"role": "user", "content": "What?"}], **fields}
