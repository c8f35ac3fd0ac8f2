"""The gateway beside Triton: each is started, watched and started again by itself; the gateway ends first."""

import fcntl
import os
import signal
import subprocess
import sys
import termios
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import pytest
from free_ports import free_ports
from rich.console import Console
from triton_server import ROOT, until

from kestrel_core.config import RuntimeConfig
from kestrel_core.triton import deafness, supervisor
from kestrel_core.triton.gateway import MODULE, Gateway, gateway_environment, gateway_flags
from kestrel_core.triton.installation import Installation
from kestrel_core.triton.options import ServeOptions
from kestrel_core.triton.runs import open_run
from kestrel_core.triton.supervisor import Supervisor
from kestrel_core.triton.unheard import keep_on_unheard

STAND_INS = Path(__file__).with_name("stand_ins.py")
IN_ORDER = ["gateway SIGTERM", "gateway ends", "triton SIGTERM", "triton ends"]


@dataclass
class House:
    """A supervisor over two stand-ins, which keep a journal."""

    folder: Path
    drain_s: float = 0.0
    has_gateway: bool = True
    environment: dict[str, str] = field(default_factory=dict)
    pipe: tuple[IO[str], IO[str]] | None = None  # instead of a file: where it is heard, and where it speaks

    def run(self, then: Callable[[], None] | None = None) -> int:
        """`then` happens in a thread once both answer, and makes an end. Gives the exit code."""
        http, grpc, metrics, port = free_ports(4)
        options = ServeOptions(http, grpc, metrics, self.folder, 5, port=port, drain_s=self.drain_s)
        environment = {**os.environ, "JOURNAL": str(self.folder / "journal"), **self.environment}
        server = self.folder / "tritonserver"
        server.write_text(f'#!/bin/sh\nexec {sys.executable} {STAND_INS} triton "$@"\n')
        server.chmod(0o755)
        file = (self.folder / "said").open("w") if self.pipe is None else self.pipe[1]
        with file as said, open_run(self.folder) as run:
            console = Console(file=said, width=200)
            keep_on_unheard(console)  # as `serve` does
            program = [sys.executable, str(STAND_INS), "gateway"]
            gateway = Gateway(options, environment, console, program) if self.has_gateway else None
            config = RuntimeConfig(model="moondream2", device="cpu")
            thread = threading.Thread(target=self._once_ready, args=(then,))
            if then is not None:
                thread.start()
            triton = Installation(server, server, environment)
            code = Supervisor(triton, options, config, console, run, gateway).run()
        if then is not None:
            thread.join()
        return code

    def _once_ready(self, then: Callable[[], None]) -> None:
        if self.pipe is None:
            self.until_said("answers after")
        else:
            next(line for line in self.pipe[0] if "answers after" in line)
        then()

    @property
    def said(self) -> str:
        return (self.folder / "said").read_text()

    @property
    def journal(self) -> list[str]:
        return [" ".join(line.split()[:2]) for line in self._lines()]

    def pid(self, name: str) -> int:
        """Of the one that started last."""
        return int([line for line in self._lines() if line.startswith(f"{name} starts")][-1].split()[2])

    def time_of(self, what: str) -> float:
        [line] = [line for line in self._lines() if line.startswith(what)]
        return float(line.split()[3])

    def until_noted(self, what: str, times: int = 1) -> None:
        until(lambda: self.journal.count(what) >= times)

    def until_said(self, what: str) -> None:
        until(lambda: (self.folder / "said").exists() and what in self.said)

    def _lines(self) -> list[str]:
        path = self.folder / "journal"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> House:
    monkeypatch.setattr(supervisor, "TELL_S", 0.0)
    return House(tmp_path)


def end() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def test_the_gateway_ends_first_and_triton_after_it(house: House) -> None:
    house.environment["FINISHES_S"] = "1"
    assert house.run(end) == 0
    assert house.journal[-4:] == IN_ORDER


def test_triton_goes_on_for_the_whole_drain_though_the_gateway_has_ended(house: House) -> None:
    house.drain_s = 1.5
    assert house.run(end) == 0
    assert house.time_of("triton SIGTERM") - house.time_of("gateway SIGTERM") > 1.4


def test_without_a_gateway_triton_waits_as_long(house: House) -> None:
    house.has_gateway, house.drain_s = False, 1.0
    assert house.run(end) == 0
    assert "still taken for 1 s" in house.said
    assert house.journal == ["triton starts", "triton SIGTERM", "triton ends"]


def test_a_second_signal_does_not_wait(house: House) -> None:
    house.environment["FINISHES_S"] = "60"

    def twice() -> None:
        end()
        house.until_noted("gateway SIGTERM")
        end()

    assert house.run(twice) == 1
    assert "gateway ends" not in house.journal and "requests were cut off" in house.said


def test_a_gateway_that_cut_requests_off_is_told(house: House) -> None:
    house.environment["EXIT_CODE"] = "1"
    assert house.run(end) == 1
    assert "requests were cut off" in house.said


def test_a_gateway_that_dies_is_started_again_and_triton_is_left_alone(house: House) -> None:
    def kill() -> None:
        os.kill(house.pid("gateway"), signal.SIGKILL)
        house.until_noted("gateway starts", 2)
        end()

    assert house.run(kill) == 0
    assert house.journal.count("triton starts") == 1
    assert "the gateway ended (SIGKILL); starting it again" in house.said


def test_while_triton_is_started_again_the_gateway_stays(house: House) -> None:
    def kill() -> None:
        os.kill(house.pid("triton"), signal.SIGKILL)
        house.until_said("answering again")
        end()

    assert house.run(kill) == 0
    assert house.journal.count("triton starts") == 2 and house.journal.count("gateway starts") == 1


