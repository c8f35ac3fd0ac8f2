"""Keeps one Triton running, and a gateway in front of it: starts, watches, starts again, ends on a signal.

If the model's process dies, Triton neither notices nor replaces it; and if it is frozen, nobody says so. The
server is then ended, so that every waiting client gets an error, and started again. That is tried for ever,
after longer and longer pauses: only a first start that fails is given up, and one that crashed or hung is
tried once more. The gateway reads in the status of the run what happened, and tells those who ask for
readiness and metrics.

At the end nothing is lost: the gateway says first that it is not ready, so that balancers send elsewhere;
Triton goes on meanwhile, and is asked to end once the gateway has. Without a gateway nothing can say so
before Triton refuses: whoever sends requests has to be told in another way, and is given `drain_s` for it.
"""

import os
import signal
import time
from collections.abc import Mapping
from types import FrameType

from rich.console import Console

from kestrel_core.config import RuntimeConfig
from kestrel_core.triton.banner import banner, say
from kestrel_core.triton.gateway import Gateway
from kestrel_core.triton.installation import Installation
from kestrel_core.triton.options import ServeOptions
from kestrel_core.triton.process import Restarts, ending
from kestrel_core.triton.runs import Run
from kestrel_core.triton.server import Server, triton_flags

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
WATCH_S = 0.1
ANSWER_S = 30.0  # for a first answer through the gateway; a slower model is shown all the same
TELL_S = 1.0  # the metrics that say what is in use come a moment after readiness
LINGER_S = 10.0  # a server needs 3 to 6 s to end after its last request


