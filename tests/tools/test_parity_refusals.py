"""`kestrel parity`: what it refuses, with exit code 2 and one sentence."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from goldens import GOLDEN

from kestrel_tools.commands import main


def edit_config(folder: Path, section: str, **values: object) -> None:
    document = json.loads((folder / "config.json").read_text())
    document[section] |= values
    (folder / "config.json").write_text(json.dumps(document))


def half(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def no_folder(folder: Path) -> None:
    shutil.rmtree(folder)


def a_file(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.write_text("")


def no_golden_values(folder: Path) -> None:
    (folder / "expected.json").unlink()


def empty_folder(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()


def no_checkpoint(folder: Path) -> None:
    for file in folder.glob("*.safetensors"):
        file.unlink()


def packed_checkpoint(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "model.safetensors.xz")


def half_checkpoint(folder: Path) -> None:
    half(folder / "model.safetensors")


def half_golden_tensors(folder: Path) -> None:
    half(folder / "text.safetensors")


def half_expectations(folder: Path) -> None:
    half(folder / "expected.json")


def half_crops(folder: Path) -> None:
    half(folder / "crops_small.npz")


def half_adapter(folder: Path) -> None:
    half(next(folder.glob("md_variants/*/final.pt")))


def half_picture(folder: Path) -> None:
    half(folder / "images" / "small.png")


def no_picture(folder: Path) -> None:
    (folder / "images" / "small.png").unlink()


def config_of_the_other_generation(folder: Path) -> None:
    shutil.copyfile(GOLDEN / "md3/config.json", folder / "config.json")


def impossible_heads(folder: Path) -> None:
    edit_config(folder, "text", n_heads=3)


def other_width(folder: Path) -> None:
    edit_config(folder, "text", ff_dim=513)


def config_that_is_no_json(folder: Path) -> None:
    half(folder / "config.json")


def no_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()


def half_a_tokenizer(folder: Path) -> None:
    half(folder / "tokenizer.json")


def small_vocabulary(folder: Path) -> None:
    document = json.loads((folder / "tokenizer.json").read_text())
    document["added_tokens"][0]["id"] = 4000
    document["model"]["vocab"]["<|endoftext|>"] = 4000
    (folder / "tokenizer.json").write_text(json.dumps(document))


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    assert main(["parity", *map(str, arguments)]) == 2
    captured = capsys.readouterr()
    [line] = captured.err.splitlines()
    assert line.startswith("kestrel: ") and "Traceback" not in line
    assert "{" not in captured.out
    return line


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (no_folder, "is not a folder"),
        (a_file, "is not a folder"),
        (empty_folder, "has neither expected.json nor runs.json"),
        (no_golden_values, "has neither expected.json nor runs.json"),
        (no_checkpoint, "holds no checkpoint"),
        (packed_checkpoint, "model.safetensors.xz is packed; unpack a copy of the folder: cp -r "),
        (half_checkpoint, "model.safetensors is no safetensors file, or only a part of one"),
        (half_golden_tensors, "text.safetensors is no safetensors file, or only a part of one"),
        (half_expectations, "expected.json is not valid JSON"),
        (half_crops, "crops_small.npz holds no crops, or only a part of them"),
        (half_adapter, "final.pt is no torch file, or only a part of one"),
        (half_picture, "the PNG image is damaged or cut short"),
        (no_picture, "no images/small.*"),
        (config_of_the_other_generation, "this is a Moondream 2 checkpoint"),
        (impossible_heads, "text.dim 128 does not divide into 3 heads"),
        (other_width, "[512] instead of [513]"),
        (config_that_is_no_json, "config.json is not valid JSON"),
        (no_tokenizer, "tokenizer.json cannot be read"),
        (half_a_tokenizer, "tokenizer.json"),
        (small_vocabulary, "its 4001 ids exceed the model's 640"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_what_cannot_be_run_is_refused_in_one_sentence(
    damage: Callable[[Path], None], said: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damage(folder)
    assert said in refusal(capsys, folder)


@pytest.mark.parametrize(
    ("device", "said"),
    [
        ("tpu", "not one; use cpu, cuda or cuda:N"),
        ("mps", "not supported"),
        ("cuda:99", "CUDA devices"),
    ],
)
def test_a_device_that_is_not_there_is_refused(
    device: str, said: str, golden: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in refusal(capsys, "--device", device, golden)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device here")
def test_cuda_is_refused_where_there_is_none(golden: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "0 CUDA devices" in refusal(capsys, "--device", "cuda", golden)


def test_an_unknown_dtype_is_refused(golden: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["parity", "--dtype", "float64", str(golden)])
    assert stop.value.code == 2 and "float64" in capsys.readouterr().err
