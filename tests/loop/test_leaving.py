"""Requests that end before their answer: refused, cancelled, or too late."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from fakes import FakeEngine, Heard
from poisoned import alone, both, make_engine, same

from kestrel_core.protocol.errors import (
    DeadlinePassed,
    EngineFailed,
    InvalidRequest,
    KestrelError,
    Overloaded,
    PromptTooLong,
    UnknownAdapter,
    UnknownSkill,
    UnsupportedSkill,
)
from kestrel_core.protocol.messages import Finished


@pytest.mark.parametrize(
    ("asked", "error", "message"),
    [
        ({"skill": "sing"}, UnknownSkill, 'no skill "sing"'),
        ({}, InvalidRequest, "QUESTION is required for query"),
        ({"skill": "detect", "object": "tail"}, InvalidRequest, "IMAGE is required for detect"),
        ({"question": "?", "settings": {"adapter": "mine"}}, UnknownAdapter, '"mine" is not known'),
    ],
)
def test_what_is_seen_to_be_wrong_at_once_is_raised(
    asked: dict[str, Any], error: type[KestrelError], message: str
) -> None:
    engine = make_engine()
    with pytest.raises(error, match=message):
        engine.ask(**asked)
    engine.check_idle()


@pytest.mark.parametrize(
    ("asked", "error", "message"),
    [
        ({"skill": "segment", "object": "tail", "image": b"cat"}, UnsupportedSkill, "use detect"),
        (
            {"question": "x" * 51, "image": b"cat"},
            PromptTooLong,
            r"needs 60 positions \(5 image \+ 55 text\) and max_context is 60; shorten",
        ),
        ({"skill": "poisoned", "where": "prompt"}, EngineFailed, "make a prompt .ZeroDivisionError."),
        ({"skill": "poisoned", "where": "no prompt"}, EngineFailed, "made an empty prompt"),
        ({"skill": "poisoned", "where": "no idea"}, EngineFailed, "not be prepared .AttributeError."),
    ],
)
def test_what_turns_out_while_it_is_prepared_is_told(
    asked: dict[str, Any], error: type[KestrelError], message: str
) -> None:
    engine = make_engine()
    heard = engine.ask(**asked)
    engine.run_until_idle()
    assert type(heard.error) is error and re.search(message, str(heard.error))
    assert engine.runtime.plans == []
    engine.check_idle()


def test_a_prompt_that_just_fits_is_answered() -> None:
    engine = make_engine()
    heard = engine.ask(question="x" * 50, image=b"cat")
    engine.run_until_idle()
    assert heard.finished.result.metrics.input_tokens == 59


def test_no_more_may_wait_than_max_queue_says() -> None:
    engine = make_engine(max_running=1, max_queue=2)
    heard = [engine.ask(question="what?") for _ in range(2)]
    with pytest.raises(Overloaded, match=r"2 requests wait.*max_queue"):
        engine.ask(question="what?")
    engine.step()
    heard.append(engine.ask(question="what?"))  # one has begun
    with pytest.raises(Overloaded):
        engine.ask(question="what?")
    engine.run_until_idle()
    assert all(same(one, alone(one.request)) for one in heard)
    engine.check_idle()


def test_no_more_bytes_may_wait_than_max_queue_bytes_says() -> None:
    engine = make_engine(max_queue_bytes=8)
    engine.ask("caption", b"five!")
    with pytest.raises(Overloaded, match=r"5 bytes of pictures wait, and 8 may .max_queue_bytes."):
        engine.ask("caption", b"four")
    engine.ask("caption", b"two")
    assert engine.loop.queued_bytes == 8
    engine.run_until_idle()
    heard = engine.ask("caption", b"more than eight")  # alone it may be as large as pictures may be
    engine.run_until_idle()
    assert heard.output["caption"]
    engine.check_idle()


def cancel(engine: FakeEngine, heard: Heard) -> None:
    engine.cancel(heard)


def let_expire(engine: FakeEngine, heard: Heard) -> None:
    engine.clock.now_s += 30


def being_prepared(engine: FakeEngine) -> None:
    pass


def in_the_queue(engine: FakeEngine) -> None:
    engine.workers.run()
    for _ in range(4):
        engine.ask(question="in the way", priority=-9, settings={"max_tokens": 20})
    engine.step()


def in_its_prompt(engine: FakeEngine) -> None:
    engine.workers.run()
    engine.step(2)


def in_its_answer(engine: FakeEngine) -> None:
    engine.workers.run()
    engine.step(9)


@both
@pytest.mark.parametrize("leave", [cancel, let_expire])
@pytest.mark.parametrize("phase", [being_prepared, in_the_queue, in_its_prompt, in_its_answer])
def test_who_leaves_frees_everything_within_one_step(
    overlaps: bool, leave: Callable[..., None], phase: Callable[..., None]
) -> None:
    engine = make_engine(overlaps=overlaps, step_tokens=10)
    settings = {"max_tokens": 30}
    heard = engine.ask(image=b"cat", question="x" * 33, timeout_s=30, stream=True, settings=settings)
    phase(engine)
    sequence = heard.ticket.sequence if heard.ticket else None
    running = phase in (in_its_prompt, in_its_answer)
    assert running == (sequence is not None and sequence.slot > 0)
    assert (phase is in_its_answer) == (sequence is not None and sequence.num_taken > 2)
    leave(engine, heard)
    engine.loop._admit_arrivals(wait=False)
    engine.scheduler.check()
    assert sequence is None or (sequence.ended and not sequence.slot and not sequence.running.pages)
    assert sequence not in engine.scheduler.running
    if leave is let_expire:
        state = "being answered" if running else "waiting"
        assert type(heard.error) is DeadlinePassed
        assert str(heard.error) == f"the request's deadline passed while it was {state}"
    else:
        assert heard.finished.result.finish_reason == "cancelled"
        assert heard.streamed == heard.output.get("answer", "")
        assert alone(heard.request).output["answer"].startswith(heard.streamed)
        assert bool(heard.streamed) == (phase is in_its_answer)
    engine.run_until_idle()
    assert any(span.image for plan in engine.runtime.plans for span in plan.spans) == running
    engine.check_idle()


def test_the_deadline_that_everybody_has_is_the_default() -> None:
    engine = make_engine(default_timeout_s=5, max_running=1)
    first = engine.ask(question="first", timeout_s=60, settings={"max_tokens": 20})
    second = engine.ask(question="second")
    engine.step()
    engine.clock.now_s += 6
    engine.run_until_idle()
    assert isinstance(first.end, Finished)
    assert type(second.error) is DeadlinePassed
    assert len({span.slot for plan in engine.runtime.plans for span in plan.spans}) == 1


def test_cancelling_twice_or_after_the_end_changes_nothing() -> None:
    engine = make_engine()
    finished, cancelled = engine.ask(question="one"), engine.ask(question="two", settings={"max_tokens": 30})
    engine.step()
    engine.cancel(cancelled)
    engine.cancel(cancelled)
    engine.run_until_idle()
    engine.cancel(finished)
    engine.run_until_idle()
    assert finished.finished.result.finish_reason == "stop"
    assert cancelled.finished.result.finish_reason == "cancelled"
    engine.check_idle()


def test_deadlines_of_the_answered_are_forgotten() -> None:
    engine = make_engine()
    for _ in range(300):
        engine.ask(question="quick", timeout_s=1000, settings={"max_tokens": 1})
        engine.run_until_idle()
    assert len(engine.loop._deadlines) <= 66
