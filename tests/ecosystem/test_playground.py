"""Code that people copy from us for other people's clients: from the playground, and from the README."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from other_clients import ROOT, SAMPLE, interpreter, variables

pytestmark = [pytest.mark.ecosystem, pytest.mark.triton]

README = re.findall(r"^```py\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)


def run(code: str, folder: Path, home: Path) -> str:
    done = subprocess.run(
        [interpreter("clients"), "-c", code],
        cwd=folder,
        env=variables(home),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, code + done.stderr
    return done.stdout


@pytest.mark.parametrize("code", README, ids=["openai", "moondream"])
def test_an_example_of_the_readme_runs(code: str, address: str, tmp_path: Path) -> None:
    said = run(code.replace("http://localhost:8080", address), ROOT, tmp_path)
    assert said.strip()


@pytest.fixture(scope="module")
def visitor(address: str) -> Iterator[Any]:
    from visitor import Visitor, chromium

    with chromium() as browser:
        it = Visitor(browser.new_page(), address)
        it.page.click(f"[data-sample='{SAMPLE.name}']")
        it.page.click("#languages-openai")
        yield it


@pytest.mark.browser
@pytest.mark.parametrize(
    ("skill", "words", "settings", "expected"),
    [
        ("query", "How many circles are there?", {"temperature": 0, "max_tokens": 64, "seed": 7}, "5"),
        ("caption", "", {}, "white star"),
        ("detect", "green circle", {"max_objects": 2}, "x_min"),
        ("segment", "white star", {}, "svg_path"),
    ],
)
def test_code_of_the_page_for_openai_runs(
    visitor: Any, tmp_path: Path, skill: str, words: str, settings: dict[str, Any], expected: str
) -> None:
    visitor.ask(skill, words, **settings)
    visitor.page.wait_for_selector("#send:has-text('Ask')")
    said = run(visitor.text("#code"), SAMPLE.parent, tmp_path)
    assert expected in said
    assert skill != "detect" or said.count("x_min") == 2
