"""Long runs say how far they are, also where nobody looks at a terminal."""

import io

import pytest
from rich.console import Console

from kestrel_tools import progress
from kestrel_tools.progress import counted, told


def test_a_log_gets_ten_lines_of_a_count() -> None:
    log = io.StringIO()
    with counted("pictures", 200, Console(file=log)) as advance:
        for _ in range(100):
            advance(2)
    lines = log.getvalue().splitlines()
    assert [line.split(",")[0] for line in lines] == [f"pictures: {20 * n} of 200" for n in range(1, 11)]


def test_a_log_gets_what_begins_and_then_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    now, log = [100.0], io.StringIO()
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with told(Console(file=log)) as say:
        for second in range(65):
            now[0] = 100.0 + second
            say(f"[{second}] of 65 s" if second != 7 else "drawing")
    assert log.getvalue().splitlines() == [
        "0 s: [0] of 65 s",
        "7 s: drawing",
        "37 s: [37] of 65 s",
    ]
