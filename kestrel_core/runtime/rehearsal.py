"""What runs before the first real step: the largest step there can be, which allocates memory for all of
them, and the text model alone, whose kernels are compiled then.
"""

from collections.abc import Sequence

import numpy as np
import torch

from kestrel_core.loop.step import Input, Kind, PreparedImage, Readout, Running, Span, StepPlan
from kestrel_core.moondream.config import MoondreamConfig
from kestrel_core.moondream.model import Moondream
from kestrel_core.moondream.text import Forward
from kestrel_core.runtime.attention.protocol import CachedAttend
from kestrel_core.runtime.kv_cache import KVCache, KVScales

# Numbers of tokens for which kernels are compiled differently: one, few, divisible by 16, and more than each
# of the limits at which a block is computed in another way.
COMPILED_TOKENS = (1, 2, 16, 32, 320, 762, 2048)


def largest_step(
    config: MoondreamConfig, step_tokens: int, num_pages: int, page_size: int, adapter: int = 0
) -> StepPlan:
    """As many image prefixes as `step_tokens` allows, with as many crops as pictures can have, and text.

    No sequence has pages yet, so all spans may write to the same ones.
    """
    prefix, vision = config.image_prefix_length, config.vision
    sequence = Running(1, list(range(1, num_pages)), adapter=adapter)
    room = (num_pages - 1) * page_size
    num_images = config.images_of_step(step_tokens) if prefix < room else 0
    crops = np.zeros((1 + vision.max_crops, vision.crop_size, vision.crop_size, vision.in_channels), np.uint8)
    spans = [
        Span(sequence, 0, prefix, None, PreparedImage(f"rehearsal {index}", crops, (1, vision.max_crops)))
        for index in range(num_images)
    ]
    start = prefix if spans else 0
    stop = min(start + max(step_tokens - len(spans) * prefix, 1), room)
    inputs: list[Input] = [config.tokenizer.bos_id] * (stop - start)
    spans.append(Span(sequence, start, stop, inputs, None, Readout(Kind.TOKEN)))
    return StepPlan(spans)


@torch.inference_mode()
def compile_text(
    forward: Forward, model: Moondream, page_size: int, kv_float8: Sequence[KVScales] | None = None
) -> None:
    """Run the text model over nothing, with an attention that leaves its queries as they are."""
    wte = model.text.wte
    kv_cache = KVCache(model.config.text, 2, page_size, wte.device, wte.dtype, kv_float8)
    for count in COMPILED_TOKENS:
        zeros = torch.zeros(count, dtype=torch.int64, device=wte.device)
        attend = CachedAttend(kv_cache, zeros, lambda layer, q: q)
        forward(wte.new_zeros((count, wte.shape[1])), zeros, attend, None)
