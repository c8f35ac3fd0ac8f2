"""What the supervisor tells of restarts is on the gateway's page of metrics, a crash loop in readiness."""

import asyncio
import json
from pathlib import Path
from typing import cast

from gateway_server import FakeUpstream
from prometheus_client import CollectorRegistry, generate_latest
from starlette.requests import Request

from kestrel_gateway.health import answer_ready
from kestrel_gateway.house import House
from kestrel_gateway.options import GatewayOptions
from kestrel_gateway.records.keeper import Keeper
from kestrel_gateway.records.metrics import Metrics

STATUS = {
    "triton": {"restarts": 4, "in_a_row": 4, "is_looping": True, "cause": "the server ended (SIGSEGV)"},
    "gateway": {"restarts": 1, "in_a_row": 0, "is_looping": False, "cause": "the gateway ended (SIGKILL)"},
}


def test_a_crash_loop_is_told_with_its_cause(tmp_path: Path) -> None:
    (tmp_path / "status").write_text(json.dumps(STATUS))
    told = Keeper(tmp_path / "status").told()
    assert told == (
        "triton has died 4 times in a row and is started again, the last time because "
        "the server ended (SIGSEGV)"
    )


def test_restarts_are_among_the_metrics(tmp_path: Path) -> None:
    (tmp_path / "status").write_text(json.dumps(STATUS))
    page, _ = Metrics(Keeper(tmp_path / "status")).page("")
    assert 'kestrel_restarts_total{program="triton"} 4.0' in page.decode()
    assert 'kestrel_crash_loop{program="triton"} 1.0' in page.decode()
    assert 'kestrel_crash_loop{program="gateway"} 0.0' in page.decode()


def test_a_gateway_that_nobody_keeps_tells_nothing(tmp_path: Path) -> None:
    for keeper in (Keeper(None), Keeper(tmp_path / "gone")):
        registry = CollectorRegistry()
        registry.register(keeper)
        assert keeper.told() == "" and generate_latest(registry) == b""


def test_a_crash_loop_is_told_in_readiness_whether_or_not_somebody_answers(tmp_path: Path) -> None:
    (tmp_path / "status").write_text(json.dumps(STATUS))
    house = House(GatewayOptions(upstreams=(), run_status=tmp_path / "status"), FakeUpstream())
    asked = cast(Request, None)
    away = asyncio.run(answer_ready(house, asked))
    assert away.status_code == 503
    assert "the server ended (SIGSEGV)" in json.loads(away.body)["error"]["message"]
    house.upstream.replicas[0].is_found_well()
    ready = asyncio.run(answer_ready(house, asked))
    assert ready.status_code == 200 and "died 4 times in a row" in json.loads(ready.body)["warning"]
