"""Fair shares at the gateway: how much one caller may have open, its priorities, and whose a request is."""

import asyncio
import json
import resource
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import uvloop
from gateway_server import Running, endless, running

from kestrel_gateway.admission.allowance import PLACES, Allowance
from kestrel_gateway.admission.key_file import digest_of
from kestrel_gateway.admission.memory import FREE_BYTES, Memory
from kestrel_gateway.admission.turns import Turns
from kestrel_gateway.errors import ClientGone, Full, TooManyAtOnce
from kestrel_gateway.process.http_limits import LimitedProtocol
from kestrel_gateway.process.serving import OTHER_FILES, allow_connections
from kestrel_gateway.records.logs import Log
from kestrel_gateway.records.visits import address_of

QUERY = {"question": "What?"}
BODY = b'{"question": "What?"}'


def key_file(folder: Path, **keys: str) -> Path:
    path = folder / "keys.toml"
    rows = (
        f'[[keys]]\nname = "{name}"\nsha256 = "{digest_of(name.encode()).hex()}"\n{more}\n'
        for name, more in keys.items()
    )
    path.write_text("".join(rows))
    return path


@contextmanager
def asking(
    gateway: Running, count: int, header: str = "X-None: 1", source: str = "127.0.0.1"
) -> Iterator[None]:
    """So many clients that have asked and wait."""
    gateway.upstream.scripts = [endless] * count
    head = f"POST /v1/query HTTP/1.1\r\nHost: a\r\n{header}\r\nContent-Type: application/json\r\n"
    with ExitStack() as doors:
        for _ in range(count):
            door = socket.create_connection(("127.0.0.1", gateway.port), 10, (source, 0))
            doors.enter_context(door).sendall(head.encode() + b"Content-Length: 21\r\n\r\n" + BODY)
        while len(gateway.upstream.asked) < count:
            pass
        yield


def test_an_address_has_so_many_requests_open_and_another_one_is_answered() -> None:
    with running(max_caller_requests=3) as gateway, asking(gateway, 3, source="127.0.0.2"):
        assert gateway.post("/v1/query", QUERY)[0] == 200
        assert gateway.get("/healthz")[0] == 200
        with socket.create_connection(("127.0.0.1", gateway.port), 10, ("127.0.0.2", 0)) as door:
            head = b"POST /v1/query HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 21\r\n\r\n"
            door.sendall(head + BODY)
            answer = door.makefile("rb").read()
        assert answer.startswith(b"HTTP/1.1 429 ")
        assert b"retry-after: 1" in answer and b"too_many_at_once" in answer
        assert b"has 3 requests open, which is the limit" in answer
        _, page, _ = gateway.get("/metrics")
        assert 'kestrel:rejections_total{reason="too_many_at_once"} 1.0' in page


def test_a_key_has_so_many_requests_open_and_another_one_is_answered(tmp_path: Path) -> None:
    with (
        running(api_keys=key_file(tmp_path, greedy="", modest=""), max_caller_requests=3) as gateway,
        asking(gateway, 3, "Authorization: Bearer greedy"),
    ):
        status, answer, headers = gateway.post("/v1/query", QUERY, authorization="Bearer greedy")
        assert (status, answer["error"]["code"], headers["retry-after"]) == (429, "too_many_at_once", "1")
        assert gateway.post("/v1/query", QUERY, authorization="Bearer modest")[0] == 200


def test_who_hangs_up_again_and_again_has_no_places_left_and_gets_them_back_in_time() -> None:
    now = 0.0
    allowance = Allowance(3 * PLACES, max_hang_ups_per_s=2.0, clock=lambda: now)

    def hang_up() -> None:
        with pytest.raises(ClientGone), allowance.place("a", "key a"):
            raise ClientGone("gone")

    for _ in range(3):
        hang_up()
    with pytest.raises(TooManyAtOnce, match="key a has 12 requests open or hung up on so many of late"):
        hang_up()
    assert allowance.refusal_again("a", "key a") is not None
    with allowance.place("b", "key b"):
        assert allowance.refusal_again("b", "key b") is None
    now = 0.5
    hang_up()  # one place has come back
    assert allowance.refusal_again("a", "key a") is None
    with pytest.raises(TooManyAtOnce):
        hang_up()
    now = 2.0
    with allowance.place("a", "key a"):
        pass
    assert not allowance.refuses_somebody


