"""Triton's own ports, as its users reach them: tritonclient over gRPC and HTTP, and curl."""

import base64
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from other_clients import SAMPLE, Drive, are_pieces_of, near
from triton_server import Served

pytestmark = [pytest.mark.ecosystem, pytest.mark.triton]


@pytest.fixture(scope="module")
def told(drive: Drive, stack: Served) -> Any:
    return drive("ours", "tritonclient_calls.py", stack.http_port, stack.grpc_port, SAMPLE)


def test_a_grpc_stream_answers_once_or_in_pieces(told: Any, truth: dict[str, Any]) -> None:
    [answer] = told["grpc"]["query"]
    assert answer["answer"] == "5"
    [found] = told["grpc"]["detect"]
    assert found["objects"] == near(truth["objects"])
    *_, last = told["grpc"]["caption"]
    assert are_pieces_of(truth["caption"], [chunk["chunk"] for chunk in told["grpc"]["caption"]])
    assert last["caption"] == truth["caption"]


def test_metadata_is_told_over_http(told: Any) -> None:
    http = told["http"]
    assert (http["live"], http["ready"], http["model_ready"], told["grpc"]["ready"]) == (True,) * 4
    assert http["server"]["name"] == "triton"
    assert [tensor["name"] for tensor in http["model"]["outputs"]] == ["TEXT_OUTPUT"]
    assert "SKILL" in [tensor["name"] for tensor in http["model"]["inputs"]]
    assert http["config"]["model_transaction_policy"]["decoupled"] is True


def curl(folder: Path, stack: Served, path: str, **inputs: Any) -> str:
    body = folder / "body.json"
    body.write_text(json.dumps({"IMAGE": base64.b64encode(SAMPLE.read_bytes()).decode(), **inputs}))
    address = f"http://127.0.0.1:{stack.http_port}/v2/models/moondream/{path}"
    command = ["curl", "--silent", "--show-error", "--fail", "--no-buffer", address, "--data", f"@{body}"]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


def test_curl_generates(stack: Served, tmp_path: Path, truth: dict[str, Any]) -> None:
    text = curl(tmp_path, stack, "generate", SKILL="detect", OBJECT="green circle")
    assert json.loads(json.loads(text)["TEXT_OUTPUT"])["objects"] == near(truth["objects"])


def test_curl_generates_a_stream(stack: Served, tmp_path: Path, truth: dict[str, Any]) -> None:
    text = curl(tmp_path, stack, "generate_stream", SKILL="caption", STREAM=True, TEMPERATURE=0)
    events = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    documents = [json.loads(json.loads(event)["TEXT_OUTPUT"]) for event in events]
    assert are_pieces_of(truth["caption"], [document["chunk"] for document in documents])
    assert documents[-1]["completed"] is True
