"""Finds a program that runs but no longer answers: frozen, deadlocked, or out of everything.

It is asked a real question every second, each in a thread of its own, so that nobody waits for the answer.
Slow answers are answers. Whoever looks has to look often: if nobody has for a while, it was this process that
slept, perhaps with the whole machine, and what was not answered meanwhile counts for nothing.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

EVERY_S = 1.0
LATE_S = 5.0  # a question that has no answer by then counts against it
REFUSED_S = 3.0  # the same, where somebody in between has said that the program does not answer
NUM_LATE = 3  # such questions one after another; a frozen program is found after 8 s, or 6 if that is said
GAP_S = 3.0


def in_a_thread(work: Callable[[], None]) -> None:
    threading.Thread(target=work, daemon=True).start()


@dataclass(slots=True, eq=False)
class Question:
    asked_at: float
    is_answered: bool = False
    is_refused: bool = False
    is_void: bool = False  # nobody listens: who ends in order has closed its door, and is given its time

    def is_late(self, now: float) -> bool:
        return now - self.asked_at >= (REFUSED_S if self.is_refused else LATE_S)


class Deafness:
    """`ask` gives a status as `probing.ask` does; `is_answer` says which are answers.

    A question reaches one of `num_processes`. One of several may be deaf while the others answer.
    """

    def __init__(
        self,
        ask: Callable[[float], int],
        is_answer: Callable[[int], bool],
        num_processes: int = 1,
        clock: Callable[[], float] = time.monotonic,
        start: Callable[[Callable[[], None]], None] = in_a_thread,
    ) -> None:
        self._ask = ask
        self._is_answer = is_answer
        self._num_processes = max(num_processes, 1)
        self._clock = clock
        self._start = start
        self._questions: deque[Question] = deque(maxlen=20 * self._num_processes)
        self._looked_at = self._next_at = clock()

    def is_found(self) -> bool:
        """Asks when it is time to, and says whether enough was not answered."""
        now = self._clock()
        if now - self._looked_at > GAP_S:
            self._questions.clear()
        self._looked_at = now
        if now >= self._next_at:
            self._next_at = now + EVERY_S / self._num_processes
            question = Question(now)
            self._questions.append(question)
            self._start(partial(self._put, question))
        settled = [
            question.is_answered
            for question in self._questions
            if question.is_answered or (not question.is_void and question.is_late(now))
        ]
        if self._num_processes == 1:
            return len(settled) >= NUM_LATE and not any(settled[-NUM_LATE:])
        return settled[-8 * self._num_processes :].count(False) >= NUM_LATE

    def _put(self, question: Question) -> None:
        status = self._ask(LATE_S)
        question.is_void = status == -1
        question.is_answered = self._is_answer(status)
        question.is_refused = status > 0 and not question.is_answered
