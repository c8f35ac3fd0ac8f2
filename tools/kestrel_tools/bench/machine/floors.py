"""The least time a stage can take: the bytes it must move, or the products it must form, at a measured pace.

The pace is the device's in the same run: a copy for bytes (read and written both count), for FLOPs a large
product of two matrices in the model's dtype. What a stage needs is counted off the network's parameters.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from time import perf_counter
from typing import NamedTuple

import torch
from rich.console import Console
from torch import nn

from kestrel_core.build import LoadedModel, open_model
from kestrel_core.config import RuntimeConfig
from kestrel_core.moondream.few_bits_layers import PackedExperts, PackedLinear
from kestrel_core.moondream.text import Text
from kestrel_core.moondream.vision import Vision
from kestrel_tools.bench.results import Row

REPEATS = 10
WARM_UP = 3


class Pace(NamedTuple):
    bytes_per_s: float
    flops_per_s: float


@contextmanager
def paced_model(
    config: RuntimeConfig, console: Console
) -> Iterator[tuple[LoadedModel, Pace, Callable[[str], None]]]:
    """A model, the pace of its device, and a function to call with what is being done now."""
    with console.status(f"loading {config.model}") as status:
        model = open_model(config)
        status.update("measuring the pace of copies and products")
        yield model, measure_pace(model.device, model.network.text.wte.dtype), status.update


def beside_floor(ms: float, flops: float, pace: Pace) -> Row:
    floor_ms = 1000 * flops / pace.flops_per_s
    return {"floor_ms": floor_ms, "of_floor": floor_ms / ms}


def products_workload(repeats: int, pace: Pace) -> Row:
    products = f"{pace.flops_per_s / 1e12:.3g} TFLOP/s"
    return {"repeats": repeats, "products": products, "floor": "matrix products at that pace"}


def measure_pace(device: torch.device, dtype: torch.dtype) -> Pace:
    pace = Pace(_copy_pace(device), _product_pace(device, dtype))
    if device.type == "cuda":
        torch.cuda.empty_cache()  # an engine that is built next plans with what is free
    return pace


def _copy_pace(device: torch.device) -> float:
    source = torch.zeros(2**30 if device.type == "cuda" else 2**26, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    return 2 * source.nbytes / _least_s(lambda: target.copy_(source), device)


def _product_pace(device: torch.device, dtype: torch.dtype) -> float:
    side = 8192 if device.type == "cuda" else 512
    a = torch.randn((side, side), dtype=dtype, device=device)
    b, product = a.clone(), torch.empty_like(a)
    return 2 * side**3 / _least_s(lambda: torch.mm(a, b, out=product), device)


def _least_s(work: Callable[[], object], device: torch.device) -> float:
    return min(timed_s(work, device) for _ in range(REPEATS))


def median_ms(work: Callable[[], object], device: torch.device, repeats: int) -> float:
    """After a few calls in which kernels are compiled and plans are made."""
    return 1000 * median([timed_s(work, device) for _ in range(WARM_UP + repeats)][WARM_UP:])


def timed_s(work: Callable[[], object], device: torch.device) -> float:
    """Seconds from an idle device until it is idle again."""
    _wait(device)
    began = perf_counter()
    work()
    _wait(device)
    return perf_counter() - began


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


class Weights(NamedTuple):
    shape: tuple[int, ...]
    nbytes: int

    @property
    def numel(self) -> int:
        return math.prod(self.shape)


def weights_of(module: nn.Module) -> dict[str, Weights]:
    """Parameters by name, and matrices that are packed in few bits."""
    found = {name: Weights(tuple(p.shape), p.nbytes) for name, p in module.named_parameters()}
    for name, layer in module.named_modules():
        if isinstance(layer, (PackedLinear, PackedExperts)):
            found[f"{name}.weight"] = Weights(layer.packed.shape, layer.packed.nbytes)
    return found


def decode_bytes(text: Text, batch: int, context: int) -> float:
    """Bytes read in one step: all weights, the experts that are likely chosen, all keys and values.

    With k of E experts a token, chosen evenly, a batch of n leaves each out with (1 - k/E)^n.
    """
    config = text.config
    total = 0.0
    for name, weight in weights_of(text).items():
        if name == "wte":
            total += batch * weight.nbytes / len(text.wte)
        elif len(weight.shape) == 3:
            assert config.moe is not None
            chosen = config.moe.experts_per_token / config.moe.num_experts
            total += weight.nbytes * (1 - (1 - chosen) ** batch)
        else:
            total += weight.nbytes
    cell = 2 * config.n_layers * config.n_kv_heads * config.head_dim * text.wte.element_size()
    return total + batch * context * cell


def prefill_flops(text: Text, requests: int, image: int, words: int) -> float:
    """FLOPs of prompts: `image` positions that all see each other, `words` that see what is before them."""
    config, tokens = text.config, image + words
    linear = 0.0
    for name, weight in weights_of(text).items():
        if len(weight.shape) == 1 or name.startswith(("wte", "lm_head")):
            continue
        used = 1.0
        if len(weight.shape) == 3:
            assert config.moe is not None
            used = config.moe.experts_per_token / config.moe.num_experts
        linear += 2 * weight.numel * used
    pairs = image**2 + sum(image + word + 1 for word in range(words))
    attention = 4 * config.n_layers * config.n_heads * config.head_dim * pairs
    return requests * (tokens * linear + attention + 2 * config.vocab_size * config.dim)


def vision_flops(vision: Vision, images: int, crops: int) -> float:
    """FLOPs of `images` pictures with `crops` crops in all, the projection to embeddings included."""
    config = vision.config
    weights = {name: one.numel for name, one in weights_of(vision).items() if len(one.shape) == 2}
    projection = sum(numel for name, numel in weights.items() if name.startswith("proj_mlp"))
    linear = 2 * config.num_patches * (sum(weights.values()) - projection)
    attention = 4 * config.enc_n_layers * config.enc_dim * config.num_patches**2
    return crops * (linear + attention) + images * 2 * config.num_patches * projection
