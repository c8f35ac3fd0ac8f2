"""The real gateway in front of the real Triton, as `kestrel serve` keeps them."""

import http.client
import json
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from triton_server import Served, served, until

pytestmark = pytest.mark.triton

QUESTION = json.dumps({"question": "What can you do?", "settings": {"max_tokens": 2}})


@pytest.fixture(scope="module")
def pair(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    log = tmp_path_factory.mktemp("pair") / "log"
    with served(log, gateway=True, KESTREL_MODEL_PATH=str(model)) as it:
        yield it


def status(server: Served, method: str, path: str, body: str | None = None) -> int:
    """0 where nobody listens."""
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)) as connection:
        try:
            connection.request(method, path, body, {"Content-Type": "application/json"} if body else {})
            return connection.getresponse().status
        except OSError:
            return 0


def pid_of(server: Served, word: bytes) -> int:
    """Of the child whose command line holds it; 0 if there is none just now."""
    found = [pid for pid in server.children() if word in Path(f"/proc/{pid}/cmdline").read_bytes()]
    return found[0] if found else 0


def test_the_page_is_named_first_and_requests_are_answered(pair: Served) -> None:
    text = pair.log.read_text()
    places = [text.find(part) for part in (f"http://localhost:{pair.port}/\n", "/v1/query", "client/run.py")]
    assert -1 not in places and places == sorted(places)
    until(lambda: status(pair, "GET", "/readyz") == 200)
    assert status(pair, "POST", "/v1/query", QUESTION) == 200


def test_while_triton_is_away_the_gateway_says_503_and_lives(pair: Served) -> None:
    gateway = pid_of(pair, b"kestrel_gateway")
    os.kill(pid_of(pair, b"tritonserver"), signal.SIGKILL)
    with ThreadPoolExecutor() as pool:  # who asks finds out at once; by itself the gateway looks now and then
        asked = pool.submit(status, pair, "POST", "/v1/query", QUESTION)
        until(lambda: status(pair, "GET", "/readyz") == 503)
        assert status(pair, "GET", "/livez") == 200
        assert asked.result() in (200, 503), "200 if it is back already"
    until(lambda: status(pair, "GET", "/readyz") == 200)
    assert pid_of(pair, b"kestrel_gateway") == gateway


def test_a_killed_gateway_is_replaced_and_triton_is_not(pair: Served) -> None:
    triton, gateway = pid_of(pair, b"tritonserver"), pid_of(pair, b"kestrel_gateway")
    os.kill(gateway, signal.SIGKILL)
    until(lambda: pid_of(pair, b"kestrel_gateway") not in (0, gateway))
    until(lambda: status(pair, "GET", "/readyz") == 200)
    assert pid_of(pair, b"tritonserver") == triton


def test_at_the_end_the_gateway_finishes_before_triton(pair: Served) -> None:
    assert pair.end() == 0
    assert status(pair, "GET", "/livez") == 0
