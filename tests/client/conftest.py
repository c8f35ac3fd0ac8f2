from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from client.fake_triton import FakeTriton

# A GPU machine may offer pytest alone.
collect_ignore_glob = [] if find_spec("tritonclient") else ["test_*.py"]


@pytest.fixture
def fake() -> Iterator["FakeTriton"]:
    from client.fake_triton import FakeTriton

    server = FakeTriton()
    yield server
    server.stop()
