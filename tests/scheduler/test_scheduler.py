"""Who computes what and when: order, room, sharing, giving way. A letter of a prompt is a token."""

from typing import Any

import pytest
from fakes import IMAGE_LENGTH, LETTERS, PAGE_SIZE, FakeRuntime

from kestrel_core.loop.sequence import GO_ON, Outcome, Sequence
from kestrel_core.loop.step import Input, Kind, PreparedImage, Readout, Sample, Sampling, Span, StepInFlight
from kestrel_core.protocol.errors import EngineFailed
from kestrel_core.scheduler.pages import PagePool
from kestrel_core.scheduler.prefix_cache import PrefixCache
from kestrel_core.scheduler.scheduler import LOOKAHEAD, Limits, Scheduler, Update

both = pytest.mark.parametrize("overlaps", [False, True])


class Talk:
    """A reply of so many tokens. `second` is prompted in place of the sample that ends the first half."""

    def __init__(self, num_tokens: int, second: str = "") -> None:
        self.tokens: list[int] = []
        self.num_tokens = num_tokens
        self.second = second

    def readout(self, ahead: int = 0) -> Readout:
        return Readout(Kind.TOKEN)

    def take(self, sample: Sample) -> Outcome:
        assert sample.token is not None
        self.tokens.append(sample.token)
        if len(self.tokens) == self.num_tokens:
            return Outcome(finish="stop")
        if self.second and len(self.tokens) == self.num_tokens // 2:
            return Outcome(feed=tuple(map(ord, self.second)))
        return GO_ON

    def cut(self) -> Outcome:
        return Outcome("and so on", "...")

    def output(self) -> dict[str, Any]:
        return {"tokens": self.tokens}


class ShortTalk(Talk):
    """One that says where it ends."""

    def readout(self, ahead: int = 0) -> Readout | None:
        return Readout(Kind.TOKEN) if len(self.tokens) + ahead < self.num_tokens else None


class Stage:
    """A scheduler and a runtime, turned by hand. Every step proves the books."""

    def __init__(
        self,
        *,
        num_pages: int = 41,
        max_running: int = 4,
        max_context: int = 100,
        step_tokens: int = 40,
        overlaps: bool = False,
        prefix_cache: bool = True,
    ) -> None:
        self.pool = PagePool(num_pages)
        self.cache = PrefixCache(self.pool, prefix_cache)
        self.scheduler = Scheduler(
            self.pool, self.cache, PAGE_SIZE, Limits(max_running, max_context, step_tokens)
        )
        self.runtime = FakeRuntime(num_pages, overlaps=overlaps)
        self._pending: StepInFlight | None = None

    def admit(
        self,
        prompt: str,
        num_tokens: int = 4,
        image: str | None = None,
        order: float = 0.0,
        second: str = "",
        sampling: Sampling | None = None,
    ) -> Sequence:
        inputs: list[Input] = list(map(ord, prompt))
        sequence = Sequence(prompt, Talk(num_tokens, second), inputs, root=(None, image), order=order)
        if image is not None:
            sequence.image = PreparedImage(image, None, (1, 1))
            sequence.image_length = IMAGE_LENGTH
        if sampling is not None:
            sequence.sampling = sampling
        self.scheduler.admit(sequence)
        return sequence

    def step(self) -> list[Update]:
        plan = self.scheduler.plan()
        self.scheduler.check()
        launched: StepInFlight | None = self.runtime.launch(plan) if plan is not None else None
        if self.runtime.overlaps:
            launched, self._pending = self._pending, launched
        updates = self.scheduler.commit(launched.collect()) if launched is not None else []
        self.scheduler.check()
        return updates

    def run(self) -> list[Update]:
        """Until all have ended. What ended, in that order."""
        ends: list[Update] = []
        while self.scheduler.num_running or self.scheduler.num_waiting or self._pending is not None:
            ends += [update for update in self.step() if update[1].finish or update[2]]
        return ends

    @property
    def spans(self) -> dict[int, list[Span]]:
        """The last plan, by slot."""
        slots: dict[int, list[Span]] = {}
        for span in self.runtime.plans[-1].spans:
            slots.setdefault(span.slot, []).append(span)
        return slots

    @property
    def num_unused(self) -> int:
        return self.pool.num_free + self.cache.num_evictable_pages


def said(sequence: Sequence) -> list[int]:
    tokens: list[int] = sequence.reply.output()["tokens"]
    return tokens


def alone(prompt: str, num_tokens: int = 4, **options: Any) -> list[int]:
    stage = Stage()
    sequence = stage.admit(prompt, num_tokens, **options)
    stage.run()
    return said(sequence)


