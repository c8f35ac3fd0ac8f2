"""Several processes that answer on the same ports: started, watched, replaced when they die, ended together.

Each has listening sockets of its own on these ports, among which the kernel spreads connections evenly; from
one socket for all, whoever is fastest takes nearly all of them. This process opened the sockets, and keeps
them for who comes after a worker that died. Each worker is a fresh interpreter, since gRPC does not survive a
fork, and they share a folder for what they count together.
"""

import logging
import multiprocessing
import multiprocessing.connection
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType

from kestrel_core.protocol.errors import KestrelError
from kestrel_core.triton.process import Restarts, ending
from kestrel_gateway.options import GatewayOptions
from kestrel_gateway.records.logs import Log
from kestrel_gateway.records.metrics import WORKERS_FOLDER, forget_worker

log = logging.getLogger("kestrel.gateway")

Doors = Sequence[socket.socket]  # of one worker
Work = Callable[[GatewayOptions, Doors], int]
WATCH_S = 0.1
LINGER_S = 5.0  # a worker that has not ended so long after its own limit never will
CANNOT_START = 2
IN_ORDER = (0, -signal.SIGTERM)  # the second: it had not begun to serve


def run_workers(options: GatewayOptions, doors: Sequence[Doors], work: Work) -> int:
    """Until a signal. Returns 0 if all requests were answered, 1 if some were not, 2 if none could be."""
    Log(options.log_format).install()
    with shared_folder() as folder:
        return Workers(replace(options, shared=folder), doors, work).run()


class Workers:
    def __init__(self, options: GatewayOptions, doors: Sequence[Doors], work: Work) -> None:
        self._options = options
        self._work = work
        self._restarts = Restarts()
        self._running: dict[multiprocessing.process.BaseProcess, Doors] = {}
        self._due = [(0.0, each) for each in doors]  # when to start a worker for those that have none
        self._ending_since: float | None = None
        self._code = 0

    def run(self) -> int:
        handlers = {
            signal.SIGTERM: self._on_end,
            signal.SIGINT: self._on_end,
            signal.SIGHUP: self._on_hangup,
        }
        before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
        try:
            while self._running or self._ending_since is None:
                self._start_those_due()
                multiprocessing.connection.wait([worker.sentinel for worker in self._running], WATCH_S)
                self._bury_the_dead()
                self._lose_patience()
            return self._code
        finally:
            for worker in self._running:
                worker.kill()
            for number, handler in before.items():
                signal.signal(number, handler)

    def _start_those_due(self) -> None:
        if self._ending_since is not None:
            return
        now = time.monotonic()
        due, self._due = [it for it in self._due if it[0] <= now], [it for it in self._due if it[0] > now]
        for _, doors in due:
            arguments = (self._work, self._options, doors)
            worker = multiprocessing.get_context("spawn").Process(target=_begin_work, args=arguments)
            worker.start()
            self._running[worker] = doors
            self._restarts.note_well()

    def _bury_the_dead(self) -> None:
        for worker in [worker for worker in self._running if worker.exitcode is not None]:
            doors = self._running.pop(worker)
            assert worker.pid is not None and worker.exitcode is not None
            forget_worker(worker.pid)
            self._after(worker.pid, worker.exitcode, doors)

    def _after(self, pid: int, code: int, doors: Doors) -> None:
        if self._ending_since is not None:
            for door in doors:
                door.close()  # those who come now are told so by the workers that are left
            if code not in IN_ORDER:
                self._code = self._code or 1
            return
        if code == CANNOT_START:  # it has said why, and the others will say the same
            self._code = CANNOT_START
            self._end()
            return
        pause_s = self._restarts.next_pause_s(ending(code))
        log.error("worker %d ended (%s)%s", pid, ending(code), self._restarts.again(pause_s))
        self._due.append((time.monotonic() + pause_s, doors))

    def _lose_patience(self) -> None:
        limit_s = self._options.drain_s + self._options.exit_timeout_s + LINGER_S
        if self._ending_since is not None and time.monotonic() > self._ending_since + limit_s:
            for worker in self._running:
                worker.kill()

    def _on_end(self, number: int, frame: FrameType | None) -> None:
        self._end()

    def _on_hangup(self, number: int, frame: FrameType | None) -> None:
        self._pass_on(signal.SIGHUP)

    def _end(self) -> None:
        """A second time it ends them at once."""
        self._ending_since = self._ending_since or time.monotonic()
        self._pass_on(signal.SIGTERM)

    def _pass_on(self, number: signal.Signals) -> None:
        for worker in self._running:
            if worker.pid is not None and worker.exitcode is None:
                os.kill(worker.pid, number)


@contextmanager
def shared_folder() -> Iterator[Path]:
    """Gone with the last worker. Metrics are told of it by their own variable, which workers inherit."""
    with TemporaryDirectory(prefix="kestrel-gateway-") as name:
        folder = Path(name)
        metrics = folder / "metrics"
        metrics.mkdir()
        os.environ[WORKERS_FOLDER] = str(metrics)
        try:
            yield folder
        finally:
            del os.environ[WORKERS_FOLDER]


def _begin_work(work: Work, options: GatewayOptions, doors: Doors) -> None:
    """The first thing in a worker. Until it listens to SIGHUP itself, that must not end it."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        sys.exit(work(options, doors))
    except KestrelError as error:
        print(f"kestrel: {error}", file=sys.stderr)
        sys.exit(CANNOT_START)
