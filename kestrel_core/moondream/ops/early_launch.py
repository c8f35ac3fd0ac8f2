"""Kernels that start before the one in front of them has ended (CUDA's programmatic dependent launch).

Such a kernel runs up to `wait` beside its predecessor, and then until all that the predecessor wrote can be
read. Before `wait` it may read weights, and what was written at least two launches earlier: a kernel lets its
successor start only behind its own `wait`, when everything in front of its predecessor has ended. Nothing is
written before `wait`, so behind it a step is the same sequence of kernels as without early launches.
"""

import torch
import triton
import triton.language as tl

FIRST_CAPABILITY = (9, 0)  # Hopper
LINE_BYTES = 128  # of the caches
FETCHED_LINES = 4  # of each row of a matrix with few bits, before its products wait
EARLY_DIM = 8192  # rows of a matrix up to which products by matrix units gain from an early launch


def can_launch_early(device: torch.device) -> bool:
    """Whether the device and this version of the kernel language have it."""
    if device.type != "cuda" or not hasattr(tl, "extra"):
        return False
    cuda = getattr(tl.extra, "cuda", None)
    return hasattr(cuda, "gdc_wait") and torch.cuda.get_device_capability(device) >= FIRST_CAPABILITY


def launch_options(early: bool) -> dict[str, bool]:
    """What a kernel with the constant EARLY is launched with. Older languages do not know the option."""
    return {"EARLY": early, "launch_pdl": True} if early else {"EARLY": False}


@triton.jit
def wait(EARLY: tl.constexpr) -> None:
    """Until the kernels before this one have ended; then the next one may start."""
    if EARLY:
        tl.extra.cuda.gdc_wait()
        tl.extra.cuda.gdc_launch_dependents()


@triton.jit
def prefetch(pointers: tl.tensor) -> None:
    """Have the lines of these addresses fetched to the second cache. Nothing waits for them."""
    tl.inline_asm_elementwise(
        "prefetch.global.L2 [$1]; mov.u32 $0, 0;", "=r,l", [pointers], dtype=tl.int32, is_pure=False, pack=1
    )
