"""The text model once more, from its description: float64, token by token, expert by expert, nothing batched.

Takes the parameters of a `Text` by their names and shares no code with it.
"""

import math

import torch
from torch import Tensor

from kestrel_core.moondream.config import TextConfig
from kestrel_core.moondream.text import Text


def hidden_states(text: Text, x: Tensor, allowed: Tensor) -> Tensor:
    """[tokens, dim] behind the last block. Token i stands at position i and sees where `allowed[i]`."""
    config, weights = text.config, {name: value.double() for name, value in text.state_dict().items()}
    x = x.double()
    for layer in range(config.n_layers):
        block = {k.split(".", 2)[2]: v for k, v in weights.items() if k.startswith(f"blocks.{layer}.")}
        h = torch.stack([layer_norm(row, block["ln.weight"], block["ln.bias"]) for row in x])
        mixed = attention(h, block, config, allowed)
        mlp = experts if config.has_experts(layer) else dense
        x = torch.stack([row + mixed[i] + mlp(h[i], block, config) for i, row in enumerate(x)])
    return x


def layer_norm(row: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return (row - row.mean()) / (row.var(unbiased=False) + 1e-5).sqrt() * weight + bias


def attention(h: Tensor, block: dict[str, Tensor], config: TextConfig, allowed: Tensor) -> Tensor:
    heads, kv_heads, width = config.n_heads, config.n_kv_heads, config.head_dim
    queries, keys, values = [], [], []
    for position, row in enumerate(h):
        u = block["attn.qkv.weight"] @ row + block["attn.qkv.bias"]
        cuts = [*u.split(width)]
        q, k, v = cuts[:heads], cuts[heads : heads + kv_heads], cuts[heads + kv_heads :]
        if config.tau:
            place = 0.5 + torch.sigmoid(block["attn.tau.alpha"] * math.log(position + 1))
            by_q = torch.tanh(block["attn.tau.wq"] @ gelu(u)) + place
            by_v = torch.tanh(block["attn.tau.wv"] @ gelu(u)) + place
            q, v = [part * by_q[a] for a, part in enumerate(q)], [part * by_v[a] for a, part in enumerate(v)]
        queries.append([rotary(part, position, config) for part in q])
        keys.append([rotary(part, position, config) for part in k])
        values.append(v)
    rows = []
    for i in range(len(h)):
        seen = [j for j in range(len(h)) if allowed[i, j]]
        out = []
        for head in range(heads):
            shared = head // (heads // kv_heads)
            scores = torch.stack([queries[i][head] @ keys[j][shared] for j in seen]) / math.sqrt(width)
            weights = torch.softmax(scores, 0)
            out.append(sum(w * values[j][shared] for w, j in zip(weights, seen, strict=True)))
        rows.append(block["attn.proj.weight"] @ torch.cat(out) + block["attn.proj.bias"])
    return torch.stack(rows)


def rotary(head: Tensor, position: int, config: TextConfig) -> Tensor:
    half = config.head_dim // 4
    out = head.clone()
    for k in range(half):
        angle = position * config.rotary_base ** (-k / half)
        a, b = head[k], head[k + half]
        out[k] = a * math.cos(angle) - b * math.sin(angle)
        out[k + half] = a * math.sin(angle) + b * math.cos(angle)
    return out


def dense(row: Tensor, block: dict[str, Tensor], config: TextConfig) -> Tensor:
    inner = block["mlp.fc1.weight"] @ row + block["mlp.fc1.bias"]
    inner = 0.5 * inner * (1 + torch.tanh(math.sqrt(2 / math.pi) * (inner + 0.044715 * inner**3)))
    return block["mlp.fc2.weight"] @ inner + block["mlp.fc2.bias"]


def experts(row: Tensor, block: dict[str, Tensor], config: TextConfig) -> Tensor:
    assert config.moe is not None
    scores = (block["mlp.router.weight"] @ row + block["mlp.router.bias"]).tolist()
    chosen = sorted(range(len(scores)), key=lambda e: -scores[e])[: config.moe.experts_per_token]
    total, out = sum(math.exp(scores[e]) for e in chosen), torch.zeros_like(row)
    for e in chosen:
        u = block["mlp.fc1.weight"][e] @ row
        inner = gelu(u[: config.moe.expert_inner_dim]) * (u[config.moe.expert_inner_dim :] + 1)
        out += math.exp(scores[e]) / total * (block["mlp.fc2.weight"][e] @ inner)
    return out


def gelu(x: Tensor) -> Tensor:
    return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))