def test_who_cancels_now_and_then_loses_no_place() -> None:
    now = 0.0
    allowance = Allowance(1, max_hang_ups_per_s=4.0, clock=lambda: now)
    for number in range(100):
        now = number * 0.25
        with pytest.raises(asyncio.CancelledError), allowance.place("a", "key a"):
            raise asyncio.CancelledError


def test_who_was_refused_is_refused_again_before_a_line_is_written(tmp_path: Path) -> None:
    keys, lines = key_file(tmp_path, greedy="", modest=""), list[bytes]()
    with (
        running(observers=[Log("json", lines.append)], api_keys=keys, max_caller_requests=3) as gateway,
        asking(gateway, 3, "Authorization: Bearer greedy"),
    ):
        for _ in range(3):
            status, answer, headers = gateway.post("/v1/query", QUERY, authorization="Bearer greedy")
            assert (status, answer["error"]["code"], headers["retry-after"]) == (429, "too_many_at_once", "1")
        path = "/v2/models/moondream/generate"
        status, answer, _ = gateway.post(path, QUERY, authorization="Bearer greedy")
        assert status == 429 and answer["error"].startswith("UNAVAILABLE: key greedy has 3 requests open")
        assert gateway.post("/v1/query", QUERY, authorization="Bearer modest")[0] == 200
        assert gateway.post("/v1/query", QUERY, authorization="Bearer unknown")[0] == 401
        _, page, _ = gateway.get("/metrics")
        assert 'kestrel:rejections_total{reason="too_many_at_once"} 4.0' in page
    assert sorted(json.loads(line)["status"] for line in lines) == [200, 401, 429, 499, 499, 499]


async def begun(callers: str) -> list[str]:
    """Who had a turn, in order, where all asked at once in this order; `/` where another turn began."""
    turns, order = Turns(), list[str]()

    async def ask(caller: str) -> None:
        await turns.take(caller)
        order.append(caller)

    asking = [asyncio.create_task(ask(caller)) for caller in callers]
    while not all(task.done() for task in asking):
        order.append("/")
        await asyncio.sleep(0)
    return order


def test_each_turn_begins_one_request_of_each_caller() -> None:
    told = "".join(asyncio.run(begun("aaaaba"))).strip("/").split("/")
    assert ["".join(sorted(turn)) for turn in told if turn] == ["ab", "a", "a", "a", "a"]


def test_a_turn_that_nobody_waits_for_any_more_is_given_to_the_next() -> None:
    async def run() -> None:
        turns = Turns()
        await turns.take("a")
        gone, waiting = (asyncio.create_task(turns.take("a")) for _ in range(2))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.wait_for(waiting, 60)

    asyncio.run(run())


def test_the_engine_is_told_whose_each_request_is(tmp_path: Path) -> None:
    with running() as gateway:
        gateway.post("/v1/query", QUERY, x_forwarded_for="10.1.1.1")
        assert gateway.upstream.asked[0].tenant == "address 127.0.0.1", "nobody is believed unless named"
    with running(api_keys=key_file(tmp_path, alice="")) as gateway:
        gateway.post("/v1/query", QUERY, authorization="Bearer alice")
        assert gateway.upstream.asked[0].tenant == "key alice"
        body = QUERY | {"tenant": "key bob"}
        assert gateway.post("/v1/query", body, authorization="Bearer alice")[0] in (200, 400)
        assert all(request.tenant == "key alice" for request in gateway.upstream.asked)


@pytest.mark.parametrize(
    ("given", "caller"),
    [
        ("10.0.0.7", "10.0.0.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::ffff:10.0.0.7", "10.0.0.7"),
        ("", ""),
    ],
)
def test_an_address_counts_as_far_as_a_caller_cannot_choose_it(given: str, caller: str) -> None:
    assert address_of(given) == caller


