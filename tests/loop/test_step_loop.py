"""A request's way through the loop, and what one request can do to another: nothing."""

import logging
import random
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from fakes import LANGUAGE, LETTERS, FakeEngine, Heard

from kestrel_core.loop.sequence import Outcome, Prompt, Reply
from kestrel_core.loop.step import Readout, Sample, StepPlan
from kestrel_core.protocol.errors import (
    BadImage,
    Cancelled,
    EngineFailed,
    InvalidRequest,
    KestrelError,
    Overloaded,
    PromptTooLong,
    UnknownAdapter,
    UnsupportedSkill,
)
from kestrel_core.protocol.messages import Chunk, Event, Finished, Request, parse_settings
from kestrel_core.skills.registry import builtin_skills
from kestrel_core.skills.spec import Language
from kestrel_core.skills.text import TextReply

both = pytest.mark.parametrize("overlaps", [False, True])

UNSOUND, UNKNOWN = 290, 291  # tokens of which the runtime makes no numbers, and nothing at all


class PoisonedReply(TextReply):
    def __init__(self, request: Request, language: Language, where: str) -> None:
        super().__init__(request, language, "answer")
        self._where = where
        self._num_taken = 0

    def readout(self, ahead: int = 0) -> Readout:
        if self._where == "readout" and self._num_taken + ahead >= 2:
            raise ZeroDivisionError
        return super().readout(ahead)

    def take(self, sample: Sample) -> Outcome:
        self._num_taken += 1
        if self._where == "take" and self._num_taken == 2:
            raise ZeroDivisionError
        return super().take(sample._replace(token=LETTERS[0]))  # never ends by itself

    def cut(self) -> Outcome:
        if self._where == "cut":
            raise ZeroDivisionError
        return super().cut()

    def output(self) -> dict[str, Any]:
        if self._where == "output":
            raise ZeroDivisionError
        return super().output()


class PoisonedSkill:
    """A third party's skill that raises where it is told to."""

    name = "poisoned"
    greedy = True

    def prompt(self, request: Request, language: Language) -> Prompt:
        if request.arguments["where"] == "prompt":
            raise ZeroDivisionError
        if request.arguments["where"] == "no prompt":
            return Prompt((), request.image is not None)
        return Prompt((1, 2, 3), request.image is not None)

    def reply(self, request: Request, language: Language) -> Reply:
        if request.arguments["where"] == "reply":
            raise ZeroDivisionError
        return PoisonedReply(request, language, request.arguments["where"])


def make_engine(**options: Any) -> FakeEngine:
    engine = FakeEngine(skills=builtin_skills().with_skill(PoisonedSkill()), **options)
    engine.runtime.not_finite.add(UNSOUND)
    engine.runtime.failing |= {UNKNOWN, "late"}
    return engine


def alone(request: Request) -> Heard:
    """The same request, with nobody else there."""
    engine = make_engine()
    heard = engine.submit(replace(request, priority=0, timeout_s=None))
    engine.run_until_idle()
    engine.check_idle()
    return heard


def same(heard: Heard, other: Heard) -> bool:
    """The same answer, streamed the same way, at the same cost; or the same error."""
    if isinstance(heard.end, KestrelError) or isinstance(other.end, KestrelError):
        return (type(heard.end), str(heard.end)) == (type(other.end), str(other.end))
    one, two = heard.end.result, other.end.result
    return (
        (one.output, one.finish_reason, heard.streamed) == (two.output, two.finish_reason, other.streamed)
        and one.metrics.input_tokens == two.metrics.input_tokens
        and one.metrics.output_tokens == two.metrics.output_tokens
    )


# Answers


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
    engine.darkroom.develop()
    engine.step()
    first, second, point = [span.sampling for span in engine.runtime.plans[0].spans if span.readout]
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
    engine.darkroom.develop()
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
    assert metrics.requests["caption", "BadImage"] == metrics.requests["caption", "cancelled"] == 1
    assert (metrics.prefix_hits, metrics.prefix_misses, metrics.cached_tokens) == (2, 1, 10)
    assert metrics.prompt_tokens == 30
    assert metrics.ttft_s.count == metrics.queue_s.count == 3
    assert metrics.ttft_s.count + metrics.inter_token_s.count == metrics.output_tokens
    assert metrics.steps == len(engine.runtime.plans)
    assert metrics.request_s["caption"].count == 5


# Order


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


# Refusals


@pytest.mark.parametrize(
    ("asked", "error", "message"),
    [
        ({"skill": "sing"}, InvalidRequest, 'no skill "sing"; this server has caption, detect'),
        ({}, InvalidRequest, "QUESTION is required for query"),
        ({"skill": "detect", "object": "tail"}, InvalidRequest, "IMAGE is required for detect"),
        ({"skill": "segment", "object": "tail", "image": b"cat"}, UnsupportedSkill, "use detect"),
        ({"question": "?", "settings": {"adapter": "mine"}}, UnknownAdapter, '"mine" is not known'),
        (
            {"question": "x" * 51, "image": b"cat"},
            PromptTooLong,
            r"needs 60 positions \(5 image \+ 55 text\) and max_context is 60; shorten",
        ),
        ({"skill": "poisoned", "where": "prompt"}, EngineFailed, "make a prompt .ZeroDivisionError."),
        ({"skill": "poisoned", "where": "no prompt"}, EngineFailed, "made an empty prompt"),
    ],
)
def test_what_cannot_be_served_is_refused_at_the_door(
    asked: dict[str, Any], error: type[KestrelError], message: str
) -> None:
    engine = make_engine()
    with pytest.raises(error, match=message):
        engine.ask(**asked)
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


