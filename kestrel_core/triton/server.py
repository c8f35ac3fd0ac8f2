"""A tritonserver that we started: its process, its stubs, its shared memory, and what it tells over HTTP."""

import os
import re
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from kestrel_core.config import RuntimeConfig
from kestrel_core.triton.installation import STUB, Installation
from kestrel_core.triton.options import ServeOptions
from kestrel_core.triton.probing import address, fetch
from kestrel_core.triton.process import kill_group, launch
from kestrel_core.triton.restrictions import restriction_flags

REGION = re.compile(r"/dev/shm/triton_python_backend_shm_region_[\w-]+")
OPEN_REQUESTS = re.compile(r"^kestrel_open_requests\{.*\} (\S+)$", re.MULTILINE)
ENGINE_INFO = re.compile(r"^kestrel_engine_info\{(.*)\} 1", re.MULTILINE)
LABEL = re.compile(r'(\w+)="([^"]*)"')
TOLD_ELSEWHERE = ("engine", "model", "version")
# Triton says this once on every machine without a GPU, as if it were an error.
NO_GPU = b"CudaDriverHelper has not been initialized"

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

    `on_cpu` leaves out the line in which Triton says that it finds no GPU.
    """

    def __init__(
        self,
        triton: Installation,
        flags: Sequence[str],
        host: str,
        http_port: int,
        metrics_port: int,
        on_cpu: bool,
    ) -> None:
        backends = [f"--backend-directory={triton.backends}"] if triton.backends else []
        self._url = f"http://{address(host, http_port)}/v2/models/moondream/ready"
        self._metrics_url = f"http://{address(host, metrics_port)}/metrics"
        self._process = launch(
            [triton.server, *backends, *flags], triton.environment, subprocess.PIPE if on_cpu else None
        )
        self._passing_on: threading.Thread | None = None
        if self._process.stderr is not None:
            self._passing_on = threading.Thread(target=_pass_on, args=(self._process.stderr,), daemon=True)
            self._passing_on.start()
        self._stubs: set[int] = set()
        self._regions: set[str] = set()

    @property
    def exit_code(self) -> int | None:
        return self._process.poll()

    def is_ready(self) -> bool:
        # Noted now, since they cannot be found once the server has died.
        self._stubs.update(_stubs_of(self._process.pid))
        self._regions |= self._shared_memory()
        return fetch(self._url) is not None

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
        regions = self._regions | self._shared_memory()
        kill_group(self._process)
        if self._passing_on is not None:
            self._passing_on.join(5)
        for region in regions:
            Path(region).unlink(missing_ok=True)

    def _shared_memory(self) -> set[str]:
        try:
            return set(REGION.findall(Path(f"/proc/{self._process.pid}/maps").read_text()))
        except OSError:
            return set()


def engine_info_in(metrics: str) -> list[str]:
    """One line for all engines that compute with the same."""
    said = set()
    for labels in ENGINE_INFO.findall(metrics):
        told = {name: value for name, value in LABEL.findall(labels) if name not in TOLD_ELSEWHERE}
        said.add(", ".join(f"{name.replace('_', ' ')} {value}" for name, value in told.items()))
    return sorted(said)


def _pass_on(errors: IO[bytes]) -> None:
    """Line by line, as they come and as they are, without the one line that is no error."""
    with errors:
        for line in errors:
            if NO_GPU not in line:
                with suppress(OSError):  # nobody reads our errors any more; Triton's must not block it
                    os.write(2, line)


def _stubs_of(server: int) -> Iterator[int]:
    for folder in Path("/proc").glob("[0-9]*"):
        status = _status(int(folder.name))
        if status and status[0].startswith(STUB[:15]) and int(status[2]) == server:
            yield int(folder.name)


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
