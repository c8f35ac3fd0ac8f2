"""A request's life in the engine: what it starts from, what it has said, and where it stands.

Skills make prompts and replies, and the scheduler moves sequences; both know the types defined here.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

from kestrel_core.loop.step import (
    GREEDY,
    NOT_RUNNING,
    Adapter,
    Input,
    PreparedImage,
    Readout,
    Running,
    Sample,
    Sampling,
    Span,
)
from kestrel_core.protocol.messages import FinishReason


@dataclass(frozen=True, slots=True)
class Prompt:
    """Ready to prefill. `inputs` follow the image prefix, or begin with BOS if there is no image."""

    inputs: tuple[Input, ...]
    with_image: bool


class Outcome(NamedTuple):
    """What a sample led to."""

    text: str = ""  # may be shown now
    rest: str = ""  # held back until the answer ended; shown after `text`
    feed: tuple[Input, ...] | None = None  # fed instead of the sample itself: a second prompt
    finish: FinishReason | None = None
    reasoning: str = ""  # a part of the reasoning: may be shown now, before `text`
    # Where asked for, of the tokens that `text` shows to their end; if the answer has ended, of all others.
    logprobs: tuple[dict[str, Any], ...] = ()


GO_ON = Outcome()


def shows(text: str) -> Outcome:
    """`Outcome(text)` in two thirds of the time: of most words there is one."""
    return tuple.__new__(Outcome, (text, "", None, None, "", ()))


NO_SPANS = (Span(NOT_RUNNING), Span(NOT_RUNNING))


class Reply(Protocol):
    """The growing answer of one sequence: says what to read next, takes samples, holds the result."""

    def readout(self, ahead: int = 0) -> Readout | None:
        """What to read for the next sample, or with `ahead` for a later one, that many samples after it.

        None if that sample is not needed: whatever the samples before it are, the answer ends with them, or
        something else is fed after them. For the next sample, `ahead` 0, it is never None.
        """
        ...

    def take(self, sample: Sample) -> Outcome: ...

    def cut(self) -> Outcome:
        """End the answer here although the model would go on, and give what was held back.

        `finish` is "stop" if what was held back shows that the answer was at its end, else "length" or None.
        """
        ...

    def output(self) -> dict[str, Any]:
        """The skill's part of the result. An unfinished answer has one too."""
        ...


def cut_short(outcome: Outcome, reply: Reply) -> Outcome:
    """The outcome of a sample behind which there is no room, so that the answer ends with it."""
    cut = reply.cut()
    text, reasoning = outcome.text + cut.text, outcome.reasoning + cut.reasoning
    return Outcome(text, cut.rest, None, cut.finish or "length", reasoning, outcome.logprobs + cut.logprobs)


@runtime_checkable
class ThinkingReply(Protocol):
    """A reply that also tells how many of its samples were reasoning."""

    @property
    def num_reasoning(self) -> int: ...


@dataclass(eq=False, slots=True)
class Sequence:
    """The fields from `running` on belong to the scheduler."""

    request_id: str
    reply: Reply
    inputs: list[Input]  # the prompt behind the image, and all that was fed since
    root: Hashable = None  # what every position depends on: adapter and image; and the salt
    image: PreparedImage | None = None
    image_length: int = 0
    adapter: Adapter | None = None
    sampling: Sampling = GREEDY
    order: float = 0.0  # the lowest is served first; see Scheduler.admit
    tenant: str = ""  # whose it is; see `scheduler.shares`
    text_salt: str = ""  # the salt of what follows a picture that all salts share

    running: Running = NOT_RUNNING  # its slot and pages, while it has them
    decodes: tuple[Span, Span] = NO_SPANS  # of its decodes, at even and at odd positions; see `Span`
    room: int = 0  # positions that its pages hold, and that it may have
    prefix: Any = None  # the locked part of its pages, which the prefix cache owns
    computed: int = 0  # positions whose KV is in the cache once the launched steps are done
    verified: int = 0  # positions that led to a sound sample; only these are shared
    num_taken: int = 0  # samples that the reply has taken
    num_pending: int = 0  # readouts that are launched and not yet committed
    epoch: int = 0  # readouts of an earlier epoch are void
    shares_next: bool = False  # its next sample shows that its prompt is sound, and may be shared
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
