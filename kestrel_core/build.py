"""Puts the rooms together: weights, tokenizer, device, scheduler and loop. No other module knows them all."""

import logging
import time
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import torch

from kestrel_core.choices import (
    adapter_store,
    num_pages,
    refuse_what_is_required,
    require_all_graphs,
    wanted_tokens,
)
from kestrel_core.choices import serves_adapters as serves_adapters
from kestrel_core.config import RuntimeConfig
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
from kestrel_core.moondream.checkpoint.weights import load_config
from kestrel_core.moondream.config import MOONDREAM2, MoondreamConfig
from kestrel_core.moondream.loading import DTYPES as DTYPES
from kestrel_core.moondream.loading import Progress, load_network, loaded_as, parse_dtype, random_network
from kestrel_core.moondream.loading import parse_device as parse_device
from kestrel_core.moondream.lora import Stacks
from kestrel_core.moondream.model import Moondream
from kestrel_core.moondream.ops.plain import FLOAT8
from kestrel_core.protocol.about import About, own_version
from kestrel_core.protocol.errors import InvalidRequest
from kestrel_core.protocol.limits import InputLimits
from kestrel_core.running import Engine as Engine
from kestrel_core.runtime.attention.choose import prepare_flashinfer
from kestrel_core.runtime.attention.late_prefills import Compiler
from kestrel_core.runtime.compiled import use_cache_folder
from kestrel_core.runtime.cpu import cpu_threads, in_a_thread_that_ends
from kestrel_core.runtime.cuda_runtime import CudaRuntime
from kestrel_core.runtime.fast_paths import FastPaths
from kestrel_core.runtime.graphs import Graphs
from kestrel_core.runtime.kv_cache import KVCache
from kestrel_core.runtime.memory import affordable_tokens, free_bytes, require_room_for_adapters
from kestrel_core.runtime.memory import computing_bytes as computing_bytes
from kestrel_core.runtime.rehearsal import compile_text
from kestrel_core.runtime.timeline import Timeline
from kestrel_core.runtime.torch_runtime import TorchRuntime, best_page_size
from kestrel_core.runtime.vision.image_encoder import ImageEncoder
from kestrel_core.scheduler.adapter_slots import AdapterSlots
from kestrel_core.scheduler.pacing import Pacing
from kestrel_core.scheduler.pages import PagePool
from kestrel_core.scheduler.prefix_cache import PrefixCache
from kestrel_core.scheduler.scheduler import Limits, Scheduler
from kestrel_core.skills.registry import SkillRegistry, installed_skills
from kestrel_core.skills.spec import Language
from kestrel_core.wanted import Wanted

log = logging.getLogger("kestrel")

LOADING_THREADS = 6  # each fills buffers at some 8 GB/s; more than PCIe takes is for nothing


@dataclass(frozen=True)
class LoadedModel:
    network: Moondream
    language: Language
    device: torch.device
    folder: Path | None = None  # of the checkpoint
    quantize: str = "off"  # int4: it is packed; on a CPU fp8 or int4: its weights are rounded
    flashinfer: Compiler | None = None  # compiles it, where that was begun already

    @cached_property
    def fast_paths(self) -> FastPaths:
        return FastPaths(self.network)


def build_engine(
    config: RuntimeConfig,
    skills: SkillRegistry | None = None,
    progress: Progress | None = None,
    warming: Progress | None = None,
    api_key: str | None = None,
) -> Engine:
    """Load the model, warm it up and start the engine's thread.

    `progress` is told how far loading is, `warming` how far the warm-up is; what they raise ends the build.
    With an `api_key` Moondream is asked for the adapters that it hosts.
    """
    wanted = Wanted(progress)

    def build() -> Engine:
        timeline = Timeline()
        model = open_model(config, wanted, timeline)
        engine = start_engine(model, config, skills, warming, api_key, timeline)
        log.info("ready after %s", timeline)
        return engine

    return in_a_thread_that_ends(build, wanted.leave) if config.device == "cpu" else build()


