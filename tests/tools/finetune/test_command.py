"""`kestrel finetune` and `kestrel eval lines` as they are called, and what an engine then answers."""

import json
import os
import signal
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import torch
from lines_to_learn import COLOURS, all_skills, write_lines, write_pictures
from safetensors.torch import load_file
from tiny_folder import save_tiny

from kestrel_core.moondream.checkpoint.adapter_files import read_adapter
from kestrel_core.moondream.checkpoint.weights import load_config
from kestrel_tools.commands import main
from kestrel_tools.finetune import training

pytestmark = pytest.mark.usefixtures("one_thread")


def asked(data: Path, model: Path, out: Path, *more: str) -> list[str]:
    told = ["--model-path", str(model), "--device", "cpu", "--out", str(out), "--rank", "8"]
    return ["finetune", str(data), *told, *more]


def learnable(folder: Path) -> Path:
    write_pictures(folder)
    lines = [
        {"skill": "query", "image": f"{name}.png", "question": "it?", "answer": "Ré"} for name in COLOURS
    ]
    return write_lines(folder / "lines.jsonl", lines)


@pytest.mark.parametrize("generation", [2, 3])
def test_an_engine_answers_as_it_was_trained(
    generation: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, model, out = learnable(tmp_path), save_tiny(tmp_path / "model", generation), tmp_path / "made/own"
    more = ("--eval-data", str(data), "--steps", "20", "--lr", "0.04", "--eval-every", "20")
    assert main(asked(data, model, out, *more)) == 0
    told = json.loads((out / "training.json").read_text())
    [row] = told["scores"]["scores"]
    assert (row["name"], row["without"], row["with"]) == ("query exact", 0.0, 1.0)
    assert told["eval_losses"][0][1] > 2 * told["best_loss"]
    assert "query exact" in capsys.readouterr().out
    ElementTree.parse(out / "loss.svg")
    assert not (out / "checkpoint/pictures").exists()

    report = tmp_path / "report.json"
    own = ["--model-path", str(model), "--device", "cpu"]
    assert main(["eval", "lines", str(data), "--adapter", str(out), "--json", str(report), *own]) == 0
    again: dict[str, Any] = json.loads(report.read_text())
    assert again["scores"] == told["scores"]["scores"]
    assert [answer["with"] for answer in again["answers"]] == ["Ré"] * len(COLOURS)


@pytest.mark.parametrize("generation", [2, 3])
def test_both_written_formats_are_the_same_adapter(generation: int, tmp_path: Path) -> None:
    data, model, out = all_skills(tmp_path), save_tiny(tmp_path / "model", generation), tmp_path / "own"
    assert main(asked(data, model, out, "--steps", "2", "--scored", "0", "--eval-share", "0")) == 0
    config = load_config(model, None).text
    own, peft = (read_adapter(place, config, torch.float32, 32) for place in (out, out / "peft"))
    assert own.identity == peft.identity and own.rank == peft.rank == 8
    trained = load_file(out / "checkpoint/training.state")
    for layer, block in enumerate(own.blocks):
        for target, pair in block.items():
            for part, matrix in zip("ab", pair, strict=True):
                torch.testing.assert_close(
                    matrix, trained[f"weights.{layer}.{target}.{part}"].bfloat16().float(), rtol=0, atol=0
                )


def test_an_adapter_is_scored_at_its_rank_whatever_servers_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KESTREL_MAX_ADAPTER_RANK", "4")
    data, model, out = learnable(tmp_path), save_tiny(tmp_path / "model"), tmp_path / "own"
    assert main(asked(data, model, out, "--eval-data", str(data), "--steps", "1")) == 0
    assert json.loads((out / "training.json").read_text())["scores"] is not None


def test_attention_is_adapted_where_it_is_asked_for_and_written_as_pefts(tmp_path: Path) -> None:
    data, model, out = learnable(tmp_path), save_tiny(tmp_path / "model", 3), tmp_path / "made/own"
    more = ("--eval-data", str(data), "--steps", "20", "--lr", "0.04", "--targets", "proj,mlp")
    assert main(asked(data, model, out, *more)) == 0
    [row] = json.loads((out / "training.json").read_text())["scores"]["scores"]
    assert (row["without"], row["with"]) == (0.0, 1.0)
    adapter = read_adapter(out / "peft", load_config(model, None).text, torch.float32, 32)
    assert set(adapter.blocks[0]) == {"proj", "fc1", "fc2"}
    assert not (out / "adapter.safetensors").exists()


def test_the_last_blocks_alone_are_adapted_where_that_is_asked_for(tmp_path: Path) -> None:
    data, model, out = learnable(tmp_path), save_tiny(tmp_path / "model", 3), tmp_path / "made/own"
    more = ("--eval-data", str(data), "--steps", "20", "--lr", "0.04", "--targets", "qkv,proj,mlp")
    assert main(asked(data, model, out, *more, "--blocks", "1", "--expert-rank", "3")) == 0
    [row] = json.loads((out / "training.json").read_text())["scores"]["scores"]
    assert (row["without"], row["with"]) == (0.0, 1.0)
    *others, last = read_adapter(out / "peft", load_config(model, None).text, torch.float32, 32).blocks
    assert not any(others)
    ranks = {target: low_rank.a.shape[-2] for target, low_rank in last.items()}
    assert ranks == {"qkv": 8, "proj": 8, "expert_fc1": 3, "expert_fc2": 3}


def test_a_run_that_was_interrupted_goes_on_to_the_same_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data, model = all_skills(tmp_path), save_tiny(tmp_path / "model", 3)
    more = ("--steps", "6", "--batch", "4", "--scored", "0", "--eval-every", "2", "--stored", "float32")
    assert main(asked(data, model, tmp_path / "whole", *more)) == 0

    step = training.Trainer.step
    taken = 0

    def interrupted(self: training.Trainer, lessons: Any, rate: float) -> float:
        nonlocal taken
        taken += 1
        if taken == 3:
            signal.raise_signal(signal.SIGINT)
        return step(self, lessons, rate)

    out = tmp_path / "halves"
    with monkeypatch.context() as patched:
        patched.setattr(training.Trainer, "step", interrupted)
        assert main(asked(data, model, out, *more)) == 130
    assert "interrupted after step 3" in capsys.readouterr().out
    assert not (out / "adapter.safetensors").exists()

    assert main(asked(data, model, out, *more)) == 2
    assert "--resume goes on with it" in capsys.readouterr().err
    assert main(asked(data, model, out, *more, "--resume", "--lr", "0.1")) == 2
    assert "begun with lr 0.0005, which is 0.1 now" in capsys.readouterr().err

    assert main(asked(data, model, out, *more, "--resume")) == 0
    whole, halves = (load_file(tmp_path / name / "adapter.safetensors") for name in ("whole", "halves"))
    assert whole.keys() == halves.keys()
    assert all(torch.equal(whole[name], halves[name]) for name in whole)
    losses = [json.loads((tmp_path / name / "training.json").read_text()) for name in ("whole", "halves")]
    assert losses[0]["eval_losses"] == losses[1]["eval_losses"]


def test_beginning_anew_leaves_nothing_of_the_earlier_run(tmp_path: Path) -> None:
    data, model, out = learnable(tmp_path), save_tiny(tmp_path / "model", 2), tmp_path / "made/own"
    earlier = ("--eval-data", str(data), "--steps", "20", "--lr", "0.04")
    assert main(asked(data, model, out, *earlier)) == 0
    others = [out / name for name in ("notes.txt", "peft/README.md", "checkpoint/model.safetensors")]
    others.append(out / "checkpoint/pictures/mine.png")
    others[-1].parent.mkdir()
    for file in others:
        file.write_text("not the run's")

    # It learns nothing, so that the earlier adapter would be told by its scores.
    anew = ("--eval-data", str(data), "--steps", "1", "--lr", "1e-9", "--targets", "qkv,proj,mlp")
    assert main(asked(data, model, out, *anew, "--overwrite")) == 0
    [row] = json.loads((out / "training.json").read_text())["scores"]["scores"]
    assert row["with"] == 0.0
    assert not (out / "adapter.safetensors").exists()
    assert all(file.exists() for file in others)


def test_what_the_earlier_run_left_is_gone_before_the_new_one_trains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, model, out = learnable(tmp_path), save_tiny(tmp_path / "model", 2), tmp_path / "own"
    more = ("--steps", "1", "--scored", "0")
    assert main(asked(data, model, out, *more)) == 0
    left = list[str]()

    def look(self: training.Run) -> None:
        left.extend(sorted(path.name for path in out.rglob("*") if path.suffix != ".features"))
        raise KeyboardInterrupt

    monkeypatch.setattr(training.Run, "go", look)
    assert main(asked(data, model, out, *more, "--overwrite")) == 130
    assert left == ["checkpoint", "pictures"]


def test_an_adapter_file_that_the_run_does_not_write_is_removed(tmp_path: Path) -> None:
    data, model, out = learnable(tmp_path), save_tiny(tmp_path / "model", 2), tmp_path / "own"
    more = ("--steps", "2", "--scored", "0", "--targets", "qkv,proj,mlp")
    assert main(asked(data, model, out, *more, "--max-minutes", "1e-9")) == 0
    (out / "adapter.safetensors").write_bytes(b"of an earlier run")
    assert main(asked(data, model, out, *more, "--resume")) == 0
    assert not (out / "adapter.safetensors").exists() and (out / "peft").exists()


def test_a_run_whose_minutes_are_over_leaves_an_adapter_and_goes_on(tmp_path: Path) -> None:
    data, model = all_skills(tmp_path), save_tiny(tmp_path / "model", 2)
    more = ("--steps", "4", "--eval-every", "2", "--scored", "0", "--stored", "float32", "--lr", "0.01")
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert main(asked(data, model, whole, *more)) == 0
    assert main(asked(data, model, parts, *more, "--max-minutes", "1e-9")) == 0
    assert json.loads((parts / "training.json").read_text())["step"] == 1
    assert (parts / "adapter.safetensors").exists()
    assert main(asked(data, model, parts, *more, "--resume")) == 0
    one, other = (load_file(folder / "adapter.safetensors") for folder in (whole, parts))
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_training_ends_early_without_a_better_loss_and_keeps_the_best(tmp_path: Path) -> None:
    data, model, out = all_skills(tmp_path), save_tiny(tmp_path / "model", 2), tmp_path / "own"
    more = ("--steps", "50", "--lr", "3", "--clip", "1000", "--eval-every", "1", "--patience", "2")
    assert main(asked(data, model, out, *more, "--scored", "0")) == 0
    told = json.loads((out / "training.json").read_text())
    assert told["ended"] == "no better loss in 2 evaluations"
    assert told["step"] < 50 and told["best_loss"] == min(loss for _, loss in told["eval_losses"])


def test_bad_lines_end_the_command_before_anything_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = write_lines(tmp_path / "bad.jsonl", [{"skill": "query", "question": "who?", "answer": ""}, {}])
    out = tmp_path / "own"
    assert main(asked(data, save_tiny(tmp_path / "model"), out)) == 2
    said = capsys.readouterr().err
    assert "line 1: answer is empty" in said and "line 2: skill is missing" in said
    assert not out.exists()


def test_lines_that_can_be_read_only_once_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reading, writing = os.pipe()
    os.write(writing, b'{"skill": "query", "question": "who?", "answer": "me"}\n')
    os.close(writing)
    model, out = save_tiny(tmp_path / "model"), tmp_path / "own"
    try:
        assert main(asked(Path(f"/dev/fd/{reading}"), model, out)) == 2
    finally:
        os.close(reading)
    assert f"{reading} is no regular file" in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (("--lr", "0"), "lr is 0"),
        (("--epochs", "0"), "epochs is 0"),
        (("--eval-share", "1"), "a share"),
        (("--targets", "head"), "targets has head"),
        (("--blocks", "0"), "blocks is 0"),
    ],
)
def test_an_option_out_of_range_is_refused(
    option: tuple[str, str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(asked(tmp_path / "x.jsonl", tmp_path, tmp_path / "own", *option)) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("generation", "option", "said"),
    [
        (3, ("--blocks", "99"), "blocks is 99; the model has"),
        (3, ("--expert-rank", "8"), "expert_rank is 8; with rank 8 it can be up to"),
        (2, ("--expert-rank", "4"), "this one has none"),
    ],
)
def test_more_than_the_model_has_is_refused(
    generation: int, option: tuple[str, str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, model, out = learnable(tmp_path), save_tiny(tmp_path / "model", generation), tmp_path / "own"
    assert main(asked(data, model, out, *option)) == 2
    assert said in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize("name", [".hidden", "a" * 251, "a\nb", "/"])
def test_a_folder_whose_name_no_server_takes_is_refused_before_anything_is_loaded(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(asked(learnable(tmp_path), tmp_path / "no model", tmp_path / "made" / name)) == 2
    said = capsys.readouterr().err
    assert "no server takes" in said and "a dot" in said
    assert not (tmp_path / "made").exists()


def test_a_folder_that_is_a_file_is_refused_before_anything_is_loaded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "own").mkdir()
    for name in ("file", "own/peft", "own/checkpoint"):
        (tmp_path / name).write_text("a file")
        for more in ((), ("--overwrite",)):
            out = tmp_path / name.split("/")[0]
            assert main(asked(learnable(tmp_path), tmp_path / "no model", out, *more)) == 2
            assert f"{name} is no folder" in capsys.readouterr().err
        (tmp_path / name).unlink()


@pytest.mark.parametrize("out", ["taken/own", "é" * 200])
def test_a_folder_that_cannot_be_made_is_told_before_anything_is_trained(
    out: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "taken").write_text("a file")
    assert main(asked(learnable(tmp_path), save_tiny(tmp_path / "model"), tmp_path / out)) == 2
    assert "cannot be written to" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["adapter.safetensors", "peft/notes.txt", "training.json", "loss.svg"])
def test_a_file_where_a_run_would_write_its_own_is_kept_and_named(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    foreign = tmp_path / "own" / name
    foreign.parent.mkdir(parents=True)
    foreign.write_text("not the run's")
    assert main(asked(learnable(tmp_path), tmp_path / "no model", tmp_path / "own")) == 2
    said = capsys.readouterr().err
    assert f"holds {name.split('/')[0]} already" in said and "--overwrite" in said
    assert foreign.read_text() == "not the run's"


def test_resuming_nothing_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(asked(tmp_path / "x.jsonl", tmp_path, tmp_path / "own", "--resume")) == 2
    assert "holds no run to resume" in capsys.readouterr().err
