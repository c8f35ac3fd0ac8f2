"""Who answers: one Triton, several, or an engine in this process; asked as if they were one."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from kestrel_core.protocol.about import USUAL_BATCH, About
from kestrel_core.protocol.asking import AsyncCalls
from kestrel_core.protocol.errors import ServerUnreachable
from kestrel_core.protocol.messages import Request
from kestrel_gateway.upstream.lanes import Lanes, width
from kestrel_gateway.upstream.probing import STALE_S, keep_probing
from kestrel_gateway.upstream.replica import Replica
from kestrel_gateway.upstream.routed import NOBODY, RoutedStream

# A Triton that is started again needs about 3 s. Some of that a request may wait; then its caller is told.
PATIENCE_S = 1.5
LOOK_UP_S = 5.0  # between two looks at who there is

Find = Callable[[], Awaitable[set[str]]]
Connect = Callable[[str], Replica]
Tell = Callable[[str, bool], None]


class Replicas(AsyncCalls):
    def __init__(self, replicas: Sequence[Replica], patience_s: float = PATIENCE_S) -> None:
        self.replicas = list(replicas)
        self._leaving: list[Replica] = []  # found no more; closed after their last request
        self._patience_s = patience_s
        self.lanes = Lanes(self._lane_width)
        self._probing: dict[Replica, asyncio.Task[None]] = {}
        self._look_up: tuple[Find, Connect] | None = None
        self._tell: Tell | None = None

    @classmethod
    def alone(cls, calls: AsyncCalls) -> "Replicas":
        """One who needs not be waited for: an engine in this process does not come back."""
        return cls([Replica("in-process", calls)], patience_s=0.0)

    def look_up(self, find: Find, connect: Connect) -> None:
        """While they are watched, those that `find` names are the replicas, whoever they are at the time."""
        self._look_up = find, connect

    async def open(self, request: Request) -> RoutedStream:
        """It is sent at once; where its caller's lane is full, when its turn comes while it is read."""
        stream = RoutedStream(self.replicas, self.lanes, request, self._patience_s)
        if self.lanes.has_room(request.tenant):
            await stream.start()
        return stream

    async def about(self) -> About:
        """What is known of them already, or what one of them says now."""
        return self.known or await super().about()

    @property
    def known(self) -> About | None:
        """They serve the same model; otherwise no request could go to any of them. Who is well knows best."""
        known = [replica for replica in self.replicas if replica.about is not None]
        return max(known, key=lambda replica: replica.is_well).about if known else None

    def tell(self, whom: Tell) -> None:
        """Whoever is named here is told when a replica answers again, or no longer."""
        self._tell = whom
        for replica in self.replicas:
            replica.tell = whom

    def check(self) -> None:
        """Raises unless somebody answered of late. Asks nobody, so it takes no time."""
        if not any(replica.is_well and replica.silent_s < STALE_S for replica in self.replicas):
            raise ServerUnreachable(NOBODY)

    async def watch(self, look_up_s: float = LOOK_UP_S) -> None:
        """Keep looking whether they answer, and who there is, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                for replica in set(self.replicas) - self._probing.keys():
                    self._probing[replica] = tasks.create_task(keep_probing(replica))
                if self._look_up is None:
                    return
                await asyncio.sleep(look_up_s)
                await self._refresh(*self._look_up)

    async def close(self) -> None:
        for replica in (*self.replicas, *self._leaving):
            await replica.close()

    def _lane_width(self) -> int:
        """For each caller: as much as all who answer can take."""
        known = [it.about.max_batch_size for it in self.replicas if it.is_well and it.about is not None]
        return sum(map(width, known or (USUAL_BATCH,)))

    async def _refresh(self, find: Find, connect: Connect) -> None:
        """Requests under way hold the same list, so those too may go to who has come."""
        names, known = await find(), {replica.name for replica in self.replicas}
        if not names:  # those who answer go on doing so when the names cannot be looked up
            return
        for replica in [replica for replica in self.replicas if replica.name not in names]:
            self.replicas.remove(replica)
            self._leaving.append(replica)
            self._probing.pop(replica).cancel()
            replica.leave("it is found no more")
        for name in sorted(names - known):
            replica = connect(name)
            replica.tell = self._tell or replica.tell
            self.replicas.append(replica)
        for replica in [replica for replica in self._leaving if not replica.num_open]:
            self._leaving.remove(replica)
            await replica.close()
