"""Requests with adapters: found by name, loaded, and whatever ends them meanwhile."""

from typing import Any

import pytest
from fakes import FakeEngine, Heard
from poisoned import both, same

from kestrel_core.protocol.errors import (
    BadAdapter,
    DeadlinePassed,
    EngineFailed,
    KestrelError,
    ShuttingDown,
    UnknownAdapter,
)


def ask(engine: FakeEngine, adapter: str | None, image: bytes | None = None, **more: Any) -> Heard:
    settings = {"adapter": adapter} if adapter is not None else {}
    return engine.ask(image=image, question="why is it so?", settings=settings, **more)


def answer(adapter: str | None, image: bytes | None = None) -> Heard:
    """What a request says alone."""
    engine = FakeEngine(max_adapters=1)
    heard = ask(engine, adapter, image)
    engine.run_until_idle()
    engine.check_idle()
    return heard


def cached(heard: Heard) -> int:
    return heard.finished.result.metrics.cached_tokens


def test_a_server_without_adapters_says_so_at_once() -> None:
    engine = FakeEngine()
    with pytest.raises(UnknownAdapter, match='"mine" is not known: this server has no adapters'):
        ask(engine, "mine")
    engine.check_idle()


@both
@pytest.mark.parametrize("image", [None, b"cat"])
def test_adapters_share_no_prefix_but_two_names_of_one_do(overlaps: bool, image: bytes | None) -> None:
    engine = FakeEngine(overlaps=overlaps, max_adapters=2)
    engine.source.names = {"mine": "a", "far/mine": "a"}

    def run(adapter: str | None) -> Heard:
        heard = ask(engine, adapter, image)
        engine.run_until_idle()
        return heard

    heard = {name: run(name) for name in (None, "a", "b", "mine", "far/mine")}
    assert [cached(heard[name]) for name in (None, "a", "b")] == [0, 0, 0]
    assert cached(heard["mine"]) == cached(heard["far/mine"]) >= 10
    assert all(same(heard[name], heard["a"]) for name in ("mine", "far/mine"))
    assert all(same(heard[name], answer(name, image)) for name in (None, "a", "b"))
    assert len({repr(heard[name].output) for name in (None, "a", "b")}) == 3
    assert engine.loop.metrics.adapter_loads == 2
    engine.check_idle()


@both
def test_a_name_that_leads_elsewhere_now_is_another_adapter(overlaps: bool) -> None:
    engine = FakeEngine(overlaps=overlaps, max_adapters=1)
    for identity in ("old", "new"):
        engine.source.names["mine"] = identity
        heard = ask(engine, "mine")
        engine.run_until_idle()
        assert same(heard, answer(identity)) and cached(heard) == 0
    engine.check_idle()


@pytest.mark.parametrize(
    ("name", "kind", "text"),
    [
        ("unknown", UnknownAdapter, "not known"),
        ("bad", BadAdapter, "rank"),
        ("unheard of", EngineFailed, r"could not be read \(ZeroDivisionError\)"),
        ("broken", EngineFailed, r"could not be put on the device \(RuntimeError\)"),
    ],
)
def test_a_bad_adapter_fails_only_its_own_requests(name: str, kind: type[KestrelError], text: str) -> None:
    engine = FakeEngine(max_adapters=2)
    engine.runtime.adapters.failing.add("broken")
    bad, good, plain = ask(engine, name), ask(engine, "good"), ask(engine, None)
    engine.run_until_idle()
    with pytest.raises(kind, match=text):
        raise bad.error
    assert same(good, answer("good")) and same(plain, answer(None))
    assert engine.loop.metrics.adapter_load_failures == (name == "broken")
    engine.check_idle()


def test_a_loader_that_cannot_even_begin_fails_only_its_own_requests() -> None:
    engine = FakeEngine(max_adapters=2)
    begin = engine.runtime.adapter_loader
    engine.runtime.adapter_loader = lambda index: begin(index if index > 1 else 99)  # type: ignore[method-assign]
    first, second = ask(engine, "a"), ask(engine, "b")
    engine.run_until_idle()
    assert isinstance(first.error, EngineFailed) and same(second, answer("b"))
    engine.check_idle()


