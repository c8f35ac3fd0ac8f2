"""Which paged attention serves this device: FlashInfer's, or SDPA over copies; for few rows perhaps ours."""

import logging
from collections.abc import Callable

import torch

from kestrel_core.moondream.config import TextConfig
from kestrel_core.moondream.ops.choose import launches_early
from kestrel_core.protocol.errors import EngineFailed
from kestrel_core.runtime.attention.late_prefills import Compiler, LatePrefills, Modules
from kestrel_core.runtime.attention.protocol import PagedAttention
from kestrel_core.runtime.attention.sdpa import PagedSdpaAttention
from kestrel_core.runtime.attention.trial import Trial
from kestrel_core.runtime.kv_cache import KVCache

log = logging.getLogger("kestrel")


def choose_attention(
    kv_cache: KVCache,
    config: TextConfig,
    max_context: int,
    flashinfer: str,
    decode_kernels: str = "off",
    compiler: Compiler | None = None,
) -> PagedAttention:
    """The one for many rows and spans, and before it ours for few, unless `decode_kernels` is off.

    A `compiler` of FlashInfer, where there is one, was waited for.
    """
    chosen = _choose_for_many(kv_cache, config, max_context, flashinfer, compiler)
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
    kv_cache: KVCache, config: TextConfig, max_context: int, flashinfer: str, compiler: Compiler | None
) -> PagedAttention:
    """FlashInfer's where it runs; else SDPA, with a warning that says what it costs.

    `flashinfer` is auto, off or required. Where it is required, SDPA is refused instead.
    """
    reason = _reason_against_flashinfer(kv_cache.k.device, kv_cache.dtype, config, flashinfer)
    if reason is None:
        try:
            from kestrel_core.runtime.attention.flashinfer import FlashInferAttention

            kind = config.head_dim, kv_cache.dtype, kv_cache.k.dtype
            late = compiler if compiler is not None and compiler.still_compiles_prefills(kind) else None
            unpacks = kv_cache.is_float8 and not _prefills_float8(FlashInferAttention, kv_cache, config)
            attention = FlashInferAttention(kv_cache, config, unpacks)
            if late is not None:
                attention.try_out_decodes()
                return LatePrefills(attention, PagedSdpaAttention(kv_cache, max_context), late)
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
    return PagedSdpaAttention(kv_cache, max_context)


def _prefills_float8(
    make: Callable[[KVCache, TextConfig], PagedAttention], kv_cache: KVCache, config: TextConfig
) -> bool:
    """Whether its prefills read float8 rightly. Its decodes have to."""
    trial = Trial(make, kv_cache, config)
    if not trial.decodes():
        raise EngineFailed("its decodes read float8 wrongly")
    try:
        rightly, reason = trial.prefills(), "FlashInfer read them wrongly"
    except Exception as error:  # no compiler takes them
        rightly, reason = False, f"{type(error).__name__}: {error}"
    if not rightly:
        log.warning("large steps unpack keys and values from float8 in each layer: %s", reason)
    return rightly


def prepare_flashinfer(
    config: TextConfig,
    device: torch.device,
    dtype: torch.dtype,
    flashinfer: str,
    stored: torch.dtype | None = None,
) -> Compiler | None:
    """A thread that imports FlashInfer and compiles its kernels, while weights are loaded; None where it will
    not be used. `stored` is the KV cache's dtype, where it is another.
    """
    if _reason_against_flashinfer(device, dtype, config, flashinfer) is not None:
        return None
    kind = config.head_dim, dtype, stored or dtype

    def make() -> Modules:
        from kestrel_core.runtime.attention.flashinfer import FlashInferModules

        return FlashInferModules(*kind)

    # Where it is required, nothing else may serve, and in float8 prefills are tried out before they are used.
    compiler = Compiler(make, kind, late=flashinfer == "auto" and stored in (None, dtype))
    compiler.start()
    return compiler


def _reason_against_flashinfer(
    device: torch.device, dtype: torch.dtype, config: TextConfig, flashinfer: str
) -> str | None:
    if flashinfer == "off":
        return "it is switched off"
    if device.type != "cuda":
        return "it needs a CUDA device"
    if dtype not in (torch.bfloat16, torch.float16):
        return f"it needs 16-bit weights, and these are {dtype}"
    if config.head_dim not in (64, 128, 256):
        return f"it has no kernels for heads of {config.head_dim}"
    return None
