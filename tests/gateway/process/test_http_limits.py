"""What comes before a request: connections, headers and bytes that are no HTTP, each within its limit."""

import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from gateway_server import FakeUpstream, Running, endless, running

from kestrel_gateway.health import LIVE, READY
from kestrel_gateway.process import http_limits

GET = b"GET /livez HTTP/1.1\r\nHost: a\r\n"
ASKED = GET.replace(b"/livez", b"/v1/models") + b"\r\n"


@pytest.fixture(scope="module")
def gateway() -> Iterator[Running]:
    with running(header_timeout_s=2, idle_timeout_s=2, max_connections=5) as it:
        yield it


def spoken(gateway: Running, *pieces: bytes) -> bytes:
    """What comes back, to the end of the connection. Whoever stops listening early is sent no more."""
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=60) as door:
        threading.Thread(target=_send, args=(door, pieces), daemon=True).start()
        return _heard(door)


def _send(door: socket.socket, pieces: tuple[bytes, ...]) -> None:
    try:
        for piece in pieces:
            door.sendall(piece)
    except OSError:
        pass


def _heard(door: socket.socket) -> bytes:
    answer = b""
    try:
        while more := door.recv(65536):
            answer += more
    except ConnectionResetError:
        pass
    return answer


def refusal(answer: bytes) -> tuple[int, str]:
    """Status and code of an envelope that ends its connection."""
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"connection: close" in head.lower()
    error = json.loads(body)["error"]
    assert error.keys() == {"message", "type", "param", "code"}
    return int(head.split()[1]), error["code"]


