"""What a machine does to a server: processes that die, no descriptors, a full disk, little shared memory."""

import asyncio
import os
import resource
import shutil
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from attacks.stack import Stack, stack
from triton_server import until

from kestrel_tools.bench.attacks.doors import post
from kestrel_tools.bench.attacks.neighbour import fields_of

pytestmark = [pytest.mark.triton, pytest.mark.attacks]


@pytest.fixture(scope="module")
def victim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with stack(tmp_path_factory.mktemp("victim")) as it:
        yield it


def answers(victim: Stack) -> bool:
    try:
        return victim.post(*fields_of(1)).status == 200
    except OSError:
        return False


@pytest.mark.parametrize("role", ["stub", "server", "gateway"])
def test_a_process_that_is_killed_is_replaced(victim: Stack, role: str) -> None:
    before = victim.processes()
    os.kill(before[role], signal.SIGKILL)
    until(lambda: answers(victim) and victim.processes()[role] != before[role], 60)
    assert victim.processes()["supervisor"] == before["supervisor"]
    with victim.undisturbed():
        pass


@pytest.mark.parametrize("role", ["stub", "server", "gateway"])
def test_a_process_that_is_frozen_is_replaced(victim: Stack, role: str) -> None:
    before = victim.processes()
    os.kill(before[role], signal.SIGSTOP)
    until(lambda: not Path(f"/proc/{before[role]}/exe").exists(), 30)
    until(lambda: answers(victim), 60)
    assert victim.processes()["supervisor"] == before["supervisor"]
    with victim.undisturbed():
        pass


def test_a_machine_that_stands_still_leaves_nobody_without_an_answer(victim: Stack) -> None:
    """Triton or the model's process may not survive it, and are replaced; who was waiting is told."""
    supervisor = victim.processes()["supervisor"]
    is_over, statuses = threading.Event(), Counter[int]()

    def ask_on(number: int) -> None:
        while not is_over.is_set():
            with suppress(OSError):
                statuses[victim.post(*fields_of(number)).status] += 1

    callers = [threading.Thread(target=ask_on, args=(number,)) for number in range(6)]
    for caller in callers:
        caller.start()
    for _ in range(8):
        stopped = [supervisor, *below(victim, supervisor)]
        for number in (signal.SIGSTOP, signal.SIGCONT):
            for process in stopped:
                with suppress(ProcessLookupError):
                    os.kill(process, number)
            time.sleep(1.5)
    is_over.set()
    for caller in callers:
        caller.join(60)
        assert not caller.is_alive(), "a caller waits for ever"
    assert statuses[200] and set(statuses) <= {200, 429, 502, 503}, statuses
    until(lambda: answers(victim), 60)
    assert victim.processes()["supervisor"] == supervisor
    with victim.undisturbed():
        pass


def below(victim: Stack, process: int) -> list[int]:
    children = victim.served.children(process)
    return [*children, *(it for child in children for it in below(victim, child))]


def test_seven_crashes_in_a_row_do_not_end_the_service(tmp_path: Path) -> None:
    """After six of them it once gave up. Each pause is twice as long as the one before."""
    with stack(tmp_path) as it:
        supervisor = it.processes()["supervisor"]
        for _ in range(7):
            server = it.processes()["server"]
            os.kill(server, signal.SIGKILL)
            until(lambda server=server: not Path(f"/proc/{server}/exe").exists() and answers(it), 120)
        assert it.processes()["supervisor"] == supervisor
        with it.undisturbed():
            pass


@contextmanager
def limited(pid: int, what: int, most: int) -> Iterator[None]:
    before = resource.prlimit(pid, what)
    resource.prlimit(pid, what, (most, before[1]))
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            resource.prlimit(pid, what, before)


async def knock(victim: Stack, seconds: float) -> None:
    """Ask for so long, and wait for nobody."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with suppress(TimeoutError):
            async with asyncio.timeout(1):
                await post(victim.attacker, *fields_of(1))


@pytest.mark.parametrize("role", ["gateway", "server"])
def test_without_descriptors_the_log_is_not_flooded_and_answers_come_back(victim: Stack, role: str) -> None:
    """Nobody can connect to it meanwhile. If that lasts, it is taken for deaf and replaced."""
    processes = victim.processes()
    pid = processes[role]
    in_use = max(int(number) for number in os.listdir(f"/proc/{pid}/fd")) + 1
    log_bytes = victim.served.log.stat().st_size
    with limited(pid, resource.RLIMIT_NOFILE, in_use):
        asyncio.run(knock(victim, 10))
        assert victim.served.log.stat().st_size - log_bytes < 2**20
    until(lambda: answers(victim), 60)
    assert victim.processes()["supervisor"] == processes["supervisor"]
    with victim.undisturbed():
        pass


@pytest.mark.parametrize("role", ["gateway", "supervisor", "stub"])
def test_a_full_disk_does_not_stop_the_answers(victim: Stack, role: str) -> None:
    """No byte more can be written to any file: the log's lines are lost, and nothing else."""
    processes = victim.processes()
    with limited(processes[role], resource.RLIMIT_FSIZE, 0), victim.undisturbed():
        pass
    assert victim.processes() == processes


SERVE = 'mount -t tmpfs -o size="$1" tmpfs /dev/shm; shift; exec "$@"'


def test_with_little_shared_memory_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    """64 MB, as containers have it: a picture that does not fit is refused, and the next one is answered."""
    own_shm = ["unshare", "-m", "sh", "-ec", SERVE, "sh", "64m"]
    if not shutil.which("unshare") or subprocess.run([*own_shm, "true"], capture_output=True).returncode:
        pytest.skip("no mounts of our own here")
    with stack(tmp_path, wrapper=own_shm) as it:
        processes = it.processes()
        path, fields = fields_of(1)
        large = fields | {"image_url": "A" * 40 * 2**20}
        statuses = {it.post(path, large).status for _ in range(3)}
        assert statuses <= {400, 413, 429, 503}, statuses
        with it.undisturbed():
            pass
        assert it.processes() == processes
