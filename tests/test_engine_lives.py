"""Engines that nobody waits for any more, and programs that end without closing theirs."""

import asyncio
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from tiny_folder import save_tiny

from kestrel_core import InferenceEngine, RuntimeConfig
from kestrel_core import engine as engines
from kestrel_core.build import build_engine

WITHOUT_AN_END = """
import asyncio
from kestrel_core import InferenceEngine, RuntimeConfig

async def main():
    engine = await InferenceEngine.create(RuntimeConfig(model="moondream-tiny", device="cpu", threads=1))
    stream = await engine.query(None, "Tell me a story", stream=True, max_tokens=900, temperature=5.0, seed=1)
    async for chunk in stream:
        raise ValueError("a fault of the program")

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny(tmp_path_factory.mktemp("model"), generation=3)


@pytest.mark.parametrize("is_built", [False, True])
def test_whoever_is_cancelled_while_an_engine_is_built_leaves_none_behind(
    model: Path, monkeypatch: pytest.MonkeyPatch, is_built: bool
) -> None:
    """Whether loading heeds that nobody waits, or is over just then."""
    before = set(threading.enumerate())
    begun, left, ended = threading.Event(), threading.Event(), threading.Event()

    def build(config: Any, skills: Any, progress: Any, *more: Any) -> Any:
        try:
            begun.set()
            assert left.wait(60)
            return build_engine(config, skills, None if is_built else progress, *more[1:])
        finally:
            ended.set()

    async def play() -> None:
        monkeypatch.setattr(engines, "build_engine", build)
        creating = asyncio.ensure_future(
            InferenceEngine.create(RuntimeConfig(model_path=str(model), device="cpu"))
        )
        await asyncio.to_thread(begun.wait)
        creating.cancel()
        with pytest.raises(asyncio.CancelledError):
            await creating
        left.set()
        await asyncio.to_thread(ended.wait)

    asyncio.run(play())
    for thread in set(threading.enumerate()) - before:
        thread.join(10)
        assert not thread.is_alive(), thread


def test_a_program_that_ends_in_the_midst_of_an_answer_ends_as_it_would_without_one() -> None:
    """Torch's thread, coming back while Python ended, aborted it."""
    for _ in range(2):
        ran = subprocess.run(
            [sys.executable, "-c", WITHOUT_AN_END], capture_output=True, text=True, timeout=120
        )
        assert ran.returncode == 1, ran.stderr
        assert ran.stderr.strip().splitlines()[-1] == "ValueError: a fault of the program"
