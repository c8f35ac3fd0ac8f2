"""Puts the rooms together: weights, tokenizer, device, scheduler and loop. No other module knows them all."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import torch

from kestrel_core.config import RuntimeConfig
from kestrel_core.intake.adapters import AdapterStore
from kestrel_core.intake.checksums import verify_weights
from kestrel_core.intake.heap import keep_heap_level
from kestrel_core.intake.image_limits import ImageLimits
from kestrel_core.intake.image_preparer import ImagePreparer
from kestrel_core.intake.models import MODELS, find_model
from kestrel_core.intake.tokenizer import Tokenizer
from kestrel_core.loop.adapters import Adapters
from kestrel_core.loop.fair_workers import FairWorkers
from kestrel_core.loop.heartbeat import Heartbeat
from kestrel_core.loop.limits import QueueLimits
from kestrel_core.loop.metrics import Metrics
from kestrel_core.loop.step_loop import StepLoop
from kestrel_core.moondream.checkpoint.adapter_files import read_adapter
from kestrel_core.moondream.checkpoint.weights import load_config
from kestrel_core.moondream.config import MoondreamConfig
from kestrel_core.moondream.loading import DTYPES as DTYPES
from kestrel_core.moondream.loading import load_network, loaded_as, parse_dtype, random_network
from kestrel_core.moondream.loading import parse_device as parse_device
from kestrel_core.moondream.lora import Adapter, Stacks
from kestrel_core.moondream.model import Moondream
from kestrel_core.protocol.about import About, SkillAbout, own_version
from kestrel_core.protocol.errors import EngineFailed, InvalidRequest
from kestrel_core.protocol.limits import InputLimits
from kestrel_core.runtime.cpu import cpu_threads
from kestrel_core.runtime.cuda_runtime import CudaRuntime
from kestrel_core.runtime.fast_paths import FastPaths
from kestrel_core.runtime.graphs import Graphs
from kestrel_core.runtime.kv_cache import KVCache
from kestrel_core.runtime.memory import affordable_tokens, free_bytes, require_room_for_adapters
from kestrel_core.runtime.memory import computing_bytes as computing_bytes
from kestrel_core.runtime.torch_runtime import TorchRuntime, best_page_size
from kestrel_core.runtime.vision.image_encoder import ImageEncoder
from kestrel_core.scheduler.adapter_slots import AdapterSlots
from kestrel_core.scheduler.pages import PagePool
from kestrel_core.scheduler.prefix_cache import PrefixCache
from kestrel_core.scheduler.scheduler import Limits, Scheduler
from kestrel_core.skills.registry import SkillRegistry, installed_skills
from kestrel_core.skills.spec import Language, SkillSpec

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class LoadedModel:
    network: Moondream
    language: Language
    device: torch.device
    folder: Path | None = None  # of the checkpoint
    quantize: str = "off"  # int4: it is packed; on a CPU fp8 or int4: its weights are rounded

    @cached_property
    def fast_paths(self) -> FastPaths:
        return FastPaths(self.network)


@dataclass(frozen=True)
class Engine:
    """A running engine: requests enter by the loop, the rest is there to be looked at."""

    loop: StepLoop
    language: Language
    runtime: TorchRuntime | CudaRuntime
    description: About  # without its adapters, which come and go
    adapters: AdapterStore[Adapter] | None
    settled: dict[str, str]  # what `in_use` tells beside the runtime's part

    def close(self, drain: bool = True) -> None:
        self.loop.close(drain)

    @property
    def about(self) -> About:
        """What can be asked for, with the adapters that there are now."""
        return replace(self.description, adapters=() if self.adapters is None else self.adapters.names())

    def in_use(self) -> dict[str, str]:
        """What the choices of the configuration came to on this machine.

        vision_dtype may be float8, quantize is off, fp8 or int4, runtime cuda or torch, attention flashinfer
        or sdpa, graphs on, off or partly, kernels ours or torch, adapters off or what there is room for.
        """
        return {**self.settled, **self.runtime.in_use()}

    def metrics(self) -> dict[str, Any]:
        scheduler, encoder = self.loop.scheduler, self.runtime.encode_image
        cached, free = scheduler.prefix_cache.num_cached_pages, scheduler.pool.num_free
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
            "adapter_slots": scheduler.adapter_slots.max_adapters,
            "adapters_resident": scheduler.adapter_slots.num_ready,
            "adapter_evictions": scheduler.adapter_slots.num_evictions,
            "adapter_waiting": self.loop.num_waiting_for_adapters,
        }


def build_engine(
    config: RuntimeConfig,
    skills: SkillRegistry | None = None,
    progress: Progress | None = None,
    warming: Progress | None = None,
    api_key: str | None = None,
) -> Engine:
    """Load the model, warm it up and start the engine's thread.

    `progress` is told how far loading is, `warming` how far the warm-up is. With an `api_key` Moondream is
    asked for the adapters that it hosts.
    """
    return start_engine(open_model(config, progress), config, skills, warming, api_key)


def start_engine(
    model: LoadedModel,
    config: RuntimeConfig,
    skills: SkillRegistry | None = None,
    warming: Progress | None = None,
    api_key: str | None = None,
) -> Engine:
    """An engine over a model that is loaded already."""
    keep_heap_level()
    engine = assemble_engine(model, config, skills, warming=warming, api_key=api_key)
    engine.loop.start()
    return engine


def assemble_engine(
    model: LoadedModel,
    config: RuntimeConfig,
    skills: SkillRegistry | None = None,
    overlaps: bool | None = None,
    warming: Progress | None = None,
    api_key: str | None = None,
    runtime: TorchRuntime | CudaRuntime | None = None,
) -> Engine:
    """An engine whose loop does not run yet: for callers that call `loop.step()` themselves.

    Steps overlap where the device works by itself, unless `overlaps` says otherwise. A `runtime` is that of
    an idle engine over the same model, which had room for at least as much: then nothing is captured again.
    """
    shape = model.network.config
    page_size = best_page_size(shape.image_prefix_length)
    max_context = config.max_context or shape.text.max_context
    usable = max(shape.text.max_context, shape.text.usable_context)
    if max_context > usable:
        raise InvalidRequest(
            f"max_context is {max_context:,}, and this model is good for {usable:,} positions"
        )
    store = _adapter_store(model, config, api_key) if serves_adapters(config, api_key) else None
    if runtime is None:
        runtime = _runtime(model, config, page_size, max_context, overlaps, store is not None)
        if isinstance(runtime, CudaRuntime):
            runtime.warm_up(config.max_step_tokens, warming)
            _require_all_graphs(runtime, config)
        num_pages = runtime.num_pages
    else:
        wanted = _num_pages(_wanted_tokens(config, max_context), max_context, page_size)
        num_pages = min(wanted, runtime.num_pages)
    pool, metrics = PagePool(num_pages), Metrics()
    limits = InputLimits.parse(config.input_limits)
    skills = (skills or installed_skills(config.skills)).within(limits)
    scheduler = Scheduler(
        pool,
        PrefixCache(pool, config.prefix_cache),
        page_size,
        Limits(config.max_batch_size, max_context, config.max_step_tokens),
        AdapterSlots(config.max_adapters) if store is not None else None,
    )
    loop = StepLoop(
        runtime,
        scheduler,
        skills,
        model.language,
        ImagePreparer(
            shape.vision,
            ImageLimits(
                config.max_image_bytes,
                config.max_image_pixels,
                config.max_image_cost,
                config.max_image_frames,
            ),
            time.monotonic,
            metrics.image_decode_s.observe,
            leave_cutting=runtime.encode_image.cuts,
        ).prepare,
        FairWorkers(config.num_image_workers, "kestrel-prepare"),
        QueueLimits(
            config.max_queue,
            config.max_queue_bytes,
            max_context,
            config.priority_s,
            config.default_timeout_s,
            config.max_prepared_bytes,
            max(config.num_image_workers - 1, 1),  # one worker is left for cheap pictures
            config.share_pictures,
        ),
        metrics,
        adapters=Adapters(store) if store is not None else None,
        heartbeat=Heartbeat(config.step_limit_s),
    )
    settled = _settled(model, config, runtime)
    taken = tuple(_about(skill, model.language, limits) for skill in skills)
    about = About(settled["model"], own_version(), max_context, taken, max_batch_size=config.max_batch_size)
    return Engine(loop, model.language, runtime, about, store, settled)


def _about(skill: SkillSpec, language: Language, limits: InputLimits) -> SkillAbout:
    about = skill.about(language)
    return replace(about, arguments=tuple(map(limits.of, about.arguments)))


def serves_adapters(config: RuntimeConfig, api_key: str | None) -> bool:
    """Whether adapters can come from anywhere. If not, no memory is kept for them."""
    return config.adapters_folder is not None or config.adapter_hub or api_key is not None


def _adapter_store(model: LoadedModel, config: RuntimeConfig, api_key: str | None) -> AdapterStore[Adapter]:
    text, dtype = model.network.config.text, model.network.text.wte.dtype
    read = partial(read_adapter, config=text, dtype=dtype, max_rank=config.max_adapter_rank)
    return AdapterStore(read, config.adapters_folder, config.adapter_hub, api_key)


def _stacks(model: LoadedModel, config: RuntimeConfig) -> Stacks:
    text, weight = model.network.config.text, model.network.text.wte
    max_adapters, max_rank = config.max_adapters, config.max_adapter_rank
    num_bytes = Stacks.num_bytes(text, max_adapters, max_rank, weight.dtype)
    require_room_for_adapters(max_adapters, max_rank, num_bytes, free_bytes(model.device))
    return Stacks(text, max_adapters, max_rank, weight.device, weight.dtype)


def _runtime(
    model: LoadedModel,
    config: RuntimeConfig,
    page_size: int,
    max_context: int,
    overlaps: bool | None,
    has_adapters: bool,
) -> TorchRuntime | CudaRuntime:
    network, on_cuda = model.network, model.device.type == "cuda"
    tokens, encoder, forward = _wanted_tokens(config, max_context), None, None
    if on_cuda and config.runtime == "auto":
        model.fast_paths.quantise(config.quantize, config.scales_path, model.folder)
        forward = model.fast_paths.text(config.compile, config.decode_kernels)  # first: it moves the weights
    stacks = _stacks(model, config) if has_adapters else None
    if on_cuda and config.runtime == "auto":
        batches = model.fast_paths.crop_batches(config.compile, config.vision_dtype, config.cuda_graphs)
        encoder = ImageEncoder(network.vision, batches)
        encoder.warm_up()  # before the KV cache, which gets what is left
    if on_cuda:
        cell_bytes = KVCache.bytes_per_cell(network.config.text, network.text.wte.dtype)
        computing = computing_bytes(network.config.text, config.max_step_tokens, model.quantize == "int4")
        tokens = affordable_tokens(tokens, max_context, cell_bytes, free_bytes(model.device), computing)
    num_pages = _num_pages(tokens, max_context, page_size)
    if encoder is None:
        _refuse_what_is_required(model, config)
        threads = cpu_threads(model.device, network.text.wte.dtype, config.threads)
        return TorchRuntime(network, num_pages, page_size, bool(overlaps), stacks, threads)
    return CudaRuntime(
        network,
        num_pages,
        page_size,
        config.max_batch_size,
        max_context,
        encoder,
        forward=forward,
        flashinfer=config.flashinfer,
        decode_kernels=config.decode_kernels,
        graphs=Graphs.wanted(model.device, config.cuda_graphs),
        overlaps=overlaps is not False,
        stacks=stacks,
    )


def _wanted_tokens(config: RuntimeConfig, max_context: int) -> int:
    return config.kv_cache_tokens or 2 * config.max_batch_size * max_context


def _num_pages(tokens: int, max_context: int, page_size: int) -> int:
    """For so many positions, and in any case for a whole sequence. Page 0 is scratch."""
    return 1 + max(-(-tokens // page_size), -(-max_context // page_size))


def _refuse_what_is_required(model: LoadedModel, config: RuntimeConfig) -> None:
    for name in ("flashinfer", "cuda_graphs", "compile"):
        if getattr(config, name) == "required":
            raise EngineFailed(
                f"{name} is required, and only the fast runtime on a CUDA device has it; device is "
                f'"{model.device}" and runtime is "{config.runtime}"'
            )


def _require_all_graphs(runtime: CudaRuntime, config: RuntimeConfig) -> None:
    if config.cuda_graphs == "required" and runtime.in_use()["graphs"] != "on":
        raise EngineFailed(
            "CUDA graphs are required, and without FlashInfer the largest steps cannot be captured; lower "
            "max_batch_size or install FlashInfer"
        )


def _settled(model: LoadedModel, config: RuntimeConfig, runtime: object) -> dict[str, str]:
    weight, fast = model.network.text.wte, isinstance(runtime, CudaRuntime)
    dtype, quantised = str(weight.dtype).removeprefix("torch."), model.fast_paths.quantised
    return {
        "model": config.model if config.model_path is None else Path(config.model_path).name,
        "generation": str(model.network.config.generation),
        "device": str(model.device),
        "dtype": dtype,
        "vision_dtype": "float8" if fast and "fp8" in (config.vision_dtype, quantised) else dtype,
        "quantize": quantised if fast else model.quantize,
        "kernels": model.fast_paths.fused(config.compile, config.decode_kernels).name if fast else "torch",
    }


def open_model(config: RuntimeConfig, progress: Progress | None = None) -> LoadedModel:
    """The model a configuration names: from disk, bundled, from the hub's cache, or with random weights."""
    device = parse_device(config.device)
    dtype = parse_dtype(config.dtype, device)
    known = MODELS.get(config.model)
    default = known.config if known else None
    tokenizer = Path(config.tokenizer_path) if config.tokenizer_path else None
    if config.model_path is not None:
        if config.weights == "random":
            return _random_model(
                config, load_config(Path(config.model_path), default), tokenizer, device, dtype
            )
        path = Path(config.model_path)
    elif config.weights == "random":
        return _random_model(config, find_model(config.model).config, tokenizer, device, dtype)
    elif known and known.folder:
        path = known.folder
    else:
        from kestrel_core.intake import hub  # late: it takes 0.3 s, and models on disk need it not

        files = hub.fetch_model(config.model, progress, config.revision)
        path, tokenizer = files.folder, tokenizer or files.tokenizer
    if config.verify_weights:
        verify_weights(path, progress)
    return load_model(path, tokenizer, device, dtype, default, progress, config.quantize)


