"""Golden folders for the tests of `kestrel parity`."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from goldens import lay_out

from kestrel_tools.commands import main
from kestrel_tools.parity import engine_runs


@pytest.fixture(scope="session")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lay_out("md2", tmp_path_factory.mktemp("md2"))


@pytest.fixture
def folder(golden: Path, tmp_path: Path) -> Path:
    """A copy to damage, small enough to be run in seconds: one picture, few runs."""
    copy = tmp_path / "folder"
    shutil.copytree(golden, copy, ignore=shutil.ignore_patterns("crops_tall.npz", "tiling.json"))
    expected = json.loads((copy / "expected.json").read_text())
    kept = "tiling", "prefix_len", "query0", "caption_short", "detect0"
    expected["small"] = {key: expected["small"][key] for key in kept}
    (copy / "expected.json").write_text(json.dumps(expected))
    return copy


@pytest.fixture
def decodes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same without the stages before the decodes; an engine tries one size of a batch."""
    for stage in ("vision", "text", "unit"):
        (folder / f"{stage}.safetensors").unlink()
    monkeypatch.setattr(engine_runs, "BATCH_SIZES", (3,))
    return folder


@pytest.fixture
def parity(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, dict[str, Any]]]:
    """Runs the command; gives its exit code and the JSON of its last line."""

    def run(*arguments: str | Path) -> tuple[int, dict[str, Any]]:
        code = main(["parity", *map(str, arguments)])
        lines = capsys.readouterr().out.splitlines()
        assert "--json" not in arguments or len(lines) == 1
        document: dict[str, Any] = json.loads(lines[-1])
        return code, document

    return run
