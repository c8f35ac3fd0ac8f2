"""Attacks beside a normal user: which are chosen, what counts as held, and that a run tells it all."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from free_ports import free_ports
from gateway_server import FakeUpstream, Running, failing, running

from kestrel_core.protocol.errors import InvalidRequest, Overloaded
from kestrel_tools.bench.attacks.doors import Reply, Target, send_http
from kestrel_tools.bench.attacks.neighbour import ASKED, Neighbour, Seen
from kestrel_tools.bench.attacks.requests import ATTACKS
from kestrel_tools.bench.options import Attacks
from kestrel_tools.bench.parts.attacks import chosen, held, over_and_over, slower, summary, target_of
from kestrel_tools.commands import main

NAME = "deep JSON to /v1/query as application/json"


@pytest.fixture
def gateway() -> Iterator[Running]:
    with running(FakeUpstream()) as it:
        yield it


def test_every_attack_has_a_name_of_its_own() -> None:
    assert len({attack.name for attack in ATTACKS}) == len(ATTACKS)


def test_what_needs_grpc_is_left_out_without_it() -> None:
    assert not any(attack.needs_grpc for attack in chosen(Attacks()))
    assert len(chosen(Attacks(grpc="localhost:8001"))) == len(ATTACKS)
    assert [attack.name for attack in chosen(Attacks(only=NAME.upper()))] == [NAME]
    with pytest.raises(InvalidRequest, match="without --grpc"):
        chosen(Attacks(only="overflowing"))


@pytest.mark.parametrize("url", ["localhost", "localhost:", "http://", ":80"])
def test_a_server_that_cannot_be_found_is_refused(url: str) -> None:
    with pytest.raises(InvalidRequest, match="HOST:PORT"):
        target_of(Attacks(url=url))
    assert target_of(Attacks(url="http://a.example:80/")) == Target("a.example", 80)


@pytest.mark.parametrize(
    ("more", "is_held"),
    [
        ({}, True),
        ({"p95_ms": 301.0}, False),
        ({"p95_ms": None}, False),
        ({"wrong": 1}, False),
        ({"refused": 1}, False),
        ({"hung": 1}, False),
        ({"not_as_it_must": 1}, False),
    ],
    ids=str,
)
def test_one_bad_answer_or_a_slow_one_is_not_held(more: dict[str, Any], is_held: bool) -> None:
    row = {"p95_ms": 300.0, "wrong": 0, "refused": 0, "hung": 0, "not_as_it_must": 0} | more
    row["slower"] = slower(row, {"p95_ms": 100.0})
    assert held(row, 3.0) is is_held


@pytest.mark.parametrize(
    ("status", "outcome"),
    [(0, "closed"), (200, "answered"), (400, "refused"), (429, "refused"), (503, "refused"), (500, "broken")],
)
def test_a_status_is_told_in_a_word(status: int, outcome: str) -> None:
    assert Reply(status, b"").outcome == outcome


def test_a_server_that_is_gone_closes_every_connection() -> None:
    assert asyncio.run(send_http(Target("127.0.0.1", 1), "/v1/query")).status == 0


def test_a_server_that_is_not_there_is_missed(capsys: pytest.CaptureFixture[str]) -> None:
    [port] = free_ports(1)
    assert main(["bench", "attacks", "--url", f"localhost:{port}", "--only", NAME]) == 2
    said = capsys.readouterr().err
    assert f"kestrel: no gateway answers at localhost:{port}; start one with `kestrel serve --demo`" in said


def test_a_neighbour_knows_a_wrong_answer_and_a_refusal(gateway: Running) -> None:
    neighbour = Neighbour(Target("127.0.0.1", gateway.port))

    async def ask() -> Seen:
        seen = Seen()
        await neighbour.learn()
        await neighbour.ask(0, seen)
        neighbour.known[0] = {"answer": "another"}
        await neighbour.ask(0, seen)
        gateway.upstream.scripts = [failing(Overloaded("full"))]
        await neighbour.ask(1, seen)
        return seen

    seen = asyncio.run(ask())
    assert (len(seen.latencies_ms), seen.wrong, seen.refused, seen.hung) == (1, 1, 1, 0)
    assert len(neighbour.known) == len(ASKED)
    assert seen.row()["requests"] == 3


def test_outcomes_that_must_not_be_are_counted(gateway: Running) -> None:
    [attack] = chosen(Attacks(only=NAME))
    outcomes = asyncio.run(over_and_over(attack, Target("127.0.0.1", gateway.port), 0.2))
    assert set(outcomes) == {"refused"} and summary(NAME, outcomes)["not_as_it_must"] == 0
    outcomes["broken"] += 2
    assert summary(NAME, outcomes)["not_as_it_must"] == 2


def test_a_run_tells_each_attack_beside_an_undisturbed_time(gateway: Running, tmp_path: Path) -> None:
    file = tmp_path / "attacks.json"
    flags = ["--url", f"localhost:{gateway.port}", "--seconds", "1", "--rate", "10", "--slower", "1000"]
    assert main(["bench", "attacks", *flags, "--only", NAME, "--json", str(file)]) == 0
    document = json.loads(file.read_text())
    nobody, attacked = document["measured"]
    assert (nobody["attack"], attacked["attack"], document["passed"]) == ("nobody", NAME, True)
    assert nobody["sent"] == 0 < attacked["sent"] and attacked["outcomes"].keys() == {"refused"}
    assert main(["bench", "report", str(file)]) == 0
