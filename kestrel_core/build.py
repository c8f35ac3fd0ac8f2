"""Puts the rooms together: weights, tokenizer, device, scheduler and loop. Nobody else knows them all."""

import gc
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from kestrel_core.config import RuntimeConfig
from kestrel_core.intake import hub
from kestrel_core.intake.images import ImageLimits
from kestrel_core.intake.preparing import Preparer
from kestrel_core.intake.tokenizer import Tokenizer
from kestrel_core.loop.metrics import Metrics
from kestrel_core.loop.step_loop import QueueLimits, StepLoop
from kestrel_core.moondream.checkpoint.files import open_checkpoint
from kestrel_core.moondream.checkpoint.weights import load_config, load_weights, random_weights
from kestrel_core.moondream.config import (
    MOONDREAM2,
    MOONDREAM3,
    MOONDREAM_TINY,
    MoondreamConfig,
    VisionConfig,
)
from kestrel_core.moondream.fast_text import speed_up
from kestrel_core.moondream.model import Moondream
from kestrel_core.moondream.ops.choose import choose_fused
from kestrel_core.protocol.errors import BadCheckpoint, InvalidRequest
from kestrel_core.runtime.cuda_runtime import CudaRuntime
from kestrel_core.runtime.graphs import Graphs
from kestrel_core.runtime.kv_cache import KVCache
from kestrel_core.runtime.torch_runtime import TorchRuntime, best_page_size
from kestrel_core.runtime.vision.crop_batches import MAX_BATCH_CROPS, CropBatches
from kestrel_core.runtime.vision.image_encoder import ImageEncoder
from kestrel_core.scheduler.pages import PagePool
from kestrel_core.scheduler.prefix_cache import PrefixCache
from kestrel_core.scheduler.scheduler import Limits, Scheduler
from kestrel_core.skills.spec import Language, SkillRegistry
from kestrel_core.skills.standard import standard_skills

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
CONFIGS = {
    "moondream2": MOONDREAM2,
    "moondream3-preview": MOONDREAM3,
    "moondream3.1-9B-A2B": MOONDREAM3,
    "moondream-tiny": MOONDREAM_TINY,
}
BUNDLED = {"moondream-tiny": Path(__file__).with_name("bundled") / "moondream-tiny"}

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class LoadedModel:
    network: Moondream
    language: Language
    device: torch.device
    batches: dict[tuple[object, ...], CropBatches] = field(default_factory=dict)  # by the options they follow

    def crop_batches(self, config: RuntimeConfig) -> CropBatches:
        """Made and captured once for all engines over this model, of which one computes at a time."""
        options = (config.compile, config.vision_dtype, config.cuda_graphs)
        if options not in self.batches:
            self.batches[options] = CropBatches(
                self.network.vision,
                compile=config.compile == "auto",
                vision_dtype="fp8" if config.vision_dtype == "fp8" else "auto",
                max_crops=affordable_crops(self.network.config.vision, _free_bytes(self.device)),
                graphs=Graphs(self.device) if config.cuda_graphs else None,
            )
        return self.batches[options]


@dataclass(frozen=True)
class Engine:
    """A running engine: the loop is its door, the rest is there to be looked at."""

    loop: StepLoop
    language: Language
    runtime: TorchRuntime | CudaRuntime

    def close(self, drain: bool = True) -> None:
        self.loop.close(drain)

    def metrics(self) -> dict[str, Any]:
        scheduler, encoder = self.loop.scheduler, self.runtime.encode_image
        cached = scheduler.prefix_cache.num_cached_pages
        free = scheduler.pool.num_free
        device = {}
        if isinstance(self.runtime, CudaRuntime):
            device = {
                "device_bytes_planned": self.runtime.planned_bytes,
                "device_bytes_used": self.runtime.used_bytes,
            }
        return {
            **self.loop.metrics.snapshot(),
            **device,
            "queued": self.loop.num_queued,
            "queued_bytes": self.loop.queued_bytes,
            "prepared_bytes": self.loop.prepared_bytes,
            "running": scheduler.num_running,
            "preemptions": scheduler.num_preemptions,
            "pages_free": free,
            "pages_cached": cached,
            "pages_used": scheduler.pool.num_pages - 1 - free - scheduler.prefix_cache.num_evictable_pages,
            "images_encoded": encoder.num_encoded,
            "vision_encode_s": encoder.encode_s,
        }


