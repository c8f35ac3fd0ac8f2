"""A server that is asked to end ends in order: exit code 0, and no process dies by a signal on the way."""

import re
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest
from triton_server import ROOT, picture, served, until

pytestmark = pytest.mark.triton


@pytest.fixture
def cores() -> Iterator[Path]:
    """Where a process that dies by a signal leaves a core: nobody else hears how Triton's stub has ended.

    Of a core a page is enough. A machine that pipes its cores elsewhere, or allows none, shows the log alone.
    """
    assert not list(ROOT.glob("core*")), "not of ours, and not to be removed by us"
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (4096 if hard == resource.RLIM_INFINITY else hard, hard))
    yield ROOT
    resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))
    for core in ROOT.glob("core*"):
        core.unlink()


@pytest.mark.parametrize("time", ["once", "again"])
def test_a_server_that_has_answered_stops_cleanly(
    time: str, model: Path, tmp_path: Path, cores: Path
) -> None:
    with served(tmp_path / "log", KESTREL_MODEL_PATH=str(model)) as server:
        server.ask(SKILL="caption", IMAGE=picture(1), TEMPERATURE=0.0, MAX_TOKENS=3)
        until(lambda: server.metric("kestrel_request_seconds_count") > 0)
        assert server.end() == 0
    words = (tmp_path / "log").read_text().replace("Signal (15) received", "")  # which is the one we sent
    assert not re.search(r"segmentation|signal|core dumped|is not healthy", words, re.IGNORECASE)
    assert not list(cores.glob("core*"))
