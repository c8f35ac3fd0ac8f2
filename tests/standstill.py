"""A test that fails while the machine stands still is run once more, and the summary says so.

Virtual machines do stand still: one that is moved or copied for a second or two, one on a crowded host more
often. Triton does not survive that at every moment (docs/operations.md). What it was is not guessed from the
failure: a witness, a process that sleeps for moments and looks at the clock, saw the time pass. A failure
without its word stays one, and so does a second one.
"""

import os
import select
import subprocess
import sys
import time
from contextlib import suppress

import pytest
from _pytest.runner import runtestprotocol

ENOUGH_S = 0.7  # of 0.8 to 1.6 s Triton has died
WITNESS = f"""
import os, time
parent, before = os.getppid(), time.monotonic()
print("looks", flush=True)
while os.getppid() == parent:
    time.sleep(0.05)
    now = time.monotonic()
    if now - before >= {ENOUGH_S}:
        print(now, now - before, flush=True)
    before = now
"""
RUN_AGAIN = "run again"


class Standstill:
    """A plugin for one process of pytest. The clock is the machine's: its witness tells the same time."""

    def __init__(self) -> None:
        self._witness: subprocess.Popen[bytes] | None = None  # none where no tests run

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        if self._witness is None:
            command = [sys.executable, "-I", "-S", "-c", WITNESS]
            self._witness = subprocess.Popen(command, stdout=subprocess.PIPE, bufsize=0)
            assert self._witness.stdout is not None and self._witness.stdout.readline() == b"looks\n"
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        began = time.monotonic()
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        failed = [report for report in reports if report.failed]
        if failed and isinstance(item, pytest.Function) and (seconds := self._longest_since(began)):
            # What this test shares with others may be lost too, and may not end as it should.
            with suppress(Exception):
                item.session._setupstate.teardown_exact(None)
            item._initrequest()
            reports = runtestprotocol(item, log=False, nextitem=nextitem)
            for report in reports:
                report.user_properties.append((RUN_AGAIN, f"{item.nodeid}: stood still for {seconds:.1f} s"))
                report.sections.append(("what failed while the machine stood still", failed[0].longreprtext))
        for report in reports:
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        is_again = report.when == "call" and report.passed and RUN_AGAIN in dict(report.user_properties)
        return (RUN_AGAIN, "A", "RUN AGAIN") if is_again else None

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for report in terminalreporter.stats.get(RUN_AGAIN, ()):
            terminalreporter.write_line(f"RUN AGAIN {dict(report.user_properties)[RUN_AGAIN]}")

    def pytest_unconfigure(self) -> None:
        if self._witness is not None:
            self._witness.kill()
            self._witness.communicate()

    def _longest_since(self, began: float) -> float:
        """Seconds of the longest standstill that has ended since then; 0 without one."""
        assert self._witness is not None and self._witness.stdout is not None
        time.sleep(0.2)  # one that has just ended is told in a moment
        source, text = self._witness.stdout.fileno(), b""
        while select.select([source], [], [], 0)[0] and (read := os.read(source, 2**16)):
            text += read
        told = [
            (float(ended_at), float(seconds)) for ended_at, seconds in map(bytes.split, text.splitlines())
        ]
        return max((seconds for ended_at, seconds in told if ended_at >= began), default=0.0)
