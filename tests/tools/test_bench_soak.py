"""The soak: what is mixed, what counts as a failure, and that a run which fails says so."""

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny import tiny_config, tiny_engine, tiny_model
from tiny_folder import save_tiny

from kestrel_core.build import Engine, LoadedModel, assemble_engine
from kestrel_core.config import RuntimeConfig
from kestrel_core.engine import EngineStream, InferenceEngine
from kestrel_core.intake.image_limits import ImageLimits
from kestrel_core.intake.images import decode_image
from kestrel_core.intake.tokenizer import Tokenizer
from kestrel_core.moondream.config import MOONDREAM2, MOONDREAM3, MOONDREAM_TINY, MoondreamConfig
from kestrel_core.moondream.crops.cutting import choose_tiling
from kestrel_core.protocol.errors import EngineFailed, InvalidRequest
from kestrel_core.protocol.messages import Chunk, EngineResult, Finished, Request, Usage, parse_settings
from kestrel_core.skills.registry import builtin_skills
from kestrel_core.skills.spec import Language
from kestrel_tools.bench.machine.memory import Moment, columns, complaints, look, summary, timeline
from kestrel_tools.bench.options import Soak
from kestrel_tools.bench.parts.soak import MAX_FAILURES, ErrorLog, Load, lost
from kestrel_tools.bench.requests.chart_questions import OF_BYTES
from kestrel_tools.bench.requests.charts import draw_chart
from kestrel_tools.bench.requests.mixed import (
    BAD_ARGUMENTS,
    PHOTOS,
    WEIGHTS,
    Call,
    Mixture,
    draw_photo,
    make_call,
    with_comment,
)
from kestrel_tools.commands import main

TINY = tiny_config(2, vocab_size=300)
USAGE = Usage(212, 3, 0, 2.0, 5.0, 4.0, 7.0)


@cache
def mixture(shape: MoondreamConfig = TINY, seed: int = 0) -> Mixture:
    return Mixture(seed, shape, shape.text.max_context, OF_BYTES)


@pytest.fixture
def engine() -> Iterator[InferenceEngine]:
    running = tiny_engine(2, max_batch_size=4)
    yield running
    asyncio.run(running.shutdown())


def built(engine: InferenceEngine) -> Engine:
    return engine._engine


def test_the_same_seed_asks_the_same_and_another_one_something_else() -> None:
    first, again, other = (Mixture(seed, TINY, 128, OF_BYTES) for seed in (3, 3, 4))
    calls = [first.call(index) for index in range(60)]
    assert calls == [again.call(index) for index in range(60)]
    assert calls != [other.call(index) for index in range(60)]


def test_everything_a_model_can_be_asked_is_asked() -> None:
    calls = [mixture(MOONDREAM_TINY).call(index) for index in range(700)]
    assert Counter(call.kind for call in calls).keys() == WEIGHTS.keys()
    assert {call.image is None for call in calls if call.kind == "query, no picture"} == {True}
    assert {call.arguments["length"] for call in calls if call.skill == "caption" and not call.bad} == {
        "short",
        "normal",
        "long",
    }
    texts = [call for call in calls if call.skill in ("query", "caption") and not call.bad]
    lengths = [call.settings["max_tokens"] for call in texts]
    assert (
        min(lengths) == 1 and max(lengths) > 150 and sum(length < 14 for length in lengths) > len(texts) / 3
    )
    temperatures = {call.settings["temperature"] for call in texts}
    assert 0.0 in temperatures and len(temperatures) == 5
    assert 0 < sum("logprobs" in call.settings for call in texts) < len(texts) / 4
    assert {call.stream for call in texts} == {True, False}
    assert any(call.arguments.get("spatial_refs") for call in texts)
    for way in ("leave_after", "patience_s", "timeout_s"):
        assert 0 < sum(getattr(call, way) is not None for call in calls) < len(calls) / 10


def test_nothing_is_asked_that_a_model_cannot_do() -> None:
    dialog = replace(MOONDREAM2.dialog, reasons=False, text_only=False, spatial_refs=False)
    plain = mixture(replace(MOONDREAM2, dialog=dialog))
    calls = [plain.call(index) for index in range(300)]
    assert {call.kind for call in calls} == set(WEIGHTS) - {
        "query, reasoning",
        "query, no picture",
        "segment",
    }
    assert not any(call.arguments.get("spatial_refs") for call in calls if not call.bad)


