import math
from dataclasses import replace

import pytest
import reference
import torch
import torch.nn.functional as F
from tiny import tiny_config, tiny_model
from torch import Tensor

from kestrel_core.moondream import fast_text
from kestrel_core.moondream.config import MoondreamConfig, TextConfig
from kestrel_core.moondream.ops import plain
from kestrel_core.moondream.text import Block, Tau, TextAttention, gelu_tanh, rotary_at, rotate

DENSE = tiny_config(2)
GROUPED = tiny_config(2, n_kv_heads=2)
ONE_KV_HEAD = tiny_config(2, n_kv_heads=1)
TAU_AND_EXPERTS = tiny_config(3)
TAU_ALONE = tiny_config(3, moe=None)


class MaskedAttention:
    """An `Attend` without a cache: the tokens at hand are all there are. Remembers which layers asked."""

    def __init__(self, allowed: Tensor) -> None:
        self.allowed = allowed
        self.layers: list[int] = []

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        self.layers.append(layer)
        group = q.shape[1] // k.shape[1]
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        scores = torch.einsum("qhd,khd->hqk", q, k) / math.sqrt(q.shape[-1])
        weights = scores.masked_fill(~self.allowed, -torch.inf).softmax(-1)
        return torch.einsum("hqk,khd->qhd", weights, v)


def causal(length: int, prefix: int = 0) -> Tensor:
    """Who sees whom: everybody the past, and the prefix itself in both directions."""
    i, j = torch.arange(length)[:, None], torch.arange(length)
    return (j <= i) | ((i < prefix) & (j < prefix))


def randn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(
    "config",
    [DENSE, GROUPED, ONE_KV_HEAD, TAU_ALONE, TAU_AND_EXPERTS],
    ids=["dense", "grouped", "one kv head", "tau", "tau and experts"],
)
@pytest.mark.parametrize("prefix", [0, 5], ids=["text", "image prefix"])
def test_hidden_states_are_those_of_the_description(config: MoondreamConfig, prefix: int) -> None:
    text, x, allowed = tiny_model(config, seed=3).text, randn(9, 32, seed=prefix), causal(9, prefix)
    ours = text(x, torch.arange(9), MaskedAttention(allowed))
    expected = reference.hidden_states(text, x, allowed)
    torch.testing.assert_close(ours.double(), expected, atol=2e-5, rtol=2e-5)


def test_the_reference_would_notice_a_wrong_mask() -> None:
    text, x = tiny_model(DENSE).text, randn(9, 32)
    ours = text(x, torch.arange(9), MaskedAttention(causal(9)))
    assert (ours.double() - reference.hidden_states(text, x, causal(9, 5))).abs().max() > 1e-2


@pytest.mark.parametrize("config", [DENSE, TAU_AND_EXPERTS], ids=["dense", "tau and experts"])
def test_states_that_are_wanted_are_those_of_all(config: MoondreamConfig) -> None:
    text, x, wanted = tiny_model(config, seed=3).text, randn(9, 32), torch.tensor([8, 2])
    everything = text(x, torch.arange(9), MaskedAttention(causal(9)))
    some = text(x, torch.arange(9), MaskedAttention(causal(9)), None, wanted)
    torch.testing.assert_close(some, everything[wanted], atol=1e-5, rtol=1e-5)


def test_every_block_asks_attention_for_its_own_layer() -> None:
    attend = MaskedAttention(causal(2))
    tiny_model(TAU_AND_EXPERTS).text(randn(2, 32), torch.arange(2), attend)
    assert attend.layers == [0, 1, 2]


def test_experts_stand_in_the_blocks_from_the_start_layer_on() -> None:
    assert [type(block.mlp).__name__ for block in tiny_model(TAU_AND_EXPERTS).text.blocks] == ["MLP"] + [
        "MoE"
    ] * 2


