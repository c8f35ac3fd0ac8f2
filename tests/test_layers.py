"""Which room may know which: the plan of the house as a table, held against every import in the tree.

A room is a module or a folder of `kestrel_core` (the longest name in ROWS that fits), all of `client/`, or
all of `model_repository/`. Imports inside functions and under TYPE_CHECKING count like any other.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# Top first. A room imports from the rows below its own: nothing above it, nothing beside it.
ROWS = (
    "model_repository",
    "cli",
    "commands",
    "client",
    "engine outbox",
    "build",
    "loop",
    "door",
    "scheduler skills runtime preparer",
    "moondream",
    "sequence",
    "step",
    "wire",
    "messages",
    "config images tokenizer metrics hub",
    "moondream.resampling",
    "moondream.crops",
    "moondream.config",
    "errors",
)
RANK = {room: rank for rank, row in enumerate(ROWS) for room in row.split()}

# Rooms that know less than their row would let them.
KNOWS_ONLY = {
    "client": {"wire", "messages", "errors"},
    "scheduler": {"sequence", "step", "metrics", "errors"},
    "skills": {"sequence", "step", "messages", "tokenizer", "moondream.config", "errors"},
    "runtime": {
        "moondream",
        "moondream.resampling",
        "moondream.crops",
        "moondream.config",
        "step",
        "config",
        "errors",
    },
}

# The lower half holds tensors; whoever is not named here knows neither torch nor the rooms made of it.
TENSOR_ROOMS = {"moondream", "runtime"}
KNOWS_TENSORS = {*TENSOR_ROOMS, "build", "commands"}

# Packages from elsewhere that only these rooms, or these single modules, may import.
RESERVED = {
    "torch": KNOWS_TENSORS,
    "safetensors.torch": KNOWS_TENSORS,
    "flashinfer": {"kestrel_core.runtime.flashinfer_attention"},
    "triton": {  # the language
        "kestrel_core.moondream.kernels",
        "kestrel_core.moondream.expert_kernels",
        "kestrel_core.moondream.head_kernels",
    },
    "triton_python_backend_utils": {"model_repository.moondream.1.model"},
    "asyncio": {"engine", "client", "commands"},
}


def complaints(module: str, source: str, is_package: bool = False) -> list[str]:
    """What is wrong with the imports of one module, a line each."""
    room = room_of(module)
    if room is None:
        return [f"{module} has no place in the house: give it one in ROWS of tests/test_layers.py"]
    package = module if is_package else module.rpartition(".")[0]
    return [
        f"{module}:{line} imports {name}: {why}"
        for line, name in imports(package, source)
        if (why := objection(module, room, name))
    ]


def objection(module: str, room: str, name: str) -> str | None:
    if name.startswith(".."):
        return "a relative import must not leave its folder"
    for package, places in RESERVED.items():
        if f"{name}.".startswith(f"{package}.") and not {module, room} & places:
            return f"{package} is for {' and '.join(sorted(places))} alone"
    if not is_ours(name):
        return None
    target = room_of(name)
    if target is None:
        return "ROWS of tests/test_layers.py has no such room"
    if target == room:
        return None
    if target in TENSOR_ROOMS and room not in KNOWS_TENSORS:
        return f"{room} knows no tensors"
    if room in KNOWS_ONLY and target not in KNOWS_ONLY[room]:
        return f"{room} knows only {', '.join(sorted(KNOWS_ONLY[room]))}"
    if RANK[target] == RANK[room]:
        return f"{room} and {target} stand side by side and do not know each other"
    if RANK[target] < RANK[room]:
        return f"up, from {room} to {target}"
    return None


def imports(package: str, source: str) -> Iterator[tuple[int, str]]:
    """Line and full dotted name of everything imported; `from a import b` is `a.b`, whatever b is."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            origin = {0: "", 1: f"{package}."}.get(node.level, "." * node.level)
            for alias in node.names:
                yield node.lineno, origin + (f"{node.module}." if node.module else "") + alias.name


def is_ours(name: str) -> bool:
    return name.split(".")[0] in {"kestrel_core", "kestrel_client", "client", "gateway", "model_repository"}


def room_of(name: str) -> str | None:
    """The room a module of ours, or a name in one, belongs to."""
    top, _, inner = name.partition(".")
    if top in ("kestrel_client", "client", "gateway"):
        return "client"
    if top == "model_repository":
        return "model_repository"
    while inner and inner not in RANK:
        inner = inner.rpartition(".")[0]
    return inner or None


