"""Attention over pages by FlashInfer: planned once a step on the host, run in every layer.

FlashInfer writes a plan to page-locked memory of its own and copies it from there. The next plan may be made
only when that copy is done, so each wrapper has an event that tells.

Keys and values in float8 are read as they are stored, by queries of 16 bits.

A prefill is cut into parts only where there are fewer than two for each multiprocessor, so partial results
are bounded by the device, not by the step. On a small device they have twice that and not what FlashInfer
recommends; a plan that does not fit is an error before anything is launched, and gets all of it.
"""

import logging
from dataclasses import replace
from functools import partial

import numpy as np
import torch
from flashinfer import BatchDecodeWithPagedKVCacheWrapper, BatchPrefillWithPagedKVCacheWrapper
from torch import Tensor

from kestrel_core.loop.step import Running, Span
from kestrel_core.moondream.config import TextConfig
from kestrel_core.moondream.text import Attend
from kestrel_core.runtime.attention.protocol import CachedAttend, DecodeRows, Ints, SpanRows
from kestrel_core.runtime.attention.sdpa import MAX_GATHERED_BYTES, PagedSdpaAttention
from kestrel_core.runtime.kv_cache import KVCache
from kestrel_core.runtime.memory import affordable_workspace, free_bytes

log = logging.getLogger("kestrel")

LAYOUT = "NHD"  # [pages, page_size, heads, head_dim]
BACKEND = "fa2"  # takes pages of any size, also ours of 10
WORKSPACE_BYTES = 128 * 2**20  # for partial results, as FlashInfer recommends; all steps share it
MAX_TILE = 128  # queries of a thread block
# A plan is a few numbers for each thread block, and one for each token of a prefill; the default is 8 MiB.
PLAN_BYTES = 2**20
FULL_PLAN_BYTES = 2**23


class FlashInferAttention:
    name = "flashinfer"
    max_captured = 1 << 30

    def __init__(
        self,
        kv_cache: KVCache,
        config: TextConfig,
        unpacks: bool = False,
        workspace_bytes: int | None = None,
    ) -> None:
        """`unpacks`: prefills read float8 from copies of 16 bits. `workspace_bytes`: None is what the device
        can spare.
        """
        device = kv_cache.k.device
        size = workspace_bytes or affordable_workspace(
            WORKSPACE_BYTES, 2 * partial_bytes(config, device), free_bytes(device)
        )
        workspace = Workspace(size, device)
        self._pages = Pages(kv_cache, config, workspace)
        self._read_by_spans = CopiedPages(kv_cache, config, workspace) if unpacks else self._pages
        self._images = PrefillWrapper(self._read_by_spans, causal=False)
        self._texts = PrefillWrapper(self._read_by_spans, causal=True)

    def for_decode(self, rows: DecodeRows, captured: bool) -> "FlashInferDecode":
        return FlashInferDecode(self._pages, rows)

    def for_spans(self, rows: SpanRows) -> Attend:
        pages, tables = self._read_by_spans, rows.indices
        if isinstance(pages, CopiedPages):
            if len(tables) * pages.page_bytes > MAX_GATHERED_BYTES:
                return PagedSdpaAttention(pages.kv_cache, 1).for_spans(rows)  # span by span
            rows = replace(rows, indices=torch.arange(len(tables), dtype=torch.int32, device=tables.device))
        images, tokens = rows.num_images, int(rows.starts[rows.num_images])
        if images:
            self._images.plan(rows, slice(0, images))
        if images < len(rows.spans):
            self._texts.plan(rows, slice(images, len(rows.spans)))

        def read(layer: int, q: Tensor) -> Tensor:
            kv, scales = pages.of_tables(layer, tables), pages.scales(layer)
            out = q.new_empty(q.shape)  # FlashInfer asks for a contiguous one, and q may not be
            if tokens:
                self._images.run(q[:tokens], kv, out[:tokens], scales)
            if tokens < len(q):
                self._texts.run(q[tokens:], kv, out[tokens:], scales)
            return out

        return CachedAttend(self._pages.kv_cache, rows.cells, read)

    def try_out(self) -> None:
        """Compute positions on page 0. FlashInfer compiles its kernels here, or fails to."""
        self.try_out_decodes()
        self.try_out_spans()

    def try_out_decodes(self) -> None:
        zeros, ends = self._zeros(2).int(), np.arange(3, dtype=np.int32)
        indptr = torch.from_numpy(ends).to(zeros.device)
        decode = self.for_decode(DecodeRows(zeros.long(), indptr, zeros, zeros + 1), captured=False)
        decode.plan(ends)
        self._compute(decode.begin())

    def try_out_spans(self) -> None:
        """One position of each kind."""
        zeros, ends = self._zeros(2).int(), np.arange(3, dtype=np.int32)
        spans = [Span(Running(0, [0]), 0, 1, None)] * 2
        self._compute(
            self.for_spans(SpanRows(spans, 1, ends, ends, np.ones(2, np.int32), zeros, zeros.long()))
        )

    def _compute(self, attend: Attend) -> None:
        heads, kv_heads, head_dim, _ = self._pages.shape
        new = self._zeros(2, kv_heads, head_dim)
        attend(0, self._zeros(2, heads, head_dim), new, new)
        torch.cuda.synchronize(new.device)

    def _zeros(self, *shape: int) -> Tensor:
        kv_cache = self._pages.kv_cache
        return torch.zeros(shape, dtype=kv_cache.dtype, device=kv_cache.k.device)