@pytest.mark.parametrize("shape", [MOONDREAM2, MOONDREAM3, MOONDREAM_TINY])
def test_every_model_can_make_a_prompt_of_what_is_asked(shape: MoondreamConfig) -> None:
    language, skills = Language(shape, Tokenizer.of_bytes(shape)), builtin_skills()
    for call in map(mixture(shape).call, range(300)):
        if not call.bad:
            request = Request(call.skill, call.arguments, call.image, parse_settings(call.settings))
            prompt = skills[call.skill].prompt(request, language)
            skills[call.skill].reply(request, language)
            assert len(prompt.inputs) < (shape.text.max_context - shape.image_prefix_length) / 2


def test_most_pictures_are_new_and_some_come_again() -> None:
    mixed = mixture()
    images = [call.image for call in map(mixed.call, range(400)) if call.image is not None and not call.bad]
    again = 1 - len(set(images)) / len(images)
    assert 0.1 < again < 0.3  # some are chosen again that nobody had asked about


def test_pictures_are_of_one_tile_of_many_and_of_more_than_the_budget() -> None:
    vision = MOONDREAM2.vision
    tiles = [rows * cols for width, height in PHOTOS for rows, cols in [choose_tiling(height, width, vision)]]
    assert tiles.count(1) >= 4 and max(tiles) > vision.max_crops and len(set(tiles)) >= 4
    assert max(width * height for width, height in PHOTOS) <= 6_000_000


@pytest.mark.parametrize("file", [draw_chart(1), draw_photo((64, 48)), draw_photo((1, 1))])
def test_a_comment_makes_another_file_of_the_same_picture(file: bytes) -> None:
    limits = ImageLimits()
    files = {with_comment(file, text) for text in (b"0 1", b"0 2", b"10 12345")}
    assert len(files) == 3 and file not in files
    for other in files:
        assert (decode_image(other, limits) == decode_image(file, limits)).all()


def test_what_is_bad_is_refused_and_counted_as_that(engine: InferenceEngine) -> None:
    mixed = mixture()
    bad = [call for call in map(mixed.call, range(1500)) if call.bad]
    kinds = Counter(call.kind for call in bad)
    assert min(kinds["bad picture"], kinds["bad argument"]) > 20
    assert len({str((call.arguments, call.settings)) for call in bad}) == len(BAD_ARGUMENTS) + 2

    async def ask() -> set[str]:
        return {await make_call(engine, call) for call in bad}

    assert asyncio.run(ask()) == {"refused"}


def test_a_bad_request_that_is_answered_is_a_failure(engine: InferenceEngine) -> None:
    fine = Call("query", "query", draw_chart(3), {"question": "Why?"}, {"max_tokens": 2})
    assert asyncio.run(make_call(engine, fine)) == "answered"
    with pytest.raises(EngineFailed, match="was answered"):
        asyncio.run(make_call(engine, fine._replace(bad=True)))
    with pytest.raises(InvalidRequest):
        asyncio.run(make_call(engine, fine._replace(settings={"max_tokens": 0})))


class Speaker(EngineStream):
    """Says a word whenever it is listened to, until it is cancelled."""

    def cancel(self) -> None:
        self.sink(Finished(EngineResult("1", "cancelled", {}, USAGE), Chunk("", 3)))

    async def _wait(self) -> None:
        self.sink(Chunk("well", 1))
        await super()._wait()


def test_a_caller_who_listens_leaves_after_so_many_chunks() -> None:
    class Stage(InferenceEngine):
        async def submit(self, *arguments: Any, **options: Any) -> EngineStream:
            return Speaker(None, asyncio.get_running_loop())  # type: ignore[arg-type]

    call = Call("caption", "caption", b"", {}, {}, stream=True, leave_after=3)
    assert asyncio.run(make_call(Stage(None), call)) == "left"  # type: ignore[arg-type]


