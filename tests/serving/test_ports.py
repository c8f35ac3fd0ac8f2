"""Who listens where, as `kestrel serve` settles it before anything is started."""

import argparse
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from triton_server import free_ports, port_flags

from kestrel_core.config import RuntimeConfig
from kestrel_core.triton import ports, serve
from kestrel_core.triton.banner import banner
from kestrel_core.triton.gateway import gateway_flags
from kestrel_core.triton.installation import find_triton
from kestrel_core.triton.options import ServeOptions
from kestrel_core.triton.ports import hidden_ports, is_loopback
from kestrel_core.triton.server import triton_flags
from kestrel_gateway.command import add_options, options_from
from kestrel_gateway.options import GatewayOptions

Refused = Callable[..., str]
Started = Callable[..., Any]
CPU = RuntimeConfig(model="moondream-tiny", device="cpu")


def of_gateway(options: ServeOptions) -> GatewayOptions:
    """What the gateway makes of the flags that it is started with."""
    parser = argparse.ArgumentParser()
    add_options(parser)
    return options_from(parser.parse_args(gateway_flags(options)))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "localhost", "::1"])
def test_on_this_machine_alone_triton_has_the_ports_that_were_given(started: Started, host: str) -> None:
    _, options, _ = started("--demo", "--host", host)
    assert options.triton_host == options.host == host and not options.is_guarded
    gateway = of_gateway(options)
    assert (gateway.kserve_http_port, gateway.kserve_grpc_port) == (None, None)
    assert gateway.upstreams[0].endswith(f":{options.grpc_port}")


def test_on_any_other_host_the_gateway_has_them_and_triton_stays_behind(started: Started) -> None:
    http, grpc, metrics, port = given = free_ports(4)
    _, options, _ = started("--demo", "--host=0.0.0.0", *port_flags(given))
    gateway = of_gateway(options)
    assert (gateway.host, gateway.port) == ("0.0.0.0", port)
    assert (gateway.kserve_http_port, gateway.kserve_grpc_port) == (http, grpc)
    flags = triton_flags(options, CPU, None)
    assert not any("0.0.0.0" in flag for flag in flags)
    assert {f"--{name}-address=127.0.0.1" for name in ("http", "grpc", "metrics")} <= set(flags)
    assert not {http, grpc, port} & {options.http_port, options.grpc_port}
    assert gateway.upstreams == (f"127.0.0.1:{options.grpc_port}",)
    assert gateway.engine_metrics == f"http://127.0.0.1:{metrics}/metrics"


def test_for_a_balancer_on_this_machine_triton_is_put_behind_here_too(started: Started) -> None:
    _, options, _ = started("--demo", "--guard-triton", "--http-port=18000", "--grpc-port=18001")
    gateway = of_gateway(options)
    assert gateway.host == options.triton_host == "127.0.0.1" and options.is_guarded
    assert (gateway.kserve_http_port, gateway.kserve_grpc_port) == (18000, 18001)


def test_behind_the_gateway_triton_answers_nobody_else(started: Started) -> None:
    secrets = [started("--demo", "--host=0.0.0.0", whole=True)[-1] for _ in range(2)]
    assert None not in secrets and secrets[0] != secrets[1]
    assert started("--demo", "--host=0.0.0.0", "--expose-triton", whole=True)[-1] is None


def test_who_wants_triton_itself_on_the_network_has_to_say_so_and_is_warned_once(
    started: Started, capsys: pytest.CaptureFixture[str]
) -> None:
    _, options, _ = started("--demo", "--host=0.0.0.0", "--expose-triton")
    assert options.triton_host == "0.0.0.0" and of_gateway(options).kserve_http_port is None
    said = "".join(capsys.readouterr())
    assert said.count("Triton itself listens on 0.0.0.0") == 1
    started("--demo", "--host=0.0.0.0", "--expose-triton", "--port=0")
    started("--demo", "--host=0.0.0.0")
    assert "".join(capsys.readouterr()).count("Triton itself listens") == 1


def test_a_network_without_a_gateway_is_refused(refused: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    said = refused("--host=0.0.0.0", "--port=0")
    assert "nothing stands between Triton and those who reach 0.0.0.0" in said and "--expose-triton" in said
    assert "--host 127.0.0.1 is this machine alone" in refused("--expose-triton")
    assert "give the gateway a --port\n" in refused("--guard-triton", "--port=0")
    monkeypatch.setattr(serve, "missing_packages", lambda: ["starlette"])
    assert "nothing stands between Triton and those who reach 0.0.0.0" in refused("--host=0.0.0.0")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "", "a-name", "ip6-localhost", "127.1"])
def test_only_what_is_certainly_this_machine_is_taken_for_it(host: str) -> None:
    assert not is_loopback(host)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--http-address=0.0.0.0"], "--http-address is set by kestrel itself; give --host"),
        (["--grpc-address", "0.0.0.0"], "--grpc-address is set by kestrel itself; give --host"),
        (["--log-verbose=1", "--metrics-port", "9"], "--metrics-port is set by kestrel itself"),
        (["--http-a=0.0.0.0"], "--http-a is set by kestrel itself; give --host"),
        (["--allow-http=false"], "--allow-http cannot be given"),
        (["--allow-metr=0"], "--allow-metr cannot be given"),
        (["--allow-sagemaker=true"], "one more port"),
        (["--allow-v", "1"], "one more port"),
    ],
)
def test_no_flag_of_tritons_moves_or_opens_its_ports(refused: Refused, flags: list[str], said: str) -> None:
    assert said in refused("--", *flags)


def test_flags_about_other_things_are_passed_on(started: Started) -> None:
    flags = ["--http-thread-count=2", "--grpc-max-connection-age=300000", "--log-verbose", "1"]
    _, options, _ = started("--demo", "--", *flags)
    assert list(options.flags) == flags
    started("--demo", "--host=0.0.0.0", "--expose-triton", "--", "--allow-vertex-ai=true")


def test_the_environment_opens_no_port_either(tmp_path: Path) -> None:
    assert "AIP_MODE" not in find_triton(tmp_path, {"AIP_MODE": "PREDICTION", "PATH": ""}).environment


def test_ports_behind_the_gateway_are_free_and_no_outgoing_connection_takes_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, _ = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()
    assert ports.HIDDEN_PORTS[-1] < int(first)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        monkeypatch.setattr(ports, "HIDDEN_PORTS", range(port, port + 1))
        with pytest.raises(Exception, match="is free for Triton"):
            hidden_ports(1, ())
    assert hidden_ports(1, ()) == [port]
    with pytest.raises(Exception, match="is free for Triton"):
        hidden_ports(1, {port})


def test_the_banner_names_what_clients_can_reach(started: Started) -> None:
    http, grpc, metrics, port = given = free_ports(4)
    _, options, _ = started("--demo", "--host=0.0.0.0", *port_flags(given))
    text = banner("model", CPU, 1.0, options, ())
    listening = f"gateway {port}, http {http}, grpc {grpc}, on 0.0.0.0; metrics {metrics}, on 127.0.0.1\n"
    assert listening in text
    assert f"--url localhost:{grpc} " in text and str(options.grpc_port) not in text
