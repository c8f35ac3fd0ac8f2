"""More at once than may wait: each is answered right or told to wait, and others are answered.

Of 2,000 requests at once to Triton's own HTTP port 569 were never answered.
"""

import asyncio
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from attacks.flood import WAIT, Flood
from attacks.stack import Stack
from triton_server import until

pytestmark = pytest.mark.triton

# Over HTTP and over gRPC.
MANY = (350, 350)
VERY_MANY = (2000, 2000)


@contextmanager
def open_files() -> Iterator[None]:
    """As many as this process may have: each connection takes one here too."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def send(flood: Flood, numbers: tuple[int, int]) -> str:
    """Raises if one of them ended in any other way. Gives the counts."""
    began = time.monotonic()
    found = asyncio.run(flood.sent(*numbers))
    for counts, number in zip(found, numbers, strict=True):
        assert counts.total() == number
        assert {*counts} <= {"right", WAIT}, found
    together = found[0] + found[1]
    assert together["right"] and together[WAIT], found  # otherwise it was no flood
    return f"HTTP {dict(found[0])}, gRPC {dict(found[1])} in {time.monotonic() - began:.1f} s"


def test_of_seven_hundred_at_once_each_is_answered_right_or_told_to_wait(shared: Stack) -> None:
    flood, before = Flood(shared), shared.processes()
    asyncio.run(flood.learn())
    with shared.undisturbed():
        send(flood, MANY)
    until(shared.served.is_idle, 60)
    assert shared.processes() == before


@pytest.mark.attacks
def test_of_two_thousand_over_http_and_as_many_over_grpc_none_is_lost(shared: Stack) -> None:
    flood, processes = Flood(shared), shared.processes()
    asyncio.run(flood.learn())
    with open_files():
        send(flood, MANY)  # pools of threads have grown by then
        until(shared.served.is_idle, 60)
        before = shared.footprint()
        with shared.undisturbed() as seen:
            told = send(flood, VERY_MANY)
        shared.await_idle(before, slack=4)  # a thread or two of a pool come and go
    print(f"{told}; a user meanwhile: {seen.row()}; before {before}, after {shared.footprint()}")
    assert shared.processes() == processes
