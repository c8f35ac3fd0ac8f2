"""Adapters on files, by the public API, over tiny models: each request is answered as it would be alone."""

import asyncio
import random
import shutil
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from random_adapters import random_adapter
from tiny import tiny_config, tiny_engine

from kestrel_core.engine import InferenceEngine
from kestrel_core.moondream.checkpoint.adapter_writing import write_moondream, write_peft
from kestrel_core.moondream.lora import TARGETS, Adapter, Target
from kestrel_core.protocol.errors import BadAdapter, UnknownAdapter

pytestmark = pytest.mark.usefixtures("one_thread")

OWN: dict[int, tuple[Target, ...]] = {  # what the generation's own format has a place for
    2: ("qkv", "fc1", "input_proj", "fc2"),
    3: ("fc1", "fc2", "expert_fc1", "expert_fc2"),
}
SOUND = ("one", "two.pt", "folder/three", "peft", "other-peft", "copy of one")
BROKEN = ("half", "not numbers", "another model's", "too large")
MAX_RANK = 8


def write_adapters(folder: Path, generation: int) -> Path:
    """Sound ones in every format, one of them twice, and broken ones."""
    text = tiny_config(generation, vocab_size=300).text
    other = tiny_config(5 - generation, vocab_size=300).text

    def own(rank: int, seed: int) -> Adapter:
        return random_adapter(text, rank, OWN[generation], seed)

    (folder / "folder").mkdir(parents=True)
    write_moondream(own(4, 1), text, folder / "one.safetensors")
    write_moondream(own(8, 2), text, folder / "two.pt")
    write_moondream(own(2, 3), text, folder / "folder" / "three.safetensors")
    peft = [target for target in TARGETS if target != "input_proj"]
    write_peft(random_adapter(text, 4, peft, 4), text, folder / "peft", "a base")
    write_peft(random_adapter(text, 1, ("qkv",), 5), text, folder / "other-peft", "a base")
    shutil.copy(folder / "one.safetensors", folder / "copy of one.safetensors")
    whole = (folder / "one.safetensors").read_bytes()
    (folder / "half.safetensors").write_bytes(whole[: len(whole) // 2])
    poisoned = own(4, 6)
    next(iter(poisoned.blocks[0].values())).a[..., 0, 0] = torch.nan
    write_moondream(poisoned, text, folder / "not numbers.safetensors")
    write_moondream(
        random_adapter(other, 4, OWN[5 - generation], 7), other, folder / "another model's.safetensors"
    )
    write_moondream(own(2 * MAX_RANK, 8), text, folder / "too large.safetensors")
    return folder


def engine_with(folder: Path, generation: int, **options: Any) -> InferenceEngine:
    return tiny_engine(generation, adapters=str(folder), max_adapter_rank=MAX_RANK, **options)


def picture(seed: int) -> Any:
    return np.random.default_rng(seed).integers(0, 256, (30, 50, 3), dtype=np.uint8)


def some_requests(count: int, seed: int) -> list[dict[str, Any]]:
    """Few pictures and questions, so that many are asked under several adapters."""
    rng = random.Random(seed)
    requests: list[dict[str, Any]] = []
    for _ in range(count):
        skill, arguments, limit = rng.choice(
            (
                ("query", {"question": "what?"}, {"max_tokens": rng.choice((1, 8, 20))}),
                ("caption", {"length": "short"}, {"max_tokens": 12}),
                ("detect", {"object": "tail"}, {"max_objects": 2}),
            )
        )
        settings: dict[str, Any] = rng.choice(({"temperature": 0}, {"temperature": 1.0, "seed": 3}))
        adapter = rng.choice((None, *SOUND))
        image = rng.randrange(2)
        settings = {**settings, **limit, **({} if adapter is None else {"adapter": adapter})}
        requests.append({"skill": skill, "image": image, "arguments": arguments, "settings": settings})
    return requests


async def answer(engine: InferenceEngine, asked: dict[str, Any], **more: Any) -> dict[str, Any]:
    result = await engine.submit(**{**asked, "image": picture(asked["image"]), **more})
    output: dict[str, Any] = result.output
    return output


def answers_alone(folder: Path, generation: int, requests: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """One after another, nothing shared."""

    async def play() -> dict[str, dict[str, Any]]:
        engine = engine_with(folder, generation, max_batch_size=1, prefix_cache=False, max_adapters=1)
        known: dict[str, dict[str, Any]] = {}
        for asked in requests:
            if repr(asked) not in known:
                known[repr(asked)] = await answer(engine, asked)
        await engine.shutdown()
        return known

    return asyncio.run(play())


@pytest.mark.parametrize("generation", [2, 3])
def test_a_storm_with_adapters_answers_each_as_if_it_were_alone(generation: int, tmp_path: Path) -> None:
    """Two places for five adapters, hardly room for KV, broken files, unknown names, callers that leave."""
    folder = write_adapters(tmp_path / "adapters", generation)
    requests = some_requests(100, seed=generation)
    expected = answers_alone(folder, generation, requests)
    before = set(threading.enumerate())
    engine = engine_with(
        folder, generation, max_adapters=2, max_batch_size=6, max_context=64, kv_cache_tokens=70
    )
    ends: list[str] = []

    async def one(asked: dict[str, Any], rng: random.Random) -> None:
        fate = rng.choice(("patient", "patient", "patient", "leaving", "broken", "unknown"))
        other = {**asked, "settings": {**asked["settings"], "adapter": rng.choice(BROKEN)}}
        if fate == "broken":
            with pytest.raises(BadAdapter):
                await answer(engine, other)
        elif fate == "unknown":
            other["settings"]["adapter"] = "nobody"
            with pytest.raises(UnknownAdapter):
                await answer(engine, other)
        elif fate == "leaving":
            task = asyncio.create_task(answer(engine, asked))
            for _ in range(rng.choice((1, 5, 50))):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        else:
            assert await answer(engine, asked) == expected[repr(asked)], asked
        ends.append(fate)

    async def client(mine: list[dict[str, Any]], rng: random.Random) -> None:
        await asyncio.gather(*(one(asked, rng) for asked in mine))

    threads = [
        threading.Thread(target=lambda at=at: asyncio.run(client(requests[at::3], random.Random(at))))
        for at in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    asyncio.run(engine.shutdown())
    assert len(ends) == 100 and set(ends) == {"patient", "leaving", "broken", "unknown"}
    scheduler, metrics = engine._engine.loop.scheduler, engine.metrics()
    scheduler.check()  # nothing runs, so nothing may be pinned
    assert all(metrics[name] == 0 for name in ("queued", "running", "pages_used", "adapter_waiting"))
    assert metrics["pages_free"] + metrics["pages_cached"] == scheduler.pool.num_pages - 1
    assert metrics["adapter_evictions"] > 0 and metrics["adapter_loads"] > 2
    assert set(threading.enumerate()) <= before


@pytest.mark.parametrize("generation", [2, 3])
def test_adapters_change_the_answers_of_those_who_ask_for_them(generation: int, tmp_path: Path) -> None:
    folder = write_adapters(tmp_path, generation)
    asked = {"skill": "caption", "image": 0, "arguments": {}}
    settings = {"temperature": 0, "max_tokens": 12}

    async def play() -> list[str]:
        engine, plain = engine_with(folder, generation), tiny_engine(generation)
        said = [await answer(plain, {**asked, "settings": settings})]
        said += [await answer(engine, {**asked, "settings": settings})]
        for name in ("one", "two", "folder/three", "peft", "copy of one"):
            said.append(await answer(engine, {**asked, "settings": {**settings, "adapter": name}}))
        assert engine.metrics()["adapter_loads"] == 4, "a copy is the same adapter"
        await engine.shutdown()
        await plain.shutdown()
        return [output["caption"] for output in said]

    plain, without, one, *others, copied = asyncio.run(play())
    assert without == plain and copied == one
    assert len({plain, one, *others}) == 5


def test_an_engine_tells_the_adapters_that_there_are_now(tmp_path: Path) -> None:
    text = tiny_config(2, vocab_size=300).text
    engine, without = engine_with(tmp_path, 2)._engine, tiny_engine(2)._engine
    assert engine.about.adapters == () == without.about.adapters
    assert engine.in_use()["adapters"].startswith("8 x rank 8, ") and without.in_use()["adapters"] == "off"
    assert engine.adapters is not None
    engine.adapters._local._clock = lambda: float("inf")  # a listing is kept for a second
    write_moondream(random_adapter(text, 2, OWN[2]), text, tmp_path / "new.safetensors")
    assert engine.about.adapters == ("new",)
    assert engine.metrics()["adapter_slots"] == 8 and without.metrics()["adapter_slots"] == 0
    for one in (engine, without):
        one.close()


def test_without_a_place_to_take_them_from_every_adapter_is_unknown() -> None:
    async def play() -> None:
        engine = tiny_engine(2)
        with pytest.raises(UnknownAdapter):
            await engine.caption(picture(0), settings={"adapter": "one"})
        await engine.shutdown()

    asyncio.run(play())
