"""In how many bits a network computes, and which scales its inputs have."""

import logging
import math
from pathlib import Path

import torch

from kestrel_core.moondream.model import Moondream
from kestrel_core.moondream.ops.choose_few_bits import why_not_few_bits
from kestrel_core.moondream.ops.plain import FLOAT8_MAX
from kestrel_core.moondream.scales import (
    FILE,
    MARGIN,
    InputScales,
    measure_scales,
    read_scales,
    sample_pictures,
    sample_prompts,
)
from kestrel_core.protocol.errors import EngineFailed, InvalidRequest
from kestrel_core.runtime.kv_cache import KVScales

FLOAT8_CAPABILITY = (8, 9)

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


def stores_float8(kv_dtype: str, network: Moondream) -> bool:
    """Whether keys and values are stored in float8. On a CPU they may be, to see what it does to answers."""
    dtype, able = network.text.wte.dtype, capability(network)
    if kv_dtype != "fp8" or able is None:
        return kv_dtype == "fp8"
    reason = None
    if dtype not in (torch.bfloat16, torch.float16):
        reason = f"it needs 16 bits for the rest, and dtype is {str(dtype).removeprefix('torch.')}"
    elif able < FLOAT8_CAPABILITY:
        told = ".".join(map(str, able))
        reason = f"this GPU's compute capability is {told}, and float8 begins with 8.9"
    if reason is not None:
        log.warning("serving without kv_dtype=fp8: %s", reason)
    return reason is None


def kv_scales(num_layers: int, measured: InputScales | None) -> list[KVScales]:
    """How each layer is stored in float8. A scale of 1, which nothing measured has, goes up to 448."""
    largest = [None if measured is None else measured.largest_kv(layer) for layer in range(num_layers)]
    return [KVScales() if found is None else KVScales(*map(_kv_scale, found)) for found in largest]


def _kv_scale(largest: float) -> float:
    """The power of two by which the largest number, and its margin, fit float8; 1 where that serves, since
    FlashInfer multiplies by others in a launch of its own.
    """
    if 0.5 <= largest <= FLOAT8_MAX / MARGIN or largest == 0.0:
        return 1.0
    return float(2.0 ** math.ceil(math.log2(largest * MARGIN / FLOAT8_MAX)))


def find_scales(network: Moondream, named: str | None, folder: Path | None) -> InputScales:
    """Those that are written down; otherwise measured now."""
    written = written_scales(network, named, folder)
    if written is not None:
        return written
    log.info("measuring scales for float8 with made up pictures; kestrel quantize measures them with yours")
    return measure_scales(network, sample_pictures(network.config.vision), sample_prompts(network.config))


def written_scales(network: Moondream, named: str | None, folder: Path | None) -> InputScales | None:
    """From the file that is named, or the one beside the checkpoint, if there is one."""
    if named is not None:
        if not Path(named).is_file():
            raise InvalidRequest(
                f"scales_path is {named}, and there is no such file; kestrel quantize writes it"
            )
        return read_scales(Path(named), network)
    if folder is not None and (folder / FILE).is_file():
        return read_scales(folder / FILE, network)
    return None
