"""Two replicas behind docker/haproxy.cfg, each restarted once while requests come in: none is lost.

As that file asks, each replica's gateway answers at all its ports, and Triton stays behind it.

Nobody here tries a request a second time: what fails is counted.
"""

import http.client
import json
import re
import shutil
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from free_ports import free_ports
from triton_server import ROOT, Served, served, until

from kestrel_client import Client, Retry

HAPROXY = shutil.which("haproxy", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")

pytestmark = [
    pytest.mark.triton,
    pytest.mark.skipif(HAPROXY is None, reason="there is no haproxy here; apt-get install haproxy"),
]

OPTIONS = ("--drain-s=3", "--guard-triton")
CALLERS, ENOUGH = 6, 300
PAUSE_S = 0.15  # before each request: two cores have to start a server meanwhile
QUESTION = {"SKILL": "query", "QUESTION": "?", "MAX_TOKENS": 1, "TEMPERATURE": 0}
# The ports that docker/haproxy.cfg names: of the balancer, and of each replica in the order of `Served`.
BALANCER = {"grpc": 8001, "http": 8000, "gateways": 8080, "stats": 8009}
REPLICAS = ([8100, 8101, 8102, 8103], [8110, 8111, 8112, 8113])

Ask = Callable[[], object]


@contextmanager
def over_grpc(port: int) -> Iterator[Ask]:
    with Client(f"127.0.0.1:{port}", retry=Retry(limit=0), timeout_s=30) as client:
        yield lambda: client.query(None, "?", max_tokens=1, temperature=0.0)


@contextmanager
def posting(port: int, path: str, body: dict[str, Any]) -> Iterator[Ask]:
    """One connection, kept, as most clients of HTTP do."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:

        def ask() -> None:
            connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read().decode()
            if answer.status != 200:
                raise OSError(f"HTTP {answer.status}: {text}")

        yield ask


def to_gateway(port: int) -> Any:
    return posting(port, "/v1/query", {"question": "?", "settings": {"max_tokens": 1}})


# How requests come in: by haproxy, or by a gateway that stands alone and has both replicas for upstreams.
WAYS: dict[str, Callable[[int], Any]] = {
    "grpc": over_grpc,
    "http": lambda port: posting(port, "/v2/models/moondream/generate", QUESTION),
    "gateways": to_gateway,
    "upstreams": to_gateway,
}


class Callers:
    """So many in a closed loop, over one way; they count what they get."""

    def __init__(self, way: str, port: int) -> None:
        self.num_answered = 0
        self.failures: Counter[str] = Counter()
        self._way, self._port = way, port
        self._lock, self._over = threading.Lock(), threading.Event()
        self._threads = [threading.Thread(target=self._run) for _ in range(CALLERS)]
        for thread in self._threads:
            thread.start()

    def _run(self) -> None:
        with WAYS[self._way](self._port) as ask:
            while not self._over.wait(PAUSE_S):
                try:
                    ask()
                    said = None
                except Exception as error:
                    said = f"{type(error).__name__}: {error}"
                with self._lock:
                    self.num_answered += said is None
                    self.failures.update([said] if said else [])

    def end(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(60)


class Replica:
    def __init__(self, folder: Path, model: Path, ports: list[int]) -> None:
        self._folder, self._model, self._ports = folder, model, ports
        self._held = ExitStack()
        self._starts = 0

    def start(self) -> Served:
        log = self._folder / f"log-{self._ports[0]}-{self._starts}"
        self._starts += 1
        self._served: Served = self._held.enter_context(
            served(log, *OPTIONS, ports=self._ports, KESTREL_MODEL_PATH=str(self._model))
        )
        return self._served

    def end(self) -> int:
        code = self._served.end()
        self._held.close()
        return code


class Balancer:
    """haproxy with the project's own file, on ports that are free here."""

    def __init__(self, folder: Path) -> None:
        text = (ROOT / "docker/haproxy.cfg").read_text()
        named = [*BALANCER.values(), *(port for ports in REPLICAS for port in ports)]
        self._ports = dict(zip(named, free_ports(len(named)), strict=True))
        changed = re.sub(r":(8\d\d\d)\b", lambda found: f":{self._ports[int(found[1])]}", text)
        (folder / "haproxy.cfg").write_text(changed)
        self.replica_ports = [[self._ports[port] for port in ports] for ports in REPLICAS]
        self._process = subprocess.Popen([str(HAPROXY), "-f", folder / "haproxy.cfg"])

    def port(self, way: str) -> int:
        return self._ports[BALANCER[way]]

    def num_ready(self) -> int:
        """Replicas that get requests, as haproxy sees it."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port("stats"), timeout=60)
        with closing(connection):
            connection.request("GET", "/stats;csv")
            lines = connection.getresponse().read().decode().splitlines()
        return sum(line.startswith("gateways,gpu") and ",UP," in line for line in lines)

    def end(self) -> None:
        self._process.terminate()
        self._process.wait(60)


class GatewayAlone:
    def __init__(self, upstreams: list[int]) -> None:
        [self.port] = free_ports(1)
        named = [f"--upstream=127.0.0.1:{port}" for port in upstreams]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "kestrel_gateway", *named, f"--port={self.port}", "--drain-s=0"],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,  # a line a request
            stderr=subprocess.DEVNULL,
        )

    def is_ready(self) -> bool:
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)) as connection:
            try:
                connection.request("GET", "/readyz")
                return connection.getresponse().status == 200
            except OSError:
                return False

    def end(self) -> None:
        self._process.terminate()
        self._process.wait(60)


def test_a_rolling_restart_loses_no_request(model: Path, tmp_path: Path) -> None:
    with ExitStack() as held:
        balancer = Balancer(tmp_path)
        held.callback(balancer.end)
        replicas = [Replica(tmp_path, model, ports) for ports in balancer.replica_ports]
        pool = held.enter_context(ThreadPoolExecutor(2))
        held.callback(lambda: list(pool.map(Replica.end, replicas)))
        list(pool.map(Replica.start, replicas))
        gateway = GatewayAlone([ports[1] for ports in balancer.replica_ports])
        held.callback(gateway.end)
        until(lambda: balancer.num_ready() == 2 and gateway.is_ready())
        ports = {way: gateway.port if way == "upstreams" else balancer.port(way) for way in WAYS}
        callers = {way: Callers(way, port) for way, port in ports.items()}
        held.callback(lambda: [those.end() for those in callers.values()])
        for replica in replicas:
            assert replica.end() == 0
            replica.start()
            until(lambda: balancer.num_ready() == 2)
        until(lambda: all(those.num_answered >= ENOUGH for those in callers.values()))
        for those in callers.values():
            those.end()
    assert {way: dict(those.failures) for way, those in callers.items()} == {way: {} for way in WAYS}