@pytest.mark.parametrize(("priority", "status"), [(-10, 403), (-1, 403), (0, 200), (10, 200), (11, 400)])
def test_without_a_key_nobody_goes_before_others(priority: int, status: int) -> None:
    with running() as gateway:
        found, answer, _ = gateway.post("/v1/query", QUERY | {"priority": priority})
        assert found == status, answer
        if status == 403:
            message = f"may ask with a priority from 0 to 10, and this is {priority}"
            assert message in answer["error"]["message"]


def test_a_key_asks_with_the_priorities_that_the_file_gives_it(tmp_path: Path) -> None:
    path = key_file(tmp_path, urgent="priority = [-5, -2]", usual="")
    with running(api_keys=path) as gateway:
        found = {
            (key, priority): gateway.post(
                "/v1/query", QUERY | {"priority": priority}, authorization=f"Bearer {key}"
            )[0]
            for key in ("urgent", "usual")
            for priority in (-6, -5, -2, 0, 1)
        }
    allowed = {("urgent", -5), ("urgent", -2), ("usual", 0), ("usual", 1)}
    assert {asked for asked, status in found.items() if status == 200} == allowed
    assert {status for asked, status in found.items() if asked not in allowed} == {403}


def test_keys_are_salted_unless_the_file_says_otherwise(tmp_path: Path) -> None:
    path = key_file(tmp_path, alice="", bob="", open="salt_cache = false")
    with running(api_keys=path) as gateway:
        for key, more in [("alice", {}), ("bob", {}), ("alice", {"cache_salt": "x"}), ("open", {})]:
            gateway.post("/v1/query", QUERY | more, authorization=f"Bearer {key}")
        salts = [request.cache_salt for request in gateway.upstream.asked]
    assert len(set(salts)) == 4 and salts[3] == "" and all(len(salt) == 32 for salt in salts[:3])


def test_one_caller_leaves_room_for_the_bytes_of_others() -> None:
    memory = Memory(1000)
    with memory.share("greedy") as first, memory.share("greedy") as second, memory.share("other") as other:
        first(FREE_BYTES + 700)
        with pytest.raises(TooManyAtOnce, match="your open requests have 700 bytes"):
            second(FREE_BYTES + 100)
        other(FREE_BYTES + 300)
        with pytest.raises(Full, match="1,000 bytes are open together"):
            other(1)
    assert memory.num_bytes == 0
    with memory.share("alone") as whole:
        whole(FREE_BYTES + 1000)


def test_a_client_that_asked_while_the_gateway_was_busy_is_not_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the loop that really serves, where clocks go before what came while others were read."""
    monkeypatch.setattr(asyncio, "run", uvloop.run)
    read, is_busy = LimitedProtocol.data_received, threading.Event()

    def busy(self: LimitedProtocol, data: bytes) -> None:
        if not is_busy.is_set():
            is_busy.set()
            time.sleep(0.6)
        read(self, data)

    monkeypatch.setattr(LimitedProtocol, "data_received", busy)
    ask = (
        b"POST /v1/query HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 21\r\n\r\n"
    )
    with running(header_timeout_s=0.3) as gateway:
        address = ("127.0.0.1", gateway.port)
        with socket.create_connection(address, 10) as waiting, socket.create_connection(address, 10) as first:
            first.sendall(ask + BODY)
            assert is_busy.wait(60)
            waiting.sendall(ask + BODY)
            assert waiting.recv(4096).startswith(b"HTTP/1.1 200 ")


def test_there_are_no_more_connections_than_files(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (1024, OTHER_FILES + 700))
    monkeypatch.setattr(resource, "setrlimit", lambda kind, pair: limits.append(pair))
    assert allow_connections(4000) == 700
    assert allow_connections(600) == 600
    assert limits[0] == (OTHER_FILES + 700, OTHER_FILES + 700)
