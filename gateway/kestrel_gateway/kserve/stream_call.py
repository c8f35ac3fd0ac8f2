"""One open stream of gRPC: it reads no more than may be answered at once, and does not wait for ever."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import grpc.aio  # type: ignore[import-untyped]

from kestrel_core.protocol.errors import ShuttingDown
from kestrel_gateway.errors import ClientGone
from kestrel_gateway.options import GatewayOptions

Answer = Callable[[bytes], Awaitable[None]]


class StreamCall:
    def __init__(self, context: Any, options: GatewayOptions) -> None:
        self._context = context
        self._options = options
        self._places = asyncio.Semaphore(options.max_asked_of_call)
        self._writing = asyncio.Lock()
        self._num_open = 0
        self._silence: asyncio.Timeout | None = None  # while the next request is waited for

    async def answer_all(self, answer: Answer) -> None:
        """Each request as soon as it comes, beside those before it."""
        async with asyncio.TaskGroup() as tasks:
            while (data := await self._next()) is not grpc.aio.EOF:
                self._num_open += 1
                tasks.create_task(self._answer(answer, data))

    async def write(self, data: bytes) -> None:
        """A client that neither reads nor leaves is left."""
        async with self._writing:
            try:
                async with asyncio.timeout(self._options.write_timeout_s):
                    await self._context.write(data)
            except TimeoutError:
                raise ClientGone("the client did not read its answer") from None

    async def _next(self) -> Any:
        await self._places.acquire()
        idle_s = self._options.call_idle_s
        try:
            async with asyncio.timeout(None if self._num_open else idle_s) as self._silence:
                return await self._context.read()
        except TimeoutError:
            raise ShuttingDown(f"nothing was asked on this stream for {idle_s:g} s; open it again") from None
        finally:
            self._silence = None

    async def _answer(self, answer: Answer, data: bytes) -> None:
        try:
            await answer(data)
        finally:
            self._num_open -= 1
            self._places.release()
            if self._silence is not None and not self._num_open:
                self._silence.reschedule(asyncio.get_running_loop().time() + self._options.call_idle_s)
