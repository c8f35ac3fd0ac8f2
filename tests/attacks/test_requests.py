"""Every request that once did harm, sent to the real stack: it ends as it must, and no user notices it."""

import asyncio

import pytest
from attacks.stack import Stack
from triton_server import until

from kestrel_tools.bench.attacks.requests import ATTACKS, Attack

pytestmark = pytest.mark.triton

LARGE = ("64 MB", "300 MB", "700 at once")  # some seconds each
TIMES = 2
MAX_GROWTH = 200 * 2**20  # after requests of 64 and of 300 MB


def cases(wanted: bool) -> list[object]:
    return [
        pytest.param(attack, id=attack.name)
        for attack in ATTACKS
        if not attack.needs_grpc and wanted is any(words in attack.name for words in LARGE)
    ]


async def at_once(attack: Attack, stack: Stack) -> set[str]:
    return set(await asyncio.gather(*(attack(stack.attacker) for _ in range(TIMES * attack.clients))))


@pytest.mark.parametrize("attack", cases(False))
def test_an_attack_ends_as_it_must_and_disturbs_nobody(shared: Stack, attack: Attack) -> None:
    before = shared.processes()
    with shared.undisturbed():
        assert asyncio.run(at_once(attack, shared)) <= attack.right
    assert shared.processes() == before


@pytest.mark.attacks
@pytest.mark.parametrize("attack", cases(True))
def test_a_large_attack_ends_as_it_must_and_disturbs_nobody(shared: Stack, attack: Attack) -> None:
    before, size = shared.processes(), shared.memory()
    with shared.undisturbed():
        assert asyncio.run(at_once(attack, shared)) <= attack.right
    assert shared.processes() == before
    until(lambda: shared.memory() - size < MAX_GROWTH, 30)
