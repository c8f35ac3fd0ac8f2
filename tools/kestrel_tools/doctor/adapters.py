"""The folder of adapters that is configured: how many it has, and which of them this model cannot use."""

from pathlib import Path

import torch

from kestrel_core.config import RuntimeConfig
from kestrel_core.intake.local_adapters import LocalAdapters
from kestrel_core.moondream.checkpoint.adapter_files import read_adapter
from kestrel_core.moondream.config import MoondreamConfig
from kestrel_core.protocol.errors import BadAdapter
from kestrel_tools.doctor.report import Report, fault, ok, skipped, warning

SECTION = "adapters"


def examine_adapters(report: Report, config: RuntimeConfig, shape: MoondreamConfig) -> None:
    """An unusable one is a warning: the model answers without it, and so do the other adapters."""
    folder = config.adapters_folder
    if folder is None or (config.adapters is None and not folder.is_dir()):
        report.add(SECTION, "folder", skipped("no folder of adapters is configured"))
        return
    if not folder.is_dir():
        advice = "Create it, or name another one with --adapters or KESTREL_ADAPTERS."
        report.add(SECTION, "folder", fault(f"there is no folder {folder}", advice))
        return
    local = LocalAdapters(folder)
    unusable = {}
    for name in (names := local.names()):
        try:
            _read(local, name, config, shape)
        except BadAdapter as error:
            unusable[name] = str(error)
    num_usable = len(names) - len(unusable)
    report.add(SECTION, "folder", ok(f"{folder}: {len(names)} adapters, {num_usable} of them usable"))
    for name, reason in unusable.items():
        advice = "Replace it, or take it out of the folder: requests that name it are refused."
        report.add(SECTION, name, warning(reason, advice))


def _read(local: LocalAdapters, name: str, config: RuntimeConfig, shape: MoondreamConfig) -> None:
    place: Path | None = local.find(name)
    if place is not None:  # else it has gone since it was listed
        read_adapter(place, shape.text, torch.float32, config.max_adapter_rank)
