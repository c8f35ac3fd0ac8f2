"""Adapters that are refused: each in one sentence that names what is wrong, and no path."""

import pickle
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import torch
from pickled_trap import Touch
from random_adapters import random_adapter, refused_adapter
from safetensors.torch import load_file, save_file
from tiny import tiny_config
from torch import Tensor

from kestrel_core.moondream.checkpoint.adapter_files import read_adapter
from kestrel_core.moondream.checkpoint.adapter_writing import write_moondream
from kestrel_core.moondream.lora import Target

CONFIG2, CONFIG3 = tiny_config(2).text, tiny_config(3).text
QKV_A = "text_model.transformer.h.0.mixer.Wqkv.parametrizations.weight.0.A"
QKV_B = QKV_A[:-1] + "B"


def own(generation: int, rank: int = 4) -> dict[str, Tensor]:
    """The tensors of a good adapter in Moondream's own format."""
    config = CONFIG2 if generation == 2 else CONFIG3
    targets: tuple[Target, ...] = ("fc1", "fc2", "expert_fc1", "expert_fc2")
    adapter = random_adapter(config, rank, targets if generation == 3 else (*targets, "qkv", "input_proj"))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "x.safetensors"
        write_moondream(adapter, config, path)
        return load_file(path)


Change = Callable[[dict[str, Tensor]], object]


@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
@pytest.mark.parametrize(
    ("generation", "change", "said"),
    [
        (2, lambda t: t.pop(QKV_B), r"Moondream 2 needs text.blocks.0.attn.qkv.B, which are not there"),
        (3, lambda t: t.pop("moe.1.up_a"), "Moondream 3 needs moe.1.up_a"),
        (2, lambda t: t.update({"lm_head.A": torch.ones(4, 4)}), "lm_head.A belongs to no matrix"),
        (3, lambda t: t.update({"dense.7.up_a": torch.ones(4, 4)}), "dense.7.up_a belongs to no matrix"),
        (3, lambda t: t.update({"moe.2.up_a": torch.ones(4, 4)}), "moe.2.up_a belongs to no matrix"),
        (
            2,
            lambda t: t.update({QKV_A: torch.ones(4, 64)}),
            f"{QKV_A} has the shape [4, 64] and this model needs [rank, 32]",
        ),
        (
            3,
            lambda t: t.update({"moe.0.up_a": torch.ones(5, 2, 32)}),
            "moe.0.up_a has the shape [5, 2, 32] and this model needs [6, rank, 32]",
        ),
        (3, lambda t: t.update({"dense.0.up_a": torch.ones(32)}), "has the shape [32] and this model needs"),
        (3, lambda t: t.update({"dense.0.up_a": torch.ones(0, 32)}), "has the shape [0, 32] and this model"),
        (2, lambda t: t.update({QKV_A: torch.ones(3, 32)}), "has rank 3"),
        (2, lambda t: t.update({QKV_A: torch.ones(4, 32, dtype=torch.int8)}), "is int8, and only bfloat16"),
        (2, lambda t: t[QKV_B].fill_(float("nan")), f"{QKV_B} holds numbers that are NaN or infinite"),
        (3, lambda t: t["moe.1.down_b"].fill_(float("inf")), "moe.1.down_b holds numbers that are NaN"),
        (2, lambda t: t.update({"text.blocks.0.attn.qkv.A": t[QKV_A]}), "under two names"),
        (
            2,
            lambda t: t.clear() or t.update({"text.wte": torch.ones(2)}),
            "text.wte first, are named as in no",
        ),
        (2, lambda t: t.clear() or t.update({"a.lora_A.weight": torch.ones(2)}), "a file of PEFT: name its"),
    ],
)
def test_a_file_that_does_not_fit(
    generation: int, change: Change, said: str, suffix: str, tmp_path: Path
) -> None:
    tensors = own(generation)
    change(tensors)
    path = tmp_path / f"x{suffix}"
    if suffix == ".pt":
        torch.save(tensors, path)
    else:
        save_file({name: tensor.clone() for name, tensor in tensors.items()}, path)
    assert said in refused_adapter(path, CONFIG2 if generation == 2 else CONFIG3)


def test_the_unchanged_files_are_good(tmp_path: Path) -> None:
    for generation, config in ((2, CONFIG2), (3, CONFIG3)):
        save_file(own(generation), tmp_path / "x.safetensors")
        assert read_adapter(tmp_path / "x.safetensors", config, torch.float32, 8).rank == 4


def test_an_adapter_for_the_other_generation_is_refused(tmp_path: Path) -> None:
    save_file(own(2), tmp_path / "two.safetensors")
    save_file(own(3), tmp_path / "three.safetensors")
    assert "for Moondream 2, and this model is a Moondream 3" in refused_adapter(
        tmp_path / "two.safetensors", CONFIG3
    )
    assert "belongs to no matrix of this model" in refused_adapter(tmp_path / "three.safetensors", CONFIG2)


