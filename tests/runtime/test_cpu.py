"""How many threads compute, by a clock that tests turn."""

import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from itertools import pairwise

import pytest
import torch

from kestrel_core.runtime.cpu import (
    MAX_RETRY_S,
    RETRY_S,
    WINDOW_S,
    CpuThreads,
    choose_products,
    in_a_thread_that_ends,
    product_s,
    use_onednn,
)


class Machine:
    """One whose threads run for a share of the time that a step takes."""

    def __init__(self, most: int, fixed: int | None = None) -> None:
        self.now_s = self.own_s = 0.0
        before = torch.get_num_threads()
        torch.set_num_threads(most)
        self.counts: list[int] = []
        self.threads = CpuThreads(fixed, self.counts.append, lambda: self.now_s, lambda: self.own_s)
        torch.set_num_threads(before)

    def step(self, share: float, took_s: float = 2 * WINDOW_S) -> None:
        def compute() -> str:
            self.now_s += took_s
            self.own_s += share * took_s
            return "samples"

        assert self.threads.run(compute) == "samples"


def test_a_step_has_a_thread_for_each_core() -> None:
    machine = Machine(4)
    for _ in range(5):
        machine.step(share=1.0)
    assert machine.counts == [4]


def test_threads_are_given_up_one_half_after_the_other_while_others_use_the_cores() -> None:
    machine = Machine(4)
    for _ in range(5):
        machine.step(share=0.5)
    assert machine.counts == [4, 2, 1]


def test_one_short_step_is_no_reason_to_give_up_threads() -> None:
    machine = Machine(2)
    machine.step(share=0.1, took_s=WINDOW_S / 10)
    machine.step(share=1.0)
    assert machine.counts == [2]


def test_threads_come_back_when_the_cores_are_free_again() -> None:
    machine = Machine(2)
    machine.step(share=0.5)
    machine.step(share=1.0)
    assert machine.counts == [2, 1], "not at once, since one thread may have a core where two have not"
    machine.now_s += RETRY_S
    machine.step(share=1.0)
    assert machine.counts == [2, 1, 2]


def test_they_are_tried_more_and_more_seldom_if_that_fails() -> None:
    machine, tries_s = Machine(2), list[float]()
    while len(tries_s) < 8:
        before = len(machine.counts)
        machine.step(share=0.5 if machine.threads.count == 2 else 1.0)
        if len(machine.counts) > before and machine.threads.count == 2:
            tries_s.append(machine.now_s)
    pauses_s = [later - earlier for earlier, later in pairwise(tries_s)]
    expected_s = [min(2**n * RETRY_S, MAX_RETRY_S) for n in range(7)]
    assert pauses_s == pytest.approx(expected_s, rel=0.1)


def test_a_number_that_is_given_stays() -> None:
    machine = Machine(4, fixed=3)
    for share in (1.0, 0.1, 0.1, 1.0):
        machine.step(share)
    assert machine.counts == [3]


@pytest.mark.parametrize(("by_onednn_s", "by_others_s", "chosen"), [(2.0, 1.0, False), (1.0, 1.0, True)])
def test_onednn_computes_products_unless_others_are_quicker(
    by_onednn_s: float, by_others_s: float, chosen: bool
) -> None:
    before = bool(torch.backends.mkldnn.enabled)
    try:
        choose_products(lambda: by_onednn_s if torch.backends.mkldnn.enabled else by_others_s)
        assert bool(torch.backends.mkldnn.enabled) is chosen
    finally:
        use_onednn(before)


def test_measuring_a_product_changes_no_number_of_threads() -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        assert product_s(torch.float32) > 0
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_what_is_no_step_is_computed_in_a_thread_that_has_ended() -> None:
    left = threading.Event()
    thread = in_a_thread_that_ends(threading.current_thread, left.set)
    assert thread is not threading.current_thread() and not thread.is_alive()
    with pytest.raises(ZeroDivisionError):
        in_a_thread_that_ends(lambda: 1 // 0, left.set)


@pytest.fixture
def interrupts() -> Iterator[None]:
    """As in a program of its own; a worker of pytest ignores them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def functions_of(thread: int) -> list[str]:
    """Names of the functions that it is in, the innermost last."""
    return [frame.name for frame in traceback.extract_stack(sys._current_frames()[thread])]


def test_whoever_breaks_off_does_not_wait_for_the_whole_of_it(interrupts: None) -> None:
    left, told = threading.Event(), []

    def compute() -> None:
        main = threading.main_thread().ident or 0
        while in_a_thread_that_ends.__name__ not in functions_of(main)[-4:-2]:
            pass  # until it waits for the result
        signal.pthread_kill(main, signal.SIGINT)
        told.append(left.wait(60))

    with pytest.raises(KeyboardInterrupt):
        in_a_thread_that_ends(compute, left.set)
    assert told == [True]
