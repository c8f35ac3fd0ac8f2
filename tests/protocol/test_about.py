"""What a server says of itself: the same thing after it has travelled, and what asks for it."""

import json
from dataclasses import replace

import pytest
from fake_runtime import LANGUAGE

from kestrel_core.protocol.about import ABOUT, About, about_of
from kestrel_core.protocol.arguments import Argument
from kestrel_core.protocol.errors import EngineFailed, InvalidRequest
from kestrel_core.protocol.messages import EngineResult, Finished, Request, Settings
from kestrel_core.protocol.wire import decode_response, encode_result
from kestrel_core.skills.registry import SkillRegistry, builtin_skills
from kestrel_core.skills.text import CaptionSkill


def about(*arguments: Argument) -> About:
    """Of a server with the built-in skills, and of one skill that takes `arguments`."""
    skills = [skill.about(LANGUAGE) for skill in builtin_skills()]
    own = replace(skills[0], name="own", arguments=arguments)
    return About("moondream-tiny", "1.2", 2048, (*skills, own), ("org/one",))


def travelled(sent: About) -> About:
    finished = sent.answer(Request(ABOUT, request_id="7"))
    received = decode_response(encode_result(finished.result))
    assert isinstance(received, Finished) and received.result.request_id == "7"
    assert received.result.metrics.output_tokens == 0
    return about_of(received.result)


@pytest.mark.parametrize(
    "argument",
    [
        Argument("colour", str, "a colour", "red", choices=("red", "blue"), max_bytes=9),
        Argument("least", int, required=True, least=0, most=7),
        Argument("share", float, default=0.5),
        Argument("boxes", list, max_items=3),
        Argument("flags", dict, default={"a": [1, None]}),
        Argument("loud", bool),
    ],
)
def test_an_argument_that_has_travelled_checks_as_before(argument: Argument) -> None:
    assert travelled(about(argument)) == about(argument)


def test_what_json_has_no_word_for_is_left_to_the_server() -> None:
    strange = Argument("when", complex, default=1j)
    [received] = travelled(about(strange)).skills[-1].arguments
    assert received.check(1j) == 1j and received.check("x") == "x" and received.default is None


def test_a_skill_that_the_model_does_not_know_is_listed_as_such() -> None:
    supported = {skill.name: skill.supported for skill in about().skills}
    assert supported["query"] and not supported["segment"], "this model has no template for it"
    assert "tokens" not in supported, "it is hidden"


@pytest.mark.parametrize(
    "request_",
    [
        Request(ABOUT, {"question": "who?"}),
        Request(ABOUT, image=b"x"),
        Request(ABOUT, settings=Settings(0.5)),
    ],
)
def test_about_takes_nothing_else(request_: Request) -> None:
    with pytest.raises(InvalidRequest, match="nothing but SKILL"):
        about().answer(request_)


def test_no_skill_can_be_called_about() -> None:
    class Mine(CaptionSkill):
        name = ABOUT

    with pytest.raises(InvalidRequest, match="rename it"):
        SkillRegistry([Mine()])


@pytest.mark.parametrize("wrong", [None, [], {"model": "x"}, about().to_json() | {"skills": [{}]}])
def test_what_is_not_the_contract_s_is_an_error_of_the_server(wrong: object) -> None:
    usage = about().answer(Request(ABOUT)).result.metrics
    with pytest.raises(EngineFailed, match="not the contract's"):
        about_of(EngineResult("", "stop", {"about": json.loads(json.dumps(wrong))}, usage))
