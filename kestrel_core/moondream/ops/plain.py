"""The steps of `ops.protocol.Fused` in plain torch, on any device: what the kernels are tested against."""

from collections.abc import Callable, Mapping, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from kestrel_core.moondream.lora import TARGETS, LowRank, Target, grouped
from kestrel_core.moondream.ops.protocol import (
    Cells,
    Heads,
    Norm,
    Pairs,
    RotaryTables,
    Rotated,
    Scaled,
    StepAdapters,
    TauWeights,
)

name = "torch"
early = False

FLOAT8 = torch.float8_e4m3fn
FLOAT8_MAX = 448.0


def add_norm(x: Tensor, y: Tensor | None, pairs: Pairs | None, norm: Norm | None) -> tuple[Tensor, Tensor]:
    total = x if y is None else x + y
    if pairs is not None:
        num_tokens, top = pairs.weights.shape
        values = pairs.values if pairs.rows is None else pairs.values[pairs.rows]
        weighted = pairs.weights.float()[..., None] * values.view(num_tokens, top, -1).float()
        total = (total.float() + weighted.sum(1)).to(x.dtype)
    if norm is None:
        return total, total
    return total, F.layer_norm(total, (total.shape[-1],), norm.weight, norm.bias, norm.eps)


def add_norm_float8(x: Tensor, y: Tensor | None, norm: Norm) -> tuple[Tensor, Scaled]:
    total, normed = add_norm(x, y, None, norm)
    return total, quantise(normed, gelu=False)


def add_norm_fixed(
    x: Tensor, y: Tensor | None, pairs: Pairs | None, norm: Norm, scale: float, keep: bool
) -> tuple[Tensor, Tensor | None, Tensor]:
    total, normed = add_norm(x, y, pairs, norm)
    return total, normed if keep else None, round_float8(normed, scale, gelu=False)


def round_float8(x: Tensor, scale: float, gelu: bool) -> Tensor:
    wide = F.gelu(x.float(), approximate="tanh") if gelu else x.float()
    return (wide / scale).clamp(-FLOAT8_MAX, FLOAT8_MAX).to(FLOAT8)


def quantise(x: Tensor, gelu: bool) -> Scaled:
    wide = F.gelu(x.float(), approximate="tanh") if gelu else x.float()
    scales = wide.abs().amax(-1).clamp(min=1e-12) / FLOAT8_MAX
    return Scaled((wide / scales[:, None]).clamp(-FLOAT8_MAX, FLOAT8_MAX).to(FLOAT8), scales)


def linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.linear(x, weight, bias)


def linear_sum(x: Tensor, weight: Tensor, y: Tensor, other: Tensor, bias: Tensor) -> Tensor:
    return F.linear(x, weight, bias).addmm_(y, other.T)


def rotate(
    packed: Tensor,
    positions: Tensor,
    tables: RotaryTables,
    heads: Heads,
    tau: TauWeights | None,
    kv: Cells | None,
    inner_dim: int,
) -> Rotated:
    qkv_dim = (heads.num + 2 * heads.num_kv) * heads.dim
    qkv, inner = packed[:, :qkv_dim], packed[:, qkv_dim : qkv_dim + inner_dim]
    q, k, v = (
        part.float()
        for part in qkv.unflatten(-1, (-1, heads.dim)).split((heads.num, *2 * (heads.num_kv,)), 1)
    )
    if tau is not None:
        content = torch.tanh(F.linear(F.gelu(qkv), tau.matrix).float())
        position = 0.5 + torch.sigmoid(tau.alpha.float() * tables.log[positions, None])
        by_q, by_v = content.chunk(2, dim=-1)
        q, v = q * (by_q + position)[..., None], v * (by_v + position)[..., None]
    cos, sin = tables.cos[positions, None], tables.sin[positions, None]
    q, k, v = (part.to(packed.dtype) for part in (_rotate(q, cos, sin), _rotate(k, cos, sin), v))
    if kv is not None:
        store_cells(kv.k, kv.cells, k, kv.k_scale)
        store_cells(kv.v, kv.cells, v, kv.v_scale)
        k, v = kv.k, kv.v
    return Rotated(q, k, v, F.gelu(inner, approximate="tanh"))


def store_cells(kept: Tensor, cells: Tensor, new: Tensor, scale: float) -> None:
    """Write rows to their cells of a layer, rounded and divided by `scale` where that is in float8."""
    if kept.dtype == FLOAT8:  # not every device copies by index in float8, but all copy bytes
        kept, new = kept.view(torch.uint8), round_float8(new, scale, gelu=False).view(torch.uint8)
    kept.index_copy_(0, cells, new)


def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    rotated = cos.shape[-1]
    a, b, rest = x.split((rotated, rotated, x.shape[-1] - 2 * rotated), dim=-1)
    return torch.cat((a * cos - b * sin, a * sin + b * cos, rest), dim=-1)


def route(scores: Tensor, top: int) -> tuple[Tensor, Tensor]:
    best, ids = scores.topk(top, dim=-1)
    return ids.int(), F.softmax(best, dim=-1, dtype=torch.float32).to(scores.dtype)


