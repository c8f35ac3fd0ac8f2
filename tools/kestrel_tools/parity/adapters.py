"""The adapter of a golden folder: its containers, which hold the same, its runs, and others beside it."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from kestrel_core.moondream.checkpoint.adapter_files import read_adapter
from kestrel_core.moondream.config import TextConfig
from kestrel_core.moondream.lora import Adapter
from kestrel_tools.parity.report import Report
from kestrel_tools.parity.runs import GoldenRun
from kestrel_tools.random_adapters import write_random_adapters

CONTAINERS = (".pt", ".safetensors")
OTHER_RANKS = (1, 2, 3, 5)  # in the smallest unit of the model
RUNS_EACH = 3  # of every other adapter
PLACES = 3  # on the device: fewer than there are adapters, so that some are evicted
MAX_RANK = 4096  # no limit of a server's is tried here


def containers(folder: Path) -> list[Path]:
    return sorted(file for file in folder.glob("*") if file.suffix in CONTAINERS)


def read_golden_adapter(
    files: Sequence[Path], config: TextConfig, dtype: torch.dtype, report: Report
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


@dataclass(frozen=True)
class MixedAdapters:
    """Runs without an adapter, with the golden one and with random ones; and where an engine finds them."""

    runs: Sequence[GoldenRun]
    names: Mapping[str, Sequence[str]]  # by identity; the golden one has one for each container
    options: Mapping[str, Any]  # of an engine

    @classmethod
    @contextmanager
    def among(
        cls, runs: Sequence[GoldenRun], files: Sequence[Path], config: TextConfig
    ) -> "Iterator[MixedAdapters]":
        """Without a golden adapter there are no others either, and the engine has none."""
        golden = next((run.adapter for run in runs if run.adapter is not None), None)
        if golden is None:
            yield cls(runs, {}, {})
            return
        unit = config.moe.experts_per_token if config.moe is not None else 1
        ranks = [unit * factor for factor in OTHER_RANKS]
        with TemporaryDirectory() as place:
            folder, names = Path(place), dict[str, list[str]]()
            for number, file in enumerate(files):
                name = f"golden{number}"
                copyfile(file, folder / f"{name}{file.suffix}")
                names.setdefault(golden.identity, []).append(name)
            dtype = next(iter(golden.blocks[0].values())).a.dtype
            others = write_random_adapters(folder, config, ranks)
            plain = [run for run in runs if run.adapter is None]
            mixed = list(runs)
            for at, name in enumerate(others):
                adapter = read_adapter(folder / f"{name}.safetensors", config, dtype, MAX_RANK)
                names[adapter.identity] = [name]
                for run in plain[at :: len(others)][:RUNS_EACH]:
                    mixed.append(replace(run, where=f"{name}, {run.where}", adapter=adapter, is_golden=False))
            most = max(golden.rank, *ranks)
            yield cls(mixed, names, {"adapters": place, "max_adapters": PLACES, "max_adapter_rank": most})
