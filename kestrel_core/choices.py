"""What a configuration asks for: adapters, pages of the KV cache, and what an engine must not go without."""

from functools import partial

import torch

from kestrel_core.config import RuntimeConfig
from kestrel_core.intake.adapters import AdapterStore
from kestrel_core.moondream.checkpoint.adapter_files import read_adapter
from kestrel_core.moondream.lora import Adapter
from kestrel_core.moondream.model import Moondream
from kestrel_core.protocol.errors import EngineFailed
from kestrel_core.runtime.cuda_runtime import CudaRuntime


def serves_adapters(config: RuntimeConfig, api_key: str | None) -> bool:
    """Whether adapters can come from anywhere. If not, no memory is kept for them."""
    return config.adapters_folder is not None or config.adapter_hub or api_key is not None


def adapter_store(network: Moondream, config: RuntimeConfig, api_key: str | None) -> AdapterStore[Adapter]:
    text, dtype = network.config.text, network.text.wte.dtype
    read = partial(read_adapter, config=text, dtype=dtype, max_rank=config.max_adapter_rank)
    return AdapterStore(read, config.adapters_folder, config.adapter_hub, api_key)


def wanted_tokens(config: RuntimeConfig, max_context: int) -> int:
    return config.kv_cache_tokens or 2 * config.max_batch_size * max_context


def num_pages(tokens: int, max_context: int, page_size: int) -> int:
    """For so many positions, and in any case for a whole sequence. Page 0 is scratch."""
    return 1 + max(-(-tokens // page_size), -(-max_context // page_size))


def refuse_what_is_required(device: torch.device, config: RuntimeConfig) -> None:
    for name in ("flashinfer", "cuda_graphs", "compile"):
        if getattr(config, name) == "required":
            raise EngineFailed(
                f"{name} is required, and only the fast runtime on a CUDA device has it; device is "
                f'"{device}" and runtime is "{config.runtime}"'
            )


def require_all_graphs(runtime: CudaRuntime, config: RuntimeConfig) -> None:
    if config.cuda_graphs == "required" and runtime.in_use()["graphs"] != "on":
        raise EngineFailed(
            "CUDA graphs are required, and without FlashInfer the largest steps cannot be captured; lower "
            "max_batch_size or install FlashInfer"
        )
