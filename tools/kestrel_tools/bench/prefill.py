"""`kestrel bench prefill`: prompts of a picture and a question, several in one step, through any `Runtime`.

The picture is the same in all of them and was encoded before, so the vision encoder has no part in the time;
should the runtime encode it again all the same, its row says so. Floors are FLOPs at a measured pace.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
from rich.console import Console

from kestrel_core.build import assemble_engine, open_model
from kestrel_core.config import RuntimeConfig
from kestrel_core.loop.step import Kind, PreparedImage, Readout, Running, Runtime, Span, StepPlan
from kestrel_core.moondream.config import MoondreamConfig
from kestrel_core.protocol.errors import InvalidRequest
from kestrel_tools.bench.decode import page_tables
from kestrel_tools.bench.floors import measure_pace, prefill_flops, timed_s
from kestrel_tools.bench.results import Row, make_document, show
from kestrel_tools.bench.vision import NINE_CROPS, random_picture

WORDS = 15  # so 745 positions, of a published model
WARM_UP = 3


def bench_prefill(
    config: RuntimeConfig,
    counts: Sequence[int],
    repeats: int,
    file: Path | None,
    commit: str | None,
    console: Console,
) -> None:
    if not counts or min(*counts, 1) < 1 or repeats < 1:
        raise InvalidRequest("prefill needs numbers of requests, and repeats, of 1 or more")
    rows: list[Row] = []
    with console.status(f"loading {config.model}") as status:
        model = open_model(config)
        shape, text, device = model.network.config, model.network.text, model.device
        tokens = shape.image_prefix_length + WORDS
        config = replace(
            config,
            max_batch_size=max(counts),
            step_tokens=max(config.max_step_tokens, max(counts) * tokens),
            kv_cache_tokens=config.kv_cache_tokens or max(counts) * (tokens + 16) + 16,
        )
        status.update("measuring the pace of copies and products")
        pace = measure_pace(device, text.wte.dtype)
        # Before an engine is built, which may lay weights out anew; and FLOPs are as many as requests.
        floor_ms_each = 1000 * prefill_flops(text, 1, shape.image_prefix_length, WORDS) / pace.flops_per_s
        engine = assemble_engine(model, config)
        runtime: Runtime = engine.loop.runtime
        image = random_picture(shape.vision, NINE_CROPS)
        for count in counts:
            status.update(f"prefilling {count} at a time")
            plan = prompts(runtime, shape, count, image)
            for _ in range(WARM_UP):
                _step(runtime, plan)
            encoded = engine.metrics()["images_encoded"]
            ms = 1000 * median(timed_s(partial(_step, runtime, plan), device) for _ in range(repeats))
            again = engine.metrics()["images_encoded"] > encoded
            floor_ms = count * floor_ms_each
            rows.append(
                {
                    "requests": count,
                    "tokens": count * tokens,
                    "ms": ms,
                    "tokens_per_s": 1000 * count * tokens / ms,
                    "vision": "included" if again else "not in it",
                    "floor_ms": floor_ms,
                    "of_floor": floor_ms / ms,
                }
            )
        runtime.close()
    workload = {
        "prompt": f"{tokens} positions, of them {shape.image_prefix_length} of a picture",
        "repeats": repeats,
        "products": f"{pace.flops_per_s / 1e12:.3g} TFLOP/s",
        "floor": "matrix products at that pace",
    }
    show(make_document("prefill", config, workload, rows, commit, pace=pace._asdict()), console, file)


def _step(runtime: Runtime, plan: StepPlan) -> None:
    runtime.launch(plan).collect()


def prompts(runtime: Runtime, shape: MoondreamConfig, count: int, image: PreparedImage) -> StepPlan:
    """A step of `count` whole prompts: the picture's span and the words', the last of which is read."""
    prefix = shape.image_prefix_length
    rng = np.random.default_rng(0)
    spans = []
    for slot, pages in page_tables(runtime, count, prefix + WORDS).items():
        words = rng.integers(16, shape.text.vocab_size, WORDS).tolist()
        spans.append(Span(Running(slot, pages), 0, prefix, None, image))
        spans.append(Span(Running(slot, pages), prefix, prefix + WORDS, words, None, Readout(Kind.TOKEN)))
    return StepPlan(spans)
