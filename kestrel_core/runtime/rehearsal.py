"""The largest step there can be. Run once before the first real step, it allocates memory for all of them."""

import numpy as np

from kestrel_core.loop.step import Input, Kind, PreparedImage, Readout, Running, Span, StepPlan
from kestrel_core.moondream.config import MoondreamConfig


def largest_step(
    config: MoondreamConfig, step_tokens: int, num_pages: int, page_size: int, adapter: int = 0
) -> StepPlan:
    """As many image prefixes as `step_tokens` allows, with as many crops as pictures can have, and text.

    No sequence has pages yet, so all spans may write to the same ones.
    """
    prefix, vision = config.image_prefix_length, config.vision
    sequence = Running(1, list(range(1, num_pages)), adapter=adapter)
    room = (num_pages - 1) * page_size
    num_images = max(step_tokens // prefix, 1) if prefix < room else 0
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
