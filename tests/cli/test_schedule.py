import json
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from tiny_folder import save_tiny

from kestrel_core.cli import local_answers as schedule
from kestrel_core.cli.local_answers import Live, Question, pair
from kestrel_core.cli.main import main
from kestrel_core.protocol.errors import InvalidRequest

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
        (("a", "--skill", "detect", "--reasoning"), "--reasoning is for query"),
        (("a", "--length", "short"), "--length is for caption"),
        (("a", "--image", "x", "--image", "y"), "1 prompts and 2 pictures"),
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


def test_an_interrupt_ends_all_requests_and_the_engine(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(live: Live, number: int, text: str) -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(schedule.Live, "show", interrupt)
    before = set(threading.enumerate())
    prompts = [f"question {i}" for i in range(8)]
    assert main(["schedule", *prompts, "--stream", "--max-tokens", "100", "--max-batch-size", "2"]) == 130
    assert {t.name for t in set(threading.enumerate()) - before if t.name.startswith("kestrel")} == set()
    assert "answered" not in capsys.readouterr().out


def test_pictures_and_prompts_are_paired() -> None:
    def images(*arguments: Any) -> list[str | None]:
        return [question.image for question in pair(*arguments, "query")]

    assert images(["a", "b"], []) == [None, None]
    assert images(["a", "b"], ["x"]) == ["x", "x"]
    assert images(["a", "b"], ["x", "y"]) == ["x", "y"]
    assert pair(["a"], ["x"], "point", repeat=2) == [Question("x", {"object": "a"})] * 2
    with pytest.raises(InvalidRequest, match="2 prompts and 3 pictures"):
        pair(["a", "b"], ["x", "y", "z"], "query")


def test_lines_of_several_answers_say_whose_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    from rich.console import Console

    live = Live(Console(width=40), several=True)
    for number, text in ((1, "one "), (2, "two\nthree "), (1, "[b]more[/b] " * 6), (2, "four")):
        live.show(number, text)
    live.end(1)
    live.end(2)
    shown = capsys.readouterr().out.splitlines()
    assert shown == ["  2 | two", "  1 | one " + "[b]more[/b] " * 6, "  2 | three four"]
