"""`InferenceEngine` and adapters: by keyword, listed as they are now, and Moondream's key kept secret."""

import asyncio
import json
import logging
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from adapter_folder import save_adapter
from tiny_folder import save_tiny

from kestrel_core import InferenceEngine, RuntimeConfig, UnknownAdapter
from kestrel_core.moondream.checkpoint.weights import load_config

KEY = "a-secret-key-of-moondreams"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny(tmp_path_factory.mktemp("model"), generation=3)


@pytest.fixture
def moondream(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """A service that knows no adapter, and the keys that it was sent."""
    keys: list[str] = []

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            keys.append(self.headers["X-Moondream-Auth"])
            self.send_error(404)

        def log_message(self, *values: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    monkeypatch.setenv("MOONDREAM_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    yield keys
    server.shutdown()
    thread.join()
    server.server_close()


def config(model: Path, **more: Any) -> RuntimeConfig:
    return RuntimeConfig(model_path=str(model), device="cpu", **more)


@pytest.mark.parametrize("by_environment", [False, True])
def test_moondreams_key_is_sent_to_moondream_and_told_to_nobody(
    model: Path,
    moondream: list[str],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    by_environment: bool,
) -> None:
    if by_environment:
        monkeypatch.setenv("MOONDREAM_API_KEY", KEY)
    caplog.set_level(logging.DEBUG)

    async def ask() -> str:
        engine = await InferenceEngine.create(config(model), api_key=None if by_environment else KEY)
        try:
            with pytest.raises(UnknownAdapter) as raised:
                await engine.query(None, "what?", adapter="01JX@200")
            about = (await engine.about()).to_json()
            built = engine._engine
            told = (str(raised.value), repr(raised.value.__cause__), about, built.in_use(), engine.metrics())
            return json.dumps(told, default=repr) + repr(built)
        finally:
            await engine.shutdown()

    told = asyncio.run(ask())
    assert moondream == [KEY]
    assert "01JX@200" in told and KEY not in told + caplog.text


def test_without_a_key_moondream_is_not_asked(model: Path, moondream: list[str]) -> None:
    async def ask() -> None:
        engine = await InferenceEngine.create(config(model, adapters="nowhere"))
        try:
            with pytest.raises(UnknownAdapter):
                await engine.query(None, "what?", adapter="01JX@200")
        finally:
            await engine.shutdown()

    asyncio.run(ask())
    assert moondream == []


def test_an_adapter_is_a_keyword_and_is_listed_while_it_is_there(model: Path, tmp_path: Path) -> None:
    shape = load_config(model, None).text
    save_adapter(tmp_path / "one.safetensors", shape, 1)

    async def ask() -> None:
        engine = await InferenceEngine.create(config(model, adapters=str(tmp_path)))
        sampling: Any = {"temperature": 0.0, "max_tokens": 8}
        try:
            assert (await engine.about()).adapters == ("one",)
            plain = await engine.query(None, "what?", **sampling)
            by_keyword = await engine.query(None, "what?", adapter="one", **sampling)
            by_setting = await engine.query(None, "what?", settings={"adapter": "one"} | sampling)
            assert by_keyword.output == by_setting.output != plain.output
            save_adapter(tmp_path / "two.safetensors", shape, 2)
            (tmp_path / "one.safetensors").unlink()
            async with asyncio.timeout(60):
                while (await engine.about()).adapters != ("two",):
                    await asyncio.sleep(0.01)
            with pytest.raises(UnknownAdapter, match="two"):
                await engine.query(None, "what?", adapter="one")
        finally:
            await engine.shutdown()

    asyncio.run(ask())
