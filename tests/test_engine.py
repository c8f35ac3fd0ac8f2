"""The public API, over a scripted runtime where the moment matters, and tiny models where the answer does."""

import asyncio
import random
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from fakes import FakeEngine
from tiny import tiny_engine

from kestrel_core.build import Engine
from kestrel_core.config import RuntimeConfig
from kestrel_core.engine import EngineStream, InferenceEngine
from kestrel_core.loop.sequence import GO_ON, Outcome, Prompt, Reply
from kestrel_core.loop.step import Kind, Readout, Sample
from kestrel_core.protocol.arguments import Argument
from kestrel_core.protocol.errors import (
    BadImage,
    Cancelled,
    EngineFailed,
    InvalidRequest,
    KestrelError,
    Overloaded,
    PromptTooLong,
)
from kestrel_core.protocol.messages import EngineResult, Request
from kestrel_core.runtime.vision import image_encoder
from kestrel_core.skills.registry import builtin_skills
from kestrel_core.skills.spec import Language, SkillSpec

pytestmark = pytest.mark.usefixtures("one_thread")

GREEDY = {"temperature": 0}


class ScriptedEngine(InferenceEngine):
    """The public API over a `FakeEngine` whose thread turns."""

    def __init__(self, **options: Any) -> None:
        self.fake = FakeEngine(threads=True, **options)
        super().__init__(cast(Engine, self))

    @property
    def loop(self) -> Any:
        return self.fake.loop

    def close(self, drain: bool = True) -> None:
        self.fake.loop.close(drain)


def run_scripted(
    scenario: Callable[[ScriptedEngine], Coroutine[Any, Any, None]], **options: Any
) -> ScriptedEngine:
    """A scenario in an event loop of its own; afterwards nothing of it is left."""
    before = set(threading.enumerate())
    engine = ScriptedEngine(**options)

    async def play() -> None:
        await scenario(engine)
        await engine.shutdown()

    asyncio.run(play())
    engine.fake.check_idle()
    assert set(threading.enumerate()) <= before
    return engine


def answer(question: str, max_tokens: int = 30) -> str:
    """What the scripted runtime says when it is asked alone."""
    fake = FakeEngine()
    heard = fake.ask(question=question, settings={"max_tokens": max_tokens})
    fake.run_until_idle()
    text: str = heard.output["answer"]
    return text


# Streams


def test_chunks_are_the_answer() -> None:
    async def scenario(engine: ScriptedEngine) -> None:
        stream = await engine.query(question="go on", stream=True, settings=GREEDY)
        chunks = [chunk async for chunk in stream]
        result = await stream.result()
        assert len(chunks) > 2
        assert "".join(chunk.text for chunk in chunks) == result.output["answer"] == answer("go on")
        assert [chunk async for chunk in stream] == []  # they are given once

    run_scripted(scenario)


def test_a_cancelled_stream_tells_what_was_said_so_far() -> None:
    async def scenario(engine: ScriptedEngine) -> None:
        engine.fake.runtime.hold(after=9)
        stream = await engine.query(question="go on", stream=True, settings=GREEDY)
        chunks = [await anext(aiter(stream))]
        assert await asyncio.to_thread(engine.fake.runtime.held.wait, 60)
        stream.cancel()
        engine.fake.runtime.release()
        chunks += [chunk async for chunk in stream]
        result = await stream.result()
        assert result.finish_reason == "cancelled"
        text = result.output["answer"]
        assert "".join(chunk.text for chunk in chunks) == text
        assert answer("go on").startswith(text) and len(text) == result.metrics.output_tokens == 10

    assert len(answer("go on")) > 10
    run_scripted(scenario)


def test_a_cancelled_task_cancels_its_request() -> None:
    async def scenario(engine: ScriptedEngine) -> None:
        engine.fake.runtime.hold(after=3)
        asked = asyncio.create_task(engine.query(question="go on", settings=GREEDY))
        listening = await engine.query(question="and on", stream=True, settings=GREEDY)
        waiting = asyncio.create_task(listening.result())
        await asyncio.sleep(0)
        for task in (asked, waiting):
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        engine.fake.runtime.release()
        assert (await listening.result()).finish_reason == "cancelled"

    engine = run_scripted(scenario)
    assert engine.fake.loop.metrics.requests == {("query", "cancelled"): 2}


