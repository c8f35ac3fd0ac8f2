"""Keys where several workers answer: their limits hold for all together, and a signal reaches each."""

import http.client
import signal
from contextlib import closing
from pathlib import Path

import pytest
from gateway_process import GatewayProcess, gateway_process
from triton_server import until

from kestrel_core.protocol.errors import KestrelError
from kestrel_gateway.admission.key_file import make_key
from kestrel_gateway.options import GatewayOptions
from kestrel_gateway.process.serving import run

NOBODY = "--upstream=127.0.0.1:1"


def status_with(gateway: GatewayProcess, key: str) -> int:
    with closing(http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=60)) as connection:
        connection.request("GET", "/v1/nothing", headers={"Authorization": f"Bearer {key}"})
        return connection.getresponse().status


def test_a_rate_holds_over_all_workers(tmp_path: Path) -> None:
    key, lines = make_key("alice")
    keys = tmp_path / "keys.toml"
    keys.write_text(lines + "requests_per_minute = 10\n")
    flags = ("--workers=3", NOBODY, f"--api-keys={keys}")
    with gateway_process(tmp_path / "log", *flags, path="/livez") as gateway:
        until(lambda: gateway.log.read_text().count("listens on port") == 3)
        statuses = [status_with(gateway, key) for _ in range(40)]
        assert statuses == [404] * 10 + [429] * 30

        other, lines = make_key("bob")
        keys.write_text(lines)
        gateway.process.send_signal(signal.SIGHUP)
        until(lambda: gateway.log.read_text().count("keys were read again") == 3)
        assert {status_with(gateway, other) for _ in range(20)} == {404}
        assert {status_with(gateway, key) for _ in range(20)} == {401}
        assert key not in gateway.log.read_text() and other not in gateway.log.read_text()


def test_a_bad_file_is_told_before_anything_starts(tmp_path: Path) -> None:
    keys = tmp_path / "keys.toml"
    keys.write_text('[[keys]]\nname = "alice"\n')
    with pytest.raises(KestrelError, match="key alice: sha256 must be 64 hex digits"):
        run(GatewayOptions(("127.0.0.1:1",), port=0, workers=2, api_keys=keys))
