import json
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from adapter_folder import save_peft
from PIL import Image
from rich.console import Console
from tiny_folder import save_tiny

from kestrel_core.cli import local_answers as schedule
from kestrel_core.cli.local_answers import Live, requests_for
from kestrel_core.cli.main import main
from kestrel_core.moondream.checkpoint.weights import load_config
from kestrel_core.protocol.errors import InvalidRequest
from kestrel_core.protocol.messages import EngineResult, Settings, Usage
from kestrel_core.skills.registry import builtin_skills

FEW = ("--max-tokens", "12", "--temperature", "0")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def picture(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("pictures") / "red.png"
    Image.new("RGB", (30, 20), (200, 30, 30)).save(path)
    return str(path)


@pytest.fixture(autouse=True)
def environment(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KESTREL_MODEL_PATH", str(model))
    monkeypatch.setenv("KESTREL_DEVICE", "cpu")
    monkeypatch.setenv("COLUMNS", "160")


def documents(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    assert main(["schedule", *arguments, "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return [json.loads(line) for line in out.splitlines()]


def test_every_prompt_is_answered_in_the_order_asked(capsys: pytest.CaptureFixture[str]) -> None:
    both = documents(capsys, "what?", "and where?", *FEW)
    assert [answer["request_id"] for answer in both] == ["1", "2"]
    for prompt, answer in zip(("what?", "and where?"), both, strict=True):
        [alone] = documents(capsys, prompt, *FEW)
        assert answer["answer"] == alone["answer"]
        assert answer["finish_reason"] in ("stop", "length")
        assert 0 < answer["metrics"]["output_tokens"] <= 12


def test_an_adapter_is_an_option(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_peft(tmp_path / "mine", load_config(model, None).text, 1)
    given = ("what?", *FEW, "--logprobs", "1", "--adapters", str(tmp_path))
    [plain], [adapted] = documents(capsys, *given), documents(capsys, *given, "--adapter", "mine")
    assert plain["logprobs"] != adapted["logprobs"]
    assert main(["schedule", *given, "--adapter", "nobody"]) == 1
    assert 'no adapter "nobody"' in capsys.readouterr().out


def test_one_picture_serves_all_prompts_and_is_computed_once(
    picture: str, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = documents(capsys, "what?", "where?", "--image", picture, *FEW, "--repeat", "2")
    assert len(answers) == 4
    assert sorted(answer["metrics"]["cached_tokens"] > 0 for answer in answers) == [False, True, True, True]


@pytest.mark.parametrize(("skill", "key"), [("detect", "objects"), ("point", "points")])
def test_places_are_lists(skill: str, key: str, picture: str, capsys: pytest.CaptureFixture[str]) -> None:
    [answer] = documents(capsys, "a cat", "--skill", skill, "--image", picture, "--max-objects", "3")
    assert isinstance(answer[key], list) and len(answer[key]) <= 3


def test_captions_need_no_prompt(picture: str, capsys: pytest.CaptureFixture[str]) -> None:
    answers = documents(
        capsys, "--skill", "caption", "--image", picture, "--image", picture, "--length", "short", *FEW
    )
    assert answers[0]["caption"] == answers[1]["caption"]


def test_thoughts_come_with_the_answer(picture: str, capsys: pytest.CaptureFixture[str]) -> None:
    [answer] = documents(capsys, "why?", "--image", picture, "--reasoning", *FEW)
    assert set(answer["reasoning"]) == {"text", "grounding"} and "answer" in answer


def test_the_command_line_wins_over_the_environment(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KESTREL_MODEL_PATH", "nowhere")
    assert len(documents(capsys, "what?", *FEW, "--model-path", str(model))) == 1


def test_the_table_tells_answers_and_their_cost(picture: str, capsys: pytest.CaptureFixture[str]) -> None:
    [answer] = documents(capsys, "[bold]what[/bold]?", "--image", picture, *FEW)
    assert main(["schedule", "[bold]what[/bold]?", "--image", picture, *FEW]) == 0
    out, err = capsys.readouterr()
    usage = answer["metrics"]
    assert f"{usage['input_tokens']} + {usage['output_tokens']}" in out and "1 of 1 answered" in out
    assert err == ""


def test_a_streamed_answer_is_shown_before_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    [answer] = documents(capsys, "what?", *FEW)
    assert main(["schedule", "what?", *FEW, "--stream"]) == 0
    assert capsys.readouterr().out.startswith(answer["answer"].replace("\r", "\n") + "\n")


def test_json_is_the_same_whether_streamed_or_not(capsys: pytest.CaptureFixture[str]) -> None:
    def told(answer: dict[str, Any]) -> tuple[Any, ...]:
        return answer["answer"], answer["finish_reason"], answer["metrics"]["output_tokens"]

    [plain] = documents(capsys, "what?", *FEW)
    [streamed] = documents(capsys, "what?", *FEW, "--stream")
    assert told(plain) == told(streamed)


def test_a_request_that_fails_leaves_the_others_alone(
    picture: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"no picture")
    images = ("--image", str(broken), "--image", picture)
    assert main(["schedule", "what?", "what?", *images, *FEW, "--json"]) == 1
    out, err = capsys.readouterr()
    assert [json.loads(line)["request_id"] for line in out.splitlines()] == ["2"]
    assert err.startswith("kestrel: request 1: ") and err.count("\n") == 1
    assert main(["schedule", "what?", "what?", *images, *FEW]) == 1
    out, err = capsys.readouterr()
    assert "INVALID_ARG" in out and "1 of 2 answered" in out and err == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "needs a prompt"),
        (("--skill", "caption"), "caption takes no prompt, but one --image"),
        (("a", "--skill", "detect", "--reasoning"), 'detect takes no "reasoning"'),
        (("a", "--length", "short"), 'query takes no "length"'),
        (("--skill", "caption", "--image", __file__, "--length", "epic"), "it can be short, normal or long"),
        (("a", "--image", __file__, "--image", __file__), "1 prompts and 2 pictures"),
        (("a", "--image", "nowhere.png"), "there is no picture nowhere.png"),
        (("a", "--skill", "detect"), "IMAGE is required for detect"),
        (("a", "--skill", "detcet"), 'there is no skill "detcet"; did you mean detect?'),
        (("a", "--skill", "point", "--image", __file__, "--stream"), "STREAM is for query and caption"),
        (("a", "--skill", "detect", "--image", __file__, "--max-tokens", "3"), "MAX_OBJECTS is its limit"),
        (("a", "--argument", "colour"), '--argument is "colour"; it must be NAME=VALUE'),
        (("a", "--argument", "colour=red"), 'query takes no "colour"'),
        (("a", "--argument", "reasoning=maybe"), '--argument reasoning is "maybe", which is no JSON'),
        (("a", "--skills", "nowhere:SKILL"), 'skills names "nowhere:SKILL"'),
        (("a", "--repeat", "0"), "--repeat is 0"),
        (("a", "--temperature", "-1"), "TEMPERATURE is -1"),
        (("a", "--max-batch-size", "none"), 'max_batch_size is "none"'),
        (("a", "--device", "abacus"), 'device "abacus"'),
        (("a", "--model-path", "nowhere"), "nowhere"),
    ],
)
def test_what_cannot_be_started_is_one_sentence(
    arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["schedule", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("kestrel: ") and said in err and err.count("\n") == 1


@pytest.fixture
def interruptible() -> Iterator[None]:
    """SIGINT as Python takes it; a shell lets what runs in its background, maybe these tests, ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_ends_all_requests_and_the_engine(
    interruptible: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(live: Live, number: int, text: str) -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(schedule.Live, "show", interrupt)
    before = set(threading.enumerate())
    prompts = [f"question {i}" for i in range(8)]
    assert main(["schedule", *prompts, "--stream", "--max-tokens", "100", "--max-batch-size", "2"]) == 130
    assert {t.name for t in set(threading.enumerate()) - before if t.name.startswith("kestrel")} == set()
    assert "answered" not in capsys.readouterr().out


def test_no_mistake_costs_the_loading_of_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "build_engine", None)
    for arguments in (("a", "--image", "gone.png"), ("a", "--skill", "detect"), ("a", "--top-p", "7")):
        assert main(["schedule", *arguments]) == 2


def test_pictures_and_prompts_are_paired(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "is_file", lambda path: True)
    skills = builtin_skills()

    def made(skill: str, prompts: list[str], images: list[str], **more: Any) -> list[tuple[Any, ...]]:
        requests = requests_for(skills[skill], prompts, images, {}, Settings(), **more)
        assert [request.request_id for request in requests] == [str(i + 1) for i in range(len(requests))]
        return [(request.image, *request.arguments.values()) for request in requests]

    assert made("query", ["a", "b"], []) == [(None, "a"), (None, "b")]
    assert made("query", ["a", "b"], ["x"]) == [("x", "a"), ("x", "b")]
    assert made("query", ["a", "b"], ["x", "y"]) == [("x", "a"), ("y", "b")]
    assert made("point", ["a"], ["x"], repeat=2) == [("x", "a")] * 2
    assert made("caption", [], ["x", "y"]) == [("x",), ("y",)]
    with pytest.raises(InvalidRequest, match="2 prompts and 3 pictures"):
        made("query", ["a", "b"], ["x", "y", "z"])


OWN = """
from kestrel_core.protocol.arguments import Argument
from kestrel_core.skills.text import QuerySkill


class Shout(QuerySkill):
    name = "shout"
    arguments = (*QuerySkill.arguments, Argument("times", int, "how often", least=1, most=9))

    def reply(self, request, language):
        assert request.arguments["times"] == 3
        return super().reply(request, language)
"""


def test_a_skill_of_your_own_is_asked_with_its_own_arguments(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "shout.py").write_text(OWN)
    own = ("--skills", f"{tmp_path}/shout.py:Shout", "--skill", "shout")
    [answer] = documents(capsys, "what?", *own, "--argument", "times=3", *FEW)
    assert answer["answer"]
    assert main(["schedule", "what?", *own, "--argument", "times=10"]) == 2
    assert "TIMES is 10; it can be from 1 to 9" in capsys.readouterr().err


def test_outlines_are_told_in_few_words() -> None:
    box = {"x_min": 0.1, "y_min": 0.2, "x_max": 0.3, "y_max": 0.4}
    output = {"segments": [{"svg_path": "M 0 0 L 1 0 L 1 1 Z", "bbox": box}]}
    said = "outline of 3 vertices, x_min 0.100, y_min 0.200, x_max 0.300, y_max 0.400"
    assert schedule._answer(output) == said
    assert schedule._answer({"count": 5, "reasoning": {"text": "hm"}}) == "(hm)\ncount 5"


def test_lines_of_several_answers_say_whose_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    live = Live(Console(width=40), several=True)
    for number, text in ((1, "one "), (2, "two\nthree "), (1, "[b]more[/b] " * 6), (2, "four")):
        live.show(number, text)
    live.end(1)
    live.end(2)
    shown = capsys.readouterr().out.splitlines()
    assert shown == ["  2 | two", "  1 | one " + "[b]more[/b] " * 6, "  2 | three four"]


def test_control_characters_of_an_answer_do_not_reach_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    console = Console(width=80)
    Live(console, several=False).show(1, "red\x1b[2J\n")
    result = EngineResult("1", "stop", {"answer": "blue\x1b]0;title\x07"}, Usage(1, 1, 0, 0.0, 0.0, 0.0, 0.0))
    console.print(schedule._table([result, InvalidRequest("green\x9b2J")], 1.0))
    shown = capsys.readouterr().out
    assert all(word in shown for word in ("red", "blue", "green"))
    assert all(letter.isprintable() or letter == "\n" for letter in shown)
