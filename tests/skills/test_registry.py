"""The registry: which skills there are, where they come from, and what a request may ask of them."""

from pathlib import Path
from typing import Any

import pytest

from kestrel_core.loop.sequence import Prompt, Reply
from kestrel_core.protocol.arguments import Argument
from kestrel_core.protocol.errors import InvalidRequest, TooLarge, UnknownSkill
from kestrel_core.protocol.messages import Request
from kestrel_core.skills.registry import SkillRegistry, builtin_skills, installed_skills
from kestrel_core.skills.spec import Language, SkillSpec

ROOT = Path(__file__).parents[2]
MEGABYTE = "x" * 2**20


class Shout(SkillSpec):
    name = "shout"
    arguments = (Argument("loud", int, required=True, least=1, most=3),)
    image = "optional"

    def prompt(self, request: Request, language: Language) -> Prompt:
        raise AssertionError("a request that is refused gets this far")

    def reply(self, request: Request, language: Language) -> Reply:
        raise AssertionError("a request that is refused gets this far")


def test_what_is_internal_is_not_told_of() -> None:
    skills = builtin_skills()
    assert skills.names == ["query", "caption", "detect", "point", "segment"]
    assert skills["tokens"].hidden
    with pytest.raises(UnknownSkill):
        skills.public()["tokens"]
    for asked in ("", "tokns", "paint"):
        with pytest.raises(InvalidRequest) as caught:
            skills[asked]
        assert "tokens" not in str(caught.value)
    with pytest.raises(UnknownSkill, match="did you mean query"):
        skills["qeury"]


@pytest.mark.parametrize(
    ("request_", "kind", "said"),
    [
        (Request("query", {"question": MEGABYTE}), TooLarge, "QUESTION has more than 65,536 bytes"),
        (Request("detect", {"object": "é" * 600}, b"x"), TooLarge, "OBJECT has more than 1,024 bytes"),
        (
            Request("point", {"object": "x", "spatial_refs": [[0, 0]] * 10**6}, b"x"),
            TooLarge,
            "1,000,000 entries",
        ),
        (Request("query", {"question": "?", "object": "x"}), InvalidRequest, 'query takes no "object"'),
        (Request("shout", {}), InvalidRequest, "LOUD is required for shout"),
        (Request("shout", {"loud": 4}), InvalidRequest, "LOUD is 4; it can be from 1 to 3"),
        (Request("shout", {"laud": 2}), InvalidRequest, "did you mean loud"),
        (Request("shout", {"loud": 2}, stream=True), InvalidRequest, "shout answers in one piece"),
    ],
)
def test_limits_come_before_work(request_: Request, kind: type[InvalidRequest], said: str) -> None:
    with pytest.raises(kind, match=said):
        builtin_skills().with_skill(Shout()).check(request_)


def test_checking_costs_the_same_however_long_a_text_is() -> None:
    """Counted in calls of the tokenizer and letters looked at, not in seconds: a subclass of str tells."""

    class Text(str):
        encoded = 0

        def encode(self, *arguments: Any, **options: Any) -> bytes:
            Text.encoded += len(self)
            return super().encode(*arguments, **options)

    with pytest.raises(TooLarge):
        builtin_skills().check(Request("query", {"question": Text("x" * 10**7)}))
    assert Text.encoded == 0


def test_a_false_or_absent_argument_of_another_skill_is_as_good_as_none() -> None:
    builtin_skills().check(Request("caption", {"reasoning": False, "question": None}, b"x"))


def test_two_skills_of_one_name_are_refused_and_with_skill_replaces() -> None:
    with pytest.raises(InvalidRequest, match='two skills called "shout"'):
        SkillRegistry([Shout(), Shout()])
    first = Shout()
    assert SkillRegistry([Shout()]).with_skill(first)["shout"] is first


def test_what_is_no_skill_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="must be a SkillSpec with a name"):
        SkillRegistry([object()])  # type: ignore[list-item]


def test_skills_come_from_files_and_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    example = f"{ROOT}/examples/custom_skill.py:Count"
    assert installed_skills(example).names[-1] == "count"
    (tmp_path / "my_skills.py").write_text(
        "from pathlib import Path\nimport importlib.util\n"
        f"spec = importlib.util.spec_from_file_location('count', {example.rpartition(':')[0]!r})\n"
        "module = importlib.util.module_from_spec(spec)\nspec.loader.exec_module(module)\n"
        "ALL = [module.Count()]\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    assert installed_skills("my_skills:ALL").names[-1] == "count"


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("count", "it takes module:name or file.py:name"),
        ("no_such_module:Count", "cannot be loaded: ModuleNotFoundError"),
        ("no_such_file.py:Count", "cannot be loaded: ImportError: there is no file no_such_file.py"),
        ("json:dumps", "which is no SkillSpec"),
        ("json:nothing", "json has no nothing"),
    ],
)
def test_skills_that_cannot_be_loaded_are_named(named: str, said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        installed_skills(named)
