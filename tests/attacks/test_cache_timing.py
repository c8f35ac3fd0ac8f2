"""What the time of an answer tells of others: nothing, where each has a salt of its own.

The victim asks about pictures. The spy, who has the same pictures, asks the same about some of them and
about others that nobody ever sent, in random order. If the two kinds cannot be told apart by rank, time tells
nothing. The same spy without salts is the proof that this one looks closely enough.
"""

import asyncio
import math
import random
import time

import pytest
from tiny import tiny_engine
from triton_server import picture

from kestrel_core.engine import InferenceEngine

pytestmark = [pytest.mark.attacks, pytest.mark.usefixtures("one_thread")]

NUM_EACH = 40
QUESTION = "What is the number on the card that lies on the table in this picture?"


@pytest.mark.parametrize(("victim", "spy", "tells"), [("", "", True), ("one", "two", False)])
def test_time_tells_of_others_only_where_the_cache_is_shared(victim: str, spy: str, tells: bool) -> None:
    seen, fresh = asyncio.run(spied(victim, spy))
    deviation = rank_deviation(seen, fresh)
    # By chance 5 standard deviations come once in a million runs. A shared cache gives 7 or more.
    assert (abs(deviation) > 5) == tells, f"{deviation:.1f} standard deviations"


async def spied(victim: str, spy: str) -> tuple[list[float], list[float]]:
    """How long the spy waited for what the victim had asked, and for what nobody had."""
    rng = random.Random(7)
    engine = tiny_engine(kv_cache_tokens=40_000)
    times: dict[bool, list[float]] = {True: [], False: []}
    try:
        await asked(engine, 10_000, "warm")
        kinds = [True, False] * NUM_EACH
        rng.shuffle(kinds)
        for number, is_seen in enumerate(kinds):
            # Somebody is answered right before either kind, so that both find the processor equally warm.
            await asked(engine, number if is_seen else 20_000 + number, victim)
            times[is_seen].append(await asked(engine, number, spy))
    finally:
        await engine.shutdown()
    return times[True], times[False]


async def asked(engine: InferenceEngine, number: int, salt: str) -> float:
    began = time.perf_counter()
    await engine.query(
        picture(number), QUESTION, settings={"temperature": 0, "max_tokens": 1}, cache_salt=salt
    )
    return time.perf_counter() - began


def rank_deviation(left: list[float], right: list[float]) -> float:
    """Mann and Whitney's U in standard deviations from its mean, which it has if both are of one kind."""
    wins = sum((a > b) + (a == b) / 2 for a in left for b in right)
    num_pairs = len(left) * len(right)
    return (wins - num_pairs / 2) / math.sqrt(num_pairs * (len(left) + len(right) + 1) / 12)
