"""Counters and histograms: what they count, and that a snapshot is plain."""

import json

from kestrel_core.loop.metrics import (
    COUNTERS,
    GAUGES,
    MAX_UNEXPORTED,
    Exporter,
    Histogram,
    Metrics,
    Series,
    exported,
    totals,
)


def test_a_bucket_holds_what_is_at_most_its_bound() -> None:
    kept = Histogram((1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 2.0, 2.5):
        kept.observe(value)
    assert kept.counts == [2, 2, 1]
    assert (kept.count, kept.sum) == (5, 7.5)


def test_observations_wait_for_the_exporter_and_the_oldest_are_lost_and_counted() -> None:
    kept = Histogram()
    for value in range(MAX_UNEXPORTED + 3):
        kept.observe(value)
    assert kept.num_lost == 3 and kept.count == MAX_UNEXPORTED + 3
    assert list(kept.take_unexported()) == [float(value) for value in range(3, MAX_UNEXPORTED + 3)]
    assert list(kept.take_unexported()) == []


def test_what_is_observed_during_an_export_is_for_the_next() -> None:
    kept = Histogram()
    kept.observe(1.0)
    taken = kept.take_unexported()
    assert next(taken) == 1.0
    kept.observe(2.0)
    assert list(taken) == [] and list(kept.take_unexported()) == [2.0]


def filled() -> Metrics:
    metrics = Metrics(steps=7)
    metrics.requests["query", "stop"] += 2
    metrics.requests["my/skill", "image_decode_failed"] += 1
    metrics.request_s["query"].observe(0.2)
    metrics.ttft_s.observe(0.002)
    return metrics


def test_a_snapshot_is_plain_and_stays_as_it_was() -> None:
    metrics = filled()
    snapshot = metrics.snapshot()
    before = json.dumps(snapshot)
    metrics.requests["query", "stop"] += 1
    metrics.ttft_s.observe(1.0)
    metrics.steps += 1
    assert json.dumps(snapshot) == before
    assert snapshot["requests"] == {"query/stop": 2, "my/skill/image_decode_failed": 1}
    assert snapshot["steps"] == 7
    assert snapshot["ttft_s"]["count"] == snapshot["request_s"]["query"]["count"] == 1


def snapshot(**more: object) -> dict[str, object]:
    counted = dict.fromkeys((*GAUGES, *COUNTERS), 0)
    served = {"refused": {"INVALID_ARG": 2}, "info": {"version": "1.2", "attention": "sdpa"}}
    return {**counted, **Metrics().snapshot(), **served, **more}


def test_a_snapshot_is_exported_under_names_with_units() -> None:
    metrics = filled()
    given = snapshot(queued=4, requests={"query/stop": 7}, vision_encode_s=0.5)
    found = {(series.name, series.labels): (series.kind, series.value) for series in exported(given, metrics)}
    assert found["kestrel_queued_requests", ()] == ("gauge", 4)
    assert found["kestrel_vision_encode_seconds_total", ()] == ("counter", 0.5)
    labels = (("skill", "query"), ("outcome", "stop"))
    assert found["kestrel_requests_total", labels] == ("counter", 7)
    assert found["kestrel_refusals_total", (("code", "INVALID_ARG"),)] == ("counter", 2)
    assert found["kestrel_ttft_seconds", ()] == ("histogram", metrics.ttft_s)
    skill = (("skill", "query"),)
    assert found["kestrel_request_seconds", skill] == ("histogram", metrics.request_s["query"])


def test_what_the_engine_runs_on_is_a_gauge_of_one_with_labels() -> None:
    [info] = [series for series in exported(snapshot(), Metrics()) if series.name == "kestrel_engine_info"]
    assert (info.kind, info.value) == ("gauge", 1)
    assert dict(info.labels) == {"version": "1.2", "attention": "sdpa"}


def test_lost_observations_are_exported() -> None:
    metrics = Metrics()
    metrics.ttft_s.num_lost, metrics.request_s["query"].num_lost = 3, 4
    [lost] = [series for series in exported(snapshot(), metrics) if "lost" in series.name]
    assert (lost.name, lost.kind, lost.value) == ("kestrel_lost_observations_total", "counter", 7)


def test_totals_are_what_is_exported_without_labels() -> None:
    metrics = filled()
    found = totals(snapshot() | metrics.snapshot())
    assert found["kestrel_steps_total"] == 7
    assert (found["kestrel_ttft_seconds_sum"], found["kestrel_ttft_seconds_count"]) == (0.002, 1)


class ServerMetric:
    def __init__(self, calls: list[tuple[str, float]]) -> None:
        self._calls = calls

    def increment(self, by: float) -> None:
        self._calls.append(("increment", by))

    def set(self, value: float) -> None:
        self._calls.append(("set", value))

    def observe(self, value: float) -> None:
        self._calls.append(("observe", value))


def test_only_changes_are_told_and_counters_never_go_back() -> None:
    calls: list[tuple[str, float]] = []
    exporter = Exporter(lambda series: ServerMetric(calls))
    for value in (0.0, 3.0, 3.0, 5.0, 4.0):
        exporter.tell(Series("c", "counter", "", (), value))
    for value in (0.0, 3.0, 3.0, 1.0, 0.0):
        exporter.tell(Series("g", "gauge", "", (), value))
    assert calls == [("increment", 3), ("increment", 2), ("set", 3), ("set", 1), ("set", 0)]


def test_each_observation_is_told_once() -> None:
    calls: list[tuple[str, float]] = []
    exporter, kept = Exporter(lambda series: ServerMetric(calls)), Histogram()
    for value in (0.5, 0.25):
        kept.observe(value)
        exporter.tell(Series("h", "histogram", "", (), kept))
    exporter.tell(Series("h", "histogram", "", (), kept))
    assert calls == [("observe", 0.5), ("observe", 0.25)]
