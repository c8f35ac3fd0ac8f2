"""From crops to embeddings. Remembers the last few: a picture asked for again soon is not encoded again.

A picture can also be encoded in parts, ahead of the step that needs it. What is encoded of it stays here for
a while, whoever asked for it.
"""

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from time import perf_counter

import torch
from torch import Tensor

from kestrel_core.loop.step import Encode, PreparedImage
from kestrel_core.moondream.vision import Vision, num_crops
from kestrel_core.runtime.vision.crop_batches import CropBatches, Encoded, Partial
from kestrel_core.runtime.vision.plain_parts import PlainParts

log = logging.getLogger("kestrel")

MAX_TIMES = 256  # of pictures; far more than a step or two can have
MAX_PARTIAL = (
    4  # pictures that are encoded in part; they come one after the other, so it is mostly one or two
)
MAX_WHOLE = 256  # pictures of which encoding in parts failed


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
        self._parts = batches or PlainParts(vision)
        self._partial: OrderedDict[str, Partial] = OrderedDict()
        self._whole: set[str] = set()  # not to be encoded in parts
        self._ahead: set[str] = set()  # encoded in parts, and not asked for since
        self.num_encoded = 0

    @property
    def cuts(self) -> bool:
        """True: pictures may be left whole, and are cut on the device."""
        return self._batches is not None and self._batches.cuts

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

    @property
    def num_put_off(self) -> int:
        """Sizes of batches that are still to be captured."""
        return len(self._batches.put_off) if self._batches is not None else 0

    def capture_more(self, idle: bool) -> bool:
        """See `Runtime.capture_more`."""
        return self._batches is not None and self._batches.put_off.do_one(idle)

    # Ahead of a step

    def num_missing(self, image: PreparedImage) -> int:
        """As `PictureProgress` has it."""
        key = image.key
        if key in self._remembered:
            self._remembered.move_to_end(key)
            return 0
        count = num_crops(image.tiling)
        if key in self._whole or count > self._parts.max_crops:
            return 0
        return self._partial[key].num_missing if key in self._partial else count

    def encode_ahead(self, encodes: Sequence[Encode]) -> None:
        """Launch this. A picture for which it fails is encoded with its step, and may fail there."""
        self._try_to_advance(encodes, in_turn=True)

    def _try_to_advance(self, encodes: Sequence[Encode], in_turn: bool) -> None:
        try:
            self._advance(encodes, in_turn)
        except Exception:
            log.exception("encoding pictures in parts failed; they are tried as a whole")

    def _advance(self, encodes: Sequence[Encode], in_turn: bool) -> None:
        try:
            parts = [(self._begun(one.image), one) for one in encodes if self.num_missing(one.image)]
            room, batch = self._parts.max_crops, list[tuple[Partial, int]]()
            for picture, one in parts:
                count = min(one.num_crops, picture.num_missing)
                if batch and count > room:
                    self._parts.advance(batch, in_turn)
                    room, batch = self._parts.max_crops, []
                batch.append((picture, count))
                room -= count
            if batch:
                self._parts.advance(batch, in_turn)
            for picture, one in parts:
                if not picture.num_missing:
                    encoded = self._parts.finish(picture, in_turn)
                    self._keep(one.image, encoded)
                    self._ahead.add(one.image.key)
                    if self._batches is None:
                        self._encode_s += encoded.seconds()
        except Exception:
            if len(self._whole) > MAX_WHOLE:
                self._whole.clear()
            for one in encodes:
                self._partial.pop(one.image.key, None)
                self._whole.add(one.image.key)
            raise

    def _begun(self, image: PreparedImage) -> Partial:
        picture = self._partial.pop(image.key, None) or self._parts.begin(image)
        self._partial[image.key] = picture
        while len(self._partial) > MAX_PARTIAL:
            self._partial.popitem(last=False)
        return picture

    def _keep(self, image: PreparedImage, encoded: Encoded) -> None:
        self.num_encoded += 1
        self._partial.pop(image.key, None)
        self._times[image.key] = encoded.seconds
        self._remembered[image.key] = encoded
        while len(self._remembered) > self._max_remembered:
            self._ahead.discard(self._remembered.popitem(last=False)[0])
        while len(self._times) > MAX_TIMES:
            self._times.popitem(last=False)

    # With a step

    def _encode(self, images: Sequence[PreparedImage]) -> dict[str, Encoded]:
        wanted = {image.key: image for image in images}
        if begun := [
            Encode(wanted[key], part.num_missing) for key, part in self._partial.items() if key in wanted
        ]:
            self._try_to_advance(begun, in_turn=False)  # this step waits for them
        found = {key: self._remembered[key] for key in wanted if key in self._remembered}
        fresh = [image for key, image in wanted.items() if key not in found]
        for key in found:
            if key not in self._ahead:
                self._times.pop(key, None)
            self._ahead.discard(key)
        for image, encoded in zip(fresh, self._compute(fresh), strict=True):
            found[image.key] = encoded
            self._keep(image, encoded)
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
