"""One server for all short attacks."""

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest

# A GPU machine may offer pytest alone.
collect_ignore_glob = [] if find_spec("tritonclient") and find_spec("hypothesis") else ["test_*.py"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seconds", type=float, default=1800.0, help="of the soak")


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from attacks.stack import stack

    with stack(tmp_path_factory.mktemp("attacks")) as it:
        yield it
