"""Golden folders for the tests of `kestrel parity`."""

import json
import shutil
from pathlib import Path

import pytest
from goldens import lay_out


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
