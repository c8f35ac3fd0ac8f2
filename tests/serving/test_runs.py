"""What a killed run has left is cleared by the next; what belongs to anybody else is never touched."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kestrel_core.triton.runs import SHARED_MEMORY, Run, clear_left_over, open_run

SLEEP = [sys.executable, "-c", "import time; print(flush=True); time.sleep(600)"]
# A run that starts one process, says who it is, and is killed.
KILLED = """
import subprocess, sys
from pathlib import Path
from kestrel_core.triton.runs import SHARED_MEMORY, open_run
with open_run(Path(sys.argv[1])) as run:
    child = subprocess.Popen(sys.argv[2:], env=run.variables, stdout=subprocess.PIPE, start_new_session=True)
    child.stdout.readline()
    (SHARED_MEMORY / f"{run.shm_prefix}abc").touch()
    print(run.folder, run.token, child.pid, flush=True)
    input()
"""


@pytest.fixture
def killed(tmp_path: Path) -> Iterator[tuple[Run, int]]:
    """A run that was killed, and its process, which is frozen."""
    command = [sys.executable, "-c", KILLED, str(tmp_path), *SLEEP]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    folder, token, pid = process.stdout.readline().split()
    os.kill(int(pid), signal.SIGSTOP)
    process.kill()
    process.communicate()
    yield Run(Path(folder), token), int(pid)
    if is_running(int(pid)):
        os.kill(int(pid), signal.SIGKILL)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_a_frozen_orphan_its_shared_memory_and_its_folder_are_cleared(
    killed: tuple[Run, int], tmp_path: Path
) -> None:
    run, pid = killed
    assert is_running(pid) and run.folder.exists()
    [said] = clear_left_over(tmp_path)
    assert "1 of its processes" in said
    assert not is_running(pid) and not run.folder.exists()
    assert not list(SHARED_MEMORY.glob(f"{run.shm_prefix}*"))
    assert clear_left_over(tmp_path) == []


def test_a_run_that_goes_on_is_left_alone(tmp_path: Path) -> None:
    with open_run(tmp_path) as run:
        region = SHARED_MEMORY / f"{run.shm_prefix}abc"
        region.touch()
        with subprocess.Popen(SLEEP, env=run.variables, stdout=subprocess.PIPE) as child:
            assert child.stdout is not None and child.stdout.readline()
            assert clear_left_over(tmp_path) == []
            assert child.poll() is None and region.exists() and run.folder.exists()
            child.kill()
        run.free_shared_memory()
    assert not run.folder.exists() and not region.exists()


def test_processes_without_the_token_and_folders_without_a_run_are_left_alone(
    killed: tuple[Run, int], tmp_path: Path
) -> None:
    strange = tmp_path / "kestrel-strange"
    strange.mkdir()
    (tmp_path / "kestrel-odd").mkdir()
    (tmp_path / "kestrel-odd" / "run").write_text("../../etc")
    with subprocess.Popen(SLEEP, env=Run(tmp_path, "0" * 16).variables, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None and other.stdout.readline()
        assert len(clear_left_over(tmp_path)) == 1
        assert other.poll() is None and strange.exists() and (tmp_path / "kestrel-odd").exists()
        other.kill()


def test_a_status_is_replaced_as_a_whole(tmp_path: Path) -> None:
    run = Run(tmp_path, "0" * 16)
    for number in (1, 2):
        run.tell({"triton": {"restarts": number}})
    assert run.status.read_text() == '{"triton": {"restarts": 2}}'
    Run(tmp_path / "gone", "0" * 16).tell({})  # a full disk is no reason to end