def test_logits_come_behind_the_last_norm() -> None:
    text, hidden = tiny_model(DENSE).text, 100 * randn(4, 32) + 7
    rows = [reference.layer_norm(r, text.post_ln.weight, text.post_ln.bias) for r in hidden]
    expected = torch.stack(rows) @ text.lm_head.weight.T + text.lm_head.bias
    torch.testing.assert_close(text.logits(hidden), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("onednn", [True, False])
def test_gelu_and_its_gradient_are_those_of_torch(onednn: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.mkldnn, "enabled", onednn)
    x = torch.linspace(-30, 30, 1001).requires_grad_()
    exact = x.detach().double().requires_grad_()
    ours, expected = gelu_tanh(x), F.gelu(exact, approximate="tanh")
    torch.testing.assert_close(ours.double(), expected, atol=2e-6, rtol=2e-6)
    ours.sum().backward()
    expected.sum().backward()
    assert x.grad is not None and exact.grad is not None
    torch.testing.assert_close(x.grad.double(), exact.grad, atol=2e-6, rtol=2e-6)
    assert gelu_tanh(torch.tensor([-1e20, 1e20])).tolist() == [0, torch.tensor(1e20)]


@pytest.mark.parametrize("base", [10_000.0, 1_500_000.0])
def test_half_of_a_head_turns_by_its_position(base: float) -> None:
    config = TextConfig(dim=64, n_heads=1, n_kv_heads=1, rotary_base=base)
    x, positions = randn(5, 1, 64), torch.tensor([0, 1, 17, 730, 2047])
    rotated = rotate(x, rotary_at(positions, config))
    for row, position in enumerate(positions.tolist()):
        expected = reference.rotary(x[row, 0].double(), position, config)
        torch.testing.assert_close(rotated[row, 0].double(), expected, atol=3e-4, rtol=0)
    assert torch.equal(rotated[0], x[0]), "position 0 rotates nothing"
    assert torch.equal(rotated[..., 32:], x[..., 32:]), "the second half passes"


def test_scores_depend_on_the_distance_alone() -> None:
    config = TextConfig(dim=16, n_heads=1, n_kv_heads=1)
    q, k = randn(1, 1, 16, seed=1), randn(1, 1, 16, seed=2)

    def score(at_q: int, at_k: int) -> float:
        rotated = [rotate(x, rotary_at(torch.tensor([p]), config)) for x, p in ((q, at_q), (k, at_k))]
        return float((rotated[0] * rotated[1]).sum())

    assert score(3, 1) == pytest.approx(score(502, 500), abs=1e-4)
    assert score(3, 1) != pytest.approx(score(3, 2), abs=1e-2)


def test_rotary_of_bfloat16_is_rounded_once() -> None:
    config, x = TextConfig(dim=16, n_heads=1, n_kv_heads=1), randn(6, 1, 16).bfloat16()
    at = rotary_at(torch.arange(600, 606), config)
    assert torch.equal(rotate(x, at), rotate(x.float(), at).bfloat16())


def test_tau_is_position_and_content_and_leaves_keys_alone() -> None:
    text = tiny_model(TAU_AND_EXPERTS).text
    block = text.blocks[0]
    assert isinstance(block, Block) and isinstance(block.attn.tau, Tau)
    attn, h, at = block.attn, randn(4, 32), rotary_at(torch.tensor([0, 1, 30, 100]), text.config)
    without = TextAttention(replace(text.config, tau=False)).requires_grad_(False)
    without.load_state_dict({k: v for k, v in attn.state_dict().items() if "tau" not in k})
    by_q, by_v = attn.tau(attn.qkv(h), at)
    (q, k, v), (plain_q, plain_k, plain_v) = attn.project(h, at), without.project(h, at)
    torch.testing.assert_close(q, plain_q * by_q)
    torch.testing.assert_close(v, plain_v * by_v)
    assert torch.equal(k, plain_k)
    attn.tau.wq.zero_()
    attn.tau.wv.zero_()
    for factors in attn.tau(attn.qkv(h), at):
        assert torch.equal(factors[0], torch.ones(4, 1)), "at position 0 the position says nothing"
        assert ((factors > 0.5) & (factors < 1.5)).all() and not torch.equal(factors[1], factors[3])


def test_a_factor_of_tau_may_turn_negative() -> None:
    tau = Tau(TAU_ALONE.text).requires_grad_(False)
    tau.wq.fill_(-1)
    tau.wv.fill_(1)
    tau.alpha.fill_(-50)
    by_q, by_v = tau(torch.full((1, 96), 3.0), rotary_at(torch.tensor([99]), TAU_ALONE.text))
    torch.testing.assert_close(by_q, torch.full((1, 4, 1), -0.5))
    torch.testing.assert_close(by_v, torch.full((1, 4, 1), 1.5))


# The fast way, over plain operations; what kernels make of them is tests/moondream/test_kernels.py's affair.


class StoredAttention(MaskedAttention):
    """The same over a cache that others write: one cell a token, in no order."""

    def __init__(self, allowed: Tensor, config: TextConfig) -> None:
        super().__init__(allowed)
        shape = (config.n_layers, len(allowed) + 7, config.n_kv_heads, config.head_dim)
        self.k, self.v = torch.full(shape, torch.nan), torch.full(shape, torch.nan)
        self.at = torch.randperm(shape[1], generator=torch.Generator().manual_seed(4))[: len(allowed)]

    def cells(self, layer: int) -> tuple[Tensor, Tensor, Tensor, float, float]:
        return self.k[layer], self.v[layer], self.at, 1.0, 1.0

    def read(self, layer: int, q: Tensor) -> Tensor:
        return self(layer, q, self.k[layer, self.at], self.v[layer, self.at])


@pytest.mark.parametrize(
    "config",
    [DENSE, GROUPED, ONE_KV_HEAD, TAU_ALONE, TAU_AND_EXPERTS],
    ids=["dense", "grouped", "one kv head", "tau", "tau and experts"],
)
@pytest.mark.parametrize("is_open", [False, True], ids=["handed over", "stored"])
@pytest.mark.parametrize("length", [1, 9, fast_text.PACKED_TOKENS + 1])
def test_the_fast_way_computes_the_same(config: MoondreamConfig, is_open: bool, length: int) -> None:
    text, x, positions = tiny_model(config, seed=3).text, randn(length, 32), torch.arange(length) * 3 % 128
    expected = text(x, positions, MaskedAttention(causal(length)))
    before = {name: value.clone() for name, value in text.state_dict().items()}
    fast = fast_text.FastText(text, plain)
    attend = StoredAttention(causal(length), config.text) if is_open else MaskedAttention(causal(length))
    given = x.clone()
    torch.testing.assert_close(fast(x, positions, attend), expected, atol=2e-5, rtol=2e-5)
    assert attend.layers == [0, 1, 2]
    assert torch.equal(x, given), "the caller's rows are the caller's"
    for name, value in text.state_dict().items():
        assert torch.equal(value, before[name]), name


def test_matrices_multiplied_together_are_not_held_twice() -> None:
    text = tiny_model(DENSE).text
    fast_text.FastText(text, plain)
    for block in text.blocks:
        assert isinstance(block, Block)
        storages = {layer.weight.untyped_storage().data_ptr() for layer in (block.attn.qkv, block.mlp.fc1)}
        assert len(storages) == 1
