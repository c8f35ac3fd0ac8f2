"""A request's way through the loop: what it is answered, and in which order."""

from typing import Any

import pytest
from fake_runtime import LANGUAGE
from fakes import Clock
from poisoned import alone, both, make_engine, same

from kestrel_core.loop.late_captures import QUIET_S, LateCaptures
from kestrel_core.loop.step import StepPlan
from kestrel_core.protocol.messages import Chunk, Finished, Request


@both
def test_every_skill_is_answered_in_one_batch_as_alone(overlaps: bool) -> None:
    engine = make_engine(overlaps=overlaps, max_running=8)
    heard = [
        engine.ask(question="hello", stream=True),
        engine.ask(question="what?", image=b"cat", stream=True, settings={"temperature": 1, "seed": 5}),
        engine.ask(question="why?", image=b"cat", reasoning=True),
        engine.ask("caption", b"dog", length="short", stream=True),
        engine.ask("detect", b"cat", object="tail"),
        engine.ask("point", b"dog", object="tail", spatial_refs=[[0.5, 0.5], [0, 0, 1, 1]]),
        engine.ask(tokens=[0, 1, 2], skill="tokens", settings={"stop": ["b"], "logprobs": 2}),
    ]
    engine.run_until_idle()
    keys = ["answer", "answer", "answer", "caption", "objects", "points", "text"]
    for key, one in zip(keys, heard, strict=True):
        assert one.output[key]
        assert same(one, alone(one.request))
    engine.check_idle()


def test_chunks_add_up_to_the_answer_and_count_its_tokens() -> None:
    engine = make_engine()
    heard = engine.ask(question="go on", stream=True, settings={"max_tokens": 30})
    engine.run_until_idle()
    chunks = [event for event in heard.events if isinstance(event, Chunk)]
    assert len(chunks) > 2
    assert heard.streamed == heard.output["answer"]
    counts = [chunk.token_index for chunk in chunks]
    assert counts == sorted(set(counts))
    assert heard.finished.rest.token_index == heard.finished.result.metrics.output_tokens


def test_who_does_not_stream_hears_the_end_alone() -> None:
    engine = make_engine()
    heard = engine.ask(question="go on")
    engine.run_until_idle()
    assert len(heard.events) == 1
    assert heard.output["answer"]


def test_an_answered_request_lets_go_of_its_picture_though_its_deadline_is_far() -> None:
    engine = make_engine()
    heard = engine.ask(question="what?", image=b"a picture", timeout_s=3600.0)
    engine.run_until_idle()
    assert heard.ticket is not None and heard.finished
    assert heard.ticket.request.image is None and heard.ticket.sequence is None


def test_a_stop_string_across_tokens_ends_the_answer_and_is_no_part_of_it() -> None:
    engine = make_engine()
    whole = engine.ask(question="go on", settings={"max_tokens": 30})
    engine.run_until_idle()
    text = whole.output["answer"]
    stop = text[6:9]
    assert len(stop) == 3 and stop not in text[:8]
    heard = engine.ask(question="go on", stream=True, settings={"max_tokens": 30, "stop": ["#", stop]})
    engine.run_until_idle()
    assert heard.output["answer"] == heard.streamed == text[:6]
    assert heard.finished.result.finish_reason == "stop"


def test_requests_without_a_seed_are_drawn_differently_and_the_region_skills_not_at_all() -> None:
    engine = make_engine()
    for _ in range(2):
        engine.ask(question="what?", settings={"temperature": None})
    engine.ask("point", b"cat", object="tail", settings={"temperature": 1.0, "seed": 5})
    engine.workers.run()
    engine.step()
    first, second, point = [span.sequence.sampling for span in engine.runtime.plans[0].spans if span.readout]
    dialog = LANGUAGE.config.dialog
    assert first.temperature == second.temperature == dialog.temperature > 0
    assert first.top_p == dialog.top_p
    assert first.seed != second.seed
    assert point.temperature == 0
    engine.run_until_idle()


def test_the_times_of_an_answer_add_up() -> None:
    engine = make_engine(max_running=1)
    engine.ask(question="first", settings={"max_tokens": 1})
    heard = engine.ask("caption", b"cat", settings={"max_tokens": 3, "stop": ["ab"]})
    engine.clock.now_s += 1
    engine.workers.run()
    engine.step()  # the first one has the slot
    engine.clock.now_s += 2
    launch = engine.runtime.launch

    def slowly(plan: StepPlan) -> Any:
        engine.clock.now_s += 0.25
        return launch(plan)

    engine.runtime.launch = slowly  # type: ignore[method-assign]
    engine.run_until_idle()
    usage = heard.finished.result.metrics
    assert (usage.input_tokens, usage.output_tokens, usage.cached_tokens) == (10, 3, 0)
    assert (usage.queue_time_ms, usage.prefill_time_ms) == (3000, 250)
    assert (usage.decode_time_ms, usage.ttft_ms) == (500, 3250)


def test_what_happened_is_counted() -> None:
    engine = make_engine()
    for _ in range(3):
        engine.ask("caption", b"cat", settings={"max_tokens": 4})
        engine.run_until_idle()
    engine.ask("caption", b"damaged")
    engine.cancel(engine.ask("caption", b"cat"))
    engine.run_until_idle()
    metrics = engine.loop.metrics
    answered = sum(n for (_, outcome), n in metrics.requests.items() if outcome in ("stop", "length"))
    assert answered == 3
    assert metrics.requests["caption", "image_decode_failed"] == metrics.requests["caption", "cancelled"] == 1
    assert (metrics.prefix_hits, metrics.prefix_misses, metrics.cached_tokens) == (2, 1, 10)
    assert metrics.prompt_tokens == 30
    assert metrics.ttft_s.count == metrics.queue_s.count == 3
    assert metrics.ttft_s.count + metrics.inter_token_s.count == metrics.output_tokens  # one at a time
    assert metrics.steps == len(engine.runtime.plans)
    assert metrics.request_s["caption"].count == 5


