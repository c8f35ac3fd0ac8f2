"""The pinned versions agree with each other, with the extras, and with what was measured."""

import json
import re
import tomllib
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]


def pins(name: str) -> dict[str, str]:
    """Versions by package, of a constraints file and of those it includes."""
    lines = [line.partition("#")[0].strip() for line in (ROOT / name).read_text().splitlines()]
    found = {}
    for line in filter(None, lines):
        if included := re.fullmatch(r"-c (\S+)", line):
            found |= pins(included[1])
        else:
            package, _, version = line.partition("==")
            assert version and package not in found, f"{name}: {line}"
            found[package] = version
    return found


def test_the_gpu_route_is_what_was_measured() -> None:
    results = [json.loads(path.read_text()) for path in (ROOT / "docs/benchmarks").glob("*.json")]
    gpu = pins("constraints-gpu.txt")
    assert results
    for result in results:
        versions = result["versions"]
        measured = {"flashinfer-python": versions["flashinfer"], "torch": versions["torch"]}
        measured["triton"] = versions["triton"]  # the language that kernels are written in
        assert {name: gpu[name] for name in measured} == measured
    assert EXTRAS["gpu"] == [f"flashinfer-python=={gpu['flashinfer-python']}"]


def test_the_server_and_its_numpy_are_pinned_alike_everywhere() -> None:
    for name in ("constraints-cpu.txt", "constraints-gpu.txt"):
        assert f"nvidia-pytriton=={pins(name)['nvidia-pytriton']}" in EXTRAS["triton"]
        assert pins(name)["numpy"].startswith("1.")
    assert "numpy<2" in EXTRAS["triton"]


def test_every_direct_dependency_is_pinned() -> None:
    extras = (EXTRAS[name] for name in ("client", "gateway", "otel", "triton", "dev"))
    for requirement in (*PROJECT["dependencies"], *chain(*extras)):
        package = re.split(r"[\[<=>]", requirement)[0]
        assert package == PROJECT["name"] or package in pins("constraints-cpu.txt"), requirement
