"""Each kind of damage to a checkpoint is found and named."""

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_folder import save_tiny
from torch import Tensor

from kestrel_core.config import RuntimeConfig
from kestrel_core.intake.models import DEMO, MODELS
from kestrel_core.moondream.config import MOONDREAM2, MOONDREAM3
from kestrel_tools.doctor.files import check_header, hub_tag, judge_digest
from kestrel_tools.doctor.model import examine
from kestrel_tools.doctor.report import Report, Row, Verdict
from kestrel_tools.doctor.tensors import check_names, judge_finite, judge_size, judge_zeros, look_at

BUNDLED = MODELS[DEMO].folder
assert BUNDLED is not None
WTE = "model.text.wte"
QKV = "model.vision.blocks.0.attn.qkv.weight"
GAIN = "model.text.blocks.5.ln.weight"
INDEX = "model.safetensors.index.json"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    copied = tmp_path / "model"
    shutil.copytree(BUNDLED, copied)
    return copied


def faults(folder: Path) -> dict[str, Row]:
    report = Report()
    config = RuntimeConfig(model_path=str(folder), device="cpu")
    examine(report, config, lambda done, total: None)
    found = {row.check: row for row in report.rows if row.verdict is Verdict.FAULT}
    assert all(row.advice for row in found.values())
    # What is broken is not asked, so that a wrong answer is not blamed on the engine.
    assert not found or report.rows[-1].verdict is Verdict.SKIPPED
    return found


def change(folder: Path, edit: Callable[[dict[str, Tensor]], None]) -> None:
    tensors = load_file(folder / "model.safetensors")
    edit(tensors)
    save_file(tensors, folder / "model.safetensors")


def change_json(file: Path, edit: Callable[[dict[str, Any]], None]) -> None:
    document = json.loads(file.read_text())
    edit(document)
    file.write_text(json.dumps(document))


def split(folder: Path) -> None:
    """One file becomes two and an index."""
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = sorted(tensors)
    shards = {"model-1.safetensors": names[::2], "model-2.safetensors": names[1::2]}
    for shard, held in shards.items():
        save_file({name: tensors[name] for name in held}, folder / shard)
    places = {name: shard for shard, held in shards.items() for name in held}
    (folder / INDEX).write_text(json.dumps({"weight_map": places}))


def flip(tensor: Tensor, at: int, bit: int) -> None:
    """Of a bfloat16: bit 14 is the highest of its exponent."""
    bits = tensor.view(torch.int16).view(-1)
    bits[at] ^= 1 << bit


def test_a_sound_copy_in_two_files_has_no_fault(folder: Path) -> None:
    split(folder)
    assert faults(folder) == {}


def test_a_missing_and_an_unexpected_tensor_are_named(folder: Path) -> None:
    change(folder, lambda tensors: tensors.__setitem__("model.text.stranger", tensors.pop(WTE)))
    found = faults(folder)["names"].found
    assert "1 missing: text.wte" in found and "1 unexpected: model.text.stranger" in found


def test_a_tensor_that_moondream_2_ignores_is_a_warning() -> None:
    strange = {"unexpected": ["text.freqs_cis"]}
    lenient, strict = check_names(strange, 9, MOONDREAM2), check_names(strange, 9, MOONDREAM3)
    assert (lenient.verdict, strict.verdict) == (Verdict.WARNING, Verdict.FAULT)
    assert lenient.found == "1 unexpected: text.freqs_cis" and "ignored" in lenient.advice
    with_missing = check_names(strange | {"missing": ["text.wte"]}, 9, MOONDREAM2)
    assert with_missing.verdict is Verdict.FAULT


def test_the_numbers_of_tensors_that_no_model_takes_are_not_judged(tmp_path: Path) -> None:
    folder = save_tiny(tmp_path / "model", generation=2)
    strangers = {
        "text.attn_mask": torch.full((4, 4), float("-inf")).triu(1),
        "text.freqs_cis": torch.ones(4, 8, dtype=torch.complex64),
        "text.nothing": torch.zeros(3, 0),
        "text.blocks.0.kv_cache.k_cache": torch.zeros(1, 2, 4, 8),
    }
    change(folder, lambda tensors: tensors.update(strangers))
    assert faults(folder) == {}
    change(folder, lambda tensors: tensors["text.wte"].fill_(torch.nan))
    assert faults(folder)["finite"].found == "NaN or infinite numbers in 1 tensors: text.wte (9,600)"


def test_many_missing_tensors_are_named_ten_at_a_time(folder: Path) -> None:
    def without_vision(tensors: dict[str, Tensor]) -> None:
        for name in [name for name in tensors if ".vision.blocks." in name]:
            del tensors[name]

    change(folder, without_vision)
    assert "72 missing: " in faults(folder)["names"].found
    assert faults(folder)["names"].found.endswith("and 62 more")