def test_the_time_between_tokens_is_observed_once_a_step_and_it_is_the_longest() -> None:
    engine = make_engine(max_running=3)
    for question in ("one", "two", "three"):
        engine.ask(question=question, settings={"max_tokens": 4, "stop": ["#"]})
    engine.step()
    slow = next(iter(engine.loop._tickets.values()))
    slow.last_s -= 2.0
    for _ in range(2):
        engine.clock.now_s += 0.5
        engine.step()
    assert list(engine.loop.metrics.inter_token_s.take_unexported()) == [2.5, 0.5]
    engine.run_until_idle()


def test_every_way_to_end_has_a_label_of_its_own() -> None:
    engine = make_engine(max_running=1)
    engine.ask(question="first", settings={"max_tokens": 9})
    engine.cancel(engine.ask(question="gone"))
    engine.ask(question="late", timeout_s=5)
    engine.step()
    engine.clock.now_s += 6
    engine.step()
    engine.ask(question="dropped")
    engine.loop.close(drain=False)
    labels = {outcome for _, outcome in engine.loop.metrics.requests}
    assert labels == {"stop", "cancelled", "deadline_passed", "shutting_down"}


def test_priority_goes_first_and_waiting_outweighs_it() -> None:
    engine = make_engine(max_running=1)
    order: list[str] = []

    def ask(name: str, priority: int) -> None:
        request = Request("query", {"question": name}, priority=priority)
        engine.loop.submit(request, lambda event: order.append(name) if isinstance(event, Finished) else None)

    ask("running", 0)
    engine.step()
    ask("old and unimportant", 1)
    engine.clock.now_s += 9.9  # a step of priority is worth 10 seconds
    ask("important", 0)
    engine.clock.now_s += 0.2
    ask("important too", 0)
    ask("urgent", -1)
    engine.run_until_idle()
    assert order == ["running", "urgent", "important", "old and unimportant", "important too"]


@both
def test_reasoning_is_streamed_before_the_answer_and_adds_up(overlaps: bool) -> None:
    engine = make_engine(overlaps=overlaps)
    heard = engine.ask(question="go on", image=b"cat", reasoning=True, stream=True)
    engine.run_until_idle()
    kinds = [event.kind for event in heard.events if isinstance(event, Chunk)]
    assert kinds == sorted(kinds), "reasoning comes before text"
    assert heard.reasoned == heard.output["reasoning"]["text"] != ""
    assert heard.streamed == heard.output["answer"]


@pytest.mark.parametrize("num_steps", range(2, 12))
def test_a_thought_that_is_cancelled_was_streamed_to_its_last_letter(num_steps: int) -> None:
    engine = make_engine()
    heard = engine.ask(question="go on", image=b"cat", reasoning=True, stream=True)
    engine.workers.run()
    engine.step(num_steps)
    engine.cancel(heard)
    engine.run_until_idle()
    assert heard.reasoned == heard.output["reasoning"]["text"]
    assert heard.streamed == heard.output["answer"]


@pytest.mark.parametrize("max_context", range(14, 26))
def test_a_thought_that_meets_the_end_of_the_context_was_streamed_whole(max_context: int) -> None:
    engine = make_engine(max_context=max_context)
    heard = engine.ask(question="go on", image=b"cat", reasoning=True, stream=True)
    engine.run_until_idle()
    if isinstance(heard.end, Finished):
        assert heard.reasoned == heard.output["reasoning"]["text"]
    else:
        assert max_context < 16


def test_quiet_moments_are_used_for_what_the_start_left_until_somebody_asks() -> None:
    engine = make_engine()
    engine.runtime.put_off = ["a", "b", "c", "d"]
    engine.loop.step(wait=True)
    assert engine.runtime.captures == [], "somebody may ask at once"
    engine.clock.now_s += QUIET_S
    engine.loop.step(wait=True)
    engine.loop.step(wait=True)
    assert engine.runtime.captures == [("a", True), ("b", True)]
    heard = engine.ask(question="go on")
    engine.clock.now_s += QUIET_S
    engine.loop.step(wait=True)
    assert engine.runtime.captures[2:] == [], "who asks is served first"
    engine.run_until_idle()
    assert heard.output["answer"]
    assert engine.runtime.captures[2:] == [("c", False), ("d", False)], "the runtime decides what is worth it"


def test_while_a_request_is_prepared_nothing_is_captured() -> None:
    clock, runtime = Clock(), make_engine().runtime
    runtime.put_off = ["a", "b"]
    late = LateCaptures(runtime, clock)
    clock.now_s += 2 * QUIET_S
    assert late.while_idle(1, 7.0) == 7.0 and late.while_idle(0, 7.0) == QUIET_S
    clock.now_s += QUIET_S / 4
    assert late.while_idle(0, None) == pytest.approx(0.75 * QUIET_S) and late.while_idle(0, 0.01) == 0.01
    clock.now_s += QUIET_S
    assert [late.while_idle(0, None) for _ in range(3)] == [0.0, 0.0, None]
    assert runtime.captures == [("a", True), ("b", True)]
    runtime.put_off = ["never"]
    late.between_steps()
    assert late.while_idle(0, 3.0) == 3.0 and runtime.put_off == ["never"], "once nothing was left"