def test_an_error_ends_a_stream_and_its_result() -> None:
    async def scenario(engine: ScriptedEngine) -> None:
        stream = await engine.caption(b"damaged", stream=True)
        with pytest.raises(BadImage, match="damaged"):
            async for _ in stream:
                raise AssertionError("there is nothing to show")
        with pytest.raises(BadImage, match="damaged"):
            await stream.result()

    run_scripted(scenario)


@pytest.mark.parametrize("num_steps", [0, 8])
def test_when_the_callers_event_loop_closes_its_requests_are_cancelled(num_steps: int) -> None:
    """Whether it has heard of nothing yet, or was just about to."""
    engine = ScriptedEngine()
    engine.fake.runtime.hold(after=num_steps)
    loop = asyncio.new_event_loop()
    loop.run_until_complete(engine.query(question="go on", stream=True, settings=GREEDY))
    assert engine.fake.runtime.held.wait(60)
    loop.close()
    engine.fake.runtime.release()
    engine.close()
    assert engine.fake.loop.metrics.requests == {("query", "cancelled"): 1}
    engine.fake.check_idle()


# Coming and going


def test_shutdown_answers_what_is_under_way_and_refuses_the_rest() -> None:
    async def scenario(engine: ScriptedEngine) -> None:
        engine.fake.runtime.hold(after=2)
        asked = [asyncio.create_task(engine.query(question=q, settings=GREEDY)) for q in ("go on", "and on")]
        await asyncio.sleep(0)
        closing = asyncio.create_task(engine.shutdown())
        while not engine.loop._inbox.is_closed:
            await asyncio.sleep(0)
        with pytest.raises(Overloaded, match="shutting down"):
            await engine.query(question="too late?")
        engine.fake.runtime.release()
        await closing
        results = await asyncio.gather(*asked)
        assert [r.output["answer"] for r in results] == [answer("go on"), answer("and on")]

    run_scripted(scenario)


def test_shutdown_without_draining_ends_what_is_under_way() -> None:
    async def scenario(engine: ScriptedEngine) -> None:
        engine.fake.runtime.hold(after=2)
        asked = asyncio.create_task(engine.query(question="go on", settings=GREEDY))
        await asyncio.sleep(0)
        closing = asyncio.create_task(engine.shutdown(drain=False))
        while not engine.loop._inbox.is_closed:
            await asyncio.sleep(0)
        engine.fake.runtime.release()
        await closing
        with pytest.raises(Overloaded, match="shutting down"):
            await asked

    run_scripted(scenario)


def test_a_full_queue_is_told_to_the_caller() -> None:
    async def scenario(engine: ScriptedEngine) -> None:
        engine.fake.runtime.hold()
        streams: list[EngineStream] = []
        with pytest.raises(Overloaded, match="max_queue"):
            while True:
                streams.append(await engine.query(question="go on", stream=True, settings=GREEDY))
        assert len(streams) in (2, 3)  # one may have begun meanwhile
        engine.fake.runtime.release()
        for stream in streams:
            assert (await stream.result()).output["answer"] == answer("go on")

    run_scripted(scenario, max_queue=2, max_running=1)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"priority": "high"}, "PRIORITY is 'high'; it must be an integer"),
        ({"priority": 10**400}, "PRIORITY is 1000"),
        ({"timeout_s": 0}, "timeout_s is 0; it must be a number of seconds, more than 0"),
        ({"timeout_s": float("nan")}, "timeout_s is nan"),
        ({"settings": {"temperatur": 1}}, 'there is no setting "temperatur"; did you mean temperature'),
        ({"settings": {"top_p": 2}}, "TOP_P is 2; it can be from 0 to 1"),
        ({"question": " "}, "QUESTION is empty"),
    ],
)
def test_a_wrong_argument_is_refused_by_name(asked: dict[str, Any], message: str) -> None:
    async def scenario(engine: ScriptedEngine) -> None:
        with pytest.raises(InvalidRequest, match=message):
            await engine.query(**{"question": "what?", **asked})
        assert (await engine.query(question="go on", settings=GREEDY)).output["answer"] == answer("go on")

    run_scripted(scenario)


