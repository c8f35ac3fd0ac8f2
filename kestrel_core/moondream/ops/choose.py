"""Who runs the steps of a block on this device: our own kernels, or plain torch."""

import logging

import torch

from kestrel_core.moondream.ops.protocol import Fused

log = logging.getLogger("kestrel")


def choose_fused(device: torch.device, allowed: bool = True) -> Fused:
    """Kernels where there is a CUDA device and their language, unless they are not allowed."""
    from kestrel_core.moondream.ops import plain

    if device.type != "cuda" or not allowed:
        return plain
    try:
        from kestrel_core.moondream.ops import kernels
    except ImportError as error:
        log.warning(
            "serving without kernels of our own (%s): the element-wise work of a block takes some 25 "
            "launches one by one, not two, which decoding feels most",
            error,
        )
        return plain
    return kernels