def test_callers_lose_patience_or_had_a_deadline(engine: InferenceEngine) -> None:
    call = Call("query", "query", draw_chart(3), {"question": "Why?"}, {"max_tokens": 100})
    assert asyncio.run(make_call(engine, call._replace(patience_s=1e-6))) == "left"
    assert asyncio.run(make_call(engine, call._replace(timeout_s=1e-6))) == "left"
    assert asyncio.run(make_call(engine, call._replace(stream=True))) == "answered"


def test_a_request_without_an_answer_hangs_and_ends_the_run() -> None:
    model = LoadedModel(tiny_model(TINY), Language(TINY, Tokenizer.of_bytes(TINY)), torch.device("cpu"))
    still = assemble_engine(model, RuntimeConfig(device="cpu"))  # nobody turns its loop
    load = Load(InferenceEngine(still), mixture(), Soak(3600.0, deadline_s=0.05), callers=3)
    asyncio.run(load.run(lambda: None))
    assert 1 <= load.num_hung <= 3 and not load.problems
    assert sum(tally.failed for tally in load.tallies.values()) == load.num_hung
    assert lost(still), "its requests are still in there"
    still.close()


def test_an_engine_that_refuses_everybody_does_not_keep_the_run_going(engine: InferenceEngine) -> None:
    asyncio.run(engine.shutdown())
    load = Load(engine, mixture(), Soak(3600.0), callers=3)
    asyncio.run(load.run(lambda: None))
    assert MAX_FAILURES <= sum(load.problems.values()) <= MAX_FAILURES + 2
    assert any("ShuttingDown: the server is shutting down" in problem for problem in load.problems)


def test_a_page_that_is_lost_is_found(engine: InferenceEngine) -> None:
    asyncio.run(engine.shutdown())
    assert lost(built(engine)) == []
    built(engine).loop.scheduler.pool.allocate(2)
    pages, books = lost(built(engine))
    assert "pages_used is 2" in pages and "neither a sequence's nor cached" in books


def test_a_step_that_failed_and_was_tried_again_is_not_overlooked() -> None:
    log, errors = logging.getLogger("soak test"), ErrorLog()
    log.propagate = False
    log.addHandler(errors)
    for _ in range(2):
        try:
            raise RuntimeError("out of memory")
        except RuntimeError:
            log.exception("a step failed")
    log.warning("slower than it could be")
    assert errors.messages == {"a step failed (RuntimeError('out of memory'))": 2}


GIB = 2**30


def moments(*device: float | None) -> list[Moment]:
    return [
        Moment(float(at), int(size * GIB) if size is not None else None, None, GIB)
        for at, size in enumerate(device)
    ]


def test_memory_is_judged_from_where_it_has_settled() -> None:
    device, allocator, host = summary(moments(50, 90, 100, 100.5, 100.25), 2.0, 101 * GIB)
    assert (device["settled_gib"], device["largest_gib"], device["end_gib"]) == (100, 100.5, 100.25)
    assert device["grown_mib"] == 512 and device["grown_share"] == pytest.approx(0.005)
    assert device["planned_gib"] == 101 and device["of_planned"] == pytest.approx(100 / 101)
    assert "settled_gib" not in allocator and host["grown_mib"] == 0 and "of_planned" not in host


def test_the_host_grows_by_its_trend_and_not_by_the_pictures_of_a_moment() -> None:
    sizes = [100, 180, 102, 101, 260, 108, 107, 120, 109, 180, 111, 110]
    *_, host = summary(
        [Moment(float(at), None, None, size * 2**20) for at, size in enumerate(sizes)], 0.0, None
    )
    assert host["grown_mib"] == 111 - 102
    assert (host["settled_gib"], host["largest_gib"]) == (100 / 1024, 260 / 1024)


@pytest.mark.parametrize(
    ("sizes", "planned", "wrong"),
    [
        ((100, 100, 100), 100, []),
        ((100, 100, 100.9), 100, []),
        ((50, 101, 101), 100, []),
        ((100, 100, 101.1), 100, ["grew by 1,126 MiB"]),
        ((100, 100, 102, 100), 100, ["grew by 2,048 MiB"]),
        ((106, 106, 106), 100, ["106.0% of what was planned"]),
        ((94, 94, 94), 100, ["94.0% of what was planned"]),
        ((100, 100, 110), 100, ["grew", "110.0% of what was planned"]),
        ((None, None, None), None, []),
    ],
)
def test_growth_and_a_missed_plan_are_complained_of(
    sizes: tuple[float | None, ...], planned: int | None, wrong: list[str]
) -> None:
    found = complaints(summary(moments(*sizes), 1.0, planned * GIB if planned else None))
    assert len(found) == len(wrong) and all(part in line for part, line in zip(wrong, found, strict=True))


