"""`kestrel doctor`: the bundled model is healthy, and whatever goes wrong is a row."""

import json
import subprocess
import sys
from dataclasses import replace
from hashlib import sha256
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from tiny_folder import save_tiny

from kestrel_core.config import RuntimeConfig
from kestrel_core.intake import hub
from kestrel_core.intake.hub import ModelFiles
from kestrel_core.intake.models import DEMO, MODELS
from kestrel_tools.commands import main
from kestrel_tools.doctor import command
from kestrel_tools.doctor.files import BUNDLED_SHA256
from kestrel_tools.doctor.model import adapters_bytes, locate
from kestrel_tools.doctor.questions import (
    TINY,
)
from kestrel_tools.doctor.report import Finding, Report, Verdict, fault, first_names, ok, skipped, warning

ROOT = Path(__file__).parents[3]
PORTS = ["--port", "0", "--http-port", "0", "--grpc-port", "0", "--metrics-port", "0"]  # any that are free


def test_the_bundled_model_is_healthy(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json", *PORTS]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["healthy"] and document["model"] == "moondream-tiny"
    assert sum(document["counts"].values()) == len(document["rows"])
    assert {row["section"] for row in document["rows"]} == {
        "machine",
        "files",
        "tensors",
        "words",
        "adapters",
        "consistency",
        "questions",
    }
    answers = [row for row in document["rows"] if row["section"] == "questions"]
    assert len(answers) == len(TINY) and all(row["verdict"] == "ok" for row in answers)
    for row in document["rows"]:
        assert row.keys() == {"section", "check", "verdict", "found", "advice"}
        assert row["found"] and (row["advice"] or row["verdict"] in ("ok", "skipped"))


def test_a_model_that_nobody_published_is_not_asked_what_it_cannot_know(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = save_tiny(tmp_path / "model", generation=3)
    assert main(["doctor", "--json", "--model-path", str(folder), *PORTS]) == 0
    document = json.loads(capsys.readouterr().out)
    [row] = [row for row in document["rows"] if row["section"] == "questions"]
    assert row["verdict"] == "skipped" and "no published model has this shape" in row["found"]
    verdicts = {row["check"]: row["verdict"] for row in document["rows"] if row["section"] == "consistency"}
    assert verdicts == dict.fromkeys(("engine", "alone", "in a batch", "from the prefix cache"), "ok")
    # Its words are single bytes, so its templates spell nothing.
    assert [row["verdict"] for row in document["rows"] if row["check"] == "templates"] == ["warning"]


def test_random_weights_are_only_tried_for_consistency(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--model", "moondream-tiny", "--weights", "random", "--prefix-cache", "false"]
    assert main(["doctor", "--json", *arguments, *PORTS]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    verdicts = {(row["section"], row["check"]): row["verdict"] for row in rows}
    assert verdicts["files", "all"] == verdicts["questions", "known answers"] == "skipped"
    assert verdicts["consistency", "in a batch"] == "ok"
    assert verdicts["consistency", "from the prefix cache"] == "skipped"


def test_a_damaged_model_is_exit_code_one_and_a_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"<!doctype html>")
    assert main(["doctor", "--model-path", str(tmp_path), *PORTS]) == 1
    out = capsys.readouterr().out
    assert "what to do" in out and "fault" in out and "not healthy" in out


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--model", "moondream9"], 'there is no model "moondream9"'),
        (["--model-path", "nowhere"], "there is no nowhere"),
        (["--http-port", "70000"], "a port is from 0 to 65535"),
        (["--dtype", "int3"], 'dtype is "int3"'),
    ],
)
def test_what_cannot_be_run_as_asked_is_exit_code_two(
    arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", *arguments]) == 2
    assert problem in capsys.readouterr().err


def test_a_check_that_raises_is_a_fault_row() -> None:
    report = Report()

    def look() -> Finding:
        raise RuntimeError("the patient bites\nand more")

    report.check("machine", "teeth", look, "Keep your fingers away.")
    [row] = report.rows
    assert row.verdict is Verdict.FAULT and not report.is_healthy
    assert row.found == "RuntimeError: the patient bites" and row.advice == "Keep your fingers away."


def test_without_torch_there_is_still_a_report() -> None:
    program = (
        "import sys; sys.modules['torch'] = None; from kestrel_tools.commands import main; sys.exit(main("
    )
    done = subprocess.run(
        [sys.executable, "-c", f"{program}['doctor', '--json']))"],
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'tools'}:{ROOT / 'client'}"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1, done.stderr
    faults = [row["check"] for row in json.loads(done.stdout)["rows"] if row["verdict"] == "fault"]
    assert faults == ["GPU", "engine"]


def test_a_device_that_is_asked_for_and_not_there_is_a_fault(capsys: pytest.CaptureFixture[str]) -> None:
    if _has_gpu():
        pytest.skip("there is a GPU here")
    arguments = ["doctor", "--json", "--machine-only", *PORTS]
    assert main([*arguments, "--device", "cuda"]) == 1
    assert _verdict(capsys, "GPU") == "fault"
    assert main(arguments) == 0
    assert _verdict(capsys, "GPU") == "skipped"


def test_nothing_is_downloaded_onto_a_disk_that_is_too_small(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "_look_at_disk", lambda config: fault("it is full", "Free some space."))
    assert main(["doctor", "--json", "--model", "moondream2", "--device", "cpu", *PORTS]) == 1
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert rows[-1]["section"] == "files" and rows[-1]["found"] == "there is no room for the download"


@pytest.mark.parametrize(("revision", "verdict"), [(None, Verdict.WARNING), ("b" * 40, Verdict.OK)])
def test_a_download_that_is_not_pinned_is_a_warning(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, revision: str | None, verdict: Verdict
) -> None:
    fetched = ModelFiles(tmp_path / ("a" * 40), tmp_path / "tokenizer.json")
    monkeypatch.setattr(hub, "fetch_model", lambda *_: fetched)
    place, finding = locate(RuntimeConfig(model="moondream2", revision=revision), lambda done, total: None)
    assert place.path == fetched.folder and finding.verdict is verdict
    assert ("--revision " + "a" * 40 in finding.advice) == (revision is None)


def _has_gpu() -> bool:
    import torch

    return torch.cuda.is_available()


def _verdict(capsys: pytest.CaptureFixture[str], check: str) -> str:
    rows = json.loads(capsys.readouterr().out)["rows"]
    return next(str(row["verdict"]) for row in rows if row["check"] == check)


def test_room_for_adapters_is_counted_where_there_can_be_any(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MOONDREAM_API_KEY", raising=False)
    named = RuntimeConfig(model="moondream2")
    assert adapters_bytes(named) == 0
    assert adapters_bytes(replace(named, adapters="anywhere")) == pytest.approx(0.5 * 2**30, rel=0.1)
    assert adapters_bytes(RuntimeConfig(model=DEMO)) > 0, "it brings some with it"
    own = RuntimeConfig(model_path=str(save_tiny(tmp_path)), adapter_hub=True, max_adapters=1)
    assert 0 < adapters_bytes(own) < 2**20


def test_the_table_and_the_summary_have_every_row() -> None:
    report = Report()
    for finding in (ok("well"), warning("odd", "Look."), skipped("no GPU"), fault("[red]broken", "Mend it.")):
        report.add("section", f"is {finding.verdict}", finding)
    console = Console(width=100, record=True, file=StringIO())
    report.print(console)
    text = console.export_text()
    for word in ("is ok", "is warning", "is skipped", "is fault", "[red]broken", "Mend it."):
        assert word in text
    assert report.summary(1.0) == "not healthy: 1 ok, 1 warnings, 1 faults, 1 skipped in 1.0 s"
    assert first_names([str(i) for i in range(12)]) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more"


def test_the_bundled_digests_are_those_of_the_bundled_files() -> None:
    folder = MODELS[DEMO].folder
    assert folder is not None
    record = folder / "model.safetensors.sha256"
    files = {path for path in folder.iterdir() if path.is_file()} - {folder / "README.md", record}
    assert {file.name: sha256(file.read_bytes()).hexdigest() for file in files} == BUNDLED_SHA256
    assert BUNDLED_SHA256["model.safetensors"] in record.read_text(), "it is verified by this one"


def test_the_engine_options_are_the_siblings(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["doctor", "--help"])
    out = capsys.readouterr().out
    assert out.index("--machine-only") < out.index("--max-batch-size")
    assert all(f"--{name.replace('_', '-')}" in out for name in RuntimeConfig.__slots__ if name != "seed")
