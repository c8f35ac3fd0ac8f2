"""Programs are started again for ever, after pauses that grow until one has answered for a good while."""

import resource
import subprocess
import sys

from kestrel_core.triton.process import GOOD_WHILE_S, MAX_PAUSE_S, Restarts, few_open_files


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_pauses_grow_to_five_minutes_and_no_further() -> None:
    restarts = Restarts(Clock())
    pauses = [restarts.next_pause_s("it ended") for _ in range(2000)]
    assert pauses[:11] == [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, MAX_PAUSE_S]
    assert set(pauses[11:]) == {MAX_PAUSE_S}
    assert restarts.total == 2000


def test_a_good_while_ends_a_crash_loop_and_a_long_start_does_not() -> None:
    clock = Clock()
    restarts = Restarts(clock)
    for _ in range(4):
        restarts.next_pause_s("it ended")
    assert restarts.is_looping
    clock.now += 1000  # spent on loading
    assert restarts.is_looping
    restarts.note_well()
    clock.now += GOOD_WHILE_S - 1
    restarts.note_well()
    assert restarts.is_looping
    clock.now += 1
    assert not restarts.is_looping
    assert restarts.next_pause_s("it ended") == 0 and restarts.total == 5


def test_a_death_soon_after_an_answer_goes_on_with_the_loop() -> None:
    clock = Clock()
    restarts = Restarts(clock)
    for number, pause_s in enumerate([0, 1, 2, 4]):
        assert restarts.next_pause_s(f"cause {number}") == pause_s
        restarts.note_well()
        clock.now += GOOD_WHILE_S / 2
    assert restarts.cause == "cause 3"
    assert restarts.again(4.0) == ", 4 times in a row; starting it again in 4 s"


RAISE = """
import resource
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, min(hard, 2000)))
from kestrel_core.triton.process import allow_open_files
print(bool(allow_open_files()), resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""


def test_as_many_files_may_be_open_as_the_system_allows_and_few_are_told() -> None:
    done = subprocess.run([sys.executable, "-c", RAISE], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "2000"]
    assert few_open_files(4096) is None and few_open_files(resource.RLIM_INFINITY) is None
    assert "At most 4,095 files" in str(few_open_files(4095))