def partial_bytes(config: TextConfig, device: torch.device) -> int:
    """What the partial results of any prefill take at most, by FlashInfer's own search for parts. Those of a
    decode, which has one query for each sequence, take less.
    """
    multiprocessors = torch.cuda.get_device_properties(device).multi_processor_count
    most_tiles = 2 * multiprocessors // config.n_kv_heads
    return config.n_heads * most_tiles * MAX_TILE * (config.head_dim + 1) * 4


class Workspace:
    """For partial results; all steps share it."""

    def __init__(self, size: int, device: torch.device) -> None:
        self.partial = torch.zeros(size, dtype=torch.uint8, device=device)
        self._full = self.partial

    def plans(self, size: int = PLAN_BYTES) -> Tensor:
        """Of one wrapper."""
        return torch.empty(size, dtype=torch.uint8, device=self.partial.device)

    def full(self) -> Tensor:
        """As large as FlashInfer recommends. Captured decodes keep the one that they have."""
        if len(self._full) < WORKSPACE_BYTES:
            self._full = torch.zeros(WORKSPACE_BYTES, dtype=torch.uint8, device=self.partial.device)
        return self._full


class Pages:
    """The KV cache as FlashInfer wants it, and the space it works in."""

    def __init__(self, kv_cache: KVCache, config: TextConfig, workspace: Workspace) -> None:
        shape = (kv_cache.num_pages, kv_cache.page_size, config.n_kv_heads, config.head_dim)
        self.kv_cache = kv_cache
        self.kv = [(k.view(shape), v.view(shape)) for k, v in zip(kv_cache.k, kv_cache.v, strict=True)]
        self.shape = (config.n_heads, config.n_kv_heads, config.head_dim, kv_cache.page_size)
        self.dtypes = {"q_data_type": kv_cache.dtype, "kv_data_type": kv_cache.k.dtype}
        self.workspace = workspace

    def of_tables(self, layer: int, tables: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of a layer, of which the page tables of a step are read."""
        return self.kv[layer]

    def scales(self, layer: int) -> dict[str, float]:
        """What FlashInfer multiplies keys and values by. It does so in a launch of its own, but not by 1."""
        if not self.kv_cache.is_float8:
            return {}
        scales = self.kv_cache.scales[layer]
        return {"k_scale": scales.k, "v_scale": scales.v}


class CopiedPages(Pages):
    """The pages of a step, unpacked in the order of its tables."""

    def __init__(self, kv_cache: KVCache, config: TextConfig, workspace: Workspace) -> None:
        super().__init__(kv_cache, config, workspace)
        self.dtypes = {"q_data_type": kv_cache.dtype, "kv_data_type": kv_cache.dtype}
        self.page_bytes = 2 * self.kv[0][0][0].numel() * kv_cache.dtype.itemsize

    def of_tables(self, layer: int, tables: Tensor) -> tuple[Tensor, Tensor]:
        cells = self.kv_cache.cells(tables.long(), len(tables) * self.kv_cache.page_size)
        k, v = self.kv_cache.load(layer, cells.unflatten(0, (len(tables), -1)))
        return k, v

    def scales(self, layer: int) -> dict[str, float]:
        return {}


class PrefillWrapper:
    """Spans under one mask."""

    def __init__(self, pages: Pages, causal: bool) -> None:
        self._pages = pages
        self._causal = causal
        workspace = pages.workspace
        self._wrapper = BatchPrefillWithPagedKVCacheWrapper(workspace.partial, LAYOUT, backend=BACKEND)
        self._wrapper.reset_workspace_buffer(workspace.partial, workspace.plans())
        self._is_full = False
        self._planned = torch.cuda.Event()

    def plan(self, rows: SpanRows, which: slice) -> None:
        self._planned.synchronize()
        try:
            self._plan(rows, which)
        except RuntimeError as error:
            if self._is_full or "workspace" not in str(error):
                raise
            log.warning("a step needs more of FlashInfer's workspace than was planned: %s", error)
            workspace = self._pages.workspace
            self._wrapper.reset_workspace_buffer(workspace.full(), workspace.plans(FULL_PLAN_BYTES))
            self._is_full = True
            self._plan(rows, which)
        self._planned.record()

    def _plan(self, rows: SpanRows, which: slice) -> None:
        ends = slice(which.start, which.stop + 1)
        starts, indptr = rows.starts[ends], rows.indptr[ends]
        self._wrapper.plan(
            torch.from_numpy(starts - starts[0]),
            torch.from_numpy(indptr - indptr[0]),
            rows.indices[int(indptr[0]) : int(indptr[-1])],
            torch.from_numpy(rows.last_page_len[which]),
            *self._pages.shape,
            causal=self._causal,  # the last query sees the last key, since a span stops where its keys do
            **self._pages.dtypes,
        )

    def run(self, q: Tensor, kv: tuple[Tensor, Tensor], out: Tensor, scales: dict[str, float]) -> None:
        self._wrapper.run(q, kv, out=out, **scales)


class FlashInferDecode:
    """Decodes whose plans fit a captured graph: sizes and addresses stay the same, contents change."""

    def __init__(self, pages: Pages, rows: DecodeRows) -> None:
        self._pages = pages
        self._rows = rows
        self._wrapper = BatchDecodeWithPagedKVCacheWrapper(
            pages.workspace.partial,
            LAYOUT,
            use_cuda_graph=True,
            paged_kv_indptr_buffer=rows.indptr,
            paged_kv_indices_buffer=rows.indices,
            paged_kv_last_page_len_buffer=rows.last_page_len,
        )
        self._wrapper.reset_workspace_buffer(pages.workspace.partial, pages.workspace.plans())
        self._lengths = torch.ones(len(rows.cells), dtype=torch.int32)  # a plan depends on their number only
        self._planned = torch.cuda.Event()

    def plan(self, indptr: Ints) -> None:
        """Has to come before the rows are sent: it also writes to them, and not all of that is right."""
        self._planned.synchronize()
        self._wrapper.plan(
            torch.from_numpy(indptr),
            self._rows.indices[:0],
            self._lengths,
            *self._pages.shape,
            **self._pages.dtypes,
        )
        self._planned.record()

    def begin(self) -> CachedAttend:
        return CachedAttend(self._pages.kv_cache, self._rows.cells, self._read)

    def _read(self, layer: int, q: Tensor) -> Tensor:
        out: Tensor = self._wrapper.run(q, self._pages.kv[layer], **self._pages.scales(layer))
        return out


class FlashInferModules:
    """See `Modules`. FlashInfer takes a lock for each, so other processes may do the same."""

    def __init__(self, head_dim: int, dtype: torch.dtype, stored: torch.dtype) -> None:
        # Less public names than the wrappers': where a version lacks them, nothing is compiled ahead.
        from flashinfer.decode import get_batch_decode_module
        from flashinfer.jit import build_jit_specs, gen_batch_decode_module, gen_batch_prefill_module
        from flashinfer.prefill import get_batch_prefill_module

        # Queries, keys and results, then page tables; no positions, no window, no cap on the logits.
        decodes = (dtype, stored, dtype, torch.int32, head_dim, head_dim, 0, False, False)
        prefills = (BACKEND, *decodes, False)
        self._build = build_jit_specs
        self._specs = gen_batch_decode_module(*decodes), gen_batch_prefill_module(*prefills)
        self._load_decodes = partial(get_batch_decode_module, *decodes)  # which keeps it for the wrappers
        self._load_prefills = partial(get_batch_prefill_module, *prefills)  # and so this

    def compile_together(self) -> None:
        """By one ninja: two in one folder spoil the record that they share, and loading compiles again."""
        self._build([spec for spec in self._specs if not spec.is_compiled])

    def load_decodes(self) -> None:
        self._load_decodes()

    def has_prefills(self) -> bool:
        return bool(self._specs[1].is_compiled)

    def load_prefills(self) -> None:
        self._load_prefills()
