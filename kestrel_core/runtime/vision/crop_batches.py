"""Encodes the crops of many pictures together, on a stream of its own.

A batch is padded to one of a few sizes, each of which is captured into a graph: a block is some ten launches,
and with few crops the device is done with one before the host has launched the next. A picture's crops stay
in one batch, unless it has more of them than a batch holds.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from threading import Lock
from time import perf_counter
from typing import NamedTuple

import torch
from torch import Tensor

from kestrel_core.loop.step import PreparedImage
from kestrel_core.moondream.vision import Mosaic, Vision, num_crops
from kestrel_core.runtime.graphs import Graphs, Work
from kestrel_core.runtime.vision.crop_uploads import CropUploads

log = logging.getLogger("kestrel")

MAX_BATCH_CROPS = 64  # a crop has some 20 MB of activations


class Encoded(NamedTuple):
    embeddings: Tensor  # [patches, dim]
    ready: torch.cuda.Event | None  # None: they are ready
    seconds: Callable[[], float]  # that it took; 0 while they are not ready

    def on_current_stream(self) -> Tensor:
        """The embeddings. The current stream waits for them."""
        if self.ready is not None:
            stream = torch.cuda.current_stream(self.embeddings.device)
            stream.wait_event(self.ready)
            self.embeddings.record_stream(
                stream
            )  # otherwise their memory could be reused while this stream still reads them
        return self.embeddings


class CropBatches:
    def __init__(
        self,
        vision: Vision,
        encode: Callable[[Tensor], Tensor] | None = None,
        max_crops: int = MAX_BATCH_CROPS,
        graphs: Graphs | None = None,
    ) -> None:
        """`encode` computes what `vision.encode` does, faster. With `graphs` batches are captured. Steps
        may not use the same `graphs`, since batches run beside them.
        """
        config, self._device = vision.config, vision.pos_emb.device
        on_cuda = self._device.type == "cuda"
        self._vision = vision
        self._encode = encode or vision.encode
        self._mosaic = Mosaic(config, self._device)
        self._max_crops = max(max_crops, 1 + config.max_crops)  # so that most pictures fit
        self._stream = torch.cuda.Stream(self._device) if on_cuda else None
        self._uploads = CropUploads(config, self._max_crops, self._device)
        self._features = vision.pos_emb.new_empty((self._max_crops, *vision.pos_emb.shape[1:]))
        self._graphs = graphs
        self._captured: dict[int, Work] = {}
        self._is_warm = False
        self._under_way: deque[tuple[torch.cuda.Event, torch.cuda.Event]] = deque()
        self._busy_s = 0.0
        self._counting = Lock()

    @torch.inference_mode()
    def __call__(self, images: Sequence[PreparedImage]) -> list[Encoded]:
        return [encoded for batch in self._split(images) for encoded in self._run(batch)]

    def busy_s(self) -> float:
        """Seconds the device has spent on finished batches. Any thread may ask."""
        with self._counting:
            while self._under_way and self._under_way[0][1].query():
                began, ended = self._under_way.popleft()
                self._busy_s += _elapsed_s(began, ended)
            return self._busy_s

    @property
    def captured(self) -> tuple[int, int]:
        """How many sizes of batches are captured, and how many there are."""
        return len(self._captured), len(batch_sizes(self._max_crops))

    def on_its_stream(self) -> AbstractContextManager[object]:
        context: AbstractContextManager[object] = torch.cuda.stream(self._stream)
        return context

    @torch.inference_mode()
    def warm_up(self) -> None:
        """Run every size once, the largest first, and capture it where that is wanted. Only once for all
        engines over a model.
        """
        if self._is_warm:
            return
        self._is_warm = True
        with self.on_its_stream():
            for size in reversed(batch_sizes(self._max_crops)):
                if self._graphs is not None:
                    try:
                        self._captured[size] = self._graphs.capture(partial(self._encode_batch, size))
                    except RuntimeError as error:
                        self._graphs.refuse_if_required(error)
                        log.warning("encoding pictures without CUDA graphs, which is slower: %s", error)
                        self._graphs = None
                if self._graphs is None:
                    self._encode_batch(size)
                self._project(self._features[:1], [(1, 1)])
            self._uploads.warm_up()
        if self._stream is not None:
            self._stream.synchronize()

    def _split(self, images: Sequence[PreparedImage]) -> Iterator[list[PreparedImage]]:
        batch: list[PreparedImage] = []
        room = self._max_crops
        for image in images:
            count = num_crops(image.tiling)
            if batch and count > room:
                yield batch
                batch, room = [], self._max_crops
            batch.append(image)
            room -= count
        if batch:
            yield batch

    def _run(self, images: Sequence[PreparedImage]) -> list[Encoded]:
        tilings = [image.tiling for image in images]
        count, began_s = sum(map(num_crops, tilings)), perf_counter()
        with self.on_its_stream():
            began = self._event()
            if count <= self._max_crops:
                features = self._features
                self._run_batch(images, count)
            else:
                [image] = images
                parts = torch.from_numpy(image.crops[:count]).split(self._max_crops)
                features = torch.cat([self._encode(part.to(self._device)) for part in parts])
            embeddings = self._project(features[:count], tilings)
            ready = self._event()
        seconds = partial(float, perf_counter() - began_s)
        if began is not None and ready is not None:
            self.busy_s()
            self._under_way.append((began, ready))
            seconds = partial(_elapsed_s, began, ready)
        return [Encoded(one, ready, seconds) for one in embeddings]

    def _run_batch(self, images: Sequence[PreparedImage], count: int) -> None:
        """The rows behind the crops hold those of an earlier batch; their features are not read."""
        size = next(size for size in batch_sizes(self._max_crops) if size >= count)
        self._uploads.upload(images)
        captured = self._captured.get(size)
        if captured is not None:
            captured()
        else:
            self._encode_batch(size)

    def _encode_batch(self, size: int) -> None:
        self._features[:size] = self._encode(self._uploads.crops[:size])

    def _project(self, features: Tensor, tilings: Sequence[tuple[int, int]]) -> Tensor:
        embeddings: Tensor = self._vision.proj_mlp(self._mosaic(features, tilings))
        return embeddings

    def _event(self) -> torch.cuda.Event | None:
        if self._stream is None:
            return None
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event


def _elapsed_s(began: torch.cuda.Event, ended: torch.cuda.Event) -> float:
    return began.elapsed_time(ended) / 1e3 if ended.query() else 0.0


def batch_sizes(max_crops: int) -> list[int]:
    """Every size up to 32, then every second: a crop of padding costs as much as one of a picture."""
    return [
        *range(1, min(32, max_crops) + 1),
        *range(34, max_crops, 2),
        *([max_crops] if max_crops > 32 else []),
    ]
