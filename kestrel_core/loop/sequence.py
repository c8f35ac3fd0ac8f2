"""A request's life in the engine: what it starts from, what it has said, and where it stands.

`skills` makes prompts and replies, `scheduler` moves sequences; they meet here.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from kestrel_core.loop.step import (
    GREEDY,
    NOT_RUNNING,
    Input,
    PreparedImage,
    Readout,
    Running,
    Sample,
    Sampling,
)
from kestrel_core.protocol.messages import FinishReason


@dataclass(frozen=True, slots=True)
class Prompt:
    """Ready to prefill. `inputs` follow the image prefix when there is an image; else they begin with BOS."""

    inputs: tuple[Input, ...]
    with_image: bool


class Outcome(NamedTuple):
    """What a sample led to."""

    text: str = ""  # may be shown now
    rest: str = ""  # of an answer that ends here: what was held back; shown after `text`
    feed: tuple[Input, ...] | None = None  # fed instead of the sample itself: a second prompt
    finish: FinishReason | None = None
    reasoning: str = ""  # of what is thought before the answer: may be shown now, before `text`


GO_ON = Outcome()


class Reply(Protocol):
    """The growing answer of one sequence: says what to read next, takes samples, holds the result."""

    def readout(self, ahead: int = 0) -> Readout | None:
        """What to read for the next sample; with `ahead`, for the one after so many more ordinary ones.

        None: with these it ends, or turns elsewhere, whatever they are. For the next one there is something.
        """
        ...

    def take(self, sample: Sample) -> Outcome: ...

    def cut(self) -> Outcome:
        """The answer ends here although the model would go on: give what was held back."""
        ...

    def output(self) -> dict[str, Any]:
        """The skill's part of the result, also of an unfinished answer."""
        ...


@dataclass(eq=False, slots=True)
class Sequence:
    """Fields below the line are the scheduler's."""

    request_id: str
    reply: Reply
    inputs: list[Input]  # the prompt behind the image, and all that was fed since
    root: Hashable = None  # what colours every position: adapter and image
    image: PreparedImage | None = None
    image_length: int = 0
    sampling: Sampling = GREEDY
    order: float = 0.0  # who comes first, see Scheduler.admit

    running: Running = NOT_RUNNING  # its slot and pages, from start to preemption or end
    prefix: Any = None  # the locked part of its pages, which the prefix cache owns
    computed: int = 0  # positions whose KV is there, or will be when the launched steps are done
    verified: int = 0  # positions that led to a sound sample; only these are shared
    num_taken: int = 0  # samples the reply took
    num_pending: int = 0  # readouts launched and not yet committed
    epoch: int = 0  # readouts of an earlier epoch are void
    cached_tokens: int = 0
    num_preemptions: int = 0
    ended: bool = False

    @property
    def length(self) -> int:
        """Positions whose input is known."""
        return self.image_length + len(self.inputs)

    @property
    def slot(self) -> int:
        """0: not running."""
        return self.running.slot
