"""One model on disk for all, one engine over it in this process, and one server that most tests share."""

import threading
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from kestrel_core.build import build_engine
from kestrel_core.config import RuntimeConfig
from kestrel_core.protocol.messages import Chunk, Event, Finished
from kestrel_core.protocol.wire import decode_request

# A GPU machine may offer pytest alone.
collect_ignore_glob = [] if find_spec("tritonclient") else ["test_*.py"]

Answer = Callable[..., dict[str, Any]]


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from triton_server import save_talkative

    return save_talkative(tmp_path_factory.mktemp("talkative"))


@pytest.fixture(scope="session")
def server(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from triton_server import served

    log = tmp_path_factory.mktemp("server") / "log"
    with served(
        log, KESTREL_MODEL_PATH=str(model), KESTREL_MAX_BATCH_SIZE="8", KESTREL_MAX_QUEUE="400"
    ) as it:
        yield it


@pytest.fixture(scope="session")
def expected(model: Path) -> Iterator[Answer]:
    """What an engine in this process answers to the same inputs, without what is measured."""
    engine = build_engine(RuntimeConfig(model_path=str(model), device="cpu"))

    def answer(**inputs: Any) -> dict[str, Any]:
        events: list[Event] = []
        done = threading.Event()

        def sink(event: Event) -> None:
            events.append(event)
            if not isinstance(event, Chunk):
                done.set()

        values = {name: value if isinstance(value, list) else [value] for name, value in inputs.items()}
        engine.loop.submit(decode_request(values, ""), sink)
        assert done.wait(60)
        assert isinstance(events[-1], Finished)
        result = events[-1].result
        return {"finish_reason": result.finish_reason, **result.output}

    yield answer
    engine.close()


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs `kestrel serve`, which must end before it starts a server; gives what it said."""
    from free_ports import free_ports
    from triton_server import port_flags

    from kestrel_core.cli.main import main
    from kestrel_core.triton import serve

    def run(*arguments: str, **variables: str) -> str:
        monkeypatch.setenv("KESTREL_DEVICE", "cpu")
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(serve, "Supervisor", None)
        assert main(["serve", *port_flags(free_ports(4)), *arguments]) == 2
        said = capsys.readouterr().err
        assert said.startswith("kestrel: ") and said.count("\n") == 1
        return said

    return run


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Any]:
    """Runs `kestrel serve` up to the supervisor; gives what that was handed: triton, options and config.

    With `whole`, all of it: then come the console, the run, the gateway and the secret.
    """
    from free_ports import free_ports
    from triton_server import port_flags

    from kestrel_core.cli.main import main
    from kestrel_core.triton import serve
    from kestrel_core.triton.installation import Installation

    seen: list[Any] = []

    class Noted:
        def __init__(self, *values: Any) -> None:
            seen[:] = values

        def run(self) -> int:
            return 0

    def find(workspace: Path, environment: dict[str, str]) -> Installation:
        return Installation(tmp_path, tmp_path, environment)

    def run(*arguments: str, whole: bool = False) -> Any:
        assert main(["serve", *port_flags(free_ports(4)), *arguments]) == 0
        return seen if whole else seen[:3]

    monkeypatch.setattr(serve, "Supervisor", Noted)
    monkeypatch.setattr(serve, "check_stub", lambda found: None)
    monkeypatch.setattr(serve, "find_triton", find)
    return run
