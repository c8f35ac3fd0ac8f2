"""Near ties of a router. Rounding decides which of two experts a token gets; both are right.

One expert instead of another may move a token's state by a tenth. So what differs from a reference by more
than it may is compared with it again, the choice being made the other way.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from torch import Tensor, nn

from kestrel_core.moondream.model import Moondream
from kestrel_core.moondream.moe import MoE

Turned = tuple[MoE, ...]  # in which near ties go the other way


def ways(network: Moondream) -> Iterator[Turned]:
    """As they are, then turned in each block alone, then in all of them."""
    routed = tuple(block.mlp for block in network.text.blocks if isinstance(block.mlp, MoE))
    yield ()
    for one in routed:
        yield (one,)
    if len(routed) > 1:
        yield routed


@contextmanager
def turned(blocks: Turned, first: int, near: float) -> Iterator[None]:
    """Passes of the network inside have their near ties turned, from token `first` on.

    `near`: the distance of two router logits, as a share of the spread of all of the token's.
    """
    with ExitStack() as hooks:
        for moe in blocks:
            hooks.callback(moe.router.register_forward_hook(_turn(moe.experts_per_token, first, near)).remove)
        yield


Hook = Callable[[nn.Module, tuple[Tensor, ...], Tensor], Tensor]


def _turn(experts_per_token: int, first: int, near: float) -> Hook:
    def hook(router: nn.Module, inputs: tuple[Tensor, ...], logits: Tensor) -> Tensor:
        values, ids = logits.topk(experts_per_token + 1, dim=-1)
        gap = values[:, -2] - values[:, -1]
        rows = (gap <= near * logits.std(-1)).nonzero()[:, 0]
        rows = rows[rows >= first]
        other = logits.clone()
        other[rows, ids[rows, -2]], other[rows, ids[rows, -1]] = values[rows, -1], values[rows, -2]
        return other

    return hook
