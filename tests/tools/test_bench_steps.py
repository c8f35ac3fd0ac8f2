"""Decode, prefill and vision benchmarks: the steps they launch, and the floors they are held against."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from fake_runtime import FakeRuntime, fake_config
from tiny import tiny_config, tiny_model
from tiny_folder import save_tiny

from kestrel_core.moondream.config import MOONDREAM2, MOONDREAM3, MoondreamConfig
from kestrel_core.moondream.model import Moondream
from kestrel_core.protocol.errors import InvalidRequest
from kestrel_tools.bench.machine.floors import decode_bytes, measure_pace, prefill_flops, vision_flops
from kestrel_tools.bench.machine.gpu import Gpu
from kestrel_tools.bench.parts.decode import WARM_UP_STEPS, StepTime, page_tables, step_row, time_decode
from kestrel_tools.bench.parts.prefill import WORDS, prompts
from kestrel_tools.bench.parts.vision import random_picture, tilings
from kestrel_tools.commands import main


def on_meta(config: MoondreamConfig) -> Moondream:
    with torch.device("meta"):
        return Moondream(config).to(torch.bfloat16)


@pytest.mark.parametrize("overlaps", [False, True])
def test_every_slot_is_prefilled_and_then_decodes_in_every_step(overlaps: bool) -> None:
    runtime = FakeRuntime(num_pages=200, overlaps=overlaps)
    times = time_decode(runtime, fake_config(), batch=3, context=60, steps=10, step_tokens=16)
    assert runtime.violations == [] and not runtime.under_way
    assert len(times) == 10 and all(time.step_s >= time.launch_s + time.collect_s > 0 for time in times)
    decodes = [plan for plan in runtime.plans if len(plan.spans) == 3]
    prefills = [plan.spans[0] for plan in runtime.plans if len(plan.spans) == 1]
    assert len(decodes) == WARM_UP_STEPS + 10 and len(decodes) + len(prefills) == len(runtime.plans)
    assert all(span.stop - span.start <= 16 for span in prefills)
    assert sum(span.stop - span.start for span in prefills) == 3 * (60 - 10 // 2 - WARM_UP_STEPS)
    measured = [span.start for plan in decodes[WARM_UP_STEPS:] for span in plan.spans[:1]]
    assert measured == list(range(55, 65)), "the stated context lies in the middle"


def test_sequences_have_pages_of_their_own_or_are_refused() -> None:
    runtime = FakeRuntime(num_pages=9, page_size=5)
    tables = page_tables(runtime, 2, 20)
    assert list(tables) == [1, 2] and sorted(tables[1] + tables[2]) == list(range(1, 9))
    with pytest.raises(InvalidRequest, match=r"2 sequences of 21 positions need 10 pages .* there are 8"):
        page_tables(runtime, 2, 21)


def test_tokens_a_second_are_the_batch_over_the_median_step() -> None:
    times = [StepTime(0.001, ms / 1000 - 0.001, ms / 1000) for ms in (4, 2, 3, 100, 3)]
    row = step_row(times, 6, floor_ms=1.5)
    assert row["tokens_per_s"] == pytest.approx(2000) and row["step_ms"] == pytest.approx(3)
    assert row["step_p95_ms"] == pytest.approx(100) and row["of_floor"] == pytest.approx(0.5)
    assert row["launch_ms"] == pytest.approx(1) and row["collect_ms"] == pytest.approx(2)


def test_a_prefill_is_a_picture_and_words_for_each_request() -> None:
    config = tiny_config(2)
    runtime = FakeRuntime(num_pages=100)
    plan = prompts(runtime, config, 3, random_picture(config.vision, (1, 2)))
    assert [span.image is not None for span in plan.spans] == [True, False] * 3
    assert [span.stop - span.start for span in plan.spans] == [config.image_prefix_length, WORDS] * 3
    assert [span.readout is not None for span in plan.spans] == [False, True] * 3
    assert len(runtime.launch(plan).collect()) == 3 and runtime.violations == []


@pytest.mark.parametrize("crops", [1, 2, 3, 7, 9, 10, 11, 12, 56])
def test_pictures_have_as_many_crops_as_asked_for(crops: int) -> None:
    def encoded(tiling: tuple[int, int]) -> int:
        return 1 if tiling == (1, 1) else 1 + tiling[0] * tiling[1]

    assert sum(map(encoded, tilings(crops))) == crops
    for tiling in tilings(crops):
        picture = random_picture(tiny_config(2).vision, tiling)
        assert picture.crops.shape == (1 + tiling[0] * tiling[1], 28, 28, 3)


def test_a_decode_reads_every_weight_and_all_keys_and_values() -> None:
    text = on_meta(MOONDREAM2).text
    # 24 blocks of 4 dim^2 (attention) and 8 dim^2 (MLP) in bfloat16, and the vocabulary's layer.
    weights = 2 * (24 * 12 * 2048**2 + 51200 * 2048)
    keys_and_values = 800 * 24 * 2 * 2048 * 2
    for batch in (1, 64):
        expected = weights + batch * keys_and_values
        assert decode_bytes(text, batch, 800) == pytest.approx(expected, rel=0.001)


def test_of_experts_those_likely_to_be_chosen_are_read() -> None:
    text = on_meta(MOONDREAM3).text
    experts = sum(weight.nbytes for weight in text.parameters() if weight.dim() == 3)
    row = text.wte[0].nbytes

    def read(batch: int) -> float:
        return decode_bytes(text, batch, 0) - decode_bytes(text, 0, 0) - batch * row

    assert read(1) == pytest.approx(experts * 8 / 64)
    assert read(2) == pytest.approx(experts * (8 / 64 + 56 / 64 * 8 / 64))
    assert read(1000) == pytest.approx(experts)


def test_a_prefill_multiplies_every_weight_by_every_token() -> None:
    text = on_meta(MOONDREAM2).text
    blocks, vocabulary = 24 * 12 * 2048**2, 51200 * 2048
    pairs = 730 * 730 + sum(range(731, 746))
    one = 2 * blocks * 745 + 2 * vocabulary + 4 * 24 * 2048 * pairs
    assert prefill_flops(text, 1, 730, 15) == pytest.approx(one)
    assert prefill_flops(text, 16, 730, 15) == pytest.approx(16 * one)
    sparse = on_meta(MOONDREAM3).text
    dense = sum(w.numel() for n, w in sparse.named_parameters() if w.dim() == 2 and n.startswith("blocks"))
    chosen = sum(w.numel() for w in sparse.parameters() if w.dim() == 3) * 8 / 64
    expected = 2 * (dense + chosen) * 745 + 2 * vocabulary + 4 * 24 * 2048 * pairs
    assert prefill_flops(sparse, 1, 730, 15) == pytest.approx(expected)


def test_a_crop_takes_two_thirds_of_a_teraflop() -> None:
    vision = on_meta(MOONDREAM2).vision
    crop = vision_flops(vision, 0, 1)
    linear = 2 * 729 * (588 * 1152 + 27 * (4 * 1152**2 + 2 * 1152 * 4304))
    assert crop == pytest.approx(linear + 27 * 4 * 1152 * 729**2)
    projection = 2 * 729 * (2304 * 8192 + 8192 * 2048)
    assert vision_flops(vision, 2, 18) == pytest.approx(18 * crop + 2 * projection)


def test_the_pace_is_a_number_above_zero() -> None:
    pace = measure_pace(torch.device("cpu"), tiny_model(tiny_config()).text.wte.dtype)
    assert pace.bytes_per_s > 1e6 and pace.flops_per_s > 1e6


@pytest.mark.parametrize(
    ("options", "key", "values"),
    [
        (("decode", "--batch", "1,3", "--context", "60", "--steps", "6"), "batch", [1, 3]),
        (("prefill", "--requests", "1,2", "--repeats", "2"), "requests", [1, 2]),
        (("vision", "--crops", "1,3,11", "--repeats", "2"), "crops", [1, 3, 11]),
    ],
)
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_each_writes_its_rows_and_its_floors(
    options: tuple[str, ...], key: str, values: list[int], device: str, tmp_path: Path
) -> None:
    file = tmp_path / "result.json"
    folder = save_tiny(tmp_path / "tiny", 3)
    engine = ("--model-path", str(folder), "--device", device, "--json", str(file))
    assert main(["bench", *options, *engine]) == 0
    document: dict[str, Any] = json.loads(file.read_text())
    assert document["bench"] == options[0] and document["pace"]["flops_per_s"] > 0
    assert [row[key] for row in document["measured"]] == values
    for row in document["measured"]:
        measured = row.get("ms") or row["step_ms"]
        assert measured > 0 and row["of_floor"] == pytest.approx(row["floor_ms"] / measured)
        assert row.get("vision", "not in it") == "not in it"


@pytest.mark.parametrize(
    "wrong",
    [
        ("decode", "--batch", "0"),
        ("decode", "--context", "10"),
        ("prefill", "--requests", "0"),
        ("vision", "--repeats", "0"),
    ],
)
def test_nothing_to_measure_is_an_error(wrong: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", *wrong, "--model", "moondream-tiny", "--device", "cpu"]) == 2
    assert "needs" in capsys.readouterr().err


@pytest.mark.gpu
def test_the_driver_knows_its_gpu() -> None:
    gpu = Gpu(0)
    assert gpu.driver.split(".")[0].isdigit() and 0 <= gpu.busy <= 1 and gpu.used_bytes > 0
