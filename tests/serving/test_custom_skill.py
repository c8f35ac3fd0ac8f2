"""A skill that is one file, examples/custom_skill.py, on every way in: no other file knows of it."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from triton_server import Served, base64_of, served

from kestrel_client import AsyncClient, Client, InvalidRequest, UnknownSkill
from kestrel_core.cli.main import main
from kestrel_core.skills.registry import builtin_skills

ROOT = Path(__file__).parents[2]
CIRCLES = ROOT / "client/samples/circles.png"
SKILL = f"{ROOT}/examples/custom_skill.py:Count"
ASKED = {"object": "green circle", "least": 4}
COUNTED = {"count": 5, "enough": True}

pytestmark = pytest.mark.triton


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("count") / "log", "--demo", KESTREL_SKILLS=SKILL) as it:
        yield it


def without_measures(document: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key in COUNTED}


def test_plain_tritonclient_and_http_reach_it(server: Served) -> None:
    inputs = {"SKILL": "count", "OBJECT": "green circle", "ARGUMENTS": '{"least": 6}'}
    [answer] = server.ask(IMAGE=CIRCLES.read_bytes(), **inputs)
    assert without_measures(answer) == {"count": 5, "enough": False}
    status, answer = server.post({"IMAGE": base64_of(CIRCLES.read_bytes()), **inputs})
    assert status == 200 and without_measures(answer) == {"count": 5, "enough": False}


def test_both_clients_reach_it(server: Served) -> None:
    url = f"localhost:{server.grpc_port}"
    with Client(url) as client:
        assert client.ask("count", CIRCLES, **ASKED).output == COUNTED
        assert client.ask("count", CIRCLES, object="red star").output["count"] == 0
        with pytest.raises(InvalidRequest, match='count takes no "colour"'):
            client.ask("count", CIRCLES, colour="green", **ASKED)
        with pytest.raises(InvalidRequest, match=r'count takes no "laest"; did you mean least'):
            client.ask("count", CIRCLES, object="circle", laest=2)
        with pytest.raises(InvalidRequest, match="LEAST is 'two'; it must be an integer"):
            client.ask("count", CIRCLES, object="circle", least="two")
        with pytest.raises(UnknownSkill, match="did you mean count"):
            client.ask("cuont", CIRCLES, object="circle")

    async def ask() -> Any:
        async with AsyncClient(url) as client:
            return await client.ask("count", CIRCLES, **ASKED)

    assert asyncio.run(ask()).output == COUNTED


def test_run_py_reaches_it(server: Served) -> None:
    command = [sys.executable, "client/run.py", "--url", f"localhost:{server.grpc_port}", "--image", CIRCLES]
    command += ["--skill", "count", "--object", "green circle", "--argument", "least=4"]
    done = subprocess.run([*command, "--json"], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)["skills"]["count"]["response"]
    assert without_measures(answer) == COUNTED
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert "count: 5" in shown.stdout


def test_the_command_line_reaches_it_without_a_server(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in (("MODEL", "moondream-tiny"), ("DEVICE", "cpu"), ("SKILLS", SKILL)):
        monkeypatch.setenv(f"KESTREL_{name}", value)
    asked = ["schedule", "green circle", "--skill", "count", "--image", str(CIRCLES), "--argument", "least=4"]
    assert main([*asked, "--json"]) == 0
    assert without_measures(json.loads(capsys.readouterr().out)) == COUNTED


def test_nothing_else_knows_of_it() -> None:
    assert "count" not in builtin_skills().names
    example = (ROOT / "examples/custom_skill.py").read_text()
    assert len(example.splitlines()) < 80
    for folder in ("kestrel_core", "client", "model_repository"):
        for path in (ROOT / folder).rglob("*.py"):
            assert "class Count" not in path.read_text(), path
