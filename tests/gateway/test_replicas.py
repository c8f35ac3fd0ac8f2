"""Several upstreams asked as if they were one: who is asked, who is left, and what a caller is told."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from gateway_replicas import (
    AWAY,
    BROKEN,
    ENDING,
    FULL,
    LOST,
    answer,
    first_and_second,
    picture,
    query,
    run,
    several,
)
from gateway_server import FakeUpstream, Script, endless, failing, well

from kestrel_core.protocol.asking import AnswerStream
from kestrel_core.protocol.errors import (
    BadImage,
    Cancelled,
    DeadlinePassed,
    EngineFailed,
    KestrelError,
    Overloaded,
    ServerUnreachable,
)
from kestrel_core.protocol.messages import Chunk, Request
from kestrel_gateway.upstream import replica as replica_module
from kestrel_gateway.upstream.choosing import choose, digest_of
from kestrel_gateway.upstream.replicas import Replicas


def nothing_is_open(replicas: Replicas) -> bool:
    return replicas.lanes.is_empty and all(replica.num_open == 0 for replica in replicas.replicas)


def test_a_picture_goes_to_the_replica_that_has_it() -> None:
    replicas, fakes = several("one", "two", "three")

    async def ask() -> None:
        for number in range(30):
            for _ in range(2):
                await answer(replicas, query(number))

    run(ask())
    homes = [{request.image for request in fake.asked} for fake in fakes]
    assert sum(map(len, homes)) == 30, "each picture has one home"
    assert all(len(home) >= 3 for home in homes)
    assert nothing_is_open(replicas)


def test_only_the_pictures_of_a_replica_that_goes_move() -> None:
    three, _ = several("one", "two", "three")
    before = {number: choose(three.replicas, digest_of(picture(number))).name for number in range(200)}
    after = {number: choose(three.replicas[:2], digest_of(picture(number))).name for number in range(200)}
    assert all(after[number] == home for number, home in before.items() if home != "three:8001")
    moved = Counter(after[number] for number, home in before.items() if home == "three:8001")
    assert len(moved) == 2, "and they are spread over those that are left"


def test_nobody_takes_much_more_than_a_fair_share() -> None:
    replicas, fakes = several("one", "two", "three")
    for fake in fakes:
        fake.scripts = [endless] * 60

    async def ask() -> None:
        streams = [await replicas.open(query(1)) for _ in range(60)]
        shares = [replica.num_open for replica in replicas.replicas]
        for stream in streams:
            stream.cancel()
        assert sum(shares) == 60 and max(shares) <= 1.25 * 20 + 1
        assert max(shares) > 20, "the picture's own replica takes what it may"

    run(ask())
    assert nothing_is_open(replicas)


def test_texts_go_to_who_has_the_least_to_do() -> None:
    replicas, fakes = several("one", "two")
    fakes[0].scripts = [endless] * 2

    async def ask() -> None:
        waiting = await replicas.open(query())
        for _ in range(4):
            await answer(replicas, query())
        waiting.cancel()

    run(ask())
    assert [len(fake.asked) for fake in fakes] == [1, 4]


@pytest.mark.parametrize("error", [AWAY, ENDING, FULL, BROKEN, Cancelled("by the server")])
@pytest.mark.parametrize("stream", [False, True])
def test_a_replica_that_does_not_answer_is_left_within_the_request(error: KestrelError, stream: bool) -> None:
    replicas, _ = several("one", "two")
    request = query(1, stream=stream)
    first, second = first_and_second(replicas, request)
    first.scripts = [failing(error)]
    assert run(answer(replicas, request)).text == "a red circle"
    assert (len(first.asked), len(second.asked)) == (1, 1)
    assert nothing_is_open(replicas)


@pytest.mark.parametrize(
    ("error", "asked_again"), [(AWAY, False), (ENDING, False), (FULL, True), (BROKEN, True)]
)
def test_one_that_is_away_is_not_asked_again_and_one_that_is_full_is(
    error: KestrelError, asked_again: bool
) -> None:
    replicas, _ = several("one", "two")
    first, _ = first_and_second(replicas, query(1))
    first.scripts = [failing(error)]

    async def ask() -> None:
        for _ in range(2):
            await answer(replicas, query(1))

    run(ask())
    assert (len(first.asked) == 2) == asked_again


def test_an_answer_that_has_begun_is_not_begun_again() -> None:
    replicas, _ = several("one", "two")
    request = query(1, stream=True)
    first, second = first_and_second(replicas, request)
    first.scripts = [failing(ServerUnreachable("one:8001 and two:8001 went away"), after=1)]

    async def ask() -> None:
        async with await replicas.open(request) as stream:
            assert await stream.next_chunk() == Chunk("a ", 1)
            with pytest.raises(ServerUnreachable, match="in the middle of the answer") as raised:
                await stream.next_chunk()
            assert "8001" not in str(raised.value), "addresses are nobody's business outside"

    run(ask())
    assert second.asked == [] and nothing_is_open(replicas)


@pytest.mark.parametrize("error", [BadImage("no picture"), DeadlinePassed("too late")])
def test_what_no_replica_could_do_better_is_not_asked_elsewhere(error: KestrelError) -> None:
    replicas, _ = several("one", "two")
    first, second = first_and_second(replicas, query(1))
    first.scripts = [failing(error)]
    with pytest.raises(type(error), match=str(error)):
        run(answer(replicas, query(1)))
    assert second.asked == []


@pytest.mark.parametrize(
    ("errors", "told"),
    [
        ((FULL, FULL), Overloaded),
        ((AWAY, FULL), Overloaded),
        ((FULL, ENDING), Overloaded),
        ((AWAY, AWAY), ServerUnreachable),
        ((AWAY, ENDING), ServerUnreachable),
        ((AWAY, BROKEN), EngineFailed),
    ],
)
def test_if_all_refuse_the_most_useful_refusal_is_told(
    errors: tuple[KestrelError, KestrelError], told: type[KestrelError]
) -> None:
    replicas, fakes = several("one", "two")
    for fake, error in zip(fakes, errors, strict=True):
        fake.scripts = [failing(error)] * 2
    with pytest.raises(KestrelError) as raised:
        run(answer(replicas, query(1)))
    assert type(raised.value) is told and "8001" not in str(raised.value)
    assert nothing_is_open(replicas)


@pytest.mark.parametrize(
    "errors",
    [(BROKEN,) * 4, (LOST,) * 4, (LOST, BROKEN) * 2, (BROKEN, LOST) * 2],
    ids=["engines fail", "servers die", "a server dies, then an engine fails", "and the other way round"],
)
def test_a_request_that_may_have_ended_two_servers_is_not_tried_on_a_third(
    errors: tuple[KestrelError, ...],
) -> None:
    replicas, fakes = several("one", "two", "three", "four", patience_s=10.0)
    left = [failing(error) for error in errors]
    for fake in fakes:
        fake.scripts = left
    with pytest.raises(type(errors[1])):
        run(answer(replicas, query(1)))
    assert sum(len(fake.asked) for fake in fakes) == 2 and nothing_is_open(replicas)


def test_a_server_that_dies_of_a_request_gets_it_once_more_after_its_restart_and_no_third_time() -> None:
    replicas, [fake] = several("one", patience_s=10.0)
    fake.scripts = [failing(error) for error in (LOST, AWAY, AWAY, LOST, LOST)]
    with pytest.raises(ServerUnreachable, match="the server went away before it answered"):
        run(answer(replicas, query(1)))
    assert len(fake.asked) == 4, "what never left is asked again, and does not count"


def test_what_never_left_is_tried_on_all() -> None:
    replicas, fakes = several("one", "two", "three", "four")
    left = [failing(AWAY), failing(LOST), failing(AWAY), well]
    for fake in fakes:
        fake.scripts = left
    assert run(answer(replicas, query(1))).text == "a red circle"
    assert [len(fake.asked) for fake in fakes] == [1, 1, 1, 1]


def test_a_server_that_starts_again_is_waited_for_a_while() -> None:
    replicas, [fake] = several("one", patience_s=10.0)
    fake.scripts = [failing(AWAY)] * 3
    assert run(answer(replicas, query(1))).text == "a red circle"
    times = [request.timeout_s for request in fake.asked if request.timeout_s is not None]
    assert len(times) == 4 and times[0] == 30.0
    assert sorted(times, reverse=True) == times and times[-1] < 30.0, "what is left of its time goes along"


def test_but_not_for_ever() -> None:
    replicas, [fake] = several("one", patience_s=0.2)
    fake.scripts = [failing(AWAY)] * 100
    with pytest.raises(ServerUnreachable, match="no server behind this gateway"):
        run(answer(replicas, query(1)))
    assert 2 <= len(fake.asked) < 100


def test_and_not_beyond_the_deadline() -> None:
    replicas, [fake] = several("one", patience_s=1000.0)
    fake.scripts = [failing(AWAY)] * 100
    with pytest.raises(ServerUnreachable):
        run(answer(replicas, replace(query(1), timeout_s=0.2)))
    assert len(fake.asked) < 100


def silent_first(reached: asyncio.Event) -> Script:
    async def script(request: Request) -> AsyncIterator[Chunk]:
        reached.set()
        await asyncio.Event().wait()
        yield Chunk("never", 1)

    return script


def test_who_waits_on_a_connection_that_fell_silent_is_asked_again_by_a_new_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(replica_module, "STRANDED_S", 0.01)
    replicas, [fake] = several("one", patience_s=1.5)
    [replica] = replicas.replicas
    connections = [0]
    replica._reconnect = lambda: connections.append(1)

    async def scenario() -> None:
        reached = asyncio.Event()
        fake.scripts = [silent_first(reached), well]
        waiting = asyncio.ensure_future(answer(replicas, query(1)))
        await reached.wait()
        replica.leave_silent()
        await asyncio.sleep(0.05)
        assert connections == [0, 1] and len(fake.asked) == 1, "there is nobody else, and it may go on"
        replica.is_found_well()
        assert (await waiting).text == "a red circle" and replica.is_well

    run(scenario())
    assert len(fake.asked) == 2 and nothing_is_open(replicas)


async def cancelled_while_it_opens(replicas: Replicas, fake: FakeUpstream) -> None:
    reached = asyncio.Event()

    async def never(request: Request) -> Any:
        reached.set()
        await asyncio.Event().wait()

    fake.open = never  # type: ignore[method-assign]
    await cancelled_at(reached, answer(replicas, query(1)))


async def cancelled_while_it_waits_for_its_answer(replicas: Replicas, fake: FakeUpstream) -> None:
    reached = asyncio.Event()
    fake.scripts = [silent_first(reached)]
    await cancelled_at(reached, answer(replicas, query(1)))
    assert fake.answers[0].is_cancelled.is_set()


async def cancelled_between_two_rounds(replicas: Replicas, fake: FakeUpstream) -> None:
    reached = asyncio.Event()

    async def away(request: Request) -> AsyncIterator[Chunk]:
        if len(fake.asked) == 2:
            reached.set()
        raise AWAY
        yield

    fake.scripts = [away] * 1000
    await cancelled_at(reached, answer(replicas, query(1)))
    assert len(fake.asked) == 2


async def cancelled_by_its_method(replicas: Replicas, fake: FakeUpstream) -> None:
    fake.scripts = [failing(AWAY)] * 1000
    opened: AnswerStream[Any] = await replicas.open(query(1))
    reading = asyncio.ensure_future(opened.result())
    while len(fake.asked) < 2:
        await asyncio.sleep(0)
    opened.cancel()
    with pytest.raises(Cancelled):
        await reading


async def cancelled_at(moment: asyncio.Event, work: Any) -> None:
    task = asyncio.ensure_future(work)
    await moment.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize(
    "leave",
    [
        cancelled_while_it_opens,
        cancelled_while_it_waits_for_its_answer,
        cancelled_between_two_rounds,
        cancelled_by_its_method,
    ],
)
def test_who_leaves_leaves_nothing_open(leave: Callable[..., Awaitable[None]]) -> None:
    replicas, [fake] = several("one", patience_s=60.0)
    run(leave(replicas, fake))
    assert nothing_is_open(replicas)


def test_one_upstream_has_all_requests_whoever_it_is() -> None:
    fake = FakeUpstream()
    fake.scripts = [well, failing(FULL)]
    replicas = Replicas.alone(fake)
    assert run(answer(replicas, query(1))).text == "a red circle"
    with pytest.raises(Overloaded):
        run(answer(replicas, query(1)))
