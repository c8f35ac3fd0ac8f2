"""A running engine, put together by `build`."""

from dataclasses import dataclass, replace
from typing import Any

from kestrel_core.intake.adapters import AdapterStore
from kestrel_core.loop.step_loop import StepLoop
from kestrel_core.moondream.lora import Adapter
from kestrel_core.protocol.about import About
from kestrel_core.runtime.cuda_runtime import CudaRuntime
from kestrel_core.runtime.timeline import Timeline
from kestrel_core.runtime.torch_runtime import TorchRuntime
from kestrel_core.skills.spec import Language


@dataclass(frozen=True)
class Engine:
    """A running engine: requests enter by the loop, the rest is there to be looked at."""

    loop: StepLoop
    language: Language
    runtime: TorchRuntime | CudaRuntime
    description: About  # without its adapters, which come and go
    adapters: AdapterStore[Adapter] | None
    settled: dict[str, str]  # what `in_use` tells beside the runtime's part
    timeline: Timeline  # of its start

    def close(self, drain: bool = True) -> None:
        self.loop.close(drain)

    @property
    def about(self) -> About:
        """What can be asked for, with the adapters that there are now."""
        return replace(self.description, adapters=() if self.adapters is None else self.adapters.names())

    def in_use(self) -> dict[str, str]:
        """What the choices of the configuration came to on this machine.

        model, generation, device, dtype, vision_dtype and kv_dtype (a dtype, or float8), runtime (cuda,
        torch), attention (flashinfer, sdpa), graphs (on, off, partly), kernels (ours, torch), adapters (off,
        or what the device has room for).
        """
        return {**self.settled, **self.runtime.in_use()}

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
            "adapter_slots": scheduler.adapter_slots.max_adapters,
            "adapters_resident": scheduler.adapter_slots.num_ready,
            "adapter_evictions": scheduler.adapter_slots.num_evictions,
            "adapter_waiting": self.loop.num_waiting_for_adapters,
        }
