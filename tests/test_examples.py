"""Every example runs, against a tiny model. What it prints is checked as far as random weights allow."""

import asyncio
import re
import runpy
import sys
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


@pytest.mark.parametrize("name", sorted(path.stem for path in EXAMPLES.glob("*.py")))
def test_an_example_without_arguments_says_how_it_is_used(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [f"{name}.py"])
    with pytest.raises(SystemExit, match=rf"^usage: .*{name}\.py PICTURE"):
        runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
