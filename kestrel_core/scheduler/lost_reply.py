"""What a reply wants read next, and what stands in for one that cannot say."""

from typing import Any

from kestrel_core.loop.sequence import GO_ON, Outcome, Sequence
from kestrel_core.loop.step import Kind, Readout, Sample


class LostReply:
    """Takes the place of a reply that could not say what to read. Its next sample is its end."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def readout(self, ahead: int = 0) -> Readout:
        return Readout(Kind.TOKEN)

    def take(self, sample: Sample) -> Outcome:
        raise self._error

    def cut(self) -> Outcome:
        return GO_ON

    def output(self) -> dict[str, Any]:
        return {}


def next_readout(sequence: Sequence, ahead: int = 0) -> Readout | None:
    """As `Reply.readout`. If that fails, so will the sequence, with its next sample."""
    try:
        readout = sequence.reply.readout(ahead)
        if readout is None and not ahead:
            raise ValueError("the reply names no readout for its next sample, so it would never end")
        return readout
    except Exception as error:  # a skill is not always our code; only its own request fails
        sequence.reply = LostReply(error)
        return sequence.reply.readout(ahead)
