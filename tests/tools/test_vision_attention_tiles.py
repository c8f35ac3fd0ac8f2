import sys
from pathlib import Path

import pytest
import torch

import vision_attention_tiles
from vision_attention_tiles import Tiles, fastest, flops, print_table, supervise, where

WORKER = """#!{python}
import json, sys
choices = json.loads(sys.argv[3])
print(json.dumps({{"index": -1, "name": "cuDNN", "ms": {{"56": 0.5}}}}), flush=True)
for index, tiles in choices.items():
    if tiles["keys"] == 96:
        print(json.dumps({{"index": int(index), "failure": "hangs"}}), flush=True)
        sys.exit(3)
    if tiles["keys"] == 64:
        sys.exit(1)
    told = {{"index": int(index), "distance": 3e-3}}
    print(json.dumps(told | {{"ms": {{"56": tiles["keys"] / 100}}}}), flush=True)
"""


def test_products_are_counted_without_padding() -> None:
    assert flops(56) == 4 * 56 * 16 * 729 * 729 * 72


def test_what_hangs_or_breaks_costs_its_own_place_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    worker = tmp_path / "worker"
    worker.write_text(WORKER.format(python=sys.executable))
    worker.chmod(0o755)
    monkeypatch.setattr(vision_attention_tiles.sys, "executable", str(worker))
    choices = [Tiles(keys=keys) for keys in (128, 96, 64, 112)]
    found = supervise(choices)
    assert found[1]["failure"] == "hangs" and found[2]["failure"] == "ended its process with 1"
    assert fastest(choices, found) == choices[3]
    print_table(choices, found)
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("cuDNN") and "keys=112" in lines[2] and "keys=128" in lines[3]
    assert lines[-1].endswith(("hangs", "with 1"))


def test_a_worker_that_does_not_start_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vision_attention_tiles.sys, "executable", "false")
    assert supervise([Tiles(), Tiles(keys=96)]) == {}


def test_a_wrong_result_is_told_by_its_parts() -> None:
    expected = torch.ones(729, 16 * 72)
    made = expected.clone()
    made.view(729, 16, 72)[128:192, :, 64:] = 0
    told = where(made, expected)
    assert "1.0000 are numbers, columns to 64 and above off by 0 0.3" in told
    assert told.split("rows by 64: ")[1].split()[:4] == ["0", "0", "0.33", "0"]
