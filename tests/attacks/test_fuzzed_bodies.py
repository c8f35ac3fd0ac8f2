"""Bodies nobody thought of, for every path that reads one: an answer or a refusal in words, never a 500.

Hypothesis draws the same ones each time. The marker `attacks` draws more of them.
"""

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from attacks.fuzzing import draw
from gateway_server import FakeUpstream, Running, running
from hypothesis import strategies as st

from kestrel_core.protocol.fields import BY_NAME

FEW, MANY = 60, 6_000
PATHS = (
    *(f"/v1/{skill}" for skill in ("query", "caption", "detect", "point", "segment")),
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/responses",
)
NAMES = st.sampled_from(
    (
        *(field.key for field in BY_NAME.values()),
        *("image_url", "settings", "model", "messages", "content", "role", "type", "text", "url", "input"),
        *(
            "prompt",
            "stream_options",
            "response_format",
            "tools",
            "n",
            "stop",
            "logit_bias",
            "max_output_tokens",
        ),
        *("timeout", "cache_salt", "variant", "prompt_cache_key", "instructions", "user", "", "\0"),
    )
)
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=30),
    st.sampled_from(
        (
            "user",
            "assistant",
            "system",
            "image_url",
            "text",
            "/detect {}",
            "data:image/png;base64,",
            "moondream",
        )
    ),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=5),
    max_leaves=25,
)
BODIES = st.dictionaries(NAMES, VALUES, max_size=7)
SOUND: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"model": "moondream", "messages": [{"role": "user", "content": "What?"}]},
    "/v1/completions": {"model": "moondream", "prompt": "What?"},
    "/v1/responses": {"model": "moondream", "input": "What?"},
}


@pytest.fixture(scope="module")
def gateway() -> Iterator[Running]:
    with running(FakeUpstream()) as it:
        it.call_model("moondream")
        yield it


def check(gateway: Running, path: str, body: bytes) -> None:
    status, answer, _ = gateway.post(path, body)
    assert status == 200 or 400 <= status < 500, (status, answer)
    if status != 200:
        assert answer["error"].keys() == {"message", "type", "param", "code"}
        assert answer["error"]["message"].isprintable() and len(answer["error"]["message"]) < 600
    gateway.upstream.asked.clear()
    gateway.upstream.answers.clear()


def values_of(gateway: Running, path: str, fields: dict[str, Any]) -> None:
    """Beside fields that are right, so that more than the first check is reached."""
    sound = SOUND.get(path, {"question": "What?", "object": "cat"})
    for body in (fields, sound | fields):
        check(gateway, path, json.dumps(body).encode())


def broken(gateway: Running, path: str, at: int, other: bytes) -> None:
    """JSON with some of its bytes replaced."""
    body = json.dumps(SOUND.get(path, {"question": "What?", "settings": {"stop": ["a"]}})).encode()
    at %= len(body)
    check(gateway, path, body[:at] + other + body[at + len(other) :])


ANY_PATH, OTHER_BYTES = st.sampled_from(PATHS), st.binary(min_size=1, max_size=6)


def draw_values(gateway: Running, number: int) -> None:
    draw(number, partial(values_of, gateway), ANY_PATH, BODIES)


def draw_damage(gateway: Running, number: int) -> None:
    draw(number, partial(broken, gateway), ANY_PATH, st.integers(0, 1000), OTHER_BYTES)


def test_whatever_a_field_holds_is_answered_or_refused(gateway: Running) -> None:
    draw_values(gateway, FEW)


def test_json_that_was_damaged_is_answered_or_refused(gateway: Running) -> None:
    draw_damage(gateway, FEW)


@pytest.mark.attacks
def test_so_are_thousands_of_bodies(gateway: Running) -> None:
    draw_values(gateway, MANY)
    draw_damage(gateway, MANY)