def test_requests_are_numbered_unless_they_bring_a_name() -> None:
    async def scenario(engine: ScriptedEngine) -> None:
        named = await engine.submit("query", arguments={"question": "what?"}, request_id="mine")
        numbered = await engine.submit(tokens=[1, 2])
        assert isinstance(named, EngineResult) and isinstance(numbered, EngineResult)
        assert (named.request_id, numbered.request_id) == ("mine", "1")
        assert "text" in numbered.output

    run_scripted(scenario)


# A skill of somebody else's


class Spell(SkillSpec):
    """Spells one token, given as the argument, in the letters the model would say next."""

    name = "spell"
    arguments = (Argument("token", int, required=True),)
    image = "optional"
    greedy = True

    def prompt(self, request: Request, language: Language) -> Prompt:
        return Prompt((language.config.tokenizer.bos_id, request.arguments["token"]), with_image=False)

    def reply(self, request: Request, language: Language) -> Reply:
        return Spelling()


class Spelling:
    def __init__(self) -> None:
        self._tokens: list[int | None] = []

    def readout(self, ahead: int = 0) -> Readout:
        return Readout(Kind.TOKEN, choices=(50, 51))

    def take(self, sample: Sample) -> Outcome:
        self._tokens.append(sample.token)
        return GO_ON if len(self._tokens) < 3 else Outcome("done", finish="stop")

    def cut(self) -> Outcome:
        return Outcome(finish="length")

    def output(self) -> dict[str, Any]:
        return {"spelling": self._tokens}


def test_a_third_party_brings_its_own_skill_and_the_model_comes_from_its_folder() -> None:
    folder = Path(__file__).parent / "golden" / "md2"

    async def play() -> None:
        engine = await InferenceEngine.create(
            RuntimeConfig(model_path=str(folder), weights="random", device="cpu", max_batch_size=2),
            skills=builtin_skills().with_skill(Spell()),
        )
        spelled, asked = await asyncio.gather(
            engine.submit("spell", token=7),
            engine.query(question="what?", settings={"max_tokens": 2}),
        )
        await engine.shutdown()
        assert isinstance(spelled, EngineResult)
        assert len(spelled.output["spelling"]) == 3 and set(spelled.output["spelling"]) <= {50, 51}
        assert asked.metrics.output_tokens <= 2

    asyncio.run(play())


# Tiny real models


def picture(seed: int, height: int = 30, width: int = 50) -> Any:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def ask(engine: InferenceEngine, asked: dict[str, Any]) -> Coroutine[Any, Any, Any]:
    return engine.submit(**asked)


def mixed_requests(count: int, seed: int, max_tokens: int = 6) -> list[dict[str, Any]]:
    rng = random.Random(seed)
    requests: list[dict[str, Any]] = []
    for _ in range(count):
        image = picture(rng.randrange(3))
        limit = rng.choice((1, 4, max_tokens))
        settings: dict[str, Any] = rng.choice(
            ({"temperature": 0}, {"temperature": 1.0, "top_p": 0.8, "seed": rng.randrange(2)})
        )
        skill, arguments = rng.choice(
            (
                ("query", {"question": rng.choice(("what?", "who is it, and why?"))}),
                ("query", {"question": "why?", "reasoning": True}),
                ("caption", {"length": rng.choice(("short", "long"))}),
                ("detect", {"object": "tail"}),
                ("point", {"object": "tail", "spatial_refs": [[0.25, 0.5]]}),
                ("tokens", {"tokens": [10, 11, 12] * rng.randint(1, 5)}),
            )
        )
        settings = settings | ({"max_objects": 2} if "object" in arguments else {"max_tokens": limit})
        without = skill in ("query", "tokens") and rng.random() < 0.3
        requests.append(
            {
                "skill": skill,
                "image": None if without else image,
                "arguments": arguments,
                "settings": settings,
            }
        )
    return requests


def name_of(asked: dict[str, Any]) -> str:
    image = asked["image"]
    return repr({**asked, "image": None if image is None else int(image.sum())})


