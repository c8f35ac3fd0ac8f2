"""Keeps one Triton running: starts it, watches it, starts it again, ends it when a signal says so.

If the model's process dies, Triton neither notices nor replaces it. The server is then ended, so that every
waiting client gets an error, and started again.
"""

import signal
import time
from collections import deque
from types import FrameType

from rich.console import Console

from kestrel_core.config import RuntimeConfig
from kestrel_core.triton.banner import banner
from kestrel_core.triton.installation import Installation
from kestrel_core.triton.options import ServeOptions
from kestrel_core.triton.server import Server

CPU_FLAGS = ("--allow-gpu-metrics=false", "--pinned-memory-pool-byte-size=0")  # on a CPU both only complain
MAX_RESTARTS, WITHIN_S = 5, 600.0
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
WATCH_S = 0.1
TELL_S = 1.0  # the metrics that say what is in use come a moment after readiness
LINGER_S = 10.0  # a server needs 3 to 6 s to end after its last request


class Supervisor:
    def __init__(
        self, triton: Installation, options: ServeOptions, config: RuntimeConfig, console: Console
    ) -> None:
        self._triton = triton
        self._options = options
        self._config = config
        self._console = console
        self._signals = 0
        self._is_ready = False
        self._restarts: deque[float] = deque(maxlen=MAX_RESTARTS)

    def run(self) -> int:
        before = {number: signal.signal(number, self._on_signal) for number in SIGNALS}
        try:
            return self._keep_running()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _keep_running(self) -> int:
        while True:
            self._is_ready = False
            server = Server(
                self._triton,
                self._flags(),
                self._options.host,
                self._options.http_port,
                self._options.metrics_port,
                on_cpu=self._config.device == "cpu",
            )
            try:
                trouble = self._start(server) or self._watch(server)
                if trouble is None:
                    return self._end(server)
            finally:
                server.kill()
            if not self._may_restart(trouble):
                return 1 if not self._signals else 0

    def _start(self, server: Server) -> str | None:
        """Wait until it answers. Returns what went wrong, if anything did."""
        began = time.monotonic()
        name = self._config.model_path or self._config.model
        with self._console.status("") as status:
            while not self._signals:
                seconds = time.monotonic() - began
                status.update(f"loading {name} on {self._config.device}: {seconds:.0f} s")
                if server.exit_code is not None:  # while it loads Triton does notice, and says why
                    return _trouble(server)
                if server.is_ready():
                    self._is_ready = True
                    break
                time.sleep(2 * WATCH_S)
        if self._is_ready and not self._restarts:
            options = self._options
            info = self._engine_info(server)
            self._say(banner(name, self._config, seconds, options.host, options.ports, info))
        elif self._is_ready:
            self._say(f"answering again after {seconds:.1f} s")
        return None

    def _engine_info(self, server: Server) -> list[str]:
        deadline = time.monotonic() + TELL_S
        while not (info := server.engine_info()) and not self._signals and time.monotonic() < deadline:
            time.sleep(WATCH_S)
        return info

    def _watch(self, server: Server) -> str | None:
        while not self._signals:
            if trouble := _trouble(server):
                return trouble
            time.sleep(WATCH_S)
        return None

    def _may_restart(self, trouble: str) -> bool:
        now = time.monotonic()
        if not self._is_ready and not self._restarts:
            self._say(f"{trouble} before it was ready; what it wrote above says why")
            return False
        if len(self._restarts) == MAX_RESTARTS and now - self._restarts[0] < WITHIN_S:
            self._say(f"{trouble}, the {MAX_RESTARTS + 1}th time in {WITHIN_S / 60:g} minutes; giving up")
            return False
        while self._restarts and now - self._restarts[0] > WITHIN_S:
            self._restarts.popleft()
        pause_s = 2 ** len(self._restarts) - 1  # 0, 1, 3, 7, 15
        self._restarts.append(now)
        self._say(f"{trouble}; starting it again" + (f" in {pause_s} s" if pause_s else ""))
        while not self._signals and time.monotonic() < now + pause_s:
            time.sleep(WATCH_S)
        return not self._signals

    def _end(self, server: Server) -> int:
        """Let requests under way finish. A second signal does not wait for them."""
        if not self._is_ready:
            return 0
        self._say(f"ending; requests under way have {self._options.exit_timeout_s} s")
        server.ask_to_end()
        num_open, idle_since = server.num_open(), None
        while server.exit_code is None and self._signals == 1:
            # Metrics are served almost to the end. Once they are gone, their last value is used.
            num_open = known if (known := server.num_open()) is not None else num_open
            idle_since = None if num_open != 0 else idle_since or time.monotonic()
            if idle_since is not None and time.monotonic() - idle_since > LINGER_S:
                break  # Triton waits for requests that clients have cancelled, and would wait for ever
            time.sleep(WATCH_S)
        if server.exit_code == 0 or num_open == 0:
            return 0
        self._say("requests were cut off")
        return 1

    def _flags(self) -> list[str]:
        options = self._options
        return [
            f"--model-repository={options.repository}",
            *(f"--{protocol}-port={port}" for protocol, port in options.ports.items()),
            *(f"--{protocol}-address={options.host}" for protocol in options.ports),
            f"--exit-timeout-secs={options.exit_timeout_s}",
            "--disable-auto-complete-config",  # it would import the model once more, for nothing
            "--log-info=false",
            *(CPU_FLAGS if self._config.device == "cpu" else ()),
            *options.flags,
        ]

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._signals += 1

    def _say(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)


def _trouble(server: Server) -> str | None:
    code = server.exit_code
    if code is not None:
        return f"the server ended ({f'exit code {code}' if code >= 0 else signal.Signals(-code).name})"
    return "the process that runs the model has died" if server.has_lost_a_stub() else None
