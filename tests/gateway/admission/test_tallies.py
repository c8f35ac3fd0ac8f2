"""Counts of several workers: exact windows, and places that a dead worker gives back."""

import random
import subprocess
import sys
from collections import deque
from pathlib import Path

import pytest

from kestrel_gateway.admission.tallies import Tallies


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize("seed", range(5))
def test_a_window_is_never_over_its_limit_and_says_when_it_opens(seed: int) -> None:
    rng, clock = random.Random(seed), Clock()
    tallies, taken = Tallies(clock=clock), deque[float]()
    for _ in range(500):
        clock.now += rng.choice((0.0, 0.5, 3.0, 20.0))
        while taken and taken[0] <= clock.now - 60:
            taken.popleft()
        start, count = tallies.get_moving_window("a", 5, 60)
        assert (start, count) == (taken[0] if taken else clock.now, len(taken))
        assert tallies.acquire_entry("a", 5, 60) == (len(taken) < 5)
        if len(taken) < 5:
            taken.append(clock.now)


def test_keys_do_not_share_a_window() -> None:
    tallies = Tallies(clock=Clock())
    assert [tallies.acquire_entry(key, 1, 60) for key in "aab"] == [True, False, True]


def test_workers_count_together(tmp_path: Path) -> None:
    clock = Clock()
    first, second = (Tallies(tmp_path / "tallies", clock) for _ in range(2))
    assert [it.acquire_entry("a", 3, 60) for it in (first, second, first, second)] == [True] * 3 + [False]
    clock.now += 60
    assert second.acquire_entry("a", 3, 60)
    for it in (first, second):
        it.close()


def test_running_requests_are_counted_until_they_end() -> None:
    tallies = Tallies()
    assert [tallies.begin("a", 2) for _ in range(3)] == [True, True, False]
    assert tallies.begin("b", 2)
    tallies.end("a")
    assert [tallies.begin("a", 2) for _ in range(2)] == [True, False]


def test_a_dead_worker_holds_no_place(tmp_path: Path) -> None:
    path = tmp_path / "tallies"
    script = (
        "import os, sys; from pathlib import Path; from kestrel_gateway.admission.tallies import Tallies;"
        "it = Tallies(Path(sys.argv[1])); assert it.begin('a', 2) and it.begin('a', 2); os._exit(9)"
    )
    tallies = Tallies(path)
    assert subprocess.run([sys.executable, "-c", script, str(path)], check=False).returncode == 9
    assert [tallies.begin("a", 2) for _ in range(3)] == [True, True, False]
    tallies.close()
