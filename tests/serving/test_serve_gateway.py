"""`kestrel serve` and its gateway before anything is started: what is passed on, and what is refused."""

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from free_ports import free_ports
from triton_server import ROOT

from kestrel_core.cli.main import main
from kestrel_core.triton import serve
from kestrel_core.triton.gateway import PACKAGES, missing_packages
from kestrel_core.triton.restrictions import restriction_flags

SECRET = "0123456789abcdef"
Refused = Callable[..., str]
Started = Callable[..., Any]


@pytest.fixture
def keys(tmp_path: Path) -> str:
    (tmp_path / "keys.toml").touch()
    return f"--api-keys={tmp_path / 'keys.toml'}"


def test_there_is_a_gateway_unless_its_port_is_zero(started: Started) -> None:
    *_, gateway, _ = started("--demo", whole=True)
    assert gateway is not None
    *_, gateway, _ = started("--demo", "--port=0", whole=True)
    assert gateway is None


def test_the_gateways_port_is_checked_with_the_others(refused: Refused) -> None:
    [port] = free_ports(1)
    assert f"port {port} is given twice" in refused(f"--port={port}", f"--http-port={port}")
    assert "choose with --port" in refused("--port=70000")


def test_without_its_packages_there_is_no_gateway_and_one_sentence_says_so(
    started: Started, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(serve, "missing_packages", lambda: ["starlette", "uvicorn"])
    _, options, *_, gateway, _ = started("--demo", whole=True)
    assert gateway is None and options.port == 0
    said = capsys.readouterr()
    assert "starlette, uvicorn cannot be found, so there is no gateway, only Triton" in said.out + said.err
    assert "pip install 'kestrel-triton[gateway]'" in said.out + said.err
    started("--demo", "--port=0")
    assert "cannot be found" not in "".join(capsys.readouterr())


def test_the_packages_that_are_looked_for_are_those_of_the_extra() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    wanted = {name.replace("-", "_") for name in extras["gateway"] if not name.startswith("kestrel-triton")}
    assert set(PACKAGES) == wanted | {"kestrel_gateway"}
    assert missing_packages() == []


def test_keys_that_nobody_would_check_are_refused(refused: Refused, keys: str, tmp_path: Path) -> None:
    assert "--api-keys needs the gateway" in refused("--port=0", keys)
    assert "cannot be read: No such file" in refused(f"--api-keys={tmp_path / 'gone'}")


def test_inference_asks_for_a_secret_if_there_are_keys(started: Started, keys: str) -> None:
    secrets = [started("--demo", *arguments, whole=True)[-1] for arguments in ((), (keys,), (keys,))]
    assert secrets[0] is None
    assert len(secrets[1]) > 30 and secrets[1] != secrets[2]


def test_a_secret_may_be_given_and_the_model_does_not_see_it(
    started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KESTREL_UPSTREAM_SECRET", SECRET)
    triton, *_, secret = started("--demo", "--port=0", whole=True)
    assert secret == SECRET and "KESTREL_UPSTREAM_SECRET" not in triton.environment


@pytest.mark.parametrize("secret", ["short", "with spaces in between", "a=b,c:dddddddddddddd"])
def test_a_secret_that_triton_would_misread_is_refused_and_not_repeated(
    refused: Refused, secret: str
) -> None:
    said = refused(KESTREL_UPSTREAM_SECRET=secret)
    assert "openssl rand -hex 32" in said and secret not in said


def test_the_value_for_administration_is_another_each_time_and_cannot_be_sent() -> None:
    rules = [restriction_flags(None) for _ in range(2)]
    assert rules[0] != rules[1]
    for rule in rules[0]:
        assert "\n" in rule.partition("admin=")[2], "no header holds a line break"
    assert not any("inference" in rule for rule in rules[0])


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("--drain-s=-1", "from 0 to 3600"),
        ("--drain-s=soon", "'soon' is not a time"),
        ("--gateway-workers=0", "from 1 on"),
        ("--gateway-workers=two", "'two' is not a number"),
        ("--log-format=xml", "invalid choice"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    argument: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["serve", argument])
    assert stop.value.code == 2 and said in capsys.readouterr().err


@pytest.mark.parametrize("given", ["-5", "0", "1.5", "3601", "soon", "\u0665"])
def test_a_time_to_finish_that_is_none_is_refused(
    started: Started, given: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        started("--demo", f"--exit-timeout={given}")
    said = capsys.readouterr().err
    assert stop.value.code == 2 and f"'{given}' is not a time in whole seconds, from 1 to 3600" in said


def test_a_time_to_finish_is_passed_on(started: Started) -> None:
    assert [started("--demo", f"--exit-timeout={given}")[1].exit_timeout_s for given in (1, 3600)] == [
        1,
        3600,
    ]


@pytest.mark.parametrize(
    "given", ["http://x y", "a.example,https://b.example", "*", "a..example", "a/b", "::1"]
)
def test_hosts_of_pictures_that_are_none_are_refused(
    started: Started, given: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        started("--demo", f"--allow-image-hosts={given}")
    said = capsys.readouterr().err
    assert stop.value.code == 2 and "is no host; write img.example.com" in said


def test_hosts_of_pictures_are_names_stars_and_ports(started: Started) -> None:
    given = "IMG.example.com, *.example.com,localhost:8443,10.0.0.7,xn--bcher-kva.example,"
    assert started("--demo", f"--allow-image-hosts={given}")[1].allow_image_hosts == given
