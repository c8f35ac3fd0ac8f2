"""Numbers and sizes at the edges, at Triton's own ports: what we refuse, and what Triton does first."""

from typing import Any

import pytest
from triton_server import Served, refusal

pytestmark = pytest.mark.triton

QUERY: dict[str, Any] = {"SKILL": "query", "QUESTION": "what?", "TEMPERATURE": 0.0, "MAX_TOKENS": 3}


def test_a_timeout_below_zero_is_refused_over_grpc(server: Served) -> None:
    [answer] = server.ask_all([QUERY | {"timeout_us": -1}])
    assert isinstance(answer, Exception) and "timeout is" in refusal(answer)


def test_triton_itself_wraps_an_integer_that_is_too_large_over_http(server: Served) -> None:
    """Its JSON parser makes 2**32 + 5 a 5 before our model sees it. The gateway and its guard refuse it."""
    status, answer = server.post(QUERY | {"MAX_TOKENS": 2**32 + 5})
    assert status == 200 and answer["metrics"]["output_tokens"] <= 5


@pytest.mark.parametrize("temperature", [1e-45, 1e-40, 1e-38])
def test_a_temperature_next_to_zero_is_greedy(server: Served, temperature: float) -> None:
    asked = QUERY | {"MAX_TOKENS": 20}
    greedy, cold = server.ask(**asked)[0], server.ask(**asked | {"TEMPERATURE": temperature})[0]
    assert cold["answer"] == greedy["answer"]


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"QUESTION": "x" * 2**23}, "QUESTION has 8,388,608 bytes and the limit is 65,536 (input_limits)"),
        ({"STOP": ["x"] * 10_000}, "STOP has 10,000 strings; at most 16 are taken (input_limits)"),
        ({"QUESTION": "x " * 2**15}, "max_context is 4,096"),
    ],
)
def test_texts_that_are_too_long_are_refused_by_name(
    server: Served, inputs: dict[str, Any], said: str
) -> None:
    [answer] = server.ask_all([QUERY | inputs])
    assert isinstance(answer, Exception) and said in refusal(answer)
