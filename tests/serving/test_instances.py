"""Several engines in one server: each instance takes its device from the model's parameters."""

from pathlib import Path

import pytest
from triton_server import repository_with, served, until

pytestmark = pytest.mark.triton


def test_two_instances_answer_side_by_side_and_alike(model: Path, tmp_path: Path) -> None:
    repository = repository_with(tmp_path, {"model_path": str(model), "devices": "cpu, cpu"}, count=2)
    with served(tmp_path / "log", f"--model-repository={repository}", KESTREL_DEVICE="") as server:
        assert len(server.children(server.children()[0])) == 2
        asked = [{"SKILL": "query", "QUESTION": "who?", "TEMPERATURE": 0.0, "MAX_TOKENS": 5}] * 8
        said: set[str] = set()
        lines = [f'kestrel_requests_total{{engine="{n}",outcome="length",skill="query"}}' for n in (0, 1)]

        def both_have_answered() -> bool:
            """Triton hands a request to whichever instance is free, so the shares of a few are chance."""
            said.update(answer[-1]["answer"] for answer in server.ask_all(asked))
            return all(server.metrics().get(line, 0) > 1 for line in lines)

        until(both_have_answered)
        assert len(said) == 1
