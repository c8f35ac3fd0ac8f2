"""`kestrel parity` over folders from which golden tensors are missing: what is not there is not compared."""

import shutil
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest
import torch
from goldens import golden_embeddings, lay_out
from safetensors.torch import load_file, save_file

from kestrel_core.build import load_model
from kestrel_core.runtime.torch_runtime import TorchRuntime, best_page_size
from kestrel_core.skills.spec import Language
from kestrel_tools.parity import md2, md3
from kestrel_tools.parity.report import Report
from kestrel_tools.parity.subject import Subject


class Trimmed(NamedTuple):
    """A golden folder with its model, and how to compare a part of it."""

    folder: Path
    layout: ModuleType
    subject: Subject
    language: Language

    def counts(self, copy: Path, kept: list[str], file: str, without: set[str]) -> dict[str, int]:
        """How many values of each stage are compared of one file without some tensors; all must pass."""
        shutil.rmtree(copy, ignore_errors=True)
        copy.mkdir()
        for name in [*kept, f"{file}.safetensors"]:
            source, place = self.folder / name, copy / name
            place.parent.mkdir(exist_ok=True)
            shutil.copyfile(source, place)
        tensors = load_file(self.folder / f"{file}.safetensors")
        assert without <= tensors.keys()
        left = {name: tensor for name, tensor in tensors.items() if name not in without}
        save_file(left, copy / f"{file}.safetensors")
        report = Report(self.layout.FLOAT32_MEASURE, self.layout.FLOAT32_TOLERANCE)
        with torch.inference_mode():
            self.layout.check_stages(copy, self.subject, self.language, report)
        assert [stage for stage in report.stages.values() if not stage.passed] == []
        return {name: stage.count for name, stage in report.stages.items()}


def opened(folder: Path, layout: ModuleType) -> Trimmed:
    model = load_model(folder, None, torch.device("cpu"), torch.float32)
    config = model.network.config
    page_size = best_page_size(config.image_prefix_length)
    runtime = TorchRuntime(model.network, 1 + -(-config.text.max_context // page_size), page_size)
    encode = golden_embeddings(folder) if layout is md3 else runtime.encode_image
    return Trimmed(folder, layout, Subject(model.network, model.device, encode), model.language)


@pytest.fixture(scope="module")
def two(golden: Path) -> Trimmed:
    return opened(golden, md2)


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Trimmed:
    return opened(lay_out("md3", tmp_path_factory.mktemp("md3")), md3)


SMALL2 = ["expected.json", "crops.json", "crops_small.npz", "images/small.png"]
SMALL3 = ["runs.json", "crops/wide.png", "images/wide.png"]


def test_no_golden_tensor_of_the_units_has_to_be_there(two: Trimmed, tmp_path: Path) -> None:
    whole = two.counts(tmp_path / "folder", ["expected.json"], "unit", set())
    for name in load_file(two.folder / "unit.safetensors"):
        counts = two.counts(tmp_path / "folder", ["expected.json"], "unit", {name})
        assert sum(counts.values()) <= sum(whole.values())
        assert len(counts) >= len(whole) - 1, "what has no use for it is compared all the same"


def test_without_the_rotary_tensors_all_else_is_compared(two: Trimmed, tmp_path: Path) -> None:
    whole = two.counts(tmp_path / "folder", ["expected.json"], "unit", set())
    rope = {f"rope.{leaf}" for leaf in ("pos", "x", "y", "cos", "sin")}
    assert whole.pop("rotary") == 1
    assert two.counts(tmp_path / "folder", ["expected.json"], "unit", rope) == whole


@pytest.mark.parametrize(
    ("file", "without", "lost"),
    [
        ("vision", {"token_subset"}, {"vision blocks"}),
        ("vision", {"small.recon_shape"}, {"stitching"}),
        ("text", {"position_subset"}, {"kv cache"}),
    ],
)
def test_stages_that_need_what_is_missing_are_left_out(
    file: str, without: set[str], lost: set[str], two: Trimmed, tmp_path: Path
) -> None:
    whole = two.counts(tmp_path / "folder", SMALL2, file, set())
    counts = two.counts(tmp_path / "folder", SMALL2, file, without)
    assert counts.keys() == whole.keys() - lost


@pytest.mark.parametrize(
    "file", ["attention", "experts", "experts_fp8", "experts_fp8_expected", "region", "sampling"]
)
def test_no_golden_tensor_of_moondream_3_has_to_be_there(file: str, three: Trimmed, tmp_path: Path) -> None:
    kept = ["runs.json", "experts_fp8.safetensors", "experts_fp8_expected.safetensors"]
    whole = three.counts(tmp_path / "folder", kept, file, set())
    for name in load_file(three.folder / f"{file}.safetensors"):
        counts = three.counts(tmp_path / "folder", kept, file, {name})
        assert sum(counts.values()) <= sum(whole.values())


@pytest.mark.parametrize(
    ("missing", "lost"),
    [
        ("prompt_tokens", {"prefill inputs", "prefill blocks", "prefill"}),
        ("watched_positions", {"prefill inputs", "prefill blocks"}),
        ("layers_watched", {"prefill blocks"}),
        ("final_hidden", set()),
    ],
)
def test_a_prefill_is_compared_as_far_as_its_values_are_there(
    missing: str, lost: set[str], three: Trimmed, tmp_path: Path
) -> None:
    whole = three.counts(tmp_path / "folder", SMALL3, "prefill", set())
    counts = three.counts(tmp_path / "folder", SMALL3, "prefill", {missing})
    assert counts.keys() == whole.keys() - lost
