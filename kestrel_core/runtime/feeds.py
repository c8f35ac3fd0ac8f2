"""What the positions of a step are fed: tokens, coordinates, sizes, and what was read last in each slot.

The last readouts stay on the device, as embeddings, so that a decode can feed what the host has not seen yet.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from torch import Tensor

from kestrel_core.loop.step import Coord, Input, Size, Span
from kestrel_core.moondream.model import Moondream
from kestrel_core.runtime.staging import Arrays, send


class Feeds:
    def __init__(self, model: Moondream, max_slots: int, max_given: int) -> None:
        self._model = model
        # Embeddings ready to be fed: first what was read last in each slot (slot 0 is for padding), then
        # what the host gives.
        self.rows = model.text.wte.new_zeros((1 + max_slots + max_given, model.config.text.dim))
        self._given = 1 + max_slots

    def blank_images(self, count: int) -> Tensor:
        """Image prefixes [count, prefix, dim] that hold BOS, with room for the images."""
        config, wte = self._model.config, self._model.text.wte
        images = wte.new_zeros((count, config.image_prefix_length, config.text.dim))
        images[:, 0] = wte[config.tokenizer.bos_id]
        return images

    def give(self, spans: Sequence[Span], size: int, arrays: Arrays) -> None:
        """Write as `sources` which of `rows` each position of the spans is fed, padded to `size`."""
        sources, inputs = list[int](), list[Input]()
        for span in spans:
            if span.inputs is None:
                sources.append(span.slot)
            else:
                first = self._given + len(inputs)
                sources += range(first, first + len(span.inputs))
                inputs += span.inputs
        arrays["sources"][: len(sources)] = sources
        arrays["sources"][len(sources) : size] = 0
        if inputs:
            x = self.embed(send(_pack(inputs), self.rows.device))
            self.rows[self._given : self._given + len(x)] = x

    def pack(self, spans: Sequence[Span]) -> Arrays:
        """What `embed` takes, once it is sent. Image prefixes are all BOS; the image is put in later."""
        in_images = sum(span.stop - span.start for span in spans if span.image is not None)
        inputs = list[Input | Span]()
        for span in spans:
            if span.image is None:
                inputs += [span] if span.inputs is None else span.inputs
        return _pack(inputs, [self._model.config.tokenizer.bos_id] * in_images)

    def embed(self, packed: Mapping[str, Tensor]) -> Tensor:
        """[tokens, dim]"""
        x, region = self._model.text.embed(packed["token_ids"]), self._model.region
        if len(packed["last_rows"]):
            x.index_copy_(0, packed["last_rows"], self.rows.index_select(0, packed["last_slots"]))
        if len(packed["coord_rows"]):
            x.index_copy_(0, packed["coord_rows"], region.encode_coord(packed["coords"]))
        if len(packed["size_rows"]):
            x.index_copy_(0, packed["size_rows"], region.encode_size(packed["sizes"]))
        return x


def _pack(inputs: Sequence[Input | Span], before: Sequence[int] = ()) -> Arrays:
    """Token ids of all inputs, and separately what is no token. A span means what its slot read last."""
    tokens = list(before)
    last, coords, sizes = list[tuple[int, int]](), list[tuple[int, float]](), list[tuple[int, Size]]()
    for row, one in enumerate(inputs, len(before)):
        if isinstance(one, int):
            tokens.append(one)
            continue
        tokens.append(0)
        if isinstance(one, Span):
            last.append((row, one.slot))
        elif isinstance(one, Coord):
            coords.append((row, one.value))
        else:
            sizes.append((row, one))
    return {
        "token_ids": np.array(tokens, np.int64),
        "last_rows": np.array([row for row, _ in last], np.int64),
        "last_slots": np.array([slot for _, slot in last], np.int64),
        "coord_rows": np.array([row for row, _ in coords], np.int64),
        "coords": np.array([value for _, value in coords], np.float32),
        "size_rows": np.array([row for row, _ in sizes], np.int64),
        "sizes": np.array([size for _, size in sizes], np.float32).reshape(-1, 2),
    }
