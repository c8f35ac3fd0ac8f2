"""The open loop: arrivals, thresholds, the knee, the page with plots, and the exit code."""

import asyncio
import json
import re
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any
from xml.etree import ElementTree

import pytest
from tiny_folder import save_tiny

from kestrel_core.protocol.errors import InvalidRequest, Overloaded
from kestrel_core.protocol.messages import Usage
from kestrel_tools.bench.load_report import html_report, ticks
from kestrel_tools.bench.options import Ramp, Thresholds
from kestrel_tools.bench.parts.load import WARM_UP_REQUESTS, find_knee, summary
from kestrel_tools.bench.requests.callers import Outcome, arrivals, open_loop
from kestrel_tools.bench.requests.chart_questions import Question
from kestrel_tools.bench.results import markdown, percentile
from kestrel_tools.commands import main

USAGE = Usage(212, 3, 0, 2.0, 5.0, 4.0, 7.0)


def outcome(latency_ms: float, error: str | None = None, due_s: float = 0.0) -> Outcome:
    return Outcome(due_s, 0.5, latency_ms, None if error else USAGE, error)


def test_arrivals_are_a_poisson_process_and_the_same_again() -> None:
    moments = arrivals(50.0, 100.0, seed=1)
    assert moments == arrivals(50.0, 100.0, seed=1) != arrivals(50.0, 100.0, seed=2)
    assert moments == sorted(moments) and moments[0] > 0 and moments[-1] < 100
    gaps = [after - before for before, after in pairwise(moments)]
    assert fmean(gaps) == pytest.approx(1 / 50, rel=0.05)
    assert fmean(gap**2 for gap in gaps) == pytest.approx(2 / 50**2, rel=0.1), "the gaps are exponential"
    assert len(arrivals(0.001, 1.0, seed=0)) == 1


def test_every_arrival_is_asked_whatever_became_of_the_others() -> None:
    async def ask(question: Question) -> Usage:
        await asyncio.sleep(0)
        if question.chart % 3 == 0:
            raise Overloaded("full")
        return USAGE

    questions = iter([Question(index, 0) for index in range(9)])
    outcomes = asyncio.run(open_loop(ask, questions, [0.0] * 9))
    assert [one.error for one in outcomes] == ["Overloaded", None, None] * 3
    assert all(one.latency_ms >= one.late_ms >= 0 for one in outcomes)


def test_a_steps_numbers_are_of_its_outcomes() -> None:
    outcomes = [outcome(ms) for ms in range(1, 100)] + [outcome(5000.0, "Cancelled", due_s=5.0)]
    row = summary(20.0, 4.0, outcomes)
    assert row["requests"] == 100 and row["errors"] == 1 and row["errors_by_kind"] == {"Cancelled": 1}
    assert (row["p50_ms"], row["p95_ms"], row["p99_ms"]) == (50, 95, 99)
    assert row["requests_per_s"] == pytest.approx(99 / 10), "until the last of them had ended"
    assert row["output_tokens"] == 297
    assert summary(1.0, 4.0, [outcome(1.0, "Overloaded")])["p95_ms"] is None


@pytest.mark.parametrize(
    ("row", "held"),
    [
        ({}, True),
        ({"p95_ms": 101.0}, False),
        ({"p95_ms": None}, False),
        ({"ttft_p95_ms": 51.0}, False),
        ({"errors": 10}, True),
        ({"errors": 11}, False),
    ],
)
def test_thresholds_hold_or_do_not(row: dict[str, Any], held: bool) -> None:
    thresholds = Thresholds(p95_ms=100.0, ttft_p95_ms=50.0, error_share=0.1)
    good = {"p95_ms": 100.0, "ttft_p95_ms": 50.0, "errors": 0, "requests": 100}
    assert thresholds.hold({**good, **row}) is held


def test_the_knee_is_the_last_rate_before_the_first_that_failed() -> None:
    def steps(*held: bool) -> list[dict[str, Any]]:
        return [{"offered_per_s": float(rate), "held": one} for rate, one in enumerate(held, 1)]

    assert find_knee(steps(True, True, False, True)) == 2.0
    assert find_knee(steps(True, True)) == 2.0
    assert find_knee(steps(False, True)) is None


@pytest.mark.parametrize(
    "wrong",
    [{"start": 0.0}, {"factor": 1.0}, {"seconds": 0.0}, {"max_steps": 0}, {"rate": 0.0}, {"tokens": 0}],
)
def test_a_ramp_that_leads_nowhere_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        Ramp(**wrong)


def test_a_percentile_is_a_value_that_was_seen() -> None:
    values = [3.0, 1.0, 2.0, 4.0]
    assert [percentile(values, share) for share in (0.25, 0.5, 0.51, 0.95, 1.0)] == [1, 2, 3, 4, 4]
    assert percentile([7.0], 0.01) == 7.0
    hundred = [float(value) for value in range(100, 0, -1)]
    assert (percentile(hundred, 0.99), percentile(hundred, 0.5)) == (99, 50)


