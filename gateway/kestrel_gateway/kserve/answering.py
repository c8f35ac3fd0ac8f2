"""One request that came by gRPC, from its bytes to its last response, as `reception` is for HTTP."""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from starlette.datastructures import Headers

from kestrel_core.protocol.errors import EngineFailed, InvalidRequest, KestrelError
from kestrel_core.protocol.messages import Chunk, Request
from kestrel_core.protocol.wire import encode_chunk, encode_result
from kestrel_gateway.errors import ClientGone
from kestrel_gateway.house import House
from kestrel_gateway.kserve.request import admitted
from kestrel_gateway.kserve.scanning import parse
from kestrel_gateway.kserve.tensors import read_message
from kestrel_gateway.records.visits import Observer, Visit, begin_visit

MAX_ID = 128  # letters of a request's id that its responses have

log = logging.getLogger("kestrel.gateway")


class Reply(ABC):
    """Where the responses of one request go. `ClientGone` is raised where nobody takes them."""

    streams = True  # False: there is room for one

    @abstractmethod
    async def response(self, text: str, id: str, is_last: bool) -> None: ...

    @abstractmethod
    async def failure(self, error: KestrelError, id: str) -> None: ...


class Answering:
    def __init__(self, house: House, observers: Sequence[Observer] = ()) -> None:
        self.house = house
        self._observers = observers

    async def answer(
        self, data: bytes, path: str, headers: Headers, host: str, left_s: float | None, reply: Reply
    ) -> None:
        """`left_s`: what is left of the call's own deadline. Errors of the request are told by the reply."""
        visit = begin_visit(headers, "POST", path, host, self._observers)
        visit.route = path
        self.house.drain.num_open += 1
        try:
            error = await self._answered(data, headers, left_s, reply, visit)
            visit.end(200 if error is None else error.status, "ok" if error is None else error.reason)
        except (asyncio.CancelledError, ClientGone):
            visit.end(499, "gone")
            raise
        finally:
            try:
                for observer in self._observers:
                    observer.ended(visit)
            finally:
                self.house.drain.num_open -= 1

    async def _answered(
        self, data: bytes, headers: Headers, left_s: float | None, reply: Reply, visit: Visit
    ) -> KestrelError | None:
        """None if it was; otherwise the error, which the reply has been told."""
        id, house = "", self.house
        try:
            house.drain.check()
            with (
                house.keys.admission(visit.path, headers, visit.address) as visit.key,
                house.memory.share(visit.caller) as visit.hold,
            ):
                visit.hold(len(data))
                await house.turns.take(visit.caller)
                message = parse(data)
                id = message.id[:MAX_ID]  # of an error too, so that it finds its request
                request = await admitted(house, read_message(message), visit, left_s)
                if request.stream and not reply.streams:
                    raise InvalidRequest("STREAM is for ModelStreamInfer; this call gives one answer")
                async with aclosing(responses(house, request, visit)) as texts:
                    async for text, is_last in texts:
                        await reply.response(text, id, is_last)
            return None
        except ClientGone:
            raise
        except KestrelError as raised:
            # With its traceback it would hold this frame, and so the message, until cycles are looked for.
            error = raised.with_traceback(None)
        except Exception as raised:
            log.exception("request %s failed", visit.request_id)
            error = EngineFailed(f"the gateway failed ({type(raised).__name__}); ask again")
        await reply.failure(error, id)
        return error


async def responses(house: House, request: Request, visit: Visit) -> AsyncGenerator[tuple[str, bool], None]:
    """The text of each response, and whether it is the last one."""
    visit.is_stream = request.stream
    async with await house.upstream.open(request) as stream:
        rest = Chunk("", 0)
        while (chunk := await stream.next_chunk()) is not None:
            visit.saw_first_chunk()
            if stream.is_done:  # so it came with the end, and goes with it
                rest = chunk
                break
            yield encode_chunk(chunk), False
        result = await stream.result()
    visit.upstream = getattr(stream, "upstream", "")
    visit.saw_result(result)
    yield encode_result(result, rest if request.stream else None), True
