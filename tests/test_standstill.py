"""A standstill is what the witness saw: here it is the witness alone that is stopped."""

import subprocess
import sys
from pathlib import Path

import pytest

TESTS = """
import os, signal, time
from pathlib import Path
import pytest

@pytest.fixture(scope="module")
def shared():
    with Path("shared").open("a") as file:
        file.write("made\\n")
    if Path("shared").read_text() == "made\\n" and {breaks_shared}:
        stand_still()
        raise OSError("the shared thing died at birth")
    yield
    if Path("shared").read_text() == "made\\n" and {breaks_at_end}:
        raise OSError("the shared thing does not end in order")

def stand_still():
    [witness] = Path(f"/proc/self/task/{{os.getpid()}}/children").read_text().split()
    os.kill(int(witness), signal.SIGSTOP)
    time.sleep(1.0)
    os.kill(int(witness), signal.SIGCONT)

def times_run():
    with Path("runs").open("a") as file:
        file.write("x")
    return len(Path("runs").read_text())

def test_first(shared):
    times = times_run()
    if times in {stills}:
        stand_still()
    assert times in {passes}, "the reason"

def test_second(shared):
    pass
"""


def outcome(
    folder: Path,
    stills: tuple[int, ...],
    passes: tuple[int, ...],
    breaks_shared: bool = False,
    breaks_at_end: bool = False,
) -> tuple[str, str]:
    """What pytest prints, and how often the test ran."""
    text = TESTS.format(
        stills=stills, passes=passes, breaks_shared=breaks_shared, breaks_at_end=breaks_at_end
    )
    (folder / "test_it.py").write_text(text)
    plugin = "from standstill import Standstill\ndef pytest_configure(config):\n"
    (folder / "conftest.py").write_text(
        f"import sys\nsys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        f"{plugin}    config.pluginmanager.register(Standstill())\n"
    )
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-ra", "--rootdir=.", "test_it.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == (0 if "failed" not in done.stdout else 1), done.stdout + done.stderr
    runs = folder / "runs"
    return done.stdout, runs.read_text() if runs.exists() else ""


def test_a_failure_beside_a_standstill_is_run_again_and_told(tmp_path: Path) -> None:
    said, runs = outcome(tmp_path, stills=(1,), passes=(2,))
    assert runs == "xx" and "1 passed, 1 run again" in said
    assert "RUN AGAIN test_it.py::test_first: stood still for 1." in said
    assert (tmp_path / "shared").read_text() == "made\nmade\n", "what it shares is made anew"


@pytest.mark.parametrize(("stills", "times"), [((), "x"), ((1,), "xx"), ((1, 2), "xx"), ((2,), "x")], ids=str)
def test_a_failure_without_a_standstill_and_a_second_one_are_failures(
    tmp_path: Path, stills: tuple[int, ...], times: str
) -> None:
    said, runs = outcome(tmp_path, stills, passes=())
    assert runs == times and "1 failed, 1 passed" in said and "the reason" in said


def test_who_passes_is_not_run_again(tmp_path: Path) -> None:
    said, runs = outcome(tmp_path, stills=(1,), passes=(1,))
    assert runs == "x" and "2 passed" in said


def test_what_died_as_it_was_made_is_made_again(tmp_path: Path) -> None:
    said, runs = outcome(tmp_path, stills=(), passes=(1,), breaks_shared=True)
    assert runs == "x" and "1 passed, 1 run again" in said


def test_what_was_lost_may_end_badly(tmp_path: Path) -> None:
    said, runs = outcome(tmp_path, stills=(1,), passes=(2,), breaks_at_end=True)
    assert runs == "xx" and "1 passed, 1 run again" in said
