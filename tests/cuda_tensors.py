"""Random tensors on a CUDA device, and how near two of them are."""

import torch
from torch import Tensor

CUDA = torch.device("cuda")


def randn(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(shape, generator=torch.Generator(CUDA).manual_seed(seed), device=CUDA).to(dtype)


def assert_near(ours: Tensor, expected: Tensor, limit: float) -> None:
    assert ours.dtype == expected.dtype and ours.shape == expected.shape
    assert torch.isfinite(ours).all()
    difference = (ours.float() - expected.float()).square().mean().sqrt()
    assert float(difference) <= limit * float(expected.float().square().mean().sqrt())
