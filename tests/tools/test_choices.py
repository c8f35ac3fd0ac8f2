"""`kestrel eval scenes --record` and `kestrel eval choices`: what was chosen, and if plain torch agrees."""

import io
import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console

from kestrel_core.build import LoadedModel, assemble_engine, open_model
from kestrel_core.config import RuntimeConfig
from kestrel_core.loop.step import Kind, Readout
from kestrel_core.protocol.errors import EngineFailed, UnsupportedSkill
from kestrel_core.protocol.messages import Request, Settings
from kestrel_tools.commands import main
from kestrel_tools.reference import judge
from kestrel_tools.scenes import asking
from kestrel_tools.scenes.answers import Answer, EngineAnswers
from kestrel_tools.scenes.asking import SETTINGS, Asked
from kestrel_tools.scenes.choices import NEAR, check, near_of
from kestrel_tools.scenes.pictures import NewPictures, new_picture
from kestrel_tools.scenes.record import Record, Recorded, Recording
from kestrel_tools.scenes.verdict import Verdict
from tests.small_atlas import small_atlas

pytestmark = pytest.mark.usefixtures("one_thread")

QUIET = Console(quiet=True)
SCENES, SEED = 2, 64  # small pictures
FLOAT32, BFLOAT16 = 2.0**-24, 2.0**-8

Line = dict[str, Any]


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("record") / "choices.jsonl"
    arguments = f"eval scenes --scenes={SCENES} --seed={SEED} --model=moondream-tiny --device=cpu".split()
    assert main([*arguments, "--max-batch-size=16", f"--record={file}", "--logprobs"]) == 0
    return file


@pytest.fixture(scope="module")
def model() -> LoadedModel:
    return open_model(RuntimeConfig(model="moondream-tiny", device="cpu"))


@pytest.fixture
def changed(record: Path, tmp_path: Path) -> Callable[..., Path]:
    """The record with some lines changed: `change` is given each request's, and drops it by saying False."""

    def write(change: Callable[[Line], bool | None]) -> Path:
        about, *lines = map(json.loads, record.read_text().splitlines())
        kept = [about, *(line for line in lines if change(line) is not False)]
        file = tmp_path / "changed.jsonl"
        file.write_text("".join(json.dumps(line) + "\n" for line in kept))
        return file

    return write


def checked(file: Path, *options: str) -> tuple[int, dict[str, Any]]:
    report = file.with_suffix(".json")
    code = main(["eval", "choices", str(file), f"--json={report}", *options])
    return code, json.loads(report.read_text())


def is_short_caption(line: Line) -> bool:
    return (line["picture"], line["arguments"]) == ("0", {"length": "short"})


# The record.


def test_a_record_holds_every_request_with_all_that_was_fed(record: Path) -> None:
    requests = list(Record(record))
    assert [one.picture for one in requests] == sorted(one.picture for one in requests)
    assert {one.picture for one in requests} == {"0", "1"} and len(requests) > 25
    assert {choice.kind for one in requests for choice in one.choices} == set(Kind)
    assert not any(one.error for one in requests)
    [thought, _] = [one for one in requests if one.arguments.get("reasoning")]
    [(at, turn)] = [(i, choice) for i, choice in enumerate(thought.choices) if choice.fed is not None]
    assert turn.fed == (3,) and turn.sample.token == 3 and at < len(thought.choices) - 1


def test_lines_are_read_back_as_they_were(record: Path) -> None:
    for one in Record(record):
        assert Recorded.from_json(json.loads(json.dumps(one.to_json()))) == one


def test_steps_planned_ahead_are_recorded_alike(model: LoadedModel) -> None:
    picture = new_picture(SEED, 0)
    asked = [
        Asked("detect", "detect", {"object": "shape"}),
        Asked("reasoning", "query", {"question": "How many shapes are there?", "reasoning": True}),
    ]
    requests = [one.request(picture.data, picture.name) for one in asked]
    written = []
    for overlaps in (False, True):
        file = io.StringIO()
        recording = Recording(file, model.network.config.vision, logprobs=False)
        config = RuntimeConfig(device="cpu", max_batch_size=2)
        answers = EngineAnswers(assemble_engine(model, config, recording.skills, overlaps), callers=2)
        recording.through(answers)(requests)
        answers.close()
        written.append(file.getvalue())
    assert written[0] == written[1] and len(written[0].splitlines()) == 2


def test_a_failure_is_written_and_what_the_model_cannot_do_is_not(model: LoadedModel) -> None:
    file = io.StringIO()
    recording = Recording(file, model.network.config.vision, logprobs=False)
    outcomes = [Answer(EngineFailed("it rains"), 0.0), Answer(UnsupportedSkill("no"), 0.0)]
    recording.through(lambda requests: outcomes)([Request("query"), Request("segment")])
    [line] = map(json.loads, file.getvalue().splitlines())
    assert line["error"] == "EngineFailed: it rains" and line["choices"] == []


