"""A proxy that is worse than any network: it delays what it passes on, cuts it off, or changes it."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count

PIECE = 4096


@dataclass
class Loss:
    """What becomes of each connection, counted from 0. It may be changed while the proxy runs."""

    delay_s: float = 0.0  # before each piece, both ways
    cut_after: int | None = None  # bytes of both ways together
    corrupt_every: int | None = None  # bytes on the way to the server
    refuses: bool = False
    swallows_before: int = 0  # connections of lower numbers stay open, and nothing reaches the server by them

    @property
    def is_sound(self) -> bool:
        return self == Loss()


class Lossy:
    def __init__(self, to_port: int, loss: Loss) -> None:
        self.loss = loss
        self.port = 0
        self.num_connections = count()
        self._to_port = to_port
        self._loop = asyncio.new_event_loop()
        self._is_open = threading.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),))

    async def _serve(self) -> None:
        self._over = asyncio.Event()
        server = await asyncio.start_server(self._connect, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._is_open.set()
        await self._over.wait()
        server.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = next(self.num_connections)
        if self.loss.refuses:
            writer.transport.abort()
            return
        left = [self.loss.cut_after]
        with suppress(OSError, asyncio.CancelledError):
            to_reader, to_writer = await asyncio.open_connection("127.0.0.1", self._to_port)
            ways = (
                asyncio.create_task(self._pass_on(reader, to_writer, left, number)),
                asyncio.create_task(self._pass_on(to_reader, writer, left, None)),
            )
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                to_writer.close()
                to_writer.transport.abort()
        if left[0] == 0:
            writer.transport.abort()  # a reset, and no end in order
        else:
            writer.close()

    async def _pass_on(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        left: list[int | None],
        number: int | None,
    ) -> None:
        """With a `number`, of its connection, what is passed on is on the way to the server."""
        passed = 0
        with suppress(OSError):
            while piece := await reader.read(PIECE):
                if self.loss.delay_s:
                    await asyncio.sleep(self.loss.delay_s)
                if number is not None and number < self.loss.swallows_before:
                    continue
                if number is not None and self.loss.corrupt_every is not None:
                    piece = corrupted(piece, passed, self.loss.corrupt_every)
                passed += len(piece)
                if left[0] is not None:
                    piece = piece[: left[0]]
                    left[0] -= len(piece)
                writer.write(piece)
                await writer.drain()
                if left[0] == 0:
                    return

    def __enter__(self) -> "Lossy":
        self._thread.start()
        assert self._is_open.wait(60)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(60)
        self._loop.close()


def corrupted(piece: bytes, before: int, every: int) -> bytes:
    data = bytearray(piece)
    for at in range(-(-(before + 1) // every) * every - before - 1, len(data), every):
        data[at] ^= 0x15
    return bytes(data)


@contextmanager
def lossy(to_port: int, loss: Loss) -> Iterator[Lossy]:
    with Lossy(to_port, loss) as it:
        yield it
