"""Triton's own clients through the guard, and straight to the Triton behind it: the same documents."""

import http.client
import json
import os
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from free_ports import free_ports
from gateway_process import gateway_process
from triton_server import Served, base64_of, picture, until

pytestmark = pytest.mark.triton

PICTURE = picture(1)
REQUESTS: dict[str, dict[str, Any]] = {
    "a question": {"SKILL": "query", "QUESTION": "what is a kestrel?", "MAX_TOKENS": 8},
    "a caption": {"SKILL": "caption", "LENGTH": "short", "IMAGE": PICTURE, "MAX_TOKENS": 8},
    "boxes": {"SKILL": "detect", "OBJECT": "bird", "IMAGE": PICTURE, "MAX_OBJECTS": 3},
    "log probabilities": {"SKILL": "query", "QUESTION": "what?", "MAX_TOKENS": 3, "LOGPROBS": 2},
    "a seed": {"SKILL": "query", "QUESTION": "what?", "MAX_TOKENS": 5, "TEMPERATURE": 0.9, "SEED": 2**40},
    "points": {"SKILL": "query", "QUESTION": "here?", "IMAGE": PICTURE, "SPATIAL_REFS": [[0.1, 0.25]]},
    "stops": {"SKILL": "query", "QUESTION": "what?", "STOP": ["a", "b"], "MAX_TOKENS": 8},
    "what it is": {"SKILL": "about"},
}


@pytest.fixture(scope="module")
def guard(server: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Two workers, which share each port."""
    http_port, grpc_port = free_ports(2)
    log = tmp_path_factory.mktemp("guard") / "log"
    flags = (f"--kserve-http-port={http_port}", f"--kserve-grpc-port={grpc_port}", "--workers=2")
    with gateway_process(log, f"--upstream=127.0.0.1:{server.grpc_port}", *flags) as gateway:
        until(lambda: log.read_text().count("for gRPC") == 2)
        yield Served(gateway.process, [http_port, grpc_port, server.metrics_port, gateway.port], log)


def told(documents: list[Any]) -> str:
    """The last document, but for what was measured, as it was written."""
    return json.dumps({name: value for name, value in documents[-1].items() if name != "metrics"})


@pytest.mark.parametrize("inputs", REQUESTS.values(), ids=list(REQUESTS))
def test_an_answer_through_the_guard_is_tritons(
    server: Served, guard: Served, inputs: dict[str, Any]
) -> None:
    greedy = {"TEMPERATURE": 0.0} if inputs["SKILL"] != "about" else {}
    asked = greedy | inputs | {"request_id": "same"}
    assert told(guard.ask(**asked)) == told(server.ask(**asked))


def test_a_stream_through_the_guard_is_tritons(server: Served, guard: Served) -> None:
    inputs = {"SKILL": "query", "QUESTION": "what?", "STREAM": True, "TEMPERATURE": 0.0, "MAX_TOKENS": 40}
    for one in (server, guard):
        documents = one.ask(**inputs)
        assert "".join(it["chunk"] for it in documents) == documents[-1]["answer"]
        assert [it["completed"] for it in documents] == [False] * (len(documents) - 1) + [True]
        assert len(documents) > 2
    assert guard.ask(**inputs)[-1]["answer"] == server.ask(**inputs)[-1]["answer"]


@pytest.mark.parametrize("path", ["generate", "generate_stream"])
def test_http_through_the_guard_is_tritons(server: Served, guard: Served, path: str) -> None:
    body = {"SKILL": "caption", "IMAGE": base64_of(PICTURE), "TEMPERATURE": 0, "MAX_TOKENS": 8, "id": "same"}
    found = []
    for one in (server, guard):
        status, answer = one.post(body, path)
        assert status == 200, answer
        found.append(told(answer if path == "generate_stream" else [answer]))
    assert found[0] == found[1]


@pytest.mark.parametrize("path", ["", "/config", "/versions/1", "/ready"])
def test_what_the_guard_says_of_the_model_is_what_triton_says(
    server: Served, guard: Served, path: str
) -> None:
    def ask(port: int) -> tuple[int, bytes]:
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
            connection.request("GET", f"/v2/models/moondream{path}")
            answer = connection.getresponse()
            return answer.status, answer.read()

    assert ask(guard.http_port) == ask(server.http_port)


def test_a_refusal_through_the_guard_is_the_servers(server: Served, guard: Served) -> None:
    for inputs in ({"SKILL": "nothing"}, {"SKILL": "query"}, {"SKILL": "detect", "OBJECT": "x"}):
        [direct], [guarded] = server.ask_all([inputs]), guard.ask_all([inputs])
        assert str(direct) == str(guarded)


def test_many_at_once_are_all_answered_alike(guard: Served) -> None:
    inputs = {"SKILL": "query", "QUESTION": "what?", "TEMPERATURE": 0.0, "MAX_TOKENS": 2}
    answers = guard.ask_all([inputs] * 100)
    assert {answer[-1]["answer"] for answer in answers} == {guard.ask(**inputs)[-1]["answer"]}


def test_a_signal_ends_the_guard_in_order(server: Served, tmp_path: Path) -> None:
    [grpc_port] = free_ports(1)
    log = tmp_path / "log"
    upstream = f"--upstream=127.0.0.1:{server.grpc_port}"
    with gateway_process(log, upstream, f"--kserve-grpc-port={grpc_port}") as gateway:
        guard = Served(gateway.process, [0, grpc_port, 0, gateway.port], log)
        assert guard.ask(SKILL="about")
        os.kill(gateway.process.pid, signal.SIGTERM)
        assert gateway.process.wait(60) == 0
