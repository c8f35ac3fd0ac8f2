"""One answer on its way to its client: whole, or as server-sent events; cancelled when the client goes.

Whoever waits for an answer also watches the connection. When the client has gone the answer is cancelled,
which frees its pages and its slot within one step of the engine.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

import msgspec
from starlette.types import Receive, Scope, Send

from kestrel_core.protocol.asking import AnswerStream, AsyncCalls
from kestrel_core.protocol.errors import (
    AdapterUnreachable,
    BadAdapter,
    BadImage,
    KestrelError,
    UnknownAdapter,
)
from kestrel_core.protocol.messages import Chunk, EngineResult, Request
from kestrel_gateway.errors import ClientGone, UnknownModel, blaming
from kestrel_gateway.options import GatewayOptions
from kestrel_gateway.records.visits import Visit

T = TypeVar("T")
TURNS = 3  # of the event loop, until somebody who has gone is known to have
EVENT_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),  # nginx would otherwise collect events before it passes them on
]
# Letters that end a line for some readers (httpx's and requests' `iter_lines` among them), not for JSON.
LINE_ENDS = [(letter.encode(), f"\\u{ord(letter):04x}".encode()) for letter in "\x85\u2028\u2029"]


class EventWriter(ABC):
    """Turns an answer into events. One for each stream; a format of its own is a subclass."""

    def first(self) -> Iterable[bytes]:
        return ()

    @abstractmethod
    def chunk(self, chunk: Chunk) -> Iterable[bytes]: ...

    @abstractmethod
    def last(self, result: EngineResult) -> Iterable[bytes]: ...

    @abstractmethod
    def failure(self, error: KestrelError) -> Iterable[bytes]:
        """When the status has been sent and the answer breaks off."""


def event(document: Any) -> bytes:
    data = msgspec.json.encode(document)
    if not data.isascii():
        for letter, escaped in LINE_ENDS:
            data = data.replace(letter, escaped)
    return b"data: " + data + b"\n\n"


async def answer_whole(
    upstream: AsyncCalls, request: Request, visit: Visit, receive: Receive
) -> EngineResult:
    """The answer in one piece. Raises `ClientGone` if nobody waits for it any more."""
    with _blaming_fields(visit):
        async with _watched(receive) as gone, await _unless(gone, upstream.open(request)) as stream:
            result: EngineResult = await _unless(gone, stream.result())
    visit.upstream = getattr(stream, "upstream", "")
    visit.saw_result(result)
    return result


class EventResponse:
    """A streamed answer, as ASGI sends it.

    The status waits for the first chunk, so that a request that is refused gets its own status. If there is
    none for `keep_alive_s`, the response begins without it, so that nobody on the way to the client gives up.
    """

    def __init__(
        self,
        upstream: AsyncCalls,
        request: Request,
        visit: Visit,
        writer: EventWriter,
        options: GatewayOptions,
    ) -> None:
        self._upstream = upstream
        self._request = request
        self._visit = visit
        self._writer = writer
        self._options = options
        self._has_begun = False
        visit.is_stream = True

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with _watched(receive) as gone:
            try:
                with _blaming_fields(self._visit):
                    async with await _unless(gone, self._upstream.open(self._request)) as stream:
                        await self._pass_on(stream, gone, send)
            except ClientGone:
                raise
            except KestrelError as error:
                if not self._has_begun:
                    raise
                self._visit.outcome = error.reason
                await self._write(send, self._writer.failure(error))
            await send({"type": "http.response.body", "body": b""})

    async def _pass_on(self, stream: AnswerStream[Any], gone: "asyncio.Future[None]", send: Send) -> None:
        reading = asyncio.ensure_future(stream.next_chunk())
        try:
            while True:
                done, _ = await asyncio.wait(
                    (reading, gone), timeout=self._options.keep_alive_s, return_when=asyncio.FIRST_COMPLETED
                )
                if gone in done:
                    raise ClientGone("the client went away before its answer was there")
                if reading not in done:
                    await self._write(send, (b": keep-alive\n\n",))
                    continue
                if (chunk := reading.result()) is None:
                    break
                reading = asyncio.ensure_future(stream.next_chunk())
                self._visit.saw_first_chunk()
                await self._write(send, self._writer.chunk(chunk))
        finally:
            reading.cancel()
        result = await stream.result()
        self._visit.upstream = getattr(stream, "upstream", "")
        self._visit.saw_result(result)
        await self._write(send, self._writer.last(result))

    async def _write(self, send: Send, events: Iterable[bytes]) -> None:
        beginning = () if self._has_begun else self._writer.first()
        data = b"".join((*beginning, *events))  # in this order: a writer may count its events
        if not self._has_begun:
            self._has_begun = True
            await send({"type": "http.response.start", "status": 200, "headers": EVENT_HEADERS})
        if data:
            await send({"type": "http.response.body", "body": data, "more_body": True})


@contextmanager
def _blaming_fields(visit: Visit) -> Iterator[None]:
    """What a server says of a picture or an adapter is about the field that it came in."""
    try:
        yield
    except BadImage:
        with blaming(visit.picture_param):
            raise
    except (AdapterUnreachable, BadAdapter, UnknownAdapter) as error:
        with blaming(visit.adapter_param):
            if visit.adapter_param == "model" and isinstance(error, UnknownAdapter):
                raise UnknownModel(str(error)) from None
            raise


@asynccontextmanager
async def _watched(receive: Receive) -> AsyncIterator["asyncio.Future[None]"]:
    """A future that is done when the client has gone. The body has been read by now.

    Who hung up while the request waited here is not asked for: his leaving, which was read together with
    the request, is told some turns of the event loop later.
    """

    async def watch() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    gone = asyncio.ensure_future(watch())
    try:
        for _ in range(TURNS):
            await asyncio.sleep(0)
        if gone.done():
            raise ClientGone("the client went away before anything was begun for it")
        yield gone
    finally:
        gone.cancel()


async def _unless(gone: "asyncio.Future[None]", work: Awaitable[T]) -> T:
    """The work's result; it is cancelled if the client goes first."""
    working = asyncio.ensure_future(work)
    try:
        await asyncio.wait((working, gone), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientGone("the client went away before its answer was there")
        return working.result()
    finally:
        if not working.done():
            working.cancel()
