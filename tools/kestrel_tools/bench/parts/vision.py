"""`kestrel bench vision`: crops/s of the vision encoder as the engine uses it, from pixels on the host.

Pictures are new every time, so nothing is remembered. The crops come as pictures of nine, and one of what is
left. Floors are FLOPs at a measured pace.
"""

from collections.abc import Sequence
from itertools import count

import numpy as np
import torch

from kestrel_core.build import assemble_engine
from kestrel_core.loop.step import PreparedImage
from kestrel_core.moondream.config import VisionConfig
from kestrel_tools.bench.machine.floors import (
    beside_floor,
    median_ms,
    paced_model,
    products_workload,
    vision_flops,
)
from kestrel_tools.bench.options import Vision
from kestrel_tools.bench.results import Bench, Row

NINE_CROPS = (2, 4)  # tiling of an 850 x 600 picture


def bench_vision(run: Vision, bench: Bench) -> None:
    rows: list[Row] = []
    serial = count()
    with paced_model(bench.config, bench.console) as (model, pace, say):
        vision = model.network.vision
        # Counted before an engine is built, since that may change the layout of the weights.
        flops = [vision_flops(vision, len(tilings(crops)), crops) for crops in run.crops]
        engine = assemble_engine(model, bench.config)
        encode = engine.runtime.encode_image.encode_many
        for crops, needed in zip(run.crops, flops, strict=True):
            say(f"encoding {crops} crops at a time")
            pictures = [random_picture(vision.config, tiling) for tiling in tilings(crops)]

            @torch.inference_mode()
            def encode_new(pictures: Sequence[PreparedImage] = pictures) -> None:
                encode([picture._replace(key=f"bench-{next(serial)}") for picture in pictures])

            ms = median_ms(encode_new, model.device, run.repeats)
            row = {"images": len(pictures), "crops": crops, "ms": ms, "crops_per_s": 1000 * crops / ms}
            rows.append(row | beside_floor(ms, needed, pace))
        engine.loop.runtime.close()
    pictures_told = "of nine crops, and one of the rest; new every time, from the host's memory"
    workload = {"pictures": pictures_told, **products_workload(run.repeats, pace)}
    bench.finish("vision", bench.config, workload, rows, pace=pace._asdict())


def tilings(crops: int) -> list[tuple[int, int]]:
    """Tilings of pictures that together have so many crops: nine each, and the rest in a picture of one row.

    A picture has one crop to encode, its only tile being the global one, or one more than it has tiles: at
    least three. So two that are left are two pictures.
    """
    nines, rest = divmod(crops, 9)
    tail = [] if rest == 0 else [(1, 1)] * rest if rest < 3 else [(1, rest - 1)]
    return [NINE_CROPS] * nines + tail


def random_picture(vision: VisionConfig, tiling: tuple[int, int]) -> PreparedImage:
    size, num_crops = vision.crop_size, 1 + tiling[0] * tiling[1]
    crops = np.random.default_rng(num_crops).integers(0, 256, (num_crops, size, size, 3), dtype=np.uint8)
    if tiling == (1, 1):
        crops[1] = crops[0]
    return PreparedImage(f"bench-{tiling}", crops, tiling)
