"""Pictures and prompts beside streams: so little of them in a step that the streams hardly pause.

A picture's crops are encoded a few at a time, in steps before the one that prefills it. Its sequence waits in
its slot, and holds up nobody. The more there is to do, the more a step does of it: what waits is spread over
`Pacing.num_steps` steps, up to a limit behind which pictures wait longer rather than streams. If very much
waits, all is done as if nobody streamed.
"""

from dataclasses import dataclass

from kestrel_core.loop.sequence import Sequence
from kestrel_core.loop.step import Encode, PictureProgress, PreparedImage
from kestrel_core.scheduler.prefills import Prefills, Reading

STREAM_TOKENS = 4  # shorter answers are no streams: they gain nothing by coming steadily
MIN_CROPS = 3  # of a step that encodes any; fewer take hardly less time
BASE_CROPS = 2  # of a step, beside its share of what waits; pictures wait shorter by it
STEADY_CROPS = 160  # work that waits, in crops; more of it makes no step longer
MAX_CROPS = 450  # the same; with more of it, throughput counts
MAX_AHEAD = 6  # pictures that are encoded and not prefilled; the encoder remembers a few more
# What an image prefix takes, in crops, without and with experts. On an H200 3 and 8 ms, and a crop 1.25.
PREFIX_CROPS, EXPERTS_PREFIX_CROPS = 2.5, 6.5
PROMPT = 64  # positions that take so little that they never wait


@dataclass(frozen=True, slots=True)
class Pacing:
    pictures: PictureProgress
    position_crops: float  # what a position of a prefill takes, in crops
    num_steps: int = 20

    @classmethod
    def chosen(
        cls, choice: str, num_steps: int, pictures: PictureProgress, prefix: int, has_experts: bool
    ) -> "Pacing | None":
        """`choice`: off or slices. `prefix`: positions of an image."""
        position_crops = (EXPERTS_PREFIX_CROPS if has_experts else PREFIX_CROPS) / prefix
        return None if choice == "off" else cls(pictures, position_crops, num_steps)


class PacedPrefills(Prefills):
    """For a step that streams wait for. All sequences are started; `finish` says what is computed of them."""

    def __init__(self, budget: int, readings: list[Reading], pacing: Pacing) -> None:
        super().__init__(budget, readings)
        self._pacing = pacing
        self._sequences: list[Sequence] = []
        self._most = budget  # positions
        self._left = 0.0  # of what this step may do, in crops
        self._short = PROMPT  # positions that need not be left
        self._is_taken = False  # the step does something that takes time
        self._num_ahead = 0

    @property
    def is_full(self) -> bool:
        return False

    def may_start(self, image_length: int) -> bool:
        return True

    def add(self, sequence: Sequence) -> None:
        self._sequences.append(sequence)

    def finish(self) -> None:
        pacing, images = self._pacing, [_image(sequence) for sequence in self._sequences]
        missing = {image.key: pacing.pictures.num_missing(image) for image in images if image is not None}
        positions = sum(sequence.length - sequence.computed for sequence in self._sequences)
        work, crops = positions * pacing.position_crops, sum(missing.values())
        if work + crops > MAX_CROPS:
            for sequence in self._sequences:
                super().add(sequence)
            return
        self._left = max(MIN_CROPS, BASE_CROPS + min(work + crops, STEADY_CROPS) / pacing.num_steps)
        for sequence, image in zip(self._sequences, images, strict=True):
            if image is None:
                self._prefill(sequence, 0)
            elif not missing[image.key]:
                self._prefill(sequence, sequence.image_length)
                self._num_ahead += sequence.computed == 0
            else:
                self._encode(image, missing[image.key])

    def _prefill(self, sequence: Sequence, image_length: int) -> None:
        cost = self._pacing.position_crops
        if image_length and self._is_taken and self._left < image_length * cost:
            return
        before = self._budget = min(max(int(self._left / cost), image_length + self._short), self._most)
        super().add(sequence)
        used = before - self._budget
        self._most -= used
        self._left -= used * cost
        self._short = max(self._short - max(used - image_length, 0), 0)
        self._is_taken |= used > (0 if image_length else PROMPT)

    def _encode(self, image: PreparedImage, num_missing: int) -> None:
        room = round(self._left) if self._is_taken else max(round(self._left), MIN_CROPS)
        if room < (1 if self.encodes else MIN_CROPS) or self._num_ahead >= MAX_AHEAD:
            return
        if any(encode.image.key == image.key for encode in self.encodes):  # for another sequence
            return
        count = min(num_missing, room)
        self.encodes.append(Encode(image, count))
        self._left -= count
        self._num_ahead += 1
        self._is_taken = True


def _image(sequence: Sequence) -> PreparedImage | None:
    """The image that it has yet to prefill."""
    return sequence.image if sequence.computed < sequence.image_length else None
