"""What one `kestrel serve` has on its machine, and how the next one clears away what a killed one left.

A run has a folder, a file in it that it keeps locked, and a random token. The token is in the environment of
every process that the run starts, and in the name of its shared memory. Who can take the lock of a run's file
knows that the run is over, and whatever bears its token is left over: nothing else is ever touched. Process
ids would say less, because they are used again, and other containers count them differently.
"""

import fcntl
import json
import os
import re
import secrets
import select
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")
PREFIX = "kestrel-"
# Not KESTREL_*: those are options of the engine, and unknown ones are refused.
TOKEN_VARIABLE = "RUN_OF_KESTREL"
STATUS_VARIABLE = "KESTREL_RUN_STATUS"  # for the gateway, which has no options of the engine
TOKEN = re.compile(r"[0-9a-f]{16}")
GONE_WITHIN_S = 5.0


@dataclass(frozen=True, slots=True)
class Run:
    folder: Path
    token: str

    @property
    def variables(self) -> dict[str, str]:
        """For every process that belongs to it."""
        return {TOKEN_VARIABLE: self.token}

    @property
    def gateway_variables(self) -> dict[str, str]:
        """Its temporary files are ours to clear away. Triton's are caches, which outlive a run."""
        return {**self.variables, STATUS_VARIABLE: str(self.status), "TMPDIR": str(self.folder)}

    @property
    def status(self) -> Path:
        return self.folder / "status.json"

    @property
    def shm_prefix(self) -> str:
        return f"kestrel_{self.token}_"

    def free_shared_memory(self) -> None:
        """Of a server that has ended: it does so itself only if it ends in order."""
        for region in SHARED_MEMORY.glob(f"{self.shm_prefix}*"):
            with suppress(OSError):
                region.unlink()

    def tell(self, status: Mapping[str, object]) -> None:
        """Readers find the old status or the new one, never half of one. A full disk must not end us."""
        new = self.status.with_suffix(".new")
        with suppress(OSError):
            new.write_text(json.dumps(status))
            new.replace(self.status)


@contextmanager
def open_run(root: Path | None = None) -> Iterator[Run]:
    """A new one, in a folder of its own that is gone in the end."""
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=root))
    run = Run(folder, secrets.token_hex(8))
    new, place = folder / "run.new", folder / "run"
    try:
        with new.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.write(run.token)
            file.flush()
            new.rename(place)  # only now, locked and complete, can others find it
            yield run
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def clear_left_over(root: Path | None = None) -> list[str]:
    """End and remove what runs of this user have left. Says what was found, a line for each run."""
    told = []
    for place in sorted(Path(root or tempfile.gettempdir()).glob(f"{PREFIX}*/run")):
        with suppress(OSError), place.open() as file:
            is_ours = os.fstat(file.fileno()).st_uid == os.getuid() == place.parent.lstat().st_uid
            if not is_ours or place.parent.is_symlink():
                continue
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # BlockingIOError: that run goes on
            token = file.read(64)
            if TOKEN.fullmatch(token):
                told.append(_clear(Run(place.parent, token)))
    return told


def _clear(run: Run) -> str:
    killed = [process for pid in _processes() if (process := _killed(run, pid)) is not None]
    _await_ends(killed)
    run.free_shared_memory()
    shutil.rmtree(run.folder, ignore_errors=True)
    processes = f"{len(killed)} of its processes, " if killed else ""
    return f"an earlier server was killed; {processes}its shared memory and its temporary files were cleared"


def _processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()]


def _killed(run: Run, pid: int) -> int | None:
    """A descriptor of the process, if it was the run's and is killed now.

    It is opened first: from then on the process is the one that was looked at.
    """
    try:
        process = os.pidfd_open(pid)
    except OSError:
        return None
    with suppress(OSError):
        if _bears(run, pid):
            signal.pidfd_send_signal(process, signal.SIGKILL)
            return process
    os.close(process)
    return None


def _await_ends(processes: Sequence[int]) -> None:
    """For a while. Who has ended holds no port any more; memory, and the environment in it, goes earlier."""
    deadline = time.monotonic() + GONE_WITHIN_S
    for process in processes:
        waiting = select.poll()
        waiting.register(process, select.POLLIN)
        waiting.poll(1000 * max(0.0, deadline - time.monotonic()))
        os.close(process)


def _bears(run: Run, pid: int) -> bool:
    """Whether the run's token is in its environment."""
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False
    return f"{TOKEN_VARIABLE}={run.token}".encode() in environment.split(b"\0")
