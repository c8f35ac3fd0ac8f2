"""Opens the way to every upstream that was named."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from kestrel_client.async_client import AsyncClient
from kestrel_client.exchange import Retry
from kestrel_core.triton.restrictions import GRPC_HEADER
from kestrel_gateway.options import GatewayOptions
from kestrel_gateway.upstream.replica import Replica
from kestrel_gateway.upstream.replicas import Replicas

ONCE = Retry(limit=0)  # whether to ask again, and whom, is decided by `RoutedStream`


@asynccontextmanager
async def opened(options: GatewayOptions) -> AsyncIterator[Replicas]:
    headers = {GRPC_HEADER: options.secret} if options.secret else {}
    names = dict.fromkeys(options.upstreams)  # each once
    async with AsyncExitStack() as stack:
        replicas = []
        for name in names:
            client = AsyncClient(name, retry=ONCE, headers=headers)
            replicas.append(Replica(name, await stack.enter_async_context(client)))
        yield Replicas(replicas)