@pytest.mark.parametrize(
    ("pieces", "status", "code"),
    [
        ((b"hello\r\n\r\n",), 400, "bad_http"),
        ((b"\x16\x03\x01\x02\x00\x01\x00" + b"\x00" * 50,), 400, "bad_http"),
        ((b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",), 400, "bad_http"),
        ((GET + b"bad header\r\n\r\n",), 400, "bad_http"),
        ((GET + b"A: b\x00c\r\n\r\n",), 400, "bad_http"),
        ((b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n\r\n",), 414, "uri_too_long"),
        ((b"GET /", *(b"a" * 500 for _ in range(40))), 414, "uri_too_long"),
        (
            (GET + b"".join(b"h%d: v\r\n" % index for index in range(101)) + b"\r\n",),
            431,
            "headers_too_large",
        ),
        ((GET + b"a: " + b"v" * 65_536 + b"\r\n\r\n",), 431, "headers_too_large"),
        ((GET + b"a: ", *(b"v" * 9_000 for _ in range(200))), 431, "headers_too_large"),
        (
            (GET, *(b"h%d: " % index + b"v" * 9000 + b"\r\n" for index in range(200))),
            431,
            "headers_too_large",
        ),
        ((GET + b"a: b\r\n",), 408, "body_timeout"),
        ((b"G",), 408, "body_timeout"),
    ],
    ids=lambda value: str(value)[:25],
)
def test_a_head_over_its_limits_is_refused_in_the_envelope(
    gateway: Running, pieces: tuple[bytes, ...], status: int, code: str
) -> None:
    assert refusal(spoken(gateway, *pieces)) == (status, code)


def test_a_refusal_has_the_id_of_its_request(gateway: Running) -> None:
    large = b"a: " + b"v" * 65_536 + b"\r\n\r\n"
    assert b"\r\nx-request-id: mine-1\r\n" in spoken(gateway, GET + b"X-Request-Id: mine-1\r\n" + large)
    for given in (b"", b"X-Request-Id: two words\r\n"):
        head = spoken(gateway, GET + given + large).partition(b"\r\n\r\n")[0]
        assert re.search(rb"\r\nx-request-id: [0-9a-f]{24}(\r\n|$)", head), head


def test_a_refused_head_has_no_body(gateway: Running) -> None:
    head, _, body = spoken(gateway, b"HEAD /" + b"a" * 9000 + b" HTTP/1.1\r\n\r\n").partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 414 ") and body == b""


@pytest.mark.parametrize("pieces", [(), (b"\r\n",)])
def test_a_connection_that_asks_nothing_is_closed(gateway: Running, pieces: tuple[bytes, ...]) -> None:
    assert spoken(gateway, *pieces) == b""


def test_a_connection_that_asks_nothing_more_is_closed(gateway: Running) -> None:
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=60) as door:
        door.sendall(GET + b"\r\n")
        answer = door.recv(65536)
        door.sendall(b"\r\n")
        assert (answer + _heard(door)).count(b"HTTP/1.1") == 1


def test_a_head_within_the_limits_is_read_in_however_many_pieces(gateway: Running) -> None:
    head = GET + b"a: " + b"v" * 60_000 + b"\r\nConnection: close\r\n\r\n"
    pieces = (head[index : index + 700] for index in range(0, len(head), 700))
    assert spoken(gateway, *pieces).startswith(b"HTTP/1.1 200 ")


def test_a_request_after_another_has_limits_of_its_own(gateway: Running) -> None:
    head = GET + b"a: " + b"v" * 40_000 + b"\r\n\r\n"
    last = GET + b"a: " + b"v" * 70_000 + b"\r\n\r\n"
    answer = spoken(gateway, head * 2, last)
    assert answer.count(b"HTTP/1.1 200") == 2 and answer.count(b"HTTP/1.1 431") == 1


def test_what_ended_with_earlier_requests_does_not_count_for_a_head() -> None:
    """A piece that ends one head, holds ten requests and begins another head: of none is it too much."""
    whole = GET + b"a: " + b"v" * 300 + b"\r\n\r\n"
    last = GET + b"Connection: close\r\n\r\n"
    with ExitStack() as both:
        gateway = both.enter_context(running(max_header_bytes=2000))
        door = both.enter_context(socket.create_connection(("127.0.0.1", gateway.port), timeout=60))
        door.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for piece in (whole[:40], whole[40:] + 10 * whole + last[:40], last[40:]):
            door.sendall(piece)
            time.sleep(0.3)  # so that they are read one by one; together they would be right anyhow
        answer = _heard(door)
    assert answer.count(b"HTTP/1.1 200") == answer.count(b"HTTP/1.1") == 12, answer


def test_an_upgrade_is_answered_in_the_http_it_came_in(gateway: Running) -> None:
    answer = spoken(gateway, GET + b"Connection: Upgrade, close\r\nUpgrade: h2c\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200 ")


WISH = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"


@pytest.mark.parametrize("cut", [1, 40, 100, 150, 200, 260])
def test_a_body_behind_an_upgrade_is_a_body_and_no_request(gateway: Running, cut: int) -> None:
    """However it is cut on the way; as curl and Java's client send it."""
    body = json.dumps({"question": "GET /livez HTTP/1.1\r\nHost: a\r\n\r\n"}).encode()
    head = b"POST /v1/query HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n" + WISH
    sent = head + b"Content-Length: %d\r\n\r\n" % len(body) + body
    last = GET + b"Connection: close\r\n\r\n"
    gateway.upstream.asked.clear()
    answer = spoken(gateway, sent[:cut], sent[cut:], last)
    assert answer.count(b"HTTP/1.1 200") == 2 and answer.count(b"HTTP/1.1") == 2, answer
    [asked] = gateway.upstream.asked
    assert asked.arguments == json.loads(body)


def test_a_chunked_body_behind_an_upgrade_is_read(gateway: Running) -> None:
    head = b"POST /v1/query HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n" + WISH
    body = b'11\r\n{"question": "?"}\r\n0\r\n\r\n'
    answer = spoken(
        gateway, head + b"Transfer-Encoding: chunked\r\n\r\n" + body + GET + b"Connection: close\r\n\r\n"
    )
    assert answer.count(b"HTTP/1.1 200") == 2 and answer.count(b"HTTP/1.1") == 2, answer


def test_nothing_is_connected_to(gateway: Running) -> None:
    answer = spoken(gateway, b"CONNECT /v1/query HTTP/1.1\r\nHost: a\r\n\r\n" + GET + b"\r\n")
    assert refusal(answer) == (400, "bad_http")


class Connections(list[http_limits.LimitedProtocol]):
    """All that were made, each of which takes little unread; and whether one was lost."""

    def __init__(self) -> None:
        self.is_one_lost = threading.Event()


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> Connections:
    made = Connections()

    class Noted(http_limits.LimitedProtocol):
        def connection_made(self, transport: Any) -> None:
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2048)
            super().connection_made(transport)
            made.append(self)

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            made.is_one_lost.set()

    monkeypatch.setattr(http_limits, "LimitedProtocol", Noted)
    return made


@contextmanager
def asking(gateway: Running, text: bytes) -> Iterator[socket.socket]:
    """A client that takes little before it reads."""
    with socket.socket() as door:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        door.connect(("127.0.0.1", gateway.port))
        door.sendall(text)
        yield door


def test_who_does_not_read_an_answer_is_left(connections: Connections) -> None:
    """Of answers that are more than a connection takes unread."""
    asked = 12 * b"GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n"
    with running(write_timeout_s=0.2, idle_timeout_s=1) as gateway, asking(gateway, asked):
        assert connections.is_one_lost.wait(60)


LAST = b"GET /v1/models HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"


def test_who_reads_almost_all_of_its_last_answer_is_left(connections: Connections) -> None:
    with running(write_timeout_s=2) as gateway:
        gateway.call_model("m" * 100_000)
        with asking(gateway, LAST) as door:
            door.recv(1)
            transport = connections[0].transport
            while not transport.is_closing():
                time.sleep(0.001)
            while transport.get_write_buffer_size() > 15_000:
                door.recv(500)
            assert connections.is_one_lost.wait(60)


def test_who_reads_slowly_gets_all_of_its_answer(connections: Connections) -> None:
    with running(write_timeout_s=1) as gateway:
        gateway.call_model("m" * 200_000)
        with asking(gateway, LAST) as door:
            size = 0
            while more := door.recv(1000):
                size += len(more)
                time.sleep(0.005)
    assert size > 200_000


@contextmanager
def taken(gateway: Running) -> Iterator[None]:
    """While all connections that there may be are open."""
    with ExitStack() as doors:
        for _ in range(5):
            door = doors.enter_context(socket.create_connection(("127.0.0.1", gateway.port)))
            door.sendall(GET + b"\r\n")
            assert door.recv(1000).startswith(b"HTTP/1.1 200")
        yield
    while gateway.get("/docs")[0] != 200:
        pass  # until the leavers have been noticed


def test_connections_over_the_limit_are_told_so(gateway: Running) -> None:
    with taken(gateway):
        assert refusal(spoken(gateway, ASKED)) == (429, "overloaded")


@pytest.mark.parametrize("path", [*LIVE, *READY])
def test_a_full_gateway_is_not_taken_for_a_dead_one(path: str) -> None:
    with running(max_connections=5) as gateway, taken(gateway):
        answer = spoken(gateway, GET.replace(b"/livez", path.encode() + b"?a=b") + b"\r\n", ASKED)
    assert answer.startswith(b"HTTP/1.1 200 ") and answer.count(b"HTTP/1.1") == 1
    assert b"connection: close" in answer


def test_only_so_many_may_ask_a_full_gateway_for_its_health(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_limits, "SPARE_HEADER_S", 600)
    with running(header_timeout_s=600, max_connections=5) as gateway, taken(gateway), ExitStack() as doors:
        for _ in range(http_limits.NUM_SPARE):
            doors.enter_context(socket.create_connection(("127.0.0.1", gateway.port))).sendall(GET)
        assert refusal(spoken(gateway, GET + b"\r\n")) == (429, "overloaded")


def test_whoever_asks_a_full_gateway_has_little_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_limits, "SPARE_HEADER_S", 0.1)
    with running(header_timeout_s=600, max_connections=5) as gateway, taken(gateway):
        assert refusal(spoken(gateway, GET)) == (408, "body_timeout")


def test_what_was_asked_before_nonsense_is_answered() -> None:
    body = b'{"question": "?"}'
    asked = (
        b"POST /v1/query HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 17\r\n\r\n"
    )
    with running() as gateway:
        answer = spoken(gateway, asked + body + b"nonsense\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200 ") and answer.count(b"HTTP/1.1") == 1


def test_requests_before_their_turn_have_a_limit() -> None:
    upstream = FakeUpstream()
    upstream.scripts = [endless] * 50
    body = b'{"question": "?"}'
    asked = (
        b"POST /v1/query HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 17\r\n\r\n"
    )
    with running(upstream) as gateway:
        assert spoken(gateway, (asked + body) * 1000) == b""
        assert len(upstream.asked) <= 1
