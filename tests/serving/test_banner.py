"""What `kestrel serve` prints when it answers."""

import base64
import json
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from kestrel_core.config import RuntimeConfig
from kestrel_core.triton import banner as module
from kestrel_core.triton.banner import QUESTION, SAMPLE, _near, banner, request
from kestrel_core.triton.options import ServeOptions

ROOT = Path(__file__).parents[2]
OPTIONS = ServeOptions(1, 2, 3, Path(), 30)
GATEWAY = replace(OPTIONS, port=4)
BUNDLED = RuntimeConfig(model="moondream-tiny", device="cpu")
TINY = replace(BUNDLED, adapters="mine")  # its own ones come with another command


def shown(options: ServeOptions = OPTIONS, config: RuntimeConfig = TINY, info: tuple[str, ...] = ()) -> str:
    return banner("model", config, 1.0, options, info)


def ways_in(options: ServeOptions, config: RuntimeConfig = TINY) -> list[str]:
    return [line.strip() for line in shown(options, config).splitlines() if line.startswith("  ")]


def pasted(command: str) -> dict[str, object]:
    """What the command writes, as curl sends it: `-d @-` leaves line breaks out."""
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout.replace("\n", "")))


def test_the_request_it_prints_can_be_pasted_and_shows_the_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    [line] = [line for line in shown().splitlines() if "curl" in line]
    command, _, curl = line.partition(" | ")
    assert curl == "curl -s localhost:1/v2/models/moondream/generate -d @-"
    sent = pasted(command)
    assert base64.b64decode(str(sent.pop("IMAGE"))) == SAMPLE.read_bytes()
    assert sent == {"SKILL": "query", "QUESTION": QUESTION, "TEMPERATURE": 0}


def test_a_picture_may_be_larger_than_an_argument_may_be(tmp_path: Path) -> None:
    """Linux passes on at most 128 kB in one argument."""
    picture = tmp_path / "it's large.jpg"
    picture.write_bytes(bytes(range(256)) * 4096)
    assert base64.b64decode(str(pasted(request(picture))["IMAGE"])) == picture.read_bytes()


def test_only_random_weights_are_called_noise() -> None:
    assert "noise" not in shown()
    assert "noise" in shown(config=RuntimeConfig(model="moondream-tiny", device="cpu", weights="random"))


def test_it_says_what_is_in_use_and_where_it_listens() -> None:
    text = shown(replace(OPTIONS, triton_host="10.0.0.7"), info=("dtype float32, attention sdpa",))
    assert "model on cpu answers after 1.0 s: http 1, grpc 2, metrics 3, on 10.0.0.7" in text
    assert "In use: dtype float32, attention sdpa\n" in text
    assert "curl -s 10.0.0.7:1/" in text and "--url 10.0.0.7:2 " in text


def test_the_page_comes_first_then_curl_to_the_gateway_then_the_client(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(ROOT)
    page, curl, client = ways_in(GATEWAY)
    assert page == "http://localhost:4/"
    assert shlex.split(curl)[:5] == ["curl", "-s", "localhost:4/v1/query", "-F", f"image=@{_near(SAMPLE)}"]
    assert f"question={QUESTION}" in shlex.split(curl)
    assert "--url localhost:2 " in client
    assert "gateway 4, http 1, grpc 2, metrics 3\n" in shown(GATEWAY)


@pytest.fixture
def bundled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder of adapters that comes along with the model, with one adapter in it."""
    monkeypatch.setattr(RuntimeConfig, "adapters_folder", property(lambda config: tmp_path))
    (tmp_path / "french.safetensors").touch()
    return tmp_path


@pytest.mark.parametrize("options", [GATEWAY, OPTIONS, replace(GATEWAY, api_keys=Path("keys.toml"))])
def test_a_bundled_adapter_is_shown_by_one_command(bundled: Path, options: ServeOptions) -> None:
    *others, command = ways_in(options, BUNDLED)
    words = shlex.split(command)
    assert "adapter=french" in words or words[-2:] == ["--adapter", "french"]
    assert others == ways_in(options)
    (bundled / "french.safetensors").unlink()
    assert ways_in(options, BUNDLED) == others


def test_a_folder_of_ones_own_is_not_advertised(bundled: Path) -> None:
    assert "french" not in shown(config=replace(BUNDLED, adapters=str(bundled)))


def test_with_keys_only_ways_that_take_one_are_shown() -> None:
    page, curl = ways_in(replace(GATEWAY, api_keys=Path("keys.toml")))
    assert page == "http://localhost:4/" and curl.endswith('-H "Authorization: Bearer $KEY"')


def test_gateway_and_triton_may_listen_in_different_places() -> None:
    options = replace(GATEWAY, host="10.0.0.7")
    assert "gateway 4, on 10.0.0.7; http 1, grpc 2, metrics 3, on 127.0.0.1\n" in shown(options)
    page, _, client = ways_in(options)
    assert page == "http://10.0.0.7:4/" and "--url localhost:2 " in client


def test_without_a_checkout_the_installed_client_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(module, "CLIENT_SCRIPT", tmp_path / "run.py")
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    assert f"{tmp_path}/python -m kestrel_client --url" in shown()
    (tmp_path / "kestrel-client").touch()
    assert f"{tmp_path}/kestrel-client --url" in shown()
