import json
import subprocess
import sys
from pathlib import Path

import pytest
from tiny_folder import save_tiny

from kestrel_tools.bench.parts import serving
from kestrel_tools.commands import main

SMALL = ("bench", "scheduler", "--running", "3", "--waiting", "5", "--steps", "60")


def test_the_scheduler_is_measured_with_and_without_a_queue(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL, "--json"]) == 0
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert list(document["microseconds"]) == [
        "random bytes",
        "random bytes, 5 wait",
        "letters, every sixth a space",
        "a chunk every token",
    ]
    assert (document["running"], document["waiting"], document["steps"]) == (3, 5, 60)
    for phases in document["microseconds"].values():
        assert list(phases) == ["plan", "commit", "publish", "step"]
        for times in phases.values():
            assert 0 < times["median"] <= times["p95"] <= times["p99"]
    assert "a chunk every token" in err, "the table goes where it does not disturb the JSON"


def test_without_json_there_is_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(SMALL) == 0
    out, err = capsys.readouterr()
    assert err == "" and out.count("publish") == 4, "once for each case"


@pytest.mark.parametrize("wrong", [("--running", "0"), ("--waiting", "-1"), ("--steps", "1")])
def test_nothing_to_measure_is_an_error(wrong: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL, *wrong]) == 2
    assert capsys.readouterr().err.startswith("kestrel: there must be a running sequence")


def test_the_measurement_needs_no_torch() -> None:
    program = f"""
import sys
from kestrel_tools.commands import main
assert main({[*SMALL, "--json"]}) == 0
assert "torch" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.triton
def test_serving_is_measured_every_way_in_one_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(serving, "NUM_PICTURES", 1)
    monkeypatch.setattr(serving, "ROUNDS", 1)
    options = ["--callers", "1,2", "--tokens", "24", "--seconds", "0.01", "--json"]
    assert main(["bench", "serving", *options]) == 0
    rows = json.loads(capsys.readouterr().out)["measured"]
    ways = ("engine alone", "gRPC", "gRPC, guarded", "HTTP", "gateway", "engine alone, again")
    cases = [(way, callers, streams) for way in ways for callers in (1, 2) for streams in (False, True)]
    assert [(row["way"], row["callers"], row["streams"]) for row in rows] == cases
    for row in rows:
        assert row["requests_per_s"] > 0 and row["p50_ms"] <= row["p95_ms"]
        # The words of its vocabulary end in a space, so a streamed answer comes in several pieces.
        assert (row["pieces_per_s"] > 1.5 * row["requests_per_s"]) == row["streams"]
        assert row["streams"] or row["pieces_per_s"] == row["requests_per_s"]


@pytest.mark.triton
def test_a_server_gives_as_many_tokens_as_the_engine(tmp_path: Path) -> None:
    file = tmp_path / "chartqa.json"
    folder = save_tiny(tmp_path / "tiny")
    command = ["bench", "chartqa", "--through", "engine,triton,gateway", "--batch", "2", "--tokens", "30"]
    options = ["--seconds", "1", "--warm-up", "6", "--model-path", str(folder), "--device", "cpu"]
    assert main([*command, *options, "--json", str(file)]) == 0
    engine, *servers = json.loads(file.read_text())["measured"]
    assert [row["through"] for row in (engine, *servers)] == ["engine", "gateway", "triton"]
    for row in (engine, *servers):
        assert row["counts"]["output_tokens"] == 30 * row["requests"]
        assert row["counts"]["steps"] > 0 and row["counts"]["images_encoded"] > 0
    for row in servers:
        assert row["of_engine"] == pytest.approx(row["requests_per_s"] / engine["requests_per_s"])


@pytest.mark.parametrize(
    "told",
    [
        ("decode", "--model-path=nowhere", "--device=cpu", "--json=."),
        ("load", "--model-path=nowhere", "--device=cpu", "--html=."),
        ("attacks", "--url=localhost:1", "--json=."),
    ],
)
def test_a_result_that_would_go_into_a_folder_is_refused_before_the_work(
    told: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", *told]) == 2
    assert "it is a folder" in capsys.readouterr().err
    assert main(["bench", *told[:-1], f"{told[-1]}/{'x' * 300}"]) == 2
    assert "x cannot be written" in capsys.readouterr().err


def test_a_result_is_rendered_as_markdown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = {
        "bench": "decode",
        "date": "2026-01-01",
        "commit": "abc",
        "machine": {"gpu": "H200", "gpu_memory_gib": 139.8, "cpu": "x86", "cores": 16, "memory_gib": 128.0},
        "versions": {"torch": "2.11", "flashinfer": None},
        "config": {"model": "moondream2", "weights": "random", "dtype": "auto", "device": "cuda"},
        "workload": {"context": 800},
        "measured": [
            {"batch": 64, "context": 800, "tokens_per_s": 16000.4, "step_ms": 4.0, "of_floor": 0.76}
        ],
    }
    file = tmp_path / "decode.json"
    file.write_text(json.dumps(document))
    assert main(["bench", "report", str(file)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "- H200 (139.8 GiB), 16 cores, x86, 128 GiB" in lines and "- torch 2.11" in lines
    assert "| 64 | 800 | 16,000 | 4.000 | - | - | - | - | 76% |" in lines
    file.write_text("[]")
    assert main(["bench", "report", str(file)]) == 2
    assert "is no result of kestrel bench" in capsys.readouterr().err