def test_a_wrong_shape_is_named(folder: Path) -> None:
    change(folder, lambda tensors: tensors.__setitem__(WTE, tensors[WTE][:-1].contiguous()))
    assert faults(folder)["shapes"].found == "1 [1535, 192] instead of [1536, 192]: text.wte"


def test_a_nan_is_found(folder: Path) -> None:
    change(folder, lambda tensors: tensors[QKV].view(-1)[77].fill_(torch.nan))
    assert faults(folder)["finite"].found == f"NaN or infinite numbers in 1 tensors: {QKV} (1)"


@pytest.mark.parametrize("at", [0, 1234, 76_799])
@pytest.mark.parametrize("name", [QKV, GAIN])
def test_a_flipped_exponent_bit_is_found(folder: Path, name: str, at: int) -> None:
    change(folder, lambda tensors: flip(tensors[name], at % tensors[name].numel(), 14))
    found = faults(folder)
    [row] = [found[check] for check in ("finite", "size") if check in found]
    assert name in row.found


@pytest.mark.parametrize("before", [2.0625, 3.5, -2.5])
def test_a_large_gain_that_a_flipped_bit_makes_nothing_is_found(folder: Path, before: float) -> None:
    def damage(tensors: dict[str, Tensor]) -> None:
        tensors[GAIN][17] = before
        flip(tensors[GAIN], 17, 14)
        assert 0 < abs(float(tensors[GAIN][17])) < 1e-30

    change(folder, damage)
    assert faults(folder)["size"].found == f"gains of next to nothing in 1 norms: {GAIN} (1)"


def test_any_flipped_bit_of_the_bundled_model_shows_in_its_digest(folder: Path) -> None:
    file = folder / "model.safetensors"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    sha256 = hashlib.sha256(content).hexdigest()
    assert judge_digest(file, sha256, is_bundled=True).verdict is Verdict.FAULT


def test_an_all_zero_tensor_and_a_zero_row_are_found(folder: Path) -> None:
    change(folder, lambda tensors: tensors[GAIN].zero_())
    assert faults(folder)["zeros"].found == f"1 tensors are all zero: {GAIN}"
    matrix = torch.ones(4, 8)
    matrix[2] = 0
    finding = judge_zeros({"a.weight": look_at("a.weight", matrix)})
    assert finding.verdict is Verdict.WARNING and "a.weight (1 rows)" in finding.found


def test_a_bias_may_be_zero() -> None:
    assert judge_zeros({"a.bias": look_at("a.bias", torch.zeros(8))}).verdict is Verdict.OK


@pytest.mark.parametrize("shard", ["model-1.safetensors", "model-2.safetensors"])
def test_a_truncated_shard_is_named(folder: Path, shard: str) -> None:
    split(folder)
    content = (folder / shard).read_bytes()
    (folder / shard).write_bytes(content[:-1000])
    found = faults(folder)
    assert f"{shard}: it holds" in found["safetensors headers"].found
    assert shard in found["checkpoint"].found


def test_an_index_that_names_a_missing_shard_is_found(folder: Path) -> None:
    split(folder)
    (folder / "model-2.safetensors").unlink()
    assert "not there: model-2.safetensors" in faults(folder)["index"].found


def test_an_index_that_names_the_wrong_shard_is_found(folder: Path) -> None:
    split(folder)
    name = min(load_file(folder / "model-1.safetensors"))
    change_json(folder / INDEX, lambda index: index["weight_map"].update({name: "model-2.safetensors"}))
    assert f"not in their files: {name}" in faults(folder)["index"].found


def test_a_tokenizer_whose_end_is_elsewhere_is_found(folder: Path) -> None:
    def move_end(document: dict[str, Any]) -> None:
        text = "<|endoftext|>"
        vocabulary = document["model"]["vocab"]
        vocabulary[text], vocabulary["<|md_reserved_7|>"] = 8, 0
        for token in document["added_tokens"]:
            token["id"] = {0: 8, 8: 0}.get(token["id"], token["id"])

    change_json(folder / "tokenizer.json", move_end)
    assert "<|endoftext|> is 8, the model's is 0" in faults(folder)["tokenizer.json"].found


def test_swapped_templates_are_found(folder: Path) -> None:
    def swap(document: dict[str, Any]) -> None:
        templates = document["config"]["tokenizer"]["templates"]
        templates["query"], templates["point"] = templates["point"], templates["query"]
        templates["caption"]["short"] = templates["caption"]["long"]

    change_json(folder / "config.json", swap)
    found = faults(folder)["templates"].found
    assert found.startswith("query, point, caption short spelled as something else")
    assert "query: '|point||'" in found


