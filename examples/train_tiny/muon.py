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
        self._alike: dict[torch.Size, list[nn.Parameter]] = defaultdict(list)
        for parameter in parameters:
            self._alike[parameter.shape].append(parameter)
        self._momentum = {
            shape: torch.zeros(len(alike), *shape, device=alike[0].device)
            for shape, alike in self._alike.items()
        }

    @torch.no_grad()
    def step(self, lr: float) -> None:
        for shape, alike in self._alike.items():
            gradient = torch.stack([p.grad for p in alike if p.grad is not None])
            momentum = self._momentum[shape].lerp_(gradient, 1 - MOMENTUM)
            change = orthogonal(gradient.lerp(momentum, MOMENTUM))
            scale = 0.2 * max(shape[-2:]) ** 0.5
            torch._foreach_mul_(alike, 1 - lr * self._weight_decay)
            torch._foreach_add_(alike, list(change.float().unbind()), alpha=-lr * scale)


def orthogonal(matrices: Tensor) -> Tensor:
    """Moves every singular value near to 1 by a polynomial of the matrix, which takes products alone."""
    x = matrices.bfloat16() if matrices.is_cuda else matrices
    tall = x.shape[-2] > x.shape[-1]
    if tall:
        x = x.mT
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(ROUNDS):
        gram = x @ x.mT
        x = 3.4445 * x + (-4.7750 * gram + 2.0315 * (gram @ gram)) @ x
    return x.mT if tall else x
