"""Which implementation runs the fused steps of a block on this device: our own kernels, or plain torch."""

import logging

import torch

from kestrel_core.moondream.ops.protocol import Fused
from kestrel_core.protocol.errors import EngineFailed

log = logging.getLogger("kestrel")


def choose_fused(device: torch.device, choice: str = "auto") -> Fused:
    """`choice` is auto (kernels where there is a CUDA device and their language), off or required."""
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
    return kernels
