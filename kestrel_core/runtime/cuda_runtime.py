"""The device half for GPUs: `launch` returns while the device works, and nothing in it waits for results.

In a small step every position behind an image is a row with a page table of its own, whether it decodes or is
part of a prompt. All keys are stored before attention reads any, so a row sees its sequence up to itself.
Small steps are padded to one of a few sizes, and each size is captured into a graph. A large step keeps the
device busy for longer than it takes to launch it, so it is computed as one packed batch. The last states of
both pass through the same readouts. Steps in which a token has an adapter are captured apart, so that the
others do nothing for adapters.

`TorchRuntime` is the specification. All of this also runs on a CPU, without graphs, where it is tested.
"""

import logging
from bisect import insort
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial

import numpy as np
import torch

from kestrel_core.loop.step import Adapter, PreparedImage, Span, StepPlan
from kestrel_core.moondream.lora import Stacks
from kestrel_core.moondream.model import Moondream
from kestrel_core.moondream.text import Forward
from kestrel_core.runtime.adapters.loading import AdapterLoading, room_for_adapters
from kestrel_core.runtime.adapters.rows import TiledRows, has_adapters
from kestrel_core.runtime.attention.choose import choose_attention
from kestrel_core.runtime.attention.late_prefills import Compiler
from kestrel_core.runtime.attention.protocol import DecodeRows, SpanRows, beside_images
from kestrel_core.runtime.buckets import Bucket, find_bucket, first_steps, most_rows, small_steps
from kestrel_core.runtime.feeds import Feeds
from kestrel_core.runtime.graphs import Graphs
from kestrel_core.runtime.kv_cache import KVCache, KVScales
from kestrel_core.runtime.memory import keep_slack
from kestrel_core.runtime.page_tables import PageTables
from kestrel_core.runtime.put_off import PutOff
from kestrel_core.runtime.readouts.batched import Form
from kestrel_core.runtime.readouts.captured import FIRST_READ, CapturedReadouts, SamplesInFlight
from kestrel_core.runtime.readouts.choose import choose_token_readout
from kestrel_core.runtime.rehearsal import largest_step
from kestrel_core.runtime.staging import Arrays, Field, Staging, send
from kestrel_core.runtime.timeline import Timeline
from kestrel_core.runtime.vision.image_encoder import ImageEncoder

log = logging.getLogger("kestrel")

Progress = Callable[[int, int], None]

# Of the device's memory for a graph that is captured later: its nodes, some hundred of them, and small
# tensors for which the larger graphs left no place.
GRAPH_BYTES = 2**20


