"""What the dashboard, the alerts and the autoscaler ask Prometheus for: metrics and labels that exist."""

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kestrel_core.loop.metrics import COUNTERS, GAUGES, Metrics, exported
from kestrel_core.protocol import errors
from kestrel_core.protocol.messages import EngineResult, Request, Usage
from kestrel_gateway.records.metrics import Metrics as GatewayMetrics
from kestrel_gateway.records.visits import Visit

promql_parser = pytest.importorskip("promql_parser")
yaml = pytest.importorskip("yaml")

DOCKER = Path(__file__).parents[2] / "docker"
ADDED = {"instance", "job", "engine"}  # by Prometheus, and by the Triton model to every series


def dashboard() -> dict[str, Any]:
    return dict(json.loads((DOCKER / "grafana/kestrel.json").read_text()))


def queries() -> dict[str, str]:
    """Every PromQL expression, by what it is for. Grafana's own variables are given a value."""
    asked = {
        f"{panel['title']} {target['refId']}": target["expr"].replace("$__rate_interval", "1m")
        for panel in dashboard()["panels"]
        for target in panel["targets"]
    }
    [group] = yaml.safe_load((DOCKER / "prometheus/alerts.yml").read_text())["groups"]
    return asked | {rule["alert"]: rule["expr"] for rule in group["rules"]}


def selectors(query: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Each metric a query reads, with the labels it picks it by. The parser has judged the query before."""
    for name, labels in re.findall(r"\b(kestrel[_:]\w+|up)(?:\{([^}]*)\})?", query):
        yield name, dict(re.findall(r'(\w+)[=!]~?"([^"]*)"', labels))


@cache
def known() -> dict[str, set[str]]:
    return of_the_engine() | of_the_gateway()


def of_the_gateway() -> dict[str, set[str]]:
    """What it shows of one request and one server."""
    counted = GatewayMetrics()
    visit = Visit("1", "POST", "/v1/query", model="m", adapter="a", outcome="ok", observers=(counted,))
    visit.ask(Request("query"))
    visit.saw_result(EngineResult("1", "stop", {"answer": ""}, Usage(1, 2, 0, 1.0, 1.0, 1.0, 1.0)))
    counted.ended(visit)
    counted.note_upstream("u", True)
    families = text_string_to_metric_families(counted.page("")[0].decode())
    return {sample.name: set(sample.labels) for family in families for sample in family.samples}


def of_the_engine() -> dict[str, set[str]]:
    """What the Triton model exports: names, and the labels of each."""
    metrics = Metrics()
    metrics.requests["query", "stop"] += 1
    metrics.request_s["query"].observe(1.0)
    snapshot = dict.fromkeys((*GAUGES, *COUNTERS), 0) | metrics.snapshot()
    found: dict[str, set[str]] = {"up": set()}
    for series in exported(snapshot | {"refused": {"INTERNAL": 1}, "info": {}}, metrics):
        labels = {label for label, _ in series.labels}
        if series.kind == "histogram":  # as Triton writes it
            found |= {f"{series.name}_bucket": {*labels, "le"}}
            found |= {f"{series.name}_{part}": labels for part in ("sum", "count")}
        else:
            found[series.name] = labels
    return found


@pytest.mark.parametrize(("purpose", "query"), queries().items(), ids=queries())
def test_every_query_is_promql_over_metrics_and_labels_that_exist(purpose: str, query: str) -> None:
    promql_parser.parse(query)
    used = dict(selectors(query))
    assert used
    for name, labels in used.items():
        assert name in known(), f"{purpose} reads {name}, which nobody exports"
        assert set(labels) <= known()[name] | ADDED
    grouped = {label for group in re.findall(r"\bby \(([^)]*)\)", query) for label in group.split(", ")}
    assert grouped <= set().union(*(known()[name] for name in used)) | ADDED


def test_names_of_vllm_are_recorded_from_metrics_that_exist() -> None:
    [group] = yaml.safe_load((DOCKER / "prometheus/rules.yml").read_text())["groups"]
    for rule in group["rules"]:
        promql_parser.parse(rule["expr"])
        assert {name for name, _ in selectors(rule["expr"])} <= known().keys()


def test_outcomes_and_codes_in_the_queries_are_those_there_are() -> None:
    types = [
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.KestrelError)
    ]
    outcomes = {"stop", "length", "cancelled"} | {kind.reason for kind in types}
    codes = {kind.code for kind in types}
    picked = [labels for query in queries().values() for _, labels in selectors(query)]
    assert {
        word for labels in picked if "outcome" in labels for word in labels["outcome"].split("|")
    } <= outcomes
    assert {labels["code"] for labels in picked if "code" in labels} <= codes


def test_the_dashboard_shows_everything_that_is_exported() -> None:
    """But for what says nothing on its own."""
    shown = {name for query in queries().values() for name, _ in selectors(query)}
    left = {re.sub(r"_(bucket|sum|count)$", "_bucket", name) for name in of_the_engine()} - shown
    assert left == {"kestrel_open_requests"}, "waiting and running together, nearly"


def test_the_autoscaler_reads_gauges_that_exist() -> None:
    scaler = yaml.safe_load((DOCKER / "kubernetes/autoscaler.yaml").read_text())
    names = {metric["pods"]["metric"]["name"] for metric in scaler["spec"]["metrics"]}
    assert names <= {f"kestrel_{name}" for name, _ in GAUGES.values()}


def test_panels_do_not_overlap_and_say_what_they_show() -> None:
    panels = dashboard()["panels"]
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not cells & taken and max(x for x, _ in cells) < 24
        taken |= cells
        assert panel["title"] and panel["description"].endswith(".")
    assert len({panel["id"] for panel in panels}) == len(panels)


def test_panels_ask_the_data_source_that_is_provisioned() -> None:
    [source] = yaml.safe_load((DOCKER / "grafana/datasources.yaml").read_text())["datasources"]
    assert {panel["datasource"]["uid"] for panel in dashboard()["panels"]} == {source["uid"]}
    assert source["url"].removeprefix("http://") == "prometheus:9090"


def test_the_operator_is_told_what_to_do_at_every_alert() -> None:
    [group] = yaml.safe_load((DOCKER / "prometheus/alerts.yml").read_text())["groups"]
    page = (DOCKER.parent / "docs/operations.md").read_text()
    explained = {line.partition("`Kestrel")[2].partition("`")[0] for line in page.splitlines()}
    assert {rule["alert"].removeprefix("Kestrel") for rule in group["rules"]} == explained - {""}
