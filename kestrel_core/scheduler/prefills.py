"""What a step computes beside its decodes: prompts and image prefixes, and crops for those of later steps."""

from kestrel_core.loop.sequence import Sequence
from kestrel_core.loop.step import Encode, Span
from kestrel_core.scheduler.lost_reply import next_readout

# A step makes one of these for each sequence. A plain tuple takes a tenth of the time of a named one.
Reading = tuple[Sequence, int, Span]  # a launched readout: its sequence and epoch, and what is read


class Prefills:
    """Takes sequences in order, as long as there is room for their positions. Images are never split."""

    def __init__(self, budget: int, readings: list[Reading]) -> None:
        """`readings` are those of the step, and grow."""
        self.spans: list[Span] = []
        self.encodes: list[Encode] = []
        self._budget = budget
        self._readings = readings

    @property
    def is_full(self) -> bool:
        """Whether no further sequence has to be started."""
        return bool(self.spans) and self._budget <= 0

    def may_start(self, image_length: int) -> bool:
        """Whether a sequence may be started that has to compute so long an image."""
        return self._fits(image_length)

    def add(self, sequence: Sequence) -> None:
        """Its next positions, as many as there is room for."""
        if sequence.computed < sequence.image_length:
            if not self._fits(sequence.image_length):
                return
            self.spans.append(Span(sequence.running, 0, sequence.image_length, None, sequence.image))
            sequence.computed = sequence.image_length
            self._budget -= sequence.image_length
        start, offset = sequence.computed, sequence.image_length
        stop = min(sequence.length, start + self._budget)
        if stop <= start:
            return
        inputs = tuple(sequence.inputs[start - offset : stop - offset])
        readout = next_readout(sequence) if stop == sequence.length else None
        span = Span(sequence.running, start, stop, inputs, None, readout, sequence.num_taken)
        self.spans.append(span)
        if readout is not None:
            sequence.num_pending += 1
            self._readings.append((sequence, sequence.epoch, span))
        sequence.computed = stop
        self._budget -= stop - start

    def finish(self) -> None:
        """All sequences are added."""

    def _fits(self, image_length: int) -> bool:
        """An image that is larger than all of the budget has a step of its own."""
        return not self.spans or self._budget >= image_length