def experts(
    h: Tensor,
    ids: Tensor,
    weights: Tensor,
    fc1: Tensor,
    fc2: Tensor,
    adapters: StepAdapters | None = None,
) -> Pairs:
    if adapters is None:
        return grouped_experts(h, ids, weights, fc1, fc2, geglu, invert)
    order, ends = sort_pairs(ids, len(fc1))
    of_row, expert_of_row = adapters.rows.of_token[order // ids.shape[1]], ids.flatten()[order]
    x = h[order // ids.shape[1]]
    u = grouped_product(x, fc1, ends)
    adapt_pairs(u, x, of_row, expert_of_row, adapters.of("expert_fc1"))
    inner = geglu(u)
    values = grouped_product(inner, fc2, ends)
    adapt_pairs(values, inner, of_row, expert_of_row, adapters.of("expert_fc2"))
    return Pairs(values, weights, invert(order))


def adapt_pairs(y: Tensor, x: Tensor, of_row: Tensor, expert_of_row: Tensor, low_rank: LowRank) -> None:
    """Add to each row of y what its adapter has for its expert. Asks the host."""
    num_experts = low_rank.a.shape[1]
    for key, members in grouped(torch.where(of_row > 0, of_row * num_experts + expert_of_row, 0)):
        a, b = (stack[divmod(key, num_experts)] for stack in low_rank)
        y.index_add_(0, members, F.linear(F.linear(x[members], a), b))


def shrink(inputs: Mapping[Target, Tensor], adapters: StepAdapters, low: Tensor | None) -> Tensor:
    """[1, tokens, targets * the largest rank]."""
    for target, x in inputs.items():
        a, _ = adapters.of(target)
        if low is None:
            low = x.new_zeros((1, len(x), len(TARGETS) * a.shape[1]))
        columns = _columns(target, a.shape[1])
        for index, members in adapters.rows.groups:
            low[0, members, columns] = F.linear(x[members], a[index])
    assert low is not None
    return low


def expand(y: Tensor, low: Tensor, targets: Sequence[Target], adapters: StepAdapters, beside: bool) -> None:
    start = 0
    for target in targets:
        _, b = adapters.of(target)
        part = y[:, start : start + b.shape[1]]
        for index, members in adapters.rows.groups:
            part.index_add_(0, members, F.linear(low[0, members, _columns(target, b.shape[2])], b[index]))
        start += b.shape[1] if beside else 0


def _columns(target: Target, rank: int) -> slice:
    start = TARGETS.index(target) * rank
    return slice(start, start + rank)


def grouped_experts(
    h: Tensor,
    ids: Tensor,
    weights: Tensor,
    fc1: Tensor,
    fc2: Tensor,
    activate: Callable[[Tensor], Tensor],
    invert: Callable[[Tensor], Tensor],
) -> Pairs:
    """A grouped product for each matrix. The host does not learn which token chose which expert."""
    order, ends = sort_pairs(ids, len(fc1))
    values = grouped_product(activate(grouped_product(h[order // ids.shape[1]], fc1, ends)), fc2, ends)
    return Pairs(values, weights, invert(order))


def sort_pairs(ids: Tensor, num_experts: int) -> tuple[Tensor, Tensor]:
    """Pairs sorted by expert, and where those of each expert end, int32 [num_experts]."""
    assert num_experts <= 256
    of_expert, order = (
        ids.flatten().to(torch.uint8).sort(stable=True)
    )  # keys of a byte are sorted in one pass
    edges = torch.arange(num_experts, dtype=torch.uint8, device=ids.device)
    return order, torch.searchsorted(of_expert, edges, right=True, out_int32=True)


def invert(order: Tensor) -> Tensor:
    """The inverse of a permutation."""
    return torch.empty_like(order).scatter_(0, order, torch.arange(len(order), device=order.device))


def grouped_product(x: Tensor, weights: Tensor, ends: Tensor) -> Tensor:
    """Rows [ends[i - 1], ends[i]) of x times weights[i]. Only bfloat16 on CUDA leaves `ends` there."""
    if x.device.type == "cuda" and x.dtype == torch.bfloat16:
        return torch._grouped_mm(x, weights.transpose(1, 2), offs=ends)
    # Other dtypes are for comparisons, where speed does not matter.
    out = x.new_empty((len(x), weights.shape[1]))
    edges = [0, *ends.tolist()]
    for weight, start, stop in zip(weights, edges[:-1], edges[1:], strict=True):
        out[start:stop] = F.linear(x[start:stop], weight)
    return out


def geglu(u: Tensor) -> Tensor:
    value, gate = u.float().chunk(2, dim=-1)
    return (F.gelu(value) * (gate + 1.0)).to(u.dtype)


def gelu_linear(x: Tensor, layer: nn.Linear) -> Tensor:
    """The tanh GELU of a linear layer; on CUDA in the product's own epilogue."""
    if x.device.type == "cuda":
        return torch._addmm_activation(layer.bias, x, layer.weight.T, use_gelu=True)
    return F.gelu(layer(x), approximate="tanh")


def scaled_linear(x: Scaled, weight: Scaled, bias: Tensor) -> Tensor:
    """`weight` has a row for each output. The result has the dtype of the bias."""
    return torch._scaled_mm(
        x.values,
        weight.values.T,
        scale_a=x.scales[:, None],
        scale_b=weight.scales[None],
        bias=bias,
        out_dtype=bias.dtype,
        use_fast_accum=True,
    )
