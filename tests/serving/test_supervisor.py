"""The supervisor around programs that behave like Triton as far as it can tell."""

import io
import os
import shutil
import signal
import socket
import stat
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from free_ports import free_ports
from rich.console import Console
from triton_server import until

from kestrel_core.config import RuntimeConfig
from kestrel_core.triton import server, supervisor
from kestrel_core.triton.installation import Installation
from kestrel_core.triton.options import ServeOptions
from kestrel_core.triton.probing import fetch
from kestrel_core.triton.runs import open_run
from kestrel_core.triton.server import engine_info_in
from kestrel_core.triton.supervisor import Supervisor


def run(
    script: str, folder: Path, host: str = "127.0.0.1", device: str = "cpu", last: str = "answers after"
) -> tuple[int, str]:
    """Exit code, and what was said. It is asked to end once it has said `last`, or ends before."""
    program = folder / "tritonserver"
    asked_at = "127.0.0.1" if host == "0.0.0.0" else host
    program.write_text(script.replace("{python}", sys.executable).replace("{host}", asked_at))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    options = ServeOptions(*free_ports(3), folder, 1, host)
    console = Console(file=io.StringIO(), width=200)
    config = RuntimeConfig(model="moondream2", device=device)
    said: Any = console.file
    has_ended = threading.Event()

    def end() -> None:
        until(lambda: last in said.getvalue() or has_ended.is_set())
        if not has_ended.is_set():
            os.kill(os.getpid(), signal.SIGTERM)

    ender = threading.Thread(target=end)
    with open_run(folder) as it:
        supervisor = Supervisor(Installation(program, program, {}), options, config, console, it)
        ender.start()
        code = supervisor.run()
        has_ended.set()
        ender.join()
    return code, said.getvalue()


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "TELL_S", 0.0)


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
HTTPServer(("{host}", int(port)), Ready).handle_request()
sys.exit(3)
"""


def test_a_server_that_keeps_dying_is_started_again_after_longer_and_longer_pauses(tmp_path: Path) -> None:
    last = "ended (exit code 3), 4 times in a row; starting it again in 4 s"
    code, text = run(SHORT_LIVED, tmp_path, last=last)
    said = [
        "answers after",
        "ended (exit code 3); starting it again\n",
        "answering again",
        "ended (exit code 3), 2 times in a row; starting it again in 1 s",
        "ended (exit code 3), 3 times in a row; starting it again in 2 s",
        last,
    ]
    places = [text.find(part) for part in said]
    assert -1 not in places and places == sorted(places), text
    assert code == 0, "it was asked to end"


def test_a_server_that_never_was_ready_is_not_tried_again(tmp_path: Path) -> None:
    code, text = run("#!/bin/sh\nexit 7\n", tmp_path)
    assert code == 1 and "the server ended (exit code 7) before it was ready" in text


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("kill -ABRT $$", "the server ended (SIGABRT); starting it again\n"),
        ("./triton_python_backend_stub 1000; exit", "the server hung (it waited for the end of the model's"),
    ],
    ids=["crashes", "hangs"],
)
def test_a_first_start_that_fails_by_chance_is_tried_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str, told: str
) -> None:
    """As Triton's does where the machine stands still for a second at the wrong moment."""
    monkeypatch.setattr(server, "HUNG_S", 0.5)
    shutil.copy(shutil.which("sleep") or "", tmp_path / "triton_python_backend_stub")
    (tmp_path / "short-lived").write_text(SHORT_LIVED.replace("{host}", "127.0.0.1"))
    first = f"cd {tmp_path}; [ -e begun ] || {{ touch begun; {fault}; }}"
    _, text = run(f'#!/bin/sh\n{first}\nexec {{python}} {tmp_path}/short-lived "$@"\n', tmp_path)
    places = [text.find(part) for part in (told, "starting it again", "answers after", "Ctrl-C ends it.")]
    assert -1 not in places and places == sorted(places), text


def test_a_shell_that_waits_for_its_server_is_not_taken_for_a_server_that_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Around Triton there may be a script of somebody's own."""
    monkeypatch.setattr(server, "HUNG_S", 0.5)
    (tmp_path / "short-lived").write_text(SHORT_LIVED.replace("{host}", "127.0.0.1"))
    script = f'#!/bin/sh\nsleep 1.5\n{{python}} {tmp_path}/short-lived "$@"\nexit\n'
    _, text = run(script, tmp_path)
    assert "answers after" in text and "hung" not in text


