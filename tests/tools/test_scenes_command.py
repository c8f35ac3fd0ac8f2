"""`kestrel eval scenes`: who answers, in which ways, what is drawn of it, and the command itself."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import pyvips
import torch
from rich.console import Console
from scene_truth import asked_about, truth
from tiny import tiny_config, tiny_model
from tiny_folder import save_tiny

from kestrel_core.build import LoadedModel
from kestrel_core.config import RuntimeConfig
from kestrel_core.intake.image_limits import ImageLimits
from kestrel_core.intake.images import decode_image
from kestrel_core.intake.tokenizer import Tokenizer
from kestrel_core.protocol.errors import EngineFailed, InvalidRequest
from kestrel_core.protocol.messages import Chunk, EngineResult, Request, Settings, Usage
from kestrel_core.skills.spec import Language
from kestrel_tools.commands import main
from kestrel_tools.scenes import asking, command, compare
from kestrel_tools.scenes.answers import Answer, ServerAnswers, check_pieces
from kestrel_tools.scenes.asking import Asked, scene_requests
from kestrel_tools.scenes.compare import Way
from kestrel_tools.scenes.pictures import (
    Picture,
    new_picture,
)
from kestrel_tools.scenes.score import (
    grade,
)
from kestrel_tools.scenes.sheet import Card, Shown, write_sheet, write_svg

pytestmark = pytest.mark.usefixtures("one_thread")

QUIET = Console(quiet=True)
SQUARE = np.array([[0.2, 0.2], [0.6, 0.2], [0.6, 0.6], [0.2, 0.6]])


@pytest.fixture(scope="module")
def pictures() -> list[Picture]:
    return [new_picture(1, index) for index in range(6)]


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Random weights do not know when to stop."""
    monkeypatch.setattr(asking, "SETTINGS", Settings(temperature=0.0, max_tokens=6, max_objects=2))


# Who answers.


def tiny_loaded() -> LoadedModel:
    config = tiny_config(3, vocab_size=300)
    language = Language(config, Tokenizer.of_bytes(config))
    return LoadedModel(tiny_model(config), language, torch.device("cpu"))


@pytest.mark.usefixtures("brief")
def test_batched_cached_preempted_and_streamed_answers_are_the_plain_ones(pictures: list[Picture]) -> None:
    requests = [a.request(p.data) for p in pictures[:2] for a in asked_about(p) if a.skill != "segment"]
    with compare.engine_ways(tiny_loaded(), RuntimeConfig(device="cpu")) as (plain, ways):
        answers = plain(requests)
        assert not any(isinstance(answer.outcome, EngineFailed) for answer in answers)
        for way in ways:
            way.compare(requests, answers, Random(0))
    assert [(way.name, way.num_different) for way in ways] == [
        ("batched", 0),
        ("cached", 0),
        ("preempted", 0),
        ("streamed", 0),
    ]
    batched, cached, preempted, streamed = ways
    assert cached.num_compared == 2 * batched.num_compared == 2 * preempted.num_compared
    assert streamed.num_compared == sum(r.skill in ("query", "caption") for r in requests)
    assert int(preempted.happened().split()[0]) > 0
    assert not cached.happened().startswith("0%")


def test_a_planted_difference_is_found_and_told() -> None:
    requests = [Request("query", {"question": f"question {i}"}, request_id=str(i)) for i in range(5)]
    plain = [Answer({"answer": str(i)}, 0.0) for i in range(5)]

    def answers(asked: Sequence[Request]) -> list[Answer]:
        told = [{"answer": "planted" if r.request_id == "3" else r.request_id} for r in asked]
        return [Answer(outcome, 0.0) for outcome in told]

    way = Way("batched", answers, str)
    way.compare(requests, plain, Random(0))
    assert (way.num_compared, way.num_different) == (5, 1)
    [found] = way.different
    assert found["asked"] == "3 query: question 3" and "planted" in found["batched"]
    failing = Way("batched", lambda asked: [Answer(EngineFailed("no"), 0.0)] * len(asked), str)
    failing.compare(requests, [Answer(EngineFailed("no"), 0.0)] * 5, Random(0))
    assert failing.num_different == 5


def test_pieces_that_do_not_add_up_are_an_error() -> None:
    assert check_pieces("yes", "query", {"answer": "yes"}) == {"answer": "yes"}
    found = check_pieces("ye", "caption", {"caption": "yes"})
    assert isinstance(found, EngineFailed) and "the pieces are 'ye'" in str(found)


class FakeClient:
    """As `kestrel_client.Client`, with the truth or a refusal."""

    def __init__(self, url: str) -> None:
        self.url = url

    def submit(self, request: Request) -> Any:
        if request.arguments.get("question") == "bad?":
            raise InvalidRequest("that is bad")
        assert request.settings.temperature == 0.0
        output = {"objects": []} if request.skill == "detect" else {"answer": "yes!"}
        result = EngineResult("", "stop", output, Usage(0, 0, 0, 0, 0, 0, 0))
        return FakeStream(result) if request.stream else result

    def close(self) -> None:
        pass


class FakeStream(list[Chunk]):
    def __init__(self, result: EngineResult) -> None:
        super().__init__((Chunk("hm", 1, "reasoning"), Chunk("yes", 2), Chunk("!", 3)))
        self.result = lambda: result


