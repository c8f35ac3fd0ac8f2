"""The ChartQA mix and its closed loop: what is asked, what is counted, and that the numbers are true."""

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from tiny_folder import save_tiny

from kestrel_core.config import RuntimeConfig
from kestrel_core.intake.image_limits import ImageLimits
from kestrel_core.intake.images import decode_image
from kestrel_core.intake.tokenizer import Tokenizer
from kestrel_core.loop.step import Sample
from kestrel_core.moondream.config import MOONDREAM2, MOONDREAM3
from kestrel_core.moondream.crops.cutting import choose_tiling
from kestrel_core.protocol.errors import EngineFailed, InvalidRequest
from kestrel_core.protocol.messages import Request, Settings, Usage
from kestrel_core.skills.spec import Language
from kestrel_core.skills.text import QuerySkill
from kestrel_core.triton.serve import REPOSITORY
from kestrel_tools.bench.machine.gpu import GpuWatch, find_gpu
from kestrel_tools.bench.options import ChartQA
from kestrel_tools.bench.parts.chartqa import _exactly, _of_engine, summary
from kestrel_tools.bench.requests.callers import Answered, Counts, Window, closed_loop
from kestrel_tools.bench.requests.chart_questions import (
    OF_BYTES,
    OF_WORDS,
    ROUND,
    ChartQuestions,
    Question,
    plan,
    question_texts,
)
from kestrel_tools.bench.requests.charts import SIZES, draw_chart
from kestrel_tools.bench.requests.endless_query import EndlessQuery
from kestrel_tools.bench.requests.server import parse_counts, write_endless_repository
from kestrel_tools.bench.results import SECTIONS
from kestrel_tools.commands import main

USAGE = Usage(212, 3, 0, queue_time_ms=2.0, prefill_time_ms=5.0, decode_time_ms=4.0, ttft_ms=7.0)


@pytest.mark.parametrize("config", [MOONDREAM2, MOONDREAM3])
def test_the_four_sizes_have_nine_nine_nine_and_two_crops(config: Any) -> None:
    tilings = [choose_tiling(height, width, config.vision) for width, height in SIZES]
    assert [1 + rows * cols for rows, cols in tilings] == [9, 9, 9, 2]


def test_charts_are_the_same_again_and_none_equals_another() -> None:
    charts = [draw_chart(number) for number in range(12)]
    assert charts == [draw_chart(number) for number in range(12)]
    assert len(set(charts)) == 12
    for number, png in enumerate(charts):
        pixels = decode_image(png, ImageLimits(10**6, 10**7))
        assert (pixels.shape[1], pixels.shape[0]) == SIZES[number % 4]
        assert len({tuple(pixel) for row in pixels[::5, ::5].tolist() for pixel in row}) > 2, "it is blank"


def test_five_questions_come_over_every_three_charts() -> None:
    for turn in range(8):
        asked = [plan(5 * turn + place) for place in range(5)]
        assert sorted(Counter(question.chart for question in asked).values()) == [1, 2, 2]
        assert {question.chart for question in asked} == {3 * turn, 3 * turn + 1, 3 * turn + 2}


def test_a_second_question_comes_two_requests_after_the_first_or_three_and_is_another() -> None:
    first: dict[int, tuple[int, int]] = {}
    for index in range(200):
        question = plan(index)
        if question.chart in first:
            before, words = first[question.chart]
            assert index - before in (2, 3) and question.words != words
        else:
            first[question.chart] = index, question.words
    assert len(first) == 120


def test_every_size_is_asked_about_as_often() -> None:
    assert ROUND == 20
    sizes = Counter(plan(index).chart % 4 for index in range(3 * ROUND))
    assert set(sizes.values()) == {15}
    firsts = Counter(chart % 4 for chart in {plan(index).chart for index in range(3 * ROUND)})
    assert set(firsts.values()) == {9}


def test_questions_drawn_in_pieces_are_those_drawn_at_once() -> None:
    whole = list(ChartQuestions(OF_BYTES).ahead(13))
    pieces = ChartQuestions(OF_BYTES)
    assert [q for count in (2, 0, 3, 1, 7) for q in pieces.ahead(count)] == whole
    assert [question.image == draw_chart(question.chart) for question in whole] == [True] * 13
    assert all(question.text in OF_BYTES for question in whole)


def test_questions_have_about_fifteen_tokens_and_begin_differently() -> None:
    tokenizer = Tokenizer.of_bytes(MOONDREAM2)
    assert {len(tokenizer.encode(text)) for text in OF_BYTES} == {15}
    assert all(13 <= len(text.split()) <= 15 for text in OF_WORDS)
    assert len(OF_BYTES) == len(OF_WORDS) == len({text[:7] for text in OF_BYTES})
    assert question_texts(RuntimeConfig(weights="random")) is OF_BYTES
    assert question_texts(RuntimeConfig(model="moondream2")) is OF_WORDS
    assert question_texts(RuntimeConfig(weights="random", tokenizer_path="t.json")) is OF_WORDS


