"""Sequences with adapters: they wait for them, share them, give them back, and starve nobody."""

import random
from collections import Counter
from itertools import cycle

import pytest
from stage import Stage, alone, both, said

from kestrel_core.loop.sequence import Sequence
from kestrel_core.protocol.errors import EngineFailed
from kestrel_core.scheduler.scheduler import LOOKAHEAD


def loading(stage: Stage) -> list[str]:
    return [adapter.identity for adapter, _ in stage.loads]


@both
def test_a_sequence_starts_when_its_adapter_is_there_and_others_do_not_wait_for_it(overlaps: bool) -> None:
    stage = Stage(overlaps=overlaps, max_adapters=1)
    patient = [stage.admit("why?", adapter="a", order=-1) for _ in range(2 * LOOKAHEAD)]
    other = stage.admit("why?", 9)
    stage.step()
    assert other.slot and not any(sequence.slot for sequence in patient)
    assert loading(stage) == ["a"] and stage.scheduler.num_waiting_for_adapters == len(patient)
    stage.load()
    stage.step()
    assert patient[0].running.adapter == 1 and other.running.adapter == 0
    assert stage.scheduler.num_waiting_for_adapters == 0
    stage.run()
    assert said(other) == alone("why?", 9) != alone("why?", 9, adapter="a")
    assert all(said(sequence) == alone("why?", adapter="a") for sequence in patient)
    assert stage.runtime.adapters.loaded == [(1, "a")]


@both
def test_adapters_run_side_by_side_and_share_no_prefix(overlaps: bool) -> None:
    stage = Stage(overlaps=overlaps, max_adapters=3)
    adapters = ["a", "b", None, "c"]
    sequences = [stage.admit("x" * 12, 6, image="cat", adapter=adapter) for adapter in adapters]
    stage.step()
    stage.load()
    stage.run()
    answers = [said(sequence) for sequence in sequences]
    assert answers == [alone("x" * 12, 6, image="cat", adapter=adapter) for adapter in adapters]
    assert len(set(map(tuple, answers))) == 4
    assert [sequence.cached_tokens for sequence in sequences] == [0, 0, 0, 0]
    again = stage.admit("x" * 12, 6, image="cat", adapter="b")
    stage.run()
    assert (again.cached_tokens, said(again)) == (15, answers[1])


@both
def test_a_preempted_sequence_gets_its_adapter_again_wherever_it_lies_then(overlaps: bool) -> None:
    stage = Stage(overlaps=overlaps, max_adapters=2)
    first = stage.admit("first", 12, adapter="a")
    stage.step()
    stage.load()
    for _ in range(3):
        stage.step()
    late = [stage.admit("late", 12, adapter=adapter, order=-1) for adapter in ("b", "c")]
    stage.step()
    assert loading(stage) == ["b"], "a is in use"
    stage.scheduler.preempt(first)
    stage.step()
    assert loading(stage) == ["b", "c"], "the one that uses a stands behind the others"
    stage.run()
    assert said(first) == alone("first", 12, adapter="a")
    assert [said(sequence) for sequence in late] == [alone("late", 12, adapter=a) for a in ("b", "c")]
    assert Counter(identity for _, identity in stage.runtime.adapters.loaded) == {"a": 2, "b": 1, "c": 1}


@both
@pytest.mark.parametrize("moment", ["waiting", "loading", "loaded", "running"])
def test_whenever_a_sequence_ends_it_gives_everything_back(overlaps: bool, moment: str) -> None:
    stage = Stage(overlaps=overlaps, max_adapters=1)
    sequence = stage.admit("what?", adapter="a")
    if moment != "waiting":
        stage.step()
    if moment in ("loaded", "running"):
        stage.load()
    if moment == "running":
        stage.step()
        assert sequence.slot
    stage.scheduler.end(sequence)
    stage.run()
    stage.load()
    assert (stage.slots.num_ready, len(stage.scheduler._waiting)) == (moment != "waiting", 0)
    other = stage.admit("what?", adapter="b")
    stage.run()
    assert said(other) == alone("what?", adapter="b") and stage.num_unused == 40


@both
def test_an_adapter_that_cannot_be_loaded_fails_its_own_sequences(overlaps: bool) -> None:
    stage = Stage(overlaps=overlaps, max_adapters=2)
    stage.runtime.adapters.failing.add("bad")
    broken = [stage.admit("what?", adapter="bad") for _ in range(3)]
    sound = stage.admit("what?", adapter="good")
    stage.step()
    assert [(update[0], type(update[2])) for update in stage.load()] == [(s, EngineFailed) for s in broken]
    stage.run()
    assert said(sound) == alone("what?", adapter="good")
    stage.runtime.adapters.failing.clear()
    again = stage.admit("what?", adapter="bad")
    stage.run()
    assert said(again) == alone("what?", adapter="bad"), "the next request tries again"


