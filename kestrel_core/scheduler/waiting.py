"""The sequences that wait for a slot: a line for each adapter, and one for those that have none.

Owns the lines. Each is in the order in which its sequences are served. As long as an adapter is not on the
device, its line is passed over as a whole: however many stand in it, they hold up nobody.
"""

import heapq
from collections.abc import Iterable, Mapping
from itertools import count

from kestrel_core.loop.sequence import Sequence
from kestrel_core.loop.step import Adapter
from kestrel_core.scheduler.adapter_slots import Place

Entry = tuple[float, int, Sequence]  # the place of a sequence, and itself
MAX_ENDED = 32  # so many sequences that have ended may stand in a line, even if it is short


class Line:
    __slots__ = ("entries", "num_waiting")

    def __init__(self) -> None:
        self.entries: list[Entry] = []  # a heap; those that ended are dropped later
        self.num_waiting = 0

    def first(self) -> Entry | None:
        entries = self.entries
        while entries and entries[0][2].ended:
            heapq.heappop(entries)
        return entries[0] if entries else None


class Waiting:
    def __init__(self) -> None:
        self._lines: dict[str | None, Line] = {}  # by identity of the adapter; none of them is empty
        self._numbers = count()
        self._num_waiting = 0

    def __len__(self) -> int:
        return self._num_waiting

    def counts(self) -> dict[str, int]:
        """How many sequences wait with each adapter. Any thread may ask."""
        lines = list(self._lines.items())
        return {identity: line.num_waiting for identity, line in lines if identity is not None}

    def add(self, sequence: Sequence) -> None:
        self.put_back([(sequence.order, next(self._numbers), sequence)])

    def put_back(self, entries: Iterable[Entry]) -> None:
        """Let those that were taken stand where they stood."""
        for entry in entries:
            identity = identity_of(entry[2])
            line = self._lines.get(identity)
            if line is None:
                line = self._lines[identity] = Line()
            heapq.heappush(line.entries, entry)
            self._count(line, 1)

    def take(self, usable: Mapping[str | None, Place]) -> Entry | None:
        """Take the first of all that stand in one of these lines, before the place that is given for it."""
        best: Entry | None = None
        for identity, before in usable.items():
            line = self._lines.get(identity)
            first = line.first() if line is not None else None
            if first is not None and first[:2] < before and (best is None or first < best):
                best = first
        if best is not None:
            identity = identity_of(best[2])
            line = self._lines[identity]
            heapq.heappop(line.entries)
            self._leave(identity, line)
        return best

    def end(self, sequence: Sequence) -> None:
        """It has ended where it stood."""
        identity = identity_of(sequence)
        line = self._lines[identity]
        self._leave(identity, line)
        if len(line.entries) > 2 * line.num_waiting + MAX_ENDED:
            line.entries = [entry for entry in line.entries if not entry[2].ended]
            heapq.heapify(line.entries)

    def firsts(self) -> dict[str, tuple[Place, Adapter]]:
        """The place of the first sequence that waits with each adapter, by the adapter's identity."""
        found = {}
        for identity, line in self._lines.items():
            first = line.first() if identity is not None else None
            if first is not None and (adapter := first[2].adapter) is not None:
                found[adapter.identity] = first[:2], adapter
        return found

    def with_adapter(self, identity: str) -> list[Sequence]:
        """All that wait with this adapter, in order."""
        entries = self._lines[identity].entries if identity in self._lines else []
        return [entry[2] for entry in sorted(entries) if not entry[2].ended]

    def check(self) -> None:
        """Raise if a sequence is lost or stands where it should not. For tests and idle moments."""
        for identity, line in self._lines.items():
            waiting = [entry[2] for entry in line.entries if not entry[2].ended]
            assert len(waiting) == line.num_waiting > 0, "a line is miscounted"
            assert all(identity_of(sequence) == identity and not sequence.slot for sequence in waiting)
        assert self._num_waiting == sum(line.num_waiting for line in self._lines.values())

    def _leave(self, identity: str | None, line: Line) -> None:
        self._count(line, -1)
        if not line.num_waiting:
            del self._lines[identity]

    def _count(self, line: Line, change: int) -> None:
        line.num_waiting += change
        self._num_waiting += change


def identity_of(sequence: Sequence) -> str | None:
    """Of its adapter; None if it has none."""
    return sequence.adapter.identity if sequence.adapter is not None else None