# Leaving early


def cancel(engine: FakeEngine, heard: Heard) -> None:
    engine.cancel(heard)


def let_expire(engine: FakeEngine, heard: Heard) -> None:
    engine.clock.now_s += 30


def in_the_darkroom(engine: FakeEngine) -> None:
    pass


def in_the_queue(engine: FakeEngine) -> None:
    engine.darkroom.develop()
    for _ in range(4):
        engine.ask(question="in the way", priority=-9, settings={"max_tokens": 20})
    engine.step()


def in_its_prompt(engine: FakeEngine) -> None:
    engine.darkroom.develop()
    engine.step(2)


def in_its_answer(engine: FakeEngine) -> None:
    engine.darkroom.develop()
    engine.step(9)


@both
@pytest.mark.parametrize("leave", [cancel, let_expire])
@pytest.mark.parametrize("phase", [in_the_darkroom, in_the_queue, in_its_prompt, in_its_answer])
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
    assert sequence is None or (sequence.ended and not sequence.slot and not sequence.pages)
    assert sequence not in engine.scheduler.running
    if leave is let_expire:
        state = "being answered" if running else "waiting"
        assert isinstance(heard.error, Cancelled)
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
    assert isinstance(second.error, Cancelled)
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


# Poison


@both
@pytest.mark.parametrize(
    ("asked", "error", "message"),
    [
        ({"skill": "poisoned", "where": "reply"}, EngineFailed, "could not begin its reply"),
        ({"skill": "poisoned", "where": "readout"}, EngineFailed, "could not read the model's output"),
        ({"skill": "poisoned", "where": "take"}, EngineFailed, "could not read the model's output"),
        ({"skill": "poisoned", "where": "cut"}, EngineFailed, "could not read the model's output"),
        ({"skill": "poisoned", "where": "output"}, EngineFailed, "could not give its result"),
        ({"skill": "caption", "image": b"damaged"}, BadImage, "the image is damaged"),
        ({"skill": "caption", "image": b"unheard of"}, EngineFailed, "could not be prepared"),
        (
            {"skill": "caption", "image": b"late"},
            EngineFailed,
            "computing this request failed (RuntimeError)",
        ),
        ({"skill": "tokens", "tokens": [1, UNKNOWN]}, EngineFailed, "computing this request failed"),
        ({"skill": "tokens", "tokens": [1, UNSOUND]}, EngineFailed, "output is not a number"),
    ],
)
def test_a_poisoned_request_fails_alone(
    overlaps: bool,
    asked: dict[str, Any],
    error: type[KestrelError],
    message: str,
) -> None:
    engine = make_engine(overlaps=overlaps, max_running=3)

    def ask_others() -> list[Heard]:
        return [
            engine.ask(question="before", stream=True, settings={"max_tokens": 12}),
            engine.ask("detect", b"cat", object="tail"),
        ]

    others = ask_others()
    engine.darkroom.develop()
    engine.step(3)
    poisoned = engine.ask(**asked)
    others += ask_others()
    engine.run_until_idle()
    assert type(poisoned.error) is error and message in str(poisoned.error)
    assert all(same(other, alone(other.request)) for other in others)
    assert engine.loop.healthy
    engine.check_idle()


def test_a_skill_that_cannot_be_cut_fails_when_it_is_cancelled() -> None:
    engine = make_engine()
    heard = engine.ask("poisoned", where="cut")
    engine.step(3)
    engine.cancel(heard)
    engine.step()
    assert isinstance(heard.error, EngineFailed)
    engine.check_idle()


def test_a_listener_that_raises_hurts_nobody(caplog: pytest.LogCaptureFixture) -> None:
    engine = make_engine()

    def listen(event: Event) -> None:
        raise ZeroDivisionError

    request = Request(
        "query", {"question": "what?"}, settings=parse_settings({"temperature": 0}), stream=True
    )
    engine.loop.submit(request, listen)
    other = engine.ask(question="other")
    engine.run_until_idle()
    assert "the sink of request" in caplog.text
    assert same(other, alone(other.request))
    engine.check_idle()


# The thread


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
    heard = [engine.ask(question="what?", settings={"max_tokens": 9}) for _ in range(4)]
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


# Storms


