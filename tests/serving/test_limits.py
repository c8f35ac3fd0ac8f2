"""A server that answers one request at a time and lets two wait: who is refused, and who is next."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from triton_server import Served, ask, refusal, repository_with, served, stream, until

pytestmark = pytest.mark.triton

LONG: dict[str, Any] = {"SKILL": "query", "QUESTION": "all of it", "TEMPERATURE": 0.0, "MAX_TOKENS": 4000}
SHORT: dict[str, Any] = {"SKILL": "query", "QUESTION": "a word", "TEMPERATURE": 0.0, "MAX_TOKENS": 2}


@pytest.fixture(scope="module")
def narrow(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("narrow")
    parameters = {"model_path": str(model), "max_batch_size": "1", "max_queue": "9"}
    repository = repository_with(folder, parameters)
    with served(folder / "log", f"--model-repository={repository}", KESTREL_MAX_QUEUE="2") as it:
        yield it


@asynccontextmanager
async def occupied(server: Served, client: Any) -> AsyncIterator[None]:
    """While a long answer is being streamed. Leaving cancels it."""
    answers = stream(client, STREAM=True, **LONG)
    async for _ in answers:
        yield
        break
    await answers.aclose()


async def attempt(client: Any, **inputs: Any) -> Any:
    """The answer, or the error in its place."""
    return (await asyncio.gather(ask(client, **inputs), return_exceptions=True))[0]


def waiting(server: Served, number: int) -> None:
    until(lambda: server.metric("kestrel_queued_requests") == number)


def test_a_full_queue_refuses_at_once_and_loses_nobody(narrow: Served) -> None:
    async def run() -> tuple[Any, float, list[Any]]:
        async with narrow.client() as client:
            async with occupied(narrow, client):
                queued = [asyncio.create_task(ask(client, **SHORT)) for _ in range(2)]
                await asyncio.to_thread(waiting, narrow, 2)
                refused = await attempt(client, **SHORT)
                still = await asyncio.to_thread(narrow.metric, "kestrel_queued_requests")
            return refused, still, await asyncio.gather(*queued)

    refused, still, answers = asyncio.run(run())
    assert refusal(refused) == "UNAVAILABLE: 2 requests wait, and no more may (max_queue); try again later"
    assert still == 2, "it was told while they waited"
    assert [answer[-1]["finish_reason"] for answer in answers] == ["length", "length"]


def test_a_lower_priority_number_is_served_first(narrow: Served) -> None:
    async def run() -> list[str]:
        order: list[str] = []

        async def one(client: Any, name: str, priority: int) -> None:
            await ask(client, PRIORITY=priority, **SHORT)
            order.append(name)

        async with narrow.client() as client:
            async with occupied(narrow, client):
                late = asyncio.create_task(one(client, "patient", 1))
                await asyncio.to_thread(waiting, narrow, 1)
                soon = asyncio.create_task(one(client, "urgent", -1))
                await asyncio.to_thread(waiting, narrow, 2)
            await asyncio.gather(late, soon)
        return order

    assert asyncio.run(run()) == ["urgent", "patient"]


def test_who_waits_and_goes_gives_up_the_place(narrow: Served) -> None:
    async def run() -> None:
        async with narrow.client() as client, occupied(narrow, client):
            gone = asyncio.create_task(ask(client, **SHORT))
            await asyncio.to_thread(waiting, narrow, 1)
            gone.cancel()
            await asyncio.gather(gone, return_exceptions=True)
            await asyncio.to_thread(waiting, narrow, 0)
            assert await asyncio.to_thread(narrow.metric, "kestrel_running_requests") == 1

    asyncio.run(run())


def test_the_slot_of_one_who_goes_is_the_next_ones_at_once(narrow: Served) -> None:
    async def run() -> None:
        async with narrow.client() as client:
            async with occupied(narrow, client):
                following = asyncio.create_task(ask(client, **SHORT))
                await asyncio.to_thread(waiting, narrow, 1)
            await following

    until(narrow.is_idle)
    before = narrow.num_ended("cancelled"), narrow.num_ended("length")
    asyncio.run(run())
    until(narrow.is_idle)
    ended = narrow.num_ended("cancelled") - before[0], narrow.num_ended("length") - before[1]
    assert ended == (1, 1), "the long answer was not waited for"


def test_a_deadline_also_passes_while_waiting(narrow: Served) -> None:
    async def run() -> Any:
        async with narrow.client() as client, occupied(narrow, client):
            return await attempt(client, timeout_us=200_000, **SHORT)

    message = refusal(asyncio.run(run()))
    assert message == "CANCELLED: deadline_passed: the request's deadline passed while it was waiting"
