"""Limits of inputs: one list with defaults, changed by one setting, kept on every way in."""

from typing import Any

import numpy as np
import pytest
from fake_runtime import LANGUAGE
from fakes import FakeEngine

from kestrel_core.protocol.errors import InvalidRequest, KestrelError, TooLarge
from kestrel_core.protocol.fields import BY_NAME
from kestrel_core.protocol.limits import InputLimits
from kestrel_core.protocol.messages import Request, Settings
from kestrel_core.protocol.wire import decode_request
from kestrel_core.skills.registry import builtin_skills

CHANGED = InputLimits.parse(
    "question=70000, object=5,stop=2,stop_bytes=3,spatial_refs=1,max_tokens=9,priority=2"
)


def decode(limits: InputLimits, **inputs: Any) -> Request:
    tensors = {
        name: np.array(value if isinstance(value, list) else [value], object)
        for name, value in inputs.items()
    }
    return decode_request({"SKILL": [b"query"]} | tensors, "1", limits=limits)


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"QUESTION": b"x" * 70_001}, "QUESTION has 70,001 bytes and the limit is 70,000 (input_limits)"),
        ({"OBJECT": b"x" * 6}, "OBJECT has 6 bytes and the limit is 5 (input_limits)"),
        ({"STOP": [b"a"] * 3}, "STOP has 3 strings; at most 2 are taken (input_limits)"),
        ({"STOP": [b"four"]}, "STOP has 4 bytes and the limit is 3 (input_limits)"),
        ({"SPATIAL_REFS": [[0.1, 0.2]] * 2}, "at most 1 rows of 2 or 4 numbers are taken (input_limits)"),
        ({"MAX_TOKENS": 10}, "MAX_TOKENS is 10; it can be from 1 to 9"),
        ({"PRIORITY": -3}, "PRIORITY is -3; it can be from -2 to 2"),
    ],
)
def test_changed_limits_hold_on_the_wire(inputs: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        decode(CHANGED, **inputs)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "request_",
    [
        Request("query", {"question": "x" * 70_001}),
        Request("detect", {"object": "x" * 6}, b"picture"),
        Request("query", {"question": "?"}, settings=Settings(stop=("a", "b", "c"))),
        Request("query", {"question": "?"}, settings=Settings(max_tokens=10)),
        Request("query", {"question": "?"}, priority=-(2**31)),
    ],
)
def test_changed_limits_hold_for_requests_made_in_python(request_: Request) -> None:
    with pytest.raises(InvalidRequest):
        builtin_skills().within(CHANGED).check(request_)


def test_a_raised_limit_lets_longer_texts_pass() -> None:
    question = "x" * 70_000
    assert builtin_skills().within(CHANGED).check(decode(CHANGED, QUESTION=question.encode())).name == "query"
    with pytest.raises(TooLarge, match="65,536"):
        decode(InputLimits(), QUESTION=question.encode())
    with pytest.raises(TooLarge, match="65,536"):
        builtin_skills().check(Request("query", {"question": question}))


def test_numbers_can_only_be_lowered() -> None:
    limits = InputLimits.parse("priority=1000,temperature=200")
    assert limits.of(BY_NAME["PRIORITY"].argument).range == "from -10 to 10"
    assert limits.of(BY_NAME["TEMPERATURE"].argument).most == 100.0


def answered(limits: str, skill: str) -> tuple[int, str]:
    """Tokens or objects of an answer to one who names no limit, and why it ended."""
    engine = FakeEngine(skills=builtin_skills().within(InputLimits.parse(limits)))
    is_text = skill == "query"
    heard = engine.ask(skill, **{"question": "go on"} if is_text else {"object": "c", "image": b"a picture"})
    engine.run_until_idle()
    result = heard.finished.result
    found = result.output.get("objects", result.output.get("points", ()))
    return (result.metrics.output_tokens if is_text else len(found)), result.finish_reason


@pytest.mark.parametrize(
    ("limits", "skill", "most"),
    [
        ("max_tokens=3", "query", 3),
        ("max_objects=1", "point", 1),
        ("max_objects=1", "detect", 1),
        ("max_tokens=0", "query", 1),
    ],
)
def test_a_limit_below_the_model_s_default_holds_for_one_who_names_none(
    limits: str, skill: str, most: int
) -> None:
    assert answered("", skill)[0] > most
    assert answered(limits, skill) == (most, "length")


def test_reasoning_and_sampling_are_held_to_limits_that_nobody_named() -> None:
    engine = FakeEngine(skills=builtin_skills().within(InputLimits.parse("max_tokens=3,temperature=0")))
    drawn = {"temperature": None}
    answers = [engine.ask(question="x", reasoning=True, settings=drawn) for _ in range(2)]
    engine.run_until_idle()
    assert answers[0].finished.result.metrics.reasoning_tokens == 3
    assert answers[0].output == answers[1].output


def test_a_limit_above_the_model_s_default_and_what_is_asked_for_change_nothing() -> None:
    skills = builtin_skills().within(
        InputLimits.parse("max_tokens=769,max_objects=150,temperature=1,question=9")
    )
    for settings in (Settings(), Settings(max_tokens=5, max_objects=2, temperature=0.1)):
        request = Request("query", {"question": "?", "reasoning": True}, settings=settings)
        assert skills.with_defaults(request, LANGUAGE).settings == settings


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("qestion=5", "did you mean question"),
        ("question", 'question=""'),
        ("question=-1", "number from 0 to 67,108,864"),
        ("stop=9" * 99, "number from 0 to"),
        ("seed=5", 'no "seed"'),
    ],
)
def test_what_cannot_be_a_limit_is_refused(text: str, said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        InputLimits.parse(text)


# What a refusal repeats

LONG = "\x1b[2J\r\n\u202e\u2028" + "x" * 100_000


def is_harmless(error: KestrelError) -> bool:
    return len(str(error)) < 1000 and str(error).isprintable()


@pytest.mark.parametrize("name", [*BY_NAME, LONG])
@pytest.mark.parametrize("skill", ["query", "detect", LONG])
@pytest.mark.parametrize("length", [90, 100_000])
def test_no_refusal_repeats_a_long_text_or_its_control_characters(name: str, skill: str, length: int) -> None:
    tensors: dict[str, Any] = {"SKILL": [skill[:length].encode()], name[:length]: [LONG[:length].encode()]}
    try:
        builtin_skills().check(decode_request(tensors, "1"))
    except KestrelError as error:
        assert is_harmless(error), str(error)[:2000]


@pytest.mark.parametrize(
    "parameters", [{LONG: "1"}, {"cache_salt": LONG}, {"timeout": LONG}, {"spatial_refs": LONG}]
)
def test_no_refusal_repeats_a_parameter(parameters: dict[str, str]) -> None:
    with pytest.raises(KestrelError) as caught:
        decode_request({"SKILL": ["query"]}, "1", 0, parameters)
    assert is_harmless(caught.value)


@pytest.mark.parametrize("timeout", [-1, 2**63, 2**64 - 1, float("nan"), float("inf"), True, "5"])
def test_a_timeout_that_is_none_is_refused(timeout: Any) -> None:
    with pytest.raises(InvalidRequest, match="timeout is"):
        decode_request(
            {"SKILL": ["query"]}, "1", timeout if isinstance(timeout, int) else 0, {"timeout": timeout}
        )
