"""The loop in its own thread: how it closes, and what everybody is told when it breaks."""

import threading
from collections.abc import Callable

import pytest
from fakes import FakeEngine, Heard
from poisoned import alone, both, make_engine, same

from kestrel_core.protocol.errors import (
    EngineFailed,
    Overloaded,
)


def in_thread(work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=work)
    thread.start()
    return thread


def ask_until_refused(engine: FakeEngine) -> list[Heard]:
    heard = []
    with pytest.raises(Overloaded, match="shutting down"):
        while True:
            heard.append(engine.ask("caption", b"cat"))
    return heard


@both
def test_closing_answers_all_that_was_taken_in(overlaps: bool) -> None:
    before = set(threading.enumerate())
    engine = make_engine(threads=True, overlaps=overlaps)
    engine.runtime.hold()
    heard = [engine.ask(question="what?"), engine.ask("caption", b"dog")]
    closing = in_thread(engine.loop.close)
    heard += ask_until_refused(engine)
    engine.runtime.release()
    closing.join()
    engine.loop.close()
    assert all(same(one, alone(one.request)) for one in heard[:3])
    assert all(one.output["caption"] == heard[2].output["caption"] for one in heard[2:])
    assert engine.runtime.closed and set(threading.enumerate()) <= before
    engine.check_idle()


@both
def test_closing_without_draining_ends_all_that_was_taken_in(overlaps: bool) -> None:
    before = set(threading.enumerate())
    engine = make_engine(threads=True, overlaps=overlaps)
    engine.runtime.hold()
    heard = [engine.ask(question="what?"), engine.ask("caption", b"dog")]
    closing = in_thread(lambda: engine.loop.close(drain=False))
    heard += ask_until_refused(engine)
    engine.runtime.release()
    closing.join()
    assert isinstance(heard[-1].error, Overloaded)
    assert all(one.ended.is_set() and len(one.events) == 1 for one in heard)
    assert set(threading.enumerate()) <= before
    engine.check_idle()


def test_an_idle_engine_closes() -> None:
    engine = make_engine(threads=True)
    engine.loop.close()
    with pytest.raises(Overloaded, match="shutting down"):
        engine.ask(question="what?")
    engine.check_idle()


@pytest.mark.parametrize("timeout_s", [1e12, float("inf")])
def test_a_deadline_beyond_all_time_breaks_nothing(timeout_s: float) -> None:
    engine = make_engine(threads=True)
    for _ in range(2):
        heard = engine.ask(question="what?", timeout_s=timeout_s)
        assert heard.ended.wait(60)
        assert heard.output["answer"]
    engine.loop.close()
    assert engine.loop.healthy


@pytest.mark.parametrize("method", ["plan", "commit", "end"])
def test_when_the_loop_breaks_everybody_is_told(
    method: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    engine = make_engine(threads=True, max_running=2)
    engine.runtime.hold()
    heard = [engine.ask(question="what?", settings={"max_tokens": 9})]
    assert engine.runtime.held.wait(60), "the first one runs, so to cancel it is to end a sequence"
    heard += [engine.ask(question="what?", settings={"max_tokens": 9}) for _ in range(3)]
    heard.append(engine.ask("caption", b"cat"))

    def fail(*arguments: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(engine.scheduler, method, fail)
    if method == "end":
        engine.cancel(heard[0])
    engine.runtime.release()
    for one in heard:
        assert one.ended.wait(60)
        assert type(one.error) is EngineFailed and "takes no requests" in str(one.error)
    assert not engine.loop.healthy
    with pytest.raises(Overloaded, match="has failed"):
        engine.ask(question="what?")
    engine.loop.close()
    assert (engine.loop.num_open, engine.loop.num_queued, engine.runtime.closed) == (0, 0, True)
