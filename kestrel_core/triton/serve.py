"""`kestrel serve`: starts Triton on the model repository, and looks after it.

What can be known to go wrong is said before the start, in a sentence. Afterwards the server is watched, since
Triton neither notices nor replaces a model process that died: it is then ended, which tells every waiting
client, and started again.
"""

import os
import re
import shlex
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from kestrel_core.config import RuntimeConfig
from kestrel_core.intake.hub import fetch_model
from kestrel_core.intake.models import find_model
from kestrel_core.protocol.errors import BadCheckpoint, KestrelError
from kestrel_core.triton.installation import Installation, Server, check_stub, find_triton

CHECKOUT = Path(__file__).parents[2]
REPOSITORY = CHECKOUT / "model_repository"
PARAMETER = re.compile(r'key:\s*"(\w+)"\s*,?\s*value:?\s*{\s*string_value:\s*"([^"]*)"')
TINY = "moondream-tiny"
DEMO = {"KESTREL_MODEL": TINY, "KESTREL_DEVICE": "cpu", "KESTREL_MODEL_PATH": "", "KESTREL_WEIGHTS": ""}
SHARED_MEMORY = Path("/dev/shm")
NEEDED_BYTES, WANTED_BYTES = 32 * 2**20, 256 * 2**20
GPU_DEVICES = (Path("/dev/nvidiactl"), Path("/dev/nvhost-ctrl-gpu"), Path("/dev/dxg"))  # also Jetson, WSL
CPU_FLAGS = ("--allow-gpu-metrics=false", "--pinned-memory-pool-byte-size=0")  # which only complain there
MAX_RESTARTS, WITHIN_S = 5, 600.0
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
WATCH_S = 0.1
LINGER_S = 10.0  # a server needs 3 to 6 s to end after its last request
BANNER = """
{name} on {device} answers after {seconds:.1f} s: http {http}, grpc {grpc}, metrics {metrics}
{noise}
  curl -s localhost:{http}/v2/models/moondream/generate -d {request}
  {client} --url localhost:{grpc} --image {picture} --object "green circle" --question "{question}"

Ctrl-C ends it."""
SAMPLE = CHECKOUT / "client/samples/circles.png"
QUESTION = "How many green circles are there?"  # in the sample; five
TALK = """'{"SKILL": "query", "QUESTION": "What can you do?"}'"""
NOISE = "Its weights are seeded random numbers, so its answers are noise.\n"


@dataclass(frozen=True, slots=True)
class ServeOptions:
    http_port: int
    grpc_port: int
    metrics_port: int
    repository: Path
    exit_timeout_s: int
    demo: bool = False
    flags: Sequence[str] = ()


def serve(options: ServeOptions, console: Console) -> int:
    """Until a signal ends it. 0: everybody was answered, 1: not so. What is wrong beforehand is raised."""
    environment = {**os.environ, **DEMO} if options.demo else dict(os.environ)
    config = RuntimeConfig.from_parameters(_parameters(options.repository), environment=environment)
    check_device(config.device)
    check_shared_memory(shutil.disk_usage(SHARED_MEMORY).free, console)
    check_ports({"http": options.http_port, "grpc": options.grpc_port, "metrics": options.metrics_port})
    with tempfile.TemporaryDirectory(prefix="kestrel-") as workspace:
        triton = find_triton(Path(workspace), environment)
        check_stub(triton)
        weights = resolve_weights(config, console)
        triton = replace(triton, environment={**triton.environment, **weights})
        return Supervisor(triton, options, config, console).run()


def check_device(device: str) -> None:
    if device.startswith("cuda") and not any(path.exists() for path in GPU_DEVICES):
        raise KestrelError(
            f'device is "{device}" and there is no NVIDIA GPU here; KESTREL_DEVICE=cpu serves without one'
        )


def check_shared_memory(free: int, console: Console) -> None:
    """Pictures reach the model through it; a container has 64 MB unless told."""
    advice = "start the container with --shm-size=1g"
    if free < NEEDED_BYTES:
        raise KestrelError(
            f"{SHARED_MEMORY} has {free >> 20} MB free, and pictures need {NEEDED_BYTES >> 20} MB; {advice}"
        )
    if free < WANTED_BYTES:
        console.print(f"{SHARED_MEMORY} has {free >> 20} MB free: large pictures may be refused; {advice}")


def check_ports(ports: Mapping[str, int]) -> None:
    for name, port in ports.items():
        if list(ports.values()).count(port) > 1:
            raise KestrelError(f"port {port} is given twice; http, grpc and metrics need one each")
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("", port))
            except (OSError, OverflowError) as error:
                reason = getattr(error, "strerror", None) or error
                raise KestrelError(
                    f"port {port} cannot be used ({reason}); choose with --{name}-port"
                ) from None


