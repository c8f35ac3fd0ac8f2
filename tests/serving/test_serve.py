"""`kestrel serve` before it starts anything: each thing that is wrong is one sentence and exit code 2."""

import io
import os
import shutil
import socket
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from free_ports import free_ports
from rich.console import Console
from triton_server import repository_with

from kestrel_core.config import RuntimeConfig
from kestrel_core.intake.hub import ModelFiles
from kestrel_core.protocol.errors import InvalidRequest, KestrelError
from kestrel_core.triton import checks, installation, serve
from kestrel_core.triton.banner import say
from kestrel_core.triton.checks import check_adapters, check_ports, check_shared_memory
from kestrel_core.triton.installation import Installation, check_stub, find_triton
from kestrel_core.triton.serve import resolve_weights
from kestrel_core.triton.unheard import keep_on_unheard

Refused = Callable[..., str]


def console() -> Console:
    return Console(file=io.StringIO(), width=200)


def test_a_port_that_is_taken_is_named(refused: Refused) -> None:
    with socket.socket() as other:
        other.bind(("0.0.0.0", 0))
        other.listen()
        port = other.getsockname()[1]
        said = refused(f"--grpc-port={port}")
    assert f"port {port} of 127.0.0.1 cannot be used" in said and "--grpc-port" in said


@pytest.mark.parametrize("port", [70_000, 0, -1])
def test_a_port_that_is_none_is_refused(port: int) -> None:
    with pytest.raises(KestrelError, match=f"port {port} of 127.0.0.1 cannot be used"):
        check_ports({"http": ("127.0.0.1", port)})


def test_a_port_serves_once() -> None:
    one, two = free_ports(2)
    with pytest.raises(KestrelError, match=f"port {one} is given twice"):
        check_ports({"gateway": ("0.0.0.0", one), "http": ("::", one), "metrics": ("::", two)})


def test_a_folder_of_adapters_that_is_not_there_is_told_and_a_file_is_refused(tmp_path: Path) -> None:
    screen = console()
    check_adapters(None, screen)
    check_adapters(str(tmp_path), screen)
    assert screen.file.getvalue() == ""  # type: ignore[attr-defined]
    check_adapters(str(tmp_path / "misspelt"), screen)
    said = screen.file.getvalue()  # type: ignore[attr-defined]
    assert "misspelt (KESTREL_ADAPTERS): no adapter can be asked for until there is." in said
    (tmp_path / "file").touch()
    with pytest.raises(InvalidRequest, match="which is no folder"):
        check_adapters(str(tmp_path / "file"), screen)


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
    monkeypatch.setattr(checks, "GPU_DEVICES", ())
    assert "KESTREL_DEVICE=cpu serves without one" in refused(KESTREL_DEVICE="cuda:1")


def test_a_machine_without_triton_is_told_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(installation, "OFFICIAL", tmp_path)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(KestrelError, match=r"pip install 'kestrel-triton\[triton\]'"):
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
    def fetch(name: str, progress: Callable[[int, int], None], revision: str | None) -> ModelFiles:
        progress(1, 2)
        assert revision == "0a1b"
        return ModelFiles(Path("/models") / name, Path("/models/tokenizer.json"))

    monkeypatch.setattr(serve, "fetch_model", fetch)
    found = resolve_weights(RuntimeConfig(model="moondream2", revision="0a1b"), console())
    assert found == {
        "KESTREL_MODEL_PATH": "/models/moondream2",
        "KESTREL_TOKENIZER_PATH": "/models/tokenizer.json",
    }
    assert resolve_weights(RuntimeConfig(model="moondream2", weights="random"), console()) == {}


def test_the_demo_is_the_bundled_model_whatever_the_environment_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, started: Callable[..., Any]
) -> None:
    monkeypatch.setenv("KESTREL_MODEL_PATH", str(tmp_path / "gone"))
    triton, options, config = started("--demo", "--", "--log-verbose=1", "--http-thread-count=2")
    assert (config.model, config.device, config.model_path) == ("moondream-tiny", "cpu", None)
    assert RuntimeConfig.from_parameters({}, environment=triton.environment) == config
    assert list(options.flags) == ["--log-verbose=1", "--http-thread-count=2"]


