"""Preparing requests in worker threads: what is done where, in which order, and how much of it may wait."""

import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from fake_preparation import FakeWorkers, fake_prepare
from fakes import FakeEngine, Heard
from poisoned import alone, make_engine, same

from kestrel_core.loop.inbox import Ticket
from kestrel_core.loop.step import PreparedImage
from kestrel_core.protocol.errors import KestrelError, ShuttingDown
from kestrel_core.protocol.messages import Finished, Request
from kestrel_core.skills.registry import builtin_skills
from kestrel_core.skills.spec import Language
from kestrel_core.skills.text import QuerySkill


class Watched:
    """Prepares pictures as `fake_prepare` does, and keeps the names of those that were decoded."""

    def __init__(self) -> None:
        self.decoded: list[str] = []

    def __call__(
        self, source: object, may_decode: Callable[[str, int], bool], salt: str
    ) -> PreparedImage | None:
        image = fake_prepare(source, may_decode, salt)
        if image is not None:
            self.decoded.append(image.key)
        return image


def watched_engine(**options: Any) -> tuple[FakeEngine, Watched]:
    watched = Watched()
    return FakeEngine(prepare_image=watched, **options), watched


def test_prompts_are_made_in_the_workers_and_not_by_who_submits() -> None:
    made_in: list[str] = []

    class Noted(QuerySkill):
        def prompt(self, request: Request, language: Language) -> Any:
            made_in.append(threading.current_thread().name)
            return super().prompt(request, language)

    engine = FakeEngine(threads=True, skills=builtin_skills().with_skill(Noted()))
    heard = engine.ask(question="what?")
    assert heard.ended.wait(60) and heard.output["answer"]
    engine.loop.close()
    assert len(made_in) == 1 and made_in[0].startswith("ThreadPoolExecutor")


def test_a_prompt_that_cannot_be_served_costs_no_decoding() -> None:
    engine, watched = watched_engine()
    heard = engine.ask(question="x" * 80, image=b"cat")
    engine.run_until_idle()
    assert isinstance(heard.end, KestrelError) and watched.decoded == []
    engine.check_idle()


# How much may wait


def test_no_picture_is_decoded_while_more_than_the_limit_waits() -> None:
    engine, watched = watched_engine(max_running=1, max_prepared_bytes=250)
    first = engine.ask("caption", b"in", settings={"max_tokens": 30, "stop": ["#"]})
    engine.workers.run()
    engine.step()
    heard = [engine.ask("caption", name) for name in (b"a", b"bb", b"c", b"d")]
    engine.workers.run()
    assert watched.decoded == ["in", "a", "bb"] and engine.loop.prepared_bytes == 300
    assert not engine.workers.waiting, "who has to wait is not tried again and again"
    engine.run_until_idle()
    assert all(same(one, alone(one.request)) for one in (first, *heard))
    engine.check_idle()


def test_whoever_begins_or_ends_makes_room_for_the_most_urgent() -> None:
    engine, watched = watched_engine(max_running=1, max_prepared_bytes=0)
    engine.ask("caption", b"1", settings={"max_tokens": 30})
    engine.workers.run()
    engine.step()
    held = engine.ask("caption", b"2")
    engine.workers.run()
    engine.ask("caption", b"3", priority=2)
    engine.ask("caption", b"4", priority=1)
    engine.ask("caption", b"5", priority=-1)
    engine.workers.run()
    assert watched.decoded == ["1", "2"]
    engine.cancel(held)
    engine.loop._admit_arrivals(wait=False)
    engine.workers.run(1)
    assert watched.decoded == ["1", "2", "5"]
    engine.run_until_idle()
    assert watched.decoded == ["1", "2", "5", "4", "3"]
    engine.check_idle()


def test_a_picture_larger_than_the_limit_is_decoded_when_nothing_else_waits() -> None:
    engine, watched = watched_engine(max_prepared_bytes=1)
    heard = [engine.ask("caption", b"large"), engine.ask("caption", b"larger")]
    engine.run_until_idle()
    assert all(isinstance(one.end, Finished) for one in heard) and watched.decoded == ["large", "larger"]
    engine.check_idle()


def test_requests_that_share_a_picture_count_it_once() -> None:
    shared = fake_prepare(b"cat", lambda key, cost: True)
    engine = FakeEngine(max_running=1, prepare_image=lambda source, may_decode, salt: shared)
    for _ in range(3):
        engine.ask("caption", b"cat")
    engine.workers.run()
    assert engine.loop.prepared_bytes == 300
    engine.run_until_idle()
    engine.check_idle()


def test_a_picture_whose_kv_is_cached_has_twice_the_room() -> None:
    engine, watched = watched_engine(max_running=1, max_prepared_bytes=250)
    engine.ask("caption", b"old", settings={"max_tokens": 1})
    engine.run_until_idle()
    engine.ask("caption", b"in", settings={"max_tokens": 30, "stop": ["#"]})
    engine.workers.run()
    engine.step()
    for name in (b"new", b"fresh", b"old", b"old"):
        engine.ask("caption", name)
    engine.workers.run()
    assert watched.decoded == ["old", "in", "new", "old"] and engine.loop.prepared_bytes == 600
    engine.run_until_idle()
    engine.check_idle()


