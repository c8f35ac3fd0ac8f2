"""What this machine is, as plain values. Looks and does not judge: `machine` does that."""

import importlib.util
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from huggingface_hub import constants

from kestrel_core.config import RuntimeConfig
from kestrel_core.intake.models import MODELS
from kestrel_core.protocol.errors import KestrelError
from kestrel_core.triton.checks import GPU_DEVICES, check_ports
from kestrel_core.triton.installation import OFFICIAL, check_stub, find_triton

HUB_CACHE = Path(constants.HF_HUB_CACHE)
# Of each repository: two bytes a parameter, and of 3.1 what its page says.
DOWNLOAD_BYTES = {
    "moondream2": 3_900_000_000,
    "moondream3-preview": 18_600_000_000,
    "moondream3.1-9B-A2B": 10_500_000_000,
}


@dataclass(frozen=True, slots=True)
class GpuFacts:
    """`name` is None where torch finds no GPU; then `has_file` says whether the system has one anyway."""

    torch_cuda: str | None = None  # None: torch is built without CUDA
    has_file: bool = False
    name: str | None = None
    driver: str | None = None
    capability: tuple[int, int] = (0, 0)
    free_bytes: int = 0
    total_bytes: int = 0


@dataclass(frozen=True, slots=True)
class TritonFacts:
    is_installed: bool
    server: str = ""
    from_wheel: bool = False
    trouble: str = ""  # why it cannot be started, or its stub


def gpu_facts(device: str) -> GpuFacts:
    """Of the device as RuntimeConfig names it; of the first one, where that is a CPU."""
    import torch

    has_file = any(path.exists() for path in GPU_DEVICES)
    if not torch.cuda.is_available():
        return GpuFacts(torch.version.cuda, has_file)
    from kestrel_tools.bench.machine.gpu import find_gpu

    chosen = torch.device(device if device.startswith("cuda") else "cuda")
    if (chosen.index or 0) >= torch.cuda.device_count():
        return GpuFacts(torch.version.cuda, has_file)
    properties = torch.cuda.get_device_properties(chosen)
    free_bytes, total_bytes = torch.cuda.mem_get_info(chosen)
    gpu = find_gpu(str(chosen))
    return GpuFacts(
        torch.version.cuda,
        has_file,
        properties.name,
        gpu.driver if gpu is not None else None,
        (properties.major, properties.minor),
        free_bytes,
        total_bytes,
    )


def triton_facts(environment: Mapping[str, str] = os.environ) -> TritonFacts:
    """Where the server is, and whether it and the process that runs our model would start."""
    on_path = shutil.which("tritonserver", path=environment.get("PATH")) is not None
    from_wheel = not on_path and not (OFFICIAL / "bin/tritonserver").is_file()
    if from_wheel and importlib.util.find_spec("pytriton") is None:
        return TritonFacts(is_installed=False)
    with tempfile.TemporaryDirectory(prefix="kestrel-doctor-") as workspace:
        try:
            triton = find_triton(Path(workspace), environment)
            check_stub(triton)
        except KestrelError as error:
            return TritonFacts(True, from_wheel=from_wheel, trouble=str(error))
        return TritonFacts(True, str(triton.server), from_wheel)


def space_on(path: Path) -> tuple[int, int]:
    """Free and total bytes of the disk that a folder is on, or will be."""
    there = next(place for place in (path, *path.absolute().parents) if place.exists())
    usage = shutil.disk_usage(there)
    return usage.free, usage.total


def port_trouble(name: str, host: str, port: int) -> str:
    """Why a server could not listen there; empty where it could."""
    try:
        check_ports({name: (host, port)})
    except KestrelError as error:
        return str(error)
    return ""


def missing_bytes(config: RuntimeConfig, cache: Path = HUB_CACHE) -> int:
    """What of a published model has still to be downloaded, about."""
    known = MODELS.get(config.model)
    if config.model_path is not None or config.weights == "random" or not known or not known.repository:
        return 0
    folder = cache / f"models--{known.repository.name.replace('/', '--')}"
    held = sum(file.stat().st_size for file in folder.glob("blobs/*"))
    total = DOWNLOAD_BYTES[config.model]
    return total - held if held < 0.95 * total else 0  # sizes are known to a few percent