def load_model(
    path: Path,
    tokenizer: Path | None,
    device: torch.device,
    dtype: torch.dtype,
    default: MoondreamConfig | None = None,
    progress: Progress | None = None,
    quantize: str = "off",
) -> LoadedModel:
    """A checkpoint from disk. `tokenizer` is its `tokenizer.json`, if that is not beside the weights."""
    config = load_config(path, default)
    words = Tokenizer.from_file(tokenizer or _folder(path) / "tokenizer.json", config)
    network = load_network(path, config, device, dtype, progress, quantize)
    settled = loaded_as(quantize, config, device, dtype)
    return LoadedModel(network, Language(config, words), device, _folder(path), settled)


def _random_model(
    config: RuntimeConfig,
    shape: MoondreamConfig,
    tokenizer: Path | None,
    device: torch.device,
    dtype: torch.dtype,
) -> LoadedModel:
    path = tokenizer or (_folder(Path(config.model_path)) / "tokenizer.json" if config.model_path else None)
    words = Tokenizer.from_file(path, shape) if path is not None else Tokenizer.of_bytes(shape)
    network = random_network(shape, device, dtype, config.seed, config.quantize)
    settled = loaded_as(config.quantize, shape, device, dtype)
    return LoadedModel(network, Language(shape, words), device, quantize=settled)


def _folder(checkpoint: Path) -> Path:
    return checkpoint if checkpoint.is_dir() else checkpoint.parent
