"""The asynchronous client: the engine's own calls, each request on a gRPC stream of its own over one channel.

    async with AsyncClient("localhost:8001") as client:
        print((await client.query("photo.jpg", "How many?")).text)
        async with await client.caption("photo.jpg", stream=True) as stream:
            async for chunk in stream:
                print(chunk.text, end="", flush=True)

Belongs to the event loop that it was made in.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Self

import grpc.aio  # type: ignore[import-untyped]
from tritonclient.grpc import service_pb2

from kestrel_core.protocol.asking import AnswerStream, AsyncCalls, check_timeout
from kestrel_core.protocol.errors import Cancelled
from kestrel_core.protocol.messages import Chunk, EngineResult, Request

from .exchange import (
    CANCELLED,
    CHANNEL_OPTIONS,
    CLOSED,
    DEFAULT_RETRY,
    NO_HEADERS,
    Exchange,
    Retry,
    metadata,
)
from .sending import make_exchange

END_S = 1.0  # for streams to end whose answers are here
OLD_S = 60.0  # for requests to end on a connection that was replaced
# Otherwise a new channel would go over the connection of the one before it.
OWN_CONNECTION = ("grpc.use_local_subchannel_pool", 1)
STREAM_INFER = "/inference.GRPCInferenceService/ModelStreamInfer"


def _channel(url: str) -> Any:
    return grpc.aio.insecure_channel(url, [*CHANNEL_OPTIONS, OWN_CONNECTION])


async def _close_in_time(channel: Any) -> None:
    """Not by gRPC's own grace, which cannot be cut short: a second `close` does nothing."""
    try:
        await asyncio.sleep(OLD_S)
    finally:
        await channel.close()


class AsyncAnswerStream(AnswerStream[EngineResult]):
    """Cancelling the task that reads it cancels the request too."""

    def __init__(self, open_stream: Callable[..., Any], exchange: Exchange, ending: set[Any]) -> None:
        """`ending` holds calls whose answer is whole and whose stream has not ended yet."""
        self._open_stream = open_stream
        self._ending = ending
        self._exchange = exchange
        self._cancelled = asyncio.Event()
        self._start()

    @property
    def is_done(self) -> bool:
        return self._exchange.is_settled

    async def next_chunk(self) -> Chunk | None:
        while not self._exchange.is_settled:
            if chunk := await self._read():
                return chunk
        return self._exchange.rest()

    async def result(self) -> EngineResult:
        while await self.next_chunk() is not None:
            pass
        return self._exchange.ending()

    def cancel(self) -> None:
        """Reading on then raises `Cancelled`."""
        self._cancelled.set()
        if not self._exchange.is_settled:
            self._call.cancel()

    def _start(self) -> None:
        message, timeout_s = self._exchange.begin()
        try:
            self._call = self._open_stream(message, timeout=timeout_s)
        except grpc.aio.UsageError:  # so gRPC says that the channel is closed
            self._exchange.end(Cancelled(CLOSED))

    async def _read(self) -> Chunk | None:
        broken: grpc.RpcError | None = None
        try:
            response = await self._call.read()
        except grpc.RpcError as error:
            response, broken = grpc.aio.EOF, error
        except asyncio.CancelledError:  # of this task, or of the call: gRPC raises the same for both
            self.cancel()
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            response = grpc.aio.EOF
        if response is not grpc.aio.EOF:
            chunk = self._exchange.receive(response)
            if self._exchange.is_answered:
                self._leave_to_end()
            return chunk
        wait_s = self._exchange.end(Cancelled(CANCELLED) if self._cancelled.is_set() else broken)
        if wait_s is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._cancelled.wait(), wait_s)
            self._start()
            if self._cancelled.is_set():  # during the wait, when there was no call to cancel
                self._call.cancel()
        return None

    def _leave_to_end(self) -> None:
        """The answer is not kept waiting for the end of its stream, which `client.py` says why to wait for.

        gRPC reads it by itself, as long as somebody holds the call; nobody cancels it any more.
        """
        self._ending.add(self._call)
        self._call.add_done_callback(self._ending.discard)
        self._exchange.end()


class AsyncClient(AsyncCalls):
    def __init__(
        self,
        url: str | grpc.aio.Channel = "localhost:8001",
        *,
        timeout_s: float | None = 120.0,
        retry: Retry = DEFAULT_RETRY,
        headers: Mapping[str, str] = NO_HEADERS,
    ) -> None:
        """`url` is host:port of Triton's gRPC, or a channel of your own (for TLS, say), which stays yours.

        `headers` go along with every request: a server's secret, or what a proxy on the way asks for.
        """
        self._sent = metadata(headers)
        self._url = url if isinstance(url, str) else "the given channel"
        self._owned = _channel(url) if isinstance(url, str) else None
        self._open_stream = self._opener(self._owned if isinstance(url, str) else url)
        self._ending: set[Any] = set()
        self._closing = set[asyncio.Task[None]]()
        self._timeout_s = None if timeout_s is None else check_timeout(timeout_s)
        self._retry = retry

    async def open(self, request: Request) -> AsyncAnswerStream:
        make = partial(make_exchange, request, self._timeout_s, self._retry, self._url)
        if request.image is None or isinstance(request.image, bytes):
            return AsyncAnswerStream(self._open_stream, make(), self._ending)
        # In a thread: files are read and images encoded there, and the event loop must not wait for that.
        return AsyncAnswerStream(self._open_stream, await asyncio.to_thread(make), self._ending)

    def reconnect(self) -> None:
        """Go over a new connection from now on: the one that was there may swallow all that it is given.

        Requests under way have a minute to end on the old one. A channel of the caller's own stays.
        """
        if self._owned is None:
            return
        closing = asyncio.create_task(_close_in_time(self._owned))
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)
        self._owned = _channel(self._url)
        self._open_stream = self._opener(self._owned)

    def _opener(self, channel: Any) -> Callable[..., Any]:
        # On the wire a single request is a stream of one, and gRPC sends it in one piece with its headers.
        infer = channel.unary_stream(
            STREAM_INFER,
            request_serializer=service_pb2.ModelInferRequest.SerializeToString,
            response_deserializer=service_pb2.ModelStreamInferResponse.FromString,
        )
        return partial(infer, metadata=self._sent)

    async def close(self) -> None:
        """Close the channel; requests under way end with `Cancelled`."""
        for closing in self._closing:
            closing.cancel()
        await asyncio.gather(*self._closing, return_exceptions=True)
        with suppress(TimeoutError):
            async with asyncio.timeout(END_S):
                for call in tuple(self._ending):
                    await call.code()
        if self._owned is not None:
            await self._owned.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
