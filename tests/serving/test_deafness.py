"""A program that no longer answers is found; one that is slow, ends, or slept together with us is not."""

from collections.abc import Callable

from kestrel_core.triton.deafness import GAP_S, LATE_S, REFUSED_S, Deafness

NEVER = 0.0


class Program:
    """Looked at ten times a second, by a clock that moves only here.

    `answer` gives, by the number of a question, its status and after how many seconds that comes.
    """

    def __init__(self, answer: Callable[[int], tuple[int, float]], num_processes: int = 1) -> None:
        self.now = 0.0
        self.num_asked = 0
        self._answer = answer
        self._coming: list[tuple[float, Callable[[], None]]] = []
        self._status = 0
        self._deafness = Deafness(
            lambda timeout_s: self._status,
            lambda status: status == 200,
            num_processes,
            clock=lambda: self.now,
            start=self._take,
        )

    def _take(self, work: Callable[[], None]) -> None:
        status, after_s = self._answer(self.num_asked)
        self.num_asked += 1

        def answer() -> None:
            self._status = status
            work()

        if status:
            self._coming.append((self.now + after_s, answer))

    def found_after_s(self, within_s: float) -> float | None:
        began = self.now
        while self.now - began < within_s:
            for due in [it for it in self._coming if it[0] <= self.now]:
                self._coming.remove(due)
                due[1]()
            if self._deafness.is_found():
                return self.now - began
            self.now += 0.1
        return None


def test_a_frozen_program_is_found_within_ten_seconds() -> None:
    found = Program(lambda number: (0, NEVER)).found_after_s(60)
    assert found is not None and LATE_S < found < 10


def test_a_program_that_freezes_later_is_found_as_fast() -> None:
    is_frozen = False
    program = Program(lambda number: (0, NEVER) if is_frozen else (200, 0.1))
    assert program.found_after_s(100) is None
    is_frozen = True
    found = program.found_after_s(60)
    assert found is not None and LATE_S < found < 10


def test_a_slow_program_is_left_alone() -> None:
    assert Program(lambda number: (200, LATE_S - 0.2)).found_after_s(100) is None


def test_some_lost_answers_are_no_deafness() -> None:
    """Triton loses some answers while hundreds of clients ask it over HTTP."""
    assert Program(lambda number: (200, 0.1) if number % 3 == 0 else (0, NEVER)).found_after_s(100) is None


def test_a_refusal_by_triton_is_no_answer_of_the_model_and_tells_sooner_than_silence() -> None:
    found = Program(lambda number: (400, 1.0)).found_after_s(60)
    assert found is not None and REFUSED_S < found < LATE_S + 1


def test_a_program_that_has_closed_its_door_is_given_its_time() -> None:
    program = Program(lambda number: (-1, 0.0))
    assert program.found_after_s(60) is None and program.num_asked > 50


def test_one_deaf_process_of_three_is_found() -> None:
    found = Program(lambda number: (200, 0.1) if number % 3 else (0, NEVER), 3).found_after_s(60)
    assert found is not None and found < 12


def test_what_was_not_answered_while_we_slept_counts_for_nothing() -> None:
    """A suspended machine, a paused container, a supervisor that was stopped: all of them froze together."""
    is_awake = False
    program = Program(lambda number: (200, 0.1) if is_awake else (0, NEVER))
    assert program.found_after_s(LATE_S + 0.5) is None
    program.now += GAP_S + 3600
    is_awake = True
    assert program.found_after_s(60) is None