def test_a_name_that_is_being_fetched_is_fetched_once_for_all_that_ask() -> None:
    engine = FakeEngine(max_adapters=1)
    heard = [ask(engine, "far/a") for _ in range(3)]
    assert engine.loop.num_waiting_for_adapters == 3
    engine.run_until_idle()
    assert engine.source.asked == ["far/a"]
    assert all(same(one, answer("far/a")) for one in heard)
    late = ask(engine, "far/a")
    engine.run_until_idle()
    assert engine.source.asked == ["far/a"] * 2 and same(late, heard[0])


def test_nothing_is_fetched_for_requests_that_have_gone() -> None:
    engine = FakeEngine(max_adapters=1)
    heard = ask(engine, "far/a")
    engine.cancel(heard)
    engine.step()
    engine.run_until_idle()
    assert heard.finished.result.finish_reason == "cancelled" and engine.source.asked == []
    engine.check_idle()


def until(engine: FakeEngine, moment: str) -> None:
    """Bring the only request so far."""
    if moment == "finding":
        return
    engine.local.run()  # it is found
    engine.step()
    if moment == "loading":
        assert engine.local.waiting
    elif moment == "parked":
        assert not engine.local.waiting and engine.scheduler.num_waiting_for_adapters == 1


@both
@pytest.mark.parametrize("end", ["cancel", "deadline", "drop", "drain"])
@pytest.mark.parametrize("moment", ["finding", "loading", "parked"])
def test_a_request_can_end_whatever_its_adapter_does(overlaps: bool, moment: str, end: str) -> None:
    engine = FakeEngine(overlaps=overlaps, max_adapters=1)
    busy = None
    if moment == "parked":  # its index is in use
        busy = ask(engine, "busy")
        for _ in range(2):
            engine.local.run()
            engine.step()
        assert engine.scheduler.num_running == 1
    heard = ask(engine, "a", timeout_s=5.0)
    until(engine, moment)
    if end == "cancel":
        engine.cancel(heard)
    elif end == "deadline":
        engine.clock.now_s += 6
    else:
        engine.loop._inbox.close()
    if end == "drop":
        engine.loop._inbox.call(engine.loop._drop_all)
    engine.run_until_idle()
    if end == "drop":
        assert isinstance(heard.error, ShuttingDown)
    elif busy is not None:
        assert same(busy, answer("busy"))
    if end == "cancel":
        assert heard.finished.result.finish_reason == "cancelled"
    elif end == "deadline":
        assert isinstance(heard.error, DeadlinePassed) and "waiting" in str(heard.error)
    elif end == "drain":
        assert same(heard, answer("a"))
    engine.check_idle()


def test_the_time_until_the_adapter_is_there_is_time_in_the_queue() -> None:
    engine = FakeEngine(max_adapters=1)
    heard = ask(engine, "a")
    engine.clock.now_s += 2
    engine.local.run()
    engine.step()
    engine.clock.now_s += 3
    engine.local.run()
    engine.run_until_idle()
    assert heard.finished.result.metrics.queue_time_ms == 5000
    assert engine.loop.metrics.adapter_load_s.sum == 3
    engine.check_idle()


def test_slots_and_who_waits_for_them_are_told() -> None:
    engine = FakeEngine(max_adapters=1, max_running=1)
    heard = [ask(engine, name) for name in ("a", "b")]
    assert engine.loop.num_waiting_for_adapters == 2
    for _ in range(2):
        engine.local.run()
        engine.step()
    assert (engine.slots.num_ready, engine.loop.num_waiting_for_adapters) == (1, 1)
    engine.run_until_idle()
    assert (engine.slots.num_ready, engine.slots.num_evictions, engine.loop.metrics.adapter_loads) == (
        1,
        1,
        2,
    )
    assert [same(one, answer(name)) for one, name in zip(heard, ("a", "b"), strict=True)] == [True, True]
