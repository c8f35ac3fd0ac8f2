"""Sequences that end early, by their caller's wish or by a fault, leave nothing behind."""

import pytest
from fake_runtime import LETTERS, PAGE_SIZE
from stage import Stage, Talk, alone, both, said

from kestrel_core.loop.sequence import Outcome
from kestrel_core.loop.step import Readout, Sample
from kestrel_core.protocol.errors import EngineFailed
from kestrel_core.scheduler.waiting import MAX_ENDED


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
    assert sum(len(line.entries) for line in stage.scheduler._waiting._lines.values()) <= MAX_ENDED + 2
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
        if self.fault == "outcome" and len(self.tokens) == 3:
            return None  # type: ignore[return-value]
        return super().take(sample)

    def cut(self) -> Outcome:
        raise ZeroDivisionError


@both
@pytest.mark.parametrize("fault", ["readout", "take", "outcome", "cut"])
def test_a_reply_that_raises_fails_alone(overlaps: bool, fault: str) -> None:
    stage = Stage(num_pages=13, max_context=30, overlaps=overlaps)
    other = stage.admit("other", num_tokens=12)
    faulty = stage.admit("faulty")
    faulty.reply = Faulty(fault)
    ends = stage.run()
    [error] = [error for sequence, _, error in ends if sequence is faulty]
    assert isinstance(error, EngineFailed)
    assert ("AttributeError" if fault == "outcome" else "ZeroDivisionError") in str(error)
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
