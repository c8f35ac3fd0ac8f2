"""Which room may know which: the plan of the house as a table, held against every import in the tree.

A room is a module or a folder of `kestrel_core` (the longest name in ROWS that fits), all of `client/`, or
all of `model_repository/`. Imports inside functions and under TYPE_CHECKING count like any other.
"""

import ast
import subprocess
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# Top first. A room imports from the rows below its own: nothing above it, nothing beside it.
ROWS = (
    "model_repository",
    "gateway tools",
    "cli.main",
    "cli",
    "triton",
    "engine client",
    "build",
    "choices running wanted",
    "loop",
    "loop.inbox",
    "scheduler skills runtime",
    "intake.image_preparer",
    "moondream",
    "loop.sequence",
    "loop.step",
    "config",
    "intake",
    "loop.metrics",
    "moondream.crops.resampling",
    "moondream.crops.cutting",
    "moondream.config",
    "protocol",
)
RANK = {room: rank for rank, row in enumerate(ROWS) for room in row.split()}

# Rooms that know less than their row would let them.
KNOWS_ONLY = {
    "client": {"protocol"},
    "scheduler": {"loop.sequence", "loop.step", "protocol"},
    "skills": {"loop.sequence", "loop.step", "protocol", "intake", "moondream.config"},
    "runtime": {
        "moondream",
        "moondream.crops.resampling",
        "moondream.crops.cutting",
        "moondream.config",
        "loop.step",
        "protocol",
    },
}

# The lower half holds tensors; whoever is not named here knows neither torch nor the rooms made of it.
TENSOR_ROOMS = {"moondream", "runtime"}
KNOWS_TENSORS = {*TENSOR_ROOMS, "build", "choices", "running", "tools"}

# Packages from elsewhere that only these rooms, or these single modules, may import.
RESERVED = {
    "torch": KNOWS_TENSORS,
    "safetensors.torch": KNOWS_TENSORS,
    "flashinfer": {"kestrel_core.runtime.attention.flashinfer"},
    "triton": {  # the language
        "kestrel_core.moondream.ops.kernels",
        "kestrel_core.moondream.ops.few_bits_product",
        "kestrel_core.moondream.ops.few_bits_kernels",
        "kestrel_core.moondream.ops.few_bits_expert_kernels",
        "kestrel_core.moondream.ops.early_launch",
        "kestrel_core.moondream.ops.one_row_kernels",
        "kestrel_core.runtime.attention.page_kernels",
        "kestrel_core.runtime.readouts.token_kernels",
        "kestrel_tools.things.paint_kernel",
        "kestrel_core.moondream.ops.expert_kernels",
        "kestrel_core.moondream.ops.float8_kernels",
        "kestrel_core.moondream.ops.float8_expert_kernels",
        "kestrel_core.moondream.ops.head_kernels",
        "kestrel_core.moondream.ops.rounding",
        "kestrel_core.moondream.ops.lora_kernels",
        "kestrel_core.moondream.ops.expert_lora_kernels",
        "kestrel_core.moondream.ops.routing_kernels",
        "kestrel_core.moondream.ops.unpack_kernels",
    },
    "triton_python_backend_utils": {"kestrel_core.triton.model"},
    "opentelemetry": {"kestrel_core.triton.tracing", "gateway"},
    "asyncio": {"engine", "client", "gateway", "cli", "tools"},
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


HOUSES = {
    "kestrel_client": "client",
    "kestrel_gateway": "gateway",
    "kestrel_tools": "tools",
    "adapter_stages": "tools",
    "few_bits_gaps": "tools",
    "few_bits_stages": "tools",
    "one_row_stages": "tools",
    "float8_kv_stages": "tools",
    "float8_stages": "tools",
    "decode_checks": "tools",
    "decode_rows": "tools",
    "decode_stages": "tools",
    "decode_steps": "tools",
    "kernel_stages": "tools",
    "stages": "tools",
    "vision_attention_tiles": "tools",
    "client": "client",
    "gateway": "gateway",
    "tools": "tools",
    "model_repository": "model_repository",
}


def is_ours(name: str) -> bool:
    return name.split(".")[0] in {"kestrel_core", *HOUSES}


def room_of(name: str) -> str | None:
    """The room a module of ours, or a name in one, belongs to."""
    top, _, inner = name.partition(".")
    if top in HOUSES:
        return HOUSES[top]
    while inner and inner not in RANK:
        inner = inner.rpartition(".")[0]
    return inner or None


def modules() -> Iterator[tuple[str, Path, bool]]:
    """Every module of ours: its name as it is imported, its file, and whether it is a package."""
    for folder in ("kestrel_core", "client", "gateway", "tools", "model_repository"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            is_package = parts[-1] == "__init__"
            names = parts[:-1] if is_package else parts
            yield (
                ".".join(names[1:] if names[0] in ("client", "gateway", "tools") else names),
                path,
                is_package,
            )


def test_imports_only_go_down() -> None:
    found = []
    for module, path, is_package in modules():
        if module not in ("kestrel_core", "run"):  # the public surface, and a script that is nobody's module
            found += complaints(module, path.read_text(), is_package)
    assert not found, "\n" + "\n".join(found)


def test_no_module_reaches_itself() -> None:
    """Over imports of any kind, those in functions and for type checkers included."""
    known = {module: (path.read_text(), is_package) for module, path, is_package in modules()}
    graph: dict[str, set[str]] = {}
    for module, (source, is_package) in known.items():
        package = module if is_package else module.rpartition(".")[0]
        names = {name for _, name in imports(package, source)}
        graph[module] = {found for name in names if (found := _module_in(name, known)) not in (None, module)}
    assert _circles(graph) == []


def _module_in(name: str, known: Collection[str]) -> str | None:
    while name and name not in known:
        name = name.rpartition(".")[0]
    return name or None


def _circles(graph: Mapping[str, set[str]]) -> list[str]:
    left = dict(graph)
    while ends := [module for module, targets in left.items() if not targets & left.keys()]:
        for module in ends:  # it imports nothing that is left, so no circle goes through it
            del left[module]
    return sorted(left)


def test_no_file_is_longer_than_a_reader_can_hold() -> None:
    files = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "*.py"], cwd=ROOT, capture_output=True, text=True
    )
    lines = {name: len((ROOT / name).read_text().splitlines()) for name in files.stdout.split()}
    assert {name: count for name, count in lines.items() if count > 400} == {}


