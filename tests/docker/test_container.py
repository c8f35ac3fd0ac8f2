"""What the container runs, without the container: its entry point and health check around a real server."""

import base64
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from free_ports import free_ports
from triton_server import port_flags, until

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parents[2]
DOCKER = ROOT / "docker"
# 1 x 1, the smallest PNG there is
PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)

pytestmark = pytest.mark.triton


class Container:
    """The entry point as a process, with the ports of the server behind it."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        ports = free_ports(4)
        self.http, self.grpc, _, self.gateway = ports
        kestrel = folder / "kestrel"  # as an install puts it on PATH
        kestrel.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m kestrel_core.cli.main "$@"\n')
        kestrel.chmod(0o755)
        environment = {
            "PATH": f"{folder}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "KESTREL_MODEL": "moondream-tiny",
            "KESTREL_DEVICE": "cpu",
        }
        self.process = subprocess.Popen(
            [DOCKER / "entrypoint.sh", *port_flags(ports), *arguments],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def wait_for(self, words: str) -> None:
        """Read what it says until it says this."""
        assert self.process.stdout is not None
        said = []
        alarm = threading.Timer(90, self.process.terminate)
        alarm.start()
        try:
            for line in self.process.stdout:
                said.append(line)
                if words in line:
                    return
        finally:
            alarm.cancel()
        pytest.fail(f'it never said "{words}":\n{"".join(said)}')

    def check(self) -> subprocess.CompletedProcess[str]:
        return health(f"--gateway=localhost:{self.gateway}")

    def ask(self, **inputs: Any) -> dict[str, Any]:
        address = f"http://localhost:{self.http}/v2/models/moondream/generate"
        with urlopen(address, json.dumps(inputs).encode(), timeout=30) as answer:
            return dict(json.loads(json.load(answer)["TEXT_OUTPUT"]))

    def exported(self) -> dict[str, float]:
        """Every metric with the sum over its labels."""
        with urlopen(f"http://localhost:{self.gateway}/metrics/engine", timeout=10) as answer:
            lines = re.findall(r"^(\w+)(?:{.*})? (\S+)$", answer.read().decode(), re.MULTILINE)
        found = dict.fromkeys((name for name, _ in lines), 0.0)
        for name, value in lines:
            found[name] += float(value)
        return found

    def stub(self) -> int:
        """The process that runs the model."""
        below = [pid for child in children(self.process.pid) for pid in children(child)]
        [stub] = [pid for pid in below if b"stub" in Path(f"/proc/{pid}/cmdline").read_bytes()]
        return stub


def health(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, f"{DOCKER}/healthcheck.py", *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def pod_arguments() -> list[str]:
    deployment = yaml.safe_load((DOCKER / "kubernetes/deployment.yaml").read_text())
    [server] = deployment["spec"]["template"]["spec"]["containers"]
    return list(server["args"])


def listeners() -> list[tuple[str, int, str]]:
    """Address (as /proc writes it), port and socket of everybody who listens on this machine."""
    lines = [line for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()]
    words = [line.split() for line in lines]
    return [(*_place(it[1]), f"socket:[{it[9]}]") for it in words if it[3] == "0A"]


def _place(text: str) -> tuple[str, int]:
    address, _, port = text.partition(":")
    return address, int(port, 16)


def children(pid: int) -> list[int]:
    return [
        int(child)
        for task in Path(f"/proc/{pid}/task").glob("*/children")
        for child in task.read_text().split()
    ]


@pytest.fixture(scope="module")
def container(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Container]:
    container = Container(tmp_path_factory.mktemp("bin"), *pod_arguments())
    with container.process as process:  # closes its pipe, and waits
        try:
            container.wait_for("answers after")
            yield container
        finally:
            process.terminate()
            process.wait(timeout=90)


def test_the_health_check_passes_on_a_server_that_answers(container: Container) -> None:
    done = container.check()
    assert done.returncode == 0, done.stderr


def test_the_gateway_answers_at_all_ports_and_triton_listens_inside_alone(container: Container) -> None:
    everywhere = {port for address, port, _ in listeners() if not address.strip("0")}
    assert {container.gateway, container.http, container.grpc} <= everywhere
    [triton] = [pid for pid in children(container.process.pid) if "tritonserver" in program(pid)]
    held = {os.readlink(link) for link in Path(f"/proc/{triton}/fd").iterdir()}
    of_triton = [(address, port) for address, port, socket in listeners() if socket in held]
    assert of_triton and all(address.endswith("0100007F") for address, _ in of_triton), "127.0.0.1"
    assert {port for _, port in of_triton}.isdisjoint((container.gateway, container.http, container.grpc))


def program(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_bytes().partition(b"\0")[0].decode()


def test_whatever_the_dashboard_the_alerts_and_the_autoscaler_read_is_exported(container: Container) -> None:
    files = ("grafana/kestrel.json", "prometheus/alerts.yml", "kubernetes/autoscaler.yaml")
    text = "".join((DOCKER / file).read_text() for file in files)
    wanted = set(re.findall(r"\bkestrel_\w+", text))
    counted = {
        f"kestrel_{what}_count" for what in ("ttft_seconds", "image_decode_seconds", "request_seconds")
    }
    container.ask(SKILL="caption", IMAGE=base64.b64encode(PICTURE).decode(), MAX_TOKENS=4)
    deadline = time.monotonic() + 10
    while True:  # what has just happened is exported within a second, one metric after the other
        found = container.exported()
        missing = wanted - set(found) | {name for name in counted if not found.get(name)}
        if not missing:
            break
        assert time.monotonic() < deadline, f"nobody exports {sorted(missing)}"


def test_the_health_check_sees_that_the_stub_is_dead_and_that_it_is_back(container: Container) -> None:
    stub = container.stub()
    container.process.send_signal(signal.SIGSTOP)  # or the supervisor would be quicker
    try:
        os.kill(stub, signal.SIGKILL)
        done = until(lambda: (it := container.check()).returncode and it)
    finally:
        container.process.send_signal(signal.SIGCONT)
    assert done.stderr
    container.wait_for("answering again")
    assert container.stub() != stub
    until(lambda: container.check().returncode == 0)


def test_the_containers_sigterm_ends_it_in_order(container: Container) -> None:
    container.process.terminate()
    assert container.process.wait(timeout=90) == 0
