"""`kestrel parity` over the golden folders: what it passes, what it notices, and what it refuses."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from goldens import GOLDEN, golden_embeddings, lay_out
from parity_documents import Parity, engine_stages, names
from safetensors.torch import load_file, save_file

from kestrel_core.build import load_model
from kestrel_core.moondream.lora import Stacks
from kestrel_core.runtime.torch_runtime import TorchRuntime, best_page_size
from kestrel_tools.parity import command, engine_runs, md3
from kestrel_tools.parity.adapters import read_golden_adapter
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
MD2_ADAPTER = {"adapter files", "adapter prompt prefill", "adapter first logits"}
MD2_ADAPTED_DECODES = {f"adapter decode {what}" for what in ("query", "caption", "detect", "detect places")}

# Without the vision encoder, which `tests/golden` does not keep of Moondream 3.
MD3_STAGES = {"tiling", "crops' number", "crops (loosely)", "attention", "tau", "MoE router", "MoE choice"}
MD3_STAGES |= {"MoE weights", "MoE output", "float8 experts", "region encoders", "region decoders", "prefill"}
MD3_STAGES |= {"prefill inputs", "prefill blocks", "first logits", "sampling", "streaming", "prompts"}
MD3_DECODES = {"decode query", "decode caption", "decode detect", "decode detect places", "decode point"}
MD3_DECODES |= {"decode point places", "decode reasoning", "decode spatial"}
MD3_ADAPTER = {"adapter files", "adapter first logits"}
MD3_ADAPTER |= {f"adapter decode {what}" for what in ("query", "detect", "detect places")}


def test_moondream_2_passes_every_stage_in_float32(golden: Path, parity: Parity) -> None:
    code, document = parity(golden)
    assert names(document, passed=False) == set()
    assert names(document, passed=True) == MD2_STAGES | MD2_DECODES | MD2_ADAPTER | MD2_ADAPTED_DECODES
    assert (code, document["passed"], document["device"], document["dtype"]) == (0, True, "cpu", "float32")
    for stage in document["stages"]:
        assert stage["values"] > 0 and 0 <= stage["deviation"] <= stage["tolerance"], stage
    exact = {stage["stage"]: stage["tolerance"] for stage in document["stages"]}
    assert exact["decode query"] == exact["prompts"] == exact["crops"] == 0


def test_moondream_2_passes_in_bfloat16(folder: Path, parity: Parity) -> None:
    code, document = parity("--json", "--dtype", "bfloat16", folder)
    assert (code, document["passed"]) == (0, True)
    assert names(document, passed=True) == MD2_STAGES | MD2_ADAPTER | {"decode text", "adapter decode text"}
    deviations = {stage["stage"]: stage["deviation"] for stage in document["stages"]}
    assert 1e-3 < deviations["first logits"] < 5e-2, "this is not float32"


@pytest.fixture(scope="module")
def md3_report(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Report]:
    folder = lay_out("md3", tmp_path_factory.mktemp("md3"))
    with torch.inference_mode():
        model = load_model(folder, None, torch.device("cpu"), torch.float32)
        config = model.network.config
        page_size = best_page_size(config.image_prefix_length)
        report = Report(md3.FLOAT32_MEASURE, md3.FLOAT32_TOLERANCE)
        adapter = read_golden_adapter(md3.adapter_files(folder), config.text, torch.float32, report)
        assert adapter is not None
        stacks = Stacks(config.text, 1, adapter.rank, model.device, torch.float32)
        num_pages = 1 + -(-config.text.max_context // page_size)
        runtime = TorchRuntime(model.network, num_pages, page_size, stacks=stacks)
        runtime.encode_image = golden_embeddings(folder)  # type: ignore[assignment]
        subject = Subject(model.network, model.device, runtime.encode_image, adapter=adapter)
        md3.check_stages(folder, subject, model.language, report)
        runs = list(md3.runs(folder, subject, model.language))
        check_runs(runs, model.language, drive(runtime, config.image_prefix_length), report, judge=None)
    yield report


def test_moondream_3_passes_every_stage_behind_the_vision_encoder(md3_report: Report) -> None:
    assert [stage for stage in md3_report.stages.values() if not stage.passed] == []
    assert md3_report.stages.keys() == MD3_STAGES | MD3_DECODES | MD3_ADAPTER
    assert md3_report.absences == {}


def test_moondream_3_decodes_every_golden_run(md3_report: Report) -> None:
    runs = json.loads((GOLDEN / "md3/runs.json").read_text())
    skills = "query", "caption", "detect", "point"
    assert md3_report.stages["prompts"].count == 28 + len(runs["adapter"])
    assert sum(len(runs[skill]) for skill in skills) == 28
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


# The whole engine, where rounding turns near ties and golden answers are no measure.


def test_an_engine_in_bfloat16_is_judged_by_its_margins(decodes: Path, parity: Parity) -> None:
    code, document = parity("--json", "--engine", "--dtype", "bfloat16", decodes)
    assert (code, document["passed"]) == (0, True)
    stages = engine_stages(document)
    assert set(stages) == {
        f"engine {whose}{how}"
        for whose in ("", "adapter ", "other adapters ")
        for how in ("alone, then cached", "without the cache", "mixed, 3 at a time", "preempted and resumed")
    }
    assert all(stage["measure"] == "gap / largest logit" for stage in stages.values())
    assert all(stage["values"] > 50 and stage["tolerance"] == 5e-2 for stage in stages.values())


def test_the_mean_of_an_engine_in_few_bits_is_limited_too(decodes: Path, parity: Parity) -> None:
    shutil.rmtree(decodes / "md_variants")  # adapters would take as long again, twice
    arguments = "--json", "--engine", "--dtype", "bfloat16", "--kv-dtype", "fp8"
    code, document = parity(*arguments, decodes)
    stages = engine_stages(document)
    mean = stages.pop("engine, all choices")
    assert (code, mean["measure"], mean["tolerance"]) == (0, "mean gap / largest logit", 9e-3)
    assert 0 < mean["deviation"] < max(stage["deviation"] for stage in stages.values()) < 0.15
    assert {stage["tolerance"] for stage in stages.values()} == {0.25}


def test_an_engine_that_cannot_have_few_bits_is_judged_as_one_without(decodes: Path, parity: Parity) -> None:
    """No kernels on a CPU: nothing is rounded there, and nothing is allowed for it."""
    shutil.rmtree(decodes / "md_variants")
    code, document = parity("--json", "--engine", "--dtype", "bfloat16", "--quantize", "int4", decodes)
    assert code == 0 and document["quantize"] == "off"
    stages = engine_stages(document)
    assert {stage["tolerance"] for stage in stages.values()} == {command.BFLOAT16_TOLERANCE}


def test_an_engine_that_errs_is_missed_in_bfloat16(
    decodes: Path, parity: Parity, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check_blind_engine(model: Any, runs: Any, encode_image: Any, *rest: Any) -> None:
        class Blind(type(encode_image)):  # type: ignore[misc]
            def __call__(self, image: Any) -> torch.Tensor:
                return torch.zeros_like(encode_image(image))

        engine_runs.check_engine(model, runs, Blind(model.network.vision), *rest)

    shutil.rmtree(decodes / "md_variants")  # adapters would take as long again, twice
    monkeypatch.setattr(command, "check_engine", check_blind_engine)
    code, document = parity("--json", "--engine", "--dtype", "bfloat16", decodes)
    assert (code, document["passed"]) == (1, False)
    assert names(document, passed=False) == set(engine_stages(document))
    assert "decode text" in names(document, passed=True)
