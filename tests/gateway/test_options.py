"""What the command line says of keys and limits."""

import argparse
import tomllib

import pytest

from kestrel_core.cli.main import main
from kestrel_core.protocol.errors import InvalidRequest
from kestrel_gateway.admission.key_file import digest_of
from kestrel_gateway.command import add_options, options_from
from kestrel_gateway.options import LIMITS, GatewayOptions, read_limits


def test_any_limit_can_be_set() -> None:
    assert read_limits(["max_body_bytes=1000", "timeout_s=2.5"]) == {"max_body_bytes": 1000, "timeout_s": 2.5}
    for name, default in LIMITS.items():
        assert getattr(GatewayOptions((), **read_limits([f"{name}=7"])), name) == 7 != default


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("max_body_byte=1", "did you mean max_body_bytes?"),
        ("api_keys=1", "there is no limit"),
        ("max_body_bytes", "a whole number, more than 0"),
        ("max_body_bytes=1.5", "a whole number"),
        ("max_body_bytes=-1", "more than 0"),
        ("timeout_s=soon", "a number of seconds"),
        ("timeout_s=inf", "a number of seconds"),
        ("timeout_s=nan", "a number of seconds"),
    ],
)
def test_a_limit_that_makes_no_sense_is_refused(given: str, said: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        read_limits([given])
    assert said in str(caught.value)


def test_a_new_key_is_printed_with_its_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gateway", "--new-key", "alice"]) == 0
    text = capsys.readouterr().out
    [key] = [line for line in text.splitlines() if line.startswith("kestrel-")]
    [row] = tomllib.loads(text[text.index("[[keys]]") :])["keys"]
    assert row == {"name": "alice", "sha256": digest_of(key.encode()).hex()}


@pytest.mark.parametrize("option", ["--exit-timeout", "--drain-s"])
@pytest.mark.parametrize("given", ["-5", "nan", "3600.5", "soon"])
def test_a_time_that_is_none_is_refused(option: str, given: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["gateway", f"{option}={given}", "--new-key=nobody"])
    assert stop.value.code == 2
    assert f"{option}: '{given}' is not a time in seconds, from 0 to 3600" in capsys.readouterr().err


def test_a_gateway_may_leave_at_once() -> None:
    """Whoever has nothing to finish has ended in order."""
    parser = argparse.ArgumentParser()
    add_options(parser)
    given = options_from(parser.parse_args(["--exit-timeout=0", "--drain-s=0"]))
    assert (given.exit_timeout_s, given.drain_s) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--allow-image-hosts=http://x y", "'http://x y' is no host"),
        ("--upstream=garbage", "'garbage' is no server; write HOST:PORT"),
        ("--upstream=http://localhost:8001", "is no server"),
        ("--upstream=localhost:", "is no server"),
        ("--upstream=localhost:70000", "is no server"),
        ("--upstream=:8001", "is no server"),
        ("--upstream=dns:somewhere", "or dns:NAME:PORT"),
    ],
)
def test_a_place_that_is_none_is_refused(option: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["gateway", option, "--new-key=nobody"])
    assert stop.value.code == 2 and said in capsys.readouterr().err


@pytest.mark.parametrize(
    "given", ["localhost:8001", "[::1]:8001", "10.0.0.7:1", "dns:triton.models.svc:8001"]
)
def test_a_place_with_a_port_is_an_upstream(given: str) -> None:
    parser = argparse.ArgumentParser()
    add_options(parser)
    assert options_from(parser.parse_args([f"--upstream={given}"])).upstreams == (given,)
