"""Several scripted upstreams behind one `Replicas`, and ways for one of them to fail."""

import asyncio
import hashlib
from collections.abc import Awaitable
from typing import Any

from gateway_server import FakeUpstream

from kestrel_core.protocol.errors import EngineFailed, Overloaded, ServerUnreachable, ShuttingDown
from kestrel_core.protocol.messages import EngineResult, Request
from kestrel_gateway.upstream.choosing import choose, digest_of
from kestrel_gateway.upstream.replica import Replica
from kestrel_gateway.upstream.replicas import Replicas

AWAY = ServerUnreachable("no Triton server answers at one:8001")
LOST = ServerUnreachable("one:8001 went away before it answered", may_have_begun=True)
ENDING = ShuttingDown("this server is ending")
FULL = Overloaded("the queue is full")
BROKEN = EngineFailed("the server ended the stream without an answer")


def picture(number: int) -> bytes:
    return hashlib.sha256(str(number).encode()).digest()


def query(number: int | None = None, **more: Any) -> Request:
    image = None if number is None else picture(number)
    return Request("query", {"question": "What?"}, image, timeout_s=30.0, **more)


def several(*names: str, patience_s: float = 0.0) -> tuple[Replicas, list[FakeUpstream]]:
    """Replicas that have all been found well, and who is behind each."""
    fakes = [FakeUpstream() for _ in names]
    replicas = [Replica(f"{name}:8001", fake) for name, fake in zip(names, fakes, strict=True)]
    for replica in replicas:
        replica.is_found_well()
    return Replicas(replicas, patience_s), fakes


def first_and_second(replicas: Replicas, request: Request) -> tuple[FakeUpstream, FakeUpstream]:
    """Who is asked for this picture, and the other of two."""
    first = choose(replicas.replicas, digest_of(request.image))
    second = next(replica for replica in replicas.replicas if replica is not first)
    assert isinstance(first.calls, FakeUpstream) and isinstance(second.calls, FakeUpstream)
    return first.calls, second.calls


async def answer(replicas: Replicas, request: Request) -> EngineResult:
    async with await replicas.open(request) as stream:
        return await stream.result()


def run(work: Awaitable[Any]) -> Any:
    async def within() -> Any:
        async with asyncio.timeout(60):
            return await work

    return asyncio.run(within())
