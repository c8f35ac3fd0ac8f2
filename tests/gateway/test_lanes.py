"""Lanes: what a caller asks beyond what servers can use waits in the gateway, in order, in nobody's way."""

import asyncio
import random
import threading
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from gateway_replicas import AWAY, BROKEN, FULL, query, run, several
from gateway_server import FakeUpstream, Script, failing, running, well

from kestrel_core.protocol.about import About
from kestrel_core.protocol.errors import Cancelled, DeadlinePassed, InvalidRequest, KestrelError
from kestrel_core.protocol.messages import Chunk, Request
from kestrel_gateway.upstream.lanes import Lanes, width
from kestrel_gateway.upstream.replicas import Replicas

A, B = (replace(query(), tenant=name, timeout_s=10) for name in ("a", "b"))


def held(until: asyncio.Event) -> Script:
    async def script(request: Request) -> AsyncIterator[Chunk]:
        await until.wait()
        yield Chunk("", 0)

    return script


def narrow(num_inside: int) -> tuple[Replicas, FakeUpstream]:
    """One upstream, and lanes for so many."""
    replicas, [fake] = several("one")
    replicas.lanes = Lanes(lambda: num_inside)
    return replicas, fake


async def full() -> tuple[Replicas, FakeUpstream, asyncio.Event, "asyncio.Future[Any]"]:
    """A lane for one, and who is in it, until the event."""
    replicas, fake = narrow(1)
    may_end = asyncio.Event()
    fake.scripts.append(held(may_end))
    first = asyncio.ensure_future(replicas.submit(A))
    await asyncio.sleep(0)
    return replicas, fake, may_end, first


def test_more_than_the_lane_holds_wait_and_another_caller_does_not() -> None:
    async def ask() -> None:
        replicas, fake = narrow(2)
        may_end = asyncio.Event()
        fake.scripts += [held(may_end), held(may_end)]
        answers = [asyncio.ensure_future(replicas.submit(A)) for _ in range(5)]
        while len(fake.asked) < 2:
            await asyncio.sleep(0)
        await asyncio.wait_for(replicas.submit(B), 60)
        assert [request.tenant for request in fake.asked] == ["a", "a", "b"]
        assert replicas.lanes.num_waiting == 3
        may_end.set()
        await asyncio.gather(*answers)
        assert len(fake.asked) == 6 and replicas.lanes.num_waiting == 0

    run(ask())


def test_who_waits_comes_by_priority_and_then_by_arrival() -> None:
    async def ask() -> None:
        replicas, fake = narrow(1)
        may_end = asyncio.Event()
        fake.scripts.append(held(may_end))
        sent = [replace(A, priority=priority, request_id=name) for priority, name in
                ((5, "first"), (5, "late"), (0, "usual"), (-3, "soon"), (0, "usual, later"))]  # fmt: skip
        answers = []
        for request in sent:
            answers.append(asyncio.ensure_future(replicas.submit(request)))
            await asyncio.sleep(0.01)
        may_end.set()
        await asyncio.gather(*answers)
        came = [request.request_id for request in fake.asked]
        assert came == ["first", "soon", "usual", "usual, later", "late"]

    run(ask())


def test_a_deadline_passes_while_a_request_waits_and_what_is_left_is_told() -> None:
    async def ask() -> None:
        replicas, fake, may_end, first = await full()
        patient = asyncio.ensure_future(replicas.submit(A))
        with pytest.raises(DeadlinePassed, match="for others of its caller"):
            await replicas.submit(replace(A, timeout_s=0.05))
        may_end.set()
        await asyncio.gather(first, patient)
        left_s = fake.asked[1].timeout_s
        assert left_s is not None and left_s <= 10 - 0.05

    run(ask())


