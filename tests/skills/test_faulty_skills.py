"""Skills that cannot be loaded, and arguments that a skill cannot take: what is said about them."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fakes import FakeEngine

from kestrel_core.loop.sequence import Prompt, Reply
from kestrel_core.protocol.arguments import Argument
from kestrel_core.protocol.errors import InvalidRequest
from kestrel_core.protocol.messages import Request
from kestrel_core.skills import registry
from kestrel_core.skills.registry import builtin_skills, installed_skills
from kestrel_core.skills.spec import Language, SkillSpec
from kestrel_core.skills.text import TextReply


class Talk(SkillSpec):
    name = "talk"
    arguments = (
        Argument("loud", bool, required=True),
        Argument("weight", float),
        Argument("times", int, default=2, least=1, most=9),
    )
    image = "optional"

    def prompt(self, request: Request, language: Language) -> Prompt:
        return Prompt((1, 2, 3) * request.arguments["times"], False)

    def reply(self, request: Request, language: Language) -> Reply:
        return TextReply(request, language, "answer")


@pytest.mark.parametrize(
    ("code", "name", "said"),
    [
        ("def f(:", "f", "cannot be loaded: SyntaxError"),
        ("raise ZeroDivisionError('of its own')", "f", "cannot be loaded: ZeroDivisionError: of its own"),
        ("import no_such_module", "f", "No module named 'no_such_module'"),
        ("from kestrel_core import SkillSpec", "SkillSpec", "cannot be loaded: TypeError"),
        ("f = 1", "f", "which is no SkillSpec"),
        ("f = 1", "g", "has no g"),
    ],
)
def test_a_skill_that_cannot_be_loaded_is_one_sentence(
    tmp_path: Path, code: str, name: str, said: str
) -> None:
    file = tmp_path / "skills_of_a_test.py"
    file.write_text(code)
    with pytest.raises(InvalidRequest, match=said):
        installed_skills(f"{file}:{name}")


def test_an_entry_point_that_cannot_be_loaded_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def load() -> object:
        raise AttributeError("module has no Count")

    entry = SimpleNamespace(value="their.module:Count", load=load)
    monkeypatch.setattr(registry.metadata, "entry_points", lambda group: [entry])
    with pytest.raises(InvalidRequest, match=r'"their.module:Count", which cannot be loaded: AttributeError'):
        installed_skills()


def test_a_skill_without_a_name_is_refused(tmp_path: Path) -> None:
    class Nameless(Talk):
        name = ""

    with pytest.raises(InvalidRequest, match="must be a SkillSpec with a name"):
        builtin_skills().with_skill(Nameless())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "LOUD is required"),
        ({"loud": True, "reasoning": True}, 'talk takes no "reasoning"'),
        ({"loud": True, "quiet": False}, 'talk takes no "quiet"'),
        ({"loud": True, "weight": 10**400}, "WEIGHT is 1000.*it can be a number of up to 308 digits"),
        ({"loud": True, "times": 10**3000}, "TIMES is 1000.*; it can be from 1 to 9"),
        ({"loud": True, "times": 10**9000}, "TIMES is a number of thousands of digits"),
    ],
)
def test_an_argument_that_the_skill_cannot_take_is_refused(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidRequest, match=said) as refused:
        builtin_skills().with_skill(Talk()).check(Request("talk", arguments))
    assert len(str(refused.value)) < 300


def test_false_is_a_value_to_a_skill_that_takes_it_and_nothing_to_others() -> None:
    skills = builtin_skills().with_skill(Talk())
    assert skills.check(Request("talk", {"loud": False, "reasoning": False})).name == "talk"


def test_a_skill_is_given_the_defaults_of_its_arguments() -> None:
    engine = FakeEngine(skills=builtin_skills().with_skill(Talk()))
    left_out, given = engine.ask("talk", loud=True), engine.ask("talk", loud=True, times=3)
    engine.run_until_idle()
    assert [one.finished.result.metrics.input_tokens for one in (left_out, given)] == [6, 9]
