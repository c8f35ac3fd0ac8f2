"""The gRPC server of the guard: where it listens, and its limits.

Messages may not be compressed: gRPC would inflate one whole before it looks at its size.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import grpc.aio  # type: ignore[import-untyped]

from kestrel_core.protocol.errors import KestrelError
from kestrel_gateway.house import House
from kestrel_gateway.kserve.answering import Answering
from kestrel_gateway.kserve.calls import Calls
from kestrel_gateway.options import GatewayOptions
from kestrel_gateway.records.visits import Observer

OVERHEAD_BYTES = 2**20  # of a message beside what a body may have
WATCH_S = 0.05
CUT_OFF_S = 1  # for calls that are cut off to say so
UNCOMPRESSED = 1  # the set of algorithms that has the first alone, which is none


def most_calls(options: GatewayOptions) -> int:
    """Those that are answered, and those that are told why they are not. gRPC itself refuses the rest."""
    return options.max_calls + options.max_connections


def channel_options(options: GatewayOptions) -> list[tuple[str, int]]:
    return [
        ("grpc.so_reuseport", int(options.workers > 1)),
        ("grpc.max_receive_message_length", options.max_body_bytes + OVERHEAD_BYTES),
        ("grpc.max_send_message_length", -1),
        ("grpc.compression_enabled_algorithms_bitset", UNCOMPRESSED),
        ("grpc.max_concurrent_streams", options.max_calls_of_connection),
        # Of calls that we have not looked at yet, gRPC would cancel some at random from 1,000 on.
        ("grpc.server.max_pending_requests", most_calls(options)),
        ("grpc.server.max_pending_requests_hard_limit", most_calls(options)),
        ("grpc.max_allowed_incoming_connections", options.max_connections),
        ("grpc.max_metadata_size", options.max_header_bytes // 4),
        ("grpc.absolute_max_metadata_size", options.max_header_bytes),
        ("grpc.server_handshake_timeout_ms", int(options.header_timeout_s * 1000)),
        ("grpc.max_connection_idle_ms", int(options.call_idle_s * 1000)),
        # Clients look for replicas that are new or gone whenever a connection ends. What runs on it goes on.
        ("grpc.max_connection_age_ms", 300_000),
        # Whoever has died without a word is found within 80 s.
        ("grpc.keepalive_time_ms", 60_000),
        ("grpc.keepalive_timeout_ms", 20_000),
        ("grpc.keepalive_permit_without_calls", 1),
        # Who pings more often is sent away.
        ("grpc.http2.min_recv_ping_interval_without_data_ms", 10_000),
        ("grpc.http2.max_ping_strikes", 2),
    ]


@asynccontextmanager
async def listening_grpc(house: House, observers: Sequence[Observer] = ()) -> AsyncIterator[int | None]:
    """Gives the port while calls are answered; None if nobody asked for it."""
    options = house.options
    if options.kserve_grpc_port is None:
        yield None
        return
    server = grpc.aio.server(
        options=channel_options(options), maximum_concurrent_rpcs=most_calls(options), compression=None
    )
    server.add_generic_rpc_handlers((Calls(Answering(house, (house.metrics, *observers))).handlers(),))
    host = f"[{options.host}]" if ":" in options.host else options.host
    try:
        port = server.add_insecure_port(f"{host}:{options.kserve_grpc_port}")
    except RuntimeError:
        raise KestrelError(
            f"port {options.kserve_grpc_port} of {options.host} cannot be used; choose with "
            "--kserve-grpc-port or --host"
        ) from None
    await server.start()
    leaving = asyncio.create_task(_leave(server, house))
    try:
        yield port
    finally:
        leaving.cancel()
        await server.stop(CUT_OFF_S)


async def _leave(server: grpc.aio.Server, house: House) -> None:
    """End connections before requests on them would be refused; what runs on them goes on.

    HTTP says with every answer that the connection ends. A gRPC client learns it from the connection alone,
    and then asks another server by itself. A call that meets this word on its way is not begun, and gRPC
    cancels it; our client asks again.
    """
    while not house.drain.is_leaving:
        await asyncio.sleep(WATCH_S)
    await server.stop(house.options.drain_s + house.options.exit_timeout_s)