def start_engine(
    model: LoadedModel,
    config: RuntimeConfig,
    skills: SkillRegistry | None = None,
    warming: Progress | None = None,
    api_key: str | None = None,
    timeline: Timeline | None = None,
) -> Engine:
    """An engine over a model that is loaded already."""
    keep_heap_level()
    engine = assemble_engine(model, config, skills, warming=warming, api_key=api_key, timeline=timeline)
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
    timeline: Timeline | None = None,
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
    timeline = timeline or Timeline()
    store = adapter_store(model.network, config, api_key) if serves_adapters(config, api_key) else None
    if runtime is None:
        runtime = _runtime(model, config, page_size, max_context, overlaps, store is not None, timeline)
        if isinstance(runtime, CudaRuntime):
            runtime.warm_up(config.max_step_tokens, warming, timeline)
            require_all_graphs(runtime, config)
        pages = runtime.num_pages
    else:
        wanted = num_pages(wanted_tokens(config, max_context), max_context, page_size)
        pages = min(wanted, runtime.num_pages)
    pool, metrics = PagePool(pages), Metrics()
    limits = InputLimits.parse(config.input_limits)
    skills = (skills or installed_skills(config.skills)).within(limits)
    scheduler = Scheduler(
        pool,
        PrefixCache(pool, config.prefix_cache),
        page_size,
        Limits(config.max_batch_size, max_context, config.max_step_tokens),
        AdapterSlots(config.max_adapters) if store is not None else None,
        Pacing.chosen(
            config.vision_pacing,
            config.picture_steps,
            runtime.encode_image,
            shape.image_prefix_length,
            shape.text.moe is not None,
        ),
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
    taken = tuple(
        replace(about, arguments=tuple(map(limits.of, about.arguments)))
        for about in (skill.about(model.language) for skill in skills)
    )
    about = About(settled["model"], own_version(), max_context, taken, max_batch_size=config.max_batch_size)
    timeline.mark("engine")
    return Engine(loop, model.language, runtime, about, store, settled, timeline)


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
    timeline: Timeline,
) -> TorchRuntime | CudaRuntime:
    network, on_cuda = model.network, model.device.type == "cuda"
    tokens, encoder, forward = wanted_tokens(config, max_context), None, None
    if on_cuda and config.runtime == "auto":
        model.fast_paths.quantise(config.quantize, config.scales_path, model.folder)
        forward = model.fast_paths.text(config.compile, config.decode_kernels)  # first: it moves the weights
    # Scales are good for the weights they were measured with, and rounded ones are others.
    written = (config.scales_path, model.folder) if model.quantize == "off" else (None, None)
    kv_float8 = model.fast_paths.kv_float8(config.kv_dtype, *written)
    stacks = _stacks(model, config) if has_adapters else None
    if on_cuda and config.runtime == "auto":
        most_images = network.config.images_of_step(config.max_step_tokens)
        batches = model.fast_paths.crop_batches(
            config.compile, config.vision_dtype, config.graphs, config.vision_attention, most_images
        )
        encoder = ImageEncoder(network.vision, batches)
        timeline.mark("fast paths")
        encoder.warm_up()  # before the KV cache, which gets what is left
        timeline.mark("vision graphs")
    if model.flashinfer is not None:
        if not model.flashinfer.ready and forward is not None:
            compile_text(forward, network, page_size, kv_float8)  # in the time that there is
            timeline.mark("text kernels")
        model.flashinfer.wait()
        timeline.mark("FlashInfer's compiler")
    if on_cuda:
        stored = network.text.wte.dtype if kv_float8 is None else FLOAT8
        cell_bytes = KVCache.bytes_per_cell(network.config.text, stored)
        unpacks = model.fast_paths.quantised == "int4"
        computing = computing_bytes(network.config.text, config.max_step_tokens, unpacks)
        tokens = affordable_tokens(tokens, max_context, cell_bytes, free_bytes(model.device), computing)
    pages = num_pages(tokens, max_context, page_size)
    if encoder is None:
        refuse_what_is_required(model.device, config)
        threads = cpu_threads(model.device, network.text.wte.dtype, config.threads)
        return TorchRuntime(network, pages, page_size, bool(overlaps), stacks, threads, kv_float8)
    runtime = CudaRuntime(
        network,
        pages,
        page_size,
        config.max_batch_size,
        max_context,
        encoder,
        forward=forward,
        flashinfer=config.flashinfer,
        decode_kernels=config.decode_kernels,
        graphs=Graphs.wanted(model.device, config.graphs),
        overlaps=overlaps is not False,
        stacks=stacks,
        kv_float8=kv_float8,
        compiler=model.flashinfer,
    )
    timeline.mark("FlashInfer")
    return runtime


