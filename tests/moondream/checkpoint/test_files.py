"""Files that are no checkpoint, or half of one, are refused in one clear sentence."""

import pickle
import struct
from pathlib import Path

import pytest
import torch
from checkpoints import TINY2, Container, old_torch_file, one_file, tensors_of, torch_file
from pickled_trap import Touch
from safetensors.torch import save_file

from kestrel_core.moondream.checkpoint.files import open_checkpoint
from kestrel_core.protocol.errors import BadCheckpoint


def refused(path: Path) -> str:
    with pytest.raises(BadCheckpoint) as caught:
        open_checkpoint(path)
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize("container", [one_file, torch_file, old_torch_file])
def test_half_a_file_is_refused(container: Container, tmp_path: Path) -> None:
    file = container(tensors_of(TINY2), tmp_path)
    whole, path = file.read_bytes(), tmp_path / f"half{file.suffix}"
    path.write_bytes(whole[: len(whole) // 2])
    assert "only a part of one" in refused(path)


@pytest.mark.parametrize("suffix", [".safetensors", ".pt", ".index.json"])
@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"<!DOCTYPE html><html><body>404</body></html>", "is an HTML page"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n", "is a git-lfs pointer"),
    ],
    ids=["empty", "html", "lfs"],
)
def test_what_a_failed_download_leaves_is_called_by_name(
    content: bytes, said: str, suffix: str, tmp_path: Path
) -> None:
    path = tmp_path / f"model{suffix}"
    path.write_bytes(content)
    assert said in refused(path)


@pytest.mark.parametrize("content", [b"PK\x03\x04 no zip", b"garbage", struct.pack("<Q", 1 << 40) + b"{}"])
@pytest.mark.parametrize("suffix", [".safetensors", ".pt"])
def test_garbage_is_refused(content: bytes, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"model{suffix}"
    path.write_bytes(content)
    assert "only a part of one" in refused(path)


def test_code_in_a_pickle_is_refused_and_does_not_run(tmp_path: Path) -> None:
    proof = tmp_path / "ran"
    pickle.loads(pickle.dumps(Touch(proof)))
    assert proof.exists(), "the trap itself must work"
    proof.unlink()
    torch.save({"text.wte": torch.zeros(1), "trap": Touch(proof)}, tmp_path / "zip.pt")
    torch.save({"trap": Touch(proof)}, tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    (tmp_path / "bare.pt").write_bytes(pickle.dumps({"trap": Touch(proof)}))
    assert "maybe code" in refused(tmp_path / "zip.pt")
    assert "maybe code" in refused(tmp_path / "old.pt")
    assert "no torch file" in refused(tmp_path / "bare.pt")
    assert not proof.exists()


def test_a_torch_file_of_something_else_is_refused(tmp_path: Path) -> None:
    torch.save([torch.zeros(1)], tmp_path / "list.pt")
    assert "no tensors by name" in refused(tmp_path / "list.pt")
    torch.save({"step": 3, "state_dict": {"text.wte": torch.zeros(1)}}, tmp_path / "nested.pt")
    assert "no named tensors: step, state_dict" in refused(tmp_path / "nested.pt")
    torch.save({3: torch.zeros(1)}, tmp_path / "numbered.pt")
    assert "no named tensors: 3" in refused(tmp_path / "numbered.pt")


def test_a_folder_without_a_checkpoint_says_what_was_looked_for(tmp_path: Path) -> None:
    message = refused(tmp_path)
    assert all(name in message for name in ("model.safetensors.index.json", "model.safetensors,", "model.pt"))


def test_several_files_without_an_index_are_no_choice_to_make(tmp_path: Path) -> None:
    save_file({"a": torch.zeros(1)}, tmp_path / "a.safetensors")
    save_file({"b": torch.zeros(1)}, tmp_path / "b.safetensors")
    assert "holds a.safetensors, b.safetensors and no model.safetensors.index.json" in refused(tmp_path)


def test_a_path_that_is_not_there_and_a_strange_suffix_are_refused(tmp_path: Path) -> None:
    assert "cannot be read: No such file" in refused(tmp_path / "nowhere.safetensors")
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    assert "ends in none of .safetensors" in refused(tmp_path / "model.gguf")


@pytest.mark.parametrize(
    ("index", "said"),
    [
        ("{", "is not valid JSON"),
        ("[]", 'has no "weight_map"'),
        ('{"weight_map": {}}', 'has no "weight_map"'),
        ('{"weight_map": {"a": 3}}', 'has no "weight_map"'),
        (
            '{"weight_map": {"a": "part-0.safetensors", "b": "gone.safetensors"}}',
            "not there: gone.safetensors",
        ),
        (
            '{"weight_map": {"a": "part-0.safetensors", "lost": "part-0.safetensors"}}',
            "lost (part-0.safetensors)",
        ),
        ('{"weight_map": {"a": "../part-0.safetensors"}}', "points outside its folder"),
        ('{"weight_map": {"a": "x/../../part-0.safetensors"}}', "points outside its folder"),
        ('{"weight_map": {"a": "/part-0.safetensors"}}', "points outside its folder"),
    ],
)
def test_an_index_must_lead_to_its_tensors(index: str, said: str, tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    for place in (tmp_path, folder):
        save_file({"a": torch.zeros(1)}, place / "part-0.safetensors")
    (folder / "model.safetensors.index.json").write_text(index)
    assert said in refused(folder)
