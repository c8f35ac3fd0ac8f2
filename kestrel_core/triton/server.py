"""A tritonserver that we started: its process, its stubs, its shared memory, and what it tells over HTTP."""

import json
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from kestrel_core.config import RuntimeConfig
from kestrel_core.triton.deafness import Deafness
from kestrel_core.triton.installation import STUB, Installation
from kestrel_core.triton.log_relay import LogRelay
from kestrel_core.triton.options import ServeOptions
from kestrel_core.triton.probing import address, ask, fetch
from kestrel_core.triton.process import kill_group, launch
from kestrel_core.triton.restrictions import HTTP_HEADER, restriction_flags
from kestrel_core.triton.runs import Run

# Costs no step of the model, and only the model's own process can answer it.
QUESTION = json.dumps({"SKILL": "about"}).encode()
OPEN_REQUESTS = re.compile(r"^kestrel_open_requests\{.*\} (\S+)$", re.MULTILINE)
ENGINE_INFO = re.compile(r"^kestrel_engine_info\{(.*)\} 1", re.MULTILINE)
LABEL = re.compile(r'(\w+)="([^"]*)"')
TOLD_ELSEWHERE = ("engine", "model", "version")
# Triton says this once on every machine without a GPU, as if it were an error.
NO_GPU = b"CudaDriverHelper has not been initialized"
# Why it cannot be started as asked: what getopt says of a flag, above 400 lines of usage, or our own engine
# of its configuration, within a stack that Triton writes as one line.
REFUSAL = re.compile(
    rb": (unrecognized option |option '--.*' (is ambiguous|requires an argument|doesn't allow an argument))"
    rb"|Failed to create instance: (?:BadCheckpoint|InvalidRequest): (?P<engine>.*?)(?:\\n|$)"
)

CRASHES = tuple(-number for number in (signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS))
HUNG_S = 10.0  # a stub whose model cannot be loaded has ended by then
LAST_WORDS_S = 2.0  # a stub that hangs in a driver may outlive its SIGKILL, and with it what it could write

CPU_FLAGS = ("--allow-gpu-metrics=false", "--pinned-memory-pool-byte-size=0")  # on a CPU both only complain


def triton_flags(options: ServeOptions, config: RuntimeConfig, secret: str | None) -> list[str]:
    return [
        f"--model-repository={options.repository}",
        *(f"--{protocol}-port={port}" for protocol, port in options.ports.items()),
        *(f"--{protocol}-address={options.triton_host}" for protocol in options.ports),
        *restriction_flags(secret),
        f"--exit-timeout-secs={options.exit_timeout_s}",
        "--disable-auto-complete-config",  # it would import the model once more, for nothing
        "--log-info=false",
        *(CPU_FLAGS if config.device == "cpu" else ()),
        *options.flags,
    ]


