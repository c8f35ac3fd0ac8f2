"""A caller's settings: every value within its limits, and told by name when it is not."""

from typing import Any

import pytest

from kestrel_core.protocol.errors import InvalidRequest
from kestrel_core.protocol.messages import Settings, parse_settings


def test_nothing_given_is_the_models_default() -> None:
    assert parse_settings(None) == parse_settings({}) == parse_settings({"seed": None}) == Settings()


def test_every_setting_of_the_contract_is_taken() -> None:
    given = {
        "temperature": 1,
        "top_p": 0.5,
        "top_k": 7,
        "max_tokens": 9,
        "max_objects": 3,
        "adapter": "mine",
        "seed": -(2**63),
        "stop": ["a", "b"],
        "logprobs": 20,
    }
    settings = parse_settings(given)
    assert settings == Settings(1.0, 0.5, 7, 9, 3, "mine", -(2**63), ("a", "b"), 20)
    assert isinstance(settings.temperature, float)


def test_one_stop_string_needs_no_list() -> None:
    assert parse_settings({"stop": "###"}).stop == ("###",)
    assert parse_settings({"stop": ("a", "b")}).stop == ("a", "b")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"temprature": 1}, 'there is no setting "temprature"; did you mean temperature'),
        ({"temperature": -0.1}, "TEMPERATURE is -0.1; it can be from 0 to 100"),
        ({"temperature": float("nan")}, "TEMPERATURE is nan"),
        ({"temperature": float("inf")}, "TEMPERATURE is inf"),
        ({"temperature": "hot"}, "TEMPERATURE is 'hot'; it must be a number"),
        ({"temperature": True}, "TEMPERATURE is True; it must be a number"),
        ({"top_p": 1.01}, "TOP_P is 1.01; it can be from 0 to 1"),
        ({"top_k": -1}, "TOP_K is -1"),
        ({"max_tokens": 0}, "MAX_TOKENS is 0; it can be from 1"),
        ({"max_tokens": 1.5}, "MAX_TOKENS is 1.5; it must be an integer"),
        ({"max_objects": 2**31}, "MAX_OBJECTS is 2147483648"),
        ({"seed": 2**63}, "SEED is 9223372036854775808"),
        ({"seed": 10**400}, "SEED is 1000"),
        ({"logprobs": 21}, "LOGPROBS is 21; it can be from 0 to 20"),
        ({"adapter": 7}, "ADAPTER is 7; it must be a string"),
        ({"stop": ["a"] * 17}, "STOP has 17 entries; at most 16"),
        ({"stop": [""]}, "STOP has an empty string"),
        ({"stop": ["x" * 1025]}, "STOP has more than 1,024 bytes"),
        ({"stop": ["a", 1]}, "STOP is 1; it must be a string"),
        ({"stop": 5}, "STOP is 5; it must be a list"),
        ({"max_new_tokens": 3}, "max_new_tokens is called max_tokens now"),
        ({"max_points": 3}, "max_points is called max_objects now"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_by_name(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        parse_settings(settings)


def test_settings_stay_as_they_were_parsed() -> None:
    stops = ["a"]
    settings = parse_settings({"stop": stops})
    stops.append("b")
    assert settings.stop == ("a",)
