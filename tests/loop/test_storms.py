"""Seeded storms over few words, pictures and adapters: nothing is lost and nobody is disturbed."""

import logging
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from fake_pictures import FakePictures, fake_pacing
from fake_runtime import LETTERS
from fakes import Heard
from poisoned import UNKNOWN, UNSOUND, alone, both, make_engine, same

from kestrel_core.protocol.errors import (
    DeadlinePassed,
    KestrelError,
    Overloaded,
)
from kestrel_core.protocol.messages import Finished, Request, parse_settings

ADAPTERS = ("a", "a", "b", "c", "far/a", "far/d", "broken", "unknown", "bad")


def random_request(rng: random.Random) -> Request:
    """Few words, pictures and adapters: almost everybody shares something with somebody. Some are bad."""
    picture = rng.choice((None, b"cat", b"dog", b"elk"))
    image = picture or b"fox"
    question = rng.choice(("a", "why is it so?", "x" * 14, "x" * 37))
    skill, image_given, arguments = rng.choice(
        (
            ("query", picture, {"question": question}),
            ("query", picture, {"question": question}),
            ("query", picture, {"question": question, "reasoning": True}),
            ("caption", image, {"length": rng.choice(("short", "long"))}),
            ("detect", image, {"object": question[:9]}),
            ("point", image, {"object": question[:9], "spatial_refs": [[0.5, 0.25]]}),
            ("tokens", picture, {"tokens": list(LETTERS * rng.randint(1, 7))}),
        )
    )
    if rng.random() < 0.12:
        wheres = ("reply", "readout", "take", "cut", "output", "prompt", "no prompt")
        skill, image_given, arguments = rng.choice(
            (
                ("poisoned", picture, {"where": rng.choice(wheres)}),
                ("tokens", picture, {"tokens": [*range(10, 20), rng.choice((UNSOUND, UNKNOWN))]}),
                ("caption", rng.choice((b"damaged", b"unheard of", b"late", None)), {}),
                ("query", picture, {"question": "x" * 99}),
                ("sing", picture, {}),
            )
        )
    settings: dict[str, Any] = {"temperature": rng.choice((0, 0.5)), "seed": 1}
    if skill in ("detect", "point"):
        settings["max_objects"] = rng.choice((2, 9))
    else:
        settings["max_tokens"] = rng.choice((1, 9, 40))
        if rng.random() < 0.1:
            settings["stop"] = rng.choice((["ab"], [" ", "ccc"]))
        if rng.random() < 0.1:
            settings["logprobs"] = 2
    if rng.random() < 0.5:
        settings["adapter"] = rng.choice(ADAPTERS)
    return Request(
        skill,
        arguments,
        image_given,
        parse_settings(settings),
        stream=rng.random() < 0.5 and skill not in ("detect", "point"),
        priority=rng.randint(-1, 1),
        timeout_s=rng.uniform(0.1, 3) if rng.random() < 0.1 else None,
    )


def begins(part: dict[str, Any], whole: dict[str, Any]) -> bool:
    """Whether an unfinished output is how the whole one begins. Thoughts are not compared."""
    growing = {key: value for key, value in part.items() if key != "reasoning"}
    return all(whole[key][: len(value)] == value for key, value in growing.items())


@pytest.fixture(scope="module")
def expected() -> Callable[[Request], Heard | KestrelError]:
    """What each request meets alone: an answer, an error, or a refusal."""
    known: dict[str, Heard | KestrelError] = {}

    def expect(request: Request) -> Heard | KestrelError:
        name = repr((request.skill, request.arguments, request.image, request.settings, request.stream))
        if name not in known:
            try:
                known[name] = alone(request)
            except KestrelError as refusal:
                known[name] = refusal
        return known[name]

    return expect


@pytest.mark.parametrize(
    ("seed", "paced"), [*((seed, False) for seed in range(4)), (1, True), (2, True), (3, True)]
)
@both
def test_whatever_happens_nothing_is_lost_and_nobody_is_disturbed(
    seed: int,
    paced: bool,
    overlaps: bool,
    expected: Callable[[Request], Heard | KestrelError],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.CRITICAL, "kestrel")
    rng = random.Random(seed)
    pacing = fake_pacing(max_known=2) if paced else None
    engine = make_engine(
        pacing=pacing,
        overlaps=overlaps,
        num_pages=(14, 16, 20, 26)[seed],
        max_running=(4, 6, 6, 8)[seed],
        step_tokens=(7, 60, 16, 30)[seed],
        prefix_cache=seed != 3,
        max_queue=30,
        max_queue_bytes=60,
        max_adapters=(1, 2, 2, 3)[seed],
    )
    taken: list[Heard] = []
    cancelled: set[Heard] = set()
    counts: Counter[str] = Counter()
    for _ in range(2500):
        for _ in range(rng.choice((0, 0, 0, 1, 2))):
            request = random_request(rng)
            try:
                taken.append(engine.submit(request))
            except Overloaded:
                counts["overloaded"] += 1
            except KestrelError as refusal:
                alike = expected(request)
                assert (type(refusal), str(refusal)) == (type(alike), str(alike))
                counts["refused"] += 1
        if taken and rng.random() < 0.06:
            heard = rng.choice(taken[-20:])
            engine.cancel(heard)
            cancelled.add(heard)
        if engine.scheduler.running and rng.random() < 0.05:
            engine.scheduler.preempt(rng.choice(engine.scheduler.running))
        engine.clock.now_s += rng.random() / 10
        for workers in (engine.workers, engine.local, engine.remote):
            workers.run(rng.randrange(3))
        engine.step()
    engine.run_until_idle()
    engine.check_idle()
    for heard in taken:
        counts[how_it_ended(heard, expected(heard.request), heard in cancelled)] += 1
    assert counts["as alone"] > 250, counts
    assert all(counts[kind] > 10 for kind in ("refused", "expired", "cancelled")), counts
    assert engine.scheduler.num_preemptions > 120
    assert engine.slots.num_evictions > 60 and engine.loop.metrics.adapter_load_failures > 5
    if pacing is not None:
        assert isinstance(pacing.pictures, FakePictures) and len(pacing.pictures.sizes) > 50


def how_it_ended(heard: Heard, alike: Heard | KestrelError, was_cancelled: bool) -> str:
    """One of the ways there are; anything else raises."""
    assert isinstance(alike, Heard)
    if same(heard, alike):
        return "as alone"
    if isinstance(heard.end, DeadlinePassed):
        assert heard.request.timeout_s is not None
        return "expired"
    assert was_cancelled
    if heard.request.skill == "poisoned":
        return "poisoned"  # cut where it cannot be
    result = heard.finished.result
    assert result.finish_reason == "cancelled"
    if isinstance(alike.end, Finished) and not heard.request.settings.stop:
        assert begins(result.output, alike.output)
    return "cancelled"
