import json
import subprocess
import sys
from pathlib import Path

import pytest

from kestrel_core import cli
from kestrel_core.cli import main

SMALL = ("bench", "scheduler", "--running", "3", "--waiting", "5", "--steps", "60")


def test_the_scheduler_is_measured_with_and_without_a_queue(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL, "--json"]) == 0
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert list(document["microseconds"]) == ["random bytes", "random bytes, 5 wait", "a chunk every token"]
    assert (document["running"], document["waiting"], document["steps"]) == (3, 5, 60)
    for phases in document["microseconds"].values():
        assert list(phases) == ["plan", "commit", "publish", "step"]
        for times in phases.values():
            assert 0 < times["median"] <= times["p95"] <= times["p99"]
    assert "a chunk every token" in err, "the table goes where it does not disturb the JSON"


def test_without_json_there_is_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(SMALL) == 0
    out, err = capsys.readouterr()
    assert err == "" and out.count("publish") == 3


@pytest.mark.parametrize("wrong", [("--running", "0"), ("--waiting", "-1"), ("--steps", "1")])
def test_nothing_to_measure_is_an_error(wrong: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL, *wrong]) == 2
    assert capsys.readouterr().err.startswith("kestrel: there must be a running sequence")


def test_the_measurement_needs_no_torch() -> None:
    program = f"""
import sys
from kestrel_core.cli import main
assert main({[*SMALL, "--json"]}) == 0
assert "torch" not in sys.modules
"""
    root = Path(cli.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.triton
def test_serving_is_measured_every_way_in_one_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "serving", "--concurrency", "2", "--seconds", "0.5", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["measured"]
    ways = ("engine alone", "gRPC", "HTTP", "engine alone, again")
    assert [(row["way"], row["streams"]) for row in rows] == [(w, s) for w in ways for s in (False, True)]
    for row in rows:
        assert row["requests_per_s"] > 0 and row["p50_ms"] <= row["p95_ms"]
        # The words of its vocabulary end in a space, so a streamed answer comes in several pieces.
        assert (row["pieces_per_s"] > 1.5 * row["requests_per_s"]) == row["streams"]
