"""Whole captured decode steps with each choice of `decode_kernels` and `quantize`.

`python tools/decode_steps.py`, which needs a GPU, and FlashInfer for steps without kernels of our own.
Compiling takes longer than measuring: a second run tells the same sooner, and `--models`, `--levels` and
`--quantize` divide the first one between processes.
"""

import argparse
import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from decode_rows import CONTEXT, MAX_CONTEXT, copied, difference, fill, filled_cache, rows_of
from kestrel_core.moondream.checkpoint.weights import random_weights
from kestrel_core.moondream.config import MOONDREAM2, MOONDREAM3, MoondreamConfig
from kestrel_core.moondream.fast_text import FastText
from kestrel_core.moondream.few_bits_layers import OutputLayer8, give_packed
from kestrel_core.moondream.few_bits_text import few_bits_text
from kestrel_core.moondream.float8_text import float8_text
from kestrel_core.moondream.model import Moondream
from kestrel_core.moondream.ops.choose import choose_fused
from kestrel_core.moondream.ops.choose_few_bits import choose_few_bits, choose_float8
from kestrel_core.moondream.scales import InputScales, measured_layers
from kestrel_core.runtime.attention.choose import choose_attention, prepare_flashinfer
from kestrel_core.runtime.graphs import Graphs
from kestrel_core.runtime.kv_cache import KVCache
from kestrel_core.runtime.readouts import batched
from kestrel_core.runtime.readouts.batched import Asked, Form
from kestrel_core.runtime.readouts.choose import choose_token_readout
from stages import device_ms

log = logging.getLogger(__name__)

BITS = ("off", "fp8", "int4")
LEVELS = ("off", "attention", "products", "early")


def needs_flashinfer(level: str, num_rows: int) -> bool:
    """Where it is not needed, nothing waits for its compiler."""
    return level == "off" or num_rows > 16


class Step:
    """Decode steps of one size, captured with one choice of kernels."""

    def __init__(self, model: Moondream, text: FastText, level: str, num_rows: int, cache: KVCache) -> None:
        device, config = model.text.wte.device, model.config.text
        torch.manual_seed(num_rows)
        lengths = [CONTEXT + row for row in range(num_rows)]
        rows = rows_of(lengths, cache)
        saved = copied(rows)
        flashinfer = "required" if needs_flashinfer(level, num_rows) else "off"
        attention = choose_attention(cache, config, MAX_CONTEXT, flashinfer, level)
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

    def is_steady(self, replays: int = 40) -> bool:
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


class Steps:
    """One network with random weights, and its text model in each number of bits, made once."""

    def __init__(self, shape: MoondreamConfig, device: torch.device, sizes: Sequence[int]) -> None:
        with torch.device("meta"):
            model = Moondream(replace(shape, vision=replace(shape.vision, enc_n_layers=0)))
        random_weights(model, device, torch.bfloat16, seed=0)
        self.model, self._device = model, device
        self._wide_output = model.text.lm_head
        self._texts = {"off": FastText(model.text, choose_fused(device))}
        self.cache = filled_cache(shape.text, max(sizes) * 90 + 2, device, torch.bfloat16)

    def text(self, quantize: str) -> FastText:
        """int4 takes the place of the network's own weights, so it comes last."""
        text = self.model.text
        if quantize == "fp8":
            text.add_module("lm_head", OutputLayer8(self._wide_output))
        elif quantize == "off":
            text.add_module("lm_head", self._wide_output)
        if quantize not in self._texts:
            self._texts[quantize] = self._few_bits(quantize)
        return self._texts[quantize]

    def _few_bits(self, quantize: str) -> FastText:
        text, fused = self.model.text, choose_fused(self._device)
        if quantize == "fp8":
            names = [name for name, _ in measured_layers(self.model)]
            scales = InputScales("random", 0, dict.fromkeys(names, 4.0))
            return float8_text(text, choose_float8(fused, self._device, torch.bfloat16), scales)
        text.add_module("lm_head", self._wide_output)
        self._texts.clear()
        for name, parameter in list(self.model.named_parameters()):
            if name.startswith("text."):
                give_packed(self.model, name, parameter)
        return few_bits_text(text, choose_few_bits(fused), "int4")


def ways_of(levels: Sequence[str], quantize: Sequence[str]) -> list[tuple[str, str]]:
    """What needs no FlashInfer first, since that is being compiled meanwhile; int4 last."""
    wide = [(level, bits) for level in levels for bits in quantize if bits != "int4"]
    wide.sort(key=lambda way: way[0] == "off")
    return wide + [(level, "int4") for level in levels if "int4" in quantize]


def print_steps(
    name: str,
    shape: MoondreamConfig,
    device: torch.device,
    sizes: Sequence[int],
    levels: Sequence[str] = LEVELS,
    quantize: Sequence[str] = ("off",),
    profiled: bool = False,
) -> None:
    """A line for each way, as soon as it is measured. Differences are those from the first with its bits."""
    flashinfer = prepare_flashinfer(shape.text, device, torch.bfloat16, "required")
    steps = Steps(shape, device, sizes)
    first: dict[tuple[str, int], tuple[Tensor, list[int]]] = {}
    for level, bits in ways_of(levels, quantize):
        if flashinfer is not None and needs_flashinfer(level, max(sizes)):
            flashinfer.join()
        for num_rows in sizes:
            line = f"{name}, quantize {bits}, {level}, {num_rows} rows:"
            try:
                step = Step(steps.model, steps.text(bits), level, num_rows, steps.cache)
                steady, ms = step.is_steady(), step.ms()
                tokens = step.results[:, 0].int().tolist()
                hidden, expected = first.setdefault((bits, num_rows), (step.hidden.float().clone(), tokens))
                same = "same tokens" if expected == tokens else "OTHER TOKENS"
                off = difference(step.hidden, hidden)
                line += f" {ms:.3f} ms{'' if steady else ' NOT STEADY'} (differs {off:.1e}, {same})"
                print(line, flush=True)
                if profiled and num_rows == 1:
                    print(f"  {step.kernels()}", flush=True)
            except Exception:
                log.exception("%s fails", line)


@torch.inference_mode()
def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="+", choices=("2", "3"), default=("2", "3"))
    parser.add_argument("--rows", nargs="+", type=int, default=(1, 16))
    parser.add_argument("--levels", nargs="+", choices=LEVELS, default=("early", "off"))
    parser.add_argument("--quantize", nargs="+", choices=BITS, default=BITS)
    parser.add_argument("--profile", action="store_true", help="tell the longest kernels of one row's steps")
    asked = parser.parse_args(arguments)
    for name, shape in (("2", MOONDREAM2), ("3", MOONDREAM3)):
        if name in asked.models:
            model, device = f"Moondream {name}", torch.device("cuda")
            print_steps(model, shape, device, asked.rows, asked.levels, asked.quantize, asked.profile)


if __name__ == "__main__":
    main()
