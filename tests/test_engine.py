"""The public API, over a scripted runtime where the moment matters, and tiny models where the answer does."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, cast

import pytest
from fakes import FakeEngine

from kestrel_core.build import Engine
from kestrel_core.config import RuntimeConfig
from kestrel_core.engine import EngineStream, InferenceEngine
from kestrel_core.loop.sequence import GO_ON, Outcome, Prompt, Reply
from kestrel_core.loop.step import Kind, Readout, Sample
from kestrel_core.protocol.arguments import Argument
from kestrel_core.protocol.errors import (
    BadImage,
    InvalidRequest,
    Overloaded,
)
from kestrel_core.protocol.messages import EngineResult, Request
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
        chunks = [await stream.next_chunk()]
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


@pytest.mark.parametrize("way", ["async for", "async with"])
def test_leaving_a_stream_cancels_its_request(way: str) -> None:
    async def scenario(engine: ScriptedEngine) -> None:
        engine.fake.runtime.hold(after=5)
        stream = await engine.query(question="go on", stream=True, settings=GREEDY)
        if way == "async for":
            async for _ in stream:
                break
        else:
            async with stream:
                await stream.next_chunk()
        for _ in range(5):  # a generator that was left is closed by a task of the event loop
            await asyncio.sleep(0)
        engine.fake.runtime.release()
        assert (await stream.result()).finish_reason == "cancelled"

    engine = run_scripted(scenario)
    assert engine.fake.loop.metrics.requests == {("query", "cancelled"): 1}


def test_a_skill_that_does_not_stream_refuses_to_and_nothing_runs_on() -> None:
    async def scenario(engine: ScriptedEngine) -> None:
        with pytest.raises(InvalidRequest, match="STREAM is for query and caption; detect answers in one"):
            await engine.detect(b"picture", "cat", stream=True)  # type: ignore[call-arg]
        assert engine.fake.loop.num_open == 0

    engine = run_scripted(scenario)
    assert engine.fake.loop.metrics.requests == {}


def test_unknown_keywords_are_refused_with_the_nearest_known_one() -> None:
    async def scenario(engine: ScriptedEngine) -> None:
        for keywords, said in (
            ({"max_new_tokens": 3}, "max_new_tokens is called max_tokens now"),
            ({"temprature": 0.5}, "query takes no temprature; did you mean temperature"),
            ({"object": "cat"}, "query takes no object"),
            ({"max_tokens": 2.5}, "MAX_TOKENS is 2.5; it must be an integer"),
            ({"settings": {"seed": 1}, "seed": 2}, "seed is given twice"),
        ):
            with pytest.raises(InvalidRequest, match=said):
                await engine.query(question="why?", **keywords)  # type: ignore[call-overload]
        for skill in (engine.detect, engine.point, engine.segment):
            for keyword, name in (({"max_tokens": 9}, "MAX_TOKENS"), ({"logprobs": 2}, "LOGPROBS")):
                with pytest.raises(InvalidRequest, match=f"{name} means nothing to "):
                    await skill(b"picture", "cat", **keyword)  # type: ignore[operator]

    run_scripted(scenario)


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
