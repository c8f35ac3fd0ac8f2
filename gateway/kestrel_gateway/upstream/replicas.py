"""Who answers: one Triton, several, or an engine in this process; asked as if they were one."""

import asyncio
from collections.abc import Callable, Sequence

from kestrel_core.protocol.about import About
from kestrel_core.protocol.asking import AsyncCalls
from kestrel_core.protocol.errors import ServerUnreachable
from kestrel_core.protocol.messages import Request
from kestrel_gateway.upstream.probing import STALE_S, keep_probing
from kestrel_gateway.upstream.replica import Replica
from kestrel_gateway.upstream.routed import NOBODY, RoutedStream

# A Triton that is started again needs about 3 s. Some of that a request may wait; then its caller is told.
PATIENCE_S = 1.5


class Replicas(AsyncCalls):
    def __init__(self, replicas: Sequence[Replica], patience_s: float = PATIENCE_S) -> None:
        self.replicas = replicas
        self._patience_s = patience_s

    @classmethod
    def alone(cls, calls: AsyncCalls) -> "Replicas":
        """One who needs not be waited for: an engine in this process does not come back."""
        return cls([Replica("here", calls)], patience_s=0.0)

    async def open(self, request: Request) -> RoutedStream:
        stream = RoutedStream(self.replicas, request, self._patience_s)
        await stream.start()
        return stream

    async def about(self) -> About:
        """What is known of them already, or what one of them says now."""
        return self.known or await super().about()

    @property
    def known(self) -> About | None:
        """They serve the same model; otherwise no request could go to any of them."""
        return next((replica.about for replica in self.replicas if replica.about is not None), None)

    def tell(self, whom: Callable[[str, bool], None]) -> None:
        """Whoever is named here is told when a replica answers again, or no longer."""
        for replica in self.replicas:
            replica.tell = whom

    def check(self) -> None:
        """Raises unless somebody answered of late. Asks nobody, so it takes no time."""
        if not any(replica.is_well and replica.silent_s < STALE_S for replica in self.replicas):
            raise ServerUnreachable(NOBODY)

    async def watch(self) -> None:
        """Keep looking whether they answer, until cancelled."""
        async with asyncio.TaskGroup() as watching:
            for replica in self.replicas:
                watching.create_task(keep_probing(replica))
