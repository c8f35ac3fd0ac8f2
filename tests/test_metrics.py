"""Counters and histograms: what they count, and that a snapshot is plain."""

import json

import pytest

from kestrel_core.metrics import Histogram, Metrics


def test_a_bucket_holds_what_is_at_most_its_bound() -> None:
    kept = Histogram((1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 2.0, 2.5):
        kept.observe(value)
    kept.observe(1.25, times=3)
    assert kept.counts == [2, 5, 1]
    assert (kept.count, kept.sum) == (8, 11.25)


@pytest.mark.parametrize(("share", "bound"), [(0.1, 1.0), (0.5, 2.0), (0.75, 2.0), (0.9, float("inf"))])
def test_a_quantile_is_the_bound_above_it(share: float, bound: float) -> None:
    kept = Histogram((1.0, 2.0, 3.0))
    for value in (0.5, 1.5, 1.5, 9.0):
        kept.observe(value)
    assert kept.quantile(share) == bound


def test_before_the_first_observation_every_quantile_is_nothing() -> None:
    assert Histogram().quantile(0.5) == 0.0


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
