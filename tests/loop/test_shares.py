"""Fair shares: no tenant, no flood and no priority keeps others waiting for long."""

import random
from typing import Any

import pytest
from fakes import FakeEngine, Heard

from kestrel_core.protocol.errors import Overloaded

LONG = {"max_tokens": 40}


def flood(engine: FakeEngine, count: int, **more: Any) -> list[Heard]:
    return [engine.ask(question=f"flood {number}", settings=LONG, **more) for number in range(count)]


def steps_until_answered(engine: FakeEngine, heard: Heard) -> int:
    for number in range(3000):
        if heard.ended.is_set():
            return number
        engine.workers.run()
        engine.clock.now_s += 0.1
        engine.step()
    raise AssertionError("it was never answered")


@pytest.mark.parametrize("overlaps", [False, True])
def test_a_flood_of_one_tenant_gives_way_to_another_at_once(overlaps: bool) -> None:
    alone = FakeEngine(max_running=4, overlaps=overlaps)
    undisturbed = steps_until_answered(alone, alone.ask(question="short", settings={"max_tokens": 5}))
    engine = FakeEngine(max_running=4, overlaps=overlaps)
    flooding = flood(engine, 40, tenant="greedy")
    engine.workers.run()
    engine.step(6)
    modest = engine.ask(question="short", settings={"max_tokens": 5}, tenant="modest")
    assert steps_until_answered(engine, modest) <= undisturbed + 2
    engine.run_until_idle()
    alone.run_until_idle()
    engine.check_idle()
    expected = [answered_alone(heard) for heard in flooding]
    assert [heard.output for heard in flooding] == expected, "who gave way still gets the same answer"


def answered_alone(heard: Heard) -> dict[str, Any]:
    engine = FakeEngine()
    again = engine.submit(heard.request)
    engine.run_until_idle()
    return again.output


def test_requests_of_one_tenant_never_give_way_to_each_other() -> None:
    engine = FakeEngine(max_running=2)
    first = flood(engine, 2, tenant="one")
    engine.workers.run()
    engine.step(3)
    later = flood(engine, 5, tenant="one")
    engine.run_until_idle()
    assert engine.scheduler.num_preemptions == 0
    assert all(heard.output for heard in (*first, *later))


def test_who_has_waited_for_minutes_does_not_give_way() -> None:
    engine = FakeEngine(max_running=2)
    flood(engine, 4, tenant="patient")
    engine.workers.run()
    engine.step(3)
    engine.clock.now_s += 61  # one slot more than the other weighs a minute
    engine.ask(question="late", tenant="other")
    engine.workers.run()
    engine.step(3)
    assert engine.scheduler.num_preemptions == 0
    engine.run_until_idle()
    engine.check_idle()


def test_slots_are_shared_evenly_by_those_who_want_more_than_there_are() -> None:
    engine = FakeEngine(max_running=4)
    for tenant in ("one", "two"):
        flood(engine, 20, tenant=tenant)
    engine.workers.run()
    engine.step(10)
    held = sorted(sequence.tenant for sequence in engine.scheduler.running)
    assert held == ["one", "one", "two", "two"]
    engine.run_until_idle()


def test_a_tenant_leaves_a_quarter_of_the_queue_to_others() -> None:
    engine = FakeEngine(max_queue=8, max_queue_bytes=800)
    flood(engine, 6, tenant="greedy")
    with pytest.raises(Overloaded, match="6 requests of this caller wait"):
        engine.ask(question="a seventh", tenant="greedy")
    engine.ask("caption", b"x" * 500, tenant="modest")
    with pytest.raises(Overloaded, match="500 bytes of this caller's pictures wait"):
        engine.ask("caption", b"y" * 200, tenant="modest")
    engine.run_until_idle()
    engine.check_idle()
    engine.ask(question="once more", tenant="greedy")
    engine.run_until_idle()


def test_without_tenants_the_whole_queue_is_everybody_s() -> None:
    engine = FakeEngine(max_queue=8)
    flood(engine, 8)
    with pytest.raises(Overloaded, match="max_queue"):
        engine.ask(question="a ninth")
    engine.run_until_idle()


def test_a_flood_of_the_best_priority_holds_up_a_normal_request_for_a_bounded_time() -> None:
    """The engine of the tests has 10 s for a step of priority; so 100 s and what is running then."""
    engine = FakeEngine(max_running=2)
    urgent = {"priority": -10, "settings": {"max_tokens": 5}}
    flooding = [engine.ask(question="urgent", **urgent) for _ in range(8)]
    normal = engine.ask(question="normal", settings={"max_tokens": 5})
    began_s = engine.clock.now_s
    while not normal.ended.is_set():
        flooding = [
            it if not it.ended.is_set() else engine.ask(question="urgent", **urgent) for it in flooding
        ]
        engine.workers.run()
        engine.clock.now_s += 1
        engine.step()
        assert engine.clock.now_s < began_s + 150
    assert engine.clock.now_s > began_s + 90, "so the priority counts for something"
    engine.run_until_idle()


@pytest.mark.parametrize("overlaps", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_tenants_that_come_and_go_lose_no_page_slot_or_answer(seed: int, overlaps: bool) -> None:
    rng = random.Random(seed)
    engine = FakeEngine(max_running=4, overlaps=overlaps)
    taken: list[Heard] = []
    tenants = ("", "one", *("greedy",) * 8)
    for _ in range(400):
        if rng.random() < 0.5:
            image, question = rng.choice((None, b"cat", b"dog")), rng.choice(("x" * 14, "why is it so?"))
            tenant, settings = rng.choice(tenants), {"max_tokens": rng.choice((1, 9, 30))}
            taken.append(engine.ask(image=image, question=question, tenant=tenant, settings=settings))
        if taken and rng.random() < 0.05:
            engine.cancel(rng.choice(taken[-10:]))
        engine.clock.now_s += rng.random()
        engine.workers.run(rng.randrange(3))
        engine.step()
    engine.run_until_idle()
    engine.check_idle()
    assert engine.scheduler.num_preemptions > 3
    whole = [heard for heard in taken if heard.finished.result.finish_reason != "cancelled"]
    assert whole and all(heard.output == answered_alone(heard) for heard in whole[::7])
