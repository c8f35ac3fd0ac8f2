"""A network that delays, cuts and corrupts, before the gateway and behind it: right answers, or errors."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from attacks.lossy import Loss, lossy
from attacks.stack import Stack
from gateway_process import gateway_process
from triton_server import Served, served, until

from kestrel_tools.bench.attacks.doors import Target
from kestrel_tools.bench.attacks.neighbour import Neighbour, Seen

pytestmark = [pytest.mark.triton, pytest.mark.attacks]

LOSSES = {
    "delayed": Loss(delay_s=0.05),
    "cut in the headers": Loss(cut_after=60),
    "cut in the body": Loss(cut_after=9_000),
    "refused": Loss(refuses=True),
}
MANY = 20


async def ask_many(neighbour: Neighbour) -> Seen:
    seen = Seen()
    await asyncio.gather(*(neighbour.ask(number, seen) for number in range(MANY)))
    return seen


@pytest.mark.parametrize("kind", LOSSES)
def test_before_the_gateway_an_answer_that_arrives_is_right(shared: Stack, kind: str) -> None:
    before = shared.footprint()
    with lossy(shared.user.port, LOSSES[kind]) as proxy:
        neighbour = Neighbour(replace(shared.user, port=proxy.port))
        neighbour.known = shared.neighbour.known
        seen = asyncio.run(ask_many(neighbour))
    assert (seen.wrong, seen.hung) == (0, 0)
    assert (len(seen.latencies_ms) == MANY) is (kind == "delayed")
    with shared.undisturbed():
        pass
    shared.await_idle(before, slack=4)


@pytest.mark.parametrize("every", [7, 101, 1009])
def test_what_arrives_changed_harms_nobody(shared: Stack, every: int) -> None:
    """What was changed is another request, so no answer is right or wrong; it only has to end."""
    before, processes = shared.footprint(), shared.processes()
    with lossy(shared.user.port, Loss(corrupt_every=every)) as proxy, shared.undisturbed():
        neighbour = Neighbour(replace(shared.user, port=proxy.port))
        neighbour.known = shared.neighbour.known
        assert asyncio.run(ask_many(neighbour)).hung == 0
    assert shared.processes() == processes
    shared.await_idle(before, slack=4)


@pytest.fixture(scope="module")
def triton(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Without a gateway of its own."""
    with served(tmp_path_factory.mktemp("triton") / "log", "--demo") as it:
        yield it


def losing(triton: Served, log: Path, loss: Loss) -> Seen:
    """A sound network, then one with this loss, then a sound one again, all between gateway and Triton."""
    with (
        lossy(triton.grpc_port, Loss()) as proxy,
        gateway_process(log, f"--upstream=127.0.0.1:{proxy.port}", "--limit=timeout_s=20") as gateway,
    ):
        neighbour = Neighbour(Target("127.0.0.1", gateway.port))
        asyncio.run(neighbour.learn())
        proxy.loss.__dict__.update(loss.__dict__)
        seen = asyncio.run(ask_many(neighbour))
        proxy.loss.__dict__.update(Loss().__dict__)
        until(lambda: gateway.status_of("/readyz") == 200, 60)
        healed = asyncio.run(ask_many(neighbour))
    assert len(healed.latencies_ms) == MANY, healed
    return seen


BEHIND = {
    "delayed": Loss(delay_s=0.02),
    "cut": Loss(cut_after=20_000),
    "cut at once": Loss(cut_after=10),
    "changed": Loss(corrupt_every=1009),
}


@pytest.mark.parametrize("kind", BEHIND)
def test_behind_the_gateway_an_answer_that_arrives_is_right(
    triton: Served, tmp_path: Path, kind: str
) -> None:
    seen = losing(triton, tmp_path / "log", BEHIND[kind])
    assert seen.hung == 0
    if kind != "changed":
        assert seen.wrong == 0
    until(triton.is_idle, 30)
    assert triton.is_ready()
