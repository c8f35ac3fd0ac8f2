"""The synchronous client: a method per skill, each request on a gRPC stream of its own over one channel.

    with Client("localhost:8001") as client:
        print(client.query("photo.jpg", "How many?").text)
        for text in client.caption("photo.jpg", stream=True):
            print(text, end="", flush=True)

Safe to share between threads. Cancelling a Triton stream ends every request on it: hence one each.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, Literal, Self, TypeVar, Unpack, overload

import grpc  # type: ignore[import-untyped]
from tritonclient.grpc import service_pb2_grpc

from kestrel_core.protocol.errors import Cancelled

from .ask import ObjectOptions, Picture, SpatialRefs, TextOptions, ask, check_timeout
from .exchange import CHANNEL_OPTIONS, CLOSED, DEFAULT_RETRY, Exchange, Retry
from .results import Answer, Caption, Detection, Points, Result, Segments

R = TypeVar("R", bound=Result)


class AnswerStream(Generic[R]):
    """Pieces of text as they come, then `result()`. Closing it or leaving its `with` cancels the request."""

    def __init__(self, open_stream: Callable[..., Any], exchange: Exchange[R]) -> None:
        self._open_stream = open_stream
        self._exchange = exchange
        self._closed = threading.Event()
        self._start()

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        # The last text is only handed out behind the end of the stream: one that is not read to its end, or
        # is cancelled close to it, makes Triton hold on to the model, and then it cannot shut down in order.
        while not self._exchange.settled:
            if text := self._read():
                return text
        if text := self._exchange.rest():
            return text
        raise StopIteration

    def result(self) -> R:
        """The whole answer; waits for it, whether or not the pieces were read."""
        for _ in self:
            pass
        return self._exchange.outcome()

    def close(self) -> None:
        """Cancel what is under way; from any thread. Whoever reads on gets `Cancelled`."""
        self._closed.set()
        if not self._exchange.settled:
            self._call.cancel()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self) -> None:
        request, timeout_s = self._exchange.begin()
        self._call = self._open_stream(iter([request]), timeout=timeout_s)

    def _read(self) -> str:
        broken: grpc.RpcError | None = None
        try:
            response = next(self._call, None)
        except grpc.RpcError as error:
            response, broken = None, error
        if response is not None:
            return self._exchange.receive(response)
        wait_s = self._exchange.end(Cancelled(CLOSED) if self._closed.is_set() else broken)
        if wait_s is not None:
            self._closed.wait(wait_s)
            self._start()
            if self._closed.is_set():  # during the wait, when there was no call to cancel
                self._call.cancel()
        return ""


class Client:
    def __init__(
        self,
        url: str | grpc.Channel = "localhost:8001",
        *,
        timeout_s: float | None = 120.0,
        retry: Retry = DEFAULT_RETRY,
    ) -> None:
        """`url` is host:port of Triton's gRPC, or a channel of your own (for TLS, say), which stays yours."""
        self._owned = grpc.insecure_channel(url, CHANNEL_OPTIONS) if isinstance(url, str) else None
        stub = service_pb2_grpc.GRPCInferenceServiceStub(self._owned or url)
        self._open_stream = stub.ModelStreamInfer
        self._url = url if isinstance(url, str) else "the given channel"
        self._timeout_s = check_timeout(timeout_s)
        self._retry = retry

    @overload
    def query(
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
    def query(
        self,
        image: Picture | None,
        question: str,
        *,
        reasoning: bool = ...,
        spatial_refs: SpatialRefs | None = ...,
        stream: Literal[True],
        **options: Unpack[TextOptions],
    ) -> AnswerStream[Answer]: ...
    def query(
        self,
        image: Picture | None,
        question: str,
        *,
        reasoning: bool = False,
        spatial_refs: SpatialRefs | None = None,
        stream: bool = False,
        **options: Unpack[TextOptions],
    ) -> Answer | AnswerStream[Answer]:
        """Answer a question about a picture, or without one."""
        arguments = {"question": question, "reasoning": reasoning or None, "spatial_refs": spatial_refs}
        answers = self._send(Answer, "query", image, arguments, options, stream)
        return answers if stream else _only(answers)

    @overload
    def caption(
        self,
        image: Picture,
        length: Literal["short", "normal", "long"] = ...,
        *,
        stream: Literal[False] = ...,
        **options: Unpack[TextOptions],
    ) -> Caption: ...
    @overload
    def caption(
        self,
        image: Picture,
        length: Literal["short", "normal", "long"] = ...,
        *,
        stream: Literal[True],
        **options: Unpack[TextOptions],
    ) -> AnswerStream[Caption]: ...
    def caption(
        self,
        image: Picture,
        length: Literal["short", "normal", "long"] = "normal",
        *,
        stream: bool = False,
        **options: Unpack[TextOptions],
    ) -> Caption | AnswerStream[Caption]:
        """Describe a picture."""
        captions = self._send(Caption, "caption", image, {"length": length}, options, stream)
        return captions if stream else _only(captions)

    def detect(self, image: Picture, object: str, **options: Unpack[ObjectOptions]) -> Detection:
        """Boxes around everything in the picture that fits the words."""
        return _only(self._send(Detection, "detect", image, {"object": object}, options))

    def point(
        self,
        image: Picture,
        object: str,
        *,
        spatial_refs: SpatialRefs | None = None,
        **options: Unpack[ObjectOptions],
    ) -> Points:
        """A point on everything in the picture that fits the words."""
        arguments = {"object": object, "spatial_refs": spatial_refs}
        return _only(self._send(Points, "point", image, arguments, options))

    def segment(
        self,
        image: Picture,
        object: str,
        *,
        spatial_refs: SpatialRefs | None = None,
        **options: Unpack[ObjectOptions],
    ) -> Segments:
        """The outline of what fits the words; `UnsupportedSkill` where the model has no such skill."""
        arguments = {"object": object, "spatial_refs": spatial_refs}
        return _only(self._send(Segments, "segment", image, arguments, options))

    def close(self) -> None:
        """Close the channel; requests under way end with `Cancelled`."""
        if self._owned is not None:
            self._owned.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _send(
        self,
        answer: type[R],
        skill: str,
        image: Picture | None,
        arguments: Mapping[str, Any],
        options: Mapping[str, Any],
        stream: bool = False,
    ) -> AnswerStream[R]:
        asked = ask(answer, skill, image, arguments, options, stream=stream, timeout_s=self._timeout_s)
        return AnswerStream(self._open_stream, Exchange(asked, self._retry, self._url))


def _only(stream: AnswerStream[R]) -> R:
    with stream:  # so that Ctrl-C ends the request, not only the waiting for it
        return stream.result()
