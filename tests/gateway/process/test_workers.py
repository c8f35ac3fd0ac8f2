"""Several worker processes on one port: all answer, the dead are replaced, all end together."""

import http.client
import os
import re
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from gateway_process import GatewayProcess, gateway_process
from triton_server import until

NOBODY = "--upstream=127.0.0.1:1"


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayProcess]:
    with gateway_process(tmp_path / "log", "--workers=2", NOBODY, path="/livez") as it:
        until(lambda: it.log.read_text().count("listens on port") == 2)
        yield it


def answers(gateway: GatewayProcess) -> dict[str, float]:
    """Every series of the metrics that starts with this gateway's count of answers."""
    with closing(http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=60)) as connection:
        connection.request("GET", "/metrics")
        page = connection.getresponse().read().decode()
    found = re.findall(r"^kestrel:http_requests_total\{(.*)\} (\S+)$", page, re.MULTILINE)
    return {labels: float(value) for labels, value in found}


def lives(gateway: GatewayProcess) -> float:
    return sum(value for labels, value in answers(gateway).items() if "/livez" in labels)


def shared_folders(gateway: GatewayProcess) -> list[Path]:
    return list(gateway.log.parent.glob("kestrel-gateway-*"))


def test_each_worker_counts_and_any_of_them_tells_the_sum(gateway: GatewayProcess) -> None:
    until(lambda: lives(gateway) == 1)  # that found it ready; an answer is counted when it has been sent
    for _ in range(50):
        assert gateway.status_of("/livez") == 200
    until(lambda: lives(gateway) == 51)
    assert len(gateway.children()) == 2


def test_a_worker_that_dies_is_replaced(gateway: GatewayProcess) -> None:
    dead, other = gateway.children()
    os.kill(dead, signal.SIGKILL)
    until(lambda: gateway.log.read_text().count("listens on port") == 3)
    assert f"worker {dead} ended (SIGKILL); starting it again" in gateway.log.read_text()
    assert len(gateway.children()) == 2 and other in gateway.children()
    assert gateway.status_of("/livez") == 200


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_all_and_nothing_is_left(gateway: GatewayProcess, number: signal.Signals) -> None:
    workers = gateway.children()
    assert len(shared_folders(gateway)) == 1
    gateway.process.send_signal(number)
    assert gateway.process.wait(60) == 0
    assert not any(is_running(worker) for worker in workers)
    assert shared_folders(gateway) == []


def test_ctrl_c_in_a_terminal_reaches_them_twice_and_ends_them_once(gateway: GatewayProcess) -> None:
    for worker in gateway.children():
        os.kill(worker, signal.SIGINT)
    assert gateway.status_of("/livez") == 200
    assert len(gateway.children()) == 2


def test_a_hangup_ends_nobody(gateway: GatewayProcess) -> None:
    before = gateway.children()
    gateway.process.send_signal(signal.SIGHUP)
    assert gateway.status_of("/livez") == 200
    assert gateway.end() == 0 and before


def test_workers_end_with_the_process_that_started_them(gateway: GatewayProcess) -> None:
    workers = gateway.children()
    gateway.process.kill()
    gateway.process.wait(60)
    until(lambda: not any(is_running(worker) for worker in workers))


def test_a_port_that_is_taken_is_said_once(gateway: GatewayProcess, tmp_path: Path) -> None:
    with (
        pytest.raises(AssertionError, match="Address already in use"),
        gateway_process(tmp_path / "second", "--workers=2", f"--port={gateway.port}", NOBODY, path="/none"),
    ):
        pass
    assert (tmp_path / "second").read_text().count("Address already in use") == 1


def is_running(pid: int) -> bool:
    """Not ended; a process that nobody has waited for yet has ended too."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