@pytest.mark.parametrize("num_tokens", [1, 2, 5])
def test_nothing_is_computed_beyond_the_end_that_a_reply_foretells(num_tokens: int) -> None:
    def computed(talk: Talk) -> int:
        stage = Stage(overlaps=True)
        stage.admit("one", num_tokens).reply = talk
        stage.run()
        return sum(span.stop - span.start for plan in stage.runtime.plans for span in plan.spans)

    assert computed(ShortTalk(num_tokens)) == len("one") + num_tokens - 1
    assert computed(Talk(num_tokens)) == len("one") + num_tokens, "who does not say it has one more computed"


# Order


def test_equals_are_served_as_they_came() -> None:
    stage = Stage(max_running=1)
    sequences = [stage.admit(prompt) for prompt in ("one", "two", "three", "four")]
    assert [update[0] for update in stage.run()] == sequences


def test_a_lower_order_is_served_first_and_the_running_are_left_alone() -> None:
    stage = Stage(max_running=1)
    running = stage.admit("here", order=5.0)
    stage.step()
    late, early = stage.admit("late", order=9.0), stage.admit("early", order=1.0)
    assert [update[0] for update in stage.run()] == [running, early, late]


@both
def test_a_newcomer_joins_between_any_two_steps(overlaps: bool) -> None:
    stage = Stage(overlaps=overlaps)
    first = stage.admit("first", num_tokens=9)
    for _ in range(3):
        stage.step()
    second = stage.admit("second", num_tokens=9)
    stage.step()
    [decode], [prefill] = stage.spans[first.slot], stage.spans[second.slot]
    assert decode.stop - decode.start == 1 and decode.readout is not None
    assert (prefill.start, prefill.stop) == (0, 6) and prefill.readout is not None
    stage.run()
    assert said(first) == alone("first", 9)
    assert said(second) == alone("second", 9)


# The step's token budget


@both
def test_a_long_text_is_cut_so_that_decodes_go_on(overlaps: bool) -> None:
    stage = Stage(step_tokens=10, overlaps=overlaps)
    decoding = stage.admit("abc", num_tokens=20)
    stage.step()
    long = stage.admit("x" * 34, num_tokens=3)
    parts = []
    while not said(long):
        before = len(said(decoding))
        stage.step()
        assert sum(span.stop - span.start for span in stage.runtime.plans[-1].spans) <= 10
        assert len(said(decoding)) == before + 1
        parts += stage.spans.get(long.slot, [])
    starts = [part.start for part in parts if part.stop <= 34]
    assert starts == [0, 9, 18, 27]
    assert [part.readout is None for part in parts[:4]] == [True, True, True, False]
    stage.run()
    assert said(long) == alone("x" * 34, 3)


def test_an_image_prefix_is_never_split() -> None:
    stage = Stage(step_tokens=11)
    first, second = stage.admit("abc", image="cat"), stage.admit("abc", image="dog")
    stage.step()  # 8 of 11 positions are taken, and 5 are needed
    assert [span.image is not None for span in stage.spans[first.slot]] == [True, False]
    assert second.slot == 0
    stage.step()
    assert [(span.start, span.stop) for span in stage.spans[second.slot]] == [(0, 5), (5, 8)]


def test_an_image_larger_than_the_budget_is_computed_all_the_same() -> None:
    stage = Stage(step_tokens=2)
    sequence = stage.admit("abcd", image="cat")
    stage.step()
    assert [(span.start, span.stop) for span in stage.spans[sequence.slot]] == [(0, 5)]
    stage.step()
    assert [(span.start, span.stop) for span in stage.spans[sequence.slot]] == [(5, 7)]
    stage.run()
    assert said(sequence) == alone("abcd", image="cat")


# Admission


def test_there_are_only_so_many_slots() -> None:
    stage = Stage(max_running=2)
    sequences = [stage.admit(prompt) for prompt in ("one", "two", "three")]
    stage.step()
    assert {sequence.slot for sequence in sequences} == {0, 1, 2}
    assert (stage.scheduler.num_running, stage.scheduler.num_waiting) == (2, 1)
    while not sequences[0].ended:
        stage.step()
    stage.step()
    assert sequences[2].slot == 2 or sequences[2].slot == 1


