"""Readouts row by row, from hidden states to tokens, coordinates and sizes: the specification."""

import hashlib
import struct
from collections.abc import Sequence

import torch
from torch import Tensor

from kestrel_core.loop.step import Kind, Readout, Sample, Sampling, Size, Span
from kestrel_core.moondream.model import Moondream

_CHOOSE = (Kind.TOKEN, Kind.GROUNDED, Kind.OBJECT)


def read(model: Moondream, hidden: Tensor, spans: Sequence[Span]) -> list[Sample]:
    """hidden: [n, dim], the last state of each span, all of which have a readout."""
    samples = [Sample() for _ in spans]
    readouts = [span.readout for span in spans]
    chosen = [i for i, readout in enumerate(readouts) if readout is not None and readout.kind in _CHOOSE]
    if chosen:
        logits = model.text.logits(hidden[chosen]).float()
        for i, sample in zip(chosen, _choose(logits, [spans[i] for i in chosen]), strict=True):
            samples[i] = sample
    coord_id = model.config.tokenizer.coord_id
    coords = [i for i, readout in enumerate(readouts) if _reads_coord(readout, samples[i], coord_id)]
    if coords:
        logits = model.region.coord_logits(hidden[coords])
        values = model.region.coord_of_bin(logits.argmax(-1)).tolist()
        finite = torch.isfinite(logits).all(-1).tolist()
        for i, value, sound in zip(coords, values, finite, strict=True):
            samples[i] = samples[i]._replace(coord=value, finite=samples[i].finite and sound)
    sizes = [i for i, readout in enumerate(readouts) if readout is not None and readout.kind is Kind.SIZE]
    if sizes:
        logits = model.region.size_logits(hidden[sizes])
        pairs = model.region.size_of_bin(logits.argmax(-1)).tolist()
        finite = torch.isfinite(logits).flatten(1).all(-1).tolist()
        for i, (width, height), sound in zip(sizes, pairs, finite, strict=True):
            samples[i] = Sample(size=Size(width, height), finite=sound)
    return samples


def _reads_coord(readout: Readout | None, sample: Sample, coord_id: int) -> bool:
    assert readout is not None
    if readout.kind is Kind.GROUNDED:
        return sample.token == coord_id
    return readout.kind in (Kind.COORD, Kind.OBJECT)


def _choose(logits: Tensor, spans: Sequence[Span]) -> list[Sample]:
    finite = torch.isfinite(logits).all(-1).tolist()
    wanted = max(span.sequence.sampling.logprobs for span in spans)
    logprobs = logits.log_softmax(-1) if wanted else logits
    for row, span in enumerate(spans):
        assert span.readout is not None
        if span.readout.suppressed:
            logits[row, list(span.readout.suppressed)] = -torch.inf
    tokens: list[int] = logits.argmax(-1).tolist()
    for row, span in enumerate(spans):
        assert span.readout is not None
        if span.readout.choices:
            tokens[row] = span.readout.choices[int(logits[row, list(span.readout.choices)].argmax())]
        elif finite[row] and not span.sequence.sampling.is_greedy and span.readout.kind is not Kind.OBJECT:
            tokens[row] = _draw(logits[row], span.sequence.sampling, span.draw)
    samples = [Sample(token=token, finite=sound) for token, sound in zip(tokens, finite, strict=True)]
    for row, span in enumerate(spans):
        if span.sequence.sampling.logprobs:
            samples[row] = _with_logprobs(
                samples[row], tokens[row], logprobs[row], span.sequence.sampling.logprobs
            )
    return samples


def _draw(logits: Tensor, sampling: Sampling, draw: int) -> int:
    probabilities, order = nucleus(logits, sampling)
    cumulative = probabilities.cumsum(-1)
    at = torch.searchsorted(cumulative, uniform(sampling.seed, draw) * cumulative[-1], right=True)
    return int(order[min(int(at), int(probabilities.count_nonzero()) - 1)])


def nucleus(logits: Tensor, sampling: Sampling) -> tuple[Tensor, Tensor]:
    """What may be drawn: probabilities [vocabulary], highest first and with a sum of 1, and their tokens.

    A token is kept if the probabilities before it do not exceed `top_p`, so the likeliest is always kept.
    """
    best, order = (logits / sampling.temperature).softmax(-1).sort(descending=True, stable=True)
    keep = best.cumsum(-1) - best <= sampling.top_p
    if sampling.top_k:
        keep[sampling.top_k :] = False
    kept = best * keep
    return kept / kept.sum(), order


def uniform(seed: int, draw: int) -> float:
    """A number in [0, 1) that depends on a request's seed and the number of the draw alone."""
    digest = hashlib.blake2b(struct.pack("<qq", seed, draw), digest_size=8).digest()
    return (int.from_bytes(digest, "little") >> 11) * 2.0**-53


def _with_logprobs(sample: Sample, token: int, logprobs: Tensor, count: int) -> Sample:
    values, ids = logprobs.topk(min(count, len(logprobs)))
    top = tuple(zip(ids.tolist(), values.tolist(), strict=True))
    return sample._replace(logprob=float(logprobs[token]), top=top)
