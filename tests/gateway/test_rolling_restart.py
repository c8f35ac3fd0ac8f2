"""Two replicas behind a gateway are restarted one after the other, under load, and nobody notices."""

import base64
import http.client
import json
import threading
from collections import Counter
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from gateway_process import gateway_process
from triton_server import Served, free_ports, picture, save_talkative, served, until

pytestmark = pytest.mark.triton

CALLERS = 6
ENOUGH = 1000
JSON = {"Content-Type": "application/json"}
PICTURES = [base64.b64encode(picture(seed)).decode() for seed in range(8)]


class Callers:
    """Ask, each again as soon as it was answered, whole answers and streams in turn."""

    def __init__(self, port: int) -> None:
        self.outcomes: Counter[str] = Counter()
        self._port = port
        self._is_over = threading.Event()
        self._threads = [threading.Thread(target=self._ask, args=(number,)) for number in range(CALLERS)]

    @property
    def num_answered(self) -> int:
        return self.outcomes["answered"]

    def __enter__(self) -> "Callers":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join(60)

    def _ask(self, number: int) -> None:
        with closing(http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)) as connection:
            while not self._is_over.is_set():
                number += 1
                body = {
                    "image_url": PICTURES[number % len(PICTURES)],
                    "question": "What is it?",
                    "stream": number % 2 == 0,
                    "settings": {"max_tokens": 5, "temperature": 0},
                }
                connection.request("POST", "/v1/query", json.dumps(body), JSON)
                answer = connection.getresponse()
                text = answer.read().decode()
                is_whole = answer.status == 200 and '"finish_reason"' in text and '"error"' not in text
                self.outcomes["answered" if is_whole else f"{answer.status} {text[-300:]}"] += 1


def test_a_rolling_restart_of_two_replicas_loses_nothing(tmp_path: Path) -> None:
    model = save_talkative(tmp_path / "model")
    ports = free_ports(2)

    def start(index: int, name: str) -> Served:
        flags = (f"--grpc-port={ports[index]}", f"--model-path={model}", "--exit-timeout=20")
        return running[index].enter_context(served(tmp_path / name, *flags))

    running = [ExitStack() for _ in ports]
    with running[0], running[1]:
        for index in range(2):
            start(index, f"replica-{index}.log")
        upstreams = [f"--upstream=127.0.0.1:{port}" for port in ports]
        log = tmp_path / "gateway.log"
        with gateway_process(log, *upstreams) as gateway, Callers(gateway.port) as callers:
            for index in range(2):
                until(lambda before=callers.num_answered: callers.num_answered > before + 100, 60)
                running[index].close()
                again = start(index, f"replica-{index}-again.log")
                until(lambda server=again: server.metric("kestrel_requests_total") > 20, 60)
            until(lambda: sum(callers.outcomes.values()) >= ENOUGH, 120)
            assert gateway.status_of("/readyz") == 200
    assert callers.outcomes.keys() == {"answered"}, callers.outcomes.most_common(5)
    assert callers.num_answered >= ENOUGH