def test_nobody_starts_without_pages_for_the_prompt_and_one_to_spare_for_each_who_runs() -> None:
    stage = Stage(num_pages=9, max_context=40)  # 8 pages of 5
    first = stage.admit("x" * 20, num_tokens=2)
    second = stage.admit("y" * 20, num_tokens=2)
    stage.step()
    assert first.slot and not second.slot
    stage.step()
    assert first.ended
    stage.step()
    assert second.slot
    stage.run()
    assert stage.scheduler.num_preemptions == 0


def test_who_waits_in_front_is_not_overtaken_by_who_needs_less() -> None:
    stage = Stage(num_pages=9, max_context=40)
    running = stage.admit("x" * 20, num_tokens=9)
    large, small = stage.admit("y" * 20), stage.admit("z")
    stage.step()
    assert running.slot and not large.slot and not small.slot
    assert [update[0] for update in stage.run()] == [running, large, small]


# Giving way


@both
def test_who_gives_way_loses_nothing(overlaps: bool) -> None:
    stage = Stage(num_pages=9, max_context=40, overlaps=overlaps)
    drawn = Sampling(temperature=1.0, seed=3)
    prompts = {"abc": None, "defgh": None, "ijklmno": "cat", "pqr": "dog"}
    sequences = {
        prompt: stage.admit(prompt, 20, image, order=at, sampling=drawn)
        for at, (prompt, image) in enumerate(prompts.items())
    }
    stage.run()
    assert stage.scheduler.num_preemptions > 2
    for prompt, sequence in sequences.items():
        assert said(sequence) == alone(prompt, 20, image=prompts[prompt], sampling=drawn)
    assert stage.num_unused == 8


def test_the_last_in_order_gives_way_and_comes_back_first() -> None:
    stage = Stage(num_pages=7, max_context=30)
    early, late = stage.admit("abcd", 15, order=1.0), stage.admit("wxyz", 15, order=2.0)
    while not stage.scheduler.num_preemptions:
        stage.step()
    assert early.slot and not late.slot
    later = stage.admit("mn", 2, order=3.0)
    while not late.slot:
        stage.step()
        assert not later.slot or late.slot
    stage.run()
    assert said(early) == alone("abcd", 15) and said(late) == alone("wxyz", 15)


@both
def test_a_sequence_that_resumes_recomputes_only_what_the_cache_lacks(overlaps: bool) -> None:
    stage = Stage(overlaps=overlaps)
    sequence = stage.admit("x" * 12, num_tokens=9)
    for _ in range(4):
        stage.step()
    stage.scheduler.preempt(sequence)
    while not sequence.slot:
        stage.step()
    [resumed] = stage.spans[sequence.slot]
    assert resumed.start == 15 - 5 * overlaps  # where its last sample is still under way, so is a page
    assert sequence.cached_tokens == 0, "the caller's prompt was not in the cache"
    stage.run()
    assert said(sequence) == alone("x" * 12, 9)


# Sharing


@both
def test_an_image_in_the_works_is_waited_for_and_computed_once(overlaps: bool) -> None:
    stage = Stage(overlaps=overlaps)
    sequences = [stage.admit(prompt, image="cat") for prompt in ("one", "two", "three")]
    other = stage.admit("four", image="dog")
    stage.step()
    assert [bool(sequence.slot) for sequence in sequences] == [True, False, False]
    assert other.slot, "those who wait for the cat stand in nobody's way"
    stage.run()
    assert stage.runtime.num_images == 2
    assert [sequence.cached_tokens for sequence in sequences] == [0, 5, 5]
    assert [said(s) for s in sequences] == [alone(p, image="cat") for p in ("one", "two", "three")]


@both
@pytest.mark.parametrize("end", ["cancelled", "not finite"])
def test_who_waits_for_an_image_computes_it_when_the_first_one_fails(overlaps: bool, end: str) -> None:
    stage = Stage(overlaps=overlaps, step_tokens=6)
    stage.runtime.not_finite.add(ord("!"))
    first, second = stage.admit("one!", image="cat"), stage.admit("two", image="cat")
    stage.step()
    if end == "cancelled":
        stage.scheduler.end(first)
    stage.run()
    assert said(first) == [] and stage.runtime.num_images == 2
    assert (said(second), second.cached_tokens) == (alone("two", image="cat"), 0)


@both
def test_an_answer_of_one_sample_leaves_its_image_to_others(overlaps: bool) -> None:
    stage = Stage(overlaps=overlaps)
    first, second = stage.admit("one", 1, "cat"), stage.admit("two", 1, "cat")
    assert [update[0] for update in stage.run()] == [first, second]
    assert second.cached_tokens == 5