def test_who_listened_to_serve_may_leave(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, started: Callable[..., Any]
) -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    with open(theirs, "w") as pipe:
        monkeypatch.setattr(sys, "stdout", pipe)
        # What it says of this is the first that cannot be written.
        console = started("--demo", f"--adapters={tmp_path / 'none'}", whole=True)[3]
        say(console, "and once more")


def test_a_terminal_that_is_gone_stops_nobody() -> None:
    ours, theirs = os.openpty()
    with open(theirs, "w") as terminal:
        screen = Console(file=terminal)
        keep_on_unheard(screen)
        with screen.status("loading") as status:
            os.close(ours)
            status.update("still loading")
        say(screen, "ready")


def test_the_demo_wins_over_the_parameters_too(tmp_path: Path, started: Callable[..., Any]) -> None:
    repository = repository_with(tmp_path, {"model_path": "gone", "weights": "random"})
    _, _, config = started("--demo", f"--model-repository={repository}")
    assert (config.model_path, config.weights) == (None, "checkpoint")


def test_the_demo_takes_what_does_not_contradict_it(started: Callable[..., Any]) -> None:
    _, _, config = started("--demo", "--device", "cpu", "--max-batch-size", "7")
    assert (config.model, config.max_batch_size) == ("moondream-tiny", 7)


@pytest.mark.parametrize(
    "contradiction", [("--model", "moondream2"), ("--device", "cuda"), ("--model-path", "here")]
)
def test_the_demo_and_another_model_are_refused(refused: Refused, contradiction: tuple[str, str]) -> None:
    said = refused("--demo", *contradiction)
    assert " is ".join(contradiction) in said and "leave one of them out" in said


def test_every_option_of_the_engine_reaches_the_model_and_wins(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, started: Callable[..., Any]
) -> None:
    repository = repository_with(tmp_path, {"max_queue": "3", "max_batch_size": "3", "max_context": "300"})
    monkeypatch.setenv("KESTREL_MAX_BATCH_SIZE", "5")
    monkeypatch.setenv("KESTREL_MAX_QUEUE", "5")
    options = ["--model=moondream-tiny", "--device=cpu", "--max-queue=9", "--weights-seed=4"]
    triton, _, config = started(f"--model-repository={repository}", *options)
    assert (config.max_queue, config.max_batch_size, config.max_context) == (9, 5, 300)
    child = RuntimeConfig.from_parameters({"max_context": "300"}, 0, triton.environment)
    assert child == config and child.seed == 4


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--host", "256.1.2.3"), 'host "256.1.2.3" cannot be used'),
        (("--host", "192.0.2.7"), "of 192.0.2.7 cannot be used"),
        (("--device", "abacus"), 'device "abacus" is not one'),
        (("--max-batch-size", "2.5"), 'max_batch_size is "2.5"; it must be a whole number'),
        (("--flashinfer", "on"), 'flashinfer is "on"; it can be auto, off, required'),
        (("--skills", "nowhere:SKILL"), 'skills names "nowhere:SKILL"'),
        (("moondream2",), '"moondream2" is no flag of tritonserver'),
    ],
)
def test_what_cannot_be_served_is_said_before_the_start(
    refused: Refused, arguments: tuple[str, ...], said: str
) -> None:
    assert said in refused(*arguments)


def test_a_misspelt_variable_is_refused(refused: Refused) -> None:
    assert "KESTREL_MODLE; did you mean KESTREL_MODEL?" in refused(KESTREL_MODLE="moondream2")


def test_a_machine_without_shared_memory_is_told_so(
    refused: Refused, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(checks, "SHARED_MEMORY", tmp_path / "shm")
    assert "shm cannot be used (No such file or directory)" in refused()
