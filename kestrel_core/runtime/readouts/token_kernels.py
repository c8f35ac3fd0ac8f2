"""The readout of most steps in one launch: the likeliest token of each row, as `readouts.batched` finds it.

For rows that read a token, greedily and without log probabilities. What lies behind the logits takes some 25
launches there, which a step of one row feels.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor, nn

from kestrel_core.moondream.model import Moondream
from kestrel_core.moondream.ops.protocol import Fused, Norm
from kestrel_core.runtime.readouts.batched import NONE, NUM_VALUES, TABLE_WIDTH, Asked

NO_TOKEN = tl.constexpr(NONE)
BLOCK = 8192  # logits read at a time
WARPS = 16


@triton.jit
def _unless_suppressed(x: tl.tensor, at: tl.tensor, table: tl.tensor, WIDTH: tl.constexpr) -> tl.tensor:
    for column in tl.static_range(WIDTH):
        x = tl.where(at == tl.load(table + column), float("-inf"), x)
    return x


@triton.jit
def _read_tokens(
    logits: tl.tensor,
    slots: tl.tensor,
    suppressed: tl.tensor,
    choices: tl.tensor,
    embeddings: tl.tensor,
    feeds: tl.tensor,
    results: tl.tensor,
    vocab_size: tl.tensor,
    dim: tl.tensor,
    WIDTH: tl.constexpr,
    VALUES: tl.constexpr,
    BLOCK: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_V: tl.constexpr,
) -> None:
    row = tl.program_id(0).to(tl.int64)
    of_row = logits + row * vocab_size
    table = suppressed + row * WIDTH
    lanes = tl.arange(0, BLOCK)
    best = tl.full((BLOCK,), float("-inf"), tl.float32)
    best_at = lanes
    strange = tl.zeros((BLOCK,), tl.int32)
    following = tl.load(of_row + lanes, mask=lanes < vocab_size, other=0.0)
    for start in range(0, vocab_size, BLOCK):
        at, ahead = start + lanes, start + BLOCK + lanes
        x = following.to(tl.float32)
        following = tl.load(of_row + ahead, mask=ahead < vocab_size, other=0.0)
        strange = strange | ((x != x) | (tl.abs(x) == float("inf"))).to(tl.int32)
        x = _unless_suppressed(tl.where(at < vocab_size, x, float("-inf")), at, table, WIDTH)
        better = x > best  # so the first of equals stays
        best = tl.where(better, x, best)
        best_at = tl.where(better, at, best_at)
    peak = tl.max(best, axis=0)
    token = tl.min(tl.where(best == peak, best_at, vocab_size - 1), axis=0).to(tl.int64)
    chosen = tl.load(choices + row * WIDTH)
    if chosen != NO_TOKEN:
        token = chosen
        highest = _unless_suppressed(tl.load(of_row + chosen).to(tl.float32), chosen, table, WIDTH)
        for column in tl.static_range(1, WIDTH):
            other = tl.load(choices + row * WIDTH + column)
            value = _unless_suppressed(tl.load(of_row + other).to(tl.float32), other, table, WIDTH)
            token = tl.where(value > highest, other, token)
            highest = tl.maximum(highest, value)
    finite = 1.0 - tl.max(strange, axis=0).to(tl.float32)
    value_at = tl.arange(0, BLOCK_V)
    read = tl.where(value_at == 0, token.to(tl.float32), tl.where(value_at == VALUES - 1, finite, 0.0))
    tl.store(results + row * VALUES + value_at, read, mask=value_at < VALUES)
    d = tl.arange(0, BLOCK_D)
    embedding = tl.load(embeddings + token * dim + d, mask=d < dim, other=0.0)
    tl.store(feeds + tl.load(slots + row) * dim + d, embedding, mask=d < dim)


def read_tokens(logits: Tensor, asked: Asked, embeddings: Tensor, feeds: Tensor, results: Tensor) -> None:
    """Write each row's values to `results`, and what its slot is fed next to `feeds`."""
    num_rows, vocab_size = logits.shape
    dim = embeddings.shape[1]
    _read_tokens[(num_rows,)](
        logits,
        asked.slots,
        asked.suppressed,
        asked.choices,
        embeddings,
        feeds,
        results,
        vocab_size,
        dim,
        WIDTH=TABLE_WIDTH,
        VALUES=NUM_VALUES,
        BLOCK=min(BLOCK, triton.next_power_of_2(vocab_size)),
        BLOCK_D=triton.next_power_of_2(dim),
        BLOCK_V=triton.next_power_of_2(NUM_VALUES),
        num_warps=WARPS,
    )


class TokenReadout:
    """`batched.read` for the plainest form, and the norm and the output layer before it by `fused`."""

    def __init__(self, model: Moondream, fused: Fused) -> None:
        text = model.text
        self._fused = fused
        self._norm = Norm.of(text.post_ln)
        self._output: nn.Module = text.lm_head
        self._embeddings = text.wte

    def __call__(self, hidden: Tensor, asked: Asked, feeds: Tensor, results: Tensor) -> None:
        _, normed = self._fused.add_norm(hidden, None, None, self._norm)
        output = self._output
        if isinstance(output, nn.Linear):
            logits = self._fused.linear(normed, output.weight, output.bias)
        else:  # packed: its weight as such would be unpacked in every step
            logits = output(normed)
        read_tokens(logits, asked, self._embeddings, feeds, results)


def try_out(model: Moondream, fused: Fused) -> TokenReadout:
    """Read one row: the kernel is compiled here, or it fails."""
    made, wte = TokenReadout(model, fused), model.text.wte
    zero, none = wte.new_zeros(1), torch.full((1, TABLE_WIDTH), NONE, device=wte.device)
    asked = Asked(zero.long(), zero.int(), zero, zero, zero.int(), zero, none, none)
    made(
        wte.new_zeros((1, wte.shape[1])),
        asked,
        torch.zeros_like(wte[:1]),
        zero.new_zeros((1, NUM_VALUES)).float(),
    )
    return made