def test_questions_without_a_picture_pass_those_that_wait_for_room() -> None:
    engine, _ = watched_engine(max_running=2, max_prepared_bytes=0)
    engine.ask("caption", b"a", settings={"max_tokens": 40})
    engine.ask("caption", b"b", priority=5)
    engine.ask("caption", b"c", priority=5)
    engine.workers.run()
    heard = engine.ask(question="quick", settings={"max_tokens": 1})
    engine.step(2)
    assert heard.ended.is_set()
    engine.run_until_idle()
    engine.check_idle()


def test_who_waits_for_room_can_leave() -> None:
    engine, watched = watched_engine(max_running=1, max_prepared_bytes=0)
    engine.ask("caption", b"a", settings={"max_tokens": 40, "stop": ["#"]})
    engine.workers.run()
    engine.step()
    engine.ask("caption", b"b")
    engine.workers.run()
    gone, late = engine.ask("caption", b"c"), engine.ask("caption", b"d", timeout_s=3)
    engine.workers.run()
    engine.cancel(gone)
    engine.clock.now_s += 4
    engine.step()
    assert gone.finished.result.finish_reason == "cancelled" and isinstance(late.end, KestrelError)
    assert not engine.loop._preparation._aside
    engine.run_until_idle()
    assert watched.decoded == ["a", "b"]
    engine.check_idle()


@pytest.mark.parametrize("seed", range(6))
def test_a_tiny_limit_hangs_nobody_whatever_happens(seed: int) -> None:
    """Real worker threads, a real loop; requests come, go and pass their deadlines, then the loop closes."""
    rng = random.Random(seed)
    engine = make_engine(threads=True, max_running=2, max_prepared_bytes=(0, 150, 400)[seed % 3])
    heard: list[Heard] = []
    for _ in range(150):
        image = rng.choice((None, b"a", b"bb", b"ccc", b"damaged", b"unheard of", b"late"))
        settings = {"max_tokens": rng.choice((1, 5, 20))}
        timeout_s = rng.choice((None, None, 1.0))
        priority = rng.randint(-1, 1)
        heard.append(
            engine.ask(
                question="what?", image=image, settings=settings, timeout_s=timeout_s, priority=priority
            )
        )
        if rng.random() < 0.2:
            engine.cancel(rng.choice(heard))
        engine.clock.now_s += rng.random() / 5
    closing = threading.Thread(target=engine.loop.close, args=(seed < 3,), daemon=True)
    closing.start()
    closing.join(60)
    assert not closing.is_alive()
    assert all(one.ended.is_set() and one.end for one in heard)
    engine.check_idle()


# Closing


class ClosingWorkers(ThreadPoolExecutor):
    """The loop is closed just before the first request is handed over."""

    close: Callable[[], None]

    def submit(self, *arguments: Any) -> Any:  # type: ignore[override]
        self.close()
        return super().submit(*arguments)


def test_a_request_that_meets_the_closing_is_told_once_and_raises_nothing() -> None:
    engine = FakeEngine(threads=True)
    workers = engine.loop._preparation._workers = ClosingWorkers(1)
    workers.close = lambda: engine.loop.close(drain=False)
    heard = Heard(Request("query", {"question": "what?"}))
    heard.ticket = engine.loop.submit(heard.request, heard)
    assert [type(event) for event in heard.events] == [ShuttingDown]
    assert engine.runtime.closed
    engine.check_idle()


def test_an_engine_that_was_never_started_closes_its_runtime_once_and_tells_everybody() -> None:
    engine = FakeEngine()
    closed: list[bool] = []
    engine.runtime.close = lambda: closed.append(True)  # type: ignore[method-assign]
    begun, waiting = engine.ask(question="what?"), engine.ask("caption", b"cat")
    engine.step()
    for _ in range(2):
        engine.loop.close()
    assert closed == [True]
    assert [type(one.error) for one in (begun, waiting)] == [ShuttingDown, ShuttingDown]
    assert engine.workers.is_shut_down
    engine.check_idle()


def test_a_sink_may_close_the_loop_and_the_rest_is_still_answered() -> None:
    engine = FakeEngine(threads=True, max_running=1, max_prepared_bytes=0)
    engine.runtime.hold()
    heard = [engine.ask("caption", name) for name in (b"a", b"b", b"c")]
    request = Request("query", {"question": "last words"}, priority=-5)
    closed = threading.Event()

    def close(event: Any) -> None:
        engine.loop.close()
        closed.set()

    engine.loop.submit(request, close)
    engine.runtime.release()
    assert closed.wait(60)
    assert engine.loop._thread is not None
    engine.loop._thread.join(60)
    assert all(isinstance(one.end, Finished) for one in heard)
    assert engine.runtime.closed
    engine.check_idle()


def test_fake_workers_refuse_work_after_their_end_as_real_ones_do() -> None:
    for workers in (FakeWorkers(), ThreadPoolExecutor(1)):
        workers.shutdown()
        with pytest.raises(RuntimeError, match="after shutdown"):
            workers.submit(lambda ticket: None, Ticket.__new__(Ticket))
