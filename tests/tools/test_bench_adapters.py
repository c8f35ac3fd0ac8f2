"""Benchmarks with adapters: what is asked of which adapter, and what the results tell."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny import tiny_config
from tiny_folder import save_tiny

from kestrel_core.moondream.checkpoint.adapter_files import read_adapter
from kestrel_core.protocol.errors import InvalidRequest
from kestrel_tools.bench.options import AdapterLoads, ChartQA
from kestrel_tools.bench.results import SECTIONS
from kestrel_tools.commands import main
from kestrel_tools.random_adapters import write_random_adapters


def measured(tmp_path: Path, generation: int, *command: str) -> dict[str, Any]:
    folder, file = save_tiny(tmp_path / "tiny", generation), tmp_path / "result.json"
    engine = ["--model-path", str(folder), "--device", "cpu", "--step-tokens", "512"]
    assert main(["bench", *command, *engine, "--json", str(file)]) == 0
    document: dict[str, Any] = json.loads(file.read_text())
    return document


@pytest.mark.parametrize("generation", [2, 3])
def test_random_adapters_are_files_that_are_read_and_none_is_another(tmp_path: Path, generation: int) -> None:
    config = tiny_config(generation).text
    names = write_random_adapters(tmp_path, config, [4, 4, 8])
    files = [tmp_path / f"{name}.safetensors" for name in names]
    adapters = [read_adapter(file, config, torch.float32, 8) for file in files]
    assert [adapter.rank for adapter in adapters] == [4, 4, 8]
    assert len({adapter.identity for adapter in adapters}) == 3
    again = tmp_path / "again"
    again.mkdir()
    write_random_adapters(again, config, [4, 4, 8])
    assert [(again / file.name).read_bytes() for file in files] == [file.read_bytes() for file in files]


def test_the_engine_is_measured_without_with_none_used_and_with_all_in_turn(tmp_path: Path) -> None:
    document = measured(
        tmp_path,
        3,
        *("chartqa", "--batch", "2", "--seconds", "1.5", "--warm-up", "6"),
        *("--num-adapters", "3", "--adapter-rank", "4"),
    )
    rows = document["measured"]
    told = [None, "none used", "3 of rank 4, by request", "3 of rank 4, by picture"]
    assert [row["adapters"] for row in rows] == told
    assert rows[0]["of_engine"] is None
    for row in rows[1:]:
        assert row["of_engine"] == pytest.approx(row["requests_per_s"] / rows[0]["requests_per_s"])
    assert all(row["counts"]["output_tokens"] == 3 * row["requests"] > 0 for row in rows)


def test_loads_are_timed_while_streams_decode_and_pauses_are_told(tmp_path: Path) -> None:
    command = "adapters", "--streams", "3", "--loads", "4", "--rank", "4"
    document = measured(tmp_path, 2, *command)
    resident, loaded, nothing = document["measured"]
    assert [row["requests"] for row in (resident, loaded, nothing)] == [4, 4, 0]
    assert (resident["loads"], loaded["loads"], nothing["loads"]) == (0, 4, 0)
    assert loaded["evictions"] == 3, "of two places one stays with the streams' adapter"
    assert 0 < loaded["ttft_min_ms"] <= loaded["ttft_p50_ms"] <= loaded["ttft_max_ms"]
    assert nothing["ttft_p50_ms"] is None and nothing["seconds"] >= loaded["seconds"]
    assert all(0 < row["pause_p50_ms"] <= row["pause_max_ms"] for row in (loaded, nothing))
    assert all(column.key in loaded for section in SECTIONS["adapters"] for column in section.columns)
    assert document["machine"]["cores"] >= 1 and document["workload"]["streams"].startswith("3,")


@pytest.mark.parametrize("wrong", [{"streams": 0}, {"loads": 0}, {"rank": 0}])
def test_loads_that_cannot_be_measured_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(InvalidRequest):
        AdapterLoads(**wrong)


@pytest.mark.parametrize("wrong", [{"num_adapters": -1}, {"adapter_rank": 0}])
def test_adapters_that_cannot_be_made_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(InvalidRequest):
        ChartQA(**wrong)