def _settled(
    model: LoadedModel, config: RuntimeConfig, runtime: TorchRuntime | CudaRuntime
) -> dict[str, str]:
    weight, fast = model.network.text.wte, isinstance(runtime, CudaRuntime)
    dtype, quantised = str(weight.dtype).removeprefix("torch."), model.fast_paths.quantised
    return {
        "model": config.model if config.model_path is None else Path(config.model_path).name,
        "generation": str(model.network.config.generation),
        "device": str(model.device),
        "dtype": dtype,
        "vision_dtype": "float8" if fast and "fp8" in (config.vision_dtype, quantised) else dtype,
        "kv_dtype": dtype if runtime.kv_dtype == weight.dtype else "float8",
        "quantize": quantised if fast else model.quantize,
        "kernels": model.fast_paths.fused(config.compile, config.decode_kernels).name if fast else "torch",
    }


def open_model(
    config: RuntimeConfig, progress: Progress | None = None, timeline: Timeline | None = None
) -> LoadedModel:
    """The model a configuration names: from disk, bundled, from the hub's cache, or with random weights."""
    timeline = timeline or Timeline()
    use_cache_folder(config.cache_folder)
    device = parse_device(config.device)
    dtype = parse_dtype(config.dtype, device)
    known = MODELS.get(config.model)
    default = known.config if known else None
    flashinfer = None
    if config.quick_start and config.runtime == "auto":
        text = (default or MOONDREAM2).text  # a guess where the checkpoint is another's; it costs nothing
        stored = FLOAT8 if config.kv_dtype == "fp8" else None
        flashinfer = prepare_flashinfer(text, device, dtype, config.flashinfer, stored)
    if device.type == "cuda":
        torch.zeros(1, device=device)
    timeline.mark("device")
    model = _load(config, default, device, dtype, progress, timeline)
    timeline.mark("weights")
    return replace(model, flashinfer=flashinfer)


def _load(
    config: RuntimeConfig,
    default: MoondreamConfig | None,
    device: torch.device,
    dtype: torch.dtype,
    progress: Progress | None,
    timeline: Timeline,
) -> LoadedModel:
    known = MODELS.get(config.model)
    tokenizer = Path(config.tokenizer_path) if config.tokenizer_path else None
    given = Path(config.model_path) if config.model_path is not None else None
    if config.weights == "random":
        shape = load_config(given, default) if given is not None else find_model(config.model).config
        return _random_model(config, shape, tokenizer, device, dtype, progress)
    if given is not None:
        path = given
    elif known and known.folder:
        path = known.folder
    else:
        from kestrel_core.intake import hub  # late: it takes 0.3 s, and models on disk need it not

        files = hub.fetch_model(config.model, progress, config.revision)
        path, tokenizer = files.folder, tokenizer or files.tokenizer
    if config.verify_weights:
        verify_weights(path, progress)
    num_threads = LOADING_THREADS if config.quick_start and device.type == "cuda" else 1
    return load_model(
        path, tokenizer, device, dtype, default, progress, config.quantize, timeline, num_threads
    )


def load_model(
    path: Path,
    tokenizer: Path | None,
    device: torch.device,
    dtype: torch.dtype,
    default: MoondreamConfig | None = None,
    progress: Progress | None = None,
    quantize: str = "off",
    timeline: Timeline | None = None,
    num_threads: int = 1,
) -> LoadedModel:
    """A checkpoint from disk. `tokenizer` is its `tokenizer.json`, if that is not beside the weights."""
    config = load_config(path, default)
    words = Tokenizer.from_file(tokenizer or _folder(path) / "tokenizer.json", config)
    if timeline is not None:
        timeline.mark("tokenizer")
    network = load_network(path, config, device, dtype, progress, quantize, num_threads)
    settled = loaded_as(quantize, config, device, dtype)
    return LoadedModel(network, Language(config, words), device, _folder(path), settled)


def _random_model(
    config: RuntimeConfig,
    shape: MoondreamConfig,
    tokenizer: Path | None,
    device: torch.device,
    dtype: torch.dtype,
    progress: Progress | None,
) -> LoadedModel:
    path = tokenizer or (_folder(Path(config.model_path)) / "tokenizer.json" if config.model_path else None)
    words = Tokenizer.from_file(path, shape) if path is not None else Tokenizer.of_bytes(shape)
    network = random_network(shape, device, dtype, config.seed, config.quantize, progress)
    settled = loaded_as(config.quantize, shape, device, dtype)
    return LoadedModel(network, Language(shape, words), device, quantize=settled)


def _folder(checkpoint: Path) -> Path:
    return checkpoint if checkpoint.is_dir() else checkpoint.parent
