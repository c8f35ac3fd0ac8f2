"""A step plan as device tensors: what is fed at which positions, and the cells that each span may see."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from kestrel_core.loop.step import Coord, Input, PreparedImage, Size, Span
from kestrel_core.moondream.model import Moondream
from kestrel_core.runtime.kv_cache import KVCache


@dataclass(frozen=True, slots=True)
class Batch:
    x: Tensor  # [tokens, dim], what the first block takes
    positions: Tensor  # [tokens]
    spans: Sequence[Span]
    starts: Sequence[int]  # each span's first token
    cells: Sequence[Tensor]  # of each span's sequence up to the end of the span: the keys it may see


def make_batch(
    spans: Sequence[Span],
    last: Mapping[int, Input],
    model: Moondream,
    kv_cache: KVCache,
    encode_image: Callable[[PreparedImage], Tensor],
) -> Batch:
    device = model.text.wte.device
    rows, positions, cells, starts = [], [], [], [0]
    for span in spans:
        if span.image is not None:
            bos = model.text.embed(torch.tensor([model.config.tokenizer.bos_id], device=device))
            rows.append(torch.cat((bos, encode_image(span.image))))
        else:
            rows.append(embed_inputs(model, span.inputs if span.inputs is not None else (last[span.slot],)))
        positions.append(torch.arange(span.start, span.stop, device=device))
        cells.append(kv_cache.cells(torch.tensor(span.sequence.pages, device=device), span.stop))
        starts.append(starts[-1] + span.stop - span.start)
    return Batch(
        x=torch.cat(rows),
        positions=torch.cat(positions),
        spans=spans,
        starts=starts[:-1],
        cells=cells,
    )


def embed_inputs(model: Moondream, inputs: Sequence[Input]) -> Tensor:
    """Embeddings [inputs, dim]: tokens looked up, coordinates and sizes through the region model."""
    device, region = model.text.wte.device, model.region
    tokens = [i if isinstance(i, int) else 0 for i in inputs]
    x = model.text.embed(torch.tensor(tokens, device=device))
    coords = [(at, i.value) for at, i in enumerate(inputs) if isinstance(i, Coord)]
    sizes = [(at, i) for at, i in enumerate(inputs) if isinstance(i, Size)]
    if coords:
        at, values = zip(*coords, strict=True)
        x[list(at)] = region.encode_coord(torch.tensor(values, device=device))
    if sizes:
        at, pairs = zip(*sizes, strict=True)
        x[list(at)] = region.encode_size(torch.tensor(pairs, device=device))
    return x
