"""What a program of ours writes to stderr, passed on to ours: as it is, but never as a flood.

A line that repeats is written once and then counted. Whatever else comes faster than anybody can read is left
out, and counted too. Our own stderr may be slow or blocked: the program never waits for it.
"""

import os
import queue
import re
import select
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import IO

LINES_PER_S, BURST_LINES = 50, 1000  # a traceback of every thread fits into a burst
BYTES_PER_S, BURST_BYTES = 16 * 2**10, 512 * 2**10
MAX_LINE_BYTES = 16 * 2**10
TELL_S = 5.0  # how often counts are told while a flood goes on
WAITING_LINES = 2000  # for a stderr that is blocked
STAMP = re.compile(rb"^[EWIF]\d{4} [\d:.]+ +\d+ ")  # of Triton's log: level, date, time and thread


class LogBounds:
    """Decides, line by line, what is passed on. Owns the counts of what is not."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lines: float = BURST_LINES
        self._bytes: float = BURST_BYTES
        self._refilled_at = self._told_at = clock()
        self._last = b""
        self._repeated = self._left_out = self._left_out_bytes = 0

    def take(self, line: bytes) -> Iterator[bytes]:
        """What to write for this line: the line, counts that were due before it, or nothing."""
        what = STAMP.sub(b"", line)
        if what == self._last:
            self._repeated += 1
            yield from self.counts()
            return
        self._refill()
        if self._lines < 1 or self._bytes < len(line):
            self._left_out += 1
            self._left_out_bytes += len(line)
            yield from self.counts()
            return
        yield from self.counts(now=True)
        self._last = what
        self._lines -= 1
        self._bytes -= len(line)
        yield line

    def counts(self, now: bool = False) -> Iterator[bytes]:
        """What was not passed on, if it is time to tell it."""
        if not now and self._clock() - self._told_at < TELL_S:
            return
        self._told_at = self._clock()
        if self._repeated:
            times = "once more" if self._repeated == 1 else f"{self._repeated:,} times more"
            yield f"... the last line came {times}\n".encode()
        if self._left_out:
            yield f"... {self._left_out:,} lines ({self._left_out_bytes:,} bytes) were left out\n".encode()
        self._repeated = self._left_out = self._left_out_bytes = 0

    def _refill(self) -> None:
        now = self._clock()
        passed_s, self._refilled_at = now - self._refilled_at, now
        self._lines = min(BURST_LINES, self._lines + passed_s * LINES_PER_S)
        self._bytes = min(BURST_BYTES, self._bytes + passed_s * BYTES_PER_S)


class LogRelay:
    """Two threads: one reads what the program writes, the other writes it to our stderr.

    `kept` is the first line in which `keep` was found, for whom it would be too far above.
    """

    def __init__(
        self, source: IO[bytes], leave_out: bytes | None = None, keep: re.Pattern[bytes] | None = None
    ) -> None:
        self._source = source
        self._leave_out = leave_out
        self._keep = keep
        self.kept: bytes | None = None
        self._bounds = LogBounds()
        self._waiting: queue.Queue[bytes | None] = queue.Queue(WAITING_LINES)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._writer = threading.Thread(target=self._write, daemon=True)
        self._reader.start()
        self._writer.start()

    def join(self, timeout_s: float) -> None:
        """Until all that the program has written is passed on; one that cannot be killed is given up."""
        deadline = time.monotonic() + timeout_s
        for thread in (self._reader, self._writer):
            thread.join(max(deadline - time.monotonic(), 0.0))

    def _read(self) -> None:
        with self._source:
            for line in self._lines():
                if line is None:
                    self._pass_on(self._bounds.counts())
                elif self._leave_out is None or self._leave_out not in line:
                    if self.kept is None and self._keep is not None and self._keep.search(line):
                        self.kept = line
                    self._pass_on(self._bounds.take(line))
        self._pass_on(self._bounds.counts(now=True))
        with suppress(queue.Full):
            self._waiting.put(None, timeout=1)

    def _lines(self) -> Iterator[bytes | None]:
        """As they come; None when nothing has come for a while. The last may have no end."""
        source, rest = self._source.fileno(), b""
        while True:
            if not select.select([source], [], [], TELL_S)[0]:
                yield None
                continue
            read = os.read(source, 2**16)
            if not read:
                break
            *lines, rest = (rest + read).splitlines(keepends=True) if b"\n" in read else [rest + read]
            if rest.endswith(b"\n") or len(rest) > MAX_LINE_BYTES:
                lines, rest = [*lines, rest], b""
            yield from lines
        if rest:
            yield rest

    def _pass_on(self, lines: Iterator[bytes]) -> None:
        for line in lines:
            with suppress(queue.Full):  # nobody reads our errors; the program must not wait for that
                self._waiting.put_nowait(line)

    def _write(self) -> None:
        while (line := self._waiting.get()) is not None:
            with suppress(OSError):
                os.write(2, line)
