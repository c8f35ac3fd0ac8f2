"""`kestrel parity` over the golden folders: what it passes, what it notices, and what it refuses."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from goldens import GOLDEN, golden_embeddings, lay_out
from safetensors.torch import load_file, save_file

from kestrel_core.build import load_model
from kestrel_core.runtime.torch_runtime import TorchRuntime, best_page_size
from kestrel_tools.commands import main
from kestrel_tools.parity import md3
from kestrel_tools.parity.report import Report
from kestrel_tools.parity.runs import check_runs, drive
from kestrel_tools.parity.subject import Subject

MD2_STAGES = {
    "tiling",
    "crops",
    "colour modes",
    "colour modes (jpeg)",
    "pixels",
    "vision encoder",
    "stitching",
}
MD2_STAGES |= {
    "pooling",
    "image embeddings",
    "vision blocks",
    "region encoders",
    "region decoders",
    "layer norm",
}
MD2_STAGES |= {
    "rotary",
    "sampling",
    "int4 weights",
    "image prefill",
    "kv cache",
    "prompt prefill",
    "first logits",
}
MD2_STAGES |= {"step logits", "text blocks", "streaming", "prompts"}
MD2_DECODES = {"decode query", "decode caption", "decode detect", "decode detect places", "decode point"}
MD2_DECODES |= {
    "decode point places",
    "decode reasoning",
    "decode spatial",
    "decode gaze",
    "decode gaze places",
}

# Without the vision encoder, which `tests/golden` does not keep of Moondream 3.
MD3_STAGES = {"tiling", "crops' number", "crops (loosely)", "attention", "tau", "MoE router", "MoE choice"}
MD3_STAGES |= {"MoE weights", "MoE output", "float8 experts", "region encoders", "region decoders", "prefill"}
MD3_STAGES |= {"prefill inputs", "prefill blocks", "first logits", "sampling", "streaming", "prompts"}
MD3_DECODES = {"decode query", "decode caption", "decode detect", "decode detect places", "decode point"}
MD3_DECODES |= {"decode point places", "decode reasoning", "decode spatial"}


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lay_out("md2", tmp_path_factory.mktemp("md2"))


@pytest.fixture
def folder(golden: Path, tmp_path: Path) -> Path:
    """A copy to damage, small enough to be run in seconds: one picture, few runs."""
    copy = tmp_path / "folder"
    shutil.copytree(golden, copy, ignore=shutil.ignore_patterns("crops_tall.npz", "tiling.json"))
    expected = json.loads((copy / "expected.json").read_text())
    kept = "tiling", "prefix_len", "query0", "caption_short", "detect0"
    expected["small"] = {key: expected["small"][key] for key in kept}
    (copy / "expected.json").write_text(json.dumps(expected))
    return copy


@pytest.fixture
def parity(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, dict[str, Any]]]:
    """Runs the command; gives its exit code and the JSON of its last line."""

    def run(*arguments: str | Path) -> tuple[int, dict[str, Any]]:
        code = main(["parity", *map(str, arguments)])
        lines = capsys.readouterr().out.splitlines()
        assert "--json" not in arguments or len(lines) == 1
        document: dict[str, Any] = json.loads(lines[-1])
        return code, document

    return run


Parity = Callable[..., tuple[int, dict[str, Any]]]


def names(document: dict[str, Any], passed: bool) -> set[str]:
    return {stage["stage"] for stage in document["stages"] if stage["passed"] is passed}


def test_moondream_2_passes_every_stage_in_float32(golden: Path, parity: Parity) -> None:
    code, document = parity(golden)
    assert names(document, passed=False) == set()
    assert names(document, passed=True) == MD2_STAGES | MD2_DECODES
    assert (code, document["passed"], document["device"], document["dtype"]) == (0, True, "cpu", "float32")
    for stage in document["stages"]:
        assert stage["values"] > 0 and 0 <= stage["deviation"] <= stage["tolerance"], stage
    exact = {stage["stage"]: stage["tolerance"] for stage in document["stages"]}
    assert exact["decode query"] == exact["prompts"] == exact["crops"] == 0


def test_moondream_2_passes_in_bfloat16(folder: Path, parity: Parity) -> None:
    code, document = parity("--json", "--dtype", "bfloat16", folder)
    assert (code, document["passed"]) == (0, True)
    assert names(document, passed=True) == MD2_STAGES | {"decode text"}
    deviations = {stage["stage"]: stage["deviation"] for stage in document["stages"]}
    assert 1e-3 < deviations["first logits"] < 5e-2, "this is not float32"


@pytest.fixture(scope="module")
def md3_report(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Report]:
    folder = lay_out("md3", tmp_path_factory.mktemp("md3"))
    with torch.inference_mode():
        model = load_model(folder, None, torch.device("cpu"), torch.float32)
        config = model.network.config
        page_size = best_page_size(config.image_prefix_length)
        runtime = TorchRuntime(model.network, 1 + -(-config.text.max_context // page_size), page_size)
        runtime.encode_image = golden_embeddings(folder)  # type: ignore[assignment]
        subject = Subject(model.network, model.device, runtime.encode_image)
        report = Report(md3.FLOAT32_MEASURE, md3.FLOAT32_TOLERANCE)
        md3.check_stages(folder, subject, model.language, report)
        runs = list(md3.runs(folder, subject, model.language))
        check_runs(runs, model.language, drive(runtime, config.image_prefix_length), report, judge=None)
    yield report


def test_moondream_3_passes_every_stage_behind_the_vision_encoder(md3_report: Report) -> None:
    assert [stage for stage in md3_report.stages.values() if not stage.passed] == []
    assert md3_report.stages.keys() == MD3_STAGES | MD3_DECODES


def test_moondream_3_decodes_every_golden_run(md3_report: Report) -> None:
    runs = json.loads((GOLDEN / "md3/runs.json").read_text())
    skills = "query", "caption", "detect", "point"
    assert md3_report.stages["prompts"].count == sum(len(runs[skill]) for skill in skills) == 28
    assert any(run["answer"]["masked_steps"] for run in runs["query"]), "masking changes a choice somewhere"
    assert any(run.get("reasoning", {}).get("grounding") for run in runs["query"])
    assert {run["image"] for run in runs["query"]} == {None, "small", "wide", "tall"}


# What is noticed.


@pytest.mark.parametrize(
    ("tensor", "missed", "kept"),
    [
        ("vision.blocks.26.mlp.fc2.bias", {"vision encoder", "image embeddings"}, {"region decoders"}),
        (
            "text.blocks.1.mlp.fc2.bias",
            {"text blocks", "first logits"},
            {"vision encoder", "region decoders"},
        ),
        ("region.size_decoder.fc2.bias", {"region decoders"}, {"vision encoder", "first logits"}),
    ],
)
def test_one_changed_number_is_missed_by_the_stages_that_use_it(
    tensor: str, missed: set[str], kept: set[str], folder: Path, parity: Parity
) -> None:
    tensors = load_file(folder / "model.safetensors")
    tensors[f"model.{tensor}"][7] += 1
    save_file(tensors, folder / "model.safetensors")
    code, document = parity("--json", folder)
    assert (code, document["passed"]) == (1, False)
    assert missed <= names(document, passed=False) and kept <= names(document, passed=True)


def change_token(expected: dict[str, Any]) -> None:
    expected["small"]["caption_short"]["output_ids"][2] += 1


def change_chunk(expected: dict[str, Any]) -> None:
    expected["small"]["query0"]["chunks"][-1] += "!"


def change_prompt(expected: dict[str, Any]) -> None:
    expected["small"]["detect0"]["prompt_ids"][0] = 9


def change_box(expected: dict[str, Any]) -> None:
    expected["small"]["detect0"]["objects"][1]["x_max"] += 1e-5


def drop_box(expected: dict[str, Any]) -> None:
    expected["small"]["detect0"]["objects"].pop()


@pytest.mark.parametrize(
    ("change", "missed", "where"),
    [
        (change_token, "decode caption", "small caption_short tokens"),
        (change_chunk, "decode query", "small query0 chunks"),
        (change_prompt, "prompts", "small detect0"),
        (change_box, "decode detect places", "small detect0"),
        (drop_box, "decode detect", "small detect0 number"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_one_changed_expectation_is_missed_where_it_stands(
    change: Callable[[dict[str, Any]], None], missed: str, where: str, folder: Path, parity: Parity
) -> None:
    for stage in ("vision", "text", "unit"):  # the decodes alone
        (folder / f"{stage}.safetensors").unlink()
    expected = json.loads((folder / "expected.json").read_text())
    change(expected)
    (folder / "expected.json").write_text(json.dumps(expected))
    code, document = parity("--json", folder)
    assert (code, names(document, passed=False)) == (1, {missed})
    [stage] = [stage for stage in document["stages"] if not stage["passed"]]
    assert stage["worst_at"] == where and stage["deviation"] > stage["tolerance"]


# What is refused: exit code 2, and one sentence.


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


def half_checkpoint(folder: Path) -> None:
    half(folder / "model.safetensors")


def half_golden_tensors(folder: Path) -> None:
    half(folder / "text.safetensors")


def half_expectations(folder: Path) -> None:
    half(folder / "expected.json")


def half_crops(folder: Path) -> None:
    half(folder / "crops_small.npz")


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
        (half_checkpoint, "model.safetensors is no safetensors file, or only a part of one"),
        (half_golden_tensors, "text.safetensors is no safetensors file, or only a part of one"),
        (half_expectations, "expected.json is not valid JSON"),
        (half_crops, "crops_small.npz holds no crops, or only a part of them"),
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
