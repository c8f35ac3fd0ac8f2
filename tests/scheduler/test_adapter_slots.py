"""Indices of adapters: who gets one, who has to go, who is marked."""

import random

import pytest
from fake_adapters import FakeAdapter

from kestrel_core.scheduler.adapter_slots import LAST, AdapterSlots, Place


def waiting(*identities: str) -> dict[str, Place]:
    return {identity: (float(at), at) for at, identity in enumerate(identities)}


def filled(*identities: str) -> AdapterSlots:
    """With an index for each of them and no other."""
    slots = AdapterSlots(len(identities))
    for _, identity in slots.allot(waiting(*identities)):
        slots.loaded(identity)
    return slots


def pin(slots: AdapterSlots, *identities: str) -> None:
    for identity in identities:
        slots.pin(FakeAdapter(identity))


def test_free_indices_go_to_those_who_wait_longest() -> None:
    slots = AdapterSlots(2)
    assert slots.allot(waiting("c", "a", "b")) == [(1, "c"), (2, "a")]
    assert slots.allot(waiting("c", "a", "b")) == [], "what is being loaded is not evicted"
    assert [slots.is_ready(identity) for identity in "abc"] == [False] * 3


def test_the_least_recently_used_one_that_nobody_pins_is_evicted() -> None:
    slots = filled("a", "b", "c")
    pin(slots, "a", "b")
    slots.unpin(FakeAdapter("a"))
    assert slots.allot(waiting("d")) == [(3, "d")], "c was never used"
    assert slots.allot(waiting("e")) == [(1, "e")], "b is pinned"
    assert slots.allot(waiting("f")) == [] and slots.num_evictions == 2


def test_if_all_are_pinned_one_is_marked_for_those_behind_and_stays_so_while_its_pins_go() -> None:
    slots = filled("a", "b")
    pin(slots, "a", "a", "b")
    claim = {"c": (5.0, 1)}
    assert slots.allot(claim) == []
    assert dict(slots.usable()) == {"a": (5.0, 1), "b": LAST}
    slots.unpin(FakeAdapter("a"))
    assert slots.allot(claim) == []
    assert dict(slots.usable()) == {"a": (5.0, 1), "b": LAST}
    slots.unpin(FakeAdapter("a"))
    assert slots.allot(claim) == [(1, "c")]
    assert dict(slots.usable()) == {"b": LAST}


def test_the_mark_goes_with_the_sequence_that_it_was_for() -> None:
    slots = filled("a")
    pin(slots, "a")
    slots.allot(waiting("b"))
    slots.allot({})
    assert dict(slots.usable()) == {"a": LAST}


def test_an_adapter_with_an_earlier_sequence_of_its_own_is_left_alone() -> None:
    slots = filled("a", "b")
    assert slots.allot(waiting("a", "c")) == [(2, "c")]
    assert slots.allot(waiting("a", "c", "d")) == []
    slots.loaded("c")
    assert slots.allot(waiting("a", "c", "d")) == []
    assert dict(slots.usable()) == {"a": LAST, "c": LAST}
    assert slots.allot(waiting("d", "a", "c")) == [(1, "d")]


def test_each_that_waits_marks_another() -> None:
    slots = filled("a", "b", "c")
    pin(slots, "c", "a", "b")
    assert slots.allot({"e": (2.0, 2), "d": (1.0, 1)}) == []
    assert dict(slots.usable()) == {"c": (1.0, 1), "a": (2.0, 2), "b": LAST}


def test_a_load_that_failed_leaves_its_index_to_others() -> None:
    slots = AdapterSlots(1)
    assert slots.allot(waiting("a", "b")) == [(1, "a")]
    slots.failed("a")
    assert slots.allot(waiting("b")) == [(1, "b")]


@pytest.mark.parametrize("seed", range(10))
def test_no_index_is_lost_and_no_pinned_adapter_moves_whatever_the_order(seed: int) -> None:
    rng, slots = random.Random(seed), AdapterSlots(3)
    adapters = [FakeAdapter(identity) for identity in "abcdef"]
    pins: list[tuple[FakeAdapter, int]] = []
    loading: list[str] = []
    num_loads = 0
    for _ in range(2000):
        chance = rng.random()
        usable = dict(slots.usable())
        if chance < 0.25 and usable:
            adapter = FakeAdapter(rng.choice(sorted(usable)))
            pins.append((adapter, slots.pin(adapter)))
        elif chance < 0.65 and pins:
            slots.unpin(pins.pop(rng.randrange(len(pins)))[0])
        elif chance < 0.8 and loading:
            (slots.loaded if rng.random() < 0.8 else slots.failed)(loading.pop())
        else:
            some = rng.sample(adapters, rng.randint(0, 6))
            firsts = {adapter.identity: (rng.random(), at) for at, adapter in enumerate(some)}
            held = {adapter.identity for adapter, _ in pins} | set(loading)
            loads = slots.allot(firsts)
            assert held.isdisjoint(identity for _, identity in loads)
            loading += [identity for _, identity in loads]
            num_loads += len(loads)
            for identity, place in slots.usable():
                assert place == LAST or firsts.get(identity, LAST) > place
        slots.check(pins)
    assert num_loads > 100 and slots.num_evictions > 50
