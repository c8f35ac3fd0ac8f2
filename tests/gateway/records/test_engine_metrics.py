"""The engine's own numbers, which the gateway shows for a Triton that only its own machine can reach."""

import asyncio
from typing import Any

import pytest
from starlette.testclient import TestClient

from kestrel_gateway.app import make_app
from kestrel_gateway.house import House
from kestrel_gateway.options import GatewayOptions
from kestrel_gateway.records import engine_metrics
from kestrel_gateway.records.engine_metrics import EngineMetrics


class Nobody:
    """An upstream that is never asked."""


def house(**options: Any) -> House:
    return House(GatewayOptions(("localhost:1",), **options), Nobody())  # type: ignore[arg-type]


def test_they_are_shown_as_triton_writes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    page = 'kestrel_queued_requests{engine="0"} 3\n'
    monkeypatch.setattr(engine_metrics, "fetch", lambda url: asked.append(url) or page)
    answers = [TestClient(make_app(house(engine_metrics="http://t:8002/metrics"))).get("/metrics/engine")]
    assert [answer.text for answer in answers] == [page]
    assert answers[0].headers["content-type"].startswith("text/plain; version=0.0.4")
    assert asked == ["http://t:8002/metrics"]


def test_triton_is_asked_once_a_second_however_many_ask_here() -> None:
    asked: list[str] = []

    async def ask_often() -> list[int]:
        metrics = EngineMetrics("url", lambda url: asked.append(url) or "page")  # type: ignore[func-returns-value]
        answers = await asyncio.gather(*(metrics.answer(None, None) for _ in range(100)))  # type: ignore[arg-type]
        return [answer.status_code for answer in answers]

    assert asyncio.run(ask_often()) == [200] * 100
    assert len(asked) == 1


def test_while_triton_does_not_answer_it_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_metrics, "fetch", lambda url: None)
    answer = TestClient(make_app(house(engine_metrics="http://t:8002/metrics"))).get("/metrics/engine")
    assert answer.status_code == 503 and "cannot be read now" in answer.json()["error"]["message"]


def test_a_gateway_that_was_not_told_where_they_are_has_no_such_path() -> None:
    assert TestClient(make_app(house())).get("/metrics/engine").status_code == 404
