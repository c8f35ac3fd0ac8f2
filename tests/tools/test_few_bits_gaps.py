"""What float8 costs golden choices is within the limits of `kestrel parity`, and a fault is not."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from goldens import golden_embeddings, golden_language, lay_out
from tiny import tiny_config, tiny_model

from few_bits_gaps import decode, gaps, in_float8, scaled
from kestrel_core.build import load_model
from kestrel_core.moondream.model import Moondream
from kestrel_core.moondream.scales import measure_scales, sample_pictures, sample_prompts
from kestrel_tools.parity import md3
from kestrel_tools.parity.command import FEW_BITS_TOLERANCE
from kestrel_tools.parity.report import Report
from kestrel_tools.parity.runs import Judge
from kestrel_tools.parity.subject import Subject

LARGEST, MEAN = FEW_BITS_TOLERANCE["fp8"]


@torch.inference_mode()
def test_float8_costs_less_than_the_limits_and_a_fault_more(tmp_path: Path) -> None:
    folder = lay_out("md3", tmp_path)
    model = load_model(folder, None, torch.device("cpu"), torch.float32)
    network, encode = model.network, golden_embeddings(folder)
    subject = Subject(network, model.device, encode)
    runs = [run for run in md3.runs(folder, subject, model.language) if run.request.skill == "query"]
    decoded = decode(model, runs, encode)
    config = network.config
    largest = dict(
        measure_scales(network, sample_pictures(config.vision)[:1], sample_prompts(config)).largest
    )

    def costs(other: Moondream) -> tuple[float, float]:
        found = gaps(other, decoded, encode)
        return float(found.max()), float(found.mean())

    assert costs(network) == (0.0, 0.0)
    most, mean = costs(in_float8(network, largest))
    assert 0.05 < most < LARGEST and 0.001 < mean < MEAN
    assert costs(scaled(in_float8(network, largest), 2, "mlp.fc1"))[1] > MEAN


@pytest.mark.parametrize(("gap", "passed"), [(0.01, True), (0.05, False)])
def test_many_small_gaps_are_missed_though_none_is_large(
    gap: float, passed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge, report = (
        Judge(tiny_model(tiny_config(3)), golden_language("md3"), LARGEST, MEAN),
        Report("relative RMS", 0.05),
    )
    monkeypatch.setattr(judge, "_judged", lambda run, reply: [gap, 0.0, 0.0])
    run: Any = SimpleNamespace(where="query 0")
    reply: Any = SimpleNamespace(choices=())
    for _ in range(2):
        judge.check("engine alone", run, reply, report)
    judge.check_mean("engine, all choices", report)
    assert report.stages["engine alone"].passed and report.stages["engine alone"].count == 6
    assert report.stages["engine, all choices"].worst == pytest.approx(gap / 3)
    assert report.passed is passed
