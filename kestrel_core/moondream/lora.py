"""LoRA adapters: which matrices of a block they reach, where they lie on the device, what they compute.

An adapter has two thin matrices for each matrix W that it changes: W x becomes W x + B (A x). Many adapters
lie on the device at once, and every token of a step has an index that says which is its own; index 0 is none.
`BlockAdapters` is the specification: it runs on any device, and gradients pass through it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import Literal, NamedTuple, Protocol, get_args

import torch
import torch.nn.functional as F
from torch import Tensor

from kestrel_core.moondream.config import TextConfig

# `input_proj` is added to the output of `proj` too, but reads the block's normalised input: that is how
# Moondream 2's own adapters were trained. Those of the experts have a pair of matrices for each expert.
Target = Literal["qkv", "fc1", "input_proj", "proj", "fc2", "expert_fc1", "expert_fc2"]
TARGETS: tuple[Target, ...] = get_args(Target)


class LowRank(NamedTuple):
    """The matrices of a target. Experts have their number in front, stacks the index of the adapter."""

    a: Tensor  # [rank, in]
    b: Tensor  # [out, rank]


Blocks = Sequence[Mapping[Target, LowRank]]  # by layer


class TargetShape(NamedTuple):
    in_dim: int
    out_dim: int
    num_experts: int = 0  # 0: no expert's

    def a(self, rank: int) -> tuple[int, ...]:
        return (*self._experts, rank, self.in_dim)

    def b(self, rank: int) -> tuple[int, ...]:
        return (*self._experts, self.out_dim, rank)

    @property
    def _experts(self) -> tuple[int, ...]:
        return (self.num_experts,) if self.num_experts else ()


def target_shapes(config: TextConfig, layer: int) -> dict[Target, TargetShape]:
    """The matrices of a block that an adapter can reach."""
    dim, moe = config.dim, config.moe
    shapes: dict[Target, TargetShape] = {
        "qkv": TargetShape(dim, config.qkv_dim),
        "input_proj": TargetShape(dim, dim),
        "proj": TargetShape(dim, dim),
    }
    if moe is None or not config.has_experts(layer):
        return shapes | {"fc1": TargetShape(dim, config.ff_dim), "fc2": TargetShape(config.ff_dim, dim)}
    inner = moe.expert_inner_dim
    return shapes | {
        "expert_fc1": TargetShape(dim, 2 * inner, moe.num_experts),
        "expert_fc2": TargetShape(inner, dim, moe.num_experts),
    }


def expert_rank(config: TextConfig, rank: int) -> int:
    """The rank of each expert's matrices in an adapter of this rank: a token passes through several."""
    return max(1, rank // config.moe.experts_per_token) if config.moe is not None else rank


def rank_of(config: TextConfig, target: Target, rank: int) -> int:
    return expert_rank(config, rank) if target.startswith("expert") else rank


@dataclass(frozen=True, eq=False)
class Adapter:
    """One adapter on the host, checked against the model. Its scale is part of its B matrices."""

    identity: str  # a digest of the tensors: adapters with equal identities compute the same
    rank: int
    blocks: Blocks

    @property
    def num_bytes(self) -> int:
        return sum(m.nbytes for block in self.blocks for low_rank in block.values() for m in low_rank)


class Stacks:
    """All adapters on the device. Each has one piece of memory, so that one copy brings it there.

    Within a piece matrices that are multiplied by the same input lie one behind the other, and so do those
    whose outputs are one behind the other: `joined` gives them as one.
    """

    # In this order: what is joined lies together.
    ORDER: tuple[tuple[Literal["a", "b"], Target], ...] = (
        ("a", "qkv"),
        ("a", "fc1"),
        ("a", "input_proj"),
        ("b", "qkv"),
        ("b", "fc1"),
        ("a", "proj"),
        ("a", "fc2"),
        ("b", "input_proj"),
        ("b", "proj"),
        ("b", "fc2"),
        ("a", "expert_fc1"),
        ("b", "expert_fc1"),
        ("a", "expert_fc2"),
        ("b", "expert_fc2"),
    )

    def __init__(
        self, config: TextConfig, max_adapters: int, max_rank: int, device: torch.device, dtype: torch.dtype
    ) -> None:
        self.config = config
        self.max_adapters = max_adapters
        self.max_rank = max_rank
        self.numbers = torch.zeros(
            (1 + max_adapters, self.numbers_each(config, max_rank)), device=device, dtype=dtype
        )
        # How many columns of A's output are in use, by index and target. The others are 0.
        self.ranks = torch.zeros((1 + max_adapters, len(TARGETS)), device=device, dtype=torch.int32)
        self.blocks: Blocks = self._views(self.numbers)

    @classmethod
    def numbers_each(cls, config: TextConfig, max_rank: int) -> int:
        """Numbers of one adapter."""
        return sum(prod(shape) for _, _, _, shape in cls._places(config, max_rank))

    @classmethod
    def num_bytes(cls, config: TextConfig, max_adapters: int, max_rank: int, dtype: torch.dtype) -> int:
        """Bytes of all of them on the device."""
        ranks = len(TARGETS) * torch.int32.itemsize
        return (1 + max_adapters) * (cls.numbers_each(config, max_rank) * dtype.itemsize + ranks)

    def host_piece(self, pinned: bool) -> Tensor:
        """Room for one adapter on the host, to be filled by `write` and copied to `numbers[index]`."""
        return torch.zeros(self.numbers.shape[1], dtype=self.numbers.dtype, pin_memory=pinned)

    def write(self, adapter: Adapter, piece: Tensor) -> list[int]:
        """Lay an adapter out in a piece of memory as `numbers` has it. Returns its row of `ranks`."""
        piece.zero_()
        ranks = [0] * len(TARGETS)
        for mine, theirs in zip(self._views(piece[None]), adapter.blocks, strict=True):
            for target, (a, b) in theirs.items():
                rank = a.shape[-2]
                mine[target].a[0, ..., :rank, :] = a
                mine[target].b[0, ..., :rank] = b
                ranks[TARGETS.index(target)] = max(rank, ranks[TARGETS.index(target)])
        return ranks

    def joined(self, layer: int, part: Literal["a", "b"], targets: Sequence[Target]) -> Tensor:
        """The matrices of neighbours in ORDER as one, [indices, rows of all of them, columns]."""
        views: list[Tensor] = [getattr(self.blocks[layer][target], part) for target in targets]
        first = views[0]
        rows = sum(view.shape[1] for view in views)
        assert all(
            view.storage_offset() == before.storage_offset() + prod(before.shape[1:])
            for before, view in pairwise(views)
        ), "not neighbours"
        shape = (first.shape[0], rows, first.shape[2])
        return first.as_strided(shape, (first.stride(0), first.shape[2], 1))

    @classmethod
    def _places(
        cls, config: TextConfig, max_rank: int
    ) -> Iterator[tuple[int, Literal["a", "b"], Target, tuple[int, ...]]]:
        for layer in range(config.n_layers):
            shapes = target_shapes(config, layer)
            for part, target in cls.ORDER:
                if target in shapes:
                    rank = rank_of(config, target, max_rank)
                    yield layer, part, target, getattr(shapes[target], part)(rank)

    def _views(self, numbers: Tensor) -> Blocks:
        """The matrices in pieces [indices, numbers]."""
        parts: list[dict[tuple[Target, str], Tensor]] = [{} for _ in range(self.config.n_layers)]
        start = 0
        for layer, part, target, shape in self._places(self.config, self.max_rank):
            size = prod(shape)
            parts[layer][target, part] = numbers[:, start : start + size].unflatten(1, shape)
            start += size
        return [
            {target: LowRank(found[target, "a"], found[target, "b"]) for target, part in found if part == "a"}
            for found in parts
        ]


@dataclass(frozen=True, eq=False)
class AdapterRows:
    """Which adapter each token of a step has, and the same sorted into tiles, as kernels take it.

    A tile is a number of tokens of one adapter: those that `order` names between its first and its stop.
    Tiles and the rest of `order` behind the last one in use are padding: their adapter is 0.
    """

    blocks: Blocks
    of_token: Tensor  # int32 [tokens], 0: none
    order: Tensor | None = None  # int32 [tokens]
    tiles: Tensor | None = None  # int32 [tiles, 3]: adapter, first, stop
    tile_size: int = 0  # the most tokens of a tile
    stacks: Stacks | None = None  # whose `blocks` they are; kernels need it

    @cached_property
    def groups(self) -> list[tuple[int, Tensor]]:
        """Each adapter in use, and its tokens. Asks the host."""
        return list(grouped(self.of_token))

    def in_block(self, layer: int) -> "BlockAdapters":
        return BlockAdapters(self, layer)


def grouped(of_token: Tensor) -> Iterator[tuple[int, Tensor]]:
    for index in of_token.unique().tolist():
        if index:
            yield index, (of_token == index).nonzero()[:, 0]


class Adapt(Protocol):
    """What a block's matrices pass their results through."""

    def __call__(
        self, target: Target, x: Tensor, y: Tensor, tokens: Tensor | None = None, expert: int = 0
    ) -> Tensor:
        """y, the product of a matrix with x, plus what the tokens' adapters have for that matrix.

        `tokens` says which tokens of the step the rows are, where they are not all of them.
        """
        ...


def no_adapters(
    target: Target, x: Tensor, y: Tensor, tokens: Tensor | None = None, expert: int = 0
) -> Tensor:
    return y


def adapting(adapt: Adapt, some: Tensor) -> Adapt:
    """The same for some of the tokens alone, of which `tokens` are counted then."""
    if adapt is no_adapters:
        return adapt

    def adapt_some(
        target: Target, x: Tensor, y: Tensor, tokens: Tensor | None = None, expert: int = 0
    ) -> Tensor:
        return adapt(target, x, y, some if tokens is None else some[tokens], expert)

    return adapt_some


class BlockAdapters:
    """The adapters of a step in one block: group by group, two small products each."""

    def __init__(self, rows: AdapterRows, layer: int) -> None:
        self._rows = rows
        self._block = rows.blocks[layer]

    def __call__(
        self, target: Target, x: Tensor, y: Tensor, tokens: Tensor | None = None, expert: int = 0
    ) -> Tensor:
        low_rank = self._block.get(target)
        if low_rank is None:
            return y
        groups = self._rows.groups if tokens is None else grouped(self._rows.of_token[tokens])
        for index, members in groups:
            a, b = (stack[index, expert] if stack.ndim == 4 else stack[index] for stack in low_rank)
            y = y.index_add(0, members, F.linear(F.linear(x[members], a), b))
        return y
