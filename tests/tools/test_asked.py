"""`kestrel eval asked`: its folder of questions in tests/asked, and what the command prints."""

import json
import shutil
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from tiny_folder import save_tiny

from kestrel_core.protocol.errors import EngineFailed, InvalidRequest
from kestrel_core.protocol.messages import Request
from kestrel_tools.asked.command import document, outcomes, print_scores
from kestrel_tools.asked.questions import Question, read_questions
from kestrel_tools.asked.rules import Rule
from kestrel_tools.commands import main
from kestrel_tools.scenes.answers import Answer
from kestrel_tools.scenes.score import Outcome

FOLDER = Path(__file__).parents[1] / "asked"
OTHERS = sorted(path for path in (FOLDER / "others").iterdir() if path.is_dir())
KEYS = ("x_min", "y_min", "x_max", "y_max")


@pytest.fixture(scope="module")
def questions() -> list[Question]:
    return read_questions(FOLDER)


def ideal(question: Question) -> dict[str, Any]:
    """The shortest answer that the first rule asks for."""
    rule = question.rules[0]
    if rule.boxes is not None:
        return {"objects": [dict(zip(KEYS, box, strict=True)) for box in rule.boxes]}
    if rule.points is not None:
        return {"points": [{"x": (a + c) / 2, "y": (b + d) / 2} for a, b, c, d in rule.points]}
    return {"caption" if question.request.skill == "caption" else "answer": _words(rule)}


def _words(rule: Rule) -> str:
    said = [] if rule.yes is None else ["yes" if rule.yes else "no"]
    said += [f"{rule.number:g}"] if rule.number is not None else []
    said += ["I can't tell."] if rule.unknown else []
    return ", ".join([*said, *rule.any[:1], *rule.after[:1], *(group[0] for group in rule.all)])


def test_there_are_300_questions_over_40_pictures(questions: list[Question]) -> None:
    pictures = {path.name for path in (FOLDER / "pictures").iterdir()}
    asked = {name for one in questions if (name := one.request.request_id.partition(":")[0]) != "no picture"}
    assert len(questions) == len({one.request.request_id for one in questions}) == 300
    assert len(pictures) == 40
    assert asked == {f"pictures/{name}" for name in pictures}
    assert set(json.loads((FOLDER / "truth.json").read_text())) == pictures


def test_every_rule_takes_the_answer_it_asks_for(questions: list[Question]) -> None:
    assert [one.request.request_id for one in questions if not one.is_right(ideal(one))] == []


@pytest.mark.parametrize("folder", OTHERS, ids=lambda folder: folder.name)
def test_questions_of_others_can_be_answered_and_not_by_always_saying_the_same(folder: Path) -> None:
    questions = read_questions(folder)
    pictures = {path.name for path in (folder / "pictures").iterdir()}
    assert len(questions) == 100 and len(pictures) == 14
    assert set(json.loads((folder / "truth.json").read_text())) == pictures
    assert [one.request.request_id for one in questions if not one.is_right(ideal(one))] == []
    everything = " ".join(json.loads((folder / "names.json").read_text()))
    for answer in ("", "yes", "no", "1", "2", "red", "a dog", "I can't tell.", everything):
        assert sum(one.is_right({"answer": answer, "caption": answer}) for one in questions) < 15


@pytest.mark.parametrize("answer", ["", "yes", "no", "1", "2", "red", "a dog", "I can't tell."])
def test_always_saying_the_same_is_mostly_wrong(answer: str, questions: list[Question]) -> None:
    right = sum(one.is_right({"answer": answer, "caption": answer}) for one in questions)
    assert right < 0.15 * len(questions)


def test_naming_everything_is_mostly_wrong(questions: list[Question]) -> None:
    everything = " ".join(json.loads((FOLDER / "names.json").read_text()))
    right = sum(one.is_right({"answer": everything, "caption": everything}) for one in questions)
    assert right < 0.02 * len(questions)


def test_scores_are_told_by_kind_and_by_drawing_with_every_wrong_answer(questions: list[Question]) -> None:
    some = [one for one in questions if "farm.png" in one.request.request_id]
    found: list[Outcome] = [ideal(one) for one in some]
    found[0] = {"answer": "[red]2[/red] \x1b[2J"}
    told = document(some, found)
    assert (told["right"], told["of"]) == (len(some) - 1, len(some))
    assert told["kinds"]["count"] == {"right": 1, "of": 2}
    assert told["drawn"] == {"noto": {"right": len(some) - 1, "of": len(some)}}
    file = StringIO()
    print_scores(told, Console(file=file, width=200))
    printed = file.getvalue()
    assert "pictures/farm.png: how many cows are there? -> [red]2[/red]" in printed
    assert '(wanted: {"number": 3})' in printed
    assert "\x1b" not in printed