def test_the_end_token_ends_a_query_but_not_the_benchmarks() -> None:
    language = Language(MOONDREAM2, Tokenizer.of_bytes(MOONDREAM2))
    request = Request("query", {"question": "?"}, b"", Settings(max_tokens=3))
    end = Sample(token=MOONDREAM2.tokenizer.eos_id)
    assert QuerySkill().reply(request, language).take(end).finish == "stop"
    reply = EndlessQuery().reply(request, language)
    assert [reply.readout(), reply.readout(1)] == [
        QuerySkill().reply(request, language).readout(),
        QuerySkill().reply(request, language).readout(1),
    ], "the device does the same work"
    assert [reply.take(end).finish for _ in range(3)] == [None, None, "length"]


class Crowd:
    """Answers when asked to, and knows how many ask at once."""

    def __init__(self) -> None:
        self.num_asked = 0
        self.now = 0
        self.most = 0

    async def ask(self, question: Question) -> Usage:
        self.num_asked += 1
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0)
        self.now -= 1
        return USAGE

    async def look(self) -> Counts:
        return {"asked": float(self.num_asked)}


def questions(count: int) -> Iterator[Question]:
    return iter([Question(index, 0) for index in range(count)])


def test_the_window_opens_after_the_lead_in_and_ends_with_the_questions() -> None:
    crowd = Crowd()
    window = asyncio.run(closed_loop(crowd.ask, questions(50), 4, 10, 60.0, crowd.look))
    assert crowd.num_asked == 50 and crowd.most == 4
    assert window.before["asked"] >= 10, "the lead-in does not count"
    assert window.count("asked") - 3 <= len(window.answered) <= 40
    assert all(window.begin_s <= one.ended_s <= window.end_s for one in window.answered)


def test_a_caller_who_fails_ends_the_run() -> None:
    async def fail(question: Question) -> Usage:
        if question.chart == 7:
            raise EngineFailed("broken")
        await asyncio.sleep(0)
        return USAGE

    with pytest.raises(EngineFailed, match="broken"):
        asyncio.run(closed_loop(fail, questions(100), 3, 2, 60.0, Crowd().look))


def test_a_window_stays_open_until_an_answer_has_come() -> None:
    async def slowly(question: Question) -> Usage:
        await asyncio.sleep(0.05)
        return USAGE

    window = asyncio.run(closed_loop(slowly, questions(20), 2, 2, 0.001, Crowd().look))
    assert window.answered and window.seconds >= 0.001


def test_a_window_without_an_answer_is_no_result() -> None:
    with pytest.raises(EngineFailed, match="measure for longer"):
        asyncio.run(closed_loop(Crowd().ask, questions(3), 1, 3, 60.0, Crowd().look))


def test_an_answer_of_another_length_rejects_the_run() -> None:
    async def ask(question: Question, tokens: int) -> Usage:
        return replace(USAGE, output_tokens=2)

    with pytest.raises(EngineFailed, match="2 tokens where 3 were asked for"):
        asyncio.run(_exactly(ask, 3)(Question(0, 0)))
    assert asyncio.run(_exactly(ask, 2)(Question(0, 0))).output_tokens == 2


def test_a_windows_numbers_are_those_of_its_requests() -> None:
    answered = [Answered(10.0, 10.0 + ms / 1000, USAGE) for ms in range(1, 101)]
    names = (
        "kestrel_steps_total",
        "kestrel_prefix_hits_total",
        "kestrel_prefix_misses_total",
        "kestrel_preemptions_total",
        "kestrel_images_encoded_total",
        "kestrel_vision_encode_seconds_total",
        "kestrel_image_decode_seconds_sum",
        "kestrel_image_decode_seconds_count",
    )
    after = dict(zip(names, (500.0, 40.0, 60.0, 1.0, 60.0, 1.2, 0.6, 100.0), strict=True))
    before = dict.fromkeys(names, 0.0) | {"kestrel_steps_total": 200.0}
    before |= {"device_bytes_planned": 5 * 2**30, "device_bytes_used": 5 * 2**30}
    after |= {"device_bytes_planned": 5 * 2**30, "device_bytes_used": 5 * 2**30 + 2**21}
    row = summary(Window(10.0, 15.0, answered, before, after), GpuWatch(None))
    assert row["planned_gib"] == 5 and row["used_gib"] > 5 and row["grown_mib"] == 2
    assert row["requests"] == 100 and row["requests_per_s"] == pytest.approx(20.0)
    assert [row["p50_ms"], row["p95_ms"], row["p99_ms"]] == pytest.approx([50, 95, 99])
    assert row["ttft_p50_ms"] == 7.0 and row["gpu_busy"] is None
    assert row["counts"]["output_tokens"] == 300 and row["counts"]["steps"] == 300
    assert row["counts"]["prefix_hits"] == 40 and row["counts"]["images_encoded"] == 60
    stages = row["stages"]
    assert stages["image_decode_ms"] == pytest.approx(6.0) and stages["vision_ms"] == pytest.approx(20.0)
    assert stages["queue_ms"] + stages["prefill_ms"] == pytest.approx(row["ttft_p50_ms"])
    assert stages["delivery_ms"] == pytest.approx(50.5 - 7.0 - 4.0)


