"""The budget of a device's memory: what is free, and how much of it pictures and the KV cache may take."""

import gc
import sys

import torch

from kestrel_core.moondream.config import TextConfig, VisionConfig
from kestrel_core.protocol.errors import BadCheckpoint, InvalidRequest
from kestrel_core.runtime.vision.crop_batches import MAX_BATCH_CROPS

COMPUTING_BYTES = 2**30
SLACK_BYTES = 2**28  # steps of all kinds made the allocator grow by 250 MiB in ten minutes on an H200


def free_bytes(device: torch.device) -> int:
    """What is free on a CUDA device right now. A host's memory is not counted."""
    if device.type != "cuda":
        return sys.maxsize
    gc.collect()  # the memory of an engine before this one may not be returned yet
    torch.cuda.empty_cache()
    free: int = torch.cuda.mem_get_info(device)[0]
    return free


def keep_slack(device: torch.device) -> None:
    """Have torch's allocator keep some memory for the current stream, beyond what the largest step needs.

    Steps differ, and blocks that were cut for one do not always fit the next. What that takes is then taken
    here, before anybody is told what the device's memory is planned to be.
    """
    if device.type == "cuda":
        size = affordable_slack(*torch.cuda.mem_get_info(device))
        torch.empty(size, dtype=torch.uint8, device=device)  # freed at once, and kept


def affordable_slack(free: int, total: int) -> int:
    """Less on a small device, and where little is left: no start fails for want of slack.

    A process under a limit is told what is free below it, and the whole device as its total.
    """
    return min(SLACK_BYTES, total // 128, free // 4)


def affordable_workspace(wanted: int, needed: int, free: int) -> int:
    """The bytes for partial results: as many as are wanted, but on a small device hardly more than needed."""
    return min(wanted, max(needed, free // 16))


def wanted_crops(vision: VisionConfig, most_images: int) -> int:
    """The crops of one batch: as many as speed gains from, but no more than the pictures of a step have."""
    return min(MAX_BATCH_CROPS, most_images * (1 + vision.max_crops))


def affordable_crops(vision: VisionConfig, free: int, wanted: int = MAX_BATCH_CROPS) -> int:
    """So many of them as fit a tenth of the free bytes. A crop takes some 20 MB."""
    numbers = vision.num_patches * (9 * vision.enc_dim + vision.enc_ff_dim)
    return max(1, min(wanted, free // (10 * 2 * numbers)))


def affordable_tokens(
    wanted: int, max_context: int, cell_bytes: int, free: int, computing: int = COMPUTING_BYTES
) -> int:
    """The positions of the KV cache: as many as are wanted and fit.

    A fifth of the free bytes, and at least what computing takes, is left for it.
    """
    left = max(free / 5, computing)
    fitting = int(free - left) // cell_bytes
    if fitting < max_context:
        wanted_gib, free_gib, left_gib = (n / 2**30 for n in (max_context * cell_bytes, free, left))
        raise BadCheckpoint(
            f"the KV cache of one sequence of {max_context:,} positions needs {wanted_gib:.2f} GiB "
            f"and computing {left_gib:.2f}, and {free_gib:.2f} GiB of the device are free; lower max_context "
            "or free some memory"
        )
    return min(wanted, fitting)


def computing_bytes(text: TextConfig, step_tokens: int, small: bool) -> int:
    """What the largest step may take beside weights and KV: a GiB, unless a small GPU has to count.

    There it is what a block has in memory for each position at once, and half as much again; one matrix
    unpacked; and a sixteenth of a GiB for FlashInfer, graphs and the readouts. All in 16 bits.
    """
    if not small:
        return COMPUTING_BYTES
    columns = text.qkv_dim + 2 * text.ff_dim + 6 * text.dim
    matrix = (text.qkv_dim + text.ff_dim) * text.dim
    if text.moe is not None:  # pairs go in and come out, and their activations lie between
        columns += text.moe.experts_per_token * (text.dim + text.moe.expert_inner_dim)
    return min(COMPUTING_BYTES, 3 * step_tokens * columns + 2 * matrix + 2**26)


def require_room_for_adapters(max_adapters: int, max_rank: int, num_bytes: int, free: int) -> None:
    """They may take half of the free bytes; the KV cache and computing need the others."""
    if num_bytes > free // 2:
        raise InvalidRequest(
            f"{max_adapters} adapters of rank {max_rank} need {num_bytes / 2**30:.1f} GiB, and "
            f"{free / 2**30:.1f} GiB of the device are free, of which they may take half; lower max_adapters "
            "or max_adapter_rank"
        )
