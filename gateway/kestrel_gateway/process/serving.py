"""Runs the gateway: HTTP by uvicorn and gRPC beside it, ended by a signal in the order that loses nothing."""

import asyncio
import gc
import logging
import multiprocessing
import os
import resource
import signal
import socket
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any

import uvicorn
import uvloop

from kestrel_core.protocol.errors import KestrelError
from kestrel_gateway.admission.key_file import read_keys
from kestrel_gateway.app import make_app
from kestrel_gateway.health import LIVE, READY
from kestrel_gateway.house import House
from kestrel_gateway.kserve.server import listening_grpc
from kestrel_gateway.options import GatewayOptions
from kestrel_gateway.process.drain import Drain
from kestrel_gateway.process.http_limits import limited
from kestrel_gateway.process.workers import run_workers
from kestrel_gateway.records.logs import Log
from kestrel_gateway.records.tracing import make_spans, send_last
from kestrel_gateway.records.visits import Observer
from kestrel_gateway.upstream.opening import opened

log = logging.getLogger("kestrel.gateway")

BACKLOG = 4096
OTHER_FILES = 500
CUT_OFF_S = 1  # for requests that are cut off to say so


class DrainingServer(uvicorn.Server):
    """At a signal it goes on for a while, and ends with the last request. A second one ends it at once.

    So does the end of the process that has started it as a worker, which also passes Ctrl-C on.
    """

    def __init__(self, config: uvicorn.Config, drain: Drain) -> None:
        super().__init__(config)
        self._drain = drain

    def handle_exit(self, sig: int, frame: object) -> None:
        if sig == signal.SIGINT and multiprocessing.parent_process() is not None:
            return
        if self._drain.is_draining:
            self.end_at_once()
        self._drain.begin()

    def end_at_once(self) -> None:
        self.should_exit = self.force_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for door in sockets or ():
            host, port, *_ = door.getsockname()
            log.info("process %d listens on port %d of %s", os.getpid(), port, host)
        if (parent := multiprocessing.parent_process()) is not None:
            asyncio.get_running_loop().add_reader(parent.sentinel, self.end_at_once)

    async def on_tick(self, counter: int) -> bool:
        return await super().on_tick(counter) or self._drain.is_over


def run(options: GatewayOptions) -> int:
    """Serve until a signal. Returns 0 if all requests were answered, 1 if some were cut off."""
    if options.api_keys is not None:
        read_keys(options.api_keys)  # so that a bad file is told once, before anything is started
    options = replace(options, max_connections=allow_connections(options.max_connections))
    check_free(options.host, options.kserve_grpc_port)
    with ExitStack() as stack:
        doors = [stack.enter_context(listening(options.host, port)) for port in http_ports(options)]
        if options.workers == 1:
            return answer_at(options, doors)
        # They are free: sockets that share a port would not say if it were not.
        ports = [door.getsockname()[1] for door in doors]
    with ExitStack() as stack:
        shared = [
            [stack.enter_context(listening(options.host, port, is_shared=True)) for port in ports]
            for _ in range(options.workers)
        ]
        return run_workers(options, shared, answer_at)


def http_ports(options: GatewayOptions) -> list[int]:
    own = options.kserve_http_port
    return [options.port] if own is None else [options.port, own]


def check_free(host: str, port: int | None) -> None:
    """Of the port that each worker opens for itself; 0 is any that is free."""
    if port:
        listening(host, port).close()


def allow_connections(count: int) -> int:
    """How many there can be, up to `count`. Each is an open file; many systems allow 1,024 unless asked."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = min(count + OTHER_FILES, hard) if hard != resource.RLIM_INFINITY else count + OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    fitting = max(1, wanted - OTHER_FILES)
    if fitting < count:
        log.warning("%d files may be open, so %d connections may, and not %d", wanted, fitting, count)
    return fitting


def answer_at(options: GatewayOptions, doors: Sequence[socket.socket]) -> int:
    gc.collect()
    gc.freeze()  # to look at all that was imported, each time, would hold up everybody for 0.1 s
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(serve(options, doors))


async def serve(options: GatewayOptions, doors: Sequence[socket.socket]) -> int:
    async with opened(options) as upstream, background(upstream.watch()):
        house = House(options, upstream)
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, house.keys.reread)
        log = Log(options.log_format)
        log.install()
        spans = make_spans()
        observers: list[Observer] = [log] if spans is None else [spans, log]
        await serve_house(house, doors, observers)
        send_last(spans)
        return 1 if house.drain.num_open else 0


async def serve_house(
    house: House, doors: Sequence[socket.socket], observers: Sequence[Observer] = ()
) -> None:
    """Until it is drained: HTTP at the doors, and gRPC where it was asked for."""
    async with listening_grpc(house, observers) as port:
        if port is not None:
            log.info("process %d listens on port %d of %s for gRPC", os.getpid(), port, house.options.host)
        await DrainingServer(server_config(house, observers), house.drain).serve(list(doors))


def server_config(house: House, observers: Sequence[Observer] = ()) -> uvicorn.Config:
    has_proxy = "FORWARDED_ALLOW_IPS" in os.environ  # who is believed about other addresses than its own
    # Behind a proxy an address is known later than a connection is refused.
    knows_callers = house.keys.are_asked_for or not has_proxy
    refusal_again = house.keys.refusal_again if knows_callers else lambda *_: None
    return uvicorn.Config(
        make_app(house, observers),
        http=limited(house.options, house.metrics.note_refusal, refusal_again, (*LIVE, *READY)),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=has_proxy,
        timeout_graceful_shutdown=CUT_OFF_S,
        timeout_keep_alive=house.options.idle_timeout_s,
    )


@asynccontextmanager
async def background(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


def listening(host: str, port: int, is_shared: bool = False) -> socket.socket:
    try:
        [family, kind, protocol, _, address], *_ = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        door = socket.socket(family, kind, protocol)  # as TCP: asyncio then writes without delay
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, int(is_shared))
        door.bind(address)
        door.listen(BACKLOG)
    except OSError as error:
        raise KestrelError(
            f"port {port} of {host} cannot be used: {error.strerror}; choose with --port or --host"
        ) from None
    return door
