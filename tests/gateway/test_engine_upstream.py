"""An engine in this process answers behind the gateway just as a Triton does."""

import asyncio
import base64
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from gateway_server import Running, running
from tiny_folder import save_tiny
from triton_server import picture

from kestrel_core.config import RuntimeConfig
from kestrel_core.engine import InferenceEngine
from kestrel_gateway.upstream.probing import probe

URL = "data:image/png;base64," + base64.b64encode(picture()).decode()


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Running]:
    folder = save_tiny(tmp_path / "tiny")
    config = RuntimeConfig(model_path=str(folder), device="cpu", max_batch_size=4)
    engine = asyncio.run(InferenceEngine.create(config))
    try:
        with running(engine) as it:
            asyncio.run(probe(it.house.upstream.replicas[0]))
            yield it
    finally:
        asyncio.run(engine.shutdown())


def test_it_answers_whole_and_in_pieces(gateway: Running) -> None:
    body = {"image_url": URL, "question": "What?", "settings": {"max_tokens": 4, "temperature": 0}}
    status, whole, _ = gateway.post("/v1/query", body)
    assert status == 200 and whole["metrics"]["output_tokens"] <= 4
    events = gateway.events("/v1/query", {**body, "stream": True})
    assert "".join(event["chunk"] for event in events) == whole["answer"] == events[-1]["answer"]
    assert gateway.get("/readyz")[0] == 200


def test_many_at_once_leave_nothing_open(gateway: Running) -> None:
    def ask(number: int) -> None:
        url = "data:image/png;base64," + base64.b64encode(picture(number % 3)).decode()
        body = {"image_url": url, "settings": {"max_tokens": 4}, "stream": number % 2 == 0}
        assert gateway.post("/v1/caption", body)[0] == 200

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert gateway.house.upstream.replicas[0].num_open == 0
