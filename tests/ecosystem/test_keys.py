"""Keys and their limits, as OpenAI's and Moondream's clients meet them."""

from typing import Any

import pytest
from other_clients import Drive

pytestmark = [pytest.mark.ecosystem, pytest.mark.triton]


@pytest.fixture(scope="module", params=["python", "node"])
def told(request: pytest.FixtureRequest, drive: Drive, keyed: str) -> Any:
    keys = ("free-key", "narrow-key", f"rare-{request.param}-key")
    if request.param == "python":
        return drive("clients", "keys_python.py", keyed, *keys)
    return drive("node", "keys_node.cjs", keyed, *keys)


def test_a_key_lets_in(told: Any) -> None:
    assert told["free"] == {"error": None}
    assert told["narrow"] == {"error": None}
    assert told["moondream"] == 200


def test_a_wrong_key_is_an_authentication_error(told: Any) -> None:
    assert (told["wrong"]["error"], told["wrong"]["status"]) == ("AuthenticationError", 401)
    assert told["moondream_wrong"] == 401


def test_no_key_is_refused_like_an_empty_one(told: Any) -> None:
    assert told["moondream_none"] == 401


def test_a_skill_beyond_the_key_is_a_permission_error(told: Any) -> None:
    refusal = told["not_for_narrow"]
    assert (refusal["error"], refusal["status"]) == ("PermissionDeniedError", 403)


def test_too_many_requests_are_a_rate_limit_error(told: Any) -> None:
    first, second = told["rare"]
    assert first == {"error": None}
    assert (second["error"], second["status"]) == ("RateLimitError", 429)
    assert 1 <= int(second["retry_after"]) <= 60
