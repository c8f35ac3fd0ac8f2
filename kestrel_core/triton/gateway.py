"""The gateway as a program beside Triton: started, watched, started again when it dies.

`kestrel_gateway` stands above this package and is never imported here. A gateway that dies does not disturb
Triton, and while Triton is started again the gateway stays and answers 503.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from importlib.util import find_spec

from rich.console import Console

from kestrel_core.triton.banner import say
from kestrel_core.triton.deafness import Deafness
from kestrel_core.triton.options import ServeOptions
from kestrel_core.triton.probing import address, ask, fetch
from kestrel_core.triton.process import Restarts, ending, kill_group, launch
from kestrel_core.triton.restrictions import SECRET_VARIABLE

PACKAGES = (  # those of the extra `gateway` beside its own
    "kestrel_gateway",
    "starlette",
    "uvicorn",
    "uvloop",
    "httptools",
    "msgspec",
    "python_multipart",
    "prometheus_client",
    "limits",
    "h11",
)
# -P: a dis.py in the folder of the start is not Python's own, and must not be run for it.
MODULE = (sys.executable, "-P", "-m", "kestrel_gateway")
START_TIMEOUT_S = 1.0  # while it starts, all others wait for it that long
IN_ORDER = (0, -signal.SIGTERM)  # a server of uvicorn's finishes its requests, then lets the signal end it


def missing_packages() -> list[str]:
    return [name for name in PACKAGES if find_spec(name) is None]


def gateway_flags(options: ServeOptions) -> list[str]:
    values = {
        "upstream": address(options.triton_host, options.grpc_port),
        "host": options.host,
        "port": options.port,
        "kserve-http-port": options.kserve_http_port or None,
        "kserve-grpc-port": options.kserve_grpc_port or None,
        "engine-metrics": f"http://{address(options.triton_host, options.metrics_port)}/metrics",
        "workers": options.gateway_workers,
        "drain-s": f"{options.drain_s:g}",
        "exit-timeout": options.exit_timeout_s,
        "log-format": options.log_format,
        "api-keys": options.api_keys,
        "allow-image-hosts": options.allow_image_hosts,
    }
    given = [(name, value) for name, value in values.items() if value is not None]
    given += [("limit", limit) for limit in options.limits]
    return [word for name, value in given for word in (f"--{name}", str(value))]


def gateway_environment(environment: Mapping[str, str], secret: str | None) -> dict[str, str]:
    """Whatever can be imported here can be imported there: a checkout need not be installed."""
    found = {**environment, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return found if secret is None else {**found, SECRET_VARIABLE: secret}


class Gateway:
    """Nothing here waits: whoever keeps Triton calls `watch` as often as it looks after that."""

    def __init__(
        self,
        options: ServeOptions,
        environment: Mapping[str, str],
        console: Console,
        program: Sequence[str] = MODULE,
    ) -> None:
        self._command = [*program, *gateway_flags(options)]
        self._environment = environment
        self._console = console
        self._url = f"http://{address(options.host, options.port)}"
        self.restarts = Restarts()
        self._num_workers = options.gateway_workers
        self._deafness: Deafness | None = None  # of one that has answered since it was started
        self._process: subprocess.Popen[bytes] | None = None
        self._start_at = 0.0  # when no process runs: the time to start one
        self._has_been_up = False
        self._is_ending = False
        self._failure: int | None = None

    @property
    def failure(self) -> int | None:
        """If it cannot be started at all: what the whole command's exit code is to be."""
        return self._failure

    @property
    def has_ended(self) -> bool:
        return self._process is None or self._process.poll() is not None

    @property
    def ended_in_order(self) -> bool:
        return self._process is None or self._process.poll() in IN_ORDER

    @property
    def has_been_up(self) -> bool:
        """Whether it has ever answered, if only that it is not ready."""
        return self._has_been_up

    def is_ready(self) -> bool:
        """Whether Triton has answered it."""
        return not self.has_ended and fetch(f"{self._url}/readyz") is not None

    def watch(self) -> None:
        """Start it when it is time to. Note that it has ended or gone deaf: then it is started again."""
        if self._is_ending or self._failure is not None:
            return
        if self._process is None:
            if time.monotonic() >= self._start_at:
                self._process = launch(self._command, self._environment)
        elif (code := self._process.poll()) is not None:
            self._bury(self._process)
            self._after(code)
        elif self._deafness is not None:
            self.restarts.note_well()
            if self._deafness.is_found():
                self._bury(self._process)
                self._start_again("the gateway no longer answered")
        elif self._ask(START_TIMEOUT_S) == 200:
            self._has_been_up = True
            self._deafness = Deafness(self._ask, lambda status: status > 0, self._num_workers)

    def _ask(self, timeout_s: float) -> int:
        return ask(f"{self._url}/livez", timeout_s=timeout_s)[0]

    def _bury(self, process: "subprocess.Popen[bytes]") -> None:
        kill_group(process)  # also its workers, if it has left any behind
        self._process = self._deafness = None

    def _after(self, code: int) -> None:
        if not self._has_been_up:
            say(
                self._console,
                f"the gateway ended ({ending(code)}) before it was ready; what it wrote above says why",
            )
            self._failure = 2 if code == 2 else 1  # 2: it cannot be started as asked
            return
        self._start_again(f"the gateway ended ({ending(code)})")

    def _start_again(self, cause: str) -> None:
        pause_s = self.restarts.next_pause_s(cause)
        say(self._console, cause + self.restarts.again(pause_s))
        self._start_at = time.monotonic() + pause_s

    def reread_keys(self) -> None:
        self._send(signal.SIGHUP)

    def ask_to_end(self) -> None:
        """It says at once that it is not ready, serves on, refuses after a while, finishes, and ends."""
        self._is_ending = True
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        self._is_ending = True
        if self._process is not None:
            kill_group(self._process)

    def _send(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)