def test_on_a_shared_device_only_what_this_process_took_is_judged() -> None:
    others = [Moment(float(at), (100 + at) * GIB, 50 * GIB, GIB) for at in range(4)]
    assert complaints(summary(others, 1.0, 60 * GIB)) and not complaints(summary(others, 1.0, 60 * GIB), True)
    own = [moment._replace(allocator=(50 + at) * GIB) for at, moment in enumerate(others)]
    [found] = complaints(summary(own, 1.0, 60 * GIB), True)
    assert "grew by 2,048 MiB" in found


def test_a_run_cut_short_is_judged_by_its_last_moment() -> None:
    assert summary(moments(10, 20), 30.0, None)[0]["settled_gib"] == 20


@pytest.mark.parametrize("length", [1, 2, 12, 13, 301])
def test_a_table_has_the_first_and_the_last_moment_and_a_file_has_all(length: int) -> None:
    seen = moments(*range(length))
    rows = timeline(seen)
    assert rows[0]["at_s"] == 0 and rows[-1]["at_s"] == length - 1 and len(rows) <= 26
    assert columns(seen)["device_mib"] == [1024.0 * size for size in range(length)]


def test_on_a_cpu_only_the_host_is_seen() -> None:
    seen = look(1.0, {}, torch.device("cpu"))
    assert seen.device is None and seen.allocator is None and (seen.host is None or seen.host > 2**20)


@pytest.mark.parametrize("wrong", [{"seconds": 5.0}, {"callers": 0}, {"deadline_s": 0.0}, {"settle_s": -1.0}])
def test_what_cannot_be_run_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        Soak(**wrong)


def soak(folder: Path, file: Path, *more: str) -> int:
    command = ["bench", "soak", "--model-path", str(folder), "--device", "cpu", "--max-batch-size", "3"]
    timing = ["--seconds", "1.5", "--settle", "0.5", "--json", str(file), "--commit", "abc"]
    return main([*command, *timing, *more])


def test_a_short_soak_holds_and_its_result_can_be_read_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, file = save_tiny(tmp_path / "tiny"), tmp_path / "results" / "soak.json"
    assert soak(folder, file) == 0
    shown = capsys.readouterr().out
    assert "All held." in shown and "Memory over time, MiB" in shown and "loading" in shown
    document = json.loads(file.read_text())
    assert document["passed"] and not document["complaints"] and document["commit"] == "abc"
    *kinds, total = document["measured"]
    assert {row["kind"] for row in kinds} == set(WEIGHTS) - {"segment"}
    for row in document["measured"]:
        assert row["requests"] == row["answered"] + row["left"] + row["refused"] + row["failed"]
    assert total["requests"] == sum(row["requests"] for row in kinds) > total["answered"] > 3
    assert document["moments"]["at_s"][-1] >= 1.5 and document["computed"][0]["steps"] > 0
    assert main(["bench", "report", str(file)]) == 0
    assert "| bad argument |" in capsys.readouterr().out


def test_a_soak_that_fails_says_why_and_exits_with_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    used = count(2**30, 2**27)  # an eighth of it more at each look
    monkeypatch.setattr(
        "kestrel_core.build.Engine.metrics",
        lambda self, plain=Engine.metrics: {
            **plain(self),
            "device_bytes_planned": 2**30,
            "device_bytes_used": next(used),
        },
    )
    folder, file = save_tiny(tmp_path / "tiny"), tmp_path / "soak.json"
    assert soak(folder, file, "--deadline", "0.000001") == 1
    shown = capsys.readouterr().out
    found = json.loads(file.read_text())["complaints"]
    assert all(complaint in shown for complaint in found)
    for part in ("no answer in 1e-06 s", "of what was planned"):
        assert any(part in complaint for complaint in found)
