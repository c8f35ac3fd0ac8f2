"""Opens the way to every upstream that was named.

HOST:PORT is one server. dns:NAME:PORT is as many as the name has addresses, which are looked up again and
again: so a headless service of Kubernetes names its pods.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from kestrel_client.async_client import AsyncClient
from kestrel_client.exchange import Retry
from kestrel_core.protocol.errors import InvalidRequest
from kestrel_core.triton.restrictions import GRPC_HEADER
from kestrel_gateway.options import GatewayOptions
from kestrel_gateway.upstream.replica import Replica
from kestrel_gateway.upstream.replicas import Replicas

ONCE = Retry(limit=0)  # whether to ask again, and whom, is decided by `RoutedStream`
DNS = "dns:"


@asynccontextmanager
async def opened(options: GatewayOptions) -> AsyncIterator[Replicas]:
    headers = {GRPC_HEADER: options.secret} if options.secret else {}

    def connect(name: str) -> Replica:
        client = AsyncClient(name, retry=ONCE, headers=headers)
        return Replica(name, client, close=client.close, reconnect=client.reconnect)

    async def find() -> set[str]:
        return await addresses(options.upstreams)

    has_names = any(upstream.startswith(DNS) for upstream in options.upstreams)
    replicas = Replicas([connect(name) for name in sorted(await find())])
    if has_names:
        replicas.look_up(find, connect)
    try:
        yield replicas
    finally:
        await replicas.close()


async def addresses(upstreams: Iterable[str]) -> set[str]:
    """HOST:PORT of each server. A name that is not known at the moment has no addresses."""
    found: set[str] = set()
    for upstream in upstreams:
        found |= await _looked_up(upstream.removeprefix(DNS)) if upstream.startswith(DNS) else {upstream}
    return found


async def _looked_up(name: str) -> set[str]:
    host, _, port = name.rpartition(":")
    if not host or not port.isdecimal():
        raise InvalidRequest(f"--upstream {DNS}{name} has no port; write it as {DNS}NAME:PORT")
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, int(port), type=socket.SOCK_STREAM)
    except OSError:
        return set()
    hosts = {str(address[0]) for *_, address in found}
    return {f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host in hosts}
