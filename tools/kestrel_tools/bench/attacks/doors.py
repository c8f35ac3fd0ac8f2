"""Two ways to send a server anything at all, right or wrong: raw HTTP, and gRPC messages as they are.

What comes back is told in one word, so that attacks of every kind can be counted together.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import grpc  # type: ignore[import-untyped]
import grpc.aio  # type: ignore[import-untyped]
from tritonclient.grpc import service_pb2

from kestrel_client.async_client import STREAM_INFER
from kestrel_tools.bench.requests.gateway import read_answer

# answered: with a result; refused: told so in order; closed: the connection ended without a word; hung: no
# end in time; broken: an error that should not be, or a server that is gone.
Outcome = Literal["answered", "refused", "closed", "hung", "broken"]
PATIENCE_S = 90.0
ENDED_WHILE_SENDING = "Internal error from Core"  # as gRPC tells it to a client whose message nobody read
UNLIMITED = (("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1))
REFUSALS = (
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.OUT_OF_RANGE,
    grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.UNAUTHENTICATED,
    grpc.StatusCode.UNIMPLEMENTED,
    grpc.StatusCode.DEADLINE_EXCEEDED,
)


@dataclass(frozen=True, slots=True)
class Target:
    """Where a server is, and whose key is sent. `grpc` is its KServe port, if that is to be asked."""

    host: str
    port: int
    grpc: str | None = None
    key: str | None = None


class Reply(NamedTuple):
    status: int  # 0: the connection was closed without one
    body: bytes

    @property
    def outcome(self) -> Outcome:
        if self.status == 0:
            return "closed"
        if self.status == 200:
            return "answered"
        return "refused" if self.status < 500 or self.status in (501, 503, 504) else "broken"

    @property
    def document(self) -> Any:
        return json.loads(self.body)


def head(target: Target, path: str, headers: Mapping[str, str], method: str = "POST") -> bytes:
    lines = {"Host": f"{target.host}:{target.port}", "Connection": "close", **headers}
    if target.key is not None:
        lines["Authorization"] = f"Bearer {target.key}"
    return "\r\n".join(
        (f"{method} {path} HTTP/1.1", *(f"{k}: {v}" for k, v in lines.items()), "\r\n")
    ).encode()


@asynccontextmanager
async def connected(target: Target) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection(target.host, target.port, limit=2**20)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()  # what is still to be sent is not waited for


async def send_http(
    target: Target,
    path: str,
    body: bytes = b"",
    headers: Mapping[str, str] | None = None,
    method: str = "POST",
) -> Reply:
    """Reads while it writes: who is refused in the middle of a body is told so before its end."""
    given = {"Content-Type": "application/json", "Content-Length": str(len(body)), **(headers or {})}
    try:
        async with connected(target) as (reader, writer):
            writer.write(head(target, path, given, method) + body)
            return Reply(*await read_answer(reader))
    except (OSError, EOFError):
        return Reply(0, b"")


async def post(target: Target, path: str, fields: Mapping[str, Any]) -> Reply:
    return await send_http(target, path, json.dumps(fields).encode())


@asynccontextmanager
async def grpc_channel(target: Target) -> AsyncIterator[Any]:
    assert target.grpc is not None
    async with grpc.aio.insecure_channel(target.grpc, options=UNLIMITED) as channel:
        yield channel


def metadata(target: Target) -> Sequence[tuple[str, str]]:
    return () if target.key is None else (("authorization", f"Bearer {target.key}"),)


async def call_grpc(
    target: Target,
    message: bytes,
    more: Sequence[tuple[str, str]] = (),
    compression: Any = None,
    method: str = STREAM_INFER,
    read: Callable[[bytes], Any] = service_pb2.ModelStreamInferResponse.FromString,
    times: int = 1,
) -> Outcome:
    """One message, so many times, on a stream of its own, which is read to its end."""
    async with grpc_channel(target) as channel:
        call = channel.stream_stream(method, request_serializer=None, response_deserializer=None)(
            iter([message] * times), metadata=(*metadata(target), *more), compression=compression
        )
        try:
            errors = [getattr(read(answer), "error_message", "") async for answer in call]
        except grpc.aio.AioRpcError as error:
            if error.details() == ENDED_WHILE_SENDING:
                return "closed"
            return "refused" if error.code() in REFUSALS or is_ours(error.details()) else "broken"
    if not errors:
        return "closed"
    return "refused" if errors[-1] else "answered"


def is_ours(details: str | None) -> bool:
    """A queue that is full, or a server that ends, says so in words that begin with the code."""
    return (details or "").startswith("UNAVAILABLE: ")


async def outcome_of(sent: Any) -> Outcome:
    """The same with an end to patience."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            found: Outcome = await sent
            return found
    except TimeoutError:
        return "hung"
    except OSError:
        return "broken"
