"""The tensors of an adapter's file become a `lora.Adapter`, whichever format named them.

Every format says of each tensor which matrix it is. Here all of them are held against the model: shapes,
ranks, types, finite numbers, and a B for every A. An error names the tensor as the file does.
"""

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from kestrel_core.moondream.checkpoint.weights import FLOATS
from kestrel_core.moondream.config import TextConfig
from kestrel_core.moondream.lora import Adapter, Blocks, LowRank, Target, expert_rank, target_shapes
from kestrel_core.protocol.errors import BadAdapter
from kestrel_core.protocol.names import shown


class Place(NamedTuple):
    """Which matrix of the model's adapter a tensor is."""

    layer: int
    target: Target
    part: Literal["a", "b"]

    @property
    def other(self) -> "Place":
        return self._replace(part="b" if self.part == "a" else "a")


@dataclass(frozen=True, eq=False)
class Matrix:
    name: str  # in the file
    place: Place
    tensor: Tensor
    scale: float = 1.0  # what B is multiplied by


def assemble(matrices: Iterable[Matrix], config: TextConfig, dtype: torch.dtype, max_rank: int) -> Adapter:
    """Check all matrices, before any number is looked at, and put them together in `dtype`."""
    by_place: dict[Place, Matrix] = {}
    for matrix in matrices:
        if matrix.place in by_place:
            twice = f"{shown(by_place[matrix.place].name)} and {shown(matrix.name)}"
            raise BadAdapter(f"the same matrix is there under two names, {twice}")
        by_place[matrix.place] = matrix
    ranks = {place: _rank(by_place[place], config) for place in sorted(by_place)}
    for place, rank in ranks.items():
        if place.other not in ranks:
            raise BadAdapter(
                f"{shown(by_place[place].name)} has no {place.other.part.upper()} matrix beside it"
            )
        if rank != ranks[place.other]:
            one, other = by_place[place], by_place[place.other]
            raise BadAdapter(
                f"{shown(one.name)} has rank {rank} and {shown(other.name)} rank {ranks[place.other]}, "
                "which must be equal"
            )
        _check_rank(by_place[place], rank, config, max_rank)
    blocks: list[dict[Target, LowRank]] = [{} for _ in range(config.n_layers)]
    for place, matrix in by_place.items():
        if place.part == "a":
            a, b = _cast(matrix, dtype), _cast(by_place[place.other], dtype)
            # What multiplies to 0 is left out, so that it costs nothing: a format may ask for every matrix.
            if a is not None and b is not None:
                blocks[place.layer][place.target] = LowRank(a, b)
    return Adapter(identity(blocks), adapter_rank(blocks, config), blocks)


def adapter_rank(blocks: Blocks, config: TextConfig) -> int:
    """The rank that an adapter with these matrices is of; experts share it out among those a token meets."""
    per_token = config.moe.experts_per_token if config.moe is not None else 1
    return max(
        (
            low_rank.a.shape[-2] * (per_token if target.startswith("expert") else 1)
            for block in blocks
            for target, low_rank in block.items()
        ),
        default=1,
    )


def identity(blocks: Blocks) -> str:
    """A digest of the numbers and where they belong, whatever file they came in."""
    digest = hashlib.sha256()
    for layer, block in enumerate(blocks):
        for target in sorted(block):
            for part, tensor in zip("ab", block[target], strict=True):
                digest.update(f"{layer} {target} {part} {tensor.dtype} {list(tensor.shape)}\n".encode())
                digest.update(tensor.contiguous().view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _rank(matrix: Matrix, config: TextConfig) -> int:
    """The rank of a matrix that fits the model."""
    name, (layer, target, part), shape = shown(matrix.name), matrix.place, tuple(matrix.tensor.shape)
    found = target_shapes(config, layer).get(target) if layer < config.n_layers else None
    if found is None:
        raise BadAdapter(
            f"{name} belongs to no matrix of this model, which has {config.n_layers} blocks; "
            "the adapter was made for another model"
        )
    kind = str(matrix.tensor.dtype).removeprefix("torch.")
    if kind not in FLOATS:
        raise BadAdapter(f"{name} is {kind}, and only {', '.join(FLOATS)} are taken")
    rank_dim = -2 if part == "a" else -1
    rank = shape[rank_dim] if len(shape) >= 2 else 0
    if rank < 1 or shape != (found.a(rank) if part == "a" else found.b(rank)):
        needed: Sequence[int | str] = list(found.a(0) if part == "a" else found.b(0))
        needed = [*needed[:rank_dim], "rank", *needed[len(needed) + rank_dim + 1 :]]
        raise BadAdapter(
            f"{name} has the shape {_written(shape)} and this model needs {_written(needed)}; "
            "the adapter was made for another model"
        )
    return rank


def _check_rank(matrix: Matrix, rank: int, config: TextConfig, max_rank: int) -> None:
    experts = matrix.place.target.startswith("expert")
    limit = expert_rank(config, max_rank) if experts else max_rank
    if rank > limit:
        each = f" for each expert, which is max_adapter_rank {max_rank} shared out" if experts else ""
        raise BadAdapter(
            f"{shown(matrix.name)} has rank {rank}, and at most {limit} is taken{each}; "
            "serve with a larger max_adapter_rank"
        )


def _cast(matrix: Matrix, dtype: torch.dtype) -> Tensor | None:
    """The matrix as it is used. None: all of it is 0."""
    tensor = matrix.tensor
    if matrix.place.part == "b" and matrix.scale != 1.0:
        tensor = tensor.double() * matrix.scale
    tensor = tensor.to(dtype).contiguous()
    # Both are NaN if a number is. In bfloat16 this takes a fortieth of the time of isfinite().
    least, most = (number.item() for number in tensor.aminmax())
    if not (math.isfinite(least) and math.isfinite(most)):
        raise BadAdapter(f"{shown(matrix.name)} holds numbers that are NaN or infinite")
    return tensor if least or most else None


def _written(shape: Iterable[int | str]) -> str:
    return f"[{', '.join(map(str, shape))}]"
