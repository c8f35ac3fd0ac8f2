"""Schemathesis over /openapi.json: good and bad requests, and every answer is one that the document has."""

import re
import subprocess
from pathlib import Path

import pytest
from gateway_server import FakeAnswer, FakeUpstream, running
from other_clients import ENVIRONMENTS, variables
from triton_server import Served

from kestrel_core.protocol.messages import Request
from kestrel_core.skills.arguments import spatial_inputs
from kestrel_core.skills.registry import builtin_skills
from kestrel_gateway.upstream.replica import Replica
from kestrel_gateway.upstream.replicas import Replicas

SCHEMATHESIS = ENVIRONMENTS / "schemathesis/bin/schemathesis"
CONFIG = Path(__file__).with_name("schemathesis.toml")
SEED = 7

pytestmark = pytest.mark.ecosystem


class CheckingUpstream(FakeUpstream):
    """Refuses what a server would refuse, and answers anything else."""

    async def open(self, request: Request) -> FakeAnswer:
        builtin_skills().check(request)
        spatial_inputs(request)
        return await super().open(request)


def tried(port: int, folder: Path, phases: str, max_examples: int) -> None:
    """Runs it, and shows its report if it complains. With one worker: Python 3.11 cannot parse in threads."""
    run = subprocess.run(
        [
            *(SCHEMATHESIS, f"--config-file={CONFIG}", "run", f"http://127.0.0.1:{port}/openapi.json"),
            *("--mode=all", f"--phases={phases}", f"--max-examples={max_examples}", f"--seed={SEED}"),
            *("--request-timeout=30", "--workers=1", "--continue-on-failure"),
            *("--generation-database=none", "--suppress-health-check=all", "--no-color"),
        ],
        cwd=folder,  # it leaves files behind
        env=variables(folder),
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert run.returncode == 0, run.stdout[-20_000:] + run.stderr[-2000:]
    found = re.search(r"Selected: (\d+)/(\d+)\s+Tested: (\d+)", run.stdout)
    assert found and len(set(found.groups())) == 1, run.stdout


def test_every_answer_is_in_the_document(tmp_path: Path) -> None:
    upstream = Replicas([Replica("here", CheckingUpstream(), clock=lambda: 0.0)])
    with running(upstream) as gateway:
        tried(gateway.port, tmp_path, "examples,coverage,fuzzing", 10)


@pytest.mark.triton
def test_every_answer_of_the_real_stack_is_in_the_document(stack: Served, tmp_path: Path) -> None:
    tried(stack.port, tmp_path, "examples,fuzzing", 10)
