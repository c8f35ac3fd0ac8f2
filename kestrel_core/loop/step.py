"""All that crosses into `runtime/`: what a step shall compute, and what it gave. Plain values, no torch.

A position is fed an `Input`: a token, or a coordinate or size that the region model turns into an embedding.
From the hidden state of a sequence's last position something is read, as its `Readout` says, and the `Sample`
that comes of it is fed at the next position, unless the reply decides otherwise.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, Protocol


class Coord(NamedTuple):
    value: float


class Size(NamedTuple):
    width: float
    height: float


Input = int | Coord | Size


class PreparedImage(NamedTuple):
    """A picture ready for the encoder, cut into crops or left whole for the device to cut. Equal keys, equal
    crops.
    """

    key: str
    crops: Any  # uint8 [crops, size, size, 3], the global first; None where there is `rgb`
    tiling: tuple[int, int]
    rgb: Any = None  # uint8 [height, width, 3]

    @property
    def num_bytes(self) -> int:
        return sum(pixels.nbytes for pixels in (self.crops, self.rgb) if pixels is not None)


class Kind(Enum):
    TOKEN = "token"  # choose a token; it is fed next
    GROUNDED = "grounded"  # choose a token; where it is the coordinate token, read a coordinate and feed that
    OBJECT = "object"  # choose a token greedily ("another one?"), and read a coordinate, which is fed next
    COORD = "coord"  # read a coordinate; it is fed next
    SIZE = "size"  # read a size; it is fed next


@dataclass(frozen=True, slots=True)
class Readout:
    kind: Kind
    suppressed: tuple[int, ...] = ()  # tokens that cannot be chosen
    choices: tuple[int, ...] = ()  # when given, the only tokens that can; the first wins a tie


@dataclass(frozen=True, slots=True)
class Sampling:
    """How one request chooses its tokens. Temperature 0 is greedy; top_k 0 is no limit."""

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    seed: int = 0
    logprobs: int = 0


GREEDY = Sampling()


class Sample(NamedTuple):
    """What a readout gave for one sequence. `top` holds (token, log probability) pairs if asked for."""

    token: int | None = None
    coord: float | None = None
    size: Size | None = None
    logprob: float | None = None
    top: tuple[tuple[int, float], ...] = ()
    finite: bool = True  # False: the logits held NaN, nothing else here means anything

    @property
    def feed(self) -> Input:
        """What the next position takes."""
        if self.size is not None:
            return self.size
        if self.coord is not None:
            return Coord(self.coord)
        assert self.token is not None
        return self.token


@dataclass(frozen=True, slots=True, eq=False)
class Running:
    """A running sequence as the device knows it: what stays the same from step to step."""

    slot: int
    pages: list[int]  # its page table, which grows in place; it covers all positions up to a span's stop
    sampling: Sampling = GREEDY


NOT_RUNNING = Running(0, [])  # slot 0 is scratch: nobody ever runs in it


class Span(NamedTuple):
    """Positions [start, stop) of one sequence in one step, under one mask. Image and text are two spans."""

    sequence: Running
    start: int
    stop: int
    inputs: Sequence[Input] | None  # None: what this slot's last readout gave
    image: PreparedImage | None = None  # set: the image prefix, BOS and the image, seen in both directions
    readout: Readout | None = None  # None: nothing is read here
    draw: int = 0  # counts a sequence's samples, so that a seed gives the same ones in any batch

    @property
    def slot(self) -> int:
        return self.sequence.slot


class StepPlan(NamedTuple):
    spans: Sequence[Span]


class StepInFlight(Protocol):
    """A step under way. `collect` waits for it."""

    def collect(self) -> Mapping[int, Sample]:
        """Samples by slot, one for every span that had a readout."""
        ...


class Runtime(Protocol):
    """The device half. One thread uses it."""

    @property
    def num_pages(self) -> int: ...

    @property
    def page_size(self) -> int: ...

    @property
    def overlaps(self) -> bool:
        """True: `launch` returns while the device works, and the next step is planned meanwhile."""
        ...

    def launch(self, plan: StepPlan) -> StepInFlight: ...

    def close(self) -> None: ...
