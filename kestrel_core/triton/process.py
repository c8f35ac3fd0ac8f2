"""Programs that we start, that end when we do, and that are started again when they die, but not for ever."""

import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

MAX_RESTARTS, WITHIN_S = 5, 600.0
# Asks the kernel to send SIGTERM to this process if we are killed, and then becomes the program. A SIGHUP,
# which means "read your keys again", must not end a program that does not listen to it yet.
LAUNCHER = """
import ctypes, os, signal, sys
PR_SET_PDEATHSIG = 1
ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
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


class Restarts:
    """How often a program was started again of late, and whether once more is worth it."""

    def __init__(self) -> None:
        self._times: deque[float] = deque(maxlen=MAX_RESTARTS)

    def __bool__(self) -> bool:
        return bool(self._times)

    def next_pause_s(self) -> float | None:
        """Counts a restart and says how long to wait before it; None if there were too many."""
        now = time.monotonic()
        if len(self._times) == MAX_RESTARTS and now - self._times[0] < WITHIN_S:
            return None
        while self._times and now - self._times[0] > WITHIN_S:
            self._times.popleft()
        pause_s = 2.0 ** len(self._times) - 1  # 0, 1, 3, 7, 15
        self._times.append(now)
        return pause_s


def again(pause_s: float | None) -> str:
    """What comes next, for the end of a sentence about a program that has ended."""
    if pause_s is None:
        return f", the {MAX_RESTARTS + 1}th time in {WITHIN_S / 60:g} minutes; giving up"
    return "; starting it again" + (f" in {pause_s:g} s" if pause_s else "")