def test_a_refused_question_is_wrong_and_when_all_are_refused_it_is_told(questions: list[Question]) -> None:
    some = questions[:3]

    def half(requests: Sequence[Request]) -> list[Answer]:
        return [Answer({"answer": "3"} if at else EngineFailed("broken"), 0.0) for at in range(len(requests))]

    def none(requests: Sequence[Request]) -> list[Answer]:
        return [Answer(EngineFailed("broken"), 0.0) for _ in requests]

    quiet = Console(file=StringIO())
    assert not document(some, outcomes(half, some, quiet))["answers"][0]["right"]
    with pytest.raises(EngineFailed, match="broken"):
        outcomes(none, some, quiet)


def small_folder(folder: Path, *lines: dict[str, Any]) -> Path:
    (folder / "pictures").mkdir(parents=True)
    shutil.copy(FOLDER / "pictures/closed.png", folder / "pictures")
    for name in ("truth.json", "names.json"):
        shutil.copy(FOLDER / name, folder)
    (folder / "questions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


LINE = {"image": "pictures/closed.png", "skill": "query", "question": "it?", "kind": "reading"}


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"accept": {"eny": ["closed"]}}, "a rule has no eny"),
        ({"accept": {}}, "a rule is empty"),
        ({"accept": []}, "accept is empty"),
        ({"accept": {"boxes": ["cow"]}}, 'no "cow" is on the picture'),
        ({}, "KeyError: 'accept'"),
        ({"accept": {"number": "3"}}, 'line 2: number is "3", and must be a number'),
        ({"accept": {"number": True}}, "number is true, and must be a number"),
        ({"accept": {"number": float("nan")}}, "number is NaN, and must be a number"),
        ({"accept": {"number": 3, "within": None}}, "within is null, and must be a number"),
        ({"accept": {"all": ["a", "b"], "least": "1"}}, 'least is "1", and must be a whole number'),
        ({"accept": {"yes": "no"}}, 'yes is "no", and must be true or false'),
        ({"accept": {"any": ["a"], "others": 1}}, "others is 1, and must be true or false"),
        ({"accept": [{"yes": True}, {"unknown": "false"}]}, 'unknown is "false", and must be true or false'),
        ({"accept": {"any": ["a", 3]}}, 'any is ["a", 3], and must be a text or a list of texts'),
        ({"accept": {"any": ["a"], "after": {"b": 1}}}, "after is"),
        ({"accept": {"all": "cow"}}, 'all is "cow", and must be a list of texts, or of lists of them'),
        ({"accept": {"all": ["cow", [3]]}}, 'all is ["cow", [3]], and must be a list of texts, or'),
        ({"accept": {"boxes": "cow"}}, 'boxes is "cow", and must be a list of texts'),
        ({"accept": {"points": [["cow"]]}}, 'points is [["cow"]], and must be a list of texts'),
        ({"accept": "yes"}, 'a rule is "yes", and must be an object'),
        ({"accept": {"yes": True}, "question": 3}, "question is 3, and must be a text"),
        ({"accept": {"yes": True}, "kind": 3}, "kind is 3, and must be a text"),
        ({"accept": {"yes": True}, "skill": "guess"}, "KeyError: 'guess'"),
        ({"accept": {"yes": True}, "image": "pictures/farm.png"}, "FileNotFoundError"),
    ],
)
def test_a_bad_line_is_named(change: dict[str, Any], complaint: str, tmp_path: Path) -> None:
    folder = small_folder(tmp_path / "asked", {**LINE, "accept": {"yes": True}}, {**LINE, **change})
    with pytest.raises(InvalidRequest, match="line 2") as raised:
        read_questions(folder)
    assert complaint in str(raised.value)


def test_a_folder_without_questions_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="has no lines"):
        read_questions(small_folder(tmp_path / "asked"))
    with pytest.raises(InvalidRequest, match="cannot be read"):
        read_questions(tmp_path)


def test_questions_that_are_not_utf_8_are_refused(tmp_path: Path) -> None:
    folder = small_folder(tmp_path / "asked", {**LINE, "accept": {"yes": True}})
    with (folder / "questions.jsonl").open("ab") as file:
        file.write('{"question": "Wo ist der Bär?"}\n'.encode("latin-1"))
    with pytest.raises(InvalidRequest, match=r"questions\.jsonl, line 2 is not UTF-8"):
        read_questions(folder)
    (folder / "names.json").write_bytes(b"\xff")
    with pytest.raises(InvalidRequest, match=r"names\.json, line 1 is not UTF-8"):
        read_questions(folder)


def test_the_command_asks_an_engine_and_requires_a_share(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong, free = {**LINE, "accept": {"number": 12345}}, {**LINE, "accept": {"all": []}}
    folder = small_folder(tmp_path / "asked", wrong, free)
    report = tmp_path / "report.json"
    told = ["eval", "asked", str(folder), "--model-path", str(save_tiny(tmp_path / "model", 3))]
    told += ["--device", "cpu", "--json", str(report)]
    assert main([*told, "--require", "0.5"]) == 0
    assert main([*told, "--require", "0.6"]) == 1
    assert main([*told, "--require", "2"]) == 2
    found = json.loads(report.read_text())
    assert (found["right"], found["of"]) == (1, 2)
    assert "50.0%" in capsys.readouterr().out