def test_the_same_prompt_is_found_up_to_its_last_full_page_but_one_position_is_computed() -> None:
    stage = Stage()
    for prompt, cached in (("x" * 10, 0), ("x" * 10, 5), ("x" * 11, 10), ("x" * 13 + "y", 10)):
        sequence = stage.admit(prompt, num_tokens=1)
        stage.run()
        assert sequence.cached_tokens == cached
        assert said(sequence) == alone(prompt, 1)


def test_what_was_said_is_found_again() -> None:
    stage = Stage()
    first = stage.admit("what is this?", num_tokens=9, image="cat")
    stage.run()
    follow_up = "what is this?" + "".join(map(chr, said(first))) + "and that?"
    second = stage.admit(follow_up, image="cat")
    stage.run()
    # All but the last sample was fed: 5 + 13 + 8 positions.
    assert second.cached_tokens == 25
    assert said(second) == alone(follow_up, image="cat")


def test_two_who_compute_the_same_text_at_once_end_up_on_the_same_pages() -> None:
    stage = Stage()
    first, second = stage.admit("x" * 12, 6), stage.admit("x" * 12, 6)
    stage.step()
    mine, others = first.running.pages, second.running.pages
    assert mine[:2] == others[:2] and mine[2] != others[2]
    stage.run()
    assert said(first) == said(second) == alone("x" * 12, 6)


def test_the_image_not_used_for_longest_is_forgotten_first() -> None:
    stage = Stage(num_pages=9, max_context=40)

    def ask(image: str, prompt: str = "x", num_tokens: int = 1) -> int:
        sequence = stage.admit(prompt, num_tokens, image)
        stage.run()
        return sequence.cached_tokens

    for image in ("cat", "dog", "elk"):
        assert ask(image) == 0
    assert ask("cat") == 5
    assert ask("gnu", "x" * 25) == 0  # takes 6 of 8 pages: of three old ones, one goes
    assert [ask("elk"), ask("dog")] == [5, 0]


@both
def test_without_the_prefix_cache_all_is_computed_and_nothing_kept(overlaps: bool) -> None:
    stage = Stage(prefix_cache=False, overlaps=overlaps)
    sequences = [stage.admit("what?", image="cat") for _ in range(3)]
    stage.run()
    assert stage.runtime.num_images == 3
    assert [said(sequence) for sequence in sequences] == [alone("what?", image="cat")] * 3
    assert [sequence.cached_tokens for sequence in sequences] == [0, 0, 0]
    assert stage.pool.num_free == 40


# The end of an answer


@both
def test_the_context_is_used_to_its_last_position_and_not_beyond(overlaps: bool) -> None:
    stage = Stage(num_pages=5, max_context=20, overlaps=overlaps)
    sequence = stage.admit("x" * 12, num_tokens=99)
    [(ended, outcome, error)] = stage.run()
    assert ended is sequence and error is None
    assert outcome == Outcome("and so on", "...", finish="length")
    assert max(span.stop for plan in stage.runtime.plans for span in plan.spans) == 20
    assert len(said(sequence)) == 9  # read off positions 11 to 19
    assert said(sequence) == alone("x" * 12, 99)[:9]


@both
@pytest.mark.parametrize("second", ["z", "and now the answer"])
def test_a_second_prompt_voids_what_was_computed_ahead(overlaps: bool, second: str) -> None:
    stage = Stage(overlaps=overlaps)
    drawn = Sampling(temperature=1.0, seed=1)
    sequence = stage.admit("think", 12, "cat", second=second, sampling=drawn)
    other = stage.admit("other", 12, "cat")
    stage.run()
    fed = sequence.inputs
    assert [*fed[:5], *fed[10 : 10 + len(second)]] == list(map(ord, "think" + second))
    assert fed[5:10] == said(sequence)[:5], "the sample that turned it elsewhere is not fed"
    reference = Stage()
    same = reference.admit("think", 12, "cat", second=second, sampling=drawn)
    reference.run()
    assert said(sequence) == said(same)
    assert said(other) == alone("other", 12, image="cat")


@both
def test_a_second_prompt_that_does_not_fit_ends_the_answer(overlaps: bool) -> None:
    stage = Stage(num_pages=5, max_context=20, overlaps=overlaps)
    stage.admit("think", 12, second="x" * 11)
    [(_, outcome, _)] = stage.run()
    assert outcome.finish == "length"
    assert stage.num_unused == 4


# Leaving early


