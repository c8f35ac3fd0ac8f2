"""What stands in for a reply that has failed before its sequence could end."""

from typing import Any

from kestrel_core.loop.sequence import GO_ON, Outcome
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
