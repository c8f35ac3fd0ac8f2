"""Clients that go, deadlines that pass: what they asked for ends soon, and its pages are free again."""

import asyncio
import json
import socket
from typing import Any

import pytest
from triton_server import Served, refusal, stream, until
from tritonclient.utils import InferenceServerException

pytestmark = pytest.mark.triton

LONG: dict[str, Any] = {"SKILL": "query", "QUESTION": "all of it", "TEMPERATURE": 0.0, "MAX_TOKENS": 4000}


def open_http(server: Served, path: str, **more: Any) -> socket.socket:
    body = json.dumps(LONG | more)
    connection = socket.create_connection(("127.0.0.1", server.http_port), timeout=60)
    connection.sendall(
        f"POST /v2/models/moondream/{path} HTTP/1.1\r\nHost: localhost\r\n"
        f"Content-Length: {len(body)}\r\n\r\n{body}".encode()
    )
    return connection


def test_a_grpc_client_that_goes_frees_its_pages(server: Served) -> None:
    before = server.num_ended("cancelled")

    async def leave() -> None:
        async with server.client() as client:
            answers = stream(client, STREAM=True, **LONG)
            async for _ in answers:
                until(lambda: server.metric("kestrel_pages_used") > 0)
                break
            await answers.aclose()

    asyncio.run(leave())
    until(lambda: server.num_ended("cancelled") == before + 1 and server.is_idle())


def test_an_http_client_that_goes_after_the_first_chunk_frees_its_pages(server: Served) -> None:
    before = server.num_ended("cancelled")
    with open_http(server, "generate_stream", STREAM=True) as connection:
        received = b""
        while b"data: " not in received:
            received += connection.recv(4096)
    until(lambda: server.num_ended("cancelled") == before + 1 and server.is_idle())


def test_an_http_client_that_goes_before_costs_at_most_its_deadline(server: Served) -> None:
    before = server.num_ended("deadline_passed")
    with open_http(server, "generate", timeout=400_000):
        until(lambda: server.metric("kestrel_open_requests") == 1)
    until(lambda: server.num_ended("deadline_passed") == before + 1 and server.is_idle())


def test_a_deadline_that_passes_ends_the_answer(server: Served) -> None:
    with pytest.raises(InferenceServerException) as raised:
        server.ask(timeout_us=150_000, **LONG)
    status, answer = server.post(LONG | {"timeout": 150_000})
    assert status == 400
    for message in (refusal(raised.value), refusal(answer)):
        assert message.startswith("CANCELLED: deadline_passed: ")
        assert message.endswith("the request's deadline passed while it was being answered")
    until(lambda: server.is_idle())


def test_a_deadline_that_is_kept_changes_nothing(server: Served) -> None:
    assert server.ask(timeout_us=30_000_000, **(LONG | {"MAX_TOKENS": 3}))[0]["finish_reason"] == "length"


def test_a_multitude_that_goes_leaves_nothing_behind(server: Served) -> None:
    async def one(client: Any, number: int) -> None:
        answers = stream(client, STREAM=True, **(LONG | {"QUESTION": f"{number}?"}))
        async for _ in answers:
            break
        await answers.aclose()

    async def run() -> None:
        async with server.client() as client:
            await asyncio.gather(*(one(client, number) for number in range(40)))

    asyncio.run(run())
    until(lambda: server.is_idle())
    assert server.ask(**(LONG | {"MAX_TOKENS": 2}))[0]["finish_reason"] == "length"
