"""Adapters in every format that is read, and written again: the same numbers, and the same identity."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from goldens import GOLDEN, Name, golden_config
from random_adapters import random_adapter
from safetensors.torch import load_file, save_file
from tiny import tiny_config
from torch import Tensor

from kestrel_core.moondream.checkpoint.adapter_files import read_adapter
from kestrel_core.moondream.checkpoint.adapter_tensors import identity
from kestrel_core.moondream.checkpoint.adapter_writing import write_moondream, write_peft
from kestrel_core.moondream.config import TextConfig
from kestrel_core.moondream.lora import Adapter, Target
from kestrel_core.protocol.errors import BadAdapter

OWN: dict[int, tuple[Target, ...]] = {
    2: ("qkv", "input_proj", "fc1", "fc2"),
    3: ("fc1", "fc2", "expert_fc1", "expert_fc2"),
}
ORDINARY: tuple[Target, ...] = ("qkv", "proj", "fc1", "fc2", "expert_fc1", "expert_fc2")
GOLDEN_FILES: list[tuple[Name, str]] = [
    ("md2", "md_variants/golden_lora"),
    ("md2", "md_variants/golden_lora/final.pt"),
    ("md3", "adapter"),
    ("md3", "adapter/adapter.pt"),
    ("md3", "adapter/adapter.safetensors"),
]


def made(config: TextConfig, targets: tuple[Target, ...], rank: int = 4) -> Adapter:
    blocks = random_adapter(config, rank, targets).blocks
    return Adapter(identity(blocks), rank, blocks)


def read(path: Path, config: TextConfig, dtype: torch.dtype = torch.float32) -> Adapter:
    return read_adapter(path, config, dtype, max_rank=32)


def assert_same(found: Adapter, wanted: Adapter) -> None:
    assert (found.identity, found.rank) == (wanted.identity, wanted.rank)
    for mine, theirs in zip(found.blocks, wanted.blocks, strict=True):
        assert mine.keys() == theirs.keys()
        for target in mine:
            assert torch.equal(mine[target].a, theirs[target].a)
            assert torch.equal(mine[target].b, theirs[target].b)


@pytest.mark.parametrize(("name", "file"), GOLDEN_FILES)
def test_golden_adapters_are_read_number_by_number(name: Name, file: str) -> None:
    config = golden_config(name).text
    adapter = read(GOLDEN / name / file, config, torch.bfloat16)
    if name == "md2":
        raw = torch.load(GOLDEN / name / "md_variants/golden_lora/final.pt", weights_only=True)
        stem = "text_model.transformer.h.1.mixer.out_proj.parametrizations.weight.0"
        assert adapter.rank == 4
        assert torch.equal(adapter.blocks[1]["input_proj"].a, raw[f"{stem}.A"])
        assert torch.equal(adapter.blocks[1]["input_proj"].b, raw[f"{stem}.B"])
        assert all(set(block) == set(OWN[2]) for block in adapter.blocks)
    else:
        raw = load_file(GOLDEN / name / "adapter/adapter.safetensors")
        assert adapter.rank == 8
        assert torch.equal(adapter.blocks[3]["fc2"].b, raw["dense.3.down_b"])
        assert torch.equal(adapter.blocks[5]["expert_fc1"].a, raw["moe.1.up_a"])
        assert adapter.blocks[5]["expert_fc1"].a.shape[1] == 2


def test_an_adapter_is_the_same_in_every_container() -> None:
    config = golden_config("md3").text
    files = [GOLDEN / "md3/adapter" / name for name in ("adapter.pt", "adapter.safetensors")]
    one, other = (read(file, config) for file in files)
    assert one.identity == other.identity
    assert one.identity != read(files[0], config, torch.bfloat16).identity


@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
@pytest.mark.parametrize("generation", [2, 3])
def test_moondreams_format_comes_back_as_it_was_written(generation: int, suffix: str, tmp_path: Path) -> None:
    config = tiny_config(generation).text
    adapter = made(config, OWN[generation])
    write_moondream(adapter, config, tmp_path / f"x{suffix}")
    assert_same(read(tmp_path / f"x{suffix}", config), adapter)
    assert [file.name for file in tmp_path.iterdir()] == [f"x{suffix}"]


@pytest.mark.parametrize("generation", [2, 3])
def test_pefts_format_comes_back_as_it_was_written(generation: int, tmp_path: Path) -> None:
    config = tiny_config(generation).text
    adapter = made(config, ORDINARY)
    write_peft(adapter, config, tmp_path / "x", "moondream")
    assert_same(read(tmp_path / "x", config), adapter)
    assert sorted(file.name for file in (tmp_path / "x").iterdir()) == [
        "adapter_config.json",
        "adapter_model.safetensors",
    ]


def test_what_an_adapter_leaves_alone_is_zeros_in_the_file_and_not_there_after_reading(
    tmp_path: Path,
) -> None:
    config = tiny_config(2).text
    adapter = made(config, ("qkv", "fc1"))
    write_moondream(adapter, config, tmp_path / "x.safetensors")
    tensors = load_file(tmp_path / "x.safetensors")
    assert len(tensors) == 4 * 2 * config.n_layers
    assert not tensors["text_model.transformer.h.0.mixer.out_proj.parametrizations.weight.0.B"].any()
    assert_same(read(tmp_path / "x.safetensors", config), adapter)


@pytest.mark.parametrize(
    ("write", "target"),
    [(write_moondream, "proj"), (lambda a, c, p: write_peft(a, c, p, "base"), "input_proj")],
    ids=["moondream", "peft"],
)
def test_a_format_without_a_place_for_a_matrix_is_not_written(
    write: Any, target: Target, tmp_path: Path
) -> None:
    config = tiny_config(2).text
    with pytest.raises(BadAdapter, match=f"no place for .*{target}"):
        write(made(config, ("qkv", target)), config, tmp_path / "x.pt")
    assert list(tmp_path.iterdir()) == []


def test_names_may_be_cleaned_already_and_have_anything_in_front(tmp_path: Path) -> None:
    config2, config3 = tiny_config(2).text, tiny_config(3).text
    two, three = made(config2, OWN[2]), made(config3, OWN[3])
    write_moondream(two, config2, tmp_path / "two.safetensors")
    write_moondream(three, config3, tmp_path / "three.safetensors")
    replacements = [("text_model.transformer.h", "text.blocks"), (".mixer", ".attn"), (".out_proj", ".proj")]
    replacements += [(".Wqkv", ".qkv"), (".parametrizations.weight.0", "")]

    def cleaned(name: str) -> str:
        for old, new in replacements:
            name = name.replace(old, new)
        return name

    save_file(
        {cleaned(n): t for n, t in load_file(tmp_path / "two.safetensors").items()},
        tmp_path / "a.safetensors",
    )
    save_file(
        {f"model.lora.{n}": t for n, t in load_file(tmp_path / "three.safetensors").items()},
        tmp_path / "b.safetensors",
    )
    torch.save(load_file(tmp_path / "three.safetensors"), tmp_path / "c.pt")  # not in a dict of its own
    assert_same(read(tmp_path / "a.safetensors", config2), two)
    assert_same(read(tmp_path / "b.safetensors", config3), three)
    assert_same(read(tmp_path / "c.pt", config3), three)


def peft_folder(folder: Path, tensors: dict[str, Tensor], **settings: Any) -> Path:
    folder.mkdir(exist_ok=True)
    document = {"peft_type": "LORA", "r": 4, "lora_alpha": 8, **settings}
    (folder / "adapter_config.json").write_text(json.dumps(document))
    save_file(tensors, folder / "adapter_model.safetensors")
    return folder


@pytest.mark.parametrize(
    "module",
    [
        "text.blocks.1.attn.proj",
        "model.text.blocks.1.attn.proj",
        "text_model.transformer.h.1.mixer.out_proj",
        "model.text.blocks.1._orig_mod.attn.proj",
    ],
)
def test_peft_may_know_a_matrix_by_any_of_its_published_names(module: str, tmp_path: Path) -> None:
    config = tiny_config(2).text
    a, b = torch.randn(4, config.dim), torch.randn(config.dim, 4)
    names = [f"base_model.model.{module}.lora_{part}.weight" for part in "AB"]
    adapter = read(peft_folder(tmp_path, dict(zip(names, (a, b), strict=True))), config)
    assert [set(block) for block in adapter.blocks] == [set(), {"proj"}, set()]
    assert torch.equal(adapter.blocks[1]["proj"].a, a)
    assert torch.equal(adapter.blocks[1]["proj"].b, 2 * b)


@pytest.mark.parametrize(
    ("settings", "rank", "scale"),
    [
        ({}, 4, 2.0),
        ({"use_rslora": True}, 4, 4.0),
        ({"rank_pattern": {"attn.qkv": 2}}, 2, 4.0),
        ({"rank_pattern": {r"blocks\.[1-3]\.attn\.qkv": 2}}, 4, 2.0),
        ({"rank_pattern": {r"blocks\.[0-3]\.attn\.qkv": 2, "qkv": 3}}, 2, 4.0),
        ({"rank_pattern": {"kv": 2}}, 4, 2.0),  # a whole part of the name, or nothing
        ({"alpha_pattern": {"qkv": 32}}, 4, 8.0),
        ({"alpha_pattern": {"^text.*qkv": 32}, "rank_pattern": {"text.blocks.0.attn.qkv": 16}}, 16, 2.0),
    ],
)
def test_peft_settings_decide_rank_and_scale(
    settings: dict[str, Any], rank: int, scale: float, tmp_path: Path
) -> None:
    config = tiny_config(2).text
    a, b = torch.randn(rank, config.dim), torch.randn(config.qkv_dim, rank)
    stem = "base_model.model.text.blocks.0.attn.qkv.lora_"
    folder = peft_folder(tmp_path, {f"{stem}A.weight": a, f"{stem}B.weight": b}, **settings)
    adapter = read(folder, config)
    assert adapter.rank == rank
    torch.testing.assert_close(adapter.blocks[0]["qkv"].b, b * scale, rtol=1e-6, atol=0)
