"""The adapter of a golden folder: its containers, which are all the same adapter, and its runs."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from safetensors.torch import load_file, save_file

from kestrel_core.moondream.checkpoint.adapter_files import read_adapter
from kestrel_core.moondream.config import MoondreamConfig
from kestrel_core.moondream.lora import Adapter
from kestrel_tools.parity.report import Report
from kestrel_tools.parity.runs import GoldenRun

CONTAINERS = (".pt", ".safetensors")
MAX_RANK = 4096  # no limit of a server's is tried here


def containers(folder: Path) -> list[Path]:
    return sorted(file for file in folder.glob("*") if file.suffix in CONTAINERS)


def read_golden_adapter(
    files: Sequence[Path], config: MoondreamConfig, dtype: torch.dtype, report: Report
) -> Adapter | None:
    """The folder's adapter, out of its first container. Every container must give the same one."""
    if not files:
        report.absent("adapter files", "the folder has no adapter")
        return None
    adapters = [read_adapter(file, config, dtype, MAX_RANK) for file in files]
    for file, adapter in zip(files, adapters, strict=True):
        report.equal("adapter files", file.name, adapter.identity, adapters[0].identity)
        with TemporaryDirectory() as folder:
            other = read_adapter(_in_other_container(file, Path(folder)), config, dtype, MAX_RANK)
        report.equal("adapter files", f"{file.name}, repacked", other.identity, adapters[0].identity)
    return adapters[0]


def _in_other_container(file: Path, folder: Path) -> Path:
    """The same tensors, stored as the other kind of file."""
    if file.suffix == ".pt":
        stored = torch.load(file, map_location="cpu", weights_only=True)
        tensors = stored.get("lora_state_dict", stored)
        save_file({name: t.contiguous() for name, t in tensors.items()}, folder / "repacked.safetensors")
        return folder / "repacked.safetensors"
    torch.save(load_file(file), folder / "repacked.pt")
    return folder / "repacked.pt"


def adapter_run(run: GoldenRun, adapter: Adapter, on_image: bool = True) -> GoldenRun:
    """The same request, asked of this adapter."""
    return replace(run, stage=f"adapter {run.stage}", adapter=adapter, on_image=on_image)
