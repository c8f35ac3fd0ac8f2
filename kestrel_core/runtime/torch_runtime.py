"""The device half in plain torch: runs the network over a step plan, gives samples. Owns the KV tensors."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch

from kestrel_core.loop.step import Adapter, Input, PreparedImage, Sample, StepPlan
from kestrel_core.moondream.lora import Stacks
from kestrel_core.moondream.model import Moondream
from kestrel_core.runtime.adapters.loading import AdapterLoading, room_for_adapters
from kestrel_core.runtime.adapters.rows import plain_rows
from kestrel_core.runtime.attention.sdpa import SdpaAttention
from kestrel_core.runtime.batch import make_batch
from kestrel_core.runtime.cpu import CpuThreads
from kestrel_core.runtime.kv_cache import KVCache, KVScales
from kestrel_core.runtime.readouts.plain import read
from kestrel_core.runtime.vision.image_encoder import ImageEncoder


@dataclass(frozen=True, slots=True)
class Done:
    """A step that was computed at once."""

    samples: Mapping[int, Sample]

    def collect(self) -> Mapping[int, Sample]:
        return self.samples


class TorchRuntime:
    """The readable path, on any device, and the specification of the fast one."""

    def __init__(
        self,
        model: Moondream,
        num_pages: int,
        page_size: int,
        overlaps: bool = False,
        stacks: Stacks | None = None,
        threads: CpuThreads | None = None,
        kv_float8: Sequence[KVScales] | None = None,
    ) -> None:
        """With `overlaps` steps are planned ahead, as for asynchronous runtimes; here that is for tests.

        Without `stacks` there are no adapters, without `threads` torch decides how many compute.
        `kv_float8`: how layers of the KV cache are stored in float8.
        """
        self.overlaps = overlaps
        weight = model.text.wte
        self._model = model
        text = model.config.text
        self._kv_cache = KVCache(text, num_pages, page_size, weight.device, weight.dtype, kv_float8)
        self._last: dict[int, Input] = {}  # by slot: what the last readout gave
        self._stacks = stacks
        self._threads = threads
        self._loading = None if stacks is None else AdapterLoading(stacks)
        self.encode_image = ImageEncoder(model.vision)

    @property
    def num_pages(self) -> int:
        return self._kv_cache.num_pages

    @property
    def page_size(self) -> int:
        return self._kv_cache.page_size

    @property
    def kv_dtype(self) -> torch.dtype:
        return self._kv_cache.k.dtype

    def launch(self, plan: StepPlan) -> Done:
        if self._threads is None:
            return self._compute(plan)
        return self._threads.run(lambda: self._compute(plan))

    @torch.inference_mode()
    def _compute(self, plan: StepPlan) -> Done:
        if plan.encodes:
            self.encode_image.encode_ahead(plan.encodes)
        batch = make_batch(plan.spans, self._last, self._model, self._kv_cache, self.encode_image)
        last_layer = self._model.config.text.n_layers - 1
        attend = SdpaAttention(self._kv_cache, batch.spans, batch.starts, batch.cells, last_layer)
        adapters = plain_rows(batch.spans, self._stacks)
        rows = [
            (span, start + span.stop - span.start - 1)
            for span, start in zip(batch.spans, batch.starts, strict=True)
            if span.readout is not None
        ]
        spans = [span for span, _ in rows]
        wanted = torch.tensor([row for _, row in rows], device=batch.x.device) if rows else None
        hidden = self._model.text(batch.x, batch.positions, attend, adapters, wanted)
        taken = read(self._model, hidden, spans) if rows else []
        samples = {span.slot: sample for span, sample in zip(spans, taken, strict=True)}
        self._last.update((slot, sample.feed) for slot, sample in samples.items())
        return Done(samples)

    def vision_s(self, image: PreparedImage) -> float:
        return self.encode_image.seconds(image)

    def adapter_loader(self, index: int) -> Callable[[Adapter], None]:
        assert self._loading is not None
        return self._loading.loader(index)

    def capture_more(self, idle: bool) -> bool:
        return False

    def in_use(self) -> dict[str, str]:
        return {
            "runtime": "torch",
            "attention": "sdpa",
            "graphs": "off",
            "adapters": room_for_adapters(self._stacks),
        }

    def close(self) -> None:
        self._last.clear()


def best_page_size(image_prefix_length: int, at_most: int = 16) -> int:
    """The largest page size of which image prefixes fill whole pages, so that they are shared, not copied."""
    return next(size for size in range(at_most, 0, -1) if image_prefix_length % size == 0)
