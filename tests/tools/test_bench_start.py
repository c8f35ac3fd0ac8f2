"""`kestrel bench start`: real processes with the bundled model on a CPU, where nothing is compiled."""

import json
from pathlib import Path

import pytest

from kestrel_core.intake.tokenizer import Tokenizer
from kestrel_core.moondream.config import MOONDREAM2
from kestrel_tools.bench.options import Start
from kestrel_tools.bench.parts import start
from kestrel_tools.bench.results import Row
from kestrel_tools.bench.starts.engine import tokenizer_of
from kestrel_tools.commands import main


def test_a_start_is_told_by_parts_up_to_its_first_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "start.json"
    command = ["bench", "start", "--model", "moondream-tiny", "--device", "cpu"]
    small = [
        "--cold",
        "",
        "--starts",
        "whole",
        "--tokens",
        "2",
        "--requests",
        "1",
        "--saved",
        "--json",
        str(file),
    ]
    assert main([*command, *small]) == 0
    [row] = json.loads(file.read_text())["measured"]
    assert (row["start"], row["cache"], row["graphs"], row["put_off"]) == ("whole", "warm", "off", 0)
    assert {"interpreter", "imports", "device", "tokenizer", "weights", "engine"} <= row["parts"].keys()
    assert 0 < sum(row["parts"].values()) <= 1.05 * row["ready_s"] < 1.05 * row["first_answer_s"]
    assert len(row["answers"]["first"]) == len(row["answers"]["later"]) == 1
    assert "#" in row["answers"]["first"][0]
    assert "Seconds of each part" in capsys.readouterr().out


def test_saved_weights_have_a_word_for_every_token() -> None:
    shape = MOONDREAM2
    words = Tokenizer(tokenizer_of(shape), shape)
    plain = {*range(shape.text.vocab_size)} - {*shape.tokenizer.control_ids}
    assert len({words.bytes_of(token_id) for token_id in plain} - {b""}) == len(plain)
    assert words.decode(words.encode("What is this?")) == "What is this?"


def test_cold_starts_find_an_empty_folder_and_warm_ones_what_the_last_left(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen = list[tuple[bool, str | None]]()

    def measured(config: start.RuntimeConfig, run: Start) -> Row:
        seen.append((config.quick_start, config.cache_folder))
        same = {"first": ["a"], "later": ["b"] if len(seen) < 4 else ["c"]}
        return {"parts": {}, "ready_s": 1.0, "first_answer_s": 1.0, "answers": same}

    monkeypatch.setattr(start, "measured", measured)
    file = tmp_path / "start.json"
    command = ["bench", "start", "--device", "cpu", "--cache-folder", str(tmp_path), "--json", str(file)]
    assert main(command) == 0
    folders = [str(tmp_path / name) for name in ("cold-0", "cold-1", "cold-1", "cold-1")]
    assert seen == list(zip([False, True, False, True], folders, strict=True))
    rows = json.loads(file.read_text())["measured"]
    assert [(row["same_first"], row["same_later"]) for row in rows] == [
        (None, None),
        (True, True),
        (True, True),
        (True, False),
    ]


@pytest.mark.parametrize("wrong", [("--starts", "slow"), ("--tokens", "0"), ("--cold", "", "--starts", "")])
def test_nothing_to_start_is_an_error(wrong: tuple[str, ...]) -> None:
    assert main(["bench", "start", "--device", "cpu", *wrong]) == 2


def test_a_start_that_fails_is_told(tmp_path: Path) -> None:
    assert (
        main(["bench", "start", "--device", "cpu", "--model-path", str(tmp_path / "none"), "--cold", ""]) == 2
    )
