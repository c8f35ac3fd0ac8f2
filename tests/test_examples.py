"""Every example runs, against a tiny model. What it prints is checked as far as random weights allow."""

import asyncio
import re
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from tiny_folder import save_tiny

EXAMPLES = Path(__file__).parents[1] / "examples"

CASES = {
    "query": (("what?", "where?"), r"what\?\n  .*\d+ tokens, \d+ from the cache\nwhere\?\n  .*\n"),
    "caption": (("short",), r".*\n\((stop|length), first words after \d+ ms\)\n"),
    "detect": (("cat",), r"\d+ x cat\n(  from \(-?\d\.\d{3}, .*\) to \(.*\)\n)*"),
    "point": (("cat",), r"\d+ x cat\n(  at \(\d\.\d{3}, \d\.\d{3}\)\n)*"),
    "custom_skill": (("cat", "dog"), r"cat: \d+\ndog: \d+\n"),
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny(tmp_path_factory.mktemp("tiny"))


@pytest.mark.parametrize("name", sorted(path.stem for path in EXAMPLES.glob("*.py")))
def test_an_example_runs(
    name: str,
    model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("KESTREL_MODEL_PATH", str(model))
    monkeypatch.setenv("KESTREL_DEVICE", "cpu")
    picture = tmp_path / "red.png"
    Image.new("RGB", (30, 20), (200, 30, 30)).save(picture)
    arguments, printed = CASES[name]
    example: dict[str, Any] = runpy.run_path(str(EXAMPLES / f"{name}.py"))
    asyncio.run(example["main"](str(picture), *arguments))
    assert re.fullmatch(printed, capsys.readouterr().out, re.DOTALL)


@pytest.fixture
def started(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[object, str, str]]:
    """Runs an example as the shell does; gives its exit code, and what it wrote to stdout and to stderr."""
    monkeypatch.setenv("KESTREL_MODEL_PATH", str(model))
    monkeypatch.setenv("KESTREL_DEVICE", "cpu")

    def start(name: str, *arguments: str) -> tuple[object, str, str]:
        monkeypatch.setattr(sys, "argv", [f"{name}.py", *arguments])
        with pytest.raises(SystemExit) as stop:
            runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
        return stop.value.code, *capsys.readouterr()

    return start


@pytest.mark.parametrize("name", sorted(CASES))
def test_an_example_says_how_it_is_used(name: str, started: Callable[..., tuple[object, str, str]]) -> None:
    code, printed, _ = started(name, "--help")
    assert code == 0 and printed.startswith(f"usage: {name}.py [-h] PICTURE")


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        *((name, (), "required: PICTURE") for name in sorted(CASES)),
        *((name, ("nowhere.png", *CASES[name][0]), "cannot be read") for name in sorted(CASES)),
        *((name, ("a.png", "cat", "dog"), "unrecognized arguments: dog") for name in ("detect", "point")),
        ("caption", ("a.png", "short", "long"), "unrecognized arguments: long"),
        ("caption", ("a.png", "medium"), "invalid choice: 'medium'"),
        ("query", (str(EXAMPLES.parent / "client/samples/shapes.png"), ""), "QUESTION is empty"),
    ],
)
def test_an_example_refuses_in_one_sentence(
    name: str, arguments: tuple[str, ...], said: str, started: Callable[..., tuple[object, str, str]]
) -> None:
    code, printed, refusal = started(name, *arguments)
    usage, sentence = refusal.splitlines()
    assert (code, printed) == (2, "") and usage.startswith(f"usage: {name}.py ")
    assert sentence.startswith(f"{name}.py: error: ") and said in sentence
