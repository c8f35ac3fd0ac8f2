"""Salts of the cache: requests of different salts compute everything anew, whatever they have in common."""

import random
from typing import Any

import pytest
from fake_runtime import IMAGE_LENGTH, PAGE_SIZE
from fakes import FakeEngine, Heard

from kestrel_core.loop.step import StepPlan


def cached(heard: Heard) -> int:
    return heard.finished.result.metrics.cached_tokens


@pytest.mark.parametrize("image", [None, b"cat"])
def test_equal_requests_share_only_with_their_own_salt(image: bytes | None) -> None:
    engine = FakeEngine()

    def ask(salt: str) -> Heard:
        heard = engine.ask(image=image, question="why is it so?", cache_salt=salt)
        engine.run_until_idle()
        return heard

    first, other, unsalted = ask("one"), ask("two"), ask("")
    assert [cached(heard) for heard in (first, other, unsalted)] == [0, 0, 0]
    again = ask("two")
    assert cached(again) >= 10 and again.output == first.output
    engine.check_idle()


def test_a_request_does_not_wait_for_another_salt_s_picture() -> None:
    engine = FakeEngine()
    for salt in ("one", "two", "two"):
        engine.ask("caption", b"cat", cache_salt=salt)
    engine.workers.run()
    engine.step()
    assert engine.runtime.num_images == 2, "the third waits for the second"
    engine.run_until_idle()
    engine.check_idle()


def test_where_pictures_are_shared_texts_are_not() -> None:
    engine = FakeEngine(share_pictures=True)

    def ask(salt: str, image: bytes | None = b"cat") -> int:
        heard = engine.ask(image=image, question="why is it so, and why not?", cache_salt=salt)
        engine.run_until_idle()
        return cached(heard)

    picture = IMAGE_LENGTH - IMAGE_LENGTH % PAGE_SIZE
    assert [ask("one"), ask("two"), ask("")] == [0, picture, picture]
    assert ask("two") > picture, "its own text"
    assert [ask("one", None), ask("two", None)] == [0, 0]
    engine.check_idle()


class Watch:
    """Who wrote which cell. A position must never build on a cell that another salt has written."""

    def __init__(self, engine: FakeEngine) -> None:
        self.num_read = 0
        self._engine = engine
        self._writer: dict[int, str] = {}
        self._launch = engine.runtime.launch
        engine.runtime.launch = self.launch  # type: ignore[method-assign]

    def launch(self, plan: StepPlan) -> Any:
        engine, size = self._engine, self._engine.runtime.page_size
        salts = {
            sequence.slot: engine.loop._tickets[sequence].request.cache_salt
            for sequence in engine.scheduler.running
        }
        for span in plan.spans:
            pages, salt = span.sequence.pages, salts[span.slot]
            cells = [pages[at // size] * size + at % size for at in range(span.stop)]
            self.num_read += span.start
            assert all(self._writer[cell] == salt for cell in cells[: span.start])
            self._writer.update((cell, salt) for cell in cells[span.start :])
        return self._launch(plan)


@pytest.mark.parametrize("overlaps", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_no_position_builds_on_another_salt_whatever_happens(seed: int, overlaps: bool) -> None:
    rng = random.Random(seed)
    engine = FakeEngine(num_pages=26, max_running=6, step_tokens=30, overlaps=overlaps)
    watch = Watch(engine)
    taken: list[Heard] = []
    for _ in range(800):
        if rng.random() < 0.3:
            image, question = rng.choice((None, b"cat", b"dog")), rng.choice(("x" * 14, "why is it so?"))
            salt, settings = rng.choice(("", "one", "two")), {"max_tokens": rng.choice((1, 9, 30))}
            taken.append(engine.ask(image=image, question=question, cache_salt=salt, settings=settings))
        if taken and rng.random() < 0.05:
            engine.cancel(rng.choice(taken[-10:]))
        if engine.scheduler.running and rng.random() < 0.05:
            engine.scheduler.preempt(rng.choice(engine.scheduler.running))
        engine.workers.run(rng.randrange(3))
        engine.step()
    engine.run_until_idle()
    engine.check_idle()  # also: nothing of any salt is left once the cache is cleared
    assert not engine.scheduler.prefix_cache._trunk.children, "a salt left a root behind"
    assert sum(cached(heard) for heard in taken) > 500 and watch.num_read > 5000