def test_a_gateway_that_keeps_dying_is_started_again_for_ever(house: House) -> None:
    def kill() -> None:
        for number in (1, 2):
            house.until_noted("gateway starts", number)
            os.kill(house.pid("gateway"), signal.SIGKILL)
        house.until_noted("gateway starts", 3)
        end()

    assert house.run(kill) == 0
    assert "the gateway ended (SIGKILL), 2 times in a row; starting it again in 1 s" in house.said
    assert house.journal.count("triton starts") == 1


def test_who_has_lost_its_listener_goes_on_and_ends_in_order(house: House) -> None:
    """`kestrel serve | tee log`, and tee ends."""
    ours, theirs = os.pipe()
    with open(ours) as listener, open(theirs, "w") as speaker:
        house.pipe = listener, speaker

        def leave() -> None:
            listener.close()
            os.kill(house.pid("gateway"), signal.SIGKILL)
            house.until_noted("gateway starts", 2)
            end()

        assert house.run(leave) == 0
    assert house.journal[-4:] == IN_ORDER


@pytest.mark.parametrize("who", ["triton", "gateway"])
def test_who_is_frozen_is_killed_and_replaced_and_the_other_left_alone(
    house: House, who: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deafness, "LATE_S", 0.5)
    monkeypatch.setattr(deafness, "EVERY_S", 0.2)

    def freeze() -> None:
        os.kill(house.pid(who), signal.SIGSTOP)
        house.until_noted(f"{who} starts", 2)
        end()

    assert house.run(freeze) == 0
    assert "no longer answered; starting it again" in house.said
    assert house.journal.count(f"{'triton' if who == 'gateway' else 'gateway'} starts") == 1


@pytest.mark.parametrize(("broken", "code"), [("2", 2), ("1", 1)])
def test_a_gateway_that_cannot_start_is_not_tried_again(house: House, broken: str, code: int) -> None:
    house.environment["BROKEN"] = broken
    assert house.run() == code
    assert f"the gateway ended (exit code {broken}) before it was ready" in house.said
    assert house.journal.count("gateway starts") == 1


def test_a_hangup_lets_the_gateway_read_its_keys_again(house: House) -> None:
    def hang_up() -> None:
        os.kill(os.getpid(), signal.SIGHUP)
        house.until_noted("gateway SIGHUP")
        end()

    assert house.run(hang_up) == 0
    assert house.journal.count("gateway starts") == 1 and "triton SIGHUP" not in house.journal


def test_a_hangup_ends_a_server_without_a_gateway(house: House) -> None:
    house.has_gateway = False
    assert house.run(lambda: os.kill(os.getpid(), signal.SIGHUP)) == 0
    assert house.journal[-2:] == ["triton SIGTERM", "triton ends"]


ALONE = """
import sys; sys.path[:0] = {paths!r}
from pathlib import Path
from serving.test_gateway_process import House
sys.exit(House(Path({folder!r})).run())
"""


def alone(folder: Path, **options: object) -> "subprocess.Popen[bytes]":
    """A house in a process of its own."""
    code = ALONE.format(paths=[str(ROOT), str(ROOT / "tests"), str(ROOT / "client")], folder=str(folder))
    return subprocess.Popen([sys.executable, "-c", code], **options)  # type: ignore[call-overload,no-any-return]


def test_a_terminal_that_is_closed_ends_it_in_order(house: House) -> None:
    ours, theirs = os.openpty()
    child = alone(
        house.folder,
        stdin=theirs,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(theirs, termios.TIOCSCTTY, 0),
    )
    os.close(theirs)
    house.until_said("answers after")
    os.close(ours)  # the kernel then sends SIGHUP
    assert child.wait(60) == 0
    assert house.journal[-4:] == IN_ORDER


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_killed_supervisor_leaves_nobody_behind(house: House) -> None:
    child = alone(house.folder)
    house.until_said("answers after")
    child.kill()
    child.wait()
    for name in ("gateway", "triton"):
        pid = house.pid(name)
        until(lambda pid=pid: not is_running(pid))
    assert "gateway SIGTERM" not in house.journal, "they are killed, and need not hear it"


def test_every_option_reaches_the_gateway_and_the_secret_only_its_environment() -> None:
    options = ServeOptions(
        1, 2, 3, Path(), 30, "0.0.0.0", host="::", port=4, gateway_workers=5, api_keys=Path("keys.toml"),
        drain_s=0.5, log_format="json", allow_image_hosts="a.example,b.example", limits=["max_headers=50"],
        kserve_http_port=6, kserve_grpc_port=7,
    )  # fmt: skip
    words = gateway_flags(options)
    assert dict(zip(words[::2], words[1::2], strict=True)) == {
        "--upstream": "127.0.0.1:2",
        "--host": "::",
        "--port": "4",
        "--kserve-http-port": "6",
        "--kserve-grpc-port": "7",
        "--engine-metrics": "http://127.0.0.1:3/metrics",
        "--workers": "5",
        "--drain-s": "0.5",
        "--exit-timeout": "30",
        "--log-format": "json",
        "--api-keys": "keys.toml",
        "--allow-image-hosts": "a.example,b.example",
        "--limit": "max_headers=50",
    }
    assert gateway_environment({"A": "b"}, "s3cret")["KESTREL_UPSTREAM_SECRET"] == "s3cret"
    assert "KESTREL_UPSTREAM_SECRET" not in gateway_environment({"A": "b"}, None)


def test_python_files_of_the_folder_of_the_start_are_not_run(tmp_path: Path) -> None:
    (tmp_path / "dis.py").write_text("raise SystemExit('a file of the folder was run')")
    environment = gateway_environment(os.environ, None)
    ran = subprocess.run([*MODULE, "--help"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
