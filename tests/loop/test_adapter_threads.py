"""Requests with adapters while the loop and its workers have threads of their own."""

import random
import threading
from collections import Counter
from collections.abc import Callable

import pytest
from fakes import FakeEngine, Heard
from poisoned import both

from kestrel_core.protocol.errors import DeadlinePassed, Overloaded, ShuttingDown
from kestrel_core.protocol.messages import Finished


def ask(engine: FakeEngine, adapter: str, **more: float) -> Heard:
    return engine.ask(question="why is it so?", settings={"adapter": adapter}, **more)  # type: ignore[arg-type]


def answered(heard: Heard) -> bool:
    return heard.ended.wait(60) and heard.finished.result.finish_reason == "stop"


def gate(engine: FakeEngine, name: str) -> threading.Event:
    engine.source.gates[name] = threading.Event()
    return engine.source.gates[name]


def count_steps(engine: FakeEngine) -> Callable[[], int]:
    """How many steps the loop has planned."""
    plan, number = engine.scheduler.plan, [0]

    def counted() -> object:
        number[0] += 1
        return plan()

    engine.scheduler.plan = counted  # type: ignore[method-assign, assignment]
    return lambda: number[0]


def test_slow_downloads_delay_neither_pictures_nor_adapters_that_are_here() -> None:
    engine = FakeEngine(threads=True, max_adapters=4)
    gates = [gate(engine, f"far/{at}") for at in range(3)]
    slow = [ask(engine, f"far/{at}") for at in range(3)]
    quick = [ask(engine, "here"), engine.ask("caption", b"cat")]
    assert all(map(answered, quick))
    assert not any(heard.ended.is_set() for heard in slow)
    for one in gates:
        one.set()
    assert all(map(answered, slow))
    engine.loop.close()
    engine.check_idle()


@both
def test_a_load_does_not_hold_up_running_streams(overlaps: bool) -> None:
    engine = FakeEngine(threads=True, max_adapters=1, overlaps=overlaps)
    places = engine.runtime.adapters
    places.gate.clear()
    waiting = ask(engine, "a")
    assert places.began.wait(60)
    other = engine.ask(question="what?")
    assert answered(other) and not waiting.ended.is_set()
    places.gate.set()
    assert answered(waiting)
    engine.loop.close()
    engine.check_idle()


@pytest.mark.parametrize("moment", ["finding", "loading"])
def test_the_loop_rests_while_all_it_has_waits_for_adapters(moment: str) -> None:
    engine = FakeEngine(threads=True, max_adapters=1)
    found, places = gate(engine, "a"), engine.runtime.adapters
    places.gate.clear()
    num_steps = count_steps(engine)
    heard = ask(engine, "a")
    if moment == "loading":
        found.set()
        assert places.began.wait(60)
    before, pause = num_steps(), threading.Event()
    pause.wait(0.2)  # a loop that does not rest takes thousands of steps in this time
    assert num_steps() <= before + 3
    found.set()
    places.gate.set()
    assert answered(heard)
    engine.loop.close()
    engine.check_idle()


@pytest.mark.parametrize("moment", ["finding", "loading"])
def test_a_deadline_ends_a_request_that_waits_for_its_adapter(moment: str) -> None:
    engine = FakeEngine(threads=True, max_adapters=1)
    found, places = gate(engine, "a"), engine.runtime.adapters
    places.gate.clear()
    heard = ask(engine, "a", timeout_s=5.0)
    if moment == "loading":
        found.set()
        assert places.began.wait(60)
    engine.clock.now_s += 6
    engine.loop._inbox.call(lambda: None)  # the clock of the test wakes nobody
    assert heard.ended.wait(60) and isinstance(heard.error, DeadlinePassed)
    found.set()
    places.gate.set()
    engine.loop.close()
    engine.check_idle()


@pytest.mark.parametrize("name", ["a", "far/a"])
def test_closing_answers_those_who_wait_for_their_adapters(name: str) -> None:
    before = set(threading.enumerate())
    engine = FakeEngine(threads=True, max_adapters=1)
    found = gate(engine, name)
    heard = [ask(engine, name) for _ in range(3)]
    closing = threading.Thread(target=engine.loop.close)
    closing.start()
    with pytest.raises(Overloaded, match="shutting down"):
        while True:
            heard.append(ask(engine, name))
    found.set()
    closing.join(60)
    assert not closing.is_alive() and all(map(answered, heard))
    engine.check_idle()
    for thread in set(threading.enumerate()) - before:  # those that fetch were told to stop, not waited for
        thread.join(60)
    assert set(threading.enumerate()) <= before


def test_closing_without_draining_waits_for_no_download() -> None:
    engine = FakeEngine(threads=True, max_adapters=1)
    found = gate(engine, "far/a")
    heard = [ask(engine, "far/a") for _ in range(3)]
    engine.loop.close(drain=False)
    assert all(isinstance(one.error, ShuttingDown) for one in heard) and engine.runtime.closed
    engine.check_idle()
    found.set()


def test_closing_without_draining_waits_for_the_load_that_runs() -> None:
    engine = FakeEngine(threads=True, max_adapters=1)
    places = engine.runtime.adapters
    places.gate.clear()
    heard = ask(engine, "a")
    assert places.began.wait(60)
    closing = threading.Thread(target=lambda: engine.loop.close(drain=False))
    closing.start()
    assert heard.ended.wait(60) and not engine.runtime.closed
    places.gate.set()
    closing.join(60)
    assert isinstance(heard.error, ShuttingDown) and engine.runtime.closed
    engine.check_idle()


def test_when_the_loop_breaks_those_who_wait_for_adapters_are_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = FakeEngine(threads=True, max_adapters=1)
    found = gate(engine, "a")
    heard = ask(engine, "a")

    def fail() -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(engine.scheduler, "take_loads", fail)
    found.set()
    assert heard.ended.wait(60) and "takes no requests" in str(heard.error)
    engine.loop.close()
    assert engine.runtime.closed


@both
@pytest.mark.parametrize("seed", range(3))
def test_whatever_happens_in_all_these_threads_everybody_is_answered(overlaps: bool, seed: int) -> None:
    rng = random.Random(seed)
    engine = FakeEngine(threads=True, max_adapters=2, overlaps=overlaps, num_pages=20, max_running=6)
    engine.runtime.adapters.failing.add("broken")
    names = ("a", "b", "c", "far/a", "far/d", "broken", "unknown", "bad")
    heard: list[Heard] = []
    cancelled: set[Heard] = set()
    for _ in range(400):
        if rng.random() < 0.3:
            heard.append(engine.ask(question="why is it so?", settings={"max_tokens": 9}))
        else:
            heard.append(ask(engine, rng.choice(names)))
        if rng.random() < 0.2:
            cancelled.add(heard[-1])
            engine.cancel(heard[-1])
    engine.loop.close(drain=seed != 2)
    assert all(one.ended.is_set() for one in heard) and engine.loop.healthy
    counts: Counter[str] = Counter()
    for one in heard:
        kind = type(one.end).__name__
        if isinstance(one.end, Finished):
            kind = one.finished.result.finish_reason
            name = one.request.settings.adapter
            assert kind != "cancelled" or one in cancelled
            assert kind == "cancelled" or name not in ("broken", "unknown", "bad")
        counts[kind] += 1
    assert counts.keys() <= {
        *("stop", "length", "cancelled", "UnknownAdapter", "BadAdapter", "EngineFailed", "ShuttingDown")
    }
    assert (counts["ShuttingDown"] > 0) == (seed == 2)
    assert seed == 2 or counts["stop"] > 100
    engine.check_idle()
