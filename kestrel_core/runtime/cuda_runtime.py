"""The device half for GPUs: `launch` returns while the device works, and nothing in it waits for results.

Steps in which every span is one position are padded to one of a few sizes, and each size is captured into a
graph; all others run in one packed batch. Either way the last states then go through the same readouts, whose
results stay on the device to be fed, and travel to the host to be read.

`TorchRuntime` is the specification. All of this also runs on a CPU, without graphs, and is tested so.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from kestrel_core.moondream.model import Moondream
from kestrel_core.runtime import readouts
from kestrel_core.runtime.attention import DecodeAttention, DecodeRows, SpanRows, pick_attention
from kestrel_core.runtime.feeds import Feeds
from kestrel_core.runtime.graphs import Graphs, Work, bucket_sizes
from kestrel_core.runtime.image_encoder import ImageEncoder
from kestrel_core.runtime.kv_cache import KVCache
from kestrel_core.runtime.page_tables import PageTables
from kestrel_core.runtime.readouts import Asked, Form
from kestrel_core.runtime.rehearsal import largest_step
from kestrel_core.runtime.staging import Arrays, Staging, send
from kestrel_core.step import Sample, Span, StepPlan

log = logging.getLogger("kestrel")

Progress = Callable[[int, int], None]
FORMS = [Form(sampled, region) for sampled in (False, True) for region in (False, True)]


@dataclass(frozen=True, slots=True)
class Launched:
    """A step under way."""

    spans: Sequence[Span]  # those with a readout
    results: Tensor  # on the host, and complete when the event has come
    done: torch.cuda.Event | None
    coord_id: int

    def collect(self) -> Mapping[int, Sample]:
        if self.done is not None:
            self.done.synchronize()
        return readouts.samples(self.spans, self.results, self.coord_id)


@dataclass(slots=True)
class Bucket:
    """Steps of one size, and what of them is captured."""

    size: int
    attention: DecodeAttention
    forward: Work | None = None
    reads: dict[Form, Work] = field(default_factory=dict)


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
        flashinfer: str = "auto",
        graphs: Graphs | None = None,
        overlaps: bool = True,
    ) -> None:
        """Without `graphs` nothing is captured."""
        weight, config = model.text.wte, model.config.text
        self.overlaps = overlaps
        self.encode_image = encode_image
        self.planned_bytes = 0
        self._model = model
        self._device = weight.device
        self._on_cuda = weight.is_cuda
        self._kv_cache = KVCache(config, num_pages, page_size, weight.device, weight.dtype)
        self._attention = pick_attention(self._kv_cache, config, max_context, flashinfer)
        self._page_tables = PageTables(page_size)
        self._feeds = Feeds(model, max_batch)
        self._staging = Staging(
            readouts.fields(max_batch)
            | {
                "positions": (np.int64, (max_batch,)),
                "cells": (np.int64, (max_batch,)),
                "last_page_len": (np.int32, (max_batch,)),
                "indptr": (np.int32, (max_batch + 1,)),
                # The last, since only what is in use of it is sent.
                "indices": (np.int32, (max_batch * -(-max_context // page_size),)),
            },
            weight.device,
        )
        rows = self._staging.tensors
        self._asked = Asked(*(rows[name] for name in Asked._fields))
        self._positions = rows["positions"]
        self._hidden = weight.new_zeros((max_batch, config.dim))
        self._results = weight.new_zeros((max_batch, readouts.NUM_VALUES), dtype=torch.float32)
        decodes = DecodeRows(rows["cells"], rows["indptr"], rows["indices"], rows["last_page_len"])
        self._graphs = graphs
        self._max_captured = self._attention.max_captured if graphs is not None else 0
        self._buckets = [
            Bucket(size, self._attention.for_decode(decodes.first(size), size <= self._max_captured))
            for size in bucket_sizes(max_batch)
        ]

    @property
    def num_pages(self) -> int:
        return self._kv_cache.num_pages

    @property
    def page_size(self) -> int:
        return self._kv_cache.page_size

    @property
    def used_bytes(self) -> int:
        """Of the device's memory, by whomever."""
        free, total = torch.cuda.mem_get_info(self._device) if self._on_cuda else (0, 0)
        return total - free

    @torch.inference_mode()
    def launch(self, plan: StepPlan) -> Launched:
        with self._current_device():
            if all(span.stop - span.start == 1 and span.readout is not None for span in plan.spans):
                return self._decode(plan.spans)
            return self._compute(plan.spans)

    def close(self) -> None:
        self._buckets.clear()
        self._graphs = None

    def _current_device(self) -> AbstractContextManager[object]:
        """Events and streams are those of the current device, whatever the tensors' is."""
        return torch.cuda.device(self._device) if self._on_cuda else nullcontext()

    def _decode(self, spans: Sequence[Span]) -> Launched:
        """Every span is one position."""
        bucket = self._bucket(len(spans))
        given = [span for span in spans if span.inputs is not None]
        if given:
            self._feeds.give(given)
        arrays = self._staging.open()
        form = readouts.write(spans, bucket.size, arrays)
        self._place(bucket, spans, arrays)
        if bucket.forward is not None:
            bucket.forward()
        else:
            self._forward(bucket)
        return self._read(bucket, spans, form)

    def _place(self, bucket: Bucket, spans: Sequence[Span], arrays: Arrays) -> None:
        num_indices = self._page_tables.write(spans, bucket.size, arrays)
        bucket.attention.plan(arrays["indptr"][: bucket.size + 1])
        self._staging.send("indices", num_indices)

    def _forward(self, bucket: Bucket) -> None:
        x = self._feeds.last.index_select(0, self._asked.slots[: bucket.size])
        hidden = self._model.text(x, self._positions[: bucket.size], bucket.attention.begin())
        self._hidden[: bucket.size] = hidden

    def _compute(self, spans: Sequence[Span]) -> Launched:
        """Images and prompts of many sequences together, and decodes among them."""
        ordered = sorted(spans, key=lambda span: span.image is None)
        images = [span.image for span in ordered if span.image is not None]
        pictures = self.encode_image.encode_many(images) if images else []
        starts = np.zeros(len(ordered) + 1, np.int32)
        np.cumsum([span.stop - span.start for span in ordered], out=starts[1:])
        ends = zip(ordered, starts[1:].tolist(), strict=True)
        read = [(span, stop - 1) for span, stop in ends if span.readout is not None]
        tables = self._page_tables.pack(ordered)
        read_rows = {"read": np.array([row for _, row in read], np.int64)}
        packed = send(self._feeds.pack(ordered) | tables | read_rows, self._device)
        x = self._feeds.embed(packed)
        for picture, start in zip(pictures, starts.tolist(), strict=False):
            x[start + 1 : start + 1 + len(picture)] = picture  # behind BOS
        rows = SpanRows(
            ordered,
            len(images),
            starts,
            tables["indptr"],
            tables["last_page_len"],
            packed["indices"],
            packed["cells"],
        )
        hidden = self._model.text(x, packed["positions"], self._attention.for_spans(rows))
        self._hidden[: len(read)] = hidden.index_select(0, packed["read"])
        reading = [span for span, _ in read]
        bucket = self._bucket(len(reading))
        form = readouts.write(reading, bucket.size, self._staging.open())
        self._staging.send("indices", 0)
        return self._read(bucket, reading, form)

    def _read(self, bucket: Bucket, spans: Sequence[Span], form: Form) -> Launched:
        """From the last states to samples: to the slots that are fed them, and on their way to the host."""
        count, results = len(spans), self._results
        captured = bucket.reads.get(form) if form.lists is None else None
        if count and captured is not None:
            captured()
        elif count:
            asked = self._asked.first(count)
            if form.lists is not None:
                asked = asked._replace(**send(form.lists, self._device))
            results = self._read_rows(asked, form)
        host = torch.empty((count, results.shape[1]), pin_memory=self._on_cuda)
        host.copy_(results[:count], non_blocking=True)
        done = torch.cuda.Event() if self._on_cuda else None
        if done is not None:
            done.record()
        return Launched(spans, host, done, self._model.config.tokenizer.coord_id)

    def _read_rows(self, asked: Asked, form: Form) -> Tensor:
        results, feeds = readouts.read(self._model, self._hidden[: len(asked.slots)], asked, form)
        self._feeds.last.index_copy_(0, asked.slots, feeds)
        return results

    def _bucket(self, count: int) -> Bucket:
        return next(bucket for bucket in self._buckets if bucket.size >= count)

    # Before the first step

    @torch.inference_mode()
    def warm_up(self, step_tokens: int, progress: Progress | None = None) -> None:
        """Capture the graphs and run the largest step there can be: from then on memory does not grow."""
        self.encode_image.warm_up()
        for done, bucket in enumerate(reversed(self._buckets), 1):  # the largest makes room for all others
            if self._graphs is not None and bucket.size <= self._max_captured:
                try:
                    with self._current_device():
                        self._capture(self._graphs, bucket)
                except RuntimeError as error:
                    log.warning("decoding without CUDA graphs, which is several times slower: %s", error)
                    self._graphs = None
            if progress is not None:
                progress(done, len(self._buckets))
        if self._on_cuda:
            torch.cuda.empty_cache()  # what the captures needed besides the graphs' own
        step = largest_step(self._model.config, step_tokens, self.num_pages, self.page_size)
        self.launch(step).collect()
        self.encode_image.num_encoded = 0
        self.planned_bytes = self.used_bytes

    def _capture(self, graphs: Graphs, bucket: Bucket) -> None:
        arrays = self._staging.open()
        readouts.write([], bucket.size, arrays)
        self._place(bucket, [], arrays)
        forward, reads = graphs.capture(lambda: self._forward(bucket)), {}
        asked, results = self._asked.first(bucket.size), self._results[: bucket.size]
        for form in FORMS:

            def read(form: Form = form) -> None:
                results.copy_(self._read_rows(asked, form))

            reads[form] = graphs.capture(read)
        bucket.forward, bucket.reads = forward, reads
