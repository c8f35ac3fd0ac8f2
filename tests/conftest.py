"""What holds for every test: a machine runs those it can, and Hypothesis always draws the same examples."""

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec

import pytest
from standstill import Standstill

with suppress(ImportError):  # a GPU machine may offer pytest alone
    from hypothesis import settings

    settings.register_profile("kestrel", derandomize=True, deadline=None)  # no timing decides a test
    settings.load_profile("kestrel")

if "PYTEST_XDIST_WORKER" in os.environ:  # one of several processes that share the cores, as their servers do
    os.environ.setdefault("OMP_NUM_THREADS", "1")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Standstill())


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    needs = {
        "gpu": no_gpu,
        "triton": no_triton,
        "browser": no_browser,
        "ecosystem": lambda: not_asked_for(config, "ecosystem"),
        "attacks": lambda: not_asked_for(config, "attacks"),
    }
    for marker, missing in needs.items():
        marked = [item for item in items if item.get_closest_marker(marker)]
        if marked and (reason := missing()):
            for item in marked:
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """For small networks: torch's threads would wait for each other longer than they compute."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def no_gpu() -> str | None:
    import torch  # two seconds, which a run without GPU tests need not spend

    return None if torch.cuda.is_available() else "no CUDA device here"


def no_triton() -> str | None:
    found = find_spec("pytriton") or shutil.which("tritonserver")
    return None if found else "no Triton server here: neither nvidia-pytriton nor tritonserver on PATH"


def not_asked_for(config: pytest.Config, marker: str) -> str | None:
    """They take minutes, and some need clients that their command installs; so they only run when named."""
    return None if marker in config.getoption("markexpr") else f"run by `make test-{marker}`"


def no_browser() -> str | None:
    if not find_spec("playwright"):
        return "no Playwright here, which drives a browser: pip install playwright"
    return None if shutil.which("chromium") else "no chromium on PATH, for the tests of the page"