def random_request(rng: random.Random) -> Request:
    """Few words, few pictures: almost everybody shares something with somebody. Some are bad or poisoned."""
    picture = rng.choice((None, b"cat", b"dog", b"elk"))
    image = picture or b"fox"
    question = rng.choice(("a", "why is it so?", "x" * 14, "x" * 37))
    settings: dict[str, Any] = {"max_tokens": rng.choice((1, 9, 40)), "max_objects": rng.choice((2, 9))}
    settings |= {"temperature": rng.choice((0, 0.5)), "seed": 1}
    if rng.random() < 0.1:
        settings["stop"] = rng.choice((["ab"], [" ", "ccc"]))
    if rng.random() < 0.1:
        settings["logprobs"] = 2
    skill, image_given, arguments = rng.choice(
        (
            ("query", picture, {"question": question}),
            ("query", picture, {"question": question}),
            ("query", picture, {"question": question, "reasoning": True}),
            ("caption", image, {"length": rng.choice(("short", "long"))}),
            ("detect", image, {"object": question[:9]}),
            ("point", image, {"object": question[:9], "spatial_refs": [[0.5, 0.25]]}),
            ("tokens", picture, {"tokens": list(LETTERS * rng.randint(1, 7))}),
        )
    )
    if rng.random() < 0.12:
        wheres = ("reply", "readout", "take", "cut", "output", "prompt", "no prompt")
        skill, image_given, arguments = rng.choice(
            (
                ("poisoned", picture, {"where": rng.choice(wheres)}),
                ("tokens", picture, {"tokens": [*range(10, 20), rng.choice((UNSOUND, UNKNOWN))]}),
                ("caption", rng.choice((b"damaged", b"unheard of", b"late", None)), {}),
                ("query", picture, {"question": "x" * 99}),
                ("sing", picture, {}),
            )
        )
    return Request(
        skill,
        arguments,
        image_given,
        parse_settings(settings),
        stream=rng.random() < 0.5,
        priority=rng.randint(-1, 1),
        timeout_s=rng.uniform(0.1, 3) if rng.random() < 0.1 else None,
    )


def begins(part: dict[str, Any], whole: dict[str, Any]) -> bool:
    """Whether an unfinished output is how the whole one begins. Thoughts are not compared."""
    growing = {key: value for key, value in part.items() if key != "reasoning"}
    return all(whole[key][: len(value)] == value for key, value in growing.items())


@pytest.fixture(scope="module")
def expected() -> Callable[[Request], Heard | KestrelError]:
    """What each request meets alone: an answer, an error, or a refusal."""
    known: dict[str, Heard | KestrelError] = {}

    def expect(request: Request) -> Heard | KestrelError:
        name = repr((request.skill, request.arguments, request.image, request.settings, request.stream))
        if name not in known:
            try:
                known[name] = alone(request)
            except KestrelError as refusal:
                known[name] = refusal
        return known[name]

    return expect


@pytest.mark.parametrize("seed", range(4))
@both
def test_whatever_happens_nothing_is_lost_and_nobody_is_disturbed(
    seed: int,
    overlaps: bool,
    expected: Callable[[Request], Heard | KestrelError],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.CRITICAL, "kestrel")
    rng = random.Random(seed)
    engine = make_engine(
        overlaps=overlaps,
        num_pages=(14, 16, 20, 26)[seed],
        max_running=(4, 6, 6, 8)[seed],
        step_tokens=(7, 60, 16, 30)[seed],
        prefix_cache=seed != 3,
        max_queue=30,
        max_queue_bytes=60,
    )
    taken: list[Heard] = []
    cancelled: set[Heard] = set()
    counts: Counter[str] = Counter()
    for _ in range(2500):
        for _ in range(rng.choice((0, 0, 0, 1, 2))):
            request = random_request(rng)
            try:
                taken.append(engine.submit(request))
            except Overloaded:
                counts["overloaded"] += 1
            except KestrelError as refusal:
                alike = expected(request)
                assert (type(refusal), str(refusal)) == (type(alike), str(alike))
                counts["refused"] += 1
        if taken and rng.random() < 0.06:
            heard = rng.choice(taken[-20:])
            engine.cancel(heard)
            cancelled.add(heard)
        if engine.scheduler.running and rng.random() < 0.05:
            engine.scheduler.preempt(rng.choice(engine.scheduler.running))
        engine.clock.now_s += rng.random() / 10
        engine.darkroom.develop(rng.randrange(3))
        engine.step()
    engine.run_until_idle()
    engine.check_idle()
    for heard in taken:
        counts[how_it_ended(heard, expected(heard.request), heard in cancelled)] += 1
    assert counts["as alone"] > 250, counts
    assert all(counts[kind] > 10 for kind in ("refused", "expired", "cancelled")), counts
    assert engine.scheduler.num_preemptions > 120


def how_it_ended(heard: Heard, alike: Heard | KestrelError, was_cancelled: bool) -> str:
    """One of the ways there are; anything else raises."""
    assert isinstance(alike, Heard)
    if same(heard, alike):
        return "as alone"
    if isinstance(heard.end, Cancelled):
        assert heard.request.timeout_s is not None
        return "expired"
    assert was_cancelled
    if heard.request.skill == "poisoned":
        return "poisoned"  # cut where it cannot be
    result = heard.finished.result
    assert result.finish_reason == "cancelled"
    if isinstance(alike.end, Finished) and not heard.request.settings.stop:
        assert begins(result.output, alike.output)
    return "cancelled"
