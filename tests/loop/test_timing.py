"""Where a request's time went, on a clock that only these tests move: its parts follow on one another."""

from itertools import pairwise
from typing import Any

import pytest
from fake_preparation import fake_prepare
from fakes import FakeEngine, Heard

from kestrel_core.loop.inbox import Phase
from kestrel_core.loop.step import StepPlan
from kestrel_core.protocol.messages import Usage

VISION_S = 0.0625


def slow_engine(decode_s: float = 0.5, launch_s: float = 0.25, **options: Any) -> FakeEngine:
    """It takes its time to decode a picture, and for every step."""

    def prepare(*asked: Any) -> Any:
        engine.clock.now_s += decode_s
        return fake_prepare(*asked)

    def launch(plan: StepPlan) -> Any:
        engine.clock.now_s += launch_s
        return launch_at_once(plan)

    engine = FakeEngine(prepare_image=prepare, **options)
    engine.runtime.took_s["cat"] = VISION_S
    launch_at_once = engine.runtime.launch
    engine.runtime.launch = launch  # type: ignore[method-assign]
    return engine


def answered(engine: FakeEngine, image: bytes | None = b"cat", **options: Any) -> tuple[Heard, Usage]:
    """A question that waits for a worker for a second, and for a step for two more."""
    heard = engine.ask(image=image, question="why?", settings={"max_tokens": 3}, **options)
    engine.clock.now_s += 1
    engine.workers.run()
    engine.clock.now_s += 2
    engine.run_until_idle()
    return heard, heard.finished.result.metrics


def parts_ms(usage: Usage) -> list[float]:
    return [
        usage.queue_time_ms,
        usage.image_time_ms,
        usage.vision_time_ms,
        usage.prefill_time_ms,
        usage.decode_time_ms,
    ]


@pytest.mark.parametrize("overlaps", [False, True])
def test_the_parts_add_up_to_the_whole(overlaps: bool) -> None:
    engine = slow_engine(overlaps=overlaps)
    began_s = engine.clock()
    _, usage = answered(engine)
    # With steps that overlap, the first token comes a step later, and nothing is launched before the last.
    steps_ms, decode_ms = (500, 250) if overlaps else (250, 500)
    assert parts_ms(usage) == [3000, 500, 62.5, steps_ms - 62.5, decode_ms]
    assert usage.ttft_ms == sum(parts_ms(usage)) - usage.decode_time_ms
    assert sum(parts_ms(usage)) <= 1000 * (engine.clock() - began_s)


def test_phases_follow_on_one_another_in_the_order_of_a_request() -> None:
    engine = slow_engine()
    heard, _ = answered(engine)
    assert heard.ticket is not None
    phases = list(heard.ticket.phases(engine.clock()))
    names = ["queue", "image", "queue", "vision", "prefill", "decode"]
    assert [phase.name for phase in phases] == names
    assert phases[0].began_s == 1000.0
    assert all(one.ended_s == other.began_s for one, other in pairwise(phases))


def test_a_picture_whose_kv_is_cached_costs_the_encoder_nothing() -> None:
    engine = slow_engine()
    answered(engine)
    _, again = answered(engine)
    assert again.cached_tokens > 0 and again.vision_time_ms == 0
    assert parts_ms(again) == [3000, 500, 0, 250, 500]


def test_a_question_without_a_picture_has_no_time_for_one() -> None:
    engine = slow_engine()
    _, usage = answered(engine, image=None)
    assert (usage.image_tokens, usage.image_time_ms, usage.vision_time_ms) == (0, 0, 0)


def test_an_encoder_that_claims_more_than_there_was_gets_what_there_was() -> None:
    engine = slow_engine()
    engine.runtime.took_s["cat"] = 9.0
    _, usage = answered(engine)
    assert parts_ms(usage) == [3000, 500, 250, 0, 500]


@pytest.mark.parametrize("num_steps", [0, 1, 2])
def test_a_request_that_is_cancelled_has_spent_no_more_than_its_time(num_steps: int) -> None:
    engine = slow_engine(overlaps=True)
    heard = engine.ask("caption", b"cat", settings={"max_tokens": 9})
    engine.workers.run()
    engine.step(num_steps)
    engine.cancel(heard)
    engine.run_until_idle()
    usage, whole_ms = heard.finished.result.metrics, 1000 * (engine.clock() - 1000.0)
    assert sum(parts_ms(usage)) <= whole_ms
    assert heard.ticket is not None
    assert Phase("image", 1000.0, 1000.5) in heard.ticket.phases(engine.clock())


def test_positions_of_the_picture_and_samples_of_the_reasoning_are_counted() -> None:
    engine = FakeEngine()
    heard = [engine.ask(image=b"cat", question="why?", reasoning=thinks) for thinks in (False, True)]
    engine.run_until_idle()
    plain, thinking = (one.finished.result.metrics for one in heard)
    assert plain.image_tokens == thinking.image_tokens == 4, "BOS is none of them"
    assert plain.reasoning_tokens == 0
    assert 0 < thinking.reasoning_tokens < thinking.output_tokens