def resolve_weights(config: RuntimeConfig, console: Console) -> dict[str, str]:
    """Find the model's files, or fetch them. Returns the variables that name them to the server."""
    if config.model_path is not None:
        path = Path(config.model_path)
        found = [*path.glob("*.safetensors"), *path.glob("*.pt")] if path.is_dir() else [path]
        if not path.exists():
            raise BadCheckpoint(f"there is no {path}; KESTREL_MODEL_PATH has to name a checkpoint")
        if not found and config.weights != "random":
            raise BadCheckpoint(f"{path} holds no checkpoint, neither *.safetensors nor *.pt")
        return {}
    if find_model(config.model).folder is not None or config.weights == "random":
        return {}
    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn()
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(f"fetching {config.model}", total=None)
        files = fetch_model(
            config.model, lambda done, total: progress.update(task, completed=done, total=total)
        )
    return {
        "KESTREL_MODEL_PATH": str(files.folder),
        "KESTREL_TOKENIZER_PATH": config.tokenizer_path or str(files.tokenizer),
    }


def _parameters(repository: Path) -> dict[str, str]:
    """The model's parameters, as the model itself will get them from Triton."""
    try:
        text = (repository / "moondream/config.pbtxt").read_text()
    except OSError as error:
        raise KestrelError(f"{repository} is no model repository of ours: {error.strerror}") from None
    return dict(PARAMETER.findall(re.sub(r"#.*", "", text)))


class Supervisor:
    """Keeps one server running: starts it, watches it, starts it again, ends it when a signal says so."""

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
            server = Server(self._triton, self._flags(), self._options.http_port, self._options.metrics_port)
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
                if server.exit_code is not None:  # while it loads, Triton does notice, and writes down why
                    return _trouble(server)
                if server.is_ready():
                    self._is_ready = True
                    break
                time.sleep(2 * WATCH_S)
        if self._is_ready and not self._restarts:
            self._say(self._banner(name, seconds))
        elif self._is_ready:
            self._say(f"answering again after {seconds:.1f} s")
        return None

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
            # Metrics are served almost to the end. Once they are gone, what they said last stands.
            num_open = known if (known := server.num_open()) is not None else num_open
            idle_since = None if num_open != 0 else idle_since or time.monotonic()
            if idle_since is not None and time.monotonic() - idle_since > LINGER_S:
                break  # Triton waits in vain for requests that clients have cancelled
            time.sleep(WATCH_S)
        if server.exit_code == 0 or num_open == 0:
            return 0
        self._say("requests were cut off")
        return 1

    def _banner(self, name: str, seconds: float) -> str:
        config, options = self._config, self._options
        client = CHECKOUT / "client/run.py"
        return BANNER.format(
            name=name,
            device=config.device,
            seconds=seconds,
            noise=NOISE if config.weights == "random" else "",
            request=_request(_near(SAMPLE)) if SAMPLE.is_file() else TALK,
            question=QUESTION,
            client=f"{_near(Path(sys.executable))} {_near(client)}" if client.is_file() else "kestrel-client",
            picture=_near(SAMPLE) if SAMPLE.is_file() else "photo.jpg",
            http=options.http_port,
            grpc=options.grpc_port,
            metrics=options.metrics_port,
        )

    def _flags(self) -> list[str]:
        options = self._options
        return [
            f"--model-repository={options.repository}",
            f"--http-port={options.http_port}",
            f"--grpc-port={options.grpc_port}",
            f"--metrics-port={options.metrics_port}",
            f"--exit-timeout-secs={options.exit_timeout_s}",
            "--disable-auto-complete-config",  # it would import torch once more, to no end
            "--log-info=false",
            *(CPU_FLAGS if self._config.device == "cpu" else ()),
            *options.flags,
        ]

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._signals += 1

    def _say(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)


def _request(picture: Path) -> str:
    """A word for the shell, which puts the picture in. `tr`, as not every base64 can write just one line."""
    fields = f'\\"SKILL\\": \\"query\\", \\"QUESTION\\": \\"{QUESTION}\\", \\"TEMPERATURE\\": 0'
    image = f"$(base64 < {shlex.quote(str(picture))} | tr -d '\\n')"
    return f'"{{{fields}, \\"IMAGE\\": \\"{image}\\"}}"'


def _near(path: Path) -> Path:
    """As it would be typed here."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def _trouble(server: Server) -> str | None:
    code = server.exit_code
    if code is not None:
        return f"the server ended ({f'exit code {code}' if code >= 0 else signal.Signals(-code).name})"
    return "the process that runs the model has died" if server.has_lost_a_stub() else None