def test_who_is_cancelled_while_it_waits_is_never_asked_for() -> None:
    async def ask() -> None:
        replicas, fake, may_end, first = await full()
        gone = asyncio.ensure_future(replicas.submit(A))
        stream = await replicas.open(A)
        reading = asyncio.ensure_future(stream.next_chunk())
        await asyncio.sleep(0.01)
        assert replicas.lanes.num_waiting == 2
        gone.cancel()
        stream.cancel()
        may_end.set()
        await first
        with pytest.raises(Cancelled):
            await reading
        stream.cancel()
        assert len(fake.asked) == 1 and replicas.lanes.has_room("a")

    run(ask())


@pytest.mark.parametrize("how", [failing(AWAY), failing(FULL), failing(BROKEN), failing(BROKEN, 1), well])
def test_whatever_becomes_of_a_request_its_place_is_free_afterwards(how: Script) -> None:
    async def ask() -> None:
        replicas, fake = narrow(1)
        for _ in range(3):
            fake.scripts.append(how)
            with suppress(KestrelError):
                await replicas.submit(A)
            assert replicas.lanes.is_empty

    run(ask())


def test_who_is_refused_before_anything_was_sent_leaves_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(request: Request) -> None:
        raise InvalidRequest("this cannot be sent")

    async def ask() -> None:
        replicas, fake = narrow(1)
        monkeypatch.setattr(fake, "open", refuse)
        for _ in range(3):
            with pytest.raises(InvalidRequest):
                await replicas.submit(A)
        assert replicas.lanes.is_empty

    run(ask())


@pytest.mark.parametrize("seed", range(20))
def test_a_lane_is_never_fuller_than_it_is_wide_and_empty_in_the_end(seed: int) -> None:
    """Random callers who come, stay, leave, or are cancelled in any moment."""
    chance = random.Random(seed)
    wide = chance.randint(1, 4)
    inside = {"a": 0, "b": 0}
    most = 0

    async def visit(lanes: Lanes, caller: str) -> None:
        nonlocal most
        await lanes.enter(caller, chance.randint(-2, 2), chance.choice([None, 0.001]))
        inside[caller] += 1
        most = max(most, *inside.values())
        try:
            await asyncio.sleep(chance.choice([0, 0, 0.001]))
        finally:
            inside[caller] -= 1
            lanes.leave(caller)

    async def visits() -> None:
        lanes, told = Lanes(lambda: wide), [0]
        lanes.tell = lambda more: told.append(told[-1] + more)
        tasks = []
        for _ in range(200):
            tasks.append(asyncio.ensure_future(visit(lanes, chance.choice("ab"))))
            if chance.random() < 0.3:
                chance.choice(tasks).cancel()
            if chance.random() < 0.3:
                await asyncio.sleep(0)
        ends = await asyncio.gather(*tasks, return_exceptions=True)
        assert {type(end) for end in ends} <= {type(None), asyncio.CancelledError, DeadlinePassed}
        assert any(end is None for end in ends)
        assert not lanes.num_waiting and lanes.is_empty
        assert told[-1] == 0 == min(told) and max(told) > 1

    asyncio.run(asyncio.wait_for(visits(), 60))
    assert most == wide


def test_a_lane_is_as_wide_as_those_who_answer_can_use() -> None:
    replicas, _ = several("one", "two", "three")
    one, two, three = replicas.replicas
    one.about = two.about = three.about = About("m", "1", 9, (), max_batch_size=8)
    for replica in (one, two):
        replica.is_found_well()
    three.leave("it is away")
    lanes = replicas.lanes
    for _ in range(2 * width(8)):
        assert lanes.has_room("a")
        asyncio.run(lanes.enter("a", 0, None))
    assert not lanes.has_room("a") and lanes.has_room("b")


def test_a_flood_over_http_is_answered_to_the_last() -> None:
    """More than the lane holds, all at once; each is answered, none refused."""
    with running() as gateway:
        gateway.house.upstream.lanes = Lanes(lambda: 2)
        statuses: list[int] = []
        ask = lambda: statuses.append(gateway.post("/v1/query", {"question": "What?"})[0])  # noqa: E731
        threads = [threading.Thread(target=ask) for _ in range(30)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert statuses == [200] * 30 and len(gateway.upstream.asked) == 30
