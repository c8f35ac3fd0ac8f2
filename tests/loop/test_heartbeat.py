"""A loop whose step never ends is found; one that is busy, idle, or slept with the whole process is not."""

import time

import pytest
from fakes import Clock
from poisoned import both, make_engine

from kestrel_core.loop.heartbeat import LOOK_S, Heartbeat

LIMIT_S = 30.0


def stuck_after_s(heartbeat: Heartbeat, clock: Clock, within_s: float) -> float | None:
    """Looked at ten times a second."""
    began_s = clock.now_s
    while clock.now_s - began_s < within_s:
        if heartbeat.is_stuck():
            return clock.now_s - began_s
        clock.now_s += 0.1
    return None


@both
def test_a_step_that_never_ends_is_found_after_the_limit(overlaps: bool) -> None:
    clock = Clock()
    engine = make_engine(threads=True, overlaps=overlaps)
    heartbeat = engine.loop.heartbeat = Heartbeat(LIMIT_S, clock)
    engine.runtime.hold(after=2)
    heard = engine.ask(question="what?")
    assert engine.runtime.held.wait(60)
    assert stuck_after_s(heartbeat, clock, 1000) == pytest.approx(LIMIT_S, abs=0.5)
    engine.runtime.release()
    assert heard.ended.wait(60)
    engine.loop.close()
    assert stuck_after_s(heartbeat, clock, 1000) is None


def test_a_loop_that_waits_for_requests_is_not_stuck() -> None:
    clock = Clock()
    engine = make_engine(threads=True)
    heartbeat = engine.loop.heartbeat = Heartbeat(LIMIT_S, clock)
    assert engine.ask(question="what?").ended.wait(60)
    while heartbeat._is_at_work:  # it ends the step in which it told the answer
        time.sleep(0.001)
    assert stuck_after_s(heartbeat, clock, 1000) is None
    engine.loop.close()


def test_a_busy_loop_is_not_stuck_however_long_it_has_no_rest() -> None:
    clock = Clock()
    heartbeat = Heartbeat(LIMIT_S, clock)
    for _ in range(100):
        heartbeat.begin()
        assert stuck_after_s(heartbeat, clock, LIMIT_S - 1) is None


def test_time_in_which_the_whole_process_slept_does_not_count() -> None:
    clock = Clock()
    heartbeat = Heartbeat(LIMIT_S, clock)
    heartbeat.begin()
    assert not heartbeat.is_stuck()
    clock.now_s += 3600
    found_s = stuck_after_s(heartbeat, clock, 1000)
    assert found_s == pytest.approx(LIMIT_S - LOOK_S, abs=0.5)
