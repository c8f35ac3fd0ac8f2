"""OpenAI's paths in front of a real Triton: what is streamed, told and counted fits together."""

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest
from gateway_server import Running, running
from triton_server import picture

from kestrel_client import AsyncClient
from kestrel_core.protocol.asking import AnswerStream, AsyncCalls
from kestrel_core.protocol.messages import Request

pytestmark = pytest.mark.triton

CHAT = "/v1/chat/completions"
URL = f"data:image/png;base64,{base64.b64encode(picture()).decode()}"


class LateClient(AsyncCalls):
    """A client that is made where it is used: it belongs to the loop of the gateway's thread."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._client: AsyncClient | None = None

    async def open(self, request: Request) -> AnswerStream[Any]:
        self._client = self._client or AsyncClient(self._url)
        return await self._client.open(request)


@pytest.fixture(scope="module")
def gateway(server: Any) -> Iterator[Running]:
    with running(LateClient(f"127.0.0.1:{server.grpc_port}")) as it:
        yield it


def chat(text: str, **fields: Any) -> dict[str, Any]:
    content = [{"type": "image_url", "image_url": {"url": URL}}, {"type": "text", "text": text}]
    messages = [{"role": "user", "content": content}]
    return {"model": "moondream", "messages": messages, "temperature": 0, **fields}


def test_a_stream_is_the_whole_in_pieces_with_its_log_probabilities(gateway: Running) -> None:
    body = chat("What is this?", max_tokens=12, logprobs=True, top_logprobs=2)
    status, whole, _ = gateway.post(CHAT, body)
    assert status == 200, whole
    choice = whole["choices"][0]
    options = {"include_usage": True}
    *events, told, done = gateway.events(CHAT, {**body, "stream": True, "stream_options": options})
    deltas = [event["choices"][0] for event in events]
    assert "".join(delta["delta"].get("content") or "" for delta in deltas) == choice["message"]["content"]
    items = [item for delta in deltas for item in (delta["logprobs"] or {"content": []})["content"]]
    # The second request finds the first one's prefix, so its numbers may differ in the last digits.
    whole_items = choice["logprobs"]["content"]
    assert [item["bytes"] for item in items] == [item["bytes"] for item in whole_items] != []
    assert [item["logprob"] for item in items] == pytest.approx(
        [item["logprob"] for item in whole_items], rel=1e-3
    )
    assert told["usage"]["completion_tokens"] == whole["usage"]["completion_tokens"]
    assert told["usage"]["prompt_tokens_details"]["image_tokens"] > 0
    assert done == "[DONE]"


def test_a_command_gives_what_the_skill_gives(gateway: Running) -> None:
    _, direct, _ = gateway.post("/v1/detect", {"image_url": URL, "object": "cat"})
    status, answer, _ = gateway.post(CHAT, chat('/detect {"object": "cat"}'))
    assert status == 200, answer
    assert json.loads(answer["choices"][0]["message"]["content"]) == {"objects": direct["objects"]}


def test_a_response_says_what_a_chat_says(gateway: Running) -> None:
    _, talk, _ = gateway.post(CHAT, chat("What?", max_tokens=8))
    parts = [{"type": "input_image", "image_url": URL}, {"type": "input_text", "text": "What?"}]
    body = {"model": "moondream", "input": [{"role": "user", "content": parts}], "temperature": 0}
    events = gateway.events("/v1/responses", {**body, "max_output_tokens": 8, "stream": True})
    [item] = events[-1]["response"]["output"]
    assert item["content"][0]["text"] == talk["choices"][0]["message"]["content"]
