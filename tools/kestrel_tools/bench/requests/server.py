"""A real Triton beside the benchmark: `kestrel serve` as a process on free ports."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import NamedTuple
from urllib.error import URLError
from urllib.request import urlopen

from kestrel_core.config import RuntimeConfig
from kestrel_core.protocol.errors import EngineFailed
from kestrel_core.triton.serve import REPOSITORY
from kestrel_tools.bench.requests.callers import Counts

LOADING_S = 900.0  # 18 GB of weights, kernels to compile and graphs to capture
SERIES = re.compile(r"^(kestrel_\w+)(?:\{.*\})? (\S+)$", re.MULTILINE)
ENDLESS_MODEL = """\
'''The product's Triton model, with a query that has as many tokens as are asked for: for benchmarks.'''

from kestrel_core.triton.model import TritonPythonModel as Product
from kestrel_tools.bench.requests.endless_query import endless_skills


class TritonPythonModel(Product):
    skills = endless_skills()
"""


class Ports(NamedTuple):
    http: int
    grpc: int
    metrics: int
    gateway: int  # 0: there is none


@contextmanager
def running_server(
    config: RuntimeConfig, repository: Path = REPOSITORY, gateway_workers: int = 0
) -> Iterator[Ports]:
    """A server that answers, with every option of `config`, whatever the environment says."""
    ports = Ports(_free_port(), _free_port(), _free_port(), _free_port() if gateway_workers else 0)
    flags = [f"--{name}-port={getattr(ports, name)}" for name in ("http", "grpc", "metrics")]
    flags += [f"--port={ports.gateway}", f"--gateway-workers={max(1, gateway_workers)}", "--drain-s=0"]
    values = {option.name: getattr(config, option.name) for option in fields(config)}
    said = {f"KESTREL_{n.upper()}": "" if value is None else str(value) for n, value in values.items()}
    process = subprocess.Popen(
        [sys.executable, "-m", "kestrel_core.cli.main", "serve", f"--model-repository={repository}", *flags],
        env={**os.environ, **said},
        stdout=subprocess.DEVNULL,
    )
    try:
        _wait_until_ready(process, f"http://localhost:{ports.http}/v2/health/ready")
        if ports.gateway:
            _wait_until_ready(process, f"http://localhost:{ports.gateway}/readyz")
        yield ports
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


@contextmanager
def running_guard(upstream: int, workers: int) -> Iterator[int]:
    """The gateway's gRPC in front of the server with this port; gives its own."""
    port, guard = _free_port(), _free_port()
    flags = [f"--upstream=localhost:{upstream}", f"--port={port}", f"--kserve-grpc-port={guard}"]
    flags += [f"--workers={workers}", "--drain-s=0"]
    process = subprocess.Popen(
        [sys.executable, "-m", "kestrel_gateway", *flags],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdout=subprocess.DEVNULL,
    )
    try:
        _wait_until_ready(process, f"http://localhost:{port}/readyz")
        yield guard
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def write_endless_repository(folder: Path) -> Path:
    """A model repository like the product's, but with endless queries."""
    version = folder / "moondream/1"
    version.mkdir(parents=True)
    shutil.copy(REPOSITORY / "moondream/config.pbtxt", folder / "moondream")
    (version / "model.py").write_text(ENDLESS_MODEL)
    return folder


def read_counts(port: int) -> Counts:
    """The engine's counters as the server exports them, a quarter of a second old at most."""
    with urlopen(f"http://localhost:{port}/metrics", timeout=10) as answer:
        return parse_counts(answer.read().decode())


def parse_counts(text: str) -> Counts:
    """Series with the same name are added up over their labels: engines, skills and outcomes."""
    found: Counter[str] = Counter()
    for name, value in SERIES.findall(text):
        found[name] += float(value)  # type: ignore[assignment]
    return dict(found)


def _wait_until_ready(process: "subprocess.Popen[bytes]", url: str) -> None:
    deadline = time.monotonic() + LOADING_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urlopen(url, timeout=1):
                return
        except (URLError, OSError):
            time.sleep(0.1)
    raise EngineFailed("the server did not become ready; what it wrote above says why")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port: int = probe.getsockname()[1]
        return port
