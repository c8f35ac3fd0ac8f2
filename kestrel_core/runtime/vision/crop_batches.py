"""Encodes the crops of many pictures together, on a stream of its own.

A batch is padded to one of a few sizes, each of which is captured into a graph: a block is some ten launches,
and with few crops the device is done with one before the host has launched the next. A picture's crops stay
in one batch, unless it has more of them than a batch holds, or is encoded in parts: between steps, a few of
its crops at a time.
"""

import logging
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from time import perf_counter
from typing import NamedTuple

import torch
from torch import Tensor

from kestrel_core.loop.step import PreparedImage
from kestrel_core.moondream.vision import Mosaic, Vision, num_crops
from kestrel_core.runtime.graphs import Graphs, Work
from kestrel_core.runtime.put_off import PutOff
from kestrel_core.runtime.vision.crop_uploads import CropUploads

log = logging.getLogger("kestrel")

MAX_BATCH_CROPS = 64  # a crop has some 20 MB of activations
FIRST_CROPS = (
    1,
    5,
    9,
    13,
    24,
    40,
)  # captured by a quick start, beside the largest; others are padded to them


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


@dataclass(slots=True, eq=False)
class Partial:
    """A picture that is encoded in parts."""

    tiling: tuple[int, int]
    crops: Tensor  # uint8 [crops, size, size, 3]
    features: Tensor  # [crops, patches, dim], of which the first `num_done` are there
    num_done: int = 0
    seconds: list[Callable[[], float]] = field(default_factory=list)  # that each of its parts took

    @property
    def num_missing(self) -> int:
        return len(self.crops) - self.num_done