class CudaRuntime:
    @torch.inference_mode()
    def __init__(
        self,
        model: Moondream,
        num_pages: int,
        page_size: int,
        max_batch: int,
        max_context: int,
        encode_image: ImageEncoder,
        *,
        forward: Forward | None = None,
        flashinfer: str = "auto",
        decode_kernels: str = "off",
        graphs: Graphs | None = None,
        overlaps: bool = True,
        stacks: Stacks | None = None,
        kv_float8: Sequence[KVScales] | None = None,
        compiler: Compiler | None = None,
    ) -> None:
        """`forward` computes what `model.text` does, faster. Without `graphs` nothing is captured.

        Without `stacks` there are no adapters, without `kv_float8` the KV cache is as wide as the weights.
        The `compiler` is FlashInfer's, where it was begun already.
        """
        weight, config = model.text.wte, model.config.text
        self.overlaps = overlaps
        self.encode_image = encode_image
        self.planned_bytes = 0
        self._model = model
        self._text = forward or model.text
        self._device = weight.device
        self._on_cuda = weight.is_cuda
        self._prefix = model.config.image_prefix_length
        self._kv_cache = KVCache(config, num_pages, page_size, weight.device, weight.dtype, kv_float8)
        self._attention = choose_attention(
            self._kv_cache, config, max_context, flashinfer, decode_kernels, compiler
        )
        self._page_tables = PageTables(page_size)
        self._graphs = graphs
        self._max_captured = self._attention.max_captured if graphs is not None else 0
        max_rows = most_rows(max_batch, self._max_captured)
        sizes = small_steps(max_rows, self._max_captured)
        max_images = max(num_images for num_images, _ in sizes)
        rows: dict[str, Field] = {
            "sources": (np.int64, (max_rows,)),
            "positions": (np.int64, (max_rows,)),
            "cells": (np.int64, (max_rows,)),
            "last_page_len": (np.int32, (max_rows,)),
            "indptr": (np.int32, (max_rows + 1,)),
            "image_cells": (np.int64, (max_images * self._prefix,)),
        }
        tables: dict[str, Field] = {"indices": (np.int32, (max_rows * -(-max_context // page_size),))}
        # Large steps stage only their readouts. Only the part of the page tables that is in use is sent.
        self._staging = Staging(
            [("readouts", CapturedReadouts.fields(max_batch)), ("rows", rows), ("page tables", tables)],
            weight.device,
        )
        self._inputs = self._staging.tensors
        self._feeds = Feeds(model, max_batch, max_rows)
        read_tokens = choose_token_readout(model, forward, decode_kernels)
        self._readouts = CapturedReadouts(model, self._feeds, self._inputs, read_tokens)
        self._pictures = self._feeds.blank_images(max_images)
        self._image_positions = torch.arange(self._prefix, device=weight.device).repeat(max_images)
        self._buckets = [self._make_bucket(*size) for size in sizes]  # in use, the smaller ones first
        self._put_off = PutOff()
        self._sizes = sizes
        self._stacks, self._loading, self._tiled = stacks, None, None
        if stacks is not None:
            self._loading = AdapterLoading(stacks)
            self._tiled = TiledRows(stacks, max(self._num_tokens(bucket) for bucket in self._buckets))
        # The network's own forward asks the host which adapters there are, so it cannot be captured.
        self._captures_adapters = stacks is not None and forward is not None

    @property
    def num_pages(self) -> int:
        return self._kv_cache.num_pages

    @property
    def page_size(self) -> int:
        return self._kv_cache.page_size

    @property
    def kv_dtype(self) -> torch.dtype:
        return self._kv_cache.k.dtype

    @property
    def used_bytes(self) -> int:
        """Bytes of the device's memory that all processes use."""
        free, total = torch.cuda.mem_get_info(self._device) if self._on_cuda else (0, 0)
        return total - free

    @torch.inference_mode()
    def launch(self, plan: StepPlan) -> SamplesInFlight:
        images, others = list[Span](), list[Span]()
        for span in plan.spans:
            (others if span.image is None else images).append(span)
        tiled = self._tiled if self._tiled is not None and has_adapters(plan.spans) else None
        with self._current_device():
            # First: behind the spans, they and the next step's image would lie between the same two tokens.
            if plan.encodes:
                self.encode_image.encode_ahead(plan.encodes)
            if self._put_off:
                self._note_missed(images, others)
            bucket = find_bucket(self._buckets, images, others, tiled is not None)
            if bucket is not None:
                return self._compute_rows(bucket, images, others, tiled)
            return self._compute_spans([*images, *others], len(images), tiled)

    def vision_s(self, image: PreparedImage) -> float:
        return self.encode_image.seconds(image)

    def adapter_loader(self, index: int) -> Callable[[Adapter], None]:
        assert self._loading is not None
        return self._loading.loader(index)

    def in_use(self) -> dict[str, str]:
        """What serves, as names. Graphs are told of once the runtime is warm."""
        return {
            "runtime": "cuda",
            "attention": self._attention.name,
            "graphs": self._graphs_in_use(),
            "adapters": room_for_adapters(self._stacks),
        }

    def _graphs_in_use(self) -> str:
        """Whether all, some or none of the sizes of steps, readouts and batches of pictures are captured, now
        or in the next idle moments.
        """
        captured, possible = self.encode_image.captured
        variants = (False, True) if self._captures_adapters else (False,)
        forwards = [bucket.captured(adapted) for bucket in self._buckets for adapted in variants]
        captured += sum(forward is not None for forward in forwards) + self._readouts.num_captured
        possible += len(forwards) + len(self._readouts.sizes)
        captured += self.num_put_off  # soon they will be; one that ends just now counts twice
        possible += self._num_unused
        return "off" if captured == 0 else "on" if captured >= possible else "partly"

    @property
    def num_put_off(self) -> int:
        """Sizes that are still to be captured."""
        return len(self._put_off) + self.encode_image.num_put_off

    def capture_more(self, idle: bool) -> bool:
        if not self.num_put_off:  # between most steps, which should not pay for this
            return False
        with self._current_device():
            return self._put_off.do_one(idle) or self.encode_image.capture_more(idle)

    def close(self) -> None:
        self._put_off.clear()
        self._buckets.clear()
        self._readouts.close()
        self._graphs = None

    def _current_device(self) -> AbstractContextManager[object]:
        """Events and streams belong to the current device, whichever device the tensors are on."""
        return torch.cuda.device(self._device) if self._on_cuda else nullcontext()

    # Small steps

    def _make_bucket(self, num_images: int, size: int) -> Bucket:
        inputs, captured = self._inputs, size <= self._max_captured
        rows = DecodeRows(inputs["cells"], inputs["indptr"], inputs["indices"], inputs["last_page_len"])
        return Bucket(num_images, size, self._attention.for_decode(rows.first(size), captured))

    def _num_tokens(self, bucket: Bucket) -> int:
        return bucket.num_images * self._prefix + bucket.size

    def _compute_rows(
        self, bucket: Bucket, images: Sequence[Span], others: Sequence[Span], tiled: TiledRows | None
    ) -> SamplesInFlight:
        pictures = self.encode_image.encode_many([span.image for span in images if span.image is not None])
        for place, picture in zip(self._pictures, pictures, strict=False):
            place[1:] = picture  # behind BOS
        arrays = self._staging.open()
        self._feeds.give(others, bucket.size, arrays)
        reading, form = self._place(bucket, images, others, arrays)
        if tiled is not None:
            tiled.stage([*images, *others], self._num_tokens(bucket))
        captured = bucket.captured(tiled is not None)
        if captured is not None:
            captured()
        else:
            self._forward(bucket, tiled)
        return self._readouts.launch(reading, form)

    def _place(
        self, bucket: Bucket, images: Sequence[Span], others: Sequence[Span], arrays: Arrays
    ) -> tuple[list[Span], Form]:
        """Tell the device where everything lies, and which rows read what."""
        num_indices = self._page_tables.write(others, bucket.size, arrays)
        for at, span in enumerate(images):
            arrays["image_cells"][at * self._prefix : (at + 1) * self._prefix] = self._page_tables.cells(span)
        readings = self._readouts.write(others, bucket.num_images * self._prefix, arrays)
        bucket.attention.plan(arrays["indptr"][: bucket.size + 1])
        self._staging.send("page tables", num_indices)
        return readings

    def _forward(self, bucket: Bucket, tiled: TiledRows | None) -> None:
        inputs, size, in_images = self._inputs, bucket.size, bucket.num_images * self._prefix
        x, positions = self._feeds.rows.index_select(0, inputs["sources"][:size]), inputs["positions"][:size]
        attend = bucket.attention.begin()
        if in_images:
            x = torch.cat((self._pictures[: bucket.num_images].flatten(0, 1), x))
            positions = torch.cat((self._image_positions[:in_images], positions))
            attend = beside_images(attend, inputs["image_cells"][:in_images], bucket.num_images)
        adapters = None if tiled is None else tiled.staged(len(x))
        self._readouts.take(self._text(x, positions, attend, adapters))

    # Large steps

    def _compute_spans(self, spans: list[Span], num_images: int, tiled: TiledRows | None) -> SamplesInFlight:
        """Images, which come first, then prompts and decodes of many sequences, all in one batch."""
        images = [span.image for span in spans if span.image is not None]
        pictures = self.encode_image.encode_many(images) if images else []
        starts = np.zeros(len(spans) + 1, np.int32)
        np.cumsum([span.stop - span.start for span in spans], out=starts[1:])
        tables = self._page_tables.pack(spans)
        tiles = {} if tiled is None else tiled.pack(spans)
        packed = send(self._feeds.pack(spans) | tables | tiles, self._device)
        x = self._feeds.embed(packed)
        for picture, start in zip(pictures, starts.tolist(), strict=False):
            x[start + 1 : start + 1 + len(picture)] = picture  # behind BOS
        rows = SpanRows(
            spans,
            num_images,
            starts,
            tables["indptr"],
            tables["last_page_len"],
            packed["indices"],
            packed["cells"],
        )
        adapters = None if tiled is None else tiled.rows(packed, len(x))
        hidden = self._text(x, packed["positions"], self._attention.for_spans(rows), adapters)
        reading, form = self._readouts.write(spans, 0, self._staging.open())
        self._staging.send("readouts")
        self._readouts.take(hidden)
        return self._readouts.launch(reading, form)

    # Before the first step

    @torch.inference_mode()
    def warm_up(
        self, step_tokens: int, progress: Progress | None = None, timeline: Timeline | None = None
    ) -> None:
        """Capture the graphs and run the largest step there can be: from then on memory does not grow.

        Graphs that are put off take hardly any memory beside that of the larger ones, and it is planned here.
        """
        timeline = timeline or Timeline()
        self.encode_image.warm_up()
        timeline.mark("vision graphs")
        most = self._model.config.images_of_step(step_tokens)
        self._buckets = [bucket for bucket in self._buckets if bucket.num_images <= most]
        self._sizes = [order for order in self._sizes if order[0] <= most]
        if self._graphs is not None and self._graphs.lazy:
            self._put_off_most(self._graphs)
        # The largest first: it makes room for all others.
        captures = [partial(self._capture, bucket, None) for bucket in reversed(self._buckets)]
        captures += [partial(self._readouts.capture, size) for size in reversed(self._readouts.in_use)]
        num_without = len(captures)
        if self._captures_adapters:
            captures += [partial(self._capture, bucket, self._tiled) for bucket in reversed(self._buckets)]
        for done, capture in enumerate(captures, 1):
            if self._graphs is not None:
                try:
                    with self._current_device():
                        capture(self._graphs)
                except RuntimeError as error:
                    self._graphs.refuse_if_required(error)
                    what = "decoding" if done <= num_without else "decoding with adapters"
                    log.warning("%s without CUDA graphs, which is several times slower: %s", what, error)
                    self._graphs = None
                    self._put_off.clear()
            if progress is not None:
                progress(done, len(captures))
        timeline.mark("step graphs")
        if self._on_cuda:
            torch.cuda.empty_cache()  # what the captures needed beside the graphs' own memory
        for adapter in (0,) if self._tiled is None else (0, 1):
            step = largest_step(self._model.config, step_tokens, self.num_pages, self.page_size, adapter)
            self.launch(step).collect()
        self.encode_image.num_encoded = 0
        keep_slack(self._device)
        with self.encode_image.on_its_stream():
            keep_slack(self._device)
        self.planned_bytes = self.used_bytes + self.num_put_off * GRAPH_BYTES
        timeline.mark("largest step")

    def _capture(self, bucket: Bucket, tiled: TiledRows | None, graphs: Graphs) -> None:
        if bucket.size > self._max_captured:
            return
        arrays = self._staging.open()
        arrays["image_cells"][:] = 0
        self._feeds.give([], bucket.size, arrays)
        self._place(bucket, [], [], arrays)
        if tiled is None:
            bucket.forward = graphs.capture(lambda: self._forward(bucket, None))
        else:
            tiled.stage([], self._num_tokens(bucket))
            bucket.adapted_forward = graphs.capture(lambda: self._forward(bucket, tiled))

    # Between steps

    def _put_off_most(self, graphs: Graphs) -> None:
        """Leave all but a few sizes out of use until they are captured. The largest are among the few."""
        first = first_steps(self._sizes)
        for bucket in self._buckets:
            if bucket.order not in first and bucket.size <= self._max_captured:
                self._put_off.add(bucket.order, partial(self._capture_late, bucket, graphs))
        self._buckets = [bucket for bucket in self._buckets if bucket.order not in self._put_off]
        for size in self._readouts.in_use[:-1]:
            if size not in FIRST_READ:
                self._readouts.in_use.remove(size)
                self._put_off.add(size, partial(self._capture_readouts_late, size, graphs))

    @property
    def _num_unused(self) -> int:
        """Sizes of steps that wait to be captured, or were given up."""
        return len(self._sizes) - len(self._buckets)

    def _note_missed(self, images: Sequence[Span], others: Sequence[Span]) -> None:
        """Which sizes a step would be padded to if all were captured."""
        num_rows = sum(span.stop - span.start for span in others)
        num_read = sum(span.readout is not None for span in others)
        for order in self._sizes:
            if order[0] == len(images) and order[1] >= num_rows:
                self._put_off.miss(order)
                break
        self._put_off.miss(next(size for size in self._readouts.sizes if size >= num_read))

    @torch.inference_mode()
    def _capture_late(self, bucket: Bucket, graphs: Graphs) -> None:
        self._capture(bucket, None, graphs)
        if self._captures_adapters:
            self._capture(bucket, self._tiled, graphs)
        insort(self._buckets, bucket, key=lambda bucket: bucket.order)

    @torch.inference_mode()
    def _capture_readouts_late(self, size: int, graphs: Graphs) -> None:
        arrays = self._staging.open()
        self._readouts.write([], 0, arrays)
        arrays["slots"][:] = 0  # what is read here must not be fed to a sequence
        self._staging.send("readouts")
        self._readouts.capture(size, graphs)
