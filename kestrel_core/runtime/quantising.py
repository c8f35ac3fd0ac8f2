"""In how many bits a network computes, and which scales its inputs have."""

import logging
from pathlib import Path

import torch

from kestrel_core.moondream.model import Moondream
from kestrel_core.moondream.ops.choose_few_bits import why_not_few_bits
from kestrel_core.moondream.scales import (
    FILE,
    InputScales,
    measure_scales,
    read_scales,
    sample_pictures,
    sample_prompts,
)
from kestrel_core.protocol.errors import EngineFailed, InvalidRequest

log = logging.getLogger("kestrel")


def settle_quantize(wanted: str, settled: str, network: Moondream) -> str:
    """What is wanted, or off where it cannot be had. A network is packed once and for all."""
    if settled not in ("off", wanted):
        raise EngineFailed(
            f"quantize is {wanted}, and this model's weights are packed as {settled} already; load it again"
        )
    if wanted in ("off", settled):
        return settled
    reason = why_not_few_bits(wanted, network.config, network.text.wte.dtype, capability(network))
    if reason is not None:
        log.warning("serving without quantize=%s: %s", wanted, reason)
        return "off"
    return wanted


def capability(network: Moondream) -> tuple[int, int] | None:
    device = network.text.wte.device
    return torch.cuda.get_device_capability(device) if device.type == "cuda" else None


def find_scales(network: Moondream, named: str | None, folder: Path | None) -> InputScales:
    """From the file that is named, or the one beside the checkpoint; otherwise measured now."""
    if named is not None:
        if not Path(named).is_file():
            raise InvalidRequest(
                f"scales_path is {named}, and there is no such file; kestrel quantize writes it"
            )
        return read_scales(Path(named), network)
    if folder is not None and (folder / FILE).is_file():
        return read_scales(folder / FILE, network)
    log.info("measuring scales for float8 with made up pictures; kestrel quantize measures them with yours")
    return measure_scales(network, sample_pictures(network.config.vision), sample_prompts(network.config))
