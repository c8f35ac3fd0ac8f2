"""Runs the gateway: uvicorn on one socket, ended by a signal in the order that loses nothing."""

import asyncio
import socket
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
import uvloop

from kestrel_core.protocol.errors import KestrelError
from kestrel_gateway.app import make_app
from kestrel_gateway.drain import Drain
from kestrel_gateway.house import House
from kestrel_gateway.logs import Log
from kestrel_gateway.options import GatewayOptions
from kestrel_gateway.upstream.opening import opened

BACKLOG = 2048
CUT_OFF_S = 1  # for requests that are cut off to say so


class DrainingServer(uvicorn.Server):
    """At a signal it goes on for a while, and ends with the last request. A second one ends it at once."""

    def __init__(self, config: uvicorn.Config, drain: Drain) -> None:
        super().__init__(config)
        self._drain = drain

    def handle_exit(self, sig: int, frame: object) -> None:
        if self._drain.is_draining:
            self.should_exit = self.force_exit = True
        self._drain.begin()

    async def on_tick(self, counter: int) -> bool:
        return await super().on_tick(counter) or self._drain.is_over


def run(options: GatewayOptions) -> int:
    """Serve until a signal. Returns 0 if all requests were answered, 1 if some were cut off."""
    with (
        listening(options.host, options.port) as door,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        return runner.run(serve(options, door))


async def serve(options: GatewayOptions, door: socket.socket) -> int:
    async with opened(options) as upstream, background(upstream.watch()):
        house = House(options, upstream)
        log = Log(options.log_format)
        log.install()
        config = uvicorn.Config(
            make_app(house, [log]),
            http="httptools",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=CUT_OFF_S,
        )
        await DrainingServer(config, house.drain).serve([door])
        return 1 if house.drain.num_open else 0


@asynccontextmanager
async def background(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


def listening(host: str, port: int) -> socket.socket:
    try:
        [family, kind, _, _, address], *_ = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        door = socket.socket(family, kind)
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        door.bind(address)
        door.listen(BACKLOG)
    except OSError as error:
        raise KestrelError(
            f"port {port} of {host} cannot be used: {error.strerror}; choose with --port or --host"
        ) from None
    return door
