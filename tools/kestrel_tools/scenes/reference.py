"""What plain torch would have chosen: recorded inputs fed once more, and the logits behind every choice.

All positions of a request are known beforehand, so those of all requests about a picture go through the
network in one pass. Each choice is judged in the state that led to it, whatever was chosen before.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from kestrel_core.loop.step import Input, Kind, PreparedImage, Readout, Running, Span
from kestrel_core.moondream.model import Moondream
from kestrel_core.protocol.errors import InvalidRequest, KestrelError
from kestrel_core.protocol.messages import Request, Settings
from kestrel_core.runtime.attention.sdpa import SdpaAttention
from kestrel_core.runtime.batch import make_batch
from kestrel_core.runtime.kv_cache import KVCache
from kestrel_core.runtime.vision.image_encoder import encode_image
from kestrel_core.skills.registry import builtin_skills
from kestrel_core.skills.spec import Language

from .record import Choice, Recorded

NOT_TOKENS = (Kind.COORD, Kind.SIZE)


class Reading(NamedTuple):
    """A choice, and where in its sequence it was made."""

    at: int  # index of the input after which it was read
    readout: Readout
    choice: Choice


@dataclass(frozen=True, slots=True)
class Walk:
    """All that a recorded request fed, and what it read on the way."""

    recorded: Recorded
    inputs: tuple[Input, ...]
    readings: tuple[Reading, ...]

    @property
    def with_image(self) -> bool:
        return self.recorded.crops is not None


class Judged(NamedTuple):
    """One choice beside the reference. A coordinate and each side of a size are choices of their own."""

    kind: str
    chosen: int  # a token or a bin
    best: int  # the reference's
    gap: float  # of their logits; 0: the reference chooses the same, or may
    spread: float  # standard deviation of the row's logits
    largest: float  # of them, by magnitude
    noise: float | None = None  # how far the recorded two likeliest are apart, less what they are here


def retrace(recorded: Recorded, settings: Settings, language: Language) -> Walk:
    """Has the skill read the samples once more: what it says to feed must be what was recorded."""
    skill = builtin_skills()[recorded.skill]
    image = object() if recorded.crops is not None else None  # skills only ask whether there is one
    request = Request(recorded.skill, recorded.arguments, image, settings)
    readings: list[Reading] = []
    try:
        inputs, reply = list(skill.prompt(request, language).inputs), skill.reply(request, language)
        ended = False
        for choice in recorded.choices:
            readout = reply.readout()
            if ended or readout is None or readout.kind is not choice.kind:
                raise _unlike(recorded, len(readings))
            readings.append(Reading(len(inputs) - 1, readout, choice))
            outcome = reply.take(choice.sample)
            if outcome.feed != choice.fed:
                raise _unlike(recorded, len(readings) - 1)
            inputs += choice.fed if choice.fed is not None else (choice.sample.feed,)
            ended = outcome.finish is not None
    except (AssertionError, IndexError):  # a reply that is given what it did not ask for
        raise _unlike(recorded, len(readings) - 1) from None
    return Walk(recorded, tuple(inputs), tuple(readings))


def _unlike(recorded: Recorded, index: int) -> KestrelError:
    return InvalidRequest(
        f"{recorded}: choice {index} cannot come after those before it; was it recorded by another version?"
    )


class Reference:
    def __init__(self, network: Moondream) -> None:
        self._network = network

    @torch.inference_mode()
    def judge(self, image: PreparedImage, walks: Sequence[Walk]) -> list[list[Judged]]:
        """Those of each walk; all with an image have this one."""
        return [
            self._judge_walk(walk, hidden)
            for walk, hidden in zip(walks, self._hidden(image, walks), strict=True)
        ]

    def _hidden(self, image: PreparedImage, walks: Sequence[Walk]) -> Sequence[Tensor]:
        """Of each walk's inputs, before the last norm: [inputs, dim]."""
        network, weight = self._network, self._network.text.wte
        length = network.config.image_prefix_length
        # The image fills one page, which the walks share. Page 0 is nobody's.
        spans, num_pages = [Span(Running(0, [1]), 0, length, None, image)], 2
        for walk in walks:
            start = length if walk.with_image else 0
            own = range(num_pages, num_pages - (-len(walk.inputs) // length))
            pages = [1, *own] if walk.with_image else [*own]
            spans.append(Span(Running(0, pages), start, start + len(walk.inputs), walk.inputs))
            num_pages = own.stop
        kv_cache = KVCache(network.config.text, num_pages, length, weight.device, weight.dtype)
        batch = make_batch(
            spans,
            {},
            network,
            kv_cache,
            lambda image: encode_image(network.vision, torch.from_numpy(image.crops), image.tiling),
        )
        attend = SdpaAttention(kv_cache, batch.spans, batch.starts, batch.cells)
        hidden: Tensor = network.text(batch.x, batch.positions, attend)
        return torch.split(hidden, [span.stop - span.start for span in spans])[1:]

    def _judge_walk(self, walk: Walk, hidden: Tensor) -> list[Judged]:
        if not walk.readings:
            return []
        region = self._network.region
        hidden = hidden[[reading.at for reading in walk.readings]]
        tokens = self._network.text.logits(hidden).float()
        judged = []
        for row, (_, readout, (kind, sample, _)) in enumerate(walk.readings):
            if kind not in NOT_TOKENS:
                assert sample.token is not None
                one = judge(kind.value, tokens[row], sample.token, readout)
                if sample.top:
                    one = one._replace(noise=_noise(tokens[row], sample.top))
                judged.append(one)
            ended = kind is Kind.OBJECT and sample.token == self._network.config.tokenizer.eos_id
            if sample.coord is not None and not ended:  # where there is no other one, nobody looks at its x
                logits = region.coord_logits(hidden[row : row + 1])[0].float()
                values = region.coord_of_bin(torch.arange(len(logits), device=logits.device))
                judged.append(judge("coord", logits, _nearest(values, sample.coord)))
            if sample.size is not None:
                for logits, side in zip(
                    region.size_logits(hidden[row : row + 1])[0], sample.size, strict=True
                ):
                    values = region.size_of_bin(torch.arange(len(logits), device=logits.device))
                    judged.append(judge("size", logits.float(), _nearest(values, side)))
        return judged


def _noise(logits: Tensor, top: Sequence[tuple[int, float]]) -> float:
    """Log probabilities lie as far apart as their logits; one alone says little where it is close to 0."""
    (first, of_first), (second, of_second) = top
    return abs(of_first - of_second - float(logits[first] - logits[second]))


def _nearest(values: Tensor, value: float) -> int:
    """The bin that was meant: devices differ in the last bit of a power."""
    return int((values - value).abs().argmin())


def judge(kind: str, logits: Tensor, chosen: int, readout: Readout | None = None) -> Judged:
    """logits: one row. What cannot be chosen, by the readout, is infinitely far from the best."""
    allowed = logits
    if readout is not None and readout.choices:
        allowed = torch.full_like(logits, -torch.inf)
        allowed[list(readout.choices)] = logits[list(readout.choices)]
    if readout is not None and readout.suppressed:
        allowed = allowed.index_fill(0, torch.tensor(readout.suppressed, device=logits.device), -torch.inf)
    best = int(allowed.argmax())
    gap = float(allowed[best] - allowed[chosen])
    return Judged(kind, chosen, best, gap, float(logits.std()), float(logits.abs().max()))
