"""Attacks on a gateway in a process of its own, beside a caller that must not notice them.

Each attack is refused in bounded memory, and everything that the caller asks meanwhile is answered.
"""

import http.client
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

import pytest
from client.fake_triton import FakeTriton
from gateway_process import GatewayProcess, gateway_process

MIB = 2**20
LIMITS = (
    "--limit=header_timeout_s=1",
    "--limit=body_timeout_s=6",
    "--limit=max_connections=400",
    "--limit=max_open_bytes=67108864",
)
HEAD = b"POST /v1/query HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: application/json\r\n"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    triton = FakeTriton()
    log = tmp_path_factory.mktemp("attacks") / "log"
    try:
        with gateway_process(log, f"--upstream={triton.url}", *LIMITS) as it:
            yield it
    finally:
        triton.stop()


@contextmanager
def undisturbed(gateway: GatewayProcess, max_growth: int) -> Iterator[None]:
    """A caller asks from before the attack to behind it; afterwards all is answered and memory is bounded."""
    before, is_over, answers = memory_of(gateway), threading.Event(), list[int]()

    def ask_on() -> None:
        while not is_over.is_set() or len(answers) < 3:
            answers.append(ask(gateway))

    caller = threading.Thread(target=ask_on)
    caller.start()
    try:
        yield
    finally:
        is_over.set()
        caller.join(60)
    assert set(answers) == {200}
    assert memory_of(gateway) - before < max_growth


def ask(gateway: GatewayProcess) -> int:
    with closing(http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=60)) as connection:
        body = json.dumps({"question": "What?"})
        connection.request("POST", "/v1/query", body, {"Content-Type": "application/json"})
        return connection.getresponse().status


def memory_of(gateway: GatewayProcess) -> int:
    """The most that it ever held: what was taken and given back counts too."""
    [line] = [
        line
        for line in Path(f"/proc/{gateway.process.pid}/status").read_text().splitlines()
        if line.startswith("VmHWM")
    ]
    return int(line.split()[1]) * 1024


def connected(gateway: GatewayProcess) -> socket.socket:
    return socket.create_connection(("127.0.0.1", gateway.port), timeout=60)


def heard(door: socket.socket) -> bytes:
    """Everything up to the end of the connection."""
    answer = b""
    with suppress(ConnectionResetError):
        while more := door.recv(65536):
            answer += more
    return answer


def sent(gateway: GatewayProcess, head: bytes, pieces: Callable[[], Iterator[bytes]]) -> tuple[bytes, int]:
    """What came back, and how many bytes were taken until then."""
    count = 0
    with connected(gateway) as door:
        with suppress(OSError):
            door.sendall(head)
            for piece in pieces():
                door.sendall(piece)
                count += len(piece)
        return heard(door), count


def test_250_000_nested_arrays(gateway: GatewayProcess) -> None:
    body = b'{"question": ' + b"[" * 250_000
    with undisturbed(gateway, 64 * MIB):
        for _ in range(20):
            answer, _ = sent(gateway, HEAD + b"Content-Length: %d\r\n\r\n" % len(body), lambda: iter([body]))
            assert answer.startswith(b"HTTP/1.1 400 ")


