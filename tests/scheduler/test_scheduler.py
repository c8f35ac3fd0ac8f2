"""Which sequences are computed in a step: order, budget, admission, giving way, the end of an answer."""

import pytest
from stage import ShortTalk, Stage, Talk, alone, both, said

from kestrel_core.loop.sequence import Outcome
from kestrel_core.loop.step import Sampling


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
