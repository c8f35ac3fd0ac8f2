"""Replicas by the addresses of a name: who comes is asked, who goes finishes what it has."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from gateway_replicas import answer, query, run
from gateway_server import FakeUpstream, endless

from kestrel_core.protocol.errors import InvalidRequest, ServerUnreachable
from kestrel_gateway.options import GatewayOptions
from kestrel_gateway.upstream.opening import addresses, opened
from kestrel_gateway.upstream.replica import Replica
from kestrel_gateway.upstream.replicas import Replicas


class Named:
    """A name whose addresses a test changes. Behind each is a scripted upstream."""

    def __init__(self, *names: str) -> None:
        self.names = set(names)
        self.fakes: dict[str, FakeUpstream] = {}
        self.closed: list[str] = []
        self.told: list[tuple[str, bool]] = []
        self.replicas = Replicas([self.connect(name) for name in names], patience_s=0.0)
        self.replicas.look_up(self.find, self.connect)
        self.replicas.tell(lambda name, is_well: self.told.append((name, is_well)))

    async def find(self) -> set[str]:
        return set(self.names)

    def connect(self, name: str) -> Replica:
        async def close() -> None:
            self.closed.append(name)

        self.fakes[name] = FakeUpstream()
        return Replica(name, self.fakes[name], close)

    async def while_watched(self, work: Callable[[], Awaitable[Any]]) -> None:
        watching = asyncio.ensure_future(self.replicas.watch(look_up_s=0.01))
        await self.until(lambda: all(replica.is_well for replica in self.replicas.replicas))
        await work()
        watching.cancel()
        await asyncio.wait([watching])

    async def until(self, what: Callable[[], bool]) -> None:
        while not what():
            await asyncio.sleep(0.005)

    def well(self) -> set[str]:
        return {replica.name for replica in self.replicas.replicas if replica.is_well}


def test_who_comes_is_asked_and_who_goes_is_not() -> None:
    named = Named("one", "two")

    async def work() -> None:
        named.names = {"two", "three"}
        await named.until(lambda: named.well() == {"two", "three"})
        before = len(named.fakes["one"].asked)
        for number in range(20):
            await answer(named.replicas, query(number))
        assert len(named.fakes["one"].asked) == before

    run(named.while_watched(work))
    assert named.closed == ["one"]
    assert named.told[-2:] == [("one", False), ("three", True)]


def test_who_goes_finishes_what_it_has_and_is_closed_then() -> None:
    named = Named("one")

    async def work() -> None:
        named.fakes["one"].scripts = [endless]
        under_way = await named.replicas.open(query(1))
        named.names = {"two"}
        await named.until(lambda: named.well() == {"two"})
        assert named.closed == [] and not named.fakes["one"].answers[-1].is_cancelled.is_set()
        under_way.cancel()
        await named.until(lambda: named.closed == ["one"])

    run(named.while_watched(work))


def test_a_name_that_cannot_be_looked_up_takes_nobody_away() -> None:
    named = Named("one")

    async def work() -> None:
        named.names = set()
        await asyncio.sleep(0.05)  # some looks
        assert named.well() == {"one"}

    run(named.while_watched(work))


def test_a_name_without_addresses_is_nobody() -> None:
    with pytest.raises(ServerUnreachable, match="no server behind this gateway"):
        run(answer(Replicas([], patience_s=0.0), query(1)))


def test_addresses_are_looked_up_where_that_is_asked_for() -> None:
    assert run(addresses(["dns:127.0.0.1:8001", "localhost:8001"])) == {"127.0.0.1:8001", "localhost:8001"}
    assert run(addresses(["dns:[::1]:8001"])) <= {"[::1]:8001"}
    assert run(addresses(["dns:no-such-name.invalid:8001"])) == set()
    with pytest.raises(InvalidRequest, match="dns:NAME:PORT"):
        run(addresses(["dns:somewhere"]))


def test_one_who_is_named_twice_is_there_once() -> None:
    async def names() -> list[str]:
        async with opened(GatewayOptions(("localhost:1", "localhost:1", "dns:127.0.0.1:2"))) as replicas:
            return [replica.name for replica in replicas.replicas]

    assert run(names()) == ["127.0.0.1:2", "localhost:1"]
