"""What a server is, asked of the server itself, of a client and of an engine: they all say the same."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tiny import tiny_engine
from triton_server import Served, refusal

from kestrel_client import AsyncClient, Client
from kestrel_core import InferenceEngine, InvalidRequest, RuntimeConfig
from kestrel_core.protocol.about import About
from kestrel_core.protocol.messages import Request


def test_an_engine_says_what_it_is_without_a_step() -> None:
    async def scenario() -> None:
        engine = tiny_engine(3, max_context=96)
        about = await engine.about()
        assert (about.model, about.max_context) == (RuntimeConfig().model, 96)
        stream = await engine.open(Request("about", stream=True))
        assert [chunk async for chunk in stream] == []
        assert (await stream.result()).output == {"about": about.to_json()}
        with pytest.raises(InvalidRequest, match="nothing but SKILL"):
            await engine.ask("about", question="who?")
        assert engine.metrics()["steps"] == 0
        await engine.shutdown()

    asyncio.run(scenario())


@pytest.mark.triton
def test_a_server_says_what_it_is(server: Served, model: Path) -> None:
    [document] = server.ask(SKILL="about", request_id="r-1")
    assert (document["request_id"], document["finish_reason"]) == ("r-1", "stop")
    assert document["about"]["model"] == model.name
    skills = {skill["name"]: skill for skill in document["about"]["skills"]}
    assert skills["detect"]["image"] == "required" and not skills["detect"]["streams"]
    [wanted] = skills["detect"]["arguments"]
    assert (wanted["name"], wanted["kind"], wanted["required"]) == ("object", "string", True)
    assert server.post({"SKILL": "about", "id": "r-1"}) == (200, document)


@pytest.mark.triton
def test_its_clients_and_an_engine_say_the_same(server: Served, model: Path) -> None:
    url = f"127.0.0.1:{server.grpc_port}"

    async def asked() -> tuple[About, About]:
        config = RuntimeConfig(model_path=str(model), device="cpu", max_batch_size=8)  # as the server's
        engine = await InferenceEngine.create(config)
        async with AsyncClient(url) as client:
            answers = await client.about(), await engine.about()
        await engine.shutdown()
        return answers

    with Client(url) as client:
        over_grpc, here = asyncio.run(asked())
        assert client.about() == over_grpc == here


@pytest.mark.triton
@pytest.mark.parametrize("more", [{"QUESTION": "who?"}, {"MAX_TOKENS": 3}])
def test_a_server_refuses_to_be_asked_more_than_that(server: Served, more: dict[str, Any]) -> None:
    status, answer = server.post({"SKILL": "about", **more})
    assert status == 400 and "about takes nothing but SKILL" in refusal(answer)
