"""Slash commands in a chat: the skill's document as the content."""

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest
from gateway_server import OUTPUTS, Running, running

CHAT = "/v1/chat/completions"
URL = f"data:image/png;base64,{base64.b64encode(b'picture').decode()}"


@pytest.fixture
def gateway() -> Iterator[Running]:
    with running() as it:
        yield it


def chat(text: str, **fields: Any) -> dict[str, Any]:
    content = [{"type": "image_url", "image_url": URL}, {"type": "text", "text": text}]
    return {"model": "moondream", "messages": [{"role": "user", "content": content}], **fields}


def content(gateway: Running, body: Any) -> Any:
    status, answer, _ = gateway.post(CHAT, body)
    assert status == 200, answer
    return answer["choices"][0]["message"]["content"]


@pytest.mark.parametrize(
    ("text", "skill", "arguments"),
    [
        ('/detect {"object": "cat"}', "detect", {"object": "cat"}),
        (' /point{"object":"cat"}\n', "point", {"object": "cat"}),
        ('/segment\n{"object": "cat"}', "segment", {"object": "cat"}),
        ('/caption {"length": "short"}', "caption", {"length": "short"}),
        ("/caption", "caption", {}),
    ],
)
def test_a_command_runs_its_skill_and_gives_its_document(
    gateway: Running, text: str, skill: str, arguments: dict[str, Any]
) -> None:
    document = json.loads(content(gateway, chat(text)))
    [asked] = gateway.upstream.asked
    assert (asked.skill, asked.arguments, asked.image) == (skill, arguments, b"picture")
    assert OUTPUTS[skill].items() <= document.items()
    assert not document.keys() & {"request_id", "metrics", "finish_reason"}


def test_settings_stand_in_the_command_or_beside_it(gateway: Running) -> None:
    body = chat('/detect {"object": "cat", "max_objects": 3, "temperature": 0.5}', temperature=1, seed=4)
    content(gateway, {**body, "max_tokens": 100})
    settings = gateway.upstream.asked[0].settings
    assert (settings.max_objects, settings.temperature, settings.seed) == (3, 0.5, 4)
    assert settings.max_tokens is None  # it would cut the JSON; max_objects is the limit of detect


def test_a_streamed_command_gives_its_document_in_one_chunk(gateway: Running) -> None:
    events = gateway.events(CHAT, chat('/point {"object": "cat"}', stream=True))
    assert events.pop() == "[DONE]"
    texts = [event["choices"][0]["delta"].get("content") for event in events]
    assert [json.loads(text) for text in texts if text] == [OUTPUTS["point"]]
    assert not gateway.upstream.asked[0].stream


@pytest.mark.parametrize(
    "text",
    [
        "/detection",
        "/describe {}",
        "detect /detect {}",
        "/ detect {}",
        "//detect {}",
        "/query what",
        "/query {}",
    ],
)
def test_another_word_is_plain_text(gateway: Running, text: str) -> None:
    assert content(gateway, chat(text)) == "a red circle"
    assert gateway.upstream.asked[0].arguments == {"question": text}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("/detect cat", 'after /detect stands "cat"; it must be a JSON object'),
        ('/detect {"object": "cat"} please', "it must be a JSON object"),
        ('/detect ["cat"]', "it must be a JSON object"),
        ('/point {"object": "cat", "image_url": "x"}', "image_url is no argument of /point"),
        ('/point {"object": "cat", "priority": -10}', "priority is no argument of /point"),
        ('/caption {"temperature": -1}', "TEMPERATURE"),
    ],
)
def test_a_command_that_cannot_be_read_is_refused(gateway: Running, text: str, words: str) -> None:
    status, answer, _ = gateway.post(CHAT, chat(text))
    assert (status, answer["error"]["param"]) == (400, "messages[0].content")
    assert words in answer["error"]["message"]
