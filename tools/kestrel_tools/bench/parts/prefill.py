"""`kestrel bench prefill`: prompts of a picture and a question, several in one step, through any `Runtime`.

The picture is the same in all of them and was encoded before, so the vision encoder has no part in the time;
should the runtime encode it again all the same, its row says so. Floors are FLOPs at a measured pace.
"""

from dataclasses import replace
from functools import partial

import numpy as np

from kestrel_core.build import assemble_engine
from kestrel_core.loop.step import Kind, PreparedImage, Readout, Running, Runtime, Span, StepPlan
from kestrel_core.moondream.config import MoondreamConfig
from kestrel_tools.bench.machine.floors import (
    beside_floor,
    median_ms,
    paced_model,
    prefill_flops,
    products_workload,
)
from kestrel_tools.bench.options import Prefill
from kestrel_tools.bench.parts.decode import page_tables
from kestrel_tools.bench.parts.vision import NINE_CROPS, random_picture
from kestrel_tools.bench.results import Bench, Row

WORDS = 15  # which makes 745 positions with a published model


def bench_prefill(run: Prefill, bench: Bench) -> None:
    most, rows = max(run.requests), list[Row]()
    with paced_model(bench.config, bench.console) as (model, pace, say):
        shape, text = model.network.config, model.network.text
        tokens = shape.image_prefix_length + WORDS
        config = replace(
            bench.config,
            max_batch_size=most,
            step_tokens=max(bench.config.max_step_tokens, most * tokens),
            kv_cache_tokens=bench.config.kv_cache_tokens or most * (tokens + 16) + 16,
        )
        # Counted before an engine is built, since that may change the layout of the weights.
        flops = prefill_flops(text, 1, shape.image_prefix_length, WORDS)
        engine = assemble_engine(model, config)
        runtime: Runtime = engine.loop.runtime
        image = random_picture(shape.vision, NINE_CROPS)
        for count in run.requests:
            say(f"prefilling {count} at a time")
            plan = prompts(runtime, shape, count, image)
            _step(runtime, plan)
            encoded = engine.metrics()["images_encoded"]
            ms = median_ms(partial(_step, runtime, plan), model.device, run.repeats)
            again = engine.metrics()["images_encoded"] > encoded
            row = {
                "requests": count,
                "tokens": count * tokens,
                "ms": ms,
                "tokens_per_s": 1000 * count * tokens / ms,
                "vision": "included" if again else "not in it",
            }
            rows.append(row | beside_floor(ms, count * flops, pace))
        runtime.close()
    prompt = f"{tokens} positions, of them {shape.image_prefix_length} of a picture"
    workload = {"prompt": prompt, **products_workload(run.repeats, pace)}
    bench.finish("prefill", config, workload, rows, pace=pace._asdict())


def _step(runtime: Runtime, plan: StepPlan) -> None:
    runtime.launch(plan).collect()


def prompts(runtime: Runtime, shape: MoondreamConfig, count: int, image: PreparedImage) -> StepPlan:
    """A step of `count` whole prompts: a span for the picture and one for the words, whose last is read."""
    prefix = shape.image_prefix_length
    rng = np.random.default_rng(0)
    spans = []
    for slot, pages in page_tables(runtime, count, prefix + WORDS).items():
        words = rng.integers(16, shape.text.vocab_size, WORDS).tolist()
        spans.append(Span(Running(slot, pages), 0, prefix, None, image))
        spans.append(Span(Running(slot, pages), prefix, prefix + WORDS, words, None, Readout(Kind.TOKEN)))
    return StepPlan(spans)
