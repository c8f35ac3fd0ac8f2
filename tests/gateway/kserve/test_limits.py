"""Who may call the guard's gRPC, how many at once, and how it ends."""

import asyncio
import json
import queue
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc  # type: ignore[import-untyped]
import grpc.aio  # type: ignore[import-untyped]
import pytest
from gateway_server import endless, failing
from guard import Guard, guarding, query, text
from tritonclient.grpc import service_pb2, service_pb2_grpc

from kestrel_core.protocol.errors import Overloaded
from kestrel_core.protocol.messages import Chunk, Request
from kestrel_gateway.admission.key_file import digest_of
from kestrel_gateway.records.logs import Log

ALICE, BOB = "kestrel-alice", "kestrel-bob"


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    path = tmp_path / "keys.toml"
    digest = digest_of(ALICE.encode()).hex()
    path.write_text(
        f'[[keys]]\nname = "alice"\nsha256 = "{digest}"\nskills = ["query"]\nrequests_per_minute = 3\n'
    )
    return path


@pytest.fixture
def two_keys(tmp_path: Path) -> Path:
    path = tmp_path / "keys.toml"
    digests = {name: digest_of(key.encode()).hex() for name, key in (("alice", ALICE), ("bob", BOB))}
    path.write_text("".join(f'[[keys]]\nname = "{it}"\nsha256 = "{digests[it]}"\n' for it in digests))
    return path


def test_a_key_is_asked_for_before_anything_is_read(keys: Path) -> None:
    with guarding(api_keys=keys) as guard:
        assert guard.stub.ModelReady(service_pb2.ModelReadyRequest(name="moondream"), timeout=60).ready
        for metadata in ((), (("authorization", "Bearer nobody"),)):
            for call in (guard.stream, lambda m, **more: guard.stub.ModelInfer(m, timeout=60, **more)):
                with pytest.raises(grpc.RpcError) as raised:
                    call(query(image=b"x" * 60 * 2**20), metadata=metadata)
                assert raised.value.code() is grpc.StatusCode.UNAUTHENTICATED
        with pytest.raises(grpc.RpcError) as raised:
            guard.stub.ModelMetadata(service_pb2.ModelMetadataRequest(name="moondream"), timeout=60)
        assert raised.value.code() is grpc.StatusCode.UNAUTHENTICATED
        assert guard.gateway.upstream.asked == []


def test_every_request_of_a_stream_counts_for_its_key(keys: Path) -> None:
    with guarding(api_keys=keys) as guard:
        metadata = (("x-moondream-auth", ALICE),)
        found = guard.stream(*(query(str(number)) for number in range(5)), metadata=metadata)
        refused = [it for it in found if it.error_message]
        assert len(found) == 5 and len(refused) == 2
        assert refused[0].error_message.startswith("UNAVAILABLE: key alice may ask 3 times a minute")


def test_what_a_key_may_not_ask_is_refused(keys: Path) -> None:
    with guarding(api_keys=keys) as guard:
        message = query()
        message.raw_input_contents[0] = b"\x07\0\0\0caption"
        del message.inputs[1], message.raw_input_contents[1]
        said = guard.refused(message, metadata=(("authorization", f"Bearer {ALICE}"),))
        assert 'key alice may not ask "caption"' in said


def asked_at_once(guard: Guard, count: int) -> list[Any]:
    """All responses of each call; of one that is refused, its status."""

    def read(call: Any) -> Any:
        try:
            return list(call)
        except grpc.RpcError as error:
            return error.code()

    calls = [guard.stub.ModelStreamInfer(iter([query(stream=True)]), timeout=60) for _ in range(count)]
    return [read(call) for call in calls]


def test_five_hundred_at_once_are_all_answered() -> None:
    with guarding() as guard:
        for answers in asked_at_once(guard, 500):
            assert "".join(text(it)["chunk"] for it in answers) == "a red circle"
        assert guard.gateway.house.drain.num_open == 0 and guard.gateway.house.memory.num_bytes == 0


def open_calls(guard: Guard, count: int, key: str) -> list[Any]:
    """Calls that are being answered, and do not end."""
    guard.gateway.upstream.scripts += [endless] * count
    given = (("x-moondream-auth", key),)
    calls = [
        guard.stub.ModelStreamInfer(iter([query(stream=True)]), timeout=60, metadata=given)
        for _ in range(count)
    ]
    for call in calls:
        next(call)
    return calls


async def refused_at_once(guard: Guard, count: int, key: str) -> "Counter[grpc.StatusCode]":
    """As clients for asyncio learn it. Each sends more than a connection takes unread."""
    message = query(image=bytes(300_000))

    async def one(stub: Any) -> grpc.StatusCode:
        call = stub.ModelStreamInfer(iter([message]), timeout=60, metadata=(("x-moondream-auth", key),))
        with suppress(grpc.RpcError):
            async for _ in call:
                pass
        return await call.code()

    async with grpc.aio.insecure_channel(guard.url) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        return Counter(await asyncio.gather(*(one(stub) for _ in range(count))))


