"""What a measurement must name to mean anything: the machine, the versions of what ran, and the commit."""

import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

PACKAGES = {
    "torch": "torch",
    "flashinfer": "flashinfer-python",
    "triton": "triton",
    "numpy": "numpy",
    "pyvips": "pyvips",
    "kestrel": "kestrel-triton",
}


def provenance(device: str) -> dict[str, Any]:
    """All three, as every result has them."""
    return {
        "machine": describe_machine(device),
        "versions": describe_versions(device),
        "commit": find_commit(),
    }


def describe_machine(device: str) -> dict[str, Any]:
    """`device` is named as in RuntimeConfig. A GPU is described too."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    found: dict[str, Any] = {
        "cpu": cpu_name(),
        "cores": os.cpu_count(),
        "memory_gib": round(memory / 2**30, 1),
        "device": device,
        "gpu": None,
    }
    if device.startswith("cuda"):
        import torch  # late: the scheduler's benchmark does without

        properties = torch.cuda.get_device_properties(torch.device(device))
        found |= {"gpu": properties.name, "gpu_memory_gib": round(properties.total_memory / 2**30, 1)}
    return found


def describe_versions(device: str) -> dict[str, str | None]:
    import torch

    from kestrel_tools.bench.machine.gpu import find_gpu

    gpu = find_gpu(device)
    return {
        "python": platform.python_version(),
        **{name: version_of(package) for name, package in PACKAGES.items()},
        "cuda": torch.version.cuda,
        "driver": gpu.driver if gpu is not None else None,
    }


def find_commit() -> str | None:
    """The commit of the checkout that this file is part of, with a plus if there are changes on top."""
    root = Path(__file__).parents[4]
    try:
        commit = _git(root, "rev-parse", "--short=12", "HEAD")
        return commit + ("+" if _git(root, "status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def cpu_name() -> str:
    """As Linux tells it; on other systems, and on ARM, which gives only numbers, the architecture."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.is_file() else []
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")),
        platform.machine(),
    )


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=root, check=True, capture_output=True, text=True
    ).stdout.strip()


def version_of(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
