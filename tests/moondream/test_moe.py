import pytest
import reference
import torch
from tiny import tiny_config, tiny_model
from torch import Tensor

from kestrel_core.moondream.config import MoEConfig, TextConfig
from kestrel_core.moondream.moe import MoE
from kestrel_core.moondream.ops import plain
from kestrel_tools.parity.rounding import RoundedProducts


def experts(
    num_experts: int = 7, per_token: int = 3, seed: int = 0, inner: int = 5
) -> tuple[MoE, TextConfig]:
    moe = MoEConfig(num_experts, start_layer=0, experts_per_token=per_token, expert_inner_dim=inner)
    config = tiny_config(3, moe=moe)
    block = tiny_model(config, seed).text.blocks[0]
    assert isinstance(block.mlp, MoE)
    return block.mlp, config.text


def grouped(mlp: MoE, x: Tensor) -> Tensor:
    ids, weights = plain.route(mlp.router(x), mlp.experts_per_token)
    assert torch.equal(ids, mlp.route(x)[0]) and torch.equal(weights, mlp.route(x)[1])
    pairs = plain.experts(x, ids, weights, mlp.fc1.weight, mlp.fc2.weight)
    return plain.add_norm(torch.zeros_like(x), None, pairs, None)[0]


def inputs(count: int, seed: int = 0) -> Tensor:
    return torch.randn(count, 32, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(("num_experts", "per_token"), [(7, 3), (7, 1), (4, 4), (1, 1)])
def test_each_token_gets_the_weighted_sum_of_its_best_experts(num_experts: int, per_token: int) -> None:
    mlp, config = experts(num_experts, per_token, seed=per_token)
    x = inputs(23, seed=num_experts)
    block = {f"mlp.{name}": value.double() for name, value in mlp.state_dict().items()}
    expected = torch.stack([reference.experts(row, block, config) for row in x.double()])
    torch.testing.assert_close(mlp(x).double(), expected, atol=1e-5, rtol=1e-5)


def test_experts_are_listed_best_first_with_weights_that_add_up_to_one() -> None:
    mlp, _ = experts()
    ids, weights = mlp.route(inputs(20))
    assert ids.shape == weights.shape == (20, 3)
    assert all(len(set(row)) == 3 for row in ids.tolist())
    assert (weights.diff(dim=-1) <= 0).all()
    torch.testing.assert_close(weights.sum(-1), torch.ones(20))


@pytest.mark.parametrize("at_once", [False, True])
def test_experts_nobody_asked_for_are_not_computed(at_once: bool) -> None:
    mlp, _ = experts(inner=8)
    x = inputs(2)
    with torch.set_grad_enabled(not at_once):
        before, asked = mlp(x), mlp.route(x)[0].unique()
        idle = [e for e in range(7) if e not in asked.tolist()]
        assert idle
        mlp.fc1.weight[idle] = torch.nan
        mlp.fc2.weight[idle] = torch.nan
        assert torch.equal(mlp(x), before)


def test_a_token_does_not_depend_on_its_neighbours() -> None:
    mlp, _ = experts()
    x = inputs(16)
    alone = torch.cat([mlp(row[None]) for row in x])
    torch.testing.assert_close(mlp(x), alone, atol=1e-6, rtol=1e-5)
    order = torch.randperm(16, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(mlp(x[order]), mlp(x)[order], atol=1e-6, rtol=1e-5)


def test_bfloat16_stays_within_its_rounding() -> None:
    mlp, _ = experts()
    x = inputs(64).bfloat16()
    exact = mlp(x.float())
    chosen = mlp.route(x.float())[0]
    with RoundedProducts():
        rounded, ids = mlp.bfloat16()(x), mlp.route(x)[0]
    assert rounded.dtype == torch.bfloat16
    same = (ids == chosen).all(-1)  # rounding may decide a near-tie between experts differently
    assert same.sum() > 50
    error = (rounded.float() - exact)[same].norm() / exact[same].norm()
    assert error < 1e-2


@pytest.mark.parametrize("count", [1, 2, 23])
@pytest.mark.parametrize(("num_experts", "per_token"), [(7, 3), (4, 4), (1, 1)])
def test_grouped_by_expert_they_give_the_same(count: int, num_experts: int, per_token: int) -> None:
    mlp, _ = experts(num_experts, per_token)
    x = inputs(count)
    torch.testing.assert_close(grouped(mlp, x), mlp(x), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("count", [1, 2, 61])
@pytest.mark.parametrize(("num_experts", "per_token"), [(7, 3), (4, 4), (1, 1)])
def test_all_experts_in_one_call_give_the_same(count: int, num_experts: int, per_token: int) -> None:
    mlp, _ = experts(num_experts, per_token, inner=8)
    calls: list[Tensor | int] = []
    for layer in (mlp.fc1, mlp.fc2):
        layer.register_forward_pre_hook(lambda _, given: calls.append(given[1]))
    x = torch.randn(count, 32)
    with torch.inference_mode():
        at_once = mlp(x)
    assert [type(of) for of in calls] == [Tensor, Tensor]
    calls.clear()
    torch.testing.assert_close(at_once, mlp(x), atol=1e-6, rtol=1e-5)  # with gradients: one after the other
    assert {type(of) for of in calls} == {int}


def test_without_that_call_they_are_computed_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    mlp, _ = experts(inner=8)
    x = torch.randn(9, 32)
    with torch.inference_mode():
        at_once = mlp(x)
        monkeypatch.delattr(torch.nn.functional, "grouped_mm")
        torch.testing.assert_close(mlp(x), at_once, atol=1e-6, rtol=1e-5)
