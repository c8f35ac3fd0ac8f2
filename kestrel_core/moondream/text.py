"""The text decoder of both generations: parallel attention and MLP blocks over packed tokens.

The model keeps no KV. It is handed its attention as an `Attend`. Every tensor is packed `[tokens, ...]`, and
only the caller knows which token belongs to which sequence, and what it may see.
"""

import math
from collections.abc import Callable
from typing import NamedTuple, Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from kestrel_core.moondream.config import TextConfig
from kestrel_core.moondream.lora import Adapt, AdapterRows, adapting, no_adapters
from kestrel_core.moondream.moe import MoE

LN_EPS = 1e-5


class Attend(Protocol):
    """Attention over KV the caller keeps. q, k, v: [tokens, heads, head_dim], with fewer heads in k and v."""

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor: ...


@runtime_checkable
class OpenAttend(Attend, Protocol):
    """An attention whose KV a kernel may write that has just computed keys and values."""

    def cells(self, layer: int) -> tuple[Tensor, Tensor, Tensor, float, float]:
        """A layer's keys and values, [cells, kv_heads, head_dim] both, the tokens' cells [tokens], and the
        scales of keys and of values, which are 1 but in float8.
        """
        ...

    def read(self, layer: int, q: Tensor) -> Tensor:
        """What the call returns, when k and v are already written."""
        ...


# What `Text.forward` computes; `moondream.fast_text` has another way to compute it.
Forward = Callable[[Tensor, Tensor, Attend, AdapterRows | None], Tensor]


class Rotary(NamedTuple):
    """What a block needs to know about the tokens' positions, made once for all blocks. All float32."""

    cos: Tensor  # [tokens, 1, rotary_dim / 2]
    sin: Tensor
    log: Tensor  # [tokens, 1]: ln(position + 1), for tau


def rotary_at(positions: Tensor, config: TextConfig) -> Rotary:
    half = torch.arange(0, config.rotary_dim, 2, dtype=torch.float32, device=positions.device)
    frequencies = 1.0 / config.rotary_base ** (half / config.rotary_dim)
    at = positions.to(torch.float32)
    angles = torch.outer(at, frequencies)[:, None]
    return Rotary(angles.cos(), angles.sin(), torch.log(at + 1.0)[:, None])


def rotate(x: Tensor, at: Rotary) -> Tensor:
    """Rotate the first half of each head, entry k together with entry k + rotary_dim / 2. Rounded once."""
    rotated = at.cos.shape[-1]
    a, b, rest = x.split((rotated, rotated, x.shape[-1] - 2 * rotated), dim=-1)
    a, b = a.float(), b.float()
    pair = torch.cat((a * at.cos - b * at.sin, a * at.sin + b * at.cos), dim=-1)
    return torch.cat((pair.to(x.dtype), rest), dim=-1)


def gelu_tanh(x: Tensor) -> Tensor:
    """`F.gelu(x, approximate="tanh")`, which without oneDNN takes a CPU more than twice as long as this."""
    if x.device.type != "cpu" or x.dtype != torch.float32 or torch.backends.mkldnn.enabled:
        return F.gelu(x, approximate="tanh")
    inner = torch.addcmul(x, x, x * x, value=0.044715)
    return x * inner.mul_(2 * math.sqrt(2 / math.pi)).sigmoid_()  # (1 + tanh(u)) / 2 is the sigmoid of 2u


