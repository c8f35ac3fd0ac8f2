"""docker/healthcheck.py against servers that answer as Triton does, well and not."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from socket import create_server

import pytest

from kestrel_core.triton.restrictions import HTTP_HEADER, SECRET_VARIABLE

SCRIPT = str(Path(__file__).parents[2] / "docker/healthcheck.py")
REFUSAL = {"error": 'INVALID_ARG: there is no skill "health"'}
TOKEN = {"TEXT_OUTPUT": '{"answer": "a"}'}
SEEN: list[dict[str, str]] = []  # the headers of every question
DEAD = {"error": "Stub process 'moondream_0_0' is not healthy."}


@contextmanager
def triton(ready: int, answer: str) -> Iterator[str]:
    class Triton(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.reply(ready, "")

        def do_POST(self) -> None:
            SEEN.append(dict(self.headers))
            self.rfile.read(int(self.headers["Content-Length"]))
            self.reply(200 if "TEXT_OUTPUT" in answer else 400, answer)

        def reply(self, status: int, body: str) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, format: str, *args: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Triton) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}).start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


def check(*options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, SCRIPT, *options]
    proxy = {"http_proxy": "http://127.0.0.1:9", **environment}  # must not be asked for what runs beside us
    return subprocess.run(command, env=proxy, capture_output=True, text=True, check=False, timeout=20)


@pytest.mark.parametrize(
    ("options", "ready", "answer", "healthy"),
    [
        ((), 200, json.dumps(REFUSAL), True),
        ((), 200, json.dumps(DEAD), False),
        ((), 400, json.dumps(REFUSAL), False),
        ((), 200, "<html>", False),
        (("--compute",), 200, json.dumps(TOKEN), True),
        (("--compute",), 200, json.dumps(DEAD), False),
        (("--compute",), 200, json.dumps(REFUSAL), False),
    ],
)
def test_only_an_answer_of_the_model_itself_is_healthy(
    options: tuple[str, ...], ready: int, answer: str, healthy: bool
) -> None:
    with triton(ready, answer) as address:
        done = check(f"--triton={address}", *options)
    assert (done.returncode, bool(done.stderr)) == ((0, False) if healthy else (1, True))
    assert done.stderr.count("\n") == (0 if healthy else 1), "a reason, and no traceback"


def test_a_server_that_accepts_and_says_nothing_is_not_waited_for() -> None:
    for server in ("triton", "gateway"):
        with create_server(("127.0.0.1", 0)) as silent:
            done = check(f"--{server}=127.0.0.1:{silent.getsockname()[1]}", "--timeout-s=0.2")
        assert done.returncode == 1 and "timed out" in done.stderr


@pytest.mark.parametrize("ready", [200, 503])
def test_a_gateway_is_healthy_when_it_says_that_it_is_ready(ready: int) -> None:
    with triton(ready, "") as address:
        done = check(f"--gateway={address}")
    assert (done.returncode, done.stderr.count("\n")) == ((0, 0) if ready == 200 else (1, 1))


def test_a_triton_that_asks_for_the_secret_is_told_it() -> None:
    with triton(200, json.dumps(REFUSAL)) as address:
        done = check(f"--triton={address}", **{SECRET_VARIABLE: "s3cret"})
        assert done.returncode == 0
    assert SEEN[-1][HTTP_HEADER] == "s3cret"
