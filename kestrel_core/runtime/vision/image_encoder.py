"""From crops to embeddings. Remembers the last few: a picture asked for again soon is not encoded again."""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from time import perf_counter

import torch
from torch import Tensor

from kestrel_core.loop.step import PreparedImage
from kestrel_core.moondream.vision import Vision
from kestrel_core.runtime.vision.crop_batches import CropBatches, Encoded

MAX_TIMES = 256  # of pictures; far more than a step or two can have


class ImageEncoder:
    def __init__(self, vision: Vision, batches: CropBatches | None = None, max_remembered: int = 8) -> None:
        """Without `batches` pictures are encoded one after the other, on the plain path."""
        self._vision = vision
        self._batches = batches
        self._remembered: OrderedDict[str, Encoded] = OrderedDict()
        self._max_remembered = max_remembered
        # Of those that were not remembered.
        self._times: OrderedDict[str, Callable[[], float]] = OrderedDict()
        self._before_s = batches.busy_s() if batches is not None else 0.0  # another engine may have used them
        self._encode_s = 0.0
        self.num_encoded = 0

    @property
    def cuts(self) -> bool:
        """True: pictures may be left whole, and are cut on the device."""
        return self._batches is not None

    @property
    def captured(self) -> tuple[int, int]:
        """How many sizes of batches are captured into graphs, and how many there are."""
        return self._batches.captured if self._batches is not None else (0, 0)

    @property
    def encode_s(self) -> float:
        """Seconds spent on pictures; where the device works by itself, the device's seconds."""
        return self._encode_s if self._batches is None else self._batches.busy_s() - self._before_s

    def __call__(self, image: PreparedImage) -> Tensor:
        """Embeddings [patches, dim]."""
        return self.encode_many([image])[0]

    def encode_many(self, images: Sequence[PreparedImage]) -> list[Tensor]:
        """Embeddings of every picture, for use on the current stream."""
        found = self._encode(images)
        for key in found:
            if key in self._remembered:
                self._remembered.move_to_end(key)
        return [found[image.key].on_current_stream() for image in images]

    def seconds(self, image: PreparedImage) -> float:
        """How long a picture took when it was last asked for: 0 if it was remembered, or is under way."""
        return self._times[image.key]() if image.key in self._times else 0.0

    def warm_up(self) -> None:
        """Run every size of batch once, so that no request pays for what is made on first use."""
        if self._batches is not None:
            self._batches.warm_up()

    def on_its_stream(self) -> AbstractContextManager[object]:
        """Where pictures are encoded: on a stream beside the steps', where there is one."""
        return self._batches.on_its_stream() if self._batches is not None else nullcontext()

    def _encode(self, images: Sequence[PreparedImage]) -> dict[str, Encoded]:
        wanted = {image.key: image for image in images}
        found = {key: self._remembered[key] for key in wanted if key in self._remembered}
        fresh = [image for key, image in wanted.items() if key not in found]
        for key in found:
            self._times.pop(key, None)
        for image, encoded in zip(fresh, self._compute(fresh), strict=True):
            self.num_encoded += 1
            self._times[image.key] = encoded.seconds
            found[image.key] = self._remembered[image.key] = encoded
        while len(self._remembered) > self._max_remembered:
            self._remembered.popitem(last=False)
        while len(self._times) > MAX_TIMES:
            self._times.popitem(last=False)
        return found

    def _compute(self, images: Sequence[PreparedImage]) -> Iterator[Encoded]:
        if self._batches is not None:
            yield from self._batches(images)
            return
        for image in images:
            began = perf_counter()
            embeddings = encode_image(self._vision, torch.from_numpy(image.crops), image.tiling)
            took_s = perf_counter() - began
            self._encode_s += took_s
            yield Encoded(embeddings, None, partial(float, took_s))


def encode_image(vision: Vision, crops: Tensor, tiling: tuple[int, int]) -> Tensor:
    crops = crops.to(vision.pos_emb.device)
    if tiling == (1, 1):  # the only tile equals the global crop
        return vision.project(vision.encode(crops[:1]).expand(2, -1, -1), tiling)
    return vision.project(vision.encode(crops), tiling)
