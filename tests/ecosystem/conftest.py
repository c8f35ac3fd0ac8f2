"""The real stack for other people's clients: `kestrel serve --demo`, and a second gateway that asks for keys.

What the clients are told is judged against what our own client is told about the same picture.
"""

import hashlib
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from typing import Any
from urllib.request import urlopen

import pytest
from free_ports import free_ports
from other_clients import ROOT, SAMPLE, Drive, run_driver
from triton_server import Served, served, until

from kestrel_client import Client

KEYS = ("free", "narrow", "rare-python", "rare-node")


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("stack") / "log", "--demo", gateway=True) as server:
        yield server


@pytest.fixture(scope="session")
def address(stack: Served) -> str:
    return f"http://127.0.0.1:{stack.port}"


@pytest.fixture(scope="session")
def keyed(stack: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a gateway with a file of keys. A key is its name and `-key`."""
    folder = tmp_path_factory.mktemp("keyed")
    limits = {"narrow": 'skills = ["query"]'} | dict.fromkeys(KEYS[2:], "requests_per_minute = 1")
    rows = [
        f'[[keys]]\nname = "{name}"\nsha256 = "{hashlib.sha256(f"{name}-key".encode()).hexdigest()}"\n'
        f"{limits.get(name, '')}\n"
        for name in KEYS
    ]
    (folder / "keys.toml").write_text("\n".join(rows))
    [port] = free_ports(1)
    options = [f"--upstream=127.0.0.1:{stack.grpc_port}", f"--port={port}", "--drain-s=0"]
    command = [sys.executable, "-m", "kestrel_core.cli.main", "gateway", *options]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [*command, f"--api-keys={folder / 'keys.toml'}"], cwd=ROOT, stdout=log, stderr=log
        )
        try:
            until(lambda: is_ready(port) or process.poll() is not None, 60)
            assert process.poll() is None, (folder / "log").read_text()
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(60)


@pytest.fixture(scope="session")
def truth(stack: Served) -> dict[str, Any]:
    """What our own client is told about the picture."""
    with Client(f"127.0.0.1:{stack.grpc_port}") as client:
        return {
            "answer": client.query(SAMPLE, "How many circles are there?", temperature=0.0).text,
            "caption": client.caption(SAMPLE, temperature=0.0).text,
            "description": client.query(SAMPLE, "Describe the picture.", temperature=0.0).text,
            "objects": client.detect(SAMPLE, "green circle").output["objects"],
            "points": client.point(SAMPLE, "green circle").output["points"],
            "segments": client.segment(SAMPLE, "green circle").output["segments"],
        }


@pytest.fixture(scope="session")
def drive(tmp_path_factory: pytest.TempPathFactory) -> Drive:
    """Runs a driver, and gives what it printed. None of them sees the home of whoever runs the tests."""
    return partial(run_driver, tmp_path_factory.mktemp("home"))


def is_ready(port: int) -> bool:
    try:
        with urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
