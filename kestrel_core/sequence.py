"""A request's life in the engine: what it starts from, what it has said, and where it stands.

`skills` makes prompts and replies, `scheduler` moves sequences; they meet here.
"""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

from kestrel_core.step import Input, Readout, Sample

FinishReason = Literal["stop", "length", "cancelled"]


@dataclass(frozen=True, slots=True)
class Prompt:
    """Ready to prefill. `inputs` follow the image prefix when there is an image; else they begin with BOS."""

    inputs: tuple[Input, ...]
    with_image: bool


class Turn(NamedTuple):
    """What a sample led to."""

    text: str = ""  # may be shown now
    rest: str = ""  # of an answer that ends here: what was held back; shown after `text`
    feed: tuple[Input, ...] | None = None  # fed instead of the sample itself: a second prompt
    finish: FinishReason | None = None


GO_ON = Turn()


class Reply(Protocol):
    """The growing answer of one sequence: says what to read next, takes samples, holds the result."""

    def readout(self, ahead: int = 0) -> Readout:
        """What to read for the next sample; with `ahead`, for the one after so many more ordinary ones."""
        ...

    def take(self, sample: Sample) -> Turn: ...

    def output(self) -> dict[str, Any]:
        """The skill's part of the result, also of an unfinished answer."""
        ...
