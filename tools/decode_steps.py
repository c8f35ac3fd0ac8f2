"""Whole captured decode steps with each choice of `decode_kernels`, for `decode_stages`."""

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from decode_rows import CONTEXT, MAX_CONTEXT, copied, difference, fill, filled_cache, rows_of
from kestrel_core.moondream.checkpoint.weights import random_weights
from kestrel_core.moondream.config import MoondreamConfig
from kestrel_core.moondream.fast_text import FastText
from kestrel_core.moondream.model import Moondream
from kestrel_core.moondream.ops.choose import choose_fused
from kestrel_core.runtime.attention.choose import choose_attention
from kestrel_core.runtime.graphs import Graphs
from kestrel_core.runtime.kv_cache import KVCache
from kestrel_core.runtime.readouts import batched
from kestrel_core.runtime.readouts.batched import Asked, Form
from kestrel_core.runtime.readouts.choose import choose_token_readout
from stages import device_ms

log = logging.getLogger(__name__)

LEVELS = ("off", "attention", "products", "early")


class Step:
    """Decode steps of one size, captured with one choice of kernels."""

    def __init__(self, model: Moondream, text: FastText, level: str, num_rows: int, cache: KVCache) -> None:
        device, config = model.text.wte.device, model.config.text
        torch.manual_seed(num_rows)
        lengths = [CONTEXT + row for row in range(num_rows)]
        rows = rows_of(lengths, cache)
        saved = copied(rows)
        attention = choose_attention(cache, config, MAX_CONTEXT, "required", level)
        decode = attention.for_decode(rows, captured=True)
        decode.plan(rows.indptr.cpu().numpy())
        fill(rows, saved)  # FlashInfer's plan writes there
        x = torch.randn((num_rows, config.dim), device=device).to(model.text.wte.dtype)
        positions = torch.tensor([length - 1 for length in lengths], device=device)
        zeros = torch.zeros(num_rows, device=device)
        none = torch.full((num_rows, 4), batched.NONE, device=device)
        asked = Asked(zeros.long(), zeros.int(), zeros, zeros, zeros.int(), zeros, none, none)
        self.hidden = torch.empty_like(x)
        self.results = torch.empty((num_rows, batched.NUM_VALUES), device=device)
        forward = text.computed_by(choose_fused(device, "auto", level))

        read_tokens = choose_token_readout(model, forward, level)
        feeds = torch.zeros_like(x)

        def step() -> None:
            self.hidden.copy_(forward(x, positions, decode.begin(), None))
            if read_tokens is not None:
                read_tokens(self.hidden, asked, feeds, self.results)
            else:
                results, next_feeds = batched.read(model, self.hidden, asked, Form())
                feeds.index_copy_(0, asked.slots, next_feeds)
                self.results.copy_(results)

        self.replay = Graphs(device).capture(step)

    def ms(self) -> float:
        def work() -> None:
            for _ in range(5):
                self.replay()

        return device_ms(work, seconds=0.1) / 5

    def is_steady(self, replays: int = 100) -> bool:
        """Whether every replay gives the same to the bit, as it must: no program may overtake another."""
        self.replay()
        first = self.hidden.clone()
        for _ in range(replays):
            self.replay()
            if not torch.equal(self.hidden, first):
                return False
        return True

    def kernels(self) -> str:
        """Microseconds of a step by kernel, the longest first."""
        activities = [torch.profiler.ProfilerActivity.CUDA]
        with torch.profiler.profile(activities=activities) as profile:
            for _ in range(3):
                self.replay()
            torch.cuda.synchronize()
        times: Counter[str] = Counter()
        for event in profile.events():
            times[event.name.split("<")[0][-40:]] += event.device_time / 3
        return ", ".join(f"{name} {us:.0f}" for name, us in times.most_common(9))


def print_steps(name: str, shape: MoondreamConfig, device: torch.device, sizes: Sequence[int]) -> None:
    with torch.device("meta"):
        model = Moondream(replace(shape, vision=replace(shape.vision, enc_n_layers=0)))
    random_weights(model, device, torch.bfloat16, seed=0)
    text = FastText(model.text, choose_fused(device))
    cache = filled_cache(shape.text, max(sizes) * 90 + 2, device, torch.bfloat16)
    for num_rows in sizes:
        first: Tensor | None = None
        first_tokens: list[int] | None = None
        line = f"{name}, {num_rows} rows, ms a step:"
        for level in LEVELS:
            try:
                step = Step(model, text, level, num_rows, cache)
                steady, ms = step.is_steady(), step.ms()
                if first is None:
                    first = step.hidden.float().clone()
                off = difference(step.hidden, first)
                tokens = step.results[:, 0].int().tolist()
                same = "same tokens" if first_tokens in (None, tokens) else "OTHER TOKENS"
                first_tokens = first_tokens or tokens
                line += f"  {level} {ms:.3f}{'' if steady else ' NOT STEADY'} (differs {off:.1e}, {same})"
                if num_rows == 1 and level in (LEVELS[0], LEVELS[-1]):
                    print(f"  {name}, {level}: {step.kernels()}", flush=True)
            except Exception:
                log.exception("%s with %s fails", name, level)
                line += f"  {level} failed"
        print(line, flush=True)
