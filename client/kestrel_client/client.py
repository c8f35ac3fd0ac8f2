"""The synchronous client: the same calls, each request on a gRPC stream of its own over one channel.

    with Client("localhost:8001") as client:
        print(client.query("photo.jpg", "How many?").text)
        for chunk in client.caption("photo.jpg", stream=True):
            print(chunk.text, end="", flush=True)

Safe to share between threads. Cancelling a Triton stream ends every request on it: hence one each.
"""

import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from typing import Any, Generic, Literal, Self, TypeVar, Unpack, cast, overload

import grpc  # type: ignore[import-untyped]
from tritonclient.grpc import service_pb2_grpc

from kestrel_core.protocol.about import ABOUT, About, about_of
from kestrel_core.protocol.asking import (
    QUERY,
    REFS,
    Length,
    Options,
    QueryOptions,
    RefOptions,
    check_timeout,
    make_call,
    make_request,
)
from kestrel_core.protocol.errors import Cancelled
from kestrel_core.protocol.messages import Chunk, EngineResult, Request
from kestrel_core.protocol.results import Answer, Caption, Detection, Points, Segments

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

R = TypeVar("R", bound=EngineResult)


class ClientStream(Generic[R]):
    """Chunks as they come, then `result()`. Leaving its `with` or its `for` cancels the request."""

    def __init__(self, open_stream: Callable[..., Any], exchange: Exchange) -> None:
        self._open_stream = open_stream
        self._exchange = exchange
        self._cancelled = threading.Event()
        self._start()

    def __iter__(self) -> Generator[Chunk, None, None]:
        is_over = False
        try:
            while (chunk := self.next_chunk()) is not None:
                yield chunk
            is_over = True
        finally:
            if not is_over:
                self.cancel()

    def next_chunk(self) -> Chunk | None:
        """The next chunk; None after the last."""
        # The last text is only handed out after the stream has ended. If a stream is not read to its end, or
        # is cancelled close to it, Triton keeps hold of the model and cannot shut down in order.
        while not self._exchange.is_settled:
            if chunk := self._read():
                return chunk
        return self._exchange.rest()

    def result(self) -> R:
        """The whole answer; waits for it, whether or not the chunks were read."""
        while self.next_chunk() is not None:
            pass
        return cast(R, self._exchange.ending())

    def cancel(self) -> None:
        """Cancel what is under way; from any thread. Reading on then raises `Cancelled`."""
        self._cancelled.set()
        if not self._exchange.is_settled:
            self._call.cancel()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.cancel()

    def _start(self) -> None:
        message, timeout_s = self._exchange.begin()
        try:
            self._call = self._open_stream(iter([message]), timeout=timeout_s)
        except ValueError:  # so gRPC says that the channel is closed
            self._exchange.end(Cancelled(CLOSED))

    def _read(self) -> Chunk | None:
        broken: grpc.RpcError | None = None
        try:
            response = next(self._call, None)
        except grpc.RpcError as error:
            response, broken = None, error
        if response is not None:
            return self._exchange.receive(response)
        wait_s = self._exchange.end(Cancelled(CANCELLED) if self._cancelled.is_set() else broken)
        if wait_s is not None:
            self._cancelled.wait(wait_s)
            self._start()
            if self._cancelled.is_set():  # during the wait, when there was no call to cancel
                self._call.cancel()
        return None


class Client:
    def __init__(
        self,
        url: str | grpc.Channel = "localhost:8001",
        *,
        timeout_s: float | None = 120.0,
        retry: Retry = DEFAULT_RETRY,
        headers: Mapping[str, str] = NO_HEADERS,
    ) -> None:
        """`url` is host:port of Triton's gRPC, or a channel of your own (for TLS, say), which stays yours.

        `headers` go along with every request: a server's secret, or what a proxy on the way asks for.
        """
        sent = metadata(headers)
        self._owned = grpc.insecure_channel(url, CHANNEL_OPTIONS) if isinstance(url, str) else None
        stub = service_pb2_grpc.GRPCInferenceServiceStub(self._owned or url)
        self._open_stream = partial(stub.ModelStreamInfer, metadata=sent)
        self._url = url if isinstance(url, str) else "the given channel"
        self._timeout_s = None if timeout_s is None else check_timeout(timeout_s)
        self._retry = retry

    def submit(self, request: Request) -> Any:
        """A request as it is. Returns the result, or the stream if the request asks for one."""
        exchange = make_exchange(request, self._timeout_s, self._retry, self._url)
        stream: ClientStream[Any] = ClientStream(self._open_stream, exchange)
        if request.stream:
            return stream
        with stream:  # so that Ctrl-C ends the request, not only the waiting for it
            return stream.result()

    @overload
    def query(
        self,
        image: Any = ...,
        question: str | None = ...,
        *,
        stream: Literal[True],
        **options: Unpack[QueryOptions],
    ) -> ClientStream[Answer]: ...
    @overload
    def query(
        self,
        image: Any = ...,
        question: str | None = ...,
        *,
        stream: Literal[False] = ...,
        **options: Unpack[QueryOptions],
    ) -> Answer: ...
    def query(
        self,
        image: Any = None,
        question: str | None = None,
        *,
        stream: bool = False,
        **options: Unpack[QueryOptions],
    ) -> Answer | ClientStream[Answer]:
        """Answer a question, about a picture or without one."""
        return cast(Answer, self._call("query", image, {"question": question}, options, stream, QUERY))

    @overload
    def caption(
        self, image: Any, length: Length = ..., *, stream: Literal[True], **options: Unpack[Options]
    ) -> ClientStream[Caption]: ...
    @overload
    def caption(
        self, image: Any, length: Length = ..., *, stream: Literal[False] = ..., **options: Unpack[Options]
    ) -> Caption: ...
    def caption(
        self, image: Any, length: Length = "normal", *, stream: bool = False, **options: Unpack[Options]
    ) -> Caption | ClientStream[Caption]:
        """Describe a picture: `short`, `normal` or `long`."""
        return cast(Caption, self._call("caption", image, {"length": length}, options, stream))

    def detect(self, image: Any, object: str, **options: Unpack[Options]) -> Detection:
        """Boxes around everything in the picture that fits the words."""
        return cast(Detection, self._call("detect", image, {"object": object}, options))

    def point(self, image: Any, object: str, **options: Unpack[RefOptions]) -> Points:
        """A point on everything in the picture that fits the words."""
        return cast(Points, self._call("point", image, {"object": object}, options, takes=REFS))

    def segment(self, image: Any, object: str, **options: Unpack[RefOptions]) -> Segments:
        """Outlines of what fits the words; `UnsupportedSkill` where the model has no such skill."""
        return cast(Segments, self._call("segment", image, {"object": object}, options, takes=REFS))

    def ask(self, skill: str, image: Any = None, *, stream: bool = False, **arguments: Any) -> Any:
        """Any skill by its name. Keywords that are not settings are arguments, which the skill checks."""
        return self.submit(make_request(skill, image, arguments, stream=stream))

    def about(self) -> About:
        """Which model answers, and what its skills take. It does not wait for the model."""
        return about_of(self.submit(Request(ABOUT)))

    def _call(
        self,
        skill: str,
        image: Any,
        arguments: Mapping[str, Any],
        options: Mapping[str, Any],
        stream: bool = False,
        takes: Sequence[str] = (),
    ) -> Any:
        return self.submit(make_call(skill, image, arguments, options, stream, takes))

    def close(self) -> None:
        """Close the channel; requests under way end with `Cancelled`."""
        if self._owned is not None:
            self._owned.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
