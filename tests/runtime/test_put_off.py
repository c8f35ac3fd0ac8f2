"""Captures that are left for later: when each is done, and what becomes of the others if one fails."""

import pytest

from kestrel_core.runtime.put_off import BETWEEN_STEPS, PutOff


class Work:
    """Captures that take a second each, of sizes a, b, c and d."""

    def __init__(self, failing: str = "") -> None:
        self.now_s, self.done = 100.0, list[str]()
        self.put_off = PutOff(lambda: self.now_s)
        for size in "abcd":
            self.put_off.add(size, lambda size=size: self.capture(size, failing))  # type: ignore[misc]

    def capture(self, size: str, failing: str) -> None:
        self.now_s += 1.0
        if size == failing:
            raise RuntimeError("out of memory")
        self.done.append(size)


def test_idle_moments_do_them_all_in_their_order() -> None:
    work = Work()
    assert len(work.put_off) == 4 and "a" in work.put_off
    while work.put_off.do_one(idle=True):
        pass
    assert work.done == ["a", "b", "c", "d"] and not work.put_off


def test_what_a_step_missed_comes_first() -> None:
    work = Work()
    for size in ("c", "z", "b", "c"):
        work.put_off.miss(size)
    while work.put_off.do_one(idle=True):
        pass
    assert work.done == ["c", "b", "a", "d"]


def test_between_steps_only_what_was_missed_is_done_and_seldom() -> None:
    work = Work()
    assert not work.put_off.do_one(idle=False)
    for size in ("c", "b"):
        work.put_off.miss(size)
    assert work.put_off.do_one(idle=False) and work.done == ["c"]
    assert not work.put_off.do_one(idle=False), "streams have just waited"
    work.now_s += 1 / BETWEEN_STEPS
    assert work.put_off.do_one(idle=False) and work.done == ["c", "b"]
    work.now_s += 1 / BETWEEN_STEPS
    assert not work.put_off.do_one(idle=False), "nobody missed the others"


def test_a_failure_gives_the_others_up_with_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    work = Work(failing="b")
    assert [work.put_off.do_one(idle=True) for _ in range(4)] == [True, True, False, False]
    assert work.done == ["a"] and not work.put_off
    [record] = caplog.records
    assert record.message == (
        "3 of the sizes left for later are not captured, and stay padded to larger ones: out of memory"
    )


def test_a_size_counts_until_its_capture_has_ended() -> None:
    put_off, seen = PutOff(), list[int]()
    for size in "ab":
        put_off.add(size, lambda: seen.append(len(put_off)))
    while put_off.do_one(idle=True):
        pass
    assert seen == [2, 1] and not put_off, "who asks meanwhile is told that it is still to come"