def test_a_rank_over_the_limit_is_refused(tmp_path: Path) -> None:
    save_file(own(2, rank=9), tmp_path / "x.safetensors")
    assert "has rank 9, and at most 8 is taken; serve with a larger" in refused_adapter(
        tmp_path / "x.safetensors", CONFIG2
    )
    tensors = own(3, rank=8)
    tensors["moe.0.up_a"], tensors["moe.0.up_b"] = torch.ones(6, 5, 32), torch.ones(6, 16, 5)
    save_file(tensors, tmp_path / "y.safetensors")
    assert "moe.0.up_a has rank 5, and at most 4 is taken for each" in refused_adapter(
        tmp_path / "y.safetensors", CONFIG3
    )


def test_numbers_too_large_for_the_models_type_are_refused(tmp_path: Path) -> None:
    tensors = own(2)
    tensors[QKV_B].fill_(1e6)
    save_file(tensors, tmp_path / "x.safetensors")
    assert "NaN or infinite" in refused_adapter(tmp_path / "x.safetensors", CONFIG2, dtype=torch.float16)


def test_code_in_a_pickle_is_refused_and_does_not_run(tmp_path: Path) -> None:
    proof = tmp_path / "ran"
    torch.save({**own(2), "trap": Touch(proof)}, tmp_path / "x.pt")
    (tmp_path / "y.pt").write_bytes(pickle.dumps({"trap": Touch(proof)}))
    assert "x.pt holds more than tensors, maybe code" in refused_adapter(tmp_path / "x.pt", CONFIG2)
    assert "y.pt is no torch file" in refused_adapter(tmp_path / "y.pt", CONFIG2)
    assert not proof.exists()


@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"<!DOCTYPE html><html>", "is an HTML page"),
        (b"version https://git-lfs.github.com/spec/v1\n", "is a git-lfs pointer"),
        (b"garbage and more of it", "only a part of one"),
        (b"PK\x03\x04 no zip", "only a part of one"),
        (struct.pack("<Q", 1 << 40) + b"{}", "only a part of one"),
        (struct.pack("<Q", 2) + b"{}", "x."),
    ],
)
def test_a_file_of_something_else_is_refused(content: bytes, said: str, suffix: str, tmp_path: Path) -> None:
    (tmp_path / f"x{suffix}").write_bytes(content)
    assert said in refused_adapter(tmp_path / f"x{suffix}", CONFIG2)


@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
def test_a_part_of_a_file_is_refused(share: float, suffix: str, tmp_path: Path) -> None:
    whole = tmp_path / f"whole{suffix}"
    torch.save(own(2), whole) if suffix == ".pt" else save_file(own(2), whole)
    content = whole.read_bytes()
    (tmp_path / f"x{suffix}").write_bytes(content[: int(share * len(content))])
    assert "only a part of one" in refused_adapter(tmp_path / f"x{suffix}", CONFIG2)


def test_a_file_too_large_is_refused_before_it_is_read(tmp_path: Path) -> None:
    with (tmp_path / "x.pt").open("wb") as file:
        file.truncate(1 << 40)  # sparse: it takes no room
    assert "x.pt has 1,099,511,627,776 bytes, and no adapter" in refused_adapter(tmp_path / "x.pt", CONFIG2)


def test_an_archive_that_unpacks_to_more_than_its_file_is_refused(tmp_path: Path) -> None:
    torch.save(own(2), tmp_path / "good.pt")
    with zipfile.ZipFile(tmp_path / "good.pt") as good:
        entries = {name: good.read(name) for name in good.namelist()}
    with zipfile.ZipFile(tmp_path / "x.pt", "w", zipfile.ZIP_DEFLATED) as bomb:
        for name, content in entries.items():
            bomb.writestr(name, content)
        bomb.writestr("good/data/bomb", bytes(100 << 20))
    assert "is a compressed or overlapping archive" in refused_adapter(tmp_path / "x.pt", CONFIG2)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "the folder holds no adapter: looked for adapter_config.json"),
        ({"a.pt": b"x", "b.pt": b"x"}, "the folder holds several files (a.pt, b.pt)"),
        (
            {"adapter_model.safetensors": b"x"},
            "adapter_model.safetensors but no adapter_config.json beside it",
        ),
        ({"adapter_config.json": b"{"}, "adapter_config.json is not valid JSON"),
        ({"adapter_config.json": b"[1]"}, "holds no settings by name"),
        ({"adapter_config.json": b"[" * 100_000}, "adapter_config.json is not valid JSON"),
        ({"adapter_config.json": b" " * (2 << 20)}, "adapter_config.json has 2,097,152 bytes"),
    ],
)
def test_a_folder_of_something_else_is_refused(files: dict[str, bytes], said: str, tmp_path: Path) -> None:
    folder = tmp_path / "x"
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    assert said in refused_adapter(folder, CONFIG2)
