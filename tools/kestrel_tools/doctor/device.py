"""Tries out what only a GPU runs: FlashInfer's attention and our kernels, each against plain torch.

Both compile at their first call, which is where a missing compiler or a wrong version shows.
"""

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from kestrel_core.loop.step import PreparedImage, Running, Span
from kestrel_core.moondream.config import MOONDREAM2
from kestrel_core.moondream.ops import plain
from kestrel_core.moondream.ops.protocol import Norm
from kestrel_core.runtime.attention.protocol import SpanRows
from kestrel_core.runtime.attention.sdpa import PagedSdpaAttention
from kestrel_core.runtime.kv_cache import KVCache
from kestrel_tools.doctor.report import Finding, fault, ok

# Both sides sum in float32 and round to bfloat16 once: its 8 bits leave 2^-8 of numbers of order one, and
# the order of the sums may add the same again a few times.
TOLERANCE = 2e-2
IMAGE_TOKENS, TEXT_TOKENS, PAGE_SIZE = 30, 9, 10


@torch.inference_mode()
def try_flashinfer(device: torch.device | str) -> Finding:
    """A picture's positions in both directions and a text's causally, beside SDPA over the same keys."""
    from kestrel_core.runtime.attention.flashinfer import FlashInferAttention

    device, text = torch.device(device), replace(MOONDREAM2.text, n_layers=1)
    caches = [KVCache(text, 8, PAGE_SIZE, device, torch.bfloat16) for _ in range(2)]
    ours, plainly = FlashInferAttention(caches[0], text), PagedSdpaAttention(caches[1], 8 * PAGE_SIZE)
    ours.try_out()
    rows = _span_rows(device)
    generator = torch.Generator(device).manual_seed(0)
    shape = (IMAGE_TOKENS + TEXT_TOKENS, text.n_heads, text.head_dim)
    q, k, v = (torch.randn(shape, device=device, generator=generator).to(torch.bfloat16) for _ in range(3))
    mine, other = (attention.for_spans(rows)(0, q, k, v) for attention in (ours, plainly))
    return _compared("FlashInfer's attention", mine, other, "Serve with --flashinfer off, and report this.")


def _span_rows(device: torch.device) -> SpanRows:
    """Sequence 1 lies on pages 1 to 3, sequence 2 on page 4."""
    spans = [
        Span(Running(1, []), 0, IMAGE_TOKENS, None, PreparedImage("", None, (1, 1))),
        Span(Running(2, []), 0, TEXT_TOKENS, None),
    ]
    cells = [*range(PAGE_SIZE, 4 * PAGE_SIZE), *range(4 * PAGE_SIZE, 4 * PAGE_SIZE + TEXT_TOKENS)]
    return SpanRows(
        spans,
        1,
        np.array([0, IMAGE_TOKENS, IMAGE_TOKENS + TEXT_TOKENS], np.int32),
        np.array([0, 3, 4], np.int32),
        np.array([PAGE_SIZE, TEXT_TOKENS], np.int32),
        torch.tensor([1, 2, 3, 4], dtype=torch.int32, device=device),
        torch.tensor(cells, device=device),
    )


@torch.inference_mode()
def try_kernels(device: torch.device | str) -> Finding:
    """A sum and its LayerNorm by our kernel, beside plain torch."""
    from kestrel_core.moondream.ops import kernels

    generator = torch.Generator(device).manual_seed(0)
    x, y = (torch.randn((7, 192), device=device, generator=generator).to(torch.bfloat16) for _ in range(2))
    norm = Norm(torch.ones(192, device=device).to(x.dtype), torch.zeros(192, device=device).to(x.dtype), 1e-5)
    mine, other = (ops.add_norm(x, y, None, norm)[1] for ops in (kernels, plain))
    return _compared("our kernel", mine, other, "Serve with --compile off, and report this.")


def _compared(name: str, mine: Tensor, other: Tensor, advice: str) -> Finding:
    apart = float((mine.float() - other.float()).abs().max())
    if not apart <= TOLERANCE:  # NaN is caught as well
        return fault(f"{name} runs, and is {apart:.3g} away from plain torch", advice)
    return ok(f"{name} compiles, runs, and is within {apart:.1g} of plain torch")
