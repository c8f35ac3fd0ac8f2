"""A step that failed is launched again, sequence by sequence: nobody's answer may change by that."""

import pytest
from fakes import FakeEngine, Heard


def ask_some(engine: FakeEngine) -> list[Heard]:
    return [
        engine.ask(question="what is this?", settings={"max_tokens": 12}),
        engine.ask(question="why?", settings={"max_tokens": 12, "temperature": 1, "seed": 5}),
        engine.ask("detect", b"cat", object="ear", settings={"max_objects": 4}),
        engine.ask("caption", b"dog", settings={"max_tokens": 12}),
    ]


def outputs(engine: FakeEngine, fail_at: int | None, times: int) -> list[object]:
    heard = ask_some(engine)
    engine.workers.run()
    if fail_at is not None:
        engine.step(fail_at)
        engine.runtime.late_failures = times
    engine.run_until_idle()
    assert engine.runtime.late_failures == 0, "nobody failed"
    engine.check_idle()
    return [one.output for one in heard]


@pytest.mark.parametrize("overlaps", [False, True], ids=["one by one", "overlapping"])
@pytest.mark.parametrize("fail_at", range(8))
def test_a_launch_that_failed_late_changes_no_answer(fail_at: int, overlaps: bool) -> None:
    expected = outputs(FakeEngine(overlaps=overlaps), None, 0)
    assert outputs(FakeEngine(overlaps=overlaps), fail_at, 1) == expected


def test_whoever_fails_again_fails_alone() -> None:
    expected = outputs(FakeEngine(overlaps=True), None, 0)
    engine = FakeEngine(overlaps=True)
    heard = ask_some(engine)
    engine.workers.run()
    engine.step(3)
    engine.runtime.late_failures = 2  # the step, and the first sequence of it alone
    engine.run_until_idle()
    engine.check_idle()
    assert "computing this request failed (RuntimeError)" in str(heard[0].error)
    assert [one.output for one in heard[1:]] == expected[1:]
