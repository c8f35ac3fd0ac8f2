"""Which paged attention serves this device: FlashInfer's, or SDPA over copies; for few rows perhaps ours."""

import logging

import torch

from kestrel_core.moondream.config import TextConfig
from kestrel_core.moondream.ops.choose import launches_early
from kestrel_core.protocol.errors import EngineFailed
from kestrel_core.runtime.attention.protocol import PagedAttention
from kestrel_core.runtime.kv_cache import KVCache

log = logging.getLogger("kestrel")


def choose_attention(
    kv_cache: KVCache, config: TextConfig, max_context: int, flashinfer: str, decode_kernels: str = "off"
) -> PagedAttention:
    """The one for many rows and spans, and before it ours for few, unless `decode_kernels` is off."""
    chosen = _choose_for_many(kv_cache, config, max_context, flashinfer)
    if decode_kernels == "off" or not kv_cache.k.is_cuda:
        return chosen
    try:
        from kestrel_core.runtime.attention.few_rows import FewRowsAttention

        early = launches_early(kv_cache.k.device, decode_kernels)
        ours = FewRowsAttention(kv_cache, config, max_context, chosen, early)
        ours.try_out()
        return ours
    except Exception as error:  # no kernel language, or none that compiles here
        log.warning("serving few rows without attention of our own: %s: %s", type(error).__name__, error)
    return chosen


def _choose_for_many(
    kv_cache: KVCache, config: TextConfig, max_context: int, flashinfer: str
) -> PagedAttention:
    """FlashInfer's where it runs; else SDPA, with a warning that says what it costs.

    `flashinfer` is auto, off or required. Where it is required, SDPA is refused instead.
    """
    reason = _reason_against_flashinfer(kv_cache, config, flashinfer)
    if reason is None:
        try:
            from kestrel_core.runtime.attention.flashinfer import FlashInferAttention

            attention = FlashInferAttention(kv_cache, config)
            attention.try_out()
            return attention
        except Exception as error:  # not installed, or no compiler for its kernels
            reason = f"{type(error).__name__}: {error}"
    if flashinfer == "required":
        raise EngineFailed(f"FlashInfer is required, and cannot serve: {reason}")
    if kv_cache.k.is_cuda:
        log.warning(
            "serving without FlashInfer (%s): attention copies every sequence's keys and values in each "
            "layer, several times the memory traffic of a decode step, and mixed steps go span by span",
            reason,
        )
    from kestrel_core.runtime.attention.sdpa import PagedSdpaAttention

    return PagedSdpaAttention(kv_cache, max_context)


def _reason_against_flashinfer(kv_cache: KVCache, config: TextConfig, flashinfer: str) -> str | None:
    if flashinfer == "off":
        return "it is switched off"
    if not kv_cache.k.is_cuda:
        return "it needs a CUDA device"
    if kv_cache.k.dtype not in (torch.bfloat16, torch.float16):
        return f"it needs 16-bit weights, and these are {kv_cache.k.dtype}"
    if config.head_dim not in (64, 128, 256):
        return f"it has no kernels for heads of {config.head_dim}"
    return None