def build_engine(
    config: RuntimeConfig,
    skills: SkillRegistry | None = None,
    progress: Progress | None = None,
    warming: Progress | None = None,
) -> Engine:
    """Load the model, of which `progress` tells, warm it up (`warming`), and start the engine's thread."""
    return start_engine(open_model(config, progress), config, skills, warming)


def start_engine(
    model: LoadedModel,
    config: RuntimeConfig,
    skills: SkillRegistry | None = None,
    warming: Progress | None = None,
) -> Engine:
    """An engine over a model that is loaded already."""
    engine = assemble_engine(model, config, skills, warming=warming)
    engine.loop.start()
    return engine


def assemble_engine(
    model: LoadedModel,
    config: RuntimeConfig,
    skills: SkillRegistry | None = None,
    overlaps: bool | None = None,
    warming: Progress | None = None,
) -> Engine:
    """An engine whose loop nobody turns yet: for callers that call `loop.step()` themselves.

    Steps overlap where the device works by itself, unless `overlaps` says otherwise.
    """
    shape = model.network.config
    page_size = best_page_size(shape.image_prefix_length)
    max_context = config.max_context or shape.text.max_context
    usable = max(shape.text.max_context, shape.text.usable_context)
    if max_context > usable:
        raise InvalidRequest(
            f"max_context is {max_context:,}, and this model is good for {usable:,} positions"
        )
    runtime = _runtime(model, config, page_size, max_context, overlaps)
    if isinstance(runtime, CudaRuntime):
        runtime.warm_up(config.max_step_tokens, warming)
    num_pages = runtime.num_pages
    pool, metrics = PagePool(num_pages), Metrics()
    scheduler = Scheduler(
        pool,
        PrefixCache(pool, config.prefix_cache),
        page_size,
        Limits(config.max_batch_size, max_context, config.max_step_tokens),
    )
    loop = StepLoop(
        runtime,
        scheduler,
        skills or standard_skills(),
        model.language,
        Preparer(
            shape.vision,
            ImageLimits(config.max_image_bytes, config.max_image_pixels),
            time.monotonic,
            metrics.image_decode_s.observe,
            leave_cutting=runtime.encode_image.cuts,
        ).prepare,
        ThreadPoolExecutor(config.num_image_workers, thread_name_prefix="kestrel-prepare"),
        QueueLimits(
            config.max_queue,
            config.max_queue_bytes,
            max_context,
            config.priority_s,
            config.default_timeout_s,
        ),
        metrics,
    )
    return Engine(loop, model.language, runtime)