def test_a_server_is_asked_through_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tritonclient")
    monkeypatch.setattr("kestrel_client.Client", FakeClient)
    ask = ServerAnswers("localhost:1", 2)
    picture = b"picture"
    query = Asked("talk", "query", {"question": "what?", "reasoning": True})
    found = ask(
        [
            query.request(picture),
            query.request(picture, stream=True),
            Asked("detect", "detect", {"object": "dog"}).request(picture),
            Asked("talk", "query", {"question": "bad?"}).request(picture),
        ]
    )
    ask.close()
    *outcomes, refused = (answer.outcome for answer in found)
    assert outcomes == [{"answer": "yes!"}, {"answer": "yes!"}, {"objects": []}]
    assert isinstance(refused, InvalidRequest)


# The sheet.


def test_a_sheet_shows_every_answer_and_is_well_formed(pictures: list[Picture], tmp_path: Path) -> None:
    picture = next(p for p in pictures if len(p.scene.things) > 1)
    shown = []
    for asked in asked_about(picture):
        outcome = truth(asked, picture)
        shown.append(Shown(asked, outcome, grade(asked, outcome, picture)))
    hostile = Asked("talk", "query", {"question": "<b>&\x00?"}, "yes")
    said = {"answer": "</svg>\x1b[1m"}
    shown.append(Shown(hostile, said, grade(hostile, said, picture)))
    shown.append(Shown(hostile, EngineFailed("<no>"), grade(hostile, EngineFailed("<no>"), picture)))
    write_sheet(tmp_path / "sheet.svg", [Card(picture, shown)] * 5)
    root = ElementTree.parse(tmp_path / "sheet.svg").getroot()
    tags = [element.tag.rpartition("}")[2] for element in root.iter()]
    assert tags.count("image") == 5 and tags.count("circle") > 0 and tags.count("polygon") > 0
    told = " ".join(element.text or "" for element in root.iter())
    assert "</svg>" in told and "<no>" in told
    write_sheet(tmp_path / "sheet.png", [Card(picture, shown)])
    height, width, _ = decode_image((tmp_path / "sheet.png").read_bytes(), ImageLimits()).shape
    assert width > height / 3 > 100
    with pytest.raises(InvalidRequest, match=r"\.svg or \.png"):
        write_sheet(tmp_path / "sheet.pdf", [])


def test_strangers_svg_stays_refused_after_a_sheet_was_drawn(tmp_path: Path) -> None:
    write_svg(tmp_path / "one.png", 30, 20, [])
    assert decode_image((tmp_path / "one.png").read_bytes(), ImageLimits()).shape == (30, 45, 3)
    with pytest.raises(pyvips.Error, match="blocked"):
        pyvips.Image.svgload_buffer(b'<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>')


# The command.


@pytest.mark.usefixtures("brief")
def test_the_command_scores_an_engine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = save_tiny(tmp_path / "model", generation=3)
    report, sheet = tmp_path / "report.json", tmp_path / "sheet.svg"
    arguments = ["eval", "scenes", "--scenes=3", "--seed=4", f"--model-path={model}", "--device=cpu"]
    assert main([*arguments, f"--json={report}", f"--sheet={sheet}", "--compare"]) == 0
    printed = capsys.readouterr().out
    document = json.loads(report.read_text())
    assert document["num_pictures"] == 3 and document["num_answers"] > 25
    assert {"machine", "versions", "median_latency_ms", "right_by_tiling"} <= set(document)
    scores = {row["name"]: row for row in document["scores"]}
    assert scores["query"]["target"] == 0.97 and scores["query"]["score"] < 0.5
    assert "segment F1" not in scores  # which this model does not have
    assert [way["way"] for way in document["ways"]] == ["batched", "cached", "preempted", "streamed"]
    assert re.search(r"query\b.*0\.97", printed) and "0 of" in printed
    assert sheet.read_text().count("<image") == 3


@pytest.mark.usefixtures("brief")
def test_a_missed_target_matters_only_when_it_is_required(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = save_tiny(tmp_path / "model", generation=3)
    arguments = ["eval", "scenes", "--scenes=1", f"--model-path={model}", "--device=cpu"]
    assert main(arguments) == 0
    assert main([*arguments, "--require"]) == 1
    assert main([*arguments, "--pictures", str(tmp_path)]) == 2
    assert "truth.json" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "complaint"),
    [
        ("--sheet=sheet.pdf", ".svg or .png"),
        ("--json=nowhere/report.json", "no such folder"),
        ("--json=.", "it is a folder"),
        (f"--json={'x' * 300}", "x cannot be written"),
        (f"--json={'x' * 300}/report.json", "no such folder"),
        ("--scenes=0", "at least 1"),
        ("--concurrency=0", "at least 1"),
    ],
)
def test_what_cannot_be_done_is_said_before_the_work(
    option: str, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["eval", "scenes", option]) == 2
    assert complaint in capsys.readouterr().err


def test_a_perfect_model_passes(pictures: list[Picture]) -> None:
    asked = {p.name: scene_requests(Random(f"requests 1 {p.name}"), p.scene) for p in pictures}
    every = [(a, p) for p in pictures for a in asked[p.name]]

    def answers(requests: Sequence[Request]) -> list[Answer]:
        assert len(requests) == len(every)
        return [Answer(truth(a, p), 0.01) for a, p in every]

    found = command.evaluate(answers, [], pictures, 1, QUIET)
    assert found.passed and not any(found.scores.wrong.values())
    assert sum(map(len, found.by_tiling.values())) == found.scores.num_answers == len(every)
    assert len(found.cards) == len(pictures)
