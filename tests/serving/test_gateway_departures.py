"""Clients of the gateway that go, by every path: what they asked for ends soon, and its pages are free."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from triton_server import Served, served, until

pytestmark = pytest.mark.triton

ASKED = "all of it"
CHAT = [{"role": "user", "content": ASKED}]
LONG: dict[str, dict[str, Any]] = {
    "/v1/query": {"question": ASKED, "temperature": 0, "max_tokens": 4000},
    "/v1/chat/completions": {"model": "moondream", "messages": CHAT, "temperature": 0, "max_tokens": 4000},
    "/v1/completions": {"model": "moondream", "prompt": ASKED, "temperature": 0, "max_tokens": 4000},
    "/v1/responses": {"model": "moondream", "input": ASKED, "temperature": 0, "max_output_tokens": 4000},
}


@pytest.fixture(scope="module")
def pair(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    log = tmp_path_factory.mktemp("pair") / "log"
    with served(log, gateway=True, KESTREL_MODEL_PATH=str(model)) as it:
        yield it


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("path", LONG)
def test_a_client_that_goes_frees_its_pages(pair: Served, path: str, stream: bool) -> None:
    before, said = pair.num_ended("cancelled"), pair.metric("kestrel_output_tokens_total")
    body = json.dumps(LONG[path] | {"stream": stream})
    with socket.create_connection(("127.0.0.1", pair.port), timeout=60) as connection:
        connection.sendall(
            f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n{body}".encode()
        )
        if stream:
            received = b""
            while b"word" not in received:
                received += (more := connection.recv(4096))
                assert more, received
        else:
            # Its own words, since somebody who only looks whether all is well has pages for a moment too.
            until(lambda: pair.metric("kestrel_output_tokens_total") > said + 20)
    until(lambda: pair.num_ended("cancelled") == before + 1 and pair.is_idle())
