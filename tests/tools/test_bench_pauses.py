"""`kestrel bench pauses`: what is asked for, and what the result tells."""

import json
from pathlib import Path
from typing import Any

import pytest
from tiny_folder import save_tiny

from kestrel_core.protocol.errors import InvalidRequest
from kestrel_tools.bench.pauses_options import Pauses
from kestrel_tools.bench.results import SECTIONS, markdown
from kestrel_tools.commands import main


def test_every_policy_is_measured_with_and_without_pictures(tmp_path: Path) -> None:
    folder, file = save_tiny(tmp_path / "tiny", 2), tmp_path / "result.json"
    command = ["pauses", "--streams", "2,3", "--pictures-per-s", "8,4", "--seconds", "1.5"]
    command += ["--policies", "off,slices:8", "--callers", "3", "--even"]
    engine = ["--model-path", str(folder), "--device", "cpu", "--step-tokens", "512"]
    assert main(["bench", *command, *engine, "--json", str(file)]) == 0
    document: dict[str, Any] = json.loads(file.read_text())
    rows = document["measured"]
    told = [(row["policy"], row["streams"], row["requests"]) for row in rows]
    assert told == [("off", 2, 12), ("off", 3, 6), ("slices:8", 2, 12), ("slices:8", 3, 6)]
    for row in rows:
        assert 0 < row["quiet_p50_ms"] <= row["quiet_p99_ms"]
        assert 0 < row["pause_p50_ms"] <= row["pause_p95_ms"] <= row["pause_p99_ms"] <= row["pause_max_ms"]
        assert 0 < row["p50_ms"] <= row["p95_ms"] <= row["p99_ms"]
        assert row["tokens_per_s"] > 0 and row["offered_per_s"] in (8, 4)
    assert ["closed_per_s" in row for row in rows] == [False, True, False, True]
    assert rows[1]["closed_per_s"] > 0
    assert document["workload"]["arrivals"] == "at even intervals"
    assert all(column.key in rows[1] for section in SECTIONS["pauses"] for column in section.columns)
    assert "slices:8" in markdown(document)


@pytest.mark.parametrize(
    "wrong",
    [
        {"streams": ()},
        {"streams": (1, 2)},
        {"streams": (0,)},
        {"pictures_per_s": (0,)},
        {"seconds": 0.0},
        {"callers": -1},
        {"caller_tokens": 0},
        {"policies": ("fast",)},
        {"policies": ("slices:0",)},
        {"policies": ("slices:",)},
    ],
)
def test_pauses_that_cannot_be_measured_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        Pauses(**wrong)
