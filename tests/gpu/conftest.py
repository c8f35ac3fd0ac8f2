"""What tests on a GPU share."""

from collections.abc import Iterator

import pytest
import torch
from cuda_tensors import CUDA

from kestrel_core.moondream.ops import plain
from kestrel_core.moondream.ops.choose import choose_fused
from kestrel_core.moondream.ops.protocol import Fused


@pytest.fixture(scope="module")
def kernels() -> Fused:
    chosen = choose_fused(CUDA)
    assert chosen is not plain, "the kernel language comes with torch for CUDA"
    return chosen


@pytest.fixture(autouse=True)
def exact_products() -> Iterator[None]:
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = False
    yield
    torch.backends.cuda.matmul.allow_tf32 = before
