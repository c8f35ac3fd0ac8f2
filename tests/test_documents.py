"""Documents keep their word: tables are the code's, links lead somewhere, and every example runs.

A fence marked `bash` or `python` is an example and is run here, against a server that was started for it.
Those marked `py` are for clients of other people: tests/ecosystem has these, and runs them. Other fences show
what comes out. Lines that cannot be run inside a test are left out by `LEFT_OUT`, each for the reason beside
it.
"""

import argparse
import ast
import asyncio
import contextlib
import importlib.util
import io
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kestrel_core.cli.main import make_parser
from kestrel_core.cli.options import engine_options
from kestrel_core.config import RuntimeConfig

ROOT = Path(__file__).parents[1]
PAGES = (
    "README.md",
    "docs/interface.md",
    "docs/architecture.md",
    "docs/gateway.md",
    "docs/finetune.md",
    "docs/operations.md",
    "docs/attacks.md",
    "docs/adapters.md",
    "docs/openai.md",
    "docs/quantize.md",
    "docs/performance.md",
    "docs/performance-log.md",
    "SECURITY.md",
    "client/README.md",
    "docker/README.md",
    "examples/french_adapter/README.md",
    "examples/train_tiny/README.md",
    "kestrel_core/bundled/moondream-tiny/README.md",
    "tests/asked/README.md",
    "tests/asked/others/README.md",
    "tests/golden/README.md",
)
RUN = ("README.md", "docs/interface.md", "client/README.md")
FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^ *```.*?^ *```|(?:^    [^\n]*\n)+", re.MULTILINE | re.DOTALL)  # fenced or indented
COMMAND = re.compile(r"(?:^|[\s/])kestrel ([a-z-].*)", re.MULTILINE)
COMMAND_IN_TEXT = re.compile(r"`(?:\.venv/bin/)?kestrel\s+([a-z-][^`]*)`")
LEFT_OUT = {
    "make ": "runs this very test, or the server that is here already",
    "kestrel serve": "the server that is here already",
    "kestrel bench": "minutes of work; tests/tools runs each",
    "kestrel eval": "minutes of work; tests/tools runs each",
    "kestrel parity": "needs a golden folder; tests/tools runs it",
    "kestrel doctor": "a minute of work; tests/tools runs it",
    "pip install": "changes the machine; tests/serving/test_wheel.py installs",
    "docker ": "no container engine in a test",
}


def examples(language: str) -> list[Any]:
    return [
        pytest.param(code, id=f"{page}:{number}")
        for page in RUN
        for number, (kind, code) in enumerate(FENCE.findall((ROOT / page).read_text()), 1)
        if kind == language
    ]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from triton_server import served

    log = tmp_path_factory.mktemp("documents") / "log"
    with served(log, "--demo", gateway=True, KESTREL_SKILLS=f"{ROOT}/examples/custom_skill.py:Count") as it:
        yield it


def here(code: str, server: Any) -> str:
    ports = {8000: server.http_port, 8001: server.grpc_port, 8002: server.metrics_port, 8080: server.port}
    for port, ours in ports.items():
        code = code.replace(f"localhost:{port}", f"localhost:{ours}")
    code = code.replace("client/run.py", f"client/run.py --url localhost:{server.grpc_port}")
    return code.replace(".venv/bin/python", sys.executable)


@pytest.mark.triton
@pytest.mark.parametrize("code", examples("bash"))
def test_a_shell_example_runs(code: str, server: Any) -> None:
    lines = [line for line in code.splitlines() if not any(words in line for words in LEFT_OUT)]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", here("\n".join(lines), server)],
        cwd=ROOT,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.triton
@pytest.mark.parametrize("code", examples("python"))
def test_a_python_example_runs(code: str, server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    compiled = compile(here(code, server), "example", "exec", flags=flags)
    outcome = eval(compiled, {"__name__": "example"})
    if outcome is not None:
        asyncio.run(outcome)


@pytest.mark.parametrize("page", ["README.md", "docs/interface.md", "docs/gateway.md"])
def test_tables_are_those_of_the_code(page: str) -> None:
    spec = importlib.util.spec_from_file_location("write_tables", ROOT / "docs/write_tables.py")
    assert spec is not None and spec.loader is not None
    write_tables = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(write_tables)
    text = (ROOT / page).read_text()
    assert "<!-- table:" in text
    assert write_tables.filled(text) == text, f"{page} has an old table; run python docs/write_tables.py"


@pytest.mark.parametrize("page", PAGES)
def test_every_file_a_page_links_exists(page: str) -> None:
    text, folder = (ROOT / page).read_text(), (ROOT / page).parent
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in link]
    assert [link for link in links if not (folder / link).exists()] == []


@pytest.mark.parametrize("page", PAGES)
def test_every_heading_a_page_links_exists(page: str) -> None:
    text, folder = (ROOT / page).read_text(), (ROOT / page).parent
    links = re.findall(r"\]\(([^)#:]*\.md)#([^)]+)\)", text)
    assert [(file, anchor) for file, anchor in links if anchor not in anchors(folder / file)] == []


def anchors(page: Path) -> list[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]


@pytest.mark.parametrize("page", PAGES)
def test_json_that_a_page_shows_is_json(page: str) -> None:
    for kind, text in FENCE.findall((ROOT / page).read_text()):
        if kind == "json":
            try:
                json.loads(text)
            except ValueError:  # a line each
                [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("page", PAGES)
def test_every_command_in_a_block_is_taken_by_the_command_line(page: str) -> None:
    for block in BLOCK.findall((ROOT / page).read_text()):
        for line in COMMAND.findall(block.replace("\\\n", " ")):
            for command in commands(line):
                RuntimeConfig.from_strings(engine_options(parsed(command)))


@pytest.mark.parametrize("page", PAGES)
def test_every_command_in_a_text_names_what_there_is(page: str) -> None:
    for text in COMMAND_IN_TEXT.findall(BLOCK.sub("", (ROOT / page).read_text())):
        for command in commands(text):
            try:
                parsed(command)
            except ValueError as error:  # in a text much is left out, or is a placeholder
                assert not re.search("unrecognized|invalid choice", str(error)), error


def commands(line: str) -> Iterator[list[str]]:
    """The arguments of each `kestrel` of a line of the shell; the line begins behind the first of them."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True  # punctuation still ends a command
    arguments = ["kestrel"]
    for word in [*lexer, ";"]:
        if set(word) <= set(";&|<>()"):
            if arguments and arguments[0].endswith("kestrel"):
                image = arguments[:2] == ["kestrel", "kestrel"]  # what `docker run` starts, by the command
                yield arguments[2 if image else 1 :]
            arguments = []
        else:
            arguments.append(word)


def parsed(arguments: list[str]) -> argparse.Namespace:
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            return make_parser().parse_args(arguments)
    except SystemExit as stop:
        if stop.code:
            raise ValueError(f"{arguments}: {said.getvalue().splitlines()[-1]}") from None
        return argparse.Namespace()  # of --help and --version


def test_every_make_target_the_readme_shows_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"make ([a-z]+)", (ROOT / "README.md").read_text())) <= targets
