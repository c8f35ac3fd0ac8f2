"""What an engine chose: replies that note each sample on its way into an answer, and the way back from them.

Choices are seen where they are made into answers, so the engine runs as it always does. What a reply asks to
read, and what is fed after a sample, follow from the samples: `walk` finds both again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kestrel_core.loop.sequence import Outcome, Reply
from kestrel_core.loop.step import Input, Kind, Readout, Sample
from kestrel_core.protocol.errors import InvalidRequest


class Choice(NamedTuple):
    kind: Kind
    sample: Sample
    fed: tuple[Input, ...] | None = None  # what was fed next, if not the sample itself


@dataclass
class NotedReply:
    """A reply that remembers what it was given and what it said."""

    reply: Reply
    choices: list[Choice] = field(default_factory=list)
    chunks: list[str] = field(default_factory=list)

    def readout(self, ahead: int = 0) -> Readout | None:
        return self.reply.readout(ahead)

    def take(self, sample: Sample) -> Outcome:
        readout = self.reply.readout()
        assert readout is not None
        outcome = self.reply.take(sample)
        self.choices.append(Choice(readout.kind, sample, outcome.feed))
        self.chunks += [text for text in (outcome.text, outcome.rest) if text]
        return outcome

    def cut(self) -> Outcome:
        return self.reply.cut()

    def output(self) -> dict[str, Any]:
        return self.reply.output()


class Reading(NamedTuple):
    """A choice, and where in its sequence it was made."""

    at: int  # index of the input after which it was read
    readout: Readout
    choice: Choice


@dataclass(frozen=True, slots=True)
class Walk:
    """All inputs of a request after its image, and what was read along the way."""

    inputs: tuple[Input, ...]
    readings: tuple[Reading, ...]
    has_image: bool


def walk(
    name: str, prompt: Sequence[Input], reply: Reply, choices: Sequence[Choice], has_image: bool
) -> Walk:
    """A fresh `reply` reads the samples once more: what it says to feed must be what was noted."""
    inputs, readings = list(prompt), list[Reading]()
    ended = False
    try:
        for choice in choices:
            readout = reply.readout()
            if ended or readout is None or readout.kind is not choice.kind:
                raise _unlike(name, len(readings))
            readings.append(Reading(len(inputs) - 1, readout, choice))
            outcome = reply.take(choice.sample)
            if outcome.feed != choice.fed:
                raise _unlike(name, len(readings) - 1)
            inputs += choice.fed if choice.fed is not None else (choice.sample.feed,)
            ended = outcome.finish is not None
    except (AssertionError, IndexError):  # the reply was given what it did not ask for
        raise _unlike(name, len(readings) - 1) from None
    return Walk(tuple(inputs), tuple(readings), has_image)


def _unlike(name: str, index: int) -> InvalidRequest:
    return InvalidRequest(
        f"{name}: choice {index} cannot come after those before it; was it recorded by another version?"
    )
