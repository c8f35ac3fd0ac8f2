"""The asynchronous client: a method per skill, each request on a gRPC stream of its own over one channel.

    async with AsyncClient("localhost:8001") as client:
        print((await client.query("photo.jpg", "How many?")).text)
        async for text in await client.caption("photo.jpg", stream=True):
            print(text, end="", flush=True)

As in the engine's own API, a stream is awaited first. Belongs to the event loop that it was made in.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from typing import Any, Generic, Literal, Self, TypeVar, Unpack, overload

import grpc.aio  # type: ignore[import-untyped]
from tritonclient.grpc import service_pb2_grpc

from kestrel_core.protocol.errors import Cancelled

from .ask import ObjectOptions, Picture, SpatialRefs, TextOptions, ask, check_timeout
from .exchange import CHANNEL_OPTIONS, CLOSED, DEFAULT_RETRY, Exchange, Retry
from .results import Answer, Caption, Detection, Points, Result, Segments

R = TypeVar("R", bound=Result)


class AsyncAnswerStream(Generic[R]):
    """Pieces of text as they come, then `result()`.

    Closing it, leaving its `async with`, or cancelling the task that reads it cancels the request.
    """

    def __init__(self, open_stream: Callable[..., Any], exchange: Exchange[R]) -> None:
        self._open_stream = open_stream
        self._exchange = exchange
        self._closed = asyncio.Event()
        self._start()

    def __aiter__(self) -> AsyncIterator[str]:
        return self

    async def __anext__(self) -> str:
        while not self._exchange.settled:  # to the end of the stream, for the reason given in `client.py`
            if text := await self._read():
                return text
        if text := self._exchange.rest():
            return text
        raise StopAsyncIteration

    async def result(self) -> R:
        """The whole answer; waits for it, whether or not the pieces were read."""
        async for _ in self:
            pass
        return self._exchange.outcome()

    def close(self) -> None:
        """Cancel what is under way. Whoever reads on gets `Cancelled`."""
        self._closed.set()
        if not self._exchange.settled:
            self._call.cancel()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def _start(self) -> None:
        request, timeout_s = self._exchange.begin()
        self._call = self._open_stream(iter([request]), timeout=timeout_s)

    async def _read(self) -> str:
        broken: grpc.RpcError | None = None
        try:
            response = await self._call.read()
        except grpc.RpcError as error:
            response, broken = grpc.aio.EOF, error
        except asyncio.CancelledError:  # of this task, or of the call: gRPC raises the same for both
            self.close()
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            response = grpc.aio.EOF
        if response is not grpc.aio.EOF:
            return self._exchange.receive(response)
        wait_s = self._exchange.end(Cancelled(CLOSED) if self._closed.is_set() else broken)
        if wait_s is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._closed.wait(), wait_s)
            self._start()
            if self._closed.is_set():  # during the wait, when there was no call to cancel
                self._call.cancel()
        return ""


class AsyncClient:
    def __init__(
        self,
        url: str | grpc.aio.Channel = "localhost:8001",
        *,
        timeout_s: float | None = 120.0,
        retry: Retry = DEFAULT_RETRY,
    ) -> None:
        """`url` is host:port of Triton's gRPC, or a channel of your own (for TLS, say), which stays yours."""
        self._owned = grpc.aio.insecure_channel(url, CHANNEL_OPTIONS) if isinstance(url, str) else None
        stub = service_pb2_grpc.GRPCInferenceServiceStub(self._owned or url)
        self._open_stream = stub.ModelStreamInfer
        self._url = url if isinstance(url, str) else "the given channel"
        self._timeout_s = check_timeout(timeout_s)
        self._retry = retry

    @overload
    async def query(
        self,
        image: Picture | None,
        question: str,
        *,
        reasoning: bool = ...,
        spatial_refs: SpatialRefs | None = ...,
        stream: Literal[False] = ...,
        **options: Unpack[TextOptions],
    ) -> Answer: ...
    @overload
    async def query(
        self,
        image: Picture | None,
        question: str,
        *,
        reasoning: bool = ...,
        spatial_refs: SpatialRefs | None = ...,
        stream: Literal[True],
        **options: Unpack[TextOptions],
    ) -> AsyncAnswerStream[Answer]: ...
    async def query(
        self,
        image: Picture | None,
        question: str,
        *,
        reasoning: bool = False,
        spatial_refs: SpatialRefs | None = None,
        stream: bool = False,
        **options: Unpack[TextOptions],
    ) -> Answer | AsyncAnswerStream[Answer]:
        """Answer a question about a picture, or without one."""
        arguments = {"question": question, "reasoning": reasoning or None, "spatial_refs": spatial_refs}
        answers = self._send(Answer, "query", image, arguments, options, stream)
        return answers if stream else await _only(answers)

    @overload
    async def caption(
        self,
        image: Picture,
        length: Literal["short", "normal", "long"] = ...,
        *,
        stream: Literal[False] = ...,
        **options: Unpack[TextOptions],
    ) -> Caption: ...
    @overload
    async def caption(
        self,
        image: Picture,
        length: Literal["short", "normal", "long"] = ...,
        *,
        stream: Literal[True],
        **options: Unpack[TextOptions],
    ) -> AsyncAnswerStream[Caption]: ...
    async def caption(
        self,
        image: Picture,
        length: Literal["short", "normal", "long"] = "normal",
        *,
        stream: bool = False,
        **options: Unpack[TextOptions],
    ) -> Caption | AsyncAnswerStream[Caption]:
        """Describe a picture."""
        captions = self._send(Caption, "caption", image, {"length": length}, options, stream)
        return captions if stream else await _only(captions)

    async def detect(self, image: Picture, object: str, **options: Unpack[ObjectOptions]) -> Detection:
        """Boxes around everything in the picture that fits the words."""
        return await _only(self._send(Detection, "detect", image, {"object": object}, options))

    async def point(
        self,
        image: Picture,
        object: str,
        *,
        spatial_refs: SpatialRefs | None = None,
        **options: Unpack[ObjectOptions],
    ) -> Points:
        """A point on everything in the picture that fits the words."""
        arguments = {"object": object, "spatial_refs": spatial_refs}
        return await _only(self._send(Points, "point", image, arguments, options))

    async def segment(
        self,
        image: Picture,
        object: str,
        *,
        spatial_refs: SpatialRefs | None = None,
        **options: Unpack[ObjectOptions],
    ) -> Segments:
        """The outline of what fits the words; `UnsupportedSkill` where the model has no such skill."""
        arguments = {"object": object, "spatial_refs": spatial_refs}
        return await _only(self._send(Segments, "segment", image, arguments, options))

    async def close(self) -> None:
        """Close the channel; requests under way end with `Cancelled`."""
        if self._owned is not None:
            await self._owned.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _send(
        self,
        answer: type[R],
        skill: str,
        image: Picture | None,
        arguments: Mapping[str, Any],
        options: Mapping[str, Any],
        stream: bool = False,
    ) -> AsyncAnswerStream[R]:
        asked = ask(answer, skill, image, arguments, options, stream=stream, timeout_s=self._timeout_s)
        return AsyncAnswerStream(self._open_stream, Exchange(asked, self._retry, self._url))


async def _only(stream: AsyncAnswerStream[R]) -> R:
    async with stream:
        return await stream.result()
