"""Adapters in the gateway: how they are named, listed and refused."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from gateway_replicas import run
from gateway_server import FakeUpstream, Running, failing, running

from kestrel_core.protocol.about import About
from kestrel_core.protocol.errors import AdapterUnreachable, BadAdapter, KestrelError, UnknownAdapter
from kestrel_gateway.upstream.probing import ABOUT_S, keep_probing
from kestrel_gateway.upstream.replica import Replica
from kestrel_gateway.upstream.replicas import Replicas

ABOUT = About("moondream-tiny", "1.0", 2048, (), ("french", "german"))
QUERY = {"question": "What?"}


@pytest.fixture
def gateway() -> Iterator[Running]:
    with running() as it:
        it.house.upstream.replicas[0].about = ABOUT
        yield it


def chat(**more: Any) -> dict[str, Any]:
    return {"model": "moondream", "messages": [{"role": "user", "content": "What?"}], **more}


def command(text: str, model: str) -> dict[str, Any]:
    return {"model": model, "messages": [{"role": "user", "content": text}]}


OPENAI = [
    ("/v1/chat/completions", chat()),
    ("/v1/completions", {"prompt": "What?"}),
    ("/v1/responses", {"input": "What?"}),
]


@pytest.mark.parametrize("adapter", ["french", "french@7", "org/name", "org/name@0a1b2c", "01JX@200"])
@pytest.mark.parametrize(("path", "body"), [("/v1/query", QUERY), *OPENAI])
def test_everything_behind_the_first_slash_of_the_model_is_the_adapter(
    gateway: Running, path: str, body: dict[str, Any], adapter: str
) -> None:
    status, _, _ = gateway.post(path, body | {"model": f"moondream-tiny/{adapter}"})
    assert (status, gateway.upstream.asked[0].settings.adapter) == (200, adapter)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/query", QUERY | {"model": "moondream/french", "adapter": "german"}),
        ("/v1/query", QUERY | {"model": "moondream/french", "settings": {"adapter": "german"}}),
        (
            "/v1/chat/completions",
            command('/caption {"adapter": "german"}', "moondream/french"),
        ),
    ],
)
def test_two_adapters_in_one_request_are_refused(gateway: Running, path: str, body: dict[str, Any]) -> None:
    status, answer, _ = gateway.post(path, body)
    assert (status, answer["error"]["param"]) == (400, "model")
    assert 'model names the adapter "french"' in answer["error"]["message"]
    assert gateway.upstream.asked == []


@pytest.mark.parametrize("fields", [{"adapter": "french"}, {"settings": {"adapter": "french"}}])
def test_the_same_adapter_may_be_named_twice(gateway: Running, fields: dict[str, Any]) -> None:
    status, _, _ = gateway.post("/v1/query", QUERY | {"model": "moondream/french"} | fields)
    assert (status, gateway.upstream.asked[0].settings.adapter) == (200, "french")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("path", "body"), OPENAI)
def test_an_adapter_that_the_server_does_not_know_is_a_model_that_was_not_found(
    gateway: Running, path: str, body: dict[str, Any], stream: bool
) -> None:
    gateway.upstream.scripts = [failing(UnknownAdapter("there is no adapter x"))]
    status, answer, _ = gateway.post(path, body | {"model": "moondream/x", "stream": stream})
    error = answer["error"]
    assert (status, error["code"], error["param"]) == (404, "model_not_found", "model")
    assert error["message"] == "there is no adapter x"


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (UnknownAdapter("no x"), 404, "unknown_adapter"),
        (BadAdapter("its rank is 64"), 400, "bad_adapter"),
        (AdapterUnreachable("not on this machine yet"), 503, "adapter_unreachable"),
    ],
)
def test_a_skills_path_names_the_adapters_own_error(
    gateway: Running, error: KestrelError, status: int, code: str
) -> None:
    gateway.upstream.scripts = [failing(error)]
    found, answer, _ = gateway.post("/v1/query", QUERY | {"adapter": "x"})
    assert (found, answer["error"]["code"], answer["error"]["param"]) == (status, code, "adapter")
    assert gateway.get("/readyz")[0] == 200, "the server itself is well"


def test_a_listed_adapter_has_a_card_of_its_own(gateway: Running) -> None:
    _, listed, _ = gateway.get("/v1/models")
    assert [(card["id"], card["parent"], card["root"]) for card in listed["data"]] == [
        ("moondream-tiny", None, "moondream-tiny"),
        ("moondream-tiny/french", "moondream-tiny", "moondream-tiny"),
        ("moondream-tiny/german", "moondream-tiny", "moondream-tiny"),
    ]
    assert gateway.get("/v1/models/moondream-tiny/german")[1] == listed["data"][2]
    assert gateway.get("/v1/models/moondream-tiny/italian")[0] == 404


class Changing(FakeUpstream):
    """Says what it is, and counts how often it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.now, self.num_told = ABOUT, 0

    async def about(self) -> About:
        self.num_told += 1
        return self.now


def test_what_a_busy_replica_says_about_itself_is_read_again_and_not_too_often() -> None:
    now = [100.0]
    fake = Changing()
    replica = Replica("one", fake, clock=lambda: now[0])
    replicas = Replicas([replica])

    async def look() -> None:
        """Let the one who looks do so once."""
        replica.has_answered()
        replica.doubted.set()
        while replica.doubted.is_set():
            await asyncio.sleep(0)

    async def watch() -> None:
        watching = asyncio.ensure_future(keep_probing(replica))
        while not replica.is_well:
            await asyncio.sleep(0)
        fake.now = replace(ABOUT, adapters=("french", "german", "italian"))
        now[0] += ABOUT_S - 0.1
        await look()
        assert (replicas.known, fake.num_told) == (ABOUT, 1)
        now[0] += 0.2
        await look()
        while replicas.known == ABOUT:
            await asyncio.sleep(0)
        assert (replicas.known, fake.num_told) == (fake.now, 2)
        watching.cancel()

    run(watch())


def test_what_is_told_comes_from_a_replica_that_is_well() -> None:
    gone, there = Replica("gone", Changing()), Replica("there", Changing())
    gone.about, there.about = ABOUT, replace(ABOUT, adapters=("italian",))
    replicas = Replicas([gone, there])
    assert replicas.known == gone.about
    there.is_found_well()
    assert replicas.known == there.about
