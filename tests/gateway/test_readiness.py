"""Readiness is a real answer: who counts as well, who as frozen, and what /readyz says of it at once."""

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest
from free_ports import free_ports
from gateway_replicas import AWAY, BROKEN, ENDING, FULL, answer, first_and_second, query, run, several
from gateway_server import FakeUpstream, endless, failing, running

from kestrel_core.protocol.about import About, SkillAbout
from kestrel_core.protocol.errors import DeadlinePassed, KestrelError, ServerUnreachable, UnknownSkill
from kestrel_core.protocol.messages import Chunk, Request
from kestrel_gateway.options import GatewayOptions
from kestrel_gateway.upstream.opening import opened
from kestrel_gateway.upstream.probing import PROBE, STALE_S, keep_probing, probe
from kestrel_gateway.upstream.replica import Replica
from kestrel_gateway.upstream.replicas import Replicas

COUNT = SkillAbout("count", "counts", "`count`", "required", False, True, (), ())
ABOUT = About("moondream-tiny", "1.2.3", 2048, (COUNT,))


class Telling(FakeUpstream):
    """Says what it is."""

    async def about(self) -> About:
        return ABOUT


def test_nobody_is_well_before_the_first_answer() -> None:
    replicas = Replicas([Replica("one", Telling())])
    with pytest.raises(ServerUnreachable, match="no server behind this gateway"):
        replicas.check()
    run(probe(replicas.replicas[0]))
    replicas.check()
    assert replicas.known == ABOUT


@pytest.mark.parametrize("error", [FULL, DeadlinePassed("it waited too long"), UnknownSkill("no query")])
def test_who_refuses_is_there(error: KestrelError) -> None:
    fake = Telling()
    fake.scripts = [failing(error)]
    replicas = Replicas([Replica("one", fake)])
    run(probe(replicas.replicas[0]))
    replicas.check()


@pytest.mark.parametrize("error", [AWAY, ENDING, BROKEN])
def test_who_is_away_ending_or_broken_is_not_well_until_it_answers(error: KestrelError) -> None:
    replicas, [fake] = several("one")
    fake.scripts = [failing(error)]
    run(probe(replicas.replicas[0]))
    with pytest.raises(ServerUnreachable):
        replicas.check()
    run(probe(replicas.replicas[0]))
    replicas.check()


def test_the_log_says_that_a_server_does_not_answer_and_gives_no_advice_for_clients(
    caplog: pytest.LogCaptureFixture,
) -> None:
    [port] = free_ports(1)

    async def look() -> None:
        async with opened(GatewayOptions((f"127.0.0.1:{port}",))) as replicas:
            replicas.replicas[0].is_found_well()
            await probe(replicas.replicas[0])

    with caplog.at_level(logging.WARNING, "kestrel.gateway"):
        run(look())
    [line] = caplog.messages
    place = f"127.0.0.1:{port}"
    assert line == f"upstream {place} gets no more requests: no Triton server answers at {place}"


def test_an_answer_to_a_request_does_not_bring_back_who_was_left() -> None:
    replicas, [fake] = several("one")
    fake.scripts = [failing(ENDING)]

    async def ask() -> None:
        finishing = await replicas.open(query(1))
        replicas.replicas[0].leave("it is ending")
        await finishing.result()

    fake.scripts = []
    run(ask())
    with pytest.raises(ServerUnreachable):
        replicas.check()


def test_a_frozen_replica_is_noticed_and_those_who_wait_for_it_are_sent_on() -> None:
    replicas, _ = several("one", "two")
    first, second = first_and_second(replicas, query(1))
    first.scripts = [endless, endless]

    async def ask() -> str:
        waiting = asyncio.ensure_future(answer(replicas, query(1)))
        while not first.asked:
            await asyncio.sleep(0)
        frozen = next(replica for replica in replicas.replicas if replica.calls is first)
        probing = asyncio.ensure_future(probe(frozen, frozen_s=0.05))
        [result, _] = await asyncio.gather(waiting, probing)
        assert not frozen.is_well and frozen.num_open == 0
        return str(result.text)

    assert run(ask()) == "a red circle"
    assert len(second.asked) == 1
    assert first.answers[0].is_cancelled.is_set(), "nothing waits for it any more"
    replicas.check()


def test_if_there_is_nobody_else_those_who_wait_go_on_waiting() -> None:
    replicas, [fake] = several("one")
    thawed = asyncio.Event()

    async def slow(request: Request) -> AsyncIterator[Chunk]:
        await thawed.wait()
        return
        yield

    async def ask() -> str:
        fake.scripts = [slow, endless]
        waiting = asyncio.ensure_future(answer(replicas, query(1)))
        while not fake.asked:
            await asyncio.sleep(0)
        await probe(replicas.replicas[0], frozen_s=0.05)
        thawed.set()
        return str((await waiting).text)

    assert run(ask()) == "a red circle"


def test_a_replica_that_answers_requests_is_not_probed_and_an_idle_one_is() -> None:
    now = [100.0]
    fake = Telling()
    replica = Replica("one", fake, clock=lambda: now[0])
    replica.is_found_well()

    async def watch() -> None:
        watching = asyncio.ensure_future(keep_probing(replica))
        await asyncio.sleep(0.05)
        assert fake.asked == []
        now[0] += 3.0
        replica.doubted.set()  # which ends the pause
        while not fake.asked:
            await asyncio.sleep(0)
        watching.cancel()

    run(watch())
    assert fake.asked[0] == PROBE


def test_what_nobody_looked_at_for_long_is_not_ready() -> None:
    now = [100.0]
    replica = Replica("one", Telling(), clock=lambda: now[0])
    replicas = Replicas([replica])
    replica.is_found_well()
    now[0] += STALE_S
    with pytest.raises(ServerUnreachable):
        replicas.check()


def test_readiness_is_told_without_asking_anybody() -> None:
    with running() as gateway:
        assert gateway.get("/readyz")[0] == 200
        gateway.house.upstream.replicas[0].leave("gone")
        status, document, headers = gateway.get("/readyz")
        assert (status, document["error"]["code"], headers["retry-after"]) == (503, "unreachable", "2")
        assert gateway.get("/livez")[0] == 200, "the gateway itself lives"
        assert gateway.upstream.asked == []


def test_a_skill_of_the_servers_own_has_a_path_once_it_is_known() -> None:
    with running(Telling()) as gateway:
        assert gateway.post("/v1/count", {"object": "cat"})[0] == 404
        gateway.house.upstream.replicas[0].about = ABOUT
        status, document, _ = gateway.post("/v1/count", {"object": "cat"})
        assert (status, document["text"]) == (200, "done")
        assert gateway.upstream.asked[0].skill == "count"
        assert gateway.get("/v1/count")[0] == 405
        assert (gateway.house.model, gateway.house.skills) == ("moondream-tiny", (COUNT,))


def test_everybody_is_watched_until_the_watching_ends() -> None:
    fakes = [Telling(), Telling()]
    replicas = Replicas([Replica(str(index), fake) for index, fake in enumerate(fakes)])

    async def watch() -> Any:
        watching = asyncio.ensure_future(replicas.watch())
        while not all(replica.is_well for replica in replicas.replicas):
            await asyncio.sleep(0)
        watching.cancel()
        await asyncio.wait([watching])
        assert watching.cancelled()

    run(watch())