def test_a_server_is_compared_with_the_engine_at_the_same_batch_and_length() -> None:
    def row(through: str, batch: int, tokens: int, pace: float) -> dict[str, Any]:
        return {"through": through, "batch": batch, "tokens": tokens, "requests_per_s": pace}

    rows = [row("engine", 1, 3, 50.0), row("engine", 64, 3, 100.0), row("engine", 64, 30, 80.0)]
    assert _of_engine(row("triton", 64, 3, 95.0), rows) == pytest.approx(0.95)
    assert _of_engine(row("triton", 4, 3, 95.0), rows) is None
    assert _of_engine(rows[0], rows) is None


def test_counters_of_a_server_are_added_up_over_their_labels() -> None:
    text = """# HELP kestrel_steps_total steps of the engine
kestrel_steps_total{engine="0"} 12
kestrel_requests_total{engine="0",outcome="length",skill="query"} 3
kestrel_requests_total{engine="0",outcome="stop",skill="query"} 4
nv_inference_count{model="moondream"} 9
kestrel_image_decode_seconds_sum{engine="0"} 0.25
"""
    assert parse_counts(text) == {
        "kestrel_steps_total": 12,
        "kestrel_requests_total": 7,
        "kestrel_image_decode_seconds_sum": 0.25,
    }


def test_the_servers_model_is_the_products_but_for_its_query(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "triton_python_backend_utils", MagicMock())
    repository = write_endless_repository(tmp_path)
    spec = spec_from_file_location("bench_model", repository / "moondream/1/model.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    model, product = module.TritonPythonModel, module.Product
    assert issubclass(model, product) and product.skills is None
    assert isinstance(model.skills["query"], EndlessQuery) and model.skills["caption"].name == "caption"
    ours, theirs = (folder / "moondream/config.pbtxt" for folder in (repository, REPOSITORY))
    assert ours.read_text() == theirs.read_text()


def test_without_a_gpu_its_share_is_not_made_up() -> None:
    assert find_gpu("cpu") is None
    with GpuWatch(None) as watch:
        pass
    assert watch.busy_share(0.0, 1e9) is None and watch.max_used_bytes(0.0, 1e9) is None


@pytest.mark.parametrize(
    "wrong",
    [{"batches": (0,)}, {"tokens": ()}, {"ways": ("http",)}, {"seconds": 0.0}, {"warm_up": 0}],
)
def test_what_cannot_be_measured_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        ChartQA(**wrong)


def test_the_engine_is_measured_and_the_result_names_everything(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, file = save_tiny(tmp_path / "tiny"), tmp_path / "results" / "chartqa.json"
    command = ["bench", "chartqa", "--batch", "1,3", "--tokens", "3,7", "--seconds", "0.4", "--warm-up", "6"]
    engine = ["--model-path", str(folder), "--device", "cpu", "--step-tokens", "512"]
    assert main([*command, *engine, "--json", str(file), "--commit", "abc"]) == 0
    document = json.loads(file.read_text())
    assert document["commit"] == "abc" and document["config"]["step_tokens"] == 512
    assert document["config"]["weights"] == "random" and document["machine"]["cores"] >= 1
    assert document["versions"]["torch"] and document["machine"]["gpu"] is None
    rows = document["measured"]
    assert [(row["batch"], row["tokens"]) for row in rows] == [(1, 3), (3, 3), (1, 7), (3, 7)]
    for row in rows:
        counts = row["counts"]
        assert counts["output_tokens"] == row["requests"] * row["tokens"]
        assert row["requests"] == pytest.approx(row["requests_per_s"] * row["seconds"])
        assert 0 < row["p50_ms"] <= row["p95_ms"] <= row["p99_ms"]
        # Started in the window, against ended in it: they differ by who was under way at its two ends.
        started = counts["prefix_hits"] + counts["prefix_misses"]
        assert abs(started - row["requests"]) <= 2 * row["batch"]
        assert counts["images_encoded"] <= counts["prefix_misses"] + row["batch"]
        for section in SECTIONS["chartqa"]:
            for column in section.columns:
                part: Any = row
                for key in column.key.split("."):
                    part = part[key]
    shown = capsys.readouterr().out
    assert all(section.title in shown for section in SECTIONS["chartqa"]) and "commit abc" in shown
