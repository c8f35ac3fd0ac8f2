"""From the last states of a step to its samples: `readouts.batched`, captured for a few numbers of rows.

Owns the states that are read, and the results. What was read stays on the device, where its slot is fed with
it, and is copied to the host, where `SamplesInFlight.collect` waits for it.
"""

from bisect import insort
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from kestrel_core.loop.step import Sample, Span
from kestrel_core.moondream.model import Moondream
from kestrel_core.runtime.feeds import Feeds
from kestrel_core.runtime.graphs import Graphs, Work, bucket_sizes
from kestrel_core.runtime.readouts import batched
from kestrel_core.runtime.readouts.batched import Asked, Form
from kestrel_core.runtime.staging import Arrays, Field, send

FIRST_READ = (1, 4, 16)  # numbers of rows that a quick start captures, beside the largest
PLAIN = Form()  # tokens alone, greedily
FORMS = [Form(sampled, region) for sampled in (False, True) for region in (False, True)]


@dataclass(frozen=True, slots=True)
class SamplesInFlight:
    """The samples of a step, on their way to the host."""

    spans: Sequence[Span]  # those with a readout
    results: Tensor  # on the host; complete once the event has happened
    done: torch.cuda.Event | None
    coord_id: int

    def collect(self) -> Mapping[int, Sample]:
        if self.done is not None:
            self.done.synchronize()
        return batched.samples(self.spans, self.results, self.coord_id)


class CapturedReadouts:
    @staticmethod
    def fields(max_rows: int) -> dict[str, Field]:
        """What `write` fills in, among the arrays that are staged for a step."""
        return batched.fields(max_rows) | {"read": (np.int64, (max_rows,))}

    def __init__(
        self,
        model: Moondream,
        feeds: Feeds,
        inputs: Mapping[str, Tensor],
        read_tokens: Callable[[Tensor, Asked, Tensor, Tensor], None] | None = None,
    ) -> None:
        """`read_tokens` does all that the plainest form asks for, from states to feeds and results."""
        self._model = model
        self._read_tokens = read_tokens
        self._feeds = feeds
        self._asked = Asked(*(inputs[name] for name in Asked._fields))
        self._read = inputs["read"]
        weight, max_rows = model.text.wte, len(self._read)
        self._states = weight.new_zeros((max_rows, weight.shape[1]))
        self._results = weight.new_zeros((max_rows, batched.NUM_VALUES), dtype=torch.float32)
        self.sizes = bucket_sizes(max_rows)
        self.in_use = list(self.sizes)  # the others wait until they are captured
        self._captured: dict[tuple[int, Form], Work] = {}

    def write(self, spans: Sequence[Span], before: int, arrays: Arrays) -> tuple[list[Span], Form]:
        """Which spans read something, and in what form. They are packed behind `before` positions."""
        ends = np.cumsum([span.stop - span.start for span in spans]) + (before - 1)
        which = [index for index, span in enumerate(spans) if span.readout is not None]
        arrays["read"][: len(which)] = ends[which] if which else 0
        arrays["read"][len(which) :] = 0
        reading = [spans[index] for index in which]
        return reading, batched.write(reading, self._size(len(reading)), arrays)

    def take(self, hidden: Tensor) -> None:
        """Keep the states of a step that are to be read, or all of them where there are only few."""
        count = min(len(hidden), len(self._states))
        self._states[:count] = hidden.index_select(0, self._read[:count])

    def launch(self, reading: Sequence[Span], form: Form) -> SamplesInFlight:
        count, results = len(reading), self._results
        captured = self._captured.get((self._size(count), form)) if form.lists is None else None
        if count and captured is not None:
            captured()
        elif count:
            asked = self._asked.first(count)
            if form.lists is not None:
                asked = asked._replace(**send(form.lists, self._states.device))
            results = self._rows(asked, form)
        on_cuda = results.is_cuda
        host = torch.empty((count, results.shape[1]), pin_memory=on_cuda)
        host.copy_(results[:count], non_blocking=True)
        done = torch.cuda.Event() if on_cuda else None
        if done is not None:
            done.record()
        return SamplesInFlight(reading, host, done, self._model.config.tokenizer.coord_id)

    def capture(self, size: int, graphs: Graphs) -> None:
        asked, results = self._asked.first(size), self._results[:size]
        for form in FORMS:

            def read(form: Form = form) -> None:
                if form == PLAIN and self._read_tokens is not None:
                    self._read_tokens(self._states[:size], asked, self._feeds.rows, results)
                else:
                    results.copy_(self._rows(asked, form))

            self._captured[size, form] = graphs.capture(read)
        if size not in self.in_use:
            insort(self.in_use, size)

    @property
    def num_captured(self) -> int:
        """Numbers of rows that are captured in every form."""
        return len({size for size, _ in self._captured})

    def close(self) -> None:
        self._captured.clear()

    def _size(self, count: int) -> int:
        return next(size for size in self.in_use if size >= count)

    def _rows(self, asked: Asked, form: Form) -> Tensor:
        results, feeds = batched.read(self._model, self._states[: len(asked.slots)], asked, form)
        self._feeds.rows.index_copy_(0, asked.slots, feeds)
        return results
