"""Muon: momentum whose step on a matrix is made orthogonal, so that all its directions are learnt alike.

After Keller Jordan's description (2024), scaled as in "Muon is scalable for LLM training" (2025), so that one
learning rate serves it and AdamW. Matrices of one shape are stepped together.
"""

from collections import defaultdict
from collections.abc import Iterable

import torch
from torch import Tensor, nn

MOMENTUM = 0.95
ROUNDS = 5


class Muon:
    def __init__(self, parameters: Iterable[nn.Parameter], weight_decay: float) -> None:
        """`parameters` have two dimensions, or three: then the first counts matrices (experts)."""
        self._weight_decay = weight_decay
        self._alike: dict[tuple[int, int], list[nn.Parameter]] = defaultdict(list)
        for parameter in parameters:
            self._alike[_sides(parameter)].append(parameter)
        self._momentum = {
            sides: torch.zeros_like(torch.cat([_wide(parameter.detach()) for parameter in alike]))
            for sides, alike in self._alike.items()
        }

    @torch.no_grad()
    def step(self, lr: float) -> None:
        for sides, alike in self._alike.items():
            gradient = torch.cat([_wide(p.grad) for p in alike if p.grad is not None])
            momentum = self._momentum[sides].lerp_(gradient, 1 - MOMENTUM)
            change = orthogonal(gradient.lerp(momentum, MOMENTUM)).float()
            changes = [
                (part.mT if _is_tall(p) else part).view_as(p)
                for p, part in zip(alike, change.split([_count(p) for p in alike]), strict=True)
            ]
            scale = 0.2 * sides[1] ** 0.5
            torch._foreach_mul_(alike, 1 - lr * self._weight_decay)
            torch._foreach_add_(alike, changes, alpha=-lr * scale)


def _sides(matrices: Tensor) -> tuple[int, int]:
    """The shorter and the longer: those of one size are stepped together, lying if they stand."""
    rows, columns = matrices.shape[-2:]
    return min(rows, columns), max(rows, columns)


def _is_tall(matrices: Tensor) -> bool:
    return matrices.shape[-2] > matrices.shape[-1]


def _count(matrices: Tensor) -> int:
    return len(matrices) if matrices.ndim == 3 else 1


def _wide(matrices: Tensor) -> Tensor:
    """[matrices, shorter side, longer side]."""
    several = matrices.view(-1, *matrices.shape[-2:])
    return several.mT if _is_tall(several) else several


def orthogonal(matrices: Tensor) -> Tensor:
    """Moves every singular value near to 1 by a polynomial of the matrix, which takes products alone.

    matrices: [n, rows, columns], no more rows than columns.
    """
    x = matrices.bfloat16() if matrices.is_cuda else matrices
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(ROUNDS):
        gram = x @ x.mT
        twice = torch.baddbmm(gram, gram, gram, beta=-4.7750, alpha=2.0315)
        x = torch.baddbmm(x, twice, x, beta=3.4445)
    return x
