"""What Triton writes comes through as it is; a flood of it is counted, and never stops Triton."""

import os
import subprocess
import sys

import pytest

from kestrel_core.triton.log_relay import BURST_BYTES, BURST_LINES, LINES_PER_S, TELL_S, LogBounds, LogRelay

ACCEPT = b"[warn] Error from accept() call: Too many open files\n"


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_line_that_repeats_is_written_once_and_counted() -> None:
    bounds = LogBounds(Clock())
    written = [out for line in [ACCEPT] * 1235 + [b"other\n"] for out in bounds.take(line)]
    assert written == [ACCEPT, b"... the last line came 1,234 times more\n", b"other\n"]


def test_lines_of_triton_that_differ_in_their_time_alone_are_the_same() -> None:
    bounds = LogBounds(Clock())
    lines = [f'E1115 22:01:{i:02}.123456 4711 http.cc:1] "no"\n'.encode() for i in range(60)]
    written = [out for line in lines for out in bounds.take(line)]
    assert written == [lines[0]]
    assert list(bounds.counts(now=True)) == [b"... the last line came 59 times more\n"]


def test_a_count_is_told_while_the_flood_goes_on() -> None:
    clock = Clock()
    bounds = LogBounds(clock)
    assert list(bounds.take(ACCEPT)) == [ACCEPT] and list(bounds.take(ACCEPT)) == []
    clock.now += TELL_S
    assert list(bounds.counts()) == [b"... the last line came once more\n"]
    assert list(bounds.counts()) == []


@pytest.mark.parametrize("length", [20, 2000])
def test_ninety_seconds_of_a_flood_are_a_few_megabytes(length: int) -> None:
    clock = Clock()
    bounds = LogBounds(clock)
    total = num_lines = 0
    for number in range(90_000):
        clock.now = number / 1000
        for out in bounds.take(f"{number}".encode().ljust(length, b"x") + b"\n"):
            total += len(out)
            num_lines += 1
    assert num_lines <= 2 * (BURST_LINES + 90 * LINES_PER_S)
    assert total < BURST_BYTES + 2 * 2**20


def test_what_was_left_out_is_told_before_the_next_line() -> None:
    clock = Clock()
    bounds = LogBounds(clock)
    for number in range(BURST_LINES + 3):
        written = list(bounds.take(f"{number}\n".encode()))
    assert written == []
    clock.now += 1
    assert list(bounds.take(b"at last\n")) == [b"... 3 lines (15 bytes) were left out\n", b"at last\n"]


def test_lines_are_passed_on_as_they_are_also_the_last_without_an_end(
    capfd: pytest.CaptureFixture[str],
) -> None:
    read, write = os.pipe()
    relay = LogRelay(os.fdopen(read, "rb", 0), leave_out=b"secret")
    os.write(write, b"one\ntw")
    os.write(write, b"o\na secret\nthree\nno end")
    os.close(write)
    relay.join(60)
    assert capfd.readouterr().err == "one\ntwo\nthree\nno end"


BLOCKED = """
import os, sys
from kestrel_core.triton.log_relay import LogRelay
read, write = os.pipe()
LogRelay(os.fdopen(read, "rb", 0))
for number in range(40_000):
    os.write(write, b"%d %s\\n" % (number, b"x" * 400))
print("done", flush=True)
"""


def test_a_program_does_not_wait_for_a_stderr_that_nobody_reads() -> None:
    nobody, theirs = os.pipe()
    child = subprocess.Popen(
        [sys.executable, "-c", BLOCKED], stdout=subprocess.PIPE, stderr=theirs, text=True
    )
    try:
        assert child.stdout is not None and child.stdout.readline() == "done\n"
    finally:
        child.kill()
        child.communicate()
        os.close(nobody)
        os.close(theirs)
