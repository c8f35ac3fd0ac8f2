"""A storm of mixed requests: every answer is the one asked alone, and the stack is idle after as before."""

import asyncio
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from attacks.stack import Stack, stack
from attacks.storm import Storm, mixed_calls
from triton_server import until

pytestmark = [pytest.mark.triton, pytest.mark.attacks]

CALLERS = 32
KILL_EVERY_S = 180.0
MAX_GROWTH = 50 * 2**20


def until_s(moment: float) -> Callable[[], bool]:
    return lambda: time.monotonic() >= moment


def test_in_a_storm_every_answer_is_the_one_asked_alone(shared: Stack) -> None:
    storm = Storm(shared.user, mixed_calls(80))
    asyncio.run(storm.learn())
    asyncio.run(storm.rage(CALLERS, until_s(time.monotonic() + 15)))  # pools of threads have grown by then
    until(shared.served.is_idle, 60)
    before, processes = shared.footprint(), shared.processes()
    asyncio.run(storm.rage(CALLERS, until_s(time.monotonic() + 45)))
    counts = storm.told.counts
    assert counts["wrong"] == counts["hung"] == counts["failed"] == 0, storm.told
    assert counts["as alone"] > 100 and counts["left"] > 5
    shared.await_idle(before, slack=4)
    assert shared.processes() == processes


def test_a_soak_with_kills_gives_right_answers_and_does_not_grow(
    tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    """The stub is killed every three minutes; memory is compared just before each kill, at equal ages."""
    seconds = pytestconfig.getoption("--seconds")
    kill_every_s = min(KILL_EVERY_S, seconds / 3)
    sizes = list[dict[str, int]]()
    with stack(tmp_path) as it:
        storm = Storm(it.user, mixed_calls(60))
        asyncio.run(storm.learn())
        begin = now = time.monotonic()
        while now + kill_every_s <= begin + seconds or len(sizes) < 2:
            num_right = storm.told.counts["as alone"]
            asyncio.run(soak(storm, it, kill_every_s, sizes))
            assert storm.told.counts["as alone"] > num_right, "since the last kill nothing was answered"
            now = time.monotonic()
        until(it.served.is_idle, 60)
    counts = storm.told.counts
    for size in sizes:
        print("before a kill, MiB:", {name: number >> 20 for name, number in size.items()})
    print(counts)
    assert counts["wrong"] == counts["hung"] == 0, storm.told
    first, *others = (sum(size.values()) for size in sizes)
    assert max(others) - first <= MAX_GROWTH


async def soak(storm: Storm, it: Stack, seconds: float, sizes: list[dict[str, int]]) -> None:
    """Load for so long; then the stub is killed under it, and the load goes on until it answers again."""
    is_back = asyncio.Event()
    load = asyncio.create_task(storm.rage(CALLERS // 4, is_back.is_set))
    await asyncio.sleep(seconds)
    sizes.append(it.sizes())
    stub = it.processes()["stub"]
    os.kill(stub, signal.SIGKILL)
    await asyncio.to_thread(until, lambda: is_answering(it, stub), 60)
    is_back.set()
    await load


def is_answering(it: Stack, stub: int) -> bool:
    try:
        return it.processes()["stub"] != stub and it.post("/v1/query", {"question": "?"}).status == 200
    except (OSError, KeyError, ValueError):
        return False