@both
@pytest.mark.parametrize("num_steps", range(8))
def test_ending_a_sequence_frees_all_it_has_at_once(overlaps: bool, num_steps: int) -> None:
    """Waiting, in the middle of its prompt, with its first sample under way, and decoding."""
    stage = Stage(step_tokens=10, overlaps=overlaps)
    other = stage.admit("other", num_tokens=12)
    sequence = stage.admit("x" * 21, num_tokens=12, image="cat")
    for _ in range(num_steps):
        stage.step()
    before = stage.num_unused
    held = len(sequence.running.pages)
    stage.scheduler.end(sequence)
    stage.scheduler.check()
    assert stage.num_unused == before + held
    assert sequence not in stage.scheduler.running and stage.scheduler.num_waiting == (num_steps == 0)
    newcomer = stage.admit("x" * 21, num_tokens=12, image="cat")
    stage.run()
    assert said(other) == alone("other", 12)
    assert said(newcomer) == alone("x" * 21, 12, image="cat")
    assert stage.num_unused == 40


def test_the_queue_does_not_keep_those_who_left_it() -> None:
    stage = Stage(max_running=1)
    running = stage.admit("running", num_tokens=3)
    stage.step()
    gone = [stage.admit("gone", order=-at) for at in range(1000)]
    stays = stage.admit("stays")
    for sequence in gone:
        stage.scheduler.end(sequence)
    assert stage.scheduler.num_waiting == 1
    assert len(stage.scheduler._waiting) <= LOOKAHEAD + 2
    assert [update[0] for update in stage.run()] == [running, stays]


# Faults


class Faulty(Talk):
    def __init__(self, fault: str) -> None:
        super().__init__(99)
        self.fault = fault

    def readout(self, ahead: int = 0) -> Readout:
        if self.fault == "readout" and len(self.tokens) + ahead >= 3:
            raise ZeroDivisionError
        return super().readout(ahead)

    def take(self, sample: Sample) -> Outcome:
        if self.fault == "take" and len(self.tokens) == 3:
            raise ZeroDivisionError
        if self.fault == "turn" and len(self.tokens) == 3:
            return None  # type: ignore[return-value]
        return super().take(sample)

    def cut(self) -> Outcome:
        raise ZeroDivisionError


@both
@pytest.mark.parametrize("fault", ["readout", "take", "turn", "cut"])
def test_a_reply_that_raises_fails_alone(overlaps: bool, fault: str) -> None:
    stage = Stage(num_pages=13, max_context=30, overlaps=overlaps)
    other = stage.admit("other", num_tokens=12)
    faulty = stage.admit("faulty")
    faulty.reply = Faulty(fault)
    ends = stage.run()
    [error] = [error for sequence, _, error in ends if sequence is faulty]
    assert isinstance(error, EngineFailed)
    assert ("AttributeError" if fault == "turn" else "ZeroDivisionError") in str(error)
    assert [outcome.finish for sequence, outcome, _ in ends if sequence is other] == ["stop"]
    assert said(other) == alone("other", 12)
    assert stage.num_unused == 12


@both
def test_what_is_not_a_number_fails_alone_and_is_never_shared(overlaps: bool) -> None:
    stage = Stage(overlaps=overlaps)
    stage.runtime.not_finite.add(ord("!"))
    poisoned, other = stage.admit("x" * 10 + "!", image="cat"), stage.admit("other", 12)
    ends = stage.run()
    [error] = [error for sequence, _, error in ends if sequence is poisoned]
    assert isinstance(error, EngineFailed) and "not a number" in str(error)
    assert said(poisoned) == [] and said(other) == alone("other", 12)
    again = stage.admit("x" * 10 + "y", image="cat")
    stage.run()
    assert (again.cached_tokens, said(again)) == (0, alone("x" * 10 + "y", image="cat"))


@both
def test_an_answer_that_goes_bad_is_not_shared_but_its_sound_prompt_is(overlaps: bool) -> None:
    prompt = next(p for p in map("question {:02}".format, range(99)) if LETTERS[0] not in alone(p, 20)[:8])
    stage = Stage(overlaps=overlaps)
    stage.runtime.not_finite.add(LETTERS[0])
    stage.admit(prompt, 99)
    [(_, _, error)] = stage.run()
    assert isinstance(error, EngineFailed)
    assert stage.cache.num_cached_pages == len(prompt) // PAGE_SIZE


@pytest.mark.parametrize(("max_context", "num_pages"), [(41, 9), (6, 2)])
def test_one_sequence_alone_must_be_able_to_finish(max_context: int, num_pages: int) -> None:
    with pytest.raises(AssertionError, match="alone could not finish"):
        Stage(max_context=max_context, num_pages=num_pages)