class Supervisor:
    def __init__(
        self,
        triton: Installation,
        options: ServeOptions,
        config: RuntimeConfig,
        console: Console,
        run: Run,
        gateway: Gateway | None = None,
        secret: str | None = None,
    ) -> None:
        self._triton = triton
        self._options = options
        self._config = config
        self._console = console
        self._gateway = gateway
        self._run = run
        self._secret = secret
        self._flags = triton_flags(options, config, secret)
        self._signals = 0
        self._must_reread_keys = False
        self._had_terminal = _has_terminal()
        self._is_ready = self._has_been_ready = False
        self._restarts = Restarts()
        self._told: Mapping[str, object] = {}

    def run(self) -> int:
        before = {number: signal.signal(number, self._on_signal) for number in SIGNALS}
        try:
            return self._keep_running()
        finally:
            if self._gateway is not None:
                self._gateway.kill()
            for number, handler in before.items():
                signal.signal(number, handler)

    def _keep_running(self) -> int:
        while True:
            self._is_ready = False
            server = Server(
                self._triton,
                self._flags,
                self._options.triton_host,
                self._options.http_port,
                self._options.metrics_port,
                on_cpu=self._config.device == "cpu",
                run=self._run,
                secret=self._secret,
            )
            try:
                trouble = self._start(server) or self._watch(server)
                if trouble is None:
                    code = self._end(server)
                    return self._failure or code
            finally:
                server.kill()
            if not self._has_been_ready and (self._restarts.total or not server.may_start_next_time):
                return self._give_up(trouble, server.refusal)
            if not self._may_restart(trouble):
                return self._failure or (1 if not self._signals else 0)

    def _start(self, server: Server) -> str | None:
        """Wait until it answers. Returns what went wrong, if anything did."""
        began = time.monotonic()
        name = self._config.model_path or self._config.model
        with self._console.status("") as status:
            while not self._is_over:
                seconds = time.monotonic() - began
                status.update(f"loading {name} on {self._config.device}: {seconds:.0f} s")
                # While it loads Triton does notice that a stub has died, and says why.
                if server.exit_code is not None or server.is_hung:
                    return _trouble(server)
                if server.is_ready() and (self._gateway is None or self._gateway.has_been_up):
                    self._is_ready = True
                    break
                self._pause(2 * WATCH_S)
        if self._is_ready and self._gateway is not None:
            self._await_answer(server, self._gateway)
            seconds = time.monotonic() - began
        if self._is_ready and not self._has_been_ready:
            self._has_been_ready = True
            info = self._engine_info(server)
            self._say(banner(name, self._config, seconds, self._options, info))
        elif self._is_ready:
            self._say(f"answering again after {seconds:.1f} s")
        return None

    def _await_answer(self, server: Server, gateway: Gateway) -> None:
        """The gateway asks Triton every second. What the banner shows is to be answered when it is pasted."""
        deadline = time.monotonic() + ANSWER_S
        while not gateway.is_ready() and not self._is_over and time.monotonic() < deadline:
            if _trouble(server):
                break  # which `_watch` will find and tell
            self._pause(WATCH_S)

    def _engine_info(self, server: Server) -> list[str]:
        deadline = time.monotonic() + TELL_S
        while not (info := server.engine_info()) and not self._is_over and time.monotonic() < deadline:
            self._pause(WATCH_S)
        return info

    def _watch(self, server: Server) -> str | None:
        deafness = server.deafness()
        while not self._is_over:
            self._restarts.note_well()
            if trouble := _trouble(server):
                return trouble
            if deafness.is_found():
                return "the process that runs the model, or the server, no longer answered"
            self._pause(WATCH_S)
        return None

    def _give_up(self, trouble: str, refusal: str | None) -> int:
        self._say(f"{trouble} before it was ready; what it wrote above says why")
        if refusal is not None:
            self._say(refusal)
        return self._failure or (0 if self._signals else 2 if refusal is not None else 1)

    def _may_restart(self, trouble: str) -> bool:
        pause_s = self._restarts.next_pause_s(trouble)
        self._say(trouble + self._restarts.again(pause_s))
        until = time.monotonic() + pause_s
        while not self._is_over and time.monotonic() < until:
            self._pause(WATCH_S)
        return not self._is_over

    def _end(self, server: Server) -> int:
        """Let requests under way finish. A second signal does not wait for them."""
        if not self._is_ready:
            return 0
        options = self._options
        self._say(
            f"ending; requests are still taken for {options.drain_s:g} s, "
            f"and those under way then have {options.exit_timeout_s} s"
        )
        deadline = time.monotonic() + options.drain_s + options.exit_timeout_s + LINGER_S
        self._drain(server)
        server.ask_to_end()
        num_open, idle_since = server.num_open(), None
        while server.exit_code is None and self._signals < 2 and time.monotonic() < deadline:
            # Metrics are served almost to the end. Once they are gone, their last value is used.
            num_open = known if (known := server.num_open()) is not None else num_open
            idle_since = None if num_open != 0 else idle_since or time.monotonic()
            if idle_since is not None and time.monotonic() - idle_since > LINGER_S:
                break  # Triton waits for requests that clients have cancelled, and would wait for ever
            time.sleep(WATCH_S)
        has_finished = self._gateway is None or self._gateway.ended_in_order
        if has_finished and (server.exit_code == 0 or num_open == 0):
            return 0
        self._say("requests were cut off")
        return 1

    def _drain(self, server: Server) -> None:
        """Go on while requests may still come: for `drain_s`, and until the gateway has finished its own."""
        began = time.monotonic()
        limit_s = self._options.drain_s + self._options.exit_timeout_s
        if self._gateway is not None:
            self._gateway.ask_to_end()
        while self._signals < 2 and not _trouble(server) and (spent_s := time.monotonic() - began) < limit_s:
            if spent_s >= self._options.drain_s and (self._gateway is None or self._gateway.has_ended):
                break
            time.sleep(WATCH_S)

    @property
    def _is_over(self) -> bool:
        return self._signals > 0 or self._failure is not None

    @property
    def _failure(self) -> int | None:
        return None if self._gateway is None else self._gateway.failure

    def _pause(self, seconds: float) -> None:
        """All waiting is done here, so that the gateway is looked after meanwhile."""
        self._tell()
        if self._gateway is not None:
            self._gateway.watch()
            if self._must_reread_keys:
                self._must_reread_keys = False
                self._gateway.reread_keys()
        time.sleep(seconds)

    def _tell(self) -> None:
        kept = {"triton": self._restarts} | (
            {} if self._gateway is None else {"gateway": self._gateway.restarts}
        )
        status = {
            name: {
                "restarts": it.total,
                "in_a_row": it.in_a_row,
                "is_looping": it.is_looping,
                "cause": it.cause,
            }
            for name, it in kept.items()
        }
        if status != self._told:
            self._told = status
            self._run.tell(status)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        is_for_gateway = number == signal.SIGHUP and self._gateway is not None
        if is_for_gateway and not (self._had_terminal and not _has_terminal()):
            self._must_reread_keys = True
        else:  # also a SIGHUP because somebody has closed the terminal that we were started in
            self._signals += 1

    def _say(self, text: str) -> None:
        say(self._console, text)


def _trouble(server: Server) -> str | None:
    code = server.exit_code
    if code is not None:
        return f"the server ended ({ending(code)})"
    if server.is_hung:
        return "the server hung (it waited for the end of the model's process, which lives)"
    return "the process that runs the model has died" if server.has_lost_a_stub() else None


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY))
    except OSError:
        return False
    return True
