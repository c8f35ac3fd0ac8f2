"""Readouts on the device: the rules of `readouts.plain`, for all rows at once and without asking the host.

A row is one readout. Everything that any row needs is computed for every row, and each row keeps its own
part: no value decides what is computed, so all of it can be captured into a graph. What does not fit a
graph's fixed tables (longer lists, log probabilities) runs through the same function, uncaptured.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from kestrel_core.loop.step import Kind, Readout, Sample, Size, Span
from kestrel_core.moondream.model import Moondream
from kestrel_core.runtime.readouts.plain import uniform
from kestrel_core.runtime.staging import Arrays, Field

CODES = {kind: code for code, kind in enumerate(Kind)}
GROUNDED, OBJECT, COORD, SIZE = (CODES[k] for k in (Kind.GROUNDED, Kind.OBJECT, Kind.COORD, Kind.SIZE))
TABLE_WIDTH = 4  # so many tokens of a row's `suppressed` or `choices` fit a captured readout
NONE = -1  # in such a table: the row has no list

NUM_VALUES = 5  # of a row's results: token, coordinate, width, height, finite


class Asked(NamedTuple):
    """What is read in each row, as device tensors."""

    slots: Tensor
    kinds: Tensor
    temperature: Tensor  # 0: greedy
    top_p: Tensor
    top_k: Tensor
    uniform: Tensor  # drawn on the host: the same number as in `readouts.plain`
    suppressed: Tensor  # [rows, width], shorter lists repeat their first token
    choices: Tensor

    def first(self, count: int) -> "Asked":
        return Asked(*(tensor[:count] for tensor in self))


class Form(NamedTuple):
    """What the rows need: regions and random draws cost time, and many steps have neither."""

    sampled: bool = False
    region: bool = False
    logprobs: int = 0
    lists: Arrays | None = None  # `suppressed` and `choices`, where they are longer than TABLE_WIDTH


def fields(max_rows: int) -> dict[str, Field]:
    return {
        "slots": (np.int64, (max_rows,)),
        "kinds": (np.int32, (max_rows,)),
        "temperature": (np.float32, (max_rows,)),
        "top_p": (np.float32, (max_rows,)),
        "top_k": (np.int32, (max_rows,)),
        "uniform": (np.float32, (max_rows,)),
        "suppressed": (np.int64, (max_rows, TABLE_WIDTH)),
        "choices": (np.int64, (max_rows, TABLE_WIDTH)),
    }


def write(spans: Sequence[Span], size: int, arrays: Arrays) -> Form:
    """Write what these spans read to the first rows of `size`; the others read a token for slot 0."""
    count = len(spans)
    readouts = [span.readout for span in spans]
    kinds = [CODES[readout.kind] for readout in readouts]  # type: ignore[union-attr]
    arrays["slots"][:count] = [span.slot for span in spans]
    arrays["kinds"][:count] = kinds
    for name in ("slots", "kinds"):
        arrays[name][count:size] = 0
    arrays["temperature"][:size] = 0.0
    sampled, logprobs = False, 0
    for row, (span, readout) in enumerate(zip(spans, readouts, strict=True)):
        sampling = span.sequence.sampling
        logprobs = max(logprobs, sampling.logprobs)
        if not sampling.is_greedy and kinds[row] < OBJECT and not readout.choices:  # type: ignore[union-attr]
            sampled = True
            arrays["temperature"][row] = sampling.temperature
            arrays["top_p"][row] = sampling.top_p
            arrays["top_k"][row] = sampling.top_k
            arrays["uniform"][row] = uniform(sampling.seed, span.draw)
    suppressed = _table([readout.suppressed for readout in readouts], size)  # type: ignore[union-attr]
    choices = _table([readout.choices for readout in readouts], size)  # type: ignore[union-attr]
    lists: Arrays | None = None
    if max(suppressed.shape[1], choices.shape[1]) > TABLE_WIDTH:
        lists = {"suppressed": suppressed[:count], "choices": choices[:count]}
    else:
        for name, table in (("suppressed", suppressed), ("choices", choices)):
            arrays[name][:size] = table[:, :1]  # the columns behind the table repeat its first one
            arrays[name][:size, : table.shape[1]] = table
    return Form(sampled, any(kinds), logprobs, lists)


def _table(lists: Sequence[Sequence[int]], size: int) -> np.ndarray[Any, Any]:
    """One row for each list. Shorter lists repeat their first token, which changes nothing: it is suppressed
    twice, or wins a tie against itself.
    """
    longest = max(map(len, lists), default=0)
    table = np.full((size, max(longest, 1)), NONE, np.int64)
    if longest:
        filled = [row for row, tokens in enumerate(lists) if tokens]
        table[filled] = [(*t, *(t[0],) * (longest - len(t))) for t in lists if t]
    return table


def read(model: Moondream, hidden: Tensor, asked: Asked, form: Form) -> tuple[Tensor, Tensor]:
    """From hidden states [rows, dim] to results [rows, values] and what each row is fed next [rows, dim]."""
    logits = model.text.logits(hidden).float()
    finite = torch.isfinite(logits).all(-1)
    logprobs = logits.log_softmax(-1) if form.logprobs else None
    token = _choose(logits, asked, form.sampled)
    feeds = model.text.embed(token)
    coord = torch.zeros_like(asked.uniform)
    size = coord[:, None].expand(-1, 2)
    if form.region:
        kinds, region = asked.kinds, model.region
        is_coord_token = token == model.config.tokenizer.coord_id
        reads_coord = (kinds == COORD) | (kinds == OBJECT) | ((kinds == GROUNDED) & is_coord_token)
        reads_size = kinds == SIZE
        coord_logits, size_logits = region.coord_logits(hidden), region.size_logits(hidden)
        coord = region.coord_of_bin(coord_logits.argmax(-1))
        size = region.size_of_bin(size_logits.argmax(-1))
        finite = (
            (finite | (kinds == COORD) | reads_size)
            & (torch.isfinite(coord_logits).all(-1) | ~reads_coord)
            & (torch.isfinite(size_logits).flatten(1).all(-1) | ~reads_size)
        )
        feeds = torch.where(reads_coord[:, None], region.encode_coord(coord), feeds)
        feeds = torch.where(reads_size[:, None], region.encode_size(size), feeds)
    results = [token[:, None].float(), coord[:, None], size, finite[:, None].float()]
    if logprobs is not None:
        values, ids = logprobs.topk(min(form.logprobs, logprobs.shape[-1]))
        results += [logprobs.gather(1, token[:, None]), values, ids.float()]
    return torch.cat(results, dim=-1), feeds


def _choose(logits: Tensor, asked: Asked, sampled: bool) -> Tensor:
    at = asked.suppressed.clamp(min=0)
    # A row without a list writes what is there already.
    logits = logits.scatter(1, at, torch.where(asked.suppressed == NONE, logits.gather(1, at), -torch.inf))
    token = logits.argmax(-1)
    if sampled:
        token = torch.where(asked.temperature > 0, _draw(logits, asked), token)
    best = logits.gather(1, asked.choices.clamp(min=0)).argmax(-1, keepdim=True)
    chosen = asked.choices.gather(1, best)[:, 0]
    return torch.where(chosen == NONE, token, chosen)


def _draw(logits: Tensor, asked: Asked) -> Tensor:
    """A draw from `plain.nucleus` in each row. The tokens of greedy rows mean nothing."""
    temperature = torch.where(asked.temperature > 0, asked.temperature, 1.0)[:, None]
    best, order = (logits / temperature).softmax(-1).sort(descending=True, stable=True)
    rank, top_k = torch.arange(logits.shape[-1], device=logits.device), asked.top_k[:, None]
    keep = (best.cumsum(-1) - best <= asked.top_p[:, None]) & ((rank < top_k) | (top_k == 0))
    kept = best * keep
    kept = kept / kept.sum(-1, keepdim=True)
    cumulative = kept.cumsum(-1)
    at = torch.searchsorted(cumulative, asked.uniform[:, None] * cumulative[:, -1:], right=True)
    last = kept.count_nonzero(-1)[:, None] - 1
    return order.gather(1, torch.minimum(at, last).clamp(min=0))[:, 0]


def samples(spans: Sequence[Span], results: Tensor, coord_id: int) -> dict[int, Sample]:
    """What `read` gave, by slot, once it is back on the host."""
    taken = {}
    for span, row in zip(spans, results.tolist(), strict=True):
        assert span.readout is not None
        token, coord, width, height, finite = row[:NUM_VALUES]
        taken[span.slot] = _sample(span.readout, int(token), coord, (width, height), finite != 0.0, coord_id)
        if span.sequence.sampling.logprobs and taken[span.slot].token is not None:
            logprob, *top = row[NUM_VALUES:]
            count = min(span.sequence.sampling.logprobs, len(top) // 2)
            ids = map(int, top[len(top) // 2 :][:count])
            pairs = tuple(zip(ids, top[:count], strict=True))
            taken[span.slot] = taken[span.slot]._replace(logprob=logprob, top=pairs)
    return taken


def _sample(
    readout: Readout, token: int, coord: float, size: tuple[float, float], finite: bool, coord_id: int
) -> Sample:
    kind = readout.kind
    if kind is Kind.TOKEN or (kind is Kind.GROUNDED and token != coord_id):
        return Sample(token, finite=finite)
    if kind is Kind.SIZE:
        return Sample(size=Size(*size), finite=finite)
    return Sample(None if kind is Kind.COORD else token, coord, finite=finite)