# The check.


def test_the_reference_chooses_as_the_engine_did(record: Path) -> None:
    code, document = checked(record)
    assert code == 0 and document["passed"]
    rows = {row["kind"]: row for row in document["choices"]}
    assert all(row["choices"] == row["equal"] > 0 for row in rows.values())
    assert rows["all"]["choices"] == sum(row["choices"] for row in rows.values()) / 2 > 300
    assert document["num_pictures"] == SCENES and document["num_redrawn"] == 0
    # Not the largest: one of thousands may be far beyond, as when two experts are nearly equal.
    assert 0 < document["noise"]["P99"] < NEAR["float32"]
    assert document["recorded"]["seed"] == SEED and document["worst"] == []


def test_the_second_best_token_is_found(
    changed: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    def take_second(line: Line) -> None:
        if is_short_caption(line):
            last = line["choices"][-2]  # before the end
            last["token"] = last["top"][1][0]

    file = changed(take_second)
    code, document = checked(file)
    assert code == 1 and not document["passed"]
    [caption] = [one for one in Record(file) if one.picture == "0" and one.arguments == {"length": "short"}]
    (best, of_best), (second, of_second) = caption.choices[-2].sample.top
    [told] = [one for one in document["worst"] if (one["best"], one["chosen"]) == (best, second)]
    assert (told["picture"], told["number"], told["kind"]) == ("0", caption.number, "token")
    assert told["logits"] == pytest.approx(of_best - of_second, abs=1e-3)
    assert f"token {second} instead of {best}" in capsys.readouterr().out
    # What follows a wrong word is judged as what follows that word, so there may be more than one.
    assert sum(document["histogram"].values()) == document["choices"][-1]["different"] >= 1
    assert checked(file, "--near=1e9")[0] == 0  # whoever calls that near


@pytest.mark.parametrize("what", ["coord", "size"])
def test_a_bin_far_from_the_best_is_found(what: str, changed: Callable[..., Path]) -> None:
    bins: list[int] = []

    def move(line: Line) -> None:
        for choice in line["choices"]:
            if line["skill"] == "detect" and choice["kind"] == what and not bins:
                if what == "coord":
                    choice["coord"] = (choice["coord"] + 0.5) % 1
                    bins.append(round(choice["coord"] * 1024))
                else:
                    choice["size"][0] = 1.0
                    bins.append(1023)

    code, document = checked(changed(move))
    assert code == 1
    [told] = [one for one in document["worst"] if one["chosen"] == bins[0]]
    assert told["kind"] == what and told["spreads"] > 0.5
    if what == "coord":
        assert told["best"] == (bins[0] + 512) % 1024


def test_a_near_tie_is_accepted(changed: Callable[..., Path], model: LoadedModel) -> None:
    """Two words that mean the same to the network, but for a hundred-thousandth: the engine took one."""
    twin, gap = 700, 1e-5
    seen: list[int] = []

    def take_twin(line: Line) -> None:
        if is_short_caption(line):
            seen.append(line["choices"][-2]["token"])
            line["choices"][-2]["token"] = twin

    file = changed(take_twin)
    network = deepcopy(model.network)
    with torch.no_grad():
        for table in (network.text.wte, network.text.lm_head.weight, network.text.lm_head.bias):
            table[twin] = table[seen[0]]
        network.text.lm_head.bias[twin] -= gap
    near = LoadedModel(network, model.language, model.device)
    for bound, passed in ((NEAR["float32"], True), (1.0, False)):
        verdict = Verdict(FLOAT32, bound, SCENES)
        check(Record(file), NewPictures(SEED, SCENES), near, verdict, QUIET)
        document = verdict.document()
        [worst] = document["worst"]
        assert (worst["chosen"], worst["best"]) == (twin, seen[0])
        assert worst["logits"] == pytest.approx(gap, rel=0.5)
        assert verdict.passed is document["passed"] is passed


def test_what_fails_or_is_missing_is_no_proof(
    changed: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    def drop_the_last_picture(line: Line) -> bool:
        line["error"] = "EngineFailed: it rains" if is_short_caption(line) else None
        return bool(line["picture"] != "1")

    code, document = checked(changed(drop_the_last_picture))
    assert code == 1 and document["choices"][-1]["different"] == 0
    assert document["num_pictures"] == 1 and document["failed"] != []
    printed = capsys.readouterr().out
    assert "1 pictures are not in the record" in printed and "it rains" in printed


def test_a_picture_that_is_drawn_differently_here_is_told(
    changed: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    def tint(line: Line) -> None:
        line["crops"] = line["crops"] and "0" * 16

    code, document = checked(changed(tint))
    assert code == 0 and document["num_redrawn"] == SCENES
    assert "2 pictures are not to the pixel" in capsys.readouterr().out


def test_choices_that_no_skill_would_make_are_refused(
    changed: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    def end_early(line: Line) -> None:
        if is_short_caption(line):
            line["choices"][0]["token"] = 0

    assert main(["eval", "choices", str(changed(end_early))]) == 2
    assert "choice 1 cannot come after those before it" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "nonsense", "[]", '{"format": "another"}'])
def test_a_file_that_is_no_record_is_refused(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text(text)
    assert main(["eval", "choices", str(tmp_path / "file")]) == 2
    assert main(["eval", "choices", str(tmp_path / "gone")]) == 2
    assert str(tmp_path) in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--record=choices.jsonl", "--compare"), "asked in one way"),
        (("--record=choices.jsonl", "--url=localhost:1"), "an engine here"),
        (("--record=nowhere/choices.jsonl",), "no such folder"),
        (("--record=.",), "it is a folder"),
        (("--logprobs",), "give a --record"),
    ],
)
def test_what_cannot_be_recorded_is_said_before_the_work(
    options: tuple[str, ...], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["eval", "scenes", *options]) == 2
    assert complaint in capsys.readouterr().err


def test_pictures_of_things_are_drawn_again_from_the_atlas_they_were_drawn_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(asking, "SETTINGS", Settings(temperature=0.0, max_tokens=6, max_objects=2))
    drawings, file, atlas = tmp_path / "drawings", tmp_path / "choices.jsonl", small_atlas()
    drawings.mkdir()
    atlas.sprites.save(drawings / "things-mine.npz")
    atlas.fonts.save(drawings / "font-dots.npz")
    monkeypatch.chdir(tmp_path)
    arguments = ["eval", "scenes", "--scenes=1", "--world=things", "--model=moondream-tiny", "--device=cpu"]
    assert main([*arguments, "--atlas=drawings", f"--record={file}"]) == 0
    monkeypatch.chdir("/")
    code, document = checked(file)
    assert code == 0 and document["num_redrawn"] == 0

    elsewhere = drawings.rename(tmp_path / "elsewhere")
    assert main(["eval", "choices", str(file)]) == 2
    assert f"{drawings} has no drawings" in capsys.readouterr().err
    code, document = checked(file, f"--atlas={elsewhere}")
    assert code == 0 and document["num_redrawn"] == 0

    about, *lines = file.read_text().splitlines()  # older records do not name it
    older = {name: value for name, value in json.loads(about).items() if name != "atlas"}
    file.write_text("\n".join([json.dumps(older), *lines]))
    code, document = checked(file, f"--atlas={elsewhere}")
    assert code == 0 and document["num_redrawn"] == 0


# One row.


def test_only_what_could_be_chosen_counts() -> None:
    row = torch.tensor([5.0, 4.0, 3.0, 0.0])
    assert judge("token", row, 0).gap == 0
    assert judge("token", row, 2)[:4] == ("token", 2, 0, 2.0)
    assert judge("token", row, 1, Readout(Kind.TOKEN, suppressed=(0,))).gap == 0
    assert judge("token", row, 0, Readout(Kind.TOKEN, suppressed=(0,))).gap == torch.inf
    assert judge("token", row, 3, Readout(Kind.OBJECT, choices=(3, 2)))[:4] == ("token", 3, 2, 3.0)
    assert judge("token", row, 0, Readout(Kind.OBJECT, choices=(3, 2))).gap == torch.inf
    assert judge("token", torch.tensor([1.0, 1.0]), 1).gap == 0  # either of a tie is as good


@pytest.mark.parametrize(("rounding", "passed"), [(FLOAT32, False), (BFLOAT16, True)])
def test_how_near_is_near_depends_on_the_engines_dtype(rounding: float, passed: bool) -> None:
    verdict = Verdict(rounding, 8.0, 1)
    verdict.add_picture(redrawn=False)
    request = Recorded("0", 0, "query", {"question": "?"}, None, ())
    verdict.add(request, [judge("token", torch.tensor([20.0, 19.5, 0.0]), 1)])
    assert verdict.passed is passed
    [worst] = verdict.document()["worst"]
    assert worst["roundings"] == pytest.approx(0.5 / (20 * rounding))
    assert verdict.document()["histogram"] == {
        name: int(name == "<= 1") for name in verdict.document()["histogram"]
    }


def test_a_reference_that_gives_no_numbers_proves_nothing() -> None:
    verdict = Verdict(FLOAT32, 64.0, 1)
    verdict.add_picture(redrawn=False)
    assert verdict.passed
    verdict.add(Recorded("0", 0, "query", {}, None, ()), [judge("token", torch.full((3,), torch.nan), 1)])
    assert not verdict.passed


def test_settings_of_a_record_are_those_that_were_asked_with(record: Path) -> None:
    assert Record(record).settings == SETTINGS


def test_few_bits_are_allowed_more() -> None:
    assert near_of("bfloat16", "off") == 4 < near_of("bfloat16", "fp8") < near_of("bfloat16", "int4")
    assert near_of("bfloat16", "off", "fp8") == near_of("bfloat16", "fp8")
