import argparse
import dataclasses
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kestrel_core.cli.main import main, make_parser
from kestrel_core.config import RuntimeConfig
from kestrel_core.intake.models import DEMO
from kestrel_tools import commands as tools

ENGINE = {f"engine_{field.name}": field for field in dataclasses.fields(RuntimeConfig)}


def commands() -> dict[str, argparse.ArgumentParser]:
    [found] = [a for a in make_parser()._actions if isinstance(a, argparse._SubParsersAction)]
    return dict(found.choices)


def with_engine_options() -> dict[str, argparse.ArgumentParser]:
    """Every command and every part of one that has options of the engine, by its words."""
    found, waiting = {}, dict(commands())
    while waiting:
        name, parser = waiting.popitem()
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                waiting |= {f"{name} {part}": one for part, one in action.choices.items()}
        if any(action.dest in ENGINE for action in parser._actions):
            found[name] = parser
    return dict(sorted(found.items()))


def stopped(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[object, str, str]:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    return stop.value.code, *capsys.readouterr()


@pytest.mark.parametrize("command", commands())
def test_every_command_explains_itself(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, overview, _ = stopped(capsys, "--help")
    assert code == 0
    [line] = [line for line in overview.splitlines() if line.split()[:1] == [command]]
    assert len(line.split()) > 3, "the overview says what it is for"
    code, text, _ = stopped(capsys, command, "--help")
    assert code == 0 and f"usage: kestrel {command}" in text
    assert commands()[command].description
    for action in commands()[command]._actions:
        assert action.help or action.choices, f"{command} {action.dest} says nothing"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "required"),
        (("dance",), "invalid choice: 'dance'"),
        (("parity",), "DIR"),
        (("parity", "--loud", "."), "--loud"),
    ],
)
def test_what_is_no_command_ends_with_two(
    arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = stopped(capsys, *arguments)
    assert code == 2 and said in err and out == ""


def test_an_interrupted_command_ends_as_shells_expect(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(tools, "_parity", interrupt)
    assert main(["parity", "."]) == 130


def test_a_command_interrupted_before_it_runs_ends_so_too() -> None:
    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    assert main(["parity", "."], more=(interrupt,)) == 130


def test_little_is_imported_before_somebody_listens_for_the_interrupt() -> None:
    code = "import sys, kestrel_core.cli.main; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    imported = ran.stdout.split()
    assert not {"rich", "kestrel_core.config", "kestrel_core.cli.serve"} & set(imported)


def test_the_process_ends_with_the_exit_code_of_the_command(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "kestrel_tools", "parity", str(tmp_path / "nowhere")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("kestrel: ") and done.stderr.count("\n") == 1


def test_the_version_is_that_of_the_distribution(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = stopped(capsys, "--version")
    assert code == 0 and re.fullmatch(r"kestrel \S.*\n", out)


@pytest.mark.parametrize("command", ["serve", "schedule"])
def test_every_option_of_the_engine_comes_after_the_commands_own(command: str) -> None:
    actions = [action for action in commands()[command]._actions if action.option_strings]
    are_the_engines = [action.dest.startswith("engine_") for action in actions]
    assert are_the_engines == sorted(are_the_engines)
    engine = {action.dest.removeprefix("engine_") for action in actions if action.dest.startswith("engine_")}
    assert engine == {field.name for field in dataclasses.fields(RuntimeConfig)}


@pytest.mark.parametrize("command", with_engine_options())
def test_the_default_of_an_engines_option_is_the_commands_own(command: str) -> None:
    parser = with_engine_options()[command]
    late = {"engine_model": DEMO, "engine_device": "cuda where there is a GPU, else cpu"}  # as it looks first
    for action in parser._actions:
        if action.dest in ENGINE:
            field, own = ENGINE[action.dest], parser.get_default(action.dest)
            default = field.default if own is None else own
            if command == "doctor":
                default = late.get(action.dest, default)
            told = f" (default: {default})" if default is not None else ""
            assert action.help == field.metadata["meaning"] + told


@pytest.mark.parametrize("command", ["serve", "schedule"])
def test_abbreviations_are_refused(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = stopped(capsys, command, "--max-batch", "3")
    assert code == 2 and "--max-batch" in err
