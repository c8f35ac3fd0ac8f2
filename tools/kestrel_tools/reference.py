"""What plain torch would have chosen: inputs fed once more, and the logits behind every choice.

All positions of a request are known beforehand, so those of all requests about a picture go through the
network in one pass. Each choice is judged in the state that led to it, whatever was chosen before.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from kestrel_core.loop.step import Kind, PreparedImage, Readout, Running, Span
from kestrel_core.moondream.lora import Adapter, AdapterRows, Blocks, LowRank
from kestrel_core.moondream.model import Moondream
from kestrel_core.runtime.attention.sdpa import SdpaAttention
from kestrel_core.runtime.batch import make_batch
from kestrel_core.runtime.kv_cache import KVCache
from kestrel_core.runtime.vision.image_encoder import ImageEncoder, encode_image
from kestrel_tools.noted import Walk

NOT_TOKENS = (Kind.COORD, Kind.SIZE)


class Adapted(NamedTuple):
    """An adapter by itself, with index 1. The image prefix may be computed without it."""

    blocks: Blocks
    on_image: bool = True

    @classmethod
    def by(cls, adapter: Adapter, weight: Tensor, on_image: bool = True) -> "Adapted":
        """Where, and in the dtype in which, `weight` is."""

        def with_none(matrix: Tensor) -> Tensor:
            matrix = matrix.to(weight.device, weight.dtype)
            return torch.stack((torch.zeros_like(matrix), matrix))

        blocks = [
            {t: LowRank(*map(with_none, pair)) for t, pair in block.items()} for block in adapter.blocks
        ]
        return cls(blocks, on_image)


def image_span(image: PreparedImage, length: int, pages: list[int], adapted: Adapted | None) -> Span:
    """The image prefix of a fresh sequence."""
    index = 1 if adapted is not None and adapted.on_image else 0
    return Span(Running(0, pages, adapter=index), 0, length, None, image)


def hidden_states(
    network: Moondream,
    kv_cache: KVCache,
    spans: Sequence[Span],
    embeddings: Callable[[PreparedImage], Tensor],
    adapted: Adapted | None = None,
) -> Tensor:
    """Of all spans, in one pass of plain torch: [positions, dim]."""
    batch = make_batch(spans, {}, network, kv_cache, embeddings)
    attend = SdpaAttention(kv_cache, batch.spans, batch.starts, batch.cells)
    rows = None
    if adapted is not None:
        indices = [span.sequence.adapter for span in spans for _ in range(span.start, span.stop)]
        rows = AdapterRows(adapted.blocks, torch.tensor(indices, device=batch.x.device, dtype=torch.int32))
    hidden: Tensor = network.text(batch.x, batch.positions, attend, rows)
    return hidden


class Judged(NamedTuple):
    """One choice beside the reference. A coordinate and each side of a size are choices of their own."""

    kind: str
    chosen: int  # a token or a bin
    best: int  # the reference's
    gap: float  # between their logits; 0 where the reference chooses the same, or has a tie
    spread: float  # standard deviation of the row's logits
    largest: float  # the largest of the row by magnitude
    noise: float | None = None  # of the distance between the two likeliest: recorded against ours


class Reference:
    def __init__(self, network: Moondream, encode_image: ImageEncoder | None = None) -> None:
        """`encode_image` remembers pictures by their keys, for callers whose keys tell pictures apart."""
        self._network = network
        self._encode_image = encode_image or self._embeddings

    @torch.inference_mode()
    def judge(
        self, image: PreparedImage | None, walks: Sequence[Walk], adapted: Adapted | None = None
    ) -> list[list[Judged]]:
        """The choices of each walk. `image` is that of all walks that have one, `adapted` that of all."""
        return [
            self._judge_walk(walk, hidden)
            for walk, hidden in zip(walks, self._hidden(image, walks, adapted), strict=True)
        ]

    def _hidden(
        self, image: PreparedImage | None, walks: Sequence[Walk], adapted: Adapted | None
    ) -> Sequence[Tensor]:
        """Of each walk's inputs, before the last norm: [inputs, dim]."""
        network, weight = self._network, self._network.text.wte
        length = network.config.image_prefix_length
        # The image fills page 1, which the walks share. Page 0 is scratch.
        images = [image_span(image, length, [1], adapted)] if image is not None else []
        index = 1 if adapted is not None else 0
        spans, num_pages = list(images), 2
        for walk in walks:
            start = length if walk.has_image else 0
            own = range(num_pages, num_pages - (-len(walk.inputs) // length))
            pages = [1, *own] if walk.has_image else [*own]
            sequence = Running(0, pages, adapter=index)
            spans.append(Span(sequence, start, start + len(walk.inputs), walk.inputs))
            num_pages = own.stop
        kv_cache = KVCache(network.config.text, num_pages, length, weight.device, weight.dtype)
        hidden = hidden_states(network, kv_cache, spans, self._encode_image, adapted)
        return torch.split(hidden, [span.stop - span.start for span in spans])[len(images) :]

    def _embeddings(self, image: PreparedImage) -> Tensor:
        return encode_image(self._network.vision, torch.from_numpy(image.crops), image.tiling)

    def _judge_walk(self, walk: Walk, hidden: Tensor) -> list[Judged]:
        if not walk.readings:
            return []
        region = self._network.region
        hidden = hidden[[reading.at for reading in walk.readings]]
        tokens = self._network.text.logits(hidden).float()
        judged = []
        for row, (_, readout, (kind, sample, _)) in enumerate(walk.readings):
            if kind not in NOT_TOKENS:
                assert sample.token is not None
                one = judge(kind.value, tokens[row], sample.token, readout)
                if sample.top:
                    one = one._replace(noise=_noise(tokens[row], sample.top))
                judged.append(one)
            ended = kind is Kind.OBJECT and sample.token == self._network.config.tokenizer.eos_id
            if sample.coord is not None and not ended:  # after the last object, x is not used
                logits = region.coord_logits(hidden[row : row + 1])[0].float()
                values = region.coord_of_bin(torch.arange(len(logits), device=logits.device))
                judged.append(judge("coord", logits, _nearest(values, sample.coord)))
            if sample.size is not None:
                for logits, side in zip(
                    region.size_logits(hidden[row : row + 1])[0], sample.size, strict=True
                ):
                    values = region.size_of_bin(torch.arange(len(logits), device=logits.device))
                    judged.append(judge("size", logits.float(), _nearest(values, side)))
        return judged


def _noise(logits: Tensor, top: Sequence[tuple[int, float]]) -> float:
    """Two log probabilities differ by as much as their logits, so their distance can be compared."""
    (first, of_first), (second, of_second) = top
    return abs(of_first - of_second - float(logits[first] - logits[second]))


def _nearest(values: Tensor, value: float) -> int:
    """The bin of a recorded value. Devices differ in the last bit of a power, so it is not looked up."""
    return int((values - value).abs().argmin())


def judge(kind: str, logits: Tensor, chosen: int, readout: Readout | None = None) -> Judged:
    """logits: one row. What the readout does not allow is infinitely far from the best."""
    allowed = logits
    if readout is not None and readout.choices:
        allowed = torch.full_like(logits, -torch.inf)
        allowed[list(readout.choices)] = logits[list(readout.choices)]
    if readout is not None and readout.suppressed:
        allowed = allowed.index_fill(0, torch.tensor(readout.suppressed, device=logits.device), -torch.inf)
    best = int(allowed.argmax())
    gap = float(allowed[best] - allowed[chosen])
    return Judged(kind, chosen, best, gap, float(logits.std()), float(logits.abs().max()))