class Server:
    """The server and its stubs are a process group of their own.

    `on_cpu` leaves out the line in which Triton says that it finds no GPU. `run` names its shared memory.
    """

    def __init__(
        self,
        triton: Installation,
        flags: Sequence[str],
        host: str,
        http_port: int,
        metrics_port: int,
        on_cpu: bool,
        run: Run,
        secret: str | None = None,
    ) -> None:
        backends = [f"--backend-directory={triton.backends}"] if triton.backends else []
        regions = f"--backend-config=python,shm-region-prefix-name={run.shm_prefix}"
        self._run = run
        self._secret = secret
        self._url = f"http://{address(host, http_port)}/v2/models/moondream"
        self._metrics_url = f"http://{address(host, metrics_port)}/metrics"
        self._process = launch(
            [triton.server, *backends, regions, *flags], triton.environment, subprocess.PIPE
        )
        assert self._process.stderr is not None
        self._relay = LogRelay(self._process.stderr, NO_GPU if on_cpu else None, REFUSAL)
        self._stubs: set[int] = set()
        self._waits_since: float | None = None  # for the end of a stub
        self.is_hung = False

    @property
    def exit_code(self) -> int | None:
        return self._process.poll()

    @property
    def may_start_next_time(self) -> bool:
        """What ended this start says nothing against what was asked: it hung, or ended by a fault.

        If the machine stands still for a second while a model is loaded, Triton may take the model's process
        for dead. It then aborts over a lock that the two share, or waits for the end of a process that lives.
        """
        return self.refusal is None and (self.is_hung or self.exit_code in CRASHES)

    @property
    def refusal(self) -> str | None:
        """Why it cannot be started as asked, if it said so; all is read once it was killed."""
        line = self._relay.kept or b""
        found = REFUSAL.search(line)
        if found is None:
            return None
        return (found["engine"] or line).decode(errors="replace").replace('\\"', '"').strip()

    def is_ready(self) -> bool:
        # Noted now, since they cannot be found once the server has died.
        self._stubs.update(_stubs_of(self._process.pid))
        self._note_waiting()
        return fetch(f"{self._url}/ready") is not None

    def deafness(self) -> Deafness:
        """Of a server that is ready. Nobody queues for this answer, so a busy engine gives it too."""
        headers = {} if self._secret is None else {HTTP_HEADER: self._secret}
        return Deafness(
            lambda timeout_s: ask(f"{self._url}/generate", QUESTION, headers, timeout_s)[0],
            lambda status: status == 200,  # Triton itself says 400 when it cannot reach the model's process
            len(self._stubs),
        )

    def _note_waiting(self) -> None:
        """While a model is loaded, nobody has asked its process to end."""
        waits, now = bool(self._stubs) and _waits_for_a_child(self._process.pid), time.monotonic()
        self._waits_since = (self._waits_since or now) if waits else None
        self.is_hung = self._waits_since is not None and now - self._waits_since >= HUNG_S

    def has_lost_a_stub(self) -> bool:
        """Triton does not notice: its health stays green, and open streams hang."""
        return not all(_runs(pid) for pid in self._stubs)

    def num_open(self) -> int | None:
        """Requests that have not had their last response; None where the metrics cannot be read."""
        text = fetch(self._metrics_url)
        found = OPEN_REQUESTS.findall(text) if text is not None else []
        return sum(int(float(number)) for number in found) if found else None

    def engine_info(self) -> list[str]:
        """What each engine computes with, in words; empty where the metrics do not say so."""
        return engine_info_in(fetch(self._metrics_url) or "")

    def ask_to_end(self) -> None:
        self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End what is left of it at once, and free the shared memory that it would leave behind."""
        kill_group(self._process)
        self._relay.join(LAST_WORDS_S)
        self._run.free_shared_memory()


def engine_info_in(metrics: str) -> list[str]:
    """One line for all engines that compute with the same."""
    said = set()
    for labels in ENGINE_INFO.findall(metrics):
        told = {name: value for name, value in LABEL.findall(labels) if name not in TOLD_ELSEWHERE}
        said.add(", ".join(f"{name.replace('_', ' ')} {value}" for name, value in told.items()))
    return sorted(said)


def _stubs_of(server: int) -> Iterator[int]:
    for folder in Path("/proc").glob("[0-9]*"):
        status = _status(int(folder.name))
        if status and status[0].startswith(STUB[:15]) and int(status[2]) == server:
            yield int(folder.name)


def _waits_for_a_child(process: int) -> bool:
    """Whether one of its threads does. False where this may not be looked at."""
    for thread in Path(f"/proc/{process}/task").glob("*/wchan"):
        with suppress(OSError):
            if thread.read_text() == "do_wait":
                return True
    return False


def _runs(pid: int) -> bool:
    status = _status(pid)
    return status is not None and status[0].startswith(STUB[:15]) and status[1] not in "ZX"


def _status(pid: int) -> tuple[str, str, str] | None:
    """Name (of which the kernel keeps 15 letters), state and parent."""
    try:
        line = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    name, _, rest = line.partition("(")[2].rpartition(")")
    state, parent = rest.split()[:2]
    return name, state, parent