def gigabyte(of: bytes) -> Callable[[], Iterator[bytes]]:
    return lambda: (of for _ in range(2**30 // len(of)))


@pytest.mark.parametrize("path", [b"/v1/query", b"/v1/nothing", b"/livez"])
def test_a_body_of_a_gigabyte_that_says_so(gateway: GatewayProcess, path: bytes) -> None:
    head = HEAD.replace(b"/v1/query", path) + b"Content-Length: %d\r\n\r\n" % 2**30
    with undisturbed(gateway, 64 * MIB):
        answer, taken = sent(gateway, head, gigabyte(b"x" * MIB))
    assert not answer.startswith(b"HTTP/1.1 200 ")
    assert taken < 200 * MIB


def test_a_body_of_a_gigabyte_in_chunks_that_does_not_say_so(gateway: GatewayProcess) -> None:
    chunk = b"100000\r\n" + b" " * MIB + b"\r\n"
    with undisturbed(gateway, 256 * MIB):
        answer, taken = sent(gateway, HEAD + b"Transfer-Encoding: chunked\r\n\r\n", gigabyte(chunk))
    assert answer.startswith(b"HTTP/1.1 413 ") or not answer
    assert taken < 300 * MIB


def test_many_large_bodies_at_once(gateway: GatewayProcess) -> None:
    """32 bodies of 60 MiB: those that do not fit into memory together are told to come again."""
    statuses = list[bytes]()

    def send_one() -> None:
        size = 60 * MIB
        pieces = [b'{"a": "', *[b"x" * MIB] * 59]
        answer, _ = sent(gateway, HEAD + b"Content-Length: %d\r\n\r\n" % size, lambda: iter(pieces))
        statuses.append(answer[9:12])

    with undisturbed(gateway, 160 * MIB):
        threads = [threading.Thread(target=send_one) for _ in range(32)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert len(statuses) == 32
    assert set(statuses) <= {b"429", b"408", b""}
    assert b"429" in statuses


def test_a_flood_of_headers(gateway: GatewayProcess) -> None:
    with undisturbed(gateway, 64 * MIB):
        for line in (b"a: b\r\n", b"c: " + b"d" * 50_000 + b"\r\n"):
            for _ in range(5):
                answer, taken = sent(gateway, HEAD, lambda line=line: (line for _ in range(100_000)))  # type: ignore[misc]
                assert answer.startswith(b"HTTP/1.1 431 ") or not answer
                assert taken < 100 * MIB


def test_a_header_without_end(gateway: GatewayProcess) -> None:
    with undisturbed(gateway, 64 * MIB):
        answer, taken = sent(gateway, HEAD + b"a: ", gigabyte(b"b" * MIB))
    assert answer.startswith(b"HTTP/1.1 431 ") or not answer
    assert taken < 200 * MIB


def test_senders_who_take_their_time(gateway: GatewayProcess) -> None:
    """With their headers or with their bodies, 50 each: all are told so, or left, by the gateway itself."""
    with undisturbed(gateway, 64 * MIB), ExitStack() as doors:
        slow = [doors.enter_context(connected(gateway)) for _ in range(100)]
        for index, door in enumerate(slow):
            door.sendall(HEAD + b"Content-Length: 100\r\n\r\n{" if index % 2 else HEAD)
        answers = [heard(door) for door in slow]
    assert {answer[9:12] for answer in answers} == {b"408"}


def test_200_connections_that_ask_nothing(gateway: GatewayProcess) -> None:
    with undisturbed(gateway, 64 * MIB), ExitStack() as doors:
        idle = [doors.enter_context(connected(gateway)) for _ in range(200)]
        assert {heard(door) for door in idle} == {b""}


def test_more_connections_than_there_may_be(gateway: GatewayProcess) -> None:
    """Whoever comes too late is told to come again, and comes in once there is room; health is told."""
    with ExitStack() as doors:
        for _ in range(400):
            door = doors.enter_context(connected(gateway))
            door.sendall(b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n")
            assert door.recv(4096).startswith(b"HTTP/1.1 200 ")
        assert ask(gateway) == 429
        assert gateway.status_of("/livez") == gateway.status_of("/readyz") == 200
    while (status := ask(gateway)) == 429:
        pass  # until the leavers have been noticed
    assert status == 200


def test_values_in_millions(gateway: GatewayProcess) -> None:
    bodies = [
        b'{"question": [' + b"0," * 15_000_000 + b"0]}",
        b"{" + b'"a":1,' * 5_000_000 + b'"b":1}',
        b'{"question": ' + b"9" * 1_000_000 + b"}",
        b'{"question": "' + b"\\u0001" * 5_000_000 + b'"}',
        b'{"' + b"a" * 30_000_000 + b'": 1}',
    ]
    with undisturbed(gateway, 400 * MIB):
        for body in bodies:
            answer, _ = sent(
                gateway,
                HEAD + b"Content-Length: %d\r\n\r\n" % len(body),
                lambda body=body: iter([body]),  # type: ignore[misc]
            )
            assert answer[9:12] in (b"400", b"413"), answer[:300]
