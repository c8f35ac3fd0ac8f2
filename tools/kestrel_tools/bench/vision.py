"""`kestrel bench vision`: crops/s of the vision encoder as the engine uses it, from pixels on the host.

Pictures are new every time, so nothing is remembered. The crops come as pictures of nine, and one of what is
left. Floors are FLOPs at a measured pace.
"""

from collections.abc import Sequence
from functools import partial
from itertools import count
from pathlib import Path
from statistics import median

import numpy as np
import torch
from rich.console import Console

from kestrel_core.build import assemble_engine, open_model
from kestrel_core.config import RuntimeConfig
from kestrel_core.loop.step import PreparedImage
from kestrel_core.moondream.config import VisionConfig
from kestrel_core.protocol.errors import InvalidRequest
from kestrel_tools.bench.floors import measure_pace, timed_s, vision_flops
from kestrel_tools.bench.results import Row, make_document, show

NINE_CROPS = (2, 4)  # tiling of an 850 x 600 picture
WARM_UP = 3


def bench_vision(
    config: RuntimeConfig,
    counts: Sequence[int],
    repeats: int,
    file: Path | None,
    commit: str | None,
    console: Console,
) -> None:
    if not counts or min(*counts, 1) < 1 or repeats < 1:
        raise InvalidRequest("vision needs numbers of crops, and repeats, of 1 or more")
    rows: list[Row] = []
    serial = count()
    with console.status(f"loading {config.model}") as status:
        model = open_model(config)
        vision, device = model.network.vision, model.device
        status.update("measuring the pace of copies and products")
        pace = measure_pace(device, vision.pos_emb.dtype)
        # Before an engine is built, which may lay weights out anew.
        flops = [vision_flops(vision, len(tilings(crops)), crops) for crops in counts]
        engine = assemble_engine(model, config)
        encode = engine.runtime.encode_image.encode_many
        for crops, needed in zip(counts, flops, strict=True):
            status.update(f"encoding {crops} crops at a time")
            pictures = [random_picture(vision.config, tiling) for tiling in tilings(crops)]
            times = []
            for _ in range(WARM_UP + repeats):
                fresh = [picture._replace(key=f"bench-{next(serial)}") for picture in pictures]
                with torch.inference_mode():
                    times.append(timed_s(partial(encode, fresh), device))
            ms = 1000 * median(times[WARM_UP:])
            floor_ms = 1000 * needed / pace.flops_per_s
            rows.append(
                {
                    "images": len(pictures),
                    "crops": crops,
                    "ms": ms,
                    "crops_per_s": 1000 * crops / ms,
                    "floor_ms": floor_ms,
                    "of_floor": floor_ms / ms,
                }
            )
        engine.loop.runtime.close()
    workload = {
        "pictures": "of nine crops, and one of the rest; new every time, from the host's memory",
        "repeats": repeats,
        "products": f"{pace.flops_per_s / 1e12:.3g} TFLOP/s",
        "floor": "matrix products at that pace",
    }
    show(make_document("vision", config, workload, rows, commit, pace=pace._asdict()), console, file)


def tilings(crops: int) -> list[tuple[int, int]]:
    """Of pictures that have so many crops to encode: nine each, and the rest in a picture of one row.

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
