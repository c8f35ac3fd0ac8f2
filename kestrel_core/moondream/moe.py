"""Mixture of experts: a router picks a few for each token, and their outputs are summed with weights."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from kestrel_core.moondream.config import MoEConfig
from kestrel_core.moondream.lora import Adapt, no_adapters


class Experts(nn.Module):
    """One matrix per expert, stacked: [experts, out, in]. No bias."""

    def __init__(self, num_experts: int, in_dim: int, out_dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(num_experts, out_dim, in_dim))

    def forward(self, h: Tensor, index: int) -> Tensor:
        return F.linear(h, self.weight[index])


class MoE(nn.Module):
    def __init__(self, dim: int, config: MoEConfig) -> None:
        super().__init__()
        self.experts_per_token = config.experts_per_token
        self.router = nn.Linear(dim, config.num_experts)
        self.fc1 = Experts(config.num_experts, dim, 2 * config.expert_inner_dim)
        self.fc2 = Experts(config.num_experts, config.expert_inner_dim, dim)

    def route(self, h: Tensor) -> tuple[Tensor, Tensor]:
        """Each token's expert ids, best first, and their weights: [tokens, experts_per_token] both."""
        best, ids = self.router(h).topk(self.experts_per_token, dim=-1)
        return ids, F.softmax(best, dim=-1, dtype=torch.float32).to(h.dtype)

    def expert(self, index: int, h: Tensor, tokens: Tensor, adapt: Adapt) -> Tensor:
        """Expert `index` for rows h, which are these tokens of the step."""
        both = adapt("expert_fc1", h, self.fc1(h, index), tokens, index)
        activation, gate = both.chunk(2, dim=-1)
        # The exact GELU here, while dense blocks have the tanh form. The gate is centred at 1, not at 0.
        inner = F.gelu(activation) * (gate + 1.0)
        return adapt("expert_fc2", inner, self.fc2(inner, index), tokens, index)

    def forward(self, h: Tensor, adapt: Adapt = no_adapters) -> Tensor:
        ids, weights = self.route(h)
        out = torch.zeros_like(h, dtype=torch.float32)  # a sum of many small terms: rounded once, at the end
        for index in ids.unique().tolist():
            tokens, ranks = (ids == index).nonzero(as_tuple=True)
            values = self.expert(index, h[tokens], tokens, adapt)
            out.index_add_(0, tokens, (weights[tokens, ranks, None] * values).float())
        return out.to(h.dtype)
