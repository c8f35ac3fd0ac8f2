"""One pass of the network over packed lessons, and its loss: how unlikely the wanted answers still are."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from kestrel_core.moondream.model import Moondream
from kestrel_core.moondream.text import rotary_at

from .bins import bin_of_coord, bin_of_size
from .lessons import Read
from .packing import Packed
from .parameters import Parameters


class Loss(NamedTuple):
    """A sum over choices: tokens, coordinates, widths and heights are one each."""

    total: Tensor
    num: int


def hidden_states(
    network: Moondream, packed: Packed, parameters: Parameters | None, checkpointed: bool = False
) -> Tensor:
    """As `Text.forward`. `checkpointed`: blocks are computed again for gradients, which saves memory."""
    x, at = packed.x, rotary_at(packed.positions, network.text.config)
    for layer, block in enumerate(network.text.blocks):
        adapt = [parameters.in_block(layer)] if parameters is not None else []
        if checkpointed:
            x = checkpoint(block, x, at, packed.attend, *adapt, use_reentrant=False)
        else:
            x = block(x, at, packed.attend, *adapt)
    return x


def loss_of(network: Moondream, hidden: Tensor, reads: Sequence[tuple[int, Read]]) -> Loss:
    """hidden: [tokens, dim]."""
    parts = [
        _of_tokens(network, hidden, [(at, read) for at, read in reads if read.sample.token is not None]),
        _of_coords(network, hidden, [(at, read) for at, read in reads if read.sample.coord is not None]),
        _of_sizes(network, hidden, [(at, read) for at, read in reads if read.sample.size is not None]),
    ]
    found = [part for part in parts if part is not None]
    return Loss(torch.stack([part.total for part in found]).sum(), sum(part.num for part in found))


Reads = Sequence[tuple[int, Read]]


def _of_tokens(network: Moondream, hidden: Tensor, reads: Reads) -> Loss | None:
    if not reads:
        return None
    logits = network.text.logits(_rows(hidden, reads)).float()
    wanted = torch.tensor([read.sample.token for _, read in reads], device=hidden.device)
    return Loss(
        F.cross_entropy(logits.masked_fill(_ruled_out(logits, reads), -torch.inf), wanted, reduction="sum"),
        len(reads),
    )


def _ruled_out(logits: Tensor, reads: Reads) -> Tensor:
    """What decoding could not choose: bool [reads, vocabulary]."""
    out = torch.zeros(logits.shape, dtype=torch.bool)
    by_readout: dict[object, list[int]] = {}
    for row, (_, read) in enumerate(reads):
        by_readout.setdefault(read.readout, []).append(row)
    for rows in by_readout.values():
        readout = reads[rows[0]][1].readout
        if readout.choices:
            allowed = torch.ones(logits.shape[1], dtype=torch.bool)
            allowed[list(readout.choices)] = False
            out[rows] = allowed
        for token in readout.suppressed:
            out[rows, token] = True
    return out.to(logits.device)


def _of_coords(network: Moondream, hidden: Tensor, reads: Reads) -> Loss | None:
    if not reads:
        return None
    logits = network.region.coord_logits(_rows(hidden, reads)).float()
    bins = [bin_of_coord(read.sample.coord or 0.0, logits.shape[-1]) for _, read in reads]
    wanted = torch.tensor(bins, device=hidden.device)
    return Loss(F.cross_entropy(logits, wanted, reduction="sum"), len(reads))


def _of_sizes(network: Moondream, hidden: Tensor, reads: Reads) -> Loss | None:
    if not reads:
        return None
    logits = network.region.size_logits(_rows(hidden, reads)).float().flatten(0, 1)
    bins = [bin_of_size(side, logits.shape[-1]) for _, read in reads for side in read.sample.size or ()]
    wanted = torch.tensor(bins, device=hidden.device)
    return Loss(F.cross_entropy(logits, wanted, reduction="sum"), len(bins))


def _rows(hidden: Tensor, reads: Reads) -> Tensor:
    return hidden[torch.tensor([at for at, _ in reads], device=hidden.device)]
