"""What dies is noticed, told and started again; what is asked to end finishes first."""

import asyncio
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from free_ports import free_ports
from triton_server import Served, refusal, repository_with, served, stream, until

from kestrel_core.triton.deafness import EVERY_S, LATE_S, NUM_LATE

pytestmark = pytest.mark.triton

LONG: dict[str, Any] = {"SKILL": "query", "QUESTION": "all of it", "TEMPERATURE": 0.0, "MAX_TOKENS": 4000}
SHORT = LONG | {"MAX_TOKENS": 3}

# A model that can be told to break, or never to end a step, by a question.
FRAGILE = """
import threading

class TritonPythonModel(TritonPythonModel):
    def parse(self, triton_request):
        request = super().parse(triton_request)
        if request.arguments.get("question") == "break":
            self.engine.loop.scheduler.plan = None
        if request.arguments.get("question") == "stick":
            self.engine.loop.heartbeat.limit_s = 0.5
            self.engine.loop.scheduler.plan = threading.Event().wait
        return request
"""


# A supervisor for which one answer is a good while: what breaks next is replaced without a pause. It also
# waits less for a server that has answered all and yet does not end.
HURRIED = """
import runpy, sys
from kestrel_core.triton import process, supervisor
process.GOOD_WHILE_S, supervisor.LINGER_S = 0.0, 3.0
del sys.argv[:3]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""


@pytest.fixture(scope="module")
def fragile(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("fragile")
    repository = repository_with(folder, {"model_path": str(model)})
    with (repository / "moondream/1/model.py").open("a") as file:
        file.write(FRAGILE)
    hurried = (sys.executable, "-c", HURRIED)
    with served(folder / "log", f"--model-repository={repository}", wrapper=hurried) as it:
        yield it


def regions(server: int) -> set[str]:
    maps = Path(f"/proc/{server}/maps").read_text()
    return {word for word in maps.split() if word.startswith("/dev/shm/kestrel_")}


def answers_again(server: Served) -> bool:
    """A refused connection is not yet an answer."""
    try:
        return server.is_ready() and server.post(SHORT)[0] == 200
    except OSError:
        return False


async def until_cut_off(server: Served, started: threading.Event) -> str:
    async with server.client() as client:
        try:
            async for _ in stream(client, STREAM=True, **LONG):
                started.set()
        except Exception as error:
            return refusal(error)
    return ""


def test_a_killed_stub_is_told_to_its_clients_and_replaced(fragile: Served) -> None:
    server_id = fragile.children()[0]
    [stub] = fragile.children(server_id)
    left_behind = regions(server_id)
    assert left_behind
    before = fragile.ask(**SHORT)[0]["answer"]
    started = threading.Event()
    said: list[str] = []
    web: list[Any] = []

    def over_http() -> None:
        try:
            web.append(fragile.post(LONG))
        except OSError as error:
            web.append(error)

    threads = [
        threading.Thread(target=lambda: said.append(asyncio.run(until_cut_off(fragile, started)))),
        threading.Thread(target=over_http),
    ]
    for thread in threads:
        thread.start()
    assert started.wait(60)
    until(lambda: fragile.metric("kestrel_running_requests") == 2)
    os.kill(stub, signal.SIGKILL)
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "a client hangs"
    assert said[0] and isinstance(web[0], OSError)
    until(lambda: answers_again(fragile))
    assert fragile.ask(**SHORT)[0]["answer"] == before
    assert fragile.process.poll() is None
    assert "the process that runs the model has died" in fragile.log.read_text()
    assert not any(Path(region).exists() for region in left_behind)


def test_an_engine_that_knows_it_is_broken_is_replaced(fragile: Served) -> None:
    server_id = fragile.children()[0]
    status, answer = fragile.post(LONG | {"QUESTION": "break"})
    assert status == 400 and answer["error"].startswith("INTERNAL: the engine failed")
    until(lambda: fragile.children() not in ([], [server_id]))
    until(lambda: answers_again(fragile))
    assert "the engine is broken and every caller has been told" in fragile.log.read_text()


def test_an_engine_whose_step_never_ends_is_replaced(fragile: Served) -> None:
    """All else in its process goes on answering."""
    server_id = fragile.children()[0]
    with pytest.raises(OSError):
        fragile.post(LONG | {"QUESTION": "stick"})
    until(lambda: fragile.children() not in ([], [server_id]))
    until(lambda: answers_again(fragile))
    assert "the engine is stuck" in fragile.log.read_text()


def test_a_server_that_is_killed_is_replaced(fragile: Served) -> None:
    [server_id] = fragile.children()
    left_behind = regions(server_id)
    os.kill(server_id, signal.SIGKILL)
    until(lambda: fragile.children() not in ([], [server_id]))
    until(lambda: answers_again(fragile))
    assert "the server ended (SIGKILL)" in fragile.log.read_text()
    assert left_behind and not any(Path(region).exists() for region in left_behind)


def test_a_model_that_cannot_be_loaded_is_not_tried_again(model: Path, tmp_path: Path) -> None:
    broken = tmp_path / "model"
    shutil.copytree(model, broken)
    (broken / "model.safetensors").write_bytes(b"no weights")
    with (
        pytest.raises(AssertionError, match="before it was ready") as raised,
        served(tmp_path / "log", KESTREL_MODEL_PATH=str(broken)),
    ):
        pass
    *_, last = str(raised.value).strip().splitlines()
    assert "model.safetensors is no safetensors file" in last and "At:" not in last


def test_a_frozen_stub_is_killed_and_replaced(fragile: Served) -> None:
    [server_id] = fragile.children()
    [stub] = fragile.children(server_id)
    fragile.log.write_text("")
    os.kill(stub, signal.SIGSTOP)
    until(lambda: "no longer answered" in fragile.log.read_text())
    assert not Path(f"/proc/{stub}/exe").exists(), "a stopped process can be killed too"
    until(lambda: answers_again(fragile))


def test_a_busy_engine_is_not_taken_for_a_frozen_one(fragile: Served) -> None:
    """For as long as it takes to find a frozen one, every slot is taken and others wait."""
    [server_id] = fragile.children()
    busy_until = time.monotonic() + LATE_S + (NUM_LATE + 1) * EVERY_S
    while time.monotonic() < busy_until:
        answers = fragile.ask_all(
            [LONG | {"QUESTION": f"{number}", "MAX_TOKENS": 100} for number in range(24)]
        )
        refused = [answer for answer in answers if isinstance(answer, BaseException)]
        assert not refused, (refused[0], fragile.log.read_text())
    assert fragile.children() == [server_id], fragile.log.read_text()


async def leave(client: Any, number: int) -> None:
    answers = stream(client, STREAM=True, **(LONG | {"QUESTION": f"{number}", "MAX_TOKENS": 30}))
    for _ in range(number % 8):
        if await anext(answers, None) is None:
            break
    await answers.aclose()


def test_who_is_being_answered_when_the_end_comes_is_answered(fragile: Served) -> None:
    """Also after clients have left at odd moments, for some of whom Triton then waits in vain.

    The last test that has this server, since it ends it.
    """
    inputs = LONG | {"MAX_TOKENS": 400}
    streamed: list[Any] = []
    posted: list[Any] = []
    started = threading.Event()

    async def part() -> None:
        async with fragile.client() as client:
            await asyncio.gather(*(leave(client, number) for number in range(100)))

    async def read() -> None:
        async with fragile.client() as client:
            async for response in stream(client, STREAM=True, **inputs):
                streamed.append(response)
                started.set()

    asyncio.run(part())
    threads = [
        threading.Thread(target=lambda: asyncio.run(read())),
        threading.Thread(target=lambda: posted.append(fragile.post(inputs))),
    ]
    for thread in threads:
        thread.start()
    assert started.wait(60)
    until(lambda: fragile.metric("kestrel_running_requests") == 2)
    left_behind = regions(fragile.children()[0])
    assert fragile.end() == 0
    for thread in threads:
        thread.join(60)
    assert streamed[-1]["completed"] and streamed[-1]["metrics"]["output_tokens"] == 400
    assert posted[0][0] == 200 and posted[0][1]["answer"] == streamed[-1]["answer"]
    assert left_behind and not any(Path(region).exists() for region in left_behind)
    assert fragile.log.read_text().count("those under way then have 30 s") == 1


def test_a_killed_supervisor_leaves_nobody_behind_and_the_next_one_starts_on_the_same_ports(
    model: Path, tmp_path: Path
) -> None:
    """The stub is frozen, so it cannot notice by itself. A server on another address is found ready too."""
    ports = [*free_ports(3), 0]
    flags = ("--host", "127.0.0.2")
    with served(tmp_path / "log", *flags, ports=ports, KESTREL_MODEL_PATH=str(model)) as server:
        assert "on 127.0.0.2" in server.log.read_text()
        [server_id] = server.children()
        [stub] = server.children(server_id)
        left_behind = regions(server_id)
        os.kill(stub, signal.SIGSTOP)
        os.kill(server.process.pid, signal.SIGKILL)
        server.process.wait(60)
        until(lambda: not Path(f"/proc/{server_id}/exe").exists())
    with served(tmp_path / "next", *flags, ports=ports, KESTREL_MODEL_PATH=str(model)) as server:
        assert "an earlier server was killed; 1 of its processes" in server.log.read_text()
        assert not Path(f"/proc/{stub}/exe").exists()
        assert left_behind and not any(Path(region).exists() for region in left_behind)
