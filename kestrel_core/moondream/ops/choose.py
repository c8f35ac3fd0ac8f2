"""Which implementation runs the fused steps of a block on this device: our own kernels, or plain torch."""

import logging

import torch

from kestrel_core.moondream.ops.protocol import Fused
from kestrel_core.protocol.errors import EngineFailed

log = logging.getLogger("kestrel")


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