class MLP(nn.Module):
    def __init__(self, dim: int, inner_dim: int, out_dim: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(dim, inner_dim)
        self.fc2 = nn.Linear(inner_dim, out_dim)

    def forward(self, x: Tensor, adapt: Adapt = no_adapters) -> Tensor:
        inner = gelu_tanh(adapt("fc1", x, self.fc1(x)))
        return adapt("fc2", inner, self.fc2(inner))


class Tau(nn.Module):
    """A factor per head on queries and on values, from a token's content and from its position."""

    def __init__(self, config: TextConfig) -> None:
        super().__init__()
        self.wq = nn.Parameter(torch.empty(config.n_heads, config.qkv_dim))
        self.wv = nn.Parameter(torch.empty(config.n_heads, config.qkv_dim))
        self.alpha = nn.Parameter(torch.empty(config.n_heads))

    def forward(self, qkv: Tensor, at: Rotary) -> tuple[Tensor, Tensor]:
        """The factors on q and on v, each [tokens, heads, 1] in float32. They may be negative."""
        content = F.gelu(qkv)  # the exact GELU, of q, k and v together and before rotary
        position = 0.5 + torch.sigmoid(self.alpha.float() * at.log)
        both = torch.tanh(F.linear(content, torch.cat((self.wq, self.wv)))).float().unflatten(-1, (2, -1))
        by_q, by_v = (both + position[:, None])[..., None].unbind(1)
        return by_q, by_v


class TextAttention(nn.Module):
    def __init__(self, config: TextConfig) -> None:
        super().__init__()
        self.heads = (config.n_heads, config.n_kv_heads, config.n_kv_heads)
        self.qkv = nn.Linear(config.dim, config.qkv_dim)
        self.proj = nn.Linear(config.dim, config.dim)
        self.tau = Tau(config) if config.tau else None

    def project(self, h: Tensor, at: Rotary, adapt: Adapt = no_adapters) -> tuple[Tensor, Tensor, Tensor]:
        """q, k and v as they enter attention and the cache: [tokens, heads, head_dim]."""
        qkv = adapt("qkv", h, self.qkv(h))
        q, k, v = qkv.unflatten(-1, (sum(self.heads), -1)).split(self.heads, dim=1)
        if self.tau is not None:
            by_q, by_v = self.tau(qkv, at)
            q, v = q * by_q, v * by_v  # float32 here
        turned = rotate(torch.cat((q, k), dim=1), at).to(h.dtype)
        q, k = turned.split(self.heads[:2], dim=1)
        return q, k, v.to(h.dtype)

    def output(self, mixed: Tensor, h: Tensor, adapt: Adapt) -> Tensor:
        mixed = mixed.flatten(1)
        return adapt("input_proj", h, adapt("proj", mixed, self.proj(mixed)))


class Block(nn.Module):
    def __init__(self, config: TextConfig, layer: int) -> None:
        super().__init__()
        self.layer = layer
        self.ln = nn.LayerNorm(config.dim, LN_EPS)
        self.attn = TextAttention(config)
        moe = config.moe if config.has_experts(layer) else None
        self.mlp = MLP(config.dim, config.ff_dim, config.dim) if moe is None else MoE(config.dim, moe)

    def forward(
        self, x: Tensor, at: Rotary, attend: Attend, adapt: Adapt = no_adapters, wanted: Tensor | None = None
    ) -> Tensor:
        """The next block's x, of all tokens or of those that are wanted."""
        h = self.ln(x)
        mixed = attend(self.layer, *self.attn.project(h, at, adapt))
        if wanted is not None:
            x, h, mixed, adapt = x[wanted], h[wanted], mixed[wanted], adapting(adapt, wanted)
        out: Tensor = x + self.attn.output(mixed, h, adapt) + self.mlp(h, adapt)
        return out


class Text(nn.Module):
    def __init__(self, config: TextConfig) -> None:
        super().__init__()
        self.config = config
        self.wte = nn.Parameter(torch.empty(config.vocab_size, config.dim))
        self.blocks = nn.ModuleList(Block(config, layer) for layer in range(config.n_layers))
        self.post_ln = nn.LayerNorm(config.dim, LN_EPS)
        self.lm_head = nn.Linear(config.dim, config.vocab_size)

    def embed(self, token_ids: Tensor) -> Tensor:
        return F.embedding(token_ids, self.wte)

    def forward(
        self,
        x: Tensor,
        positions: Tensor,
        attend: Attend,
        adapters: AdapterRows | None = None,
        wanted: Tensor | None = None,
    ) -> Tensor:
        """x: [tokens, dim] at positions [tokens]; returns the hidden states, before the last norm.

        `wanted`: the tokens whose states are returned. Of the others the last block makes keys and values.
        """
        at, last = rotary_at(positions, self.config), len(self.blocks) - 1
        for layer, block in enumerate(self.blocks):
            adapt = no_adapters if adapters is None else adapters.in_block(layer)
            x = block(x, at, attend, adapt, wanted if layer == last else None)
        return x

    def logits(self, hidden: Tensor) -> Tensor:
        y: Tensor = self.lm_head(self.post_ln(hidden))
        return y
