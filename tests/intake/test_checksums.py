"""Weights that are to be verified are loaded only if they are what was recorded."""

import hashlib
import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from kestrel_core.build import open_model
from kestrel_core.config import RuntimeConfig
from kestrel_core.intake.checksums import verify_weights, weight_files
from kestrel_core.intake.models import BUNDLED, INDEX
from kestrel_core.protocol.errors import BadCheckpoint


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    save_file({"a": torch.arange(1000.0)}, tmp_path / "model.safetensors")
    return tmp_path / "model.safetensors"


def sum_of(file: Path, skipped: int = 0) -> str:
    return hashlib.sha256(file.read_bytes()[skipped:]).hexdigest()


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[-5] ^= 1
    file.write_bytes(content)


def beside(file: Path) -> None:
    file.with_name(f"{file.name}.sha256").write_text(f"{sum_of(file)}  {file.name}\n")


def bare(file: Path) -> None:
    file.with_name(f"{file.name}.sha256").write_text(sum_of(file).upper())


def listed(file: Path) -> None:
    file.with_name("SHA256SUMS").write_text(f"{'0' * 64}  other\n{sum_of(file)} *./{file.name}\n")


def in_the_header(file: Path) -> None:
    header = 8 + int.from_bytes(file.read_bytes()[:8], "little")
    save_file({"a": torch.arange(1000.0)}, file, metadata={"sha256": sum_of(file, header)})


def in_a_cache(file: Path) -> None:
    blob = file.with_name(sum_of(file))
    file.rename(blob)
    file.symlink_to(blob)


@pytest.mark.parametrize("record", [beside, bare, listed, in_the_header, in_a_cache])
def test_a_flipped_bit_is_found_wherever_the_sum_is_recorded(weights: Path, record: object) -> None:
    assert callable(record)
    record(weights)
    read: list[tuple[int, int]] = []
    verify_weights(weights.parent, lambda done, total: read.append((done, total)))
    size = weights.stat().st_size
    assert read[-1] == (size, size)
    flip(weights)
    with pytest.raises(BadCheckpoint, match=r"model.safetensors is damaged or was changed: its SHA-256 is"):
        verify_weights(weights.parent)


def test_weights_without_a_record_are_refused(weights: Path) -> None:
    with pytest.raises(BadCheckpoint, match=r"model.safetensors has no checksum: neither"):
        verify_weights(weights)
    weights.with_name("SHA256SUMS").write_text(f"{sum_of(weights)}  other.safetensors\n")
    with pytest.raises(BadCheckpoint, match="has no checksum"):
        verify_weights(weights)


def test_every_shard_of_an_index_is_verified(tmp_path: Path) -> None:
    for name in ("one", "two", "adapter"):
        save_file({name: torch.zeros(9)}, tmp_path / f"{name}.safetensors")
    (tmp_path / INDEX).write_text(
        json.dumps({"weight_map": {"one": "one.safetensors", "two": "two.safetensors"}})
    )
    files = weight_files(tmp_path)
    assert [file.name for file in files] == ["one.safetensors", "two.safetensors"]
    beside(files[0])
    with pytest.raises(BadCheckpoint, match=r"two.safetensors has no checksum"):
        verify_weights(tmp_path)
    beside(files[1])
    verify_weights(tmp_path / INDEX)


def test_the_model_that_comes_along_has_its_checksum_and_a_changed_copy_is_not_loaded(tmp_path: Path) -> None:
    verify_weights(BUNDLED)
    copy = tmp_path / "copy"
    shutil.copytree(BUNDLED, copy)
    flip(copy / "model.safetensors")
    asked = {"model_path": str(copy), "device": "cpu"}
    open_model(RuntimeConfig(**asked))  # nobody asked for it
    with pytest.raises(BadCheckpoint, match="is damaged or was changed"):
        open_model(RuntimeConfig(**asked, verify_weights=True))