@both
def test_hot_adapters_do_not_starve_a_cold_one(overlaps: bool) -> None:
    """Two adapters are always in use, and sequences wait with both; then a third one is asked for."""
    stage = Stage(overlaps=overlaps, max_adapters=2, max_running=6)
    hot: list[Sequence] = []
    lengths = cycle((3, 7, 5, 9, 4))

    def work(order: float) -> None:
        for adapter in ("a", "b"):
            alive = [s for s in hot if not s.ended and s.root == (adapter, None)]
            for _ in range(5 - len(alive)):
                hot.append(stage.admit("hot", next(lengths), adapter=adapter, order=order))
        stage.load()
        stage.step()

    for at in range(60):
        work(at)
    assert stage.slots.num_evictions == 0 and stage.slots.num_ready == 2
    cold = stage.admit("cold", adapter="c", order=60)
    for at in range(61, 100):
        work(at)
    assert said(cold) == alone("cold", adapter="c")
    assert any(s.ended and s.order > 60 for s in hot), "the other hot adapter went on meanwhile"
    assert stage.slots.num_evictions < 6, "they do not chase each other off the device"


@both
def test_when_the_one_that_waits_for_an_index_goes_the_others_go_on_at_once(overlaps: bool) -> None:
    stage = Stage(overlaps=overlaps, max_adapters=1)
    first = stage.admit("first", adapter="a")
    stage.step()
    stage.load()
    stage.step()
    gone, later = (stage.admit("later", adapter=adapter, order=1) for adapter in ("b", "a"))
    while not first.ended:
        stage.step()
    assert not later.slot, "the index is promised to the other one"
    stage.scheduler.end(gone)
    stage.step()
    assert later.slot, "a loop that sees no step would sleep"


@both
@pytest.mark.parametrize("seed", range(6))
def test_whatever_happens_every_sequence_says_what_it_says_alone(overlaps: bool, seed: int) -> None:
    rng = random.Random(seed)
    stage = Stage(
        overlaps=overlaps,
        num_pages=(14, 20, 41)[seed % 3],
        max_context=60,
        step_tokens=(7, 40)[seed % 2],
        max_adapters=(1, 2, 3)[seed % 3],
        prefix_cache=seed != 4,
    )
    stage.runtime.adapters.failing.add("f")
    known: dict[tuple[object, ...], list[int]] = {}
    alive: list[tuple[Sequence, tuple[object, ...]]] = []
    counts: Counter[str] = Counter()
    at = 0.0

    def settle(ends: list[Sequence]) -> None:
        for sequence, (prompt, num_tokens, image, adapter) in alive:
            if sequence in ends:
                key = prompt, num_tokens, image, adapter
                if key not in known:
                    known[key] = alone(prompt, num_tokens, image=image, adapter=adapter)  # type: ignore[arg-type]
                assert said(sequence) == known[key]
                counts["said"] += 1
        alive[:] = [(sequence, asked) for sequence, asked in alive if not sequence.ended]

    for _ in range(1500):
        at += 1
        if rng.random() < 0.35 and len(alive) < 30:
            prompt, num_tokens = rng.choice(("x" * 11, "why?", "x" * 23)), rng.choice((1, 4, 15))
            image, adapter = rng.choice((None, "cat")), rng.choice((None, "a", "a", "b", "c", "d", "f"))
            order = at + rng.choice((0, 0, -20))
            alive.append(
                (
                    stage.admit(prompt, num_tokens, image, order, adapter=adapter),
                    (prompt, num_tokens, image, adapter),
                )
            )
        if alive and rng.random() < 0.05:
            stage.scheduler.end(rng.choice(alive)[0])
            counts["ended"] += 1
            settle([])
        if stage.scheduler.running and rng.random() < 0.05:
            stage.scheduler.preempt(rng.choice(stage.scheduler.running))
        updates = stage.load(rng.choice((0, 0, 1, 2)))
        assert all(s.adapter and s.adapter.identity == "f" for s, _, error in updates if error)
        counts["failed"] += len(updates)
        settle([sequence for sequence, outcome, error in stage.step() if outcome.finish and error is None])
    settle([sequence for sequence, outcome, error in stage.run() if outcome.finish and error is None])
    stage.load()
    stage.scheduler.check()
    assert stage.runtime.violations == [] and not alive and not stage.loads
    assert stage.num_unused == stage.pool.num_pages - 1
    assert counts["said"] > 150 and counts["failed"] > 10 and counts["ended"] > 20, counts
    assert stage.slots.num_evictions > 20 and stage.scheduler.num_preemptions > 20