def test_more_calls_than_one_caller_may_have_are_refused_and_others_are_answered(two_keys: Path) -> None:
    with guarding(max_calls=8, api_keys=two_keys) as guard:
        of_alice = open_calls(guard, 6, ALICE)
        assert asyncio.run(refused_at_once(guard, 40, ALICE)) == {grpc.StatusCode.RESOURCE_EXHAUSTED: 40}
        of_bob = open_calls(guard, 2, BOB)
        assert asyncio.run(refused_at_once(guard, 40, BOB)) == {grpc.StatusCode.RESOURCE_EXHAUSTED: 40}
        for call in (*of_alice, *of_bob):
            call.cancel()
        assert guard.gateway.upstream.answers[-1].is_cancelled.wait(60)
        while grpc.StatusCode.RESOURCE_EXHAUSTED in asyncio.run(refused_at_once(guard, 1, BOB)):
            time.sleep(0.01)


def test_more_connections_than_there_may_be_are_closed() -> None:
    with guarding(max_connections=20) as guard:
        host, port = guard.url.split(":")
        opened = [socket.create_connection((host, int(port)), timeout=60) for _ in range(40)]
        greetings = []
        for connection in opened:  # all stay open: whoever leaves makes place for another
            with suppress(OSError):
                greetings.append(connection.recv(9))  # a server of HTTP/2 speaks first
        for connection in opened:
            connection.close()
        assert 1 <= len([it for it in greetings if it]) <= 20
        assert len(guard.stream(query())) == 1


def test_a_stream_that_is_full_reads_no_further() -> None:
    with guarding(max_asked_of_call=2) as guard:
        guard.gateway.upstream.scripts += [endless] * 3
        call = guard.stub.ModelStreamInfer((query(str(number), True) for number in range(3)), timeout=2)
        assert {next(call).infer_response.id for _ in range(2)} == {"0", "1"}
        with pytest.raises(grpc.RpcError) as raised:
            next(call)
        assert raised.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        assert len(guard.gateway.upstream.asked) == 2


def test_a_stream_on_which_nothing_is_asked_is_ended() -> None:
    with guarding(call_idle_s=0.2) as guard:
        silence: queue.SimpleQueue[Any] = queue.SimpleQueue()
        with pytest.raises(grpc.RpcError) as raised:
            next(guard.stub.ModelStreamInfer(iter(silence.get, None), timeout=60))
        assert raised.value.code() is grpc.StatusCode.UNAVAILABLE
        assert "nothing was asked on this stream" in raised.value.details()
        silence.put(None)


async def _torrent(request: Request) -> AsyncIterator[Chunk]:
    for number in range(10_000):
        yield Chunk("x" * 10_000, number)


def test_a_client_that_does_not_read_is_left() -> None:
    with guarding(write_timeout_s=0.3) as guard:
        guard.gateway.upstream.scripts.append(_torrent)
        call = guard.stub.ModelStreamInfer(iter([query(stream=True)]), timeout=60)
        next(call)
        assert guard.gateway.upstream.answers[0].is_cancelled.wait(60)
        call.cancel()


def test_it_ends_when_its_streams_have() -> None:
    with guarding(drain_s=0.5, exit_timeout_s=20.0) as guard:
        go_on = asyncio.Event()

        async def held(request: Request) -> AsyncIterator[Chunk]:
            yield Chunk("a ", 1)
            await go_on.wait()

        guard.gateway.upstream.scripts.append(held)
        call = guard.stub.ModelStreamInfer(iter([query(stream=True)]), timeout=60)
        next(call)
        guard.gateway.house.drain.begin()
        assert not guard.stub.ServerReady(service_pb2.ServerReadyRequest(), timeout=60).ready
        assert not guard.stub.ModelReady(service_pb2.ModelReadyRequest(name="moondream"), timeout=60).ready
        while not guard.gateway.house.drain.is_closed:
            pass
        with pytest.raises(grpc.RpcError) as raised:
            guard.stream(query())
        assert "Connection refused" in raised.value.details(), "so that clients ask another one"
        go_on._loop.call_soon_threadsafe(go_on.set)  # type: ignore[attr-defined]
        assert text(next(call))["completed"] is True


def test_a_call_is_logged_and_counted_as_every_request() -> None:
    lines: list[bytes] = []
    with guarding(observers=[Log("json", lines.append)]) as guard:
        guard.gateway.upstream.scripts.append(failing(Overloaded("full")))
        guard.stream(query("refused"))
        guard.stream(query("answered"))
        page = guard.gateway.get("/metrics")[1]
    told = {line["request_id"]: line for line in map(json.loads, lines) if "ModelStreamInfer" in line["path"]}
    assert (told["refused"]["status"], told["refused"]["outcome"]) == (429, "queue_full")
    assert (told["answered"]["status"], told["answered"]["skill"]) == (200, "query")
    labels = 'method="POST",path="/inference.GRPCInferenceService/ModelStreamInfer",status="200"'
    assert f"kestrel:http_requests_total{{{labels}}} 1.0" in page