@pytest.mark.parametrize("most", [0.003, 1.0, 5.83, 10.0, 99.0, 900.0, 1234.5])
def test_ticks_are_round_and_reach_the_top(most: float) -> None:
    found = ticks(most)
    assert found[0] == 0 and found[-2] < most <= found[-1] + 1e-9 and 3 <= len(found) <= 8
    step = found[1]
    assert re.fullmatch(r"[125]0*", f"{step * 1e9:.0f}")


def load(tmp_path: Path, *options: str) -> tuple[int, dict[str, Any], str]:
    folder = save_tiny(tmp_path / "tiny")
    file, page = tmp_path / "load.json", tmp_path / "load.html"
    engine = ("--model-path", str(folder), "--device", "cpu", "--json", str(file), "--html", str(page))
    code = main(["bench", "load", "--seconds", "0.3", *options, *engine])
    return code, json.loads(file.read_text()), page.read_text()


def test_a_rate_that_holds_ends_with_zero_and_the_ramp_goes_on(tmp_path: Path) -> None:
    code, document, page = load(
        tmp_path, "--rate", "5", "--start", "10", "--factor", "2", "--steps", "2", "--p95-ms", "60000"
    )
    rows = document["measured"]
    assert code == 0 and document["held_at_rate"] is True and document["knee_per_s"] == 20
    assert [row["offered_per_s"] for row in rows] == [5, 10, 20]
    for row in rows:
        assert row["errors"] == 0 and row["output_tokens"] == 3 * row["requests"]
    assert "Holds up to 20.00 requests/s" in page and "are held" in page
    assert markdown(document).count("\n| ") == 1 + len(rows)


def test_a_rate_that_is_missed_ends_with_one(tmp_path: Path) -> None:
    code, document, page = load(tmp_path, "--rate", "8", "--steps", "0", "--p95-ms", "0.001")
    assert code == 1 and document["held_at_rate"] is False and document["knee_per_s"] is None
    assert "No rate held the thresholds" in page and "are missed" in page


def test_a_servers_refusals_are_counted_and_not_asked_again(tmp_path: Path) -> None:
    pytest.importorskip("tritonclient")
    from client.fake_triton import FakeTriton, answer, refuse

    server = FakeTriton()
    server.scripts = [answer] * WARM_UP_REQUESTS + [refuse("UNAVAILABLE: full")] * 2
    file = tmp_path / "load.json"
    command = ["bench", "load", "--url", server.url, "--rate", "20", "--steps", "0", "--seconds", "0.5"]
    try:
        assert main([*command, "--json", str(file)]) == 1
    finally:
        server.stop()
    document = json.loads(file.read_text())
    [row] = document["measured"]
    assert row["errors"] == 2 and row["errors_by_kind"] == {"Overloaded": 2}
    assert len(server.asked) == WARM_UP_REQUESTS + row["requests"]
    assert row["output_tokens"] == 3 * (row["requests"] - 2)
    assert document["config"] is None, "what the server runs is not known here"
    assert "a running server" in markdown(document)


def test_the_page_is_whole_by_itself() -> None:
    rows = [{**summary(rate, 1.0, [outcome(10.0 * rate)]), "held": rate < 3} for rate in (1.0, 2.0, 3.0)]
    rows.append({**summary(4.0, 1.0, [outcome(1.0, "<Overloaded>")]), "held": False})
    document = {
        "bench": "load",
        "date": "2026-01-01",
        "commit": None,
        "machine": {"gpu": None, "cpu": "<a & b>", "cores": 2, "memory_gib": 4.0},
        "versions": {"python": "3.11"},
        "config": {"model": "moondream-tiny", "weights": "random", "dtype": "auto", "device": "cpu"},
        "workload": {"step_s": 1.0},
        "thresholds": {"p95_ms": 25.0, "ttft_p95_ms": None, "error_share": 0.01},
        "knee_per_s": 2.0,
        "rate": None,
        "held_at_rate": None,
        "measured": rows,
    }
    page = html_report(document)
    assert not re.search(r"https?:|<script|<link|url\(|src=", page)
    assert "&lt;a &amp; b&gt;" in page and "<a & b>" not in page
    plots = [ElementTree.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", page, re.DOTALL)]
    assert [len(plot.findall("polyline")) for plot in plots] == [3, 2]
    points = [line.attrib["points"].split() for line in plots[0].findall("polyline")]
    assert [len(line) for line in points] == [3, 3, 3], "what was not answered has no latency to draw"
    texts = [text.text for plot in plots for text in plot.findall("text")]
    assert texts.count("knee") == 2 and texts.count("limit of P95") == 1
    assert page.count("<tr class=missed>") == 2
