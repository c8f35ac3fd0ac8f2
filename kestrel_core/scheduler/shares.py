"""Who gets a slot, where several tenants want one: whoever has fewer of them.

Owns how many slots each tenant has. Every slot that a tenant has puts those of its sequences that wait
`SHARE_S` further behind, so a tenant that floods the queue waits for itself. Time still counts: a sequence
that has waited long enough stands before one that came later, whoever has more slots.
"""

from collections.abc import Iterable

from kestrel_core.loop.sequence import Sequence
from kestrel_core.scheduler.adapter_slots import Place
from kestrel_core.scheduler.waiting import Entry

SHARE_S = 60.0  # the default deadline: what waits longer than that has mostly been given up


class Shares:
    def __init__(self) -> None:
        self._num_slots: dict[str, int] = {}  # of tenants that have any

    def acquire(self, tenant: str) -> None:
        self._num_slots[tenant] = self._num_slots.get(tenant, 0) + 1

    def release(self, tenant: str) -> None:
        self._num_slots[tenant] -= 1
        if not self._num_slots[tenant]:
            del self._num_slots[tenant]

    def place(self, tenant: str, place: Place) -> Place:
        """Where a sequence of this tenant stands among those of others."""
        return place[0] + SHARE_S * self._num_slots.get(tenant, 0), place[1]

    def who_yields_to(self, entry: Entry, running: Iterable[Sequence]) -> Sequence | None:
        """The sequence that gives its slot to a tenant who has none: the last one of who has most of them.

        None, if it would stand before the other in the queue, so that it would come straight back.
        """
        if entry[2].tenant in self._num_slots or entry[2].num_pending:
            return None  # or its sample comes in a step, and it cannot start before
        tenant = max(self._num_slots, key=lambda it: self._num_slots[it])
        if self._num_slots[tenant] < 2:
            return None
        last = max((it for it in running if it.tenant == tenant), key=lambda it: it.order)
        its_order = last.order + SHARE_S * (self._num_slots[tenant] - 1)
        return last if entry[0] < its_order else None

    def check(self, running: Iterable[Sequence]) -> None:
        """Raise if the books do not agree with the running sequences. For tests and idle moments."""
        left = dict(self._num_slots)
        for sequence in running:
            left[sequence.tenant] = left.get(sequence.tenant, 0) - 1
        assert not any(left.values()), "the slots of a tenant are miscounted"
