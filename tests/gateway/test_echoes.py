"""What a refusal repeats of a request: little of it, and nothing that steers a terminal or a log."""

from collections.abc import Iterator
from typing import Any

import pytest
from gateway_server import FakeAnswer, FakeUpstream, Running, running

from kestrel_core.protocol.fields import INPUTS
from kestrel_core.protocol.limits import InputLimits
from kestrel_core.protocol.messages import Request
from kestrel_core.skills.registry import builtin_skills

LONG = "\x1b[2J\r\n\u202e\u2028" + "x" * 100_000
SHORT = LONG[:60]
FIELDS = [*(field.key for field in INPUTS), "settings", "model", "variant", "image_url", LONG, SHORT]
OPENAI = [
    "model",
    "messages",
    "input",
    "prompt",
    "tools",
    "tool_choice",
    "response_format",
    "stop",
    "user",
    "n",
    "reasoning_effort",
    "prompt_cache_key",
    "stream",
    "temperature",
    LONG,
    SHORT,
]


class Checking(FakeUpstream):
    """Refuses what a server would refuse."""

    async def open(self, request: Request) -> FakeAnswer:
        builtin_skills().check(request)
        return await super().open(request)


@pytest.fixture(scope="module")
def gateway() -> Iterator[Running]:
    with running(Checking()) as it:
        yield it


def values(text: str) -> list[Any]:
    return [text, [text], {text: 1}, [{"role": text, "content": text}]]


def check(status: int, document: Any) -> None:
    if status == 200:
        return
    assert 400 <= status < 500, document
    error = document["error"]
    assert len(error["message"]) < 1500 and error["message"].isprintable(), error["message"][:2000]
    param = error["param"] or ""
    assert len(param) < 200 and param.isprintable(), param[:300]


@pytest.mark.parametrize("text", [LONG, SHORT], ids=["long", "short"])
@pytest.mark.parametrize("name", FIELDS, ids=lambda name: ascii(name[:20]))
def test_of_a_field_of_rest(gateway: Running, name: str, text: str) -> None:
    for value in values(text):
        check(*gateway.post("/v1/query", {"question": "what?", name: value})[:2])
        check(*gateway.post("/v1/query", {"question": "what?", "settings": {name: value}})[:2])
    check(*gateway.post("/v1/detect", {"object": "cat", "image_url": text, name: text})[:2])


@pytest.mark.parametrize("name", OPENAI, ids=lambda name: ascii(name[:20]))
def test_of_a_field_of_openai_s(gateway: Running, name: str) -> None:
    bodies = {
        "/v1/chat/completions": {"model": "moondream", "messages": [{"role": "user", "content": "what?"}]},
        "/v1/responses": {"model": "moondream", "input": "what?"},
        "/v1/completions": {"model": "moondream", "prompt": "what?"},
    }
    for path, body in bodies.items():
        for value in (*values(LONG), *values(SHORT)):
            check(*gateway.post(path, {**body, name: value})[:2])


@pytest.mark.parametrize("text", [LONG, SHORT], ids=["long", "short"])
def test_of_a_command_in_a_chat(gateway: Running, text: str) -> None:
    for content in (f"/detect {text}", f'/detect {{"object": {text!r}}}', f"/{text}"):
        body = {"model": "moondream", "messages": [{"role": "user", "content": content}]}
        check(*gateway.post("/v1/chat/completions", body)[:2])


def test_an_integer_that_its_tensor_cannot_hold_is_refused_by_name(gateway: Running) -> None:
    for name in ("max_tokens", "max_objects", "top_k"):
        status, document, _ = gateway.post("/v1/query", {"question": "what?", name: 2**32 + 5})
        assert status == 400 and f"{name.upper()} is 4294967301" in document["error"]["message"]


def test_the_operator_s_limits_of_inputs_hold_before_a_server_is_asked() -> None:
    with running(inputs=InputLimits.parse("question=5")) as gateway:
        status, document, _ = gateway.post("/v1/query", {"question": "longer"})
        assert status == 413 and "more than 5 bytes" in document["error"]["message"]
        assert "(input_limits)" in document["error"]["message"] and not gateway.upstream.asked


@pytest.mark.parametrize("own", [{"a" * 70_000: 1}, {"colour": "a" * 70_000}, {"colours": ["a" * 70] * 1000}])
def test_arguments_of_no_known_name_have_a_limit_too(gateway: Running, own: dict[str, Any]) -> None:
    num_asked = len(gateway.upstream.asked)
    status, document, _ = gateway.post("/v1/query", {"question": "what?", **own})
    assert status == 413 and "ARGUMENTS has more than 65,536 bytes" in document["error"]["message"]
    assert len(gateway.upstream.asked) == num_asked
