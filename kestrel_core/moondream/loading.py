"""A network with its weights on a device: from a checkpoint, or from a seed."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

from kestrel_core.moondream.checkpoint.files import open_checkpoint
from kestrel_core.moondream.checkpoint.weights import Give, load_weights, random_weights
from kestrel_core.moondream.config import MoondreamConfig
from kestrel_core.moondream.few_bits_layers import give_packed, give_rounded
from kestrel_core.moondream.model import Moondream
from kestrel_core.moondream.ops.choose_few_bits import why_not_few_bits
from kestrel_core.moondream.ops.few_bits import KINDS
from kestrel_core.protocol.errors import BadCheckpoint, InvalidRequest

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}

Progress = Callable[[int, int], None]


def parse_device(name: str) -> torch.device:
    try:
        device = torch.device(name)
    except RuntimeError:
        raise InvalidRequest(f'device "{name}" is not one; use cpu, cuda or cuda:N') from None
    if device.type not in ("cpu", "cuda"):
        raise InvalidRequest(f'device "{name}" is not supported; use cpu, cuda or cuda:N')
    found = torch.cuda.device_count()
    if device.type == "cuda" and (device.index or 0) >= found:
        raise BadCheckpoint(f'device "{name}" is asked for, and there are {found} CUDA devices; use cpu')
    return device


def parse_dtype(name: str, device: torch.device) -> torch.dtype:
    """The dtype of that name; "auto" is the one the device is best at."""
    if name != "auto":
        return DTYPES[name]
    return torch.bfloat16 if device.type == "cuda" else torch.float32


def load_network(
    path: Path,
    config: MoondreamConfig,
    device: torch.device,
    dtype: torch.dtype,
    progress: Progress | None = None,
    quantize: str = "off",
    num_threads: int = 1,
) -> Moondream:
    """`quantize` is that of `RuntimeConfig`."""
    network = _without_weights(config)
    give = giving(quantize, config, device, dtype)
    load_weights(network, config, open_checkpoint(path), device, dtype, progress, give, num_threads)
    return network


def random_network(
    config: MoondreamConfig,
    device: torch.device,
    dtype: torch.dtype,
    seed: int,
    quantize: str = "off",
    progress: Progress | None = None,
) -> Moondream:
    network = _without_weights(config)
    random_weights(network, device, dtype, seed, giving(quantize, config, device, dtype), progress)
    return network


def giving(quantize: str, config: MoondreamConfig, device: torch.device, dtype: torch.dtype) -> Give | None:
    """What becomes of large matrices as soon as they are read. None: nothing.

    In int4 they are packed, so that a small GPU never holds all of them wide. In fp8 they stay, since float8
    products pack them in their own way. A CPU computes with what packed ones stand for.
    """
    if device.type == "cpu":
        kinds: dict[str, Give] = {kind: partial(give_rounded, most=kind) for kind in KINDS}
        return kinds.get(quantize)
    if quantize != "int4":
        return None
    reason = why_not_few_bits(quantize, config, dtype, torch.cuda.get_device_capability(device))
    return give_packed if reason is None else None


def loaded_as(quantize: str, config: MoondreamConfig, device: torch.device, dtype: torch.dtype) -> str:
    return "off" if giving(quantize, config, device, dtype) is None else quantize


def _without_weights(config: MoondreamConfig) -> Moondream:
    with torch.device("meta"):
        return Moondream(config).eval()