def _runtime(
    model: LoadedModel, config: RuntimeConfig, page_size: int, max_context: int, overlaps: bool | None
) -> TorchRuntime | CudaRuntime:
    network, on_cuda = model.network, model.device.type == "cuda"
    fast = on_cuda and config.runtime == "auto"
    tokens = config.kv_cache_tokens or 2 * config.max_batch_size * max_context
    encoder = None
    if on_cuda:
        if not fast or config.compile == "off":
            network.text.fast = None
        elif network.text.fast is None:
            speed_up(network.text, choose_fused(model.device))
        if fast:
            encoder = ImageEncoder(network.vision, model.crop_batches(config))
            encoder.warm_up()  # before the KV cache, which gets what is left
        cell_bytes = KVCache.bytes_per_cell(network.config.text, network.text.wte.dtype)
        tokens = affordable_tokens(tokens, max_context, cell_bytes, _free_bytes(model.device))
    num_pages = 1 + max(-(-tokens // page_size), -(-max_context // page_size))
    if encoder is None:
        return TorchRuntime(network, num_pages, page_size, bool(overlaps))
    return CudaRuntime(
        network,
        num_pages,
        page_size,
        config.max_batch_size,
        max_context,
        encoder,
        flashinfer=config.flashinfer,
        graphs=Graphs(model.device) if config.cuda_graphs else None,
        overlaps=overlaps is not False,
    )


def _free_bytes(device: torch.device) -> int:
    if device.type != "cuda":
        return sys.maxsize
    gc.collect()  # an engine before this one may still lie about
    torch.cuda.empty_cache()
    free_bytes: int = torch.cuda.mem_get_info(device)[0]
    return free_bytes


def affordable_crops(vision: VisionConfig, free_bytes: int) -> int:
    """As many crops in a batch as are good for speed and take a tenth of what is free: some 20 MB each."""
    numbers = vision.num_patches * (9 * vision.enc_dim + vision.enc_ff_dim)
    return max(1, min(MAX_BATCH_CROPS, free_bytes // (10 * 2 * numbers)))


def affordable_tokens(wanted: int, max_context: int, cell_bytes: int, free_bytes: int) -> int:
    """As many positions of KV as are wanted and fit; a fifth, or a GiB at least, is left to the computing."""
    fitting = int(free_bytes - max(free_bytes / 5, 2**30)) // cell_bytes
    if fitting < max_context:
        raise BadCheckpoint(
            f"the KV cache of one sequence of {max_context:,} positions needs "
            f"{max_context * cell_bytes / 2**30:.1f} GiB, and {free_bytes / 2**30:.1f} GiB of the device are "
            "free; lower max_context or free some memory"
        )
    return min(wanted, fitting)


def open_model(config: RuntimeConfig, progress: Progress | None = None) -> LoadedModel:
    """The model a configuration names: from disk, bundled, from the hub's cache, or with random weights."""
    device = parse_device(config.device)
    dtype = DTYPES[config.dtype] if config.dtype != "auto" else _natural_dtype(device)
    default = CONFIGS.get(config.model)
    tokenizer = Path(config.tokenizer_path) if config.tokenizer_path else None
    if config.model_path is not None:
        if config.weights == "random":
            return _random_model(
                config, load_config(Path(config.model_path), default), tokenizer, device, dtype
            )
        return load_model(Path(config.model_path), tokenizer, device, dtype, default, progress)
    if config.weights == "random":
        if default is None:
            raise BadCheckpoint(f'there is no model "{config.model}"; there are {", ".join(CONFIGS)}')
        return _random_model(config, default, tokenizer, device, dtype)
    if config.model in BUNDLED:
        return load_model(BUNDLED[config.model], tokenizer, device, dtype, default, progress)
    files = hub.fetch_model(config.model, progress)
    return load_model(files.folder, tokenizer or files.tokenizer, device, dtype, default, progress)


def load_model(
    path: Path,
    tokenizer: Path | None,
    device: torch.device,
    dtype: torch.dtype,
    default: MoondreamConfig | None = None,
    progress: Progress | None = None,
) -> LoadedModel:
    """A checkpoint from disk. `tokenizer` is its `tokenizer.json`, if that is not beside the weights."""
    config = load_config(path, default)
    words = Tokenizer.from_file(tokenizer or _folder(path) / "tokenizer.json", config)
    with torch.device("meta"):
        network = Moondream(config)
    load_weights(network, config, open_checkpoint(path), device, dtype, progress)
    return LoadedModel(network.eval(), Language(config, words), device)


def _random_model(
    config: RuntimeConfig,
    shape: MoondreamConfig,
    tokenizer: Path | None,
    device: torch.device,
    dtype: torch.dtype,
) -> LoadedModel:
    path = tokenizer or (_folder(Path(config.model_path)) / "tokenizer.json" if config.model_path else None)
    words = Tokenizer.from_file(path, shape) if path is not None else Tokenizer.of_bytes(shape)
    with torch.device("meta"):
        network = Moondream(shape)
    random_weights(network, device, dtype, config.seed)
    return LoadedModel(network.eval(), Language(shape, words), device)


def _folder(checkpoint: Path) -> Path:
    return checkpoint if checkpoint.is_dir() else checkpoint.parent


def _natural_dtype(device: torch.device) -> torch.dtype:
    return torch.bfloat16 if device.type == "cuda" else torch.float32


def parse_device(name: str) -> torch.device:
    try:
        device = torch.device(name)
    except RuntimeError:
        raise InvalidRequest(f'device "{name}" is not one; use cpu, cuda or cuda:N') from None
    if device.type not in ("cpu", "cuda"):
        raise InvalidRequest(f'device "{name}" is not supported; use cpu, cuda or cuda:N')
    found = torch.cuda.device_count()
    if device.type == "cuda" and (device.index or 0) >= found:
        raise BadCheckpoint(f'device "{name}" is asked for, and there are {found} CUDA devices; use cpu')
    return device