def test_importing_a_package_costs_nothing() -> None:
    packages = [path for module, path, is_package in modules() if is_package]
    open_doors = {ROOT / "kestrel_core/__init__.py", ROOT / "client/kestrel_client/__init__.py"}
    assert [str(path) for path in packages if path.read_text() and path not in open_doors] == []


@pytest.mark.parametrize(
    ("module", "source", "complaint"),
    [
        ("kestrel_core.loop.step_loop", "import kestrel_core.engine", "up, from loop to engine"),
        (
            "kestrel_core.loop.step",
            "from kestrel_core.loop import sequence",
            "up, from loop.step to loop.sequence",
        ),
        ("kestrel_core.skills.text", "from kestrel_core.runtime import batch", "knows no tensors"),
        ("kestrel_tools.bench.parts.load", "from kestrel_gateway import app", "side by side"),
        ("kestrel_core.triton.serve", "from kestrel_core.cli import main", "up, from triton to cli"),
        ("kestrel_core.build", "from kestrel_client import stream", "up, from build to client"),
        ("kestrel_core.cli.main", "import kestrel_tools.commands", "up, from cli.main to tools"),
        ("kestrel_core.moondream.config", "from .text import Block", "knows no tensors"),
        (
            "kestrel_core.moondream.config",
            "from . import crops",
            "knows no tensors",
        ),
        ("kestrel_core.scheduler.pages", "from kestrel_core import runtime", "knows no tensors"),
        ("kestrel_core.loop.step_loop", "from kestrel_core.moondream import model", "knows no tensors"),
        ("kestrel_core.scheduler.pages", "from kestrel_core.skills.spec import SkillSpec", "knows only"),
        ("kestrel_core.runtime.batch", "from kestrel_core.loop.sequence import Sequence", "knows only"),
        ("kestrel_core.scheduler.pages", "from ..skills import SkillSpec", "must not leave its folder"),
        ("kestrel_core.loop.sequence", "import torch", "torch is for"),
        ("kestrel_core.engine", "def late():\n    from torch import nn", ":2 imports torch.nn"),
        ("kestrel_core.moondream.crops.cutting", "import torch.nn as nn", "torch is for"),
        ("kestrel_core.intake.hub", "from safetensors import torch", "safetensors.torch is for"),
        ("kestrel_core.runtime.attention.protocol", "import flashinfer", "flashinfer is for"),
        (
            "kestrel_core.protocol.wire",
            "import triton_python_backend_utils as pb_utils",
            "triton_python_backend_utils is for",
        ),
        ("kestrel_core.loop.step_loop", "import asyncio", "asyncio is for"),
        (
            "client.kestrel_client.stream",
            "from kestrel_core.intake import images",
            "knows only protocol",
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
        ("kestrel_core.triton.model", "import triton_python_backend_utils as pb_utils"),
        ("kestrel_core.cli.main", "def main():\n    from kestrel_core.cli import serve"),
        ("kestrel_tools.bench.http", "import torch, asyncio\nfrom kestrel_client import stream"),
        ("kestrel_core.engine", "import asyncio\nfrom kestrel_core.build import build_engine"),
        ("kestrel_core.build", "import torch\nfrom kestrel_core.runtime.torch_runtime import Runtime"),
        ("kestrel_core.skills.text", "from kestrel_core.moondream.config import ModelConfig"),
        (
            "kestrel_core.scheduler.scheduler",
            "from .pages import PagePool\nfrom kestrel_core.loop import step",
        ),
        ("kestrel_core.runtime.attention.flashinfer", "import flashinfer.decode\nimport torch"),
        ("kestrel_core.runtime.torch_runtime", "from kestrel_core.moondream.model import Moondream"),
        (
            "kestrel_core.moondream.crops.cutting",
            "import numpy\nfrom kestrel_core.moondream.config import VisionConfig",
        ),
        ("kestrel_core.loop.sequence", "import torchless\nfrom kestrel_core.loop.step import Readout"),
        (
            "client.gateway.app",
            "from kestrel_core.protocol.wire import encode_request\nfrom kestrel_client import stream",
        ),
    ],
)
def test_a_right_import_passes(module: str, source: str) -> None:
    assert complaints(module, source) == []


def test_a_relative_import_in_a_package_starts_from_the_package() -> None:
    assert complaints("kestrel_core.skills", "from .text import TextReply", is_package=True) == []
    [found] = complaints("kestrel_core.skills", "from ..runtime import runtime", is_package=True)
    assert "must not leave its folder" in found
