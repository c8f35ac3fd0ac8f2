"""The Triton model without a server: over a fake of Triton's module and a tiny engine."""

import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fake_backend
import numpy as np
import pytest
from fake_backend import TritonRequest
from PIL import Image
from tiny import tiny_engine

from kestrel_core import build
from kestrel_core.triton.model import MAX_PARAMETERS, TritonPythonModel

ARGS = {"model_instance_name": "moondream_0_3", "model_config": "{}"}
FILE = Path(__file__).parents[2] / "model_repository/moondream/1/model.py"


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[TritonPythonModel]:
    made = start(TritonPythonModel, monkeypatch)
    yield made
    if not made.closing.is_set():
        made.finalize()


def start(kind: type[TritonPythonModel], monkeypatch: pytest.MonkeyPatch) -> TritonPythonModel:
    """As Triton does it. The engine is a tiny one, whatever is configured."""
    monkeypatch.setitem(sys.modules, "triton_python_backend_utils", fake_backend)
    for kept in (fake_backend.Metric.alive, fake_backend.Metric.threads, fake_backend.Metric.values):
        kept.clear()
    monkeypatch.setattr(build, "build_engine", lambda config, skills, **_: tiny_engine(3, skills)._engine)
    interval = sys.getswitchinterval()
    made = kind()
    made.initialize(ARGS)
    sys.setswitchinterval(interval)
    return made


def test_python_files_of_the_folder_of_the_start_do_not_take_the_place_of_others(tmp_path: Path) -> None:
    """Triton's stub looks into that folder first."""
    (tmp_path / "dis.py").write_text("raise SystemExit('a file of the folder was run')")
    code = f"import runpy, sys; sys.path.insert(0, ''); runpy.run_path({str(FILE)!r})"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    stub = [sys.executable, "-P", "-c", code]
    ran = subprocess.run(stub, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")


def ask(model: TritonPythonModel, **inputs: Any) -> TritonRequest:
    request = TritonRequest(**inputs)
    model.execute([request])
    return request


def png() -> bytes:
    file = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (40, 60, 3), np.uint8)).save(file, "png")
    return file.getvalue()


def test_a_request_is_answered_with_one_document_and_the_final_flag(model: TritonPythonModel) -> None:
    request = ask(model, SKILL="query", QUESTION="what?", IMAGE=png(), MAX_TOKENS=3, TEMPERATURE=0.0)
    [document] = request.sender.documents()
    assert document["request_id"] == "1" and document["metrics"]["output_tokens"] == 3
    assert "answer" in document and "chunk" not in document


def test_a_stream_ends_with_its_whole_document(model: TritonPythonModel) -> None:
    request = ask(model, SKILL="query", QUESTION="go on", STREAM=True, MAX_TOKENS=30, TEMPERATURE=0.0)
    *chunks, last = request.sender.documents()
    assert last["completed"] and not any(chunk["completed"] for chunk in chunks)
    assert "".join(document["chunk"] for document in (*chunks, last)) == last["answer"]


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"QUESTION": "what?"}, "INVALID_ARG: SKILL is required"),
        ({"SKILL": "query"}, "INVALID_ARG: QUESTION is required"),
        ({"SKILL": "query", "QUESTION": "?", "ADAPTER": "mine"}, "NOT_FOUND: adapter"),
        ({"SKILL": "caption", "IMAGE": b"no picture"}, "INVALID_ARG: image_decode_failed: the image"),
    ],
)
def test_what_is_wrong_is_the_one_response(
    model: TritonPythonModel, inputs: dict[str, Any], message: str
) -> None:
    request = ask(model, **inputs)
    assert request.sender.error().startswith(message) and len(request.sender.responses) == 1


