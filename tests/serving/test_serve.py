"""`kestrel serve` before it starts anything: each thing that is wrong is one sentence and exit code 2."""

import base64
import io
import json
import shutil
import socket
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from kestrel_core.cli.main import main
from kestrel_core.config import RuntimeConfig
from kestrel_core.intake.hub import ModelFiles
from kestrel_core.protocol.errors import KestrelError
from kestrel_core.triton import installation, serve
from kestrel_core.triton.installation import Installation, check_stub, find_triton
from kestrel_core.triton.serve import ServeOptions, check_ports, check_shared_memory, resolve_weights

Refused = Callable[..., str]


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Refused:
    """Runs the command, which must end before it starts a server; gives what it said."""

    def run(*arguments: str, **variables: str) -> str:
        monkeypatch.setenv("KESTREL_DEVICE", "cpu")
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(serve, "Supervisor", None)
        ports = [free_port() for _ in range(3)]
        flags = [f"--{n}-port={p}" for n, p in zip(("http", "grpc", "metrics"), ports, strict=True)]
        assert main(["serve", *flags, *arguments]) == 2
        said = capsys.readouterr().err
        assert said.startswith("kestrel: ") and said.count("\n") == 1
        return said

    return run


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def console() -> Console:
    return Console(file=io.StringIO(), width=200)


def test_a_port_that_is_taken_is_named(refused: Refused) -> None:
    with socket.socket() as other:
        other.bind(("0.0.0.0", 0))
        other.listen()
        port = other.getsockname()[1]
        said = refused(f"--grpc-port={port}")
    assert f"port {port} cannot be used" in said and "--grpc-port" in said


@pytest.mark.parametrize("port", [70_000, -1])
def test_a_port_that_is_none_is_refused(port: int) -> None:
    with pytest.raises(KestrelError, match=f"port {port} cannot be used"):
        check_ports({"http": port})


def test_a_port_serves_once() -> None:
    port = free_port()
    with pytest.raises(KestrelError, match=f"port {port} is given twice"):
        check_ports({"http": port, "grpc": port, "metrics": free_port()})


def test_little_shared_memory_is_an_error_and_not_much_a_warning() -> None:
    with pytest.raises(KestrelError, match=r"has 10 MB free, and pictures need 32 MB; .*--shm-size=1g"):
        check_shared_memory(10 * 2**20, console())
    screen = console()
    check_shared_memory(64 * 2**20, screen)
    check_shared_memory(2**30, screen)
    assert screen.file.getvalue().count("--shm-size=1g") == 1  # type: ignore[attr-defined]


def test_a_model_nobody_knows_is_refused(refused: Refused) -> None:
    said = refused(KESTREL_MODEL="moondream9")
    assert 'there is no model "moondream9"' in said and "moondream2" in said and "moondream-tiny" in said


def test_a_checkpoint_that_is_not_there_is_refused(refused: Refused, tmp_path: Path) -> None:
    assert "KESTREL_MODEL_PATH has to name" in refused(KESTREL_MODEL_PATH=str(tmp_path / "gone"))
    assert "holds no checkpoint" in refused(KESTREL_MODEL_PATH=str(tmp_path))


def test_an_option_that_is_wrong_is_refused_from_either_side(refused: Refused, tmp_path: Path) -> None:
    assert "max_queue" in refused(KESTREL_MAX_QUEUE="many")
    shutil.copytree(serve.REPOSITORY, tmp_path / "repository")
    config = tmp_path / "repository/moondream/config.pbtxt"
    config.write_text(
        config.read_text() + 'parameters: {\n key: "max_que"\n value: { string_value: "3" } }\n'
    )
    assert "there is no option max_que" in refused(
        f"--model-repository={tmp_path / 'repository'}", KESTREL_MAX_QUEUE=""
    )


def test_a_folder_that_is_no_repository_is_refused(refused: Refused, tmp_path: Path) -> None:
    assert "is no model repository of ours" in refused(f"--model-repository={tmp_path}")


def test_a_gpu_that_is_not_there_is_missed(refused: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "GPU_DEVICES", ())
    assert "KESTREL_DEVICE=cpu serves without one" in refused(KESTREL_DEVICE="cuda:1")


def test_a_machine_without_triton_is_told_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(installation, "OFFICIAL", tmp_path)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(KestrelError, match="pip install --no-deps nvidia-pytriton"):
        find_triton(tmp_path, {"PATH": str(tmp_path)})


