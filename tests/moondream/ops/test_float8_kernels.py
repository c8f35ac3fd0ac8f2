"""The kernels of float8 with fixed scales against plain torch, on the CPU: interpreted, not compiled.

Where there is a CUDA device, tests/gpu/test_float8.py runs them for real.
"""

from collections.abc import Iterator
from importlib.util import find_spec
from types import ModuleType

import pytest
import torch
from float8_numbers import same_float8
from lora_rows import adapter_rows, drawn, mixed_stacks
from tiny import tiny_config
from torch import Tensor

from kestrel_core.moondream.ops import float8_experts, plain
from kestrel_core.moondream.ops.few_bits import pack_weights
from kestrel_core.moondream.ops.protocol import Norm, Pairs, StepAdapters

pytestmark = [
    pytest.mark.skipif(
        find_spec("triton") is None or torch.cuda.is_available(),
        reason="needs the kernel language, and no GPU",
    ),
    pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:Conversion of an array:DeprecationWarning"),
]


@pytest.fixture(scope="module")
def kernels() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_INTERPRET", "1")  # read at import, and again at every launch
        from kestrel_core.moondream.ops import kernels

        yield kernels


@pytest.fixture(scope="module")
def expert_kernels(kernels: ModuleType) -> ModuleType:
    from kestrel_core.moondream.ops import float8_expert_kernels

    return float8_expert_kernels


def randn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("gelu", [False, True])
@pytest.mark.parametrize("shape", [(3, 40), (130, 77)])
def test_numbers_are_rounded_by_a_scale_that_is_given(
    kernels: ModuleType, gelu: bool, shape: tuple[int, int]
) -> None:
    x = 5 * randn(*shape)
    x[0, :2] = torch.tensor([1e4, -1e4])  # cut off
    ours, expected = (ops.round_float8(x, 0.03, gelu).float() for ops in (kernels, plain))
    assert ours[0, 0] == 448 and ours[0, 1] == (0 if gelu else -448)
    assert same_float8(ours, expected)


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("has_pairs", [False, True])
def test_norms_are_rounded_by_a_scale_that_is_given(kernels: ModuleType, keep: bool, has_pairs: bool) -> None:
    x, y, norm = randn(5, 72), randn(5, 72, seed=1), Norm(randn(72, seed=10), randn(72, seed=11), 1e-5)
    pairs = Pairs(randn(15, 72, seed=2), randn(5, 3, seed=3), None) if has_pairs else None
    made = [ops.add_norm_fixed(x, y, pairs, norm, 0.011, keep) for ops in (kernels, plain)]
    (total, normed, small), (expected_total, expected_normed, expected_small) = made
    torch.testing.assert_close(total, expected_total, atol=1e-5, rtol=1e-5)
    assert (normed is not None) == keep
    if normed is not None:
        torch.testing.assert_close(normed, expected_normed, atol=1e-5, rtol=1e-5)
    assert same_float8(small.float(), expected_small.float())


@pytest.mark.parametrize("num_tokens", [17, 70, 300])
@pytest.mark.parametrize("adapted", [False, True])
def test_experts_in_float8(expert_kernels: ModuleType, num_tokens: int, adapted: bool) -> None:
    config = tiny_config(3)
    fc1, fc2 = (
        pack_weights(randn(6, 16, 32, seed=1), "fp8"),
        pack_weights(randn(6, 32, 8, seed=2), "fp8"),
    )
    h, scores = randn(num_tokens, 32, seed=3), randn(num_tokens, 6, seed=4)
    scores[:, 2] -= 100  # nobody asks for this one
    scores[:, 5] += 100 * (num_tokens != 70)  # and everybody for that, which is the last
    ids, weights = plain.route(scores, 2)
    h8 = plain.round_float8(h, 0.02, gelu=False)
    step = None
    if adapted:
        step = StepAdapters(
            adapter_rows(mixed_stacks(config.text, 8), drawn(num_tokens, seed=num_tokens), 16), 1
        )
    ours, expected = (
        ops.experts_float8(h, h8, ids, weights, fc1, fc2, 0.02, 0.1, step)
        for ops in (expert_kernels, float8_experts)
    )
    assert torch.equal(ours.rows, expected.rows)
    # The interpreter rounds some numbers of the activation wrongly, as `same_float8` says.
    by_row = (ours.values - expected.values).norm(dim=1) / expected.values.norm(dim=1)
    assert by_row.median() < 1e-4 and by_row.mean() < 0.03