def test_a_fault_of_our_own_is_told_without_its_traceback(
    model: TritonPythonModel, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(model.engine.loop, "submit", lambda *arguments: 1 / 0)
    request = ask(model, SKILL="query", QUESTION="what?")
    expected = "INTERNAL: the request could not be taken in (ZeroDivisionError)"
    assert request.sender.error() == expected and model.refused["INTERNAL"] == 1


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (
            {"SPATIAL_REFS": np.zeros((2_000_000, 2), np.float32)},
            "has 2,000,000 rows, 4,000,000 numbers",
        ),
        ({"STOP": np.array([b"x"] * 100_000, dtype=np.object_)}, "STOP has 100,000 strings"),
        ({"parameters": json.dumps({"spatial_refs": " " * 16_000_000})}, "letters of JSON; at most"),
    ],
)
def test_what_is_too_large_is_refused_before_it_is_converted(
    model: TritonPythonModel, inputs: dict[str, Any], message: str
) -> None:
    began = time.thread_time()
    request = ask(model, SKILL="query", QUESTION="what?", IMAGE=png(), **inputs)
    assert time.thread_time() - began < 0.1
    assert message in request.sender.error() and request.sender.error().startswith(
        "INVALID_ARG: payload_too_large: "
    )


def test_the_largest_that_is_taken_passes(model: TritonPythonModel) -> None:
    refs = np.full((100, 4), 0.5, np.float32)
    assert len(json.dumps(refs.tolist())) < MAX_PARAMETERS
    request = ask(model, SKILL="query", QUESTION="what?", IMAGE=png(), SPATIAL_REFS=refs, MAX_TOKENS=2)
    assert "max_context" in request.sender.error(), "it was read, and does not fit a tiny model"


def test_the_request_of_a_client_that_has_gone_is_cancelled(model: TritonPythonModel) -> None:
    request = TritonRequest(SKILL="query", QUESTION="go on", MAX_TOKENS=100, TEMPERATURE=0.0)
    request.sender.cancelled = True
    model.execute([request])
    [document] = request.sender.documents()
    assert document["finish_reason"] in ("cancelled", "stop", "length")
    assert not model.open


def test_finalize_answers_all_and_leaves_no_metric_to_python_s_end(model: TritonPythonModel) -> None:
    requests = [ask(model, SKILL="caption", IMAGE=png(), MAX_TOKENS=20, TEMPERATURE=0.0) for _ in range(5)]
    alive, deadline = fake_backend.Metric.alive, time.monotonic() + 60
    while not alive:
        assert time.monotonic() < deadline
    model.finalize()
    assert all(request.sender.documents() for request in requests)
    assert not alive, "its end would be told to a server that has closed the connection"
    assert fake_backend.Metric.threads == {"kestrel-metrics"}
    assert not any(thread.is_alive() for thread in model.threads)


def test_metrics_carry_the_instance_and_histograms_are_observed(model: TritonPythonModel) -> None:
    ask(model, SKILL="caption", IMAGE=png(), MAX_TOKENS=3, TEMPERATURE=0.0).sender.documents()
    values, deadline = fake_backend.Metric.values, time.monotonic() + 60
    labels = json.dumps({"engine": "3", "skill": "caption"})
    while ("kestrel_request_seconds", labels) not in values:
        assert time.monotonic() < deadline
    model.finalize()
    assert len(values["kestrel_request_seconds", labels]) == 1
    assert len(values["kestrel_ttft_seconds", '{"engine": "3"}']) == 1
    [info] = [key for name, key in values if name == "kestrel_engine_info"]
    assert json.loads(info) == {"engine": "3", "version": model.engine.about.version} | model.engine.in_use()


def test_a_subclass_may_bring_its_own_skills(monkeypatch: pytest.MonkeyPatch) -> None:
    from kestrel_core.skills.registry import SkillRegistry
    from kestrel_core.skills.text import CaptionSkill

    class Mine(TritonPythonModel):
        skills = SkillRegistry([CaptionSkill()])

    model = start(Mine, monkeypatch)
    assert "no skill" in ask(model, SKILL="query", QUESTION="what?").sender.error()
    assert ask(model, SKILL="caption", IMAGE=png(), MAX_TOKENS=2).sender.documents()
    model.finalize()