def test_imports_only_go_down() -> None:
    found = []
    for folder in ("kestrel_core", "client", "model_repository"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            is_package = parts[-1] == "__init__"
            if parts == ("kestrel_core", "__init__"):
                continue  # the house itself, empty by the test below
            found += complaints(".".join(parts[:-1] if is_package else parts), path.read_text(), is_package)
    assert not found, "\n" + "\n".join(found)


def test_importing_a_package_costs_nothing() -> None:
    packages = {path.parent.relative_to(ROOT): path for path in (ROOT / "kestrel_core").rglob("__init__.py")}
    del packages[Path("kestrel_core/skills")]  # SkillSpec and SkillRegistry live there
    assert [str(package) for package, path in packages.items() if path.read_text()] == []


@pytest.mark.parametrize(
    ("module", "source", "complaint"),
    [
        ("kestrel_core.loop", "import kestrel_core.engine", "up, from loop to engine"),
        ("kestrel_core.step", "from kestrel_core import sequence", "up, from step to sequence"),
        ("kestrel_core.images", "from kestrel_core.hub import fetch", "side by side"),
        ("kestrel_core.commands.serve", "from kestrel_core import cli", "up, from commands to cli"),
        ("kestrel_core.engine", "from kestrel_client import stream", "up, from engine to client"),
        ("kestrel_core.moondream.config", "from .text import Block", "knows no tensors"),
        (
            "kestrel_core.moondream.config",
            "from . import crops",
            "up, from moondream.config to moondream.crops",
        ),
        ("kestrel_core.scheduler.pages", "from kestrel_core import runtime", "knows no tensors"),
        ("kestrel_core.loop", "from kestrel_core.moondream import model", "knows no tensors"),
        ("kestrel_core.scheduler.pages", "from kestrel_core.skills import SkillSpec", "knows only"),
        ("kestrel_core.runtime.batch", "from kestrel_core.sequence import Sequence", "knows only"),
        ("kestrel_core.scheduler.pages", "from ..skills import SkillSpec", "must not leave its folder"),
        ("kestrel_core.sequence", "import torch", "torch is for"),
        ("kestrel_core.engine", "def late():\n    from torch import nn", ":2 imports torch.nn"),
        ("kestrel_core.moondream.crops", "import torch.nn as nn", "torch is for"),
        ("kestrel_core.hub", "from safetensors import torch", "safetensors.torch is for"),
        ("kestrel_core.runtime.attention", "import flashinfer", "flashinfer is for"),
        (
            "kestrel_core.wire",
            "import triton_python_backend_utils as pb_utils",
            "triton_python_backend_utils is for",
        ),
        ("kestrel_core.loop", "import asyncio", "asyncio is for"),
        (
            "client.kestrel_client.stream",
            "from kestrel_core import images",
            "knows only errors, messages, wire",
        ),
        ("kestrel_core.utils", "", "has no place in the house"),
        ("kestrel_core.engine", "from kestrel_core.utils import flatten", "has no such room"),
    ],
)
def test_a_wrong_import_is_named(module: str, source: str, complaint: str) -> None:
    [found] = complaints(module, source)
    assert complaint in found


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("model_repository.moondream.1.model", "import triton_python_backend_utils as pb_utils"),
        ("kestrel_core.cli", "def main():\n    from kestrel_core.commands import serve"),
        ("kestrel_core.commands.bench.http", "import torch, asyncio\nfrom kestrel_client import stream"),
        ("kestrel_core.engine", "import asyncio\nfrom kestrel_core.build import build_engine"),
        ("kestrel_core.build", "import torch\nfrom kestrel_core.runtime.runtime import Runtime"),
        ("kestrel_core.skills.text", "from kestrel_core.moondream.config import ModelConfig"),
        ("kestrel_core.scheduler.scheduler", "from .pages import PagePool\nfrom kestrel_core import step"),
        ("kestrel_core.runtime.flashinfer_attention", "import flashinfer.decode\nimport torch"),
        ("kestrel_core.runtime.runtime", "from kestrel_core.moondream.model import Moondream"),
        ("kestrel_core.moondream.crops", "import numpy\nfrom .config import VisionConfig"),
        ("kestrel_core.sequence", "import torchless\nfrom kestrel_core.step import Readout"),
        (
            "client.gateway.app",
            "from kestrel_core.wire import encode_request\nfrom kestrel_client import stream",
        ),
    ],
)
def test_a_right_import_passes(module: str, source: str) -> None:
    assert complaints(module, source) == []


def test_a_relative_import_in_a_package_starts_from_the_package() -> None:
    assert complaints("kestrel_core.skills", "from .text import TextReply", is_package=True) == []
    [found] = complaints("kestrel_core.skills", "from ..runtime import runtime", is_package=True)
    assert "must not leave its folder" in found
