"""`kestrel parity` over adapters of golden folders: what it finds, what it notices, what it calls absent."""

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from parity_documents import Parity, engine_stages, names
from safetensors.torch import save_file

from kestrel_tools.parity import engine_runs
from kestrel_tools.parity.runs import GoldenRun

ADAPTER = "md_variants/golden_lora/final.pt"


def edit(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    expected = json.loads((folder / "expected.json").read_text())
    change(expected)
    (folder / "expected.json").write_text(json.dumps(expected))


def absent(document: dict[str, Any]) -> set[str]:
    return {stage["stage"] for stage in document["absent"]}


def test_one_changed_number_of_the_adapter_is_missed_by_its_own_stages_alone(
    folder: Path, parity: Parity
) -> None:
    tensors = torch.load(folder / ADAPTER, weights_only=True)
    next(iter(tensors.values()))[0, 0] += 1
    torch.save(tensors, folder / ADAPTER)
    code, document = parity("--json", folder)
    assert code == 1
    assert {"adapter prompt prefill", "adapter first logits"} <= names(document, passed=False)
    assert all(stage.startswith("adapter") for stage in names(document, passed=False))


def test_the_adapter_is_found_by_any_name(decodes: Path, parity: Parity) -> None:
    (decodes / "md_variants" / "golden_lora").rename(decodes / "md_variants" / "another")
    code, document = parity("--json", decodes)
    assert (code, absent(document)) == (0, {"adapter first logits"}), "text.safetensors was taken away"
    assert {"adapter files", "adapter decode query"} <= names(document, passed=True)


def test_two_containers_that_differ_are_missed(decodes: Path, parity: Parity) -> None:
    tensors = torch.load(decodes / ADAPTER, weights_only=True)
    next(iter(tensors.values()))[0, 0] += 1
    save_file(tensors, (decodes / ADAPTER).with_suffix(".safetensors"))
    code, document = parity("--json", decodes)
    assert (code, names(document, passed=False)) == (1, {"adapter files"})


def test_an_image_prefix_without_the_adapter_gives_other_tokens(decodes: Path, parity: Parity) -> None:
    def swap(expected: dict[str, Any]) -> None:
        expected["lora"]["query0_base_prefix"] = expected["lora"]["query0"]

    edit(decodes, swap)
    code, document = parity("--json", decodes)
    assert (code, names(document, passed=False)) == (1, {"adapter decode query"})
    [missed] = [stage for stage in document["stages"] if not stage["passed"]]
    assert missed["worst_at"].startswith("lora query0_base_prefix")


def no_adapter(folder: Path) -> None:
    shutil.rmtree(folder / "md_variants")


def no_runs(folder: Path) -> None:
    edit(folder, lambda expected: expected.pop("lora"))


def no_picture_of_theirs(folder: Path) -> None:
    edit(folder, lambda expected: expected["lora"].update(image="large"))


@pytest.mark.parametrize(
    ("damage", "missing"),
    [
        (no_adapter, {"adapter files", "adapter first logits", "adapter decode"}),
        (no_runs, {"adapter first logits", "adapter decode"}),
        (no_picture_of_theirs, {"adapter first logits", "adapter decode"}),
    ],
)
def test_what_a_folder_lacks_is_called_absent_and_not_passed(
    damage: Callable[[Path], None], missing: set[str], folder: Path, parity: Parity
) -> None:
    damage(folder)
    code, document = parity("--json", folder)
    assert (code, absent(document)) == (0, missing)
    told = names(document, passed=True)
    assert not any(stage.startswith(tuple(missing)) for stage in told) and "first logits" in told
    assert all(stage["why"] for stage in document["absent"])


def test_an_engine_mixes_adapters_and_none_and_gives_the_golden_answers(
    decodes: Path, parity: Parity
) -> None:
    code, document = parity("--json", "--engine", decodes)
    stages = engine_stages(document)
    assert (code, names(document, passed=False)) == (0, set())
    exact = {name for name, stage in stages.items() if stage["measure"] == "differences"}
    hows = "alone, then cached", "without the cache", "mixed, 3 at a time", "preempted and resumed"
    assert {f"engine adapter {how}" for how in hows} <= exact
    assert {f"engine {how}" for how in hows} <= exact
    judged = {f"engine other adapters {how}" for how in hows}
    assert all(stages[name]["tolerance"] == 1e-4 for name in judged)


def test_an_engine_that_takes_the_wrong_adapter_is_missed(
    decodes: Path, parity: Parity, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_all = engine_runs._run_all

    def confused(
        engine: Any, runs: Sequence[GoldenRun], names: Mapping[str, Sequence[str]], *rest: Any
    ) -> Any:
        shifted = [*names.values()][1:] + [*names.values()][:1]
        return run_all(engine, runs, dict(zip(names, shifted, strict=True)), *rest)

    monkeypatch.setattr(engine_runs, "_run_all", confused)
    code, document = parity("--json", "--engine", decodes)
    assert code == 1
    adapted = {name for name in engine_stages(document) if "adapter" in name}
    missed = names(document, passed=False)
    assert {name for name in missed if not name.endswith("places")} == {
        name for name in adapted if not name.endswith("places")
    }


def test_an_engine_without_adapters_runs_where_the_folder_has_none(decodes: Path, parity: Parity) -> None:
    no_adapter(decodes)
    code, document = parity("--json", "--engine", decodes)
    assert code == 0 and not any("adapter" in name for name in engine_stages(document))