@pytest.mark.parametrize("fault", ["ABRT", "SEGV", "BUS"])
def test_a_start_that_crashes_twice_is_not_tried_again(tmp_path: Path, fault: str) -> None:
    code, text = run(f"#!/bin/sh\necho >> {tmp_path}/starts\nkill -{fault} $$\n", tmp_path)
    assert code == 1 and f"the server ended (SIG{fault}) before it was ready" in text
    assert (tmp_path / "starts").read_text() == "\n\n"


def test_a_start_that_somebody_kills_is_not_tried_again(tmp_path: Path) -> None:
    """For want of memory it would be killed again."""
    code, text = run("#!/bin/sh\nkill -KILL $$\n", tmp_path)
    assert code == 1 and "starting it again" not in text


@pytest.mark.parametrize(
    "reason", ["unrecognized option '--nosuchflag=3'", "option '--log-verbose' requires an argument"]
)
def test_a_flag_that_triton_does_not_know_is_told_last_and_cannot_be_started(
    tmp_path: Path, reason: str
) -> None:
    script = f'#!/bin/sh\necho "tritonserver: {reason}" >&2\nseq 400 >&2\nexit 1\n'
    code, text = run(script, tmp_path)
    assert code == 2 and text.endswith(f"says why\ntritonserver: {reason}\n")


def test_what_the_engine_says_of_its_configuration_is_told_last_without_its_stack(tmp_path: Path) -> None:
    said = r'/a/model is no safetensors file (header: "too" large); download it again'
    error = rf"ERROR: Failed to create instance: BadCheckpoint: {said}\n\nAt:\n  a.py(1)"
    stack = f'E1119 12:00:00.000000 1 backend_model.cc:692] "{error}"'
    (tmp_path / "said").write_text(f"{stack}\nerror: creating server: Internal - failed to load all models\n")
    code, text = run(f"#!/bin/sh\ncat {tmp_path}/said >&2\nexit 1\n", tmp_path)
    assert code == 2 and text.endswith(f"says why\n{said}\n")


def test_what_cannot_be_started_as_asked_is_not_tried_again_although_it_crashes(tmp_path: Path) -> None:
    script = '#!/bin/sh\necho "tritonserver: unrecognized option --nosuchflag" >&2\nkill -ABRT $$\n'
    code, text = run(script, tmp_path)
    assert code == 2 and "starting it again" not in text


@pytest.mark.parametrize("host", ["127.0.0.2", "0.0.0.0"])
def test_a_server_is_found_ready_where_it_listens(host: str, tmp_path: Path) -> None:
    _, text = run(SHORT_LIVED, tmp_path, host)
    assert "answers after" in text and f"on {host}" in text


def test_readiness_is_asked_for_without_a_proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert "answers after" in run(SHORT_LIVED, tmp_path)[1]


COMPLAINT = 'E1115 server.cc:241] "CudaDriverHelper has not been initialized."'
TALKING = f"#!/bin/sh\necho one >&2\necho '{COMPLAINT}' >&2\nprintf 'two\\nno end' >&2\nexit 7\n"


@pytest.mark.parametrize(("device", "said"), [("cpu", "one\ntwo\nno end"), ("cuda", "CudaDriverHelper")])
def test_only_the_complaint_about_a_missing_gpu_is_left_out(
    device: str, said: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run(TALKING, tmp_path, device=device)
    err = capfd.readouterr().err
    assert err == said if device == "cpu" else said in err


METRICS = """
# TYPE kestrel_engine_info gauge
kestrel_engine_info{attention="sdpa",device="cpu",dtype="float32",engine="0",vision_dtype="float32"} 1.000000
kestrel_engine_info{attention="sdpa",device="cpu",dtype="float32",engine="1",vision_dtype="float32"} 1.000000
kestrel_open_requests{engine="0"} 0
"""


def test_what_engines_compute_with_is_read_from_their_metrics() -> None:
    assert engine_info_in(METRICS) == ["attention sdpa, device cpu, dtype float32, vision dtype float32"]
    assert engine_info_in(METRICS.replace("_info", "_size")) == []


@pytest.mark.parametrize("said", [b"SSH-2.0\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"])
def test_what_is_no_answer_of_triton_is_none(said: bytes) -> None:
    """A server that dies while it answers, or another program at its port, must not end the supervisor."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            asked, _ = server.accept()
            with asked:
                asked.recv(4096)
                asked.sendall(said)

        thread = threading.Thread(target=answer)
        thread.start()
        assert fetch(f"http://127.0.0.1:{server.getsockname()[1]}/metrics") is None
        thread.join()
