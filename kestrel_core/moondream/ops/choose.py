"""Which implementation runs the fused steps of a block on this device: our own kernels, or plain torch."""

import logging

import torch
from torch import nn

from kestrel_core.moondream.ops.protocol import Fused, LinearSum
from kestrel_core.protocol.errors import EngineFailed

log = logging.getLogger("kestrel")

CLOSE = 0.02  # of the results' size: what is rounded twice or once


def choose_fused(device: torch.device, choice: str = "auto", decode_kernels: str = "off") -> Fused:
    """`choice` is auto (kernels where there is a CUDA device and their language), off or required.

    `decode_kernels` is what `RuntimeConfig` says: with products or early, those for few rows are used.
    """
    from kestrel_core.moondream.ops import plain

    if choice == "required" and device.type != "cuda":
        raise EngineFailed(f"our own kernels are required, and they need a CUDA device; this one is {device}")
    if device.type != "cuda" or choice == "off":
        return plain
    try:
        from kestrel_core.moondream.ops import kernels
    except ImportError as error:
        if choice == "required":
            raise EngineFailed(f"our own kernels are required, and cannot be imported: {error}") from error
        log.warning(
            "serving without kernels of our own (%s): the element-wise work of a block takes some 25 "
            "launches one by one, not two, which decoding feels most",
            error,
        )
        return plain
    if decode_kernels in ("off", "attention"):
        return kernels
    from kestrel_core.moondream.ops.decode_kernels import DecodeKernels

    return DecodeKernels(early=launches_early(device, decode_kernels))


def launches_early(device: torch.device, decode_kernels: str) -> bool:
    """Whether kernels start before those in front of them have ended. What cannot be had is said."""
    if decode_kernels != "early":
        return False
    from kestrel_core.moondream.ops.early_launch import can_launch_early

    able = can_launch_early(device)
    if not able:
        log.warning("kernels are not launched early: %s or its kernel language cannot", device)
    return able


def choose_linear_sum(device: torch.device, dtype: torch.dtype) -> LinearSum | None:
    """A product that adds a residual where it writes its result; None: the next norm has to add it."""
    if device.type != "cuda" or dtype != torch.bfloat16:
        return None
    from kestrel_core.moondream.ops.cublas import CublasSums

    try:
        sums = CublasSums(device)
        off = _deviation(sums.linear_sum, device)
    except (OSError, AttributeError, RuntimeError) as error:  # no library, no such function, or a refusal
        log.warning("residuals take a pass of their own, since cuBLASLt cannot be called: %s", error)
        return None
    if not off < CLOSE:
        log.warning("residuals take a pass of their own, since cuBLASLt's result is off by %.3f", off)
        return None
    return sums.linear_sum


@torch.inference_mode()
def _deviation(linear_sum: LinearSum, device: torch.device) -> float:
    layer = nn.Linear(128, 64, device=device, dtype=torch.bfloat16)
    x, add = (torch.randn((48, width), device=device, dtype=torch.bfloat16) for width in (128, 64))
    expected = layer(x).float() + add.float()
    return float((linear_sum(x, layer, add).float() - expected).norm() / expected.norm())
