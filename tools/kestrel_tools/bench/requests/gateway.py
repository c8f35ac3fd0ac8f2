"""Asks a gateway as a caller with little to do of its own would: raw HTTP over connections that are kept.

The caller shares a machine with what it measures, so nothing is parsed that need not be.
"""

import asyncio
import base64
import json
from collections.abc import Mapping
from typing import Any, Self

from kestrel_core.protocol.errors import EngineFailed
from kestrel_core.protocol.messages import Usage

LINE_LIMIT = 2**20
EVENT = b"data: "

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class GatewayCaller:
    """Belongs to one event loop. There are as many connections as there are requests under way at most."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._idle: list[Connection] = []

    async def query(self, image: bytes, question: str, settings: Mapping[str, Any]) -> Usage:
        """The whole answer's own account of itself."""
        body = await self._post(image, {"question": question, "settings": settings})
        return Usage(**json.loads(body)["metrics"])

    async def count_events(self, image: bytes, question: str, settings: Mapping[str, Any]) -> int:
        """How many pieces a streamed answer came in."""
        body = await self._post(image, {"question": question, "settings": settings, "stream": True})
        return body.count(EVENT) - 1  # the last one is the whole answer again

    async def _post(self, image: bytes, fields: Mapping[str, Any]) -> bytes:
        picture = b'{"image_url":"data:image/png;base64,' + base64.b64encode(image) + b'",'
        data = picture + json.dumps(fields).encode()[1:]
        head = (
            f"POST /v1/query HTTP/1.1\r\nHost: localhost:{self._port}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
        )
        connection = await self._connection()
        connection[1].write(head.encode() + data)
        status, body = await read_answer(connection[0])
        self._idle.append(connection)  # not reached, and so not used again, if it broke
        if status != 200:
            raise EngineFailed(f"the gateway answered {status}: {body[:200]!r}")
        return body

    async def _connection(self) -> Connection:
        while self._idle:
            connection = self._idle.pop()
            if not connection[0].at_eof():  # a connection that is not used is closed after a while
                return connection
        return await asyncio.open_connection("localhost", self._port, limit=LINE_LIMIT)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for connection in self._idle:
            connection[1].close()


async def read_answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Status and body of an answer, in one piece or in chunks."""
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
    headers = dict(line.lower().split(b": ", 1) for line in lines if line)
    status = int(first.split()[1])
    if (length := headers.get(b"content-length")) is not None:
        return status, await reader.readexactly(int(length))
    pieces = []
    while size := int(await reader.readline(), 16):
        pieces.append((await reader.readexactly(size + 2))[:-2])
    await reader.readline()
    return status, b"".join(pieces)