def executable(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_the_server_on_the_path_comes_first(tmp_path: Path) -> None:
    server = executable(tmp_path / "opt/bin/tritonserver", "#!/bin/sh\n")
    stub = executable(tmp_path / "opt/backends/python/triton_python_backend_stub", "#!/bin/sh\nexit 1\n")
    found = find_triton(tmp_path, {"PATH": str(server.parent), "PYTHONPATH": "mine"})
    assert (found.server, found.stub, found.backends) == (server, stub, None)
    assert found.environment["PATH"].split(":")[0] == f"{sys.prefix}/bin"
    assert found.environment["PYTHONPATH"].split(":")[1:] == ["mine"]
    check_stub(found)


@pytest.mark.parametrize(
    ("stub", "said"),
    [
        ("#!/bin/sh\necho libpython3.3.so: no such file >&2\nexit 127\n", "built for 3.3 and this is Python"),
        ("#!/bin/sh\necho no library >&2\nexit 127\n", r"does not start \(no library\)"),
        (None, "cannot be run"),
    ],
)
def test_a_stub_that_cannot_start_is_noticed(tmp_path: Path, stub: str | None, said: str) -> None:
    place = tmp_path / "stub"
    if stub is not None:
        executable(place, stub)
    with pytest.raises(KestrelError, match=said):
        check_stub(Installation(Path("tritonserver"), place, {}))


def test_a_published_model_is_fetched_before_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    def fetch(name: str, progress: Callable[[int, int], None]) -> ModelFiles:
        progress(1, 2)
        return ModelFiles(Path("/models") / name, Path("/models/tokenizer.json"))

    monkeypatch.setattr(serve, "fetch_model", fetch)
    found = resolve_weights(RuntimeConfig(model="moondream2"), console())
    assert found == {
        "KESTREL_MODEL_PATH": "/models/moondream2",
        "KESTREL_TOKENIZER_PATH": "/models/tokenizer.json",
    }
    assert resolve_weights(RuntimeConfig(model="moondream2", weights="random"), console()) == {}


def test_the_demo_is_the_bundled_model_whatever_the_environment_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen: list[Any] = []

    class Noted:
        def __init__(self, *values: Any) -> None:
            seen.extend(values)

        def run(self) -> int:
            return 0

    monkeypatch.setattr(serve, "Supervisor", Noted)
    monkeypatch.setattr(serve, "check_stub", lambda found: None)
    monkeypatch.setattr(serve, "find_triton", lambda *_: Installation(tmp_path, tmp_path, {}))
    monkeypatch.setenv("KESTREL_MODEL_PATH", str(tmp_path / "gone"))
    ports = [f"--{name}-port={free_port()}" for name in ("http", "grpc", "metrics")]
    assert main(["serve", "--demo", *ports, "--", "--log-verbose=1", "--http-thread-count=2"]) == 0
    _, options, config, _ = seen
    assert (config.model, config.device, config.model_path) == ("moondream-tiny", "cpu", None)
    assert list(options.flags) == ["--log-verbose=1", "--http-thread-count=2"]


def banner(config: RuntimeConfig) -> str:
    supervisor = serve.Supervisor(
        Installation(Path(), Path(), {}), ServeOptions(1, 2, 3, Path(), 1), config, console()
    )
    return supervisor._banner("model", 1.0)


def test_the_request_it_prints_can_be_pasted_and_shows_the_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(serve.CHECKOUT)
    [line] = [line for line in banner(RuntimeConfig(device="cpu")).splitlines() if "curl" in line]
    word = line.partition(" -d ")[2]
    pasted = subprocess.run(["sh", "-c", f"printf %s {word}"], capture_output=True, text=True, check=True)
    request = json.loads(pasted.stdout)
    assert base64.b64decode(request.pop("IMAGE")) == serve.SAMPLE.read_bytes()
    assert request == {"SKILL": "query", "QUESTION": serve.QUESTION, "TEMPERATURE": 0}


def test_only_random_weights_are_called_noise() -> None:
    assert "noise" not in banner(RuntimeConfig(model="moondream-tiny", device="cpu"))
    assert "noise" in banner(RuntimeConfig(model="moondream-tiny", device="cpu", weights="random"))


# Becomes ready as Triton does, and has ended by the time anybody looks again.
SHORT_LIVED = """#!{python}
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

class Ready(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass

[port] = [flag.partition("=")[2] for flag in sys.argv if flag.startswith("--http-port=")]
HTTPServer(("127.0.0.1", int(port)), Ready).handle_request()
sys.exit(3)
"""


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (
            SHORT_LIVED,
            ["answers after", "ended (exit code 3); starting it again", "answering again", "giving up"],
        ),
        ("#!/bin/sh\nexit 7\n", ["the server ended (exit code 7) before it was ready"]),
    ],
)
def test_a_server_that_keeps_dying_is_given_up(
    script: str, said: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve, "MAX_RESTARTS", 1)
    server = executable(tmp_path / "tritonserver", script.replace("{python}", sys.executable))
    options = ServeOptions(free_port(), free_port(), free_port(), tmp_path, 1)
    screen = console()
    config = RuntimeConfig(model="moondream2", device="cpu")
    supervisor = serve.Supervisor(Installation(server, server, {}), options, config, screen)
    assert supervisor.run() == 1
    text = screen.file.getvalue()  # type: ignore[attr-defined]
    places = [text.find(part) for part in said]
    assert -1 not in places and places == sorted(places), text
