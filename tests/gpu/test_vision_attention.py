"""Attention of our own for heads of 72, on the device it is written for."""

import pytest
import torch
from cuda_tensors import CUDA, assert_near, randn
from torch.nn.attention import SDPBackend, sdpa_kernel

from kestrel_core.moondream.fast_vision import attend
from kestrel_core.moondream.ops.cubins import CannotBuild
from kestrel_core.moondream.ops.vision_attention import Shape, VisionAttention

pytestmark = pytest.mark.gpu

SHAPE = Shape(num_heads=16, head_dim=72, num_patches=729)


def build(float8: bool = False) -> VisionAttention:
    try:
        return VisionAttention(SHAPE, CUDA, float8=float8)
    except CannotBuild as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("num_crops", [1, 2, 3, 9, 37, 56])
def test_results_are_those_of_plain_attention(num_crops: int) -> None:
    ours = build()
    qkv = 1.5 * randn(num_crops * 729, 3 * 1152, seed=num_crops, dtype=torch.bfloat16)
    with sdpa_kernel(SDPBackend.MATH):
        expected = attend(qkv.float(), num_crops, 16)
    assert_near(ours(qkv, num_crops, 16).float(), expected, 5e-3)


def test_a_graph_replays_it() -> None:
    ours = build()
    qkv = randn(9 * 729, 3 * 1152, dtype=torch.bfloat16)
    ours(qkv, 9, 16)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        made = ours(qkv, 9, 16)
    qkv.copy_(randn(9 * 729, 3 * 1152, seed=1, dtype=torch.bfloat16))
    graph.replay()
    assert torch.equal(made, ours(qkv, 9, 16))


def test_results_in_float8_are_rounded_under_a_scale() -> None:
    ours = build(float8=True)
    qkv = randn(2 * 729, 3 * 1152, dtype=torch.bfloat16)
    rounded = (16 * attend(qkv.float(), 2, 16)).to(torch.float8_e4m3fn)
    assert_near(ours(qkv, 2, 16, 16.0).float(), rounded.float(), 3e-2)
