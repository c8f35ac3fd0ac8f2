"""Clients that go without a word, in every phase of a request: all that they asked for ends, and is freed."""

import json
import socket
import struct
from collections.abc import Callable

import pytest
from attacks.stack import Stack
from triton_server import until

from kestrel_tools.bench.attacks.doors import head

pytestmark = [pytest.mark.triton, pytest.mark.attacks]

MANY = 12
# So hot that no answer ends by itself: uncancelled, they take more than a minute.
LONG = {"question": "Tell me everything.", "settings": {"max_tokens": 700, "temperature": 100, "seed": 1}}
BODY = json.dumps(LONG).encode()
STREAMED = json.dumps(LONG | {"stream": True}).encode()


def headers(stack: Stack, body: bytes) -> bytes:
    given = {"Content-Type": "application/json", "Content-Length": str(len(body)), "Connection": "keep-alive"}
    return head(stack.attacker, "/v1/query", given)


def listen(door: socket.socket, words: bytes) -> None:
    heard = b""
    while words not in heard:
        heard += (more := door.recv(4096))
        assert more, heard


def nothing(stack: Stack, door: socket.socket) -> None:
    pass


def half_a_header(stack: Stack, door: socket.socket) -> None:
    door.sendall(headers(stack, BODY)[:40])


def no_body(stack: Stack, door: socket.socket) -> None:
    door.sendall(headers(stack, BODY))


def half_a_body(stack: Stack, door: socket.socket) -> None:
    door.sendall(headers(stack, BODY) + BODY[: len(BODY) // 2])


def whole_request(stack: Stack, door: socket.socket) -> None:
    door.sendall(headers(stack, BODY) + BODY)


def computing(stack: Stack, door: socket.socket) -> None:
    """Or waiting: there are more of them than are computed at a time."""
    begun = stack.served.metric("kestrel_steps_total")
    whole_request(stack, door)
    until(lambda: stack.served.metric("kestrel_steps_total") > begun, 30)


def streaming(stack: Stack, door: socket.socket) -> None:
    door.sendall(headers(stack, STREAMED) + STREAMED)
    listen(door, b"data: ")


def after_an_answer(stack: Stack, door: socket.socket) -> None:
    body = b'{"question": "What?", "settings": {"max_tokens": 1}}'
    door.sendall(headers(stack, body) + body)
    listen(door, b"finish_reason")


def with_the_next_request_begun(stack: Stack, door: socket.socket) -> None:
    after_an_answer(stack, door)
    half_a_body(stack, door)


PHASES = (
    nothing,
    half_a_header,
    no_body,
    half_a_body,
    whole_request,
    computing,
    streaming,
    after_an_answer,
    with_the_next_request_begun,
)


@pytest.mark.parametrize("by_reset", [False, True], ids=["closing", "resetting"])
@pytest.mark.parametrize("phase", PHASES, ids=lambda phase: phase.__name__)
def test_whoever_goes_leaves_nothing_behind(
    shared: Stack, phase: Callable[[Stack, socket.socket], None], by_reset: bool
) -> None:
    before, processes = shared.footprint(), shared.processes()
    doors = []
    for _ in range(MANY):
        doors.append(socket.create_connection(("127.0.0.1", shared.attacker.port), timeout=60))
        phase(shared, doors[-1])
    for door in doors:
        if by_reset:
            door.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        door.close()
    shared.await_idle(before, within_s=20, slack=4)
    with shared.undisturbed():
        pass
    assert shared.processes() == processes
