"""Counters and histograms: what they count, and that a snapshot is plain."""

import json

from kestrel_core.loop.metrics import COUNTERS, GAUGES, Exporter, Histogram, Metrics, Series, exported


def test_a_bucket_holds_what_is_at_most_its_bound() -> None:
    kept = Histogram((1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 2.0, 2.5):
        kept.observe(value)
    kept.observe(1.25, times=3)
    assert kept.counts == [2, 5, 1]
    assert (kept.count, kept.sum) == (8, 11.25)


def filled() -> Metrics:
    metrics = Metrics(steps=7)
    metrics.requests["query", "stop"] += 2
    metrics.requests["my/skill", "BadImage"] += 1
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
    assert snapshot["requests"] == {"query/stop": 2, "my/skill/BadImage": 1}
    assert snapshot["steps"] == 7
    assert snapshot["ttft_s"]["count"] == snapshot["request_s"]["query"]["count"] == 1


def snapshot(**more: object) -> dict[str, object]:
    counted = dict.fromkeys((*GAUGES, *COUNTERS), 0)
    return {**counted, **Metrics().snapshot(), "refused": {"INVALID_ARG": 2}, **more}


def test_a_snapshot_is_exported_under_names_with_units() -> None:
    kept = Histogram((1.0, 2.0))
    kept.observe(1.5, times=3)
    given = snapshot(queued=4, requests={"query/stop": 7}, ttft_s=kept.snapshot(), vision_encode_s=0.5)
    found = {(series.name, series.labels): (series.kind, series.value) for series in exported(given)}
    assert found["kestrel_queued_requests", ()] == ("gauge", 4)
    assert found["kestrel_vision_encode_seconds_total", ()] == ("counter", 0.5)
    labels = (("skill", "query"), ("outcome", "stop"))
    assert found["kestrel_requests_total", labels] == ("counter", 7)
    assert found["kestrel_refusals_total", (("code", "INVALID_ARG"),)] == ("counter", 2)
    buckets = [found["kestrel_ttft_seconds_bucket", (("le", bound),)][1] for bound in ("1.0", "2.0", "+Inf")]
    assert buckets == [0, 3, 3]
    assert found["kestrel_ttft_seconds_sum", ()] == ("counter", 4.5)
    assert found["kestrel_ttft_seconds_count", ()] == ("counter", 3)


def test_only_changes_are_told_and_counters_never_go_back() -> None:
    calls: list[tuple[str, float]] = []

    class Far:
        def increment(self, by: float) -> None:
            calls.append(("increment", by))

        def set(self, value: float) -> None:
            calls.append(("set", value))

    exporter = Exporter(lambda series: Far())
    for value in (0.0, 3.0, 3.0, 5.0, 4.0):
        exporter.tell(Series("c", "counter", "", (), value))
    for value in (0.0, 3.0, 3.0, 1.0, 0.0):
        exporter.tell(Series("g", "gauge", "", (), value))
    assert calls == [("increment", 3), ("increment", 2), ("set", 3), ("set", 1), ("set", 0)]