class CropBatches:
    def __init__(
        self,
        vision: Vision,
        encode: Callable[[Tensor], Tensor] | None = None,
        max_crops: int = MAX_BATCH_CROPS,
        graphs: Graphs | None = None,
    ) -> None:
        """`encode` computes what `vision.encode` does, faster. With `graphs` batches are captured. Steps
        may not use the same `graphs`, since batches run beside them. No more than `max_crops` are encoded
        at once; a batch holds those of one picture in any case, and is encoded in parts where it has more.
        """
        config, self._device = vision.config, vision.pos_emb.device
        on_cuda = self._device.type == "cuda"
        self._vision = vision
        self._encode = encode or vision.encode
        self._mosaic = Mosaic(config, self._device)
        self._at_once = max_crops
        self._max_crops = max(max_crops, 1 + config.max_crops)  # so that most pictures fit
        self._stream = torch.cuda.Stream(self._device) if on_cuda else None
        self._uploads = CropUploads(config, self._max_crops, self._device)
        self._features = vision.pos_emb.new_empty((self._max_crops, *vision.pos_emb.shape[1:]))
        self._graphs = graphs
        self._captured: dict[int, Work] = {}
        self._sizes = batch_sizes(self._at_once)  # in use
        self.put_off = PutOff()
        self._is_warm = False
        self._under_way: deque[tuple[torch.cuda.Event, torch.cuda.Event]] = deque()
        self._busy_s = 0.0
        self._counting = Lock()

    @torch.inference_mode()
    def __call__(self, images: Sequence[PreparedImage]) -> list[Encoded]:
        return [encoded for batch in self._split(images) for encoded in self._run(batch)]

    @property
    def cuts(self) -> bool:
        """Whether pictures are cut here too. It takes up to 90 MiB: not where memory is too small to encode
        all crops of one picture at once.
        """
        return self._at_once >= self._max_crops

    @property
    def max_crops(self) -> int:
        """Of a batch."""
        return self._max_crops

    @torch.inference_mode()
    def begin(self, image: PreparedImage) -> Partial:
        """A picture of which nothing is encoded yet. It may not have more crops than a batch."""
        count = num_crops(image.tiling)
        with self.on_its_stream():
            self._uploads.upload([image])
            crops = self._uploads.crops[:count].clone()
            return Partial(image.tiling, crops, self._features.new_empty((count, *self._features.shape[1:])))

    @torch.inference_mode()
    def advance(self, parts: Sequence[tuple[Partial, int]], in_turn: bool) -> None:
        """Encode the next crops of some pictures, all in one batch.

        In turn: what was launched on the current stream is done before, and what comes there later waits.
        """
        with self._in_turn(in_turn):
            began, began_s = self._event(), perf_counter()
            places, start = [], 0
            for picture, count in parts:
                place = slice(start, start + count)
                self._uploads.crops[place] = picture.crops[picture.num_done : picture.num_done + count]
                places.append(place)
                start += count
            self._run_batch(start)
            for (picture, count), place in zip(parts, places, strict=True):
                picture.features[picture.num_done : picture.num_done + count] = self._features[place]
            seconds = self._timed(began, self._event(), began_s)
        for picture, count in parts:
            picture.num_done += count
            picture.seconds.append(seconds)

    @torch.inference_mode()
    def finish(self, picture: Partial, in_turn: bool) -> Encoded:
        """The embeddings of a picture of which all crops are encoded."""
        assert not picture.num_missing
        with self._in_turn(in_turn):
            [embeddings] = self._project(picture.features, [picture.tiling])
            ready = self._event()
        times = tuple(picture.seconds)
        return Encoded(embeddings, ready, lambda: sum(seconds() for seconds in times))

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
        return len(self._captured), len(batch_sizes(self._at_once))

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
        if self._graphs is not None and self._graphs.lazy:
            self._put_off_most()
        with self.on_its_stream():
            for size in reversed(self._sizes):
                if self._graphs is not None:
                    try:
                        self._captured[size] = self._graphs.capture(partial(self._encode_batch, size))
                    except RuntimeError as error:
                        self._graphs.refuse_if_required(error)
                        log.warning("encoding pictures without CUDA graphs, which is slower: %s", error)
                        self._graphs = None
                        self.put_off.clear()
                if self._graphs is None:
                    self._encode_batch(size)
                self._project(self._features[:1], [(1, 1)])
            if self.cuts:
                self._uploads.warm_up()
        if self._stream is not None:
            self._stream.synchronize()

    def _put_off_most(self) -> None:
        for size in self._sizes[:-1]:
            if size not in FIRST_CROPS:
                self._sizes.remove(size)
                self.put_off.add(size, partial(self._capture_late, size))

    @torch.inference_mode()
    def _capture_late(self, size: int) -> None:
        assert self._graphs is not None
        with self.on_its_stream():
            self._captured[size] = self._graphs.capture(partial(self._encode_batch, size))
        insort(self._sizes, size)

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
                self._uploads.upload(images)
                self._run_batch(count)
            else:
                [image] = images
                features = self._encode_in_parts(torch.from_numpy(image.crops[:count]))
            embeddings = self._project(features[:count], tilings)
            ready = self._event()
        seconds = self._timed(began, ready, began_s)
        return [Encoded(one, ready, seconds) for one in embeddings]

    def _timed(
        self, began: torch.cuda.Event | None, ended: torch.cuda.Event | None, began_s: float
    ) -> Callable[[], float]:
        """What tells how long a batch took, that began at `began_s` on the host."""
        if began is None or ended is None:
            return partial(float, perf_counter() - began_s)
        self.busy_s()
        self._under_way.append((began, ended))
        return partial(_elapsed_s, began, ended)

    @contextmanager
    def _in_turn(self, in_turn: bool) -> Iterator[None]:
        """Launches go to the own stream; in turn with those of the current one, or beside them."""
        steps = torch.cuda.current_stream(self._device) if self._stream is not None and in_turn else None
        if self._stream is not None and steps is not None:
            self._stream.wait_stream(steps)
        with self.on_its_stream():
            yield
        if self._stream is not None and steps is not None:
            steps.wait_stream(self._stream)

    def _run_batch(self, count: int) -> None:
        """The rows behind the crops hold those of an earlier batch; their features are not read."""
        if count > self._at_once:
            self._features[:count] = self._encode_in_parts(self._uploads.crops[:count].clone())
            return
        size = smallest(self._sizes, count)
        if self.put_off and size > count:
            self.put_off.miss(smallest(batch_sizes(self._at_once), count))
        captured = self._captured.get(size)
        if captured is not None:
            captured()
        else:
            self._encode_batch(size)

    def _encode_batch(self, size: int) -> None:
        self._features[:size] = self._encode(self._uploads.crops[:size])

    def _encode_in_parts(self, crops: Tensor) -> Tensor:
        """Through the first rows, which the graphs have: only what goes in and comes out takes memory."""
        done = self._features.new_empty(len(crops), *self._features.shape[1:])
        parts = crops.to(self._device).split(self._at_once)
        for part, features in zip(parts, done.split(self._at_once), strict=True):
            self._uploads.crops[: len(part)] = part
            self._run_batch(len(part))
            features.copy_(self._features[: len(part)])
        return done

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


def smallest(sizes: Sequence[int], count: int) -> int:
    """The smallest of these that is large enough."""
    return sizes[bisect_left(sizes, count)]


def batch_sizes(max_crops: int) -> list[int]:
    """Every size up to 32, then every second: a crop of padding costs as much as one of a picture."""
    return [
        *range(1, min(32, max_crops) + 1),
        *range(34, max_crops, 2),
        *([max_crops] if max_crops > 32 else []),
    ]
