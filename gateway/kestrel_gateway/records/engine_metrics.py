"""What the engine counts, read from Triton's metrics port and shown by the gateway.

Triton's port is open to its own machine alone. However often the page is asked for, Triton is asked once a
second.
"""

import asyncio
import time
from collections.abc import Callable

from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import Route

from kestrel_core.protocol.errors import ServerUnreachable
from kestrel_core.triton.probing import fetch
from kestrel_gateway.errors import refusal
from kestrel_gateway.house import House
from kestrel_gateway.reception import endpoint

FRESH_S = 1.0
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"  # as Triton writes it, whatever a scraper prefers


def engine_metrics_routes(house: House) -> list[Route]:
    """None, unless it is known where Triton tells them."""
    url = house.options.engine_metrics
    return [Route("/metrics/engine", endpoint(house, EngineMetrics(url, fetch).answer))] if url else []


class EngineMetrics:
    """Owns the last page and its age."""

    def __init__(self, url: str, read: Callable[[str], str | None]) -> None:
        self._url = url
        self._read = read
        self._page: str | None = None
        self._read_s = -FRESH_S
        self._reading = asyncio.Lock()

    async def answer(self, house: House, http: HttpRequest) -> Response:
        async with self._reading:
            if time.monotonic() >= self._read_s + FRESH_S:
                self._page = await asyncio.to_thread(self._read, self._url)
                self._read_s = time.monotonic()
        if self._page is None:
            return refusal(
                ServerUnreachable("the engine's metrics cannot be read now; it is starting or ending")
            )
        return Response(self._page, headers={"content-type": CONTENT_TYPE})