@pytest.mark.parametrize("content", ["{", "[]", '{"model_type": "bert"}'])
def test_a_config_that_cannot_be_read_is_found(folder: Path, content: str) -> None:
    (folder / "config.json").write_text(content)
    assert "config.json" in faults(folder)["config.json"].found


def test_a_folder_without_weights_is_found(tmp_path: Path) -> None:
    assert "holds no checkpoint" in faults(tmp_path)["checkpoint"].found


@pytest.mark.parametrize(
    ("offsets", "problem"),
    [
        (((0, 8), (4, 12)), "b overlaps the one before"),
        (((0, 8), (12, 20)), "b leaves a gap before it"),
        (((0, 8), (8, 12)), "b takes 4 bytes"),
        (((0, 8), (8, 16)), "holds 20 bytes of tensors, and its header says 16"),
    ],
)
def test_a_header_that_lies_is_named(tmp_path: Path, offsets: Any, problem: str) -> None:
    header = {
        name: {"dtype": "F32", "shape": [2], "data_offsets": list(place)}
        for name, place in zip("ab", offsets, strict=True)
    }
    text = json.dumps(header).encode()
    file = tmp_path / "x.safetensors"
    file.write_bytes(len(text).to_bytes(8, "little") + text + bytes(20))
    with pytest.raises(ValueError, match=problem):
        check_header(file)


@pytest.mark.parametrize("content", [b"", b"\xff" * 64, (9).to_bytes(8, "little") + b"{nonsense"])
def test_a_header_that_is_none_is_named(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "x.safetensors"
    file.write_bytes(content)
    with pytest.raises(ValueError, match="its header"):
        check_header(file)


def test_a_digest_is_held_against_what_the_hub_said(tmp_path: Path) -> None:
    content = b'{"model_type": "moondream1"}'
    sha256 = hashlib.sha256(content).hexdigest()
    git = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
    for tag in (sha256, git):  # of a large file, and of a small one
        blob = tmp_path / "blobs" / tag
        blob.parent.mkdir(exist_ok=True)
        blob.write_bytes(content)
        link = tmp_path / f"config-{len(tag)}.json"
        link.symlink_to(blob)
        assert judge_digest(link, sha256, is_bundled=False).found == f"{sha256}, as published"
        blob.write_bytes(content + b" ")
        changed = hashlib.sha256(content + b" ").hexdigest()
        assert judge_digest(link, changed, is_bundled=False).verdict is Verdict.FAULT


def test_a_download_into_a_folder_is_held_against_its_note(tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    file.write_bytes(b"weights")
    assert hub_tag(file) is None
    assert "nothing here to compare" in judge_digest(file, "00", is_bundled=False).found
    note = tmp_path / ".cache/huggingface/download/model.safetensors.metadata"
    note.parent.mkdir(parents=True)
    note.write_text(f"{'c' * 40}\n{hashlib.sha256(b'weights').hexdigest()}\n1750000000.0\n")
    right, wrong = hashlib.sha256(b"weights").hexdigest(), hashlib.sha256(b"other").hexdigest()
    assert judge_digest(file, right, is_bundled=False).verdict is Verdict.OK
    assert judge_digest(file, wrong, is_bundled=False).verdict is Verdict.FAULT


@pytest.mark.parametrize(
    ("name", "tensor", "verdict"),
    [
        ("ln.weight", torch.full((8,), 1e-4), Verdict.WARNING),
        ("fc1.weight", 1e-6 * torch.randn(64, 64), Verdict.WARNING),
        ("fc1.weight", 0.1 * torch.randn(64, 64), Verdict.OK),
        ("fc1.bias", torch.full((8,), 500.0), Verdict.WARNING),
        ("text.wte", torch.full((8, 8), 2e4), Verdict.FAULT),
        ("moe_quant.up_scale", torch.full((8, 8), 1e-3), Verdict.OK),
        # float8 numbers fill their range, and packed ones are no numbers.
        ("mlp.fc1.weight", torch.full((2, 8, 8), 448.0).to(torch.float8_e4m3fn), Verdict.OK),
        ("fc1.weight.packed", torch.full((8, 8), 255, dtype=torch.uint8), Verdict.OK),
    ],
)
def test_the_size_of_numbers_is_judged_by_kind(name: str, tensor: Tensor, verdict: Verdict) -> None:
    values = {name: look_at(name, tensor)}
    assert judge_size(values).verdict is verdict
    assert judge_finite(values).verdict is Verdict.OK
