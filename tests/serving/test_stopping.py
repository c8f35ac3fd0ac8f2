"""A server that is asked to end ends in order: exit code 0, and no process dies by a signal on the way."""

import re
from pathlib import Path

import pytest
from triton_server import picture, served, until

pytestmark = pytest.mark.triton


@pytest.mark.parametrize("time", ["once", "again"])
def test_a_server_that_has_answered_stops_cleanly(time: str, model: Path, tmp_path: Path) -> None:
    with served(tmp_path / "log", KESTREL_MODEL_PATH=str(model)) as server:
        server.ask(SKILL="caption", IMAGE=picture(1), TEMPERATURE=0.0, MAX_TOKENS=3)
        until(lambda: server.metric("kestrel_request_seconds_count") > 0)
        assert server.end() == 0
    log = (tmp_path / "log").read_text()
    assert not re.search(
        r"segmentation|signal|core dumped|stub process .* is not healthy", log, re.IGNORECASE
    )
