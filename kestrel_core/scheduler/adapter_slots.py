"""Which adapter has which index on the device, whether it is there yet, and how many sequences need it.

Owns indices only; the weights behind them live in `runtime`, which puts them there. An adapter is known by
its identity. It gets an index when its load begins, is ready when the load has ended, and keeps its index
until another adapter needs it. While running sequences pin it, it cannot be evicted.
"""

from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from heapq import nsmallest

from kestrel_core.loop.step import Adapter

# The order of a waiting sequence: the lowest is served first. No two are equal.
Place = tuple[float, int]
LAST: Place = (float("inf"), 0)


@dataclass(slots=True)
class _Resident:
    index: int
    is_ready: bool = False
    num_pins: int = 0


class AdapterSlots:
    """Indices 1 to `max_adapters`. Index 0 is no adapter."""

    def __init__(self, max_adapters: int) -> None:
        self.max_adapters = max_adapters
        self.num_evictions = 0
        self._free = list(range(max_adapters, 0, -1))
        self._residents: OrderedDict[str, _Resident] = OrderedDict()  # least recently used first
        self._wanted: dict[
            str, Place
        ] = {}  # residents to be evicted soon, and the sequence they make room for

    @property
    def num_ready(self) -> int:
        return sum(resident.is_ready for resident in list(self._residents.values()))

    def is_ready(self, identity: str) -> bool:
        resident = self._residents.get(identity)
        return resident is not None and resident.is_ready

    def usable(self) -> Iterator[tuple[str, Place]]:
        """The adapters that are ready, each with a place: only sequences before it may pin the adapter."""
        for identity, resident in self._residents.items():
            if resident.is_ready:
                yield identity, self._wanted.get(identity, LAST)

    def pin(self, adapter: Adapter | None) -> int:
        """A sequence needs its adapter from now on. Returns the index; 0 if it has none."""
        if adapter is None:
            return 0
        resident = self._residents[adapter.identity]
        assert resident.is_ready, "an adapter was pinned before it was there"
        resident.num_pins += 1
        self._residents.move_to_end(adapter.identity)
        return resident.index

    def unpin(self, adapter: Adapter | None) -> None:
        if adapter is None:
            return
        resident = self._residents[adapter.identity]
        assert resident.num_pins > 0, "an adapter was unpinned once too often"
        resident.num_pins -= 1
        if not resident.num_pins:  # it was in use until now
            self._residents.move_to_end(adapter.identity)

    def allot(self, firsts: Mapping[str, Place]) -> list[tuple[int, str]]:
        """Give indices to adapters that have none. Returns the loads to begin: indices and identities.

        `firsts` has, for each adapter that sequences wait with, the place of the first of them. They are
        served in this order. If no index is free, the least recently used adapter that nobody pins is
        evicted. If all are pinned, the least recently used one is marked: sequences behind the one that
        waits cannot pin it any more, so it will be free. An adapter whose own first sequence stands before
        the one that waits is neither evicted nor marked: it would have to come straight back.
        """
        self._wanted.clear()
        if firsts.keys() <= self._residents.keys():
            return []
        missing = ((place, identity) for identity, place in firsts.items() if identity not in self._residents)
        ready = [identity for identity, resident in self._residents.items() if resident.is_ready]
        candidates = iter(sorted(ready, key=lambda identity: self._residents[identity].num_pins > 0))
        loads = []
        for place, identity in nsmallest(self.max_adapters, missing):
            index = self._free.pop() if self._free else self._reclaim(place, firsts, candidates)
            if index:
                self._residents[identity] = _Resident(index)
                loads.append((index, identity))
        return loads

    def loaded(self, identity: str) -> None:
        self._residents[identity].is_ready = True

    def failed(self, identity: str) -> None:
        """Its load ended without success, so its index is free again."""
        assert not self._residents[identity].is_ready
        self._free.append(self._residents.pop(identity).index)

    def check(self, running: Iterable[tuple[Adapter | None, int]]) -> None:
        """Raise if the books do not agree with the running sequences: the adapter of each and its index.

        For tests and idle moments.
        """
        pinned = Counter((adapter.identity, index) for adapter, index in running if adapter is not None)
        indices = [resident.index for resident in self._residents.values()]
        assert sorted(self._free + indices) == list(range(1, self.max_adapters + 1)), "an index is lost"
        for identity, resident in self._residents.items():
            assert resident.num_pins == pinned.pop((identity, resident.index), 0), "pins are miscounted"
            assert resident.is_ready or not resident.num_pins, "an adapter is in use before it is there"
        assert not pinned, "a sequence uses an index that its adapter does not have"
        assert all(self.is_ready(identity) for identity in self._wanted), "a mark on what is not there"

    def _reclaim(self, place: Place, firsts: Mapping[str, Place], candidates: Iterator[str]) -> int:
        """The index of the next candidate, for a sequence that waits at `place`; 0 if it is not free yet."""
        for identity in candidates:
            if firsts.get(identity, LAST) <= place:
                continue  # nor does it give way to those that stand behind
            if not self._residents[identity].num_pins:
                self.num_evictions += 1
                return self._residents.pop(identity).index
            # Since it is not pinned any more, it stays the least recently used one: the mark does not wander.
            self._wanted[identity] = place
            return 0
        return 0
