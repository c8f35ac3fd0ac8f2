"""The sequences that wait for a slot: a line for each tenant and adapter, and one for those without adapters.

Owns the lines. Each is in the order in which its sequences are served. As long as an adapter is not on the
device, its lines are passed over as a whole: however many stand in them, they hold up nobody.
"""

import heapq
from collections.abc import Callable, Iterable, Mapping
from itertools import count

from kestrel_core.loop.sequence import Sequence
from kestrel_core.loop.step import Adapter
from kestrel_core.scheduler.adapter_slots import LAST, Place

Entry = tuple[float, int, Sequence]  # the place of a sequence, and itself
LineKey = tuple[str | None, str]  # the identity of its adapter, and its tenant
PlaceOf = Callable[[str, Place], Place]
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
        self._lines: dict[LineKey, Line] = {}  # none of them is empty
        self._numbers = count()
        self._num_waiting = 0

    def __len__(self) -> int:
        return self._num_waiting

    def counts(self) -> dict[str, int]:
        """How many sequences wait with each adapter. Any thread may ask."""
        counts: dict[str, int] = {}
        for (identity, _), line in list(self._lines.items()):
            if identity is not None:
                counts[identity] = counts.get(identity, 0) + line.num_waiting
        return counts

    def add(self, sequence: Sequence) -> None:
        self.put_back([(sequence.order, next(self._numbers), sequence)])

    def put_back(self, entries: Iterable[Entry]) -> None:
        """Let those that were taken stand where they stood."""
        for entry in entries:
            key = key_of(entry[2])
            line = self._lines.get(key)
            if line is None:
                line = self._lines[key] = Line()
            heapq.heappush(line.entries, entry)
            self._count(line, 1)

    def take(self, usable: Mapping[str, Place], place_of: PlaceOf) -> Entry | None:
        """Take the first of all, as `first` finds it."""
        best = self.first(usable, place_of)
        if best is not None:
            key = key_of(best[2])
            line = self._lines[key]
            heapq.heappop(line.entries)
            self._leave(key, line)
        return best

    def first(self, usable: Mapping[str, Place], place_of: PlaceOf) -> Entry | None:
        """The first of all that have no adapter, or a usable one and stand before the place given for it.

        `place_of` says where the first of a tenant's line stands among those of other tenants.
        """
        best: Entry | None = None
        best_place = LAST
        for (identity, tenant), line in self._lines.items():
            before = usable.get(identity) if identity is not None else LAST
            first = line.first() if before is not None else None
            if first is None or before is None or first[:2] >= before:
                continue
            place = place_of(tenant, first[:2])
            if best is None or place < best_place:
                best, best_place = first, place
        return best

    def end(self, sequence: Sequence) -> None:
        """It has ended where it stood."""
        key = key_of(sequence)
        line = self._lines[key]
        self._leave(key, line)
        if len(line.entries) > 2 * line.num_waiting + MAX_ENDED:
            line.entries = [entry for entry in line.entries if not entry[2].ended]
            heapq.heapify(line.entries)

    def firsts(self) -> dict[str, tuple[Place, Adapter]]:
        """The place of the first sequence that waits with each adapter, by the adapter's identity."""
        found: dict[str, tuple[Place, Adapter]] = {}
        for (identity, _), line in self._lines.items():
            first = line.first() if identity is not None else None
            if first is None or (adapter := first[2].adapter) is None:
                continue
            if adapter.identity not in found or first[:2] < found[adapter.identity][0]:
                found[adapter.identity] = first[:2], adapter
        return found

    def with_adapter(self, identity: str) -> list[Sequence]:
        """All that wait with this adapter, in order."""
        lines = [line for key, line in self._lines.items() if key[0] == identity]
        entries = sorted(entry for line in lines for entry in line.entries)
        return [entry[2] for entry in entries if not entry[2].ended]

    def check(self) -> None:
        """Raise if a sequence is lost or stands where it should not. For tests and idle moments."""
        for key, line in self._lines.items():
            waiting = [entry[2] for entry in line.entries if not entry[2].ended]
            assert len(waiting) == line.num_waiting > 0, "a line is miscounted"
            assert all(key_of(sequence) == key and not sequence.slot for sequence in waiting)
        assert self._num_waiting == sum(line.num_waiting for line in self._lines.values())

    def _leave(self, key: LineKey, line: Line) -> None:
        self._count(line, -1)
        if not line.num_waiting:
            del self._lines[key]

    def _count(self, line: Line, change: int) -> None:
        line.num_waiting += change
        self._num_waiting += change


def key_of(sequence: Sequence) -> LineKey:
    """Of the line that it stands in."""
    return sequence.adapter.identity if sequence.adapter is not None else None, sequence.tenant
