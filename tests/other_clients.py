"""Runs clients of other people against a server of ours, and judges what they were told.

A client is driven by a small script in `ecosystem/drivers/`, in the environment that `make test-ecosystem`
set up for it. The script prints what the client was told, as JSON in its last line.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
ENVIRONMENTS = ROOT / ".ecosystem"
DRIVERS = ROOT / "tests/ecosystem/drivers"
SAMPLE = ROOT / "client/samples/circles.png"

Drive = Callable[..., Any]  # environment, driver, arguments


def run_driver(home: Path, environment: str, driver: str, *arguments: Any) -> Any:
    done = subprocess.run(
        [interpreter(environment), DRIVERS / driver, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=home,
        env=variables(home),
    )
    assert done.returncode == 0, f"{driver} failed:\n{done.stderr[-4000:]}"
    return json.loads(done.stdout.splitlines()[-1])


def interpreter(environment: str) -> str:
    if environment == "ours":
        return sys.executable
    if environment == "node":
        found = shutil.which("node")
        assert found, "there is no node here; install Node 20 or newer, with npm"
        return found
    return str(ENVIRONMENTS / environment / "bin/python")


def variables(home: Path) -> dict[str, str]:
    """Nothing of the machine's own settings: a key or a proxy there would decide what is tested."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "NODE_PATH": str(ENVIRONMENTS / "node_modules"),
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # it would ask elsewhere for prices
    }


def near(places: Sequence[Mapping[str, float]]) -> Any:
    """Equal to boxes or points that are at most 0.02 of the picture away: some clients send it as a JPEG."""
    return [pytest.approx(dict(place), abs=0.02) for place in places]


def are_pieces_of(whole: str, pieces: Sequence[str]) -> bool:
    """Whether a streamed answer came in more than one piece, and all of it."""
    return len(pieces) > 1 and "".join(pieces) == whole
