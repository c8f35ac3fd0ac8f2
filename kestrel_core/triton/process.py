"""Programs that we start, that die when we do, and that are started again for as long as we live."""

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

MAX_PAUSE_S = 300.0
GOOD_WHILE_S = 60.0  # of answering, after which earlier deaths no longer count
LOOPING = 3  # deaths without a good while between them
ENOUGH_FILES = 4096
# Asks the kernel to kill this process when we die, and then becomes the program. A SIGTERM would not do: a
# program that is frozen does not hear it. This is a program of its own, and no `preexec_fn`, since Python
# must not run between fork and exec of a process with threads, and ours has some. The kernel means the thread
# that called `launch`, so that has to be the main one. A SIGHUP, which means "read your keys again", must not
# end a program that does not listen to it yet.
LAUNCHER = """
import ctypes, os, signal, sys
PR_SET_PDEATHSIG = 1
ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""


def launch(
    command: Sequence[str | Path], environment: Mapping[str, str], stderr: int | None = None
) -> "subprocess.Popen[bytes]":
    """A process group of its own."""
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", LAUNCHER, str(os.getpid()), *command],
        env=environment,
        stdin=subprocess.DEVNULL,
        stderr=stderr,
        start_new_session=True,  # the terminal's Ctrl-C is for us; we pass it on
    )


def kill_group(process: "subprocess.Popen[bytes]") -> None:
    """End what is left of it, children included, at once."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def ending(code: int) -> str:
    """How a program ended, in words."""
    return f"exit code {code}" if code >= 0 else signal.Signals(-code).name


def allow_open_files() -> str | None:
    """As many as the system lets us have, for us and those we start. A warning where that is few."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return few_open_files(hard)


def few_open_files(limit: int) -> str | None:
    if limit == resource.RLIM_INFINITY or limit >= ENOUGH_FILES:
        return None
    return (
        f"At most {limit:,} files may be open at once, and every connection is one: with many clients some "
        f"will be refused. Raise the hard limit (ulimit -Hn, LimitNOFILE) to {ENOUGH_FILES:,} or more."
    )


class Restarts:
    """How often a program was started again, and how long to wait before the next time.

    It is tried for ever. The first time at once, since one death says little; then after 1, 2, 4 ... seconds,
    until it has answered for a good while.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._in_a_row = 0
        self._well_since: float | None = None
        self.total = 0
        self.cause = ""  # of the last one

    def note_well(self) -> None:
        """It answers."""
        if self._well_since is None:
            self._well_since = self._clock()

    @property
    def in_a_row(self) -> int:
        """Without a good while between them."""
        if self._well_since is not None and self._clock() - self._well_since >= GOOD_WHILE_S:
            return 0
        return self._in_a_row

    @property
    def is_looping(self) -> bool:
        return self.in_a_row >= LOOPING

    def next_pause_s(self, cause: str) -> float:
        """Counts a restart and says how long to wait before it."""
        earlier = self.in_a_row
        self._in_a_row = earlier + 1
        self._well_since = None
        self.total += 1
        self.cause = cause
        return min(2.0 ** min(earlier - 1, 30), MAX_PAUSE_S) if earlier else 0.0

    def again(self, pause_s: float) -> str:
        """What comes next, for the end of a sentence about a program that has ended."""
        times = f", {self._in_a_row} times in a row" if self._in_a_row > 1 else ""
        return f"{times}; starting it again" + (f" in {pause_s:g} s" if pause_s else "")