def answers_alone(generation: int, requests: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """One after another, nothing shared."""

    async def play() -> dict[str, dict[str, Any]]:
        engine = tiny_engine(generation, max_batch_size=1, prefix_cache=False)
        known: dict[str, dict[str, Any]] = {}
        for asked in requests:
            if name_of(asked) not in known:
                known[name_of(asked)] = (await ask(engine, asked)).output
        await engine.shutdown()
        return known

    return asyncio.run(play())


@pytest.mark.parametrize("generation", [2, 3])
def test_threads_and_event_loops_storm_a_real_model(generation: int) -> None:
    """Requests of all kinds, some left early, some hopeless: the others get what they would get alone."""
    requests = mixed_requests(120, seed=generation, max_tokens=25)
    expected = answers_alone(generation, requests)
    before = set(threading.enumerate())
    # Hardly more room than one of them may need: often somebody has to give way.
    engine = tiny_engine(generation, max_batch_size=6, max_context=64, kv_cache_tokens=70, step_tokens=40)
    ends: list[str] = []

    async def client(mine: list[dict[str, Any]], rng: random.Random) -> None:
        async def one(asked: dict[str, Any]) -> str:
            fate = rng.choice(("patient", "patient", "streaming", "leaving", "expiring", "hopeless"))
            if fate == "hopeless":
                with pytest.raises((BadImage, PromptTooLong)):
                    await ask(engine, rng.choice(HOPELESS))
            elif fate == "leaving":
                task = asyncio.create_task(ask(engine, asked))
                await asyncio.sleep(0)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            elif fate == "expiring":
                with pytest.raises(Cancelled, match="deadline"):
                    await ask(engine, {**asked, "timeout_s": 1e-9})
            elif fate == "streaming" and asked["skill"] in ("query", "caption", "tokens"):
                stream = await ask(engine, {**asked, "stream": True})
                chunks = [chunk async for chunk in stream]
                output = (await stream.result()).output
                assert output == expected[name_of(asked)]
                text, thought = (
                    "".join(chunk.text for chunk in chunks if chunk.kind == kind)
                    for kind in ("text", "reasoning")
                )
                assert thought == output.get("reasoning", {"text": ""})["text"]
                assert text == (output.get("answer") or output.get("caption") or output.get("text") or "")
            else:
                assert (await ask(engine, asked)).output == expected[name_of(asked)]
            return fate

        ends.extend(await asyncio.gather(*map(one, mine)))

    threads = [
        threading.Thread(target=lambda at=at: asyncio.run(client(requests[at::4], random.Random(at))))
        for at in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    asyncio.run(engine.shutdown())
    assert len(ends) == 120 and set(ends) > {"leaving", "expiring", "hopeless"}
    scheduler, metrics = engine._engine.loop.scheduler, engine.metrics()
    scheduler.check()
    assert all(metrics[name] == 0 for name in ("queued", "queued_bytes", "running", "pages_used"))
    assert metrics["pages_free"] + metrics["pages_cached"] == scheduler.pool.num_pages - 1
    assert metrics["preemptions"] > 0
    assert set(threading.enumerate()) <= before


HOPELESS: list[dict[str, Any]] = [
    {"skill": "caption", "image": b"no picture"},
    {"skill": "caption", "image": np.zeros((3, 3), np.uint8)},
    {"skill": "query", "image": None, "arguments": {"question": "x" * 200}},
]


def test_the_same_picture_500_times_is_encoded_once() -> None:
    async def play() -> None:
        engine = tiny_engine(max_batch_size=16, max_queue=500)
        image = picture(1)

        async def client() -> set[str]:
            settings = {"temperature": 0, "max_tokens": 3}
            results = [await engine.query(image, "what?", settings=settings) for _ in range(10)]
            return {result.output["answer"] for result in results}

        answers = set().union(*await asyncio.gather(*(client() for _ in range(50))))
        metrics = engine.metrics()
        await engine.shutdown()
        assert len(answers) == 1
        assert metrics["images_encoded"] == 1
        assert metrics["prefix_misses"] == 1 and metrics["prefix_hits"] == 499
        assert sum(metrics["requests"].values()) == 500

    asyncio.run(play())


def test_a_picture_that_fails_late_fails_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the vision encoder: one raises, one gives no numbers."""
    encode = image_encoder.encode_image

    def fragile(vision: Any, crops: torch.Tensor, tiling: tuple[int, int]) -> torch.Tensor:
        if not crops.any():
            raise RuntimeError("black")
        embeddings = encode(vision, crops, tiling)
        return embeddings * torch.nan if bool((crops == 255).all()) else embeddings

    monkeypatch.setattr(image_encoder, "encode_image", fragile)
    requests = mixed_requests(12, seed=9)
    expected = answers_alone(3, requests)

    async def play() -> None:
        engine = tiny_engine(3, max_batch_size=5)
        black, white = np.zeros((28, 28, 3), np.uint8), np.full((28, 28, 3), 255, np.uint8)
        poisoned = [engine.caption(image, settings=GREEDY) for image in (black, white, black)]
        others = [ask(engine, asked) for asked in requests]
        ends = await asyncio.gather(*others[:6], *poisoned, *others[6:], return_exceptions=True)
        await engine.shutdown()
        errors = [end for end in ends if isinstance(end, BaseException)]
        assert [type(error) for error in errors] == [EngineFailed] * 3
        assert [str(error) for error in errors] == [
            "computing this request failed (RuntimeError)",
            "the model's output is not a number for this request",
            "computing this request failed (RuntimeError)",
        ]
        results = [end for end in ends if isinstance(end, EngineResult)]
        assert [r.output for r in results] == [expected[name_of(asked)] for asked in requests]

    asyncio.run(play())


def test_a_seed_draws_the_same_whatever_else_is_drawn() -> None:
    async def play() -> None:
        engine = tiny_engine(3, max_batch_size=8)
        settings = {"temperature": 1.5, "top_p": 1.0, "max_tokens": 12}

        async def draw(seed: int) -> str:
            result = await engine.caption(picture(1), settings={**settings, "seed": seed})
            text: str = result.output["caption"]
            return text

        alone = [await draw(seed) for seed in range(4)]
        company = [ask(engine, asked) for asked in mixed_requests(8, seed=1)]
        together = await asyncio.gather(*(draw(seed) for seed in range(4)), *company)
        await engine.shutdown()
        assert together[:4] == alone
        assert len(set(alone)) == 4

    asyncio.run(play())


def test_log_probabilities_are_those_of_the_model() -> None:
    async def play() -> None:
        engine = tiny_engine(3)
        settings = {"temperature": 0, "max_tokens": 5, "logprobs": 3}
        result = await engine.query(question="what?", settings=settings)
        await engine.shutdown()
        entries = result.output["logprobs"]
        assert len(entries) == result.metrics.output_tokens == 5
        for entry in entries:
            values = [top["logprob"] for top in entry["top"]]
            assert len(values) == 3 and values == sorted(values, reverse=True)
            assert (entry["token_id"], entry["logprob"]) == (entry["top"][0]["token_id"], values[0])
            assert 0 < sum(np.exp(values)) <= 1
        network = engine._engine.runtime._model
        prompt = builtin_skills()["query"].prompt(
            Request("query", {"question": "what?"}), engine._engine.language
        )
        assert entries[0]["logprob"] == pytest.approx(first_logprob(network, prompt), abs=1e-4)

    asyncio.run(play())


def first_logprob(network: Any, prompt: Prompt) -> float:
    """The likeliest next token's, from one plain pass over the prompt."""
    length = len(prompt.inputs)

    def attend(layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        q, k, v = (t.transpose(0, 1) for t in (q, k, v))
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(0, 1)

    with torch.inference_mode():
        x = network.text.embed(torch.tensor(prompt.inputs))
        hidden = network.text(x, torch.arange(length), attend)
        return float(network.text.logits(hidden[-1:]).log_softmax(-1).max())


def test_several_engines_live_in_one_process() -> None:
    async def play() -> None:
        engines = [tiny_engine(generation) for generation in (2, 3, 2)]
        settings = {"temperature": 0, "max_tokens": 6}
        results = await asyncio.gather(*(engine.caption(picture(4), settings=settings) for engine in engines))
        await engines[0].shutdown()
        again = await engines[2].caption(picture(4), settings=settings)
        await asyncio.gather(*(engine.shutdown() for engine in engines[1:]))
        texts = [result.output["caption"] for result in (*results, again)]
        assert texts[0] == texts[2] == texts[3] != texts[1]
        with pytest.raises(KestrelError, match="shutting down"):
            await engines[0].caption(picture(4))

    before = set(threading.enumerate())
    asyncio.run(play())
    assert set(threading.enumerate()) <= before
