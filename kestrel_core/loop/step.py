"""All that crosses into `runtime/`: what a step computes, and what came of it. Plain values, no torch.

A position is fed an `Input`: a token, or a coordinate or size that the region model makes an embedding of. A
`Readout` says what is read from the hidden state of a sequence's last position. The `Sample` that this gives
is fed at the next position, unless the reply decides otherwise.
"""

from collections.abc import Callable, Mapping, Sequence
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
    """A picture ready for the encoder: cut into crops, or left whole for the device to cut.

    Pictures with equal keys have equal crops.
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
    GROUNDED = "grounded"  # choose a token; if it is the coordinate token, read a coordinate and feed that
    OBJECT = "object"  # choose a token greedily ("another one?"), and read a coordinate, which is fed next
    COORD = "coord"  # read a coordinate; it is fed next
    SIZE = "size"  # read a size; it is fed next


@dataclass(frozen=True, slots=True)
class Readout:
    kind: Kind
    suppressed: tuple[int, ...] = ()  # tokens that cannot be chosen
    choices: tuple[int, ...] = ()  # if given, the only tokens that can be chosen; the first wins a tie


# Lower temperatures count as 0, because logits divided by them overflow float32. This changes no answer: at
# this temperature, a logit that is smaller by 1e-6 already has a probability of 0.
COLDEST = 1e-30


@dataclass(frozen=True, slots=True)
class Sampling:
    """How one request chooses its tokens. top_k 0 is no limit."""

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    seed: int = 0
    logprobs: int = 0

    @property
    def is_greedy(self) -> bool:
        return self.temperature < COLDEST


GREEDY = Sampling()


class Sample(NamedTuple):
    """What a readout gave for one sequence. `top` holds (token, log probability) pairs if asked for."""

    token: int | None = None
    coord: float | None = None
    size: Size | None = None
    logprob: float | None = None
    top: tuple[tuple[int, float], ...] = ()
    finite: bool = True  # False: the logits held NaN, so nothing else here means anything

    @property
    def feed(self) -> Input:
        """What the next position is fed."""
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
    adapter: int = 0  # the index of its adapter on the device; 0: none


NOT_RUNNING = Running(0, [])  # slot 0 is scratch: no sequence runs in it


@dataclass(slots=True, eq=False)
class Span:
    """Positions [start, stop) of one sequence in one step, under one mask. Image and text are two spans.

    The scheduler makes two for the decodes of a sequence, for even and odd positions, and writes them anew: a
    position is only planned once the sample of the one before the last is taken.
    """

    sequence: Running
    start: int = 0
    stop: int = 0
    inputs: Sequence[Input] | None = None  # None: the image's, or else what this slot's last readout gave
    image: PreparedImage | None = None  # set: the image prefix, BOS and the image, seen in both directions
    readout: Readout | None = None  # None: nothing is read here
    draw: int = 0  # the number of this sample, so that a seed gives the same samples in any batch

    @property
    def slot(self) -> int:
        return self.sequence.slot

    @property
    def feeds_last_sample(self) -> bool:
        """True: a decode that was planned before the host knew what it will feed."""
        return self.inputs is None and self.image is None


class Encode(NamedTuple):
    """Crops of a picture that are encoded before the step that prefills it, so that no step takes long."""

    image: PreparedImage
    num_crops: int  # the next ones that are missing


class StepPlan(NamedTuple):
    spans: Sequence[Span]
    encodes: Sequence[Encode] = ()  # of pictures that later steps prefill


class PictureProgress(Protocol):
    """How far the encoder is with a picture. Asking keeps what it has from being forgotten."""

    def num_missing(self, image: PreparedImage) -> int:
        """Crops to encode before it is prefilled; 0 too if it has to be encoded as a whole, with its step."""
        ...


class Adapter(Protocol):
    """The weights of an adapter, on the host. Only the device half looks inside."""

    @property
    def identity(self) -> str:
        """Adapters with equal identities compute the same."""
        ...


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
        """True: `launch` returns while the device works, and meanwhile the next step is planned."""
        ...

    def launch(self, plan: StepPlan) -> StepInFlight: ...

    def vision_s(self, image: PreparedImage) -> float:
        """Seconds of the vision encoder for a picture of a collected step; 0 if it was remembered."""
        ...

    def adapter_loader(self, index: int) -> Callable[[Adapter], None]:
        """What puts an adapter in the place of this index, from 1 on. It is called in a worker's thread, and
        returns when the adapter is there.

        This is called in the loop's thread, when no sequence uses that place; steps under way still may.
        """
        ...

    def capture_more(self, idle: bool) -> bool:
        """Do a piece of what the start left for later, if it is worth it now, and say whether one was done.

        Called between steps, and while `idle` until it says that nothing is left.
        """
        ...

    def close(self) -> None: ...
