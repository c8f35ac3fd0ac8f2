"""Mixture of experts: a router picks a few for each token, and their outputs are summed with weights."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from kestrel_core.moondream.config import MoEConfig
from kestrel_core.moondream.lora import Adapt, Target, no_adapters


class Experts(nn.Module):
    """One matrix per expert, stacked: [experts, out, in]. No bias."""

    def __init__(self, num_experts: int, in_dim: int, out_dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(num_experts, out_dim, in_dim))

    def forward(self, h: Tensor, of: int | Tensor) -> Tensor:
        """The product `of` one expert, by its index, or of all: so many rows of each, sorted by expert."""
        if isinstance(of, Tensor):
            return F.grouped_mm(h, self.weight.mT, offs=of.cumsum(0, dtype=torch.int32))
        return F.linear(h, self.weight[of])


def can_group(experts: nn.Module, rows: Tensor) -> bool:
    """Whether one call for all experts gives the same numbers as one for each.

    On a CPU it is the same loop of products, without the time that Python takes for it. Rows have to be whole
    units of 16 bytes, and older versions of torch do not have it.
    """
    if not hasattr(F, "grouped_mm"):
        return False
    is_plain = isinstance(experts, Experts) and rows.device.type == "cpu" and rows.dtype == torch.float32
    return is_plain and rows.shape[1] % 4 == 0 and not torch.is_grad_enabled()


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

    def forward(self, h: Tensor, adapt: Adapt = no_adapters) -> Tensor:
        ids, weights = self.route(h)
        # Sorted by expert, so that the rows of each are one slice, and all but the products is done once.
        order = ids.flatten().argsort(stable=True)
        tokens = order // self.experts_per_token
        counts = ids.flatten().bincount(minlength=self.router.out_features)
        each = counts.tolist()

        def products(target: Target, experts: Experts, rows: Tensor) -> Tensor:
            if adapt is no_adapters and can_group(experts, rows):
                at_once: Tensor = experts(rows, counts)
                return at_once
            parts = enumerate(zip(rows.split(each), tokens.split(each), strict=True))
            return torch.cat([adapt(target, x, experts(x, i), of, i) for i, (x, of) in parts if len(x)])

        activation, gate = products("expert_fc1", self.fc1, h.index_select(0, tokens)).chunk(2, dim=-1)
        # The exact GELU here, while dense blocks have the tanh form. The gate is centred at 1, not at 0.
        values = products("expert_fc2", self.fc2, F.gelu(activation) * (gate + 1.0))
        by_token = torch.empty_like(values).index_copy_(0, order, values).view(*ids.shape, -1)
        # A sum of many small terms: rounded once, at the end.
        return (weights[..., None] * by_token).sum(1, dtype=torch.float32).to(h.dtype)
