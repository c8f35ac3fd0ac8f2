"""Checkpoints of every container and spelling into a tiny model, and tensors that are refused."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from checkpoints import (
    CONTAINERS,
    CPU,
    TINY2,
    TINY3,
    Container,
    assert_holds,
    legacy,
    load,
    meta,
    misfit,
    one_file,
    save_sharded,
    tensors_of,
    torch_file,
)

from kestrel_core.moondream.checkpoint.files import open_checkpoint
from kestrel_core.moondream.checkpoint.weights import (
    fold,
    load_config,
    load_weights,
)
from kestrel_core.moondream.config import MOONDREAM2, MOONDREAM3, MoondreamConfig
from kestrel_core.protocol.errors import BadCheckpoint


@pytest.mark.parametrize("config", [TINY2, TINY3], ids=["moondream2", "moondream3"])
@pytest.mark.parametrize("container", CONTAINERS, ids=lambda container: container.__name__)
def test_every_container_gives_the_same_parameters(
    container: Container, config: MoondreamConfig, tmp_path: Path
) -> None:
    tensors = tensors_of(config)
    model, _ = load(container(tensors, tmp_path), config)
    assert_holds(model, tensors)


@pytest.mark.parametrize("container", [one_file, torch_file])
def test_the_first_spelling_of_moondream_2_is_understood(container: Container, tmp_path: Path) -> None:
    tensors = tensors_of(TINY2)
    renamed = legacy(tensors)
    compiled = {name.replace(".mixer.", "._orig_mod.mixer."): tensor for name, tensor in renamed.items()}
    assert not compiled.keys() & tensors.keys()
    model, _ = load(container(compiled, tmp_path), TINY2)
    assert_holds(model, tensors)


@pytest.mark.parametrize(
    "front", ["_orig_mod.", "_orig_mod.model.", "model._orig_mod.", "_orig_mod._orig_mod."]
)
def test_names_of_a_model_that_was_compiled_as_a_whole_are_understood(front: str, tmp_path: Path) -> None:
    tensors = tensors_of(TINY2)
    for spelling in (tensors, legacy(tensors)):
        compiled = {front + name.removeprefix("model."): tensor for name, tensor in spelling.items()}
        path = one_file(compiled, tmp_path)
        assert load_config(path) == MOONDREAM2
        assert_holds(load(path, TINY2)[0], tensors)


def test_parameters_are_cast_and_ask_for_no_gradient(tmp_path: Path) -> None:
    tensors = tensors_of(TINY3, torch.float16)
    model, _ = load(one_file(tensors, tmp_path), TINY3, torch.float32)
    assert_holds(model, {name: tensor.float() for name, tensor in tensors.items()})
    assert all(p.dtype == torch.float32 and not p.requires_grad for p in model.parameters())


def test_progress_counts_bytes_up_to_the_total(tmp_path: Path) -> None:
    model, steps = load(save_sharded(tensors_of(TINY3), tmp_path), TINY3)
    total = sum(p.nbytes for p in model.parameters())
    assert [done for done, _ in steps] == sorted(done for done, _ in steps)
    assert {of for _, of in steps} == {total} and steps[-1] == (total, total)


@pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="needs the list of mapped files")
def test_one_shard_is_mapped_at_a_time_and_none_afterwards(tmp_path: Path) -> None:
    def mapped() -> set[str]:
        lines = Path("/proc/self/maps").read_text().splitlines()
        return {line.rpartition("/")[2] for line in lines if str(tmp_path) in line}

    model, seen = meta(TINY3), list[set[str]]()
    checkpoint = open_checkpoint(save_sharded(tensors_of(TINY3), tmp_path))
    load_weights(model, TINY3, checkpoint, CPU, torch.bfloat16, lambda *_: seen.append(mapped()))
    assert max(len(files) for files in seen) == 1
    assert set.union(*seen) == {"part-0.safetensors", "part-1.safetensors", "part-2.safetensors"}
    assert mapped() == set()


def test_headers_tell_shape_and_type_alike_in_both_containers(tmp_path: Path) -> None:
    tensors = {"a": torch.zeros(2, 3, dtype=torch.bfloat16), "b": torch.zeros(4, dtype=torch.float8_e4m3fn)}
    torch_infos = open_checkpoint(torch_file(tensors, tmp_path)).tensors
    assert dict(open_checkpoint(one_file(tensors, tmp_path)).tensors) == torch_infos
    assert (torch_infos["a"].shape, torch_infos["b"].dtype) == ((2, 3), "float8_e4m3fn")


# What is refused.


def test_every_misfit_is_named_in_one_error(tmp_path: Path) -> None:
    tensors = tensors_of(TINY3)
    for layer in range(3):
        del tensors[f"model.text.blocks.{layer}.attn.tau.wq"]
    del tensors["model.region.ln.bias"]
    tensors["model.text.extra"] = torch.zeros(1)
    tensors["model.text.wte"] = torch.zeros(7, 32)
    tensors["model.text.lm_head.bias"] = torch.zeros(50, dtype=torch.int32)
    message = misfit(tensors, TINY3, tmp_path)
    assert "missing: region.ln.bias, text.blocks.{0..2}.attn.tau.wq;" in message
    assert "unexpected: model.text.extra" in message
    assert "[7, 32] instead of [50, 32]: text.wte" in message
    assert "I32 instead of bfloat16 or float16 or float32 or float64: text.lm_head.bias" in message


@pytest.mark.parametrize(("held", "asked"), [(TINY2, TINY3), (TINY3, TINY2)], ids=["2 for 3", "3 for 2"])
def test_the_other_generation_is_recognised_first(
    held: MoondreamConfig, asked: MoondreamConfig, tmp_path: Path
) -> None:
    message = misfit(tensors_of(held), asked, tmp_path)
    assert message.startswith(f"this is a Moondream {held.generation} checkpoint (it has ")
    assert f"but the configuration says Moondream {asked.generation}: missing: " in message


def test_two_names_for_one_tensor_are_refused(tmp_path: Path) -> None:
    tensors = tensors_of(TINY2)
    message = misfit({**tensors, "text.wte": torch.zeros(50, 32)}, TINY2, tmp_path)
    assert "the same tensor under two names" in message and "model.text.wte" in message


def test_moondream_3_knows_all_of_its_tensors_but_kv_caches(tmp_path: Path) -> None:
    tensors = {**tensors_of(TINY3), "model.text.blocks.0.kv_cache.other": torch.zeros(1)}
    assert "unexpected: model.text.blocks.0.kv_cache.other" in misfit(tensors, TINY3, tmp_path)


def test_tensors_that_moondream_2_does_not_know_are_ignored_and_named_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tensors = tensors_of(TINY2)
    strangers = {f"model.text.blocks.{layer}.rotary": torch.zeros(1) for layer in range(3)}
    strangers |= {f"other{number}\n": torch.zeros(1) for number in range(5)}
    assert_holds(load(one_file({**tensors, **strangers}, tmp_path), TINY2)[0], tensors)
    [record] = caplog.records
    assert record.levelname == "WARNING"
    text = record.getMessage()
    assert r"is ignored (8 tensors): other0\n, other1\n, other2\n and more" in text


@pytest.mark.parametrize("part", ["text", "vision"])
def test_a_configuration_with_fewer_blocks_than_there_are_is_refused(part: str, tmp_path: Path) -> None:
    """The first blocks alone are a model too, which answers nonsense."""
    layers = "n_layers" if part == "text" else "enc_n_layers"
    last = getattr(getattr(TINY2, part), layers) - 1
    fewer: Any = replace(getattr(TINY2, part), **{layers: last})
    for spelling in (tensors_of(TINY2), legacy(tensors_of(TINY2))):
        message = misfit(spelling, replace(TINY2, **{part: fewer}), tmp_path)
        assert "unexpected: " in message and f".{last}." in message


def test_few_strange_tensors_are_all_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    load(one_file({**tensors_of(TINY2), "text.freqs_cis": torch.zeros(1)}, tmp_path), TINY2)
    assert caplog.messages[0].endswith("is ignored (1 tensors): text.freqs_cis")


def test_strange_tensors_are_named_with_those_that_are_missing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tensors = tensors_of(TINY2)
    tensors["model.text.head.bias"] = tensors.pop("model.text.lm_head.bias")
    message = misfit(tensors, TINY2, tmp_path)
    assert "missing: text.lm_head.bias; unexpected: model.text.head.bias" in message
    assert not caplog.records


def test_folded_names_can_be_unfolded() -> None:
    names = ["a.0.b", "a.1.b", "a.2.b", "a.9.b", "a.11.c", "plain", "x.7"]
    assert fold(names) == ["plain", "x.7", "a.{0..2,9}.b", "a.11.c"]


# The configuration beside the tensors.


def test_config_json_is_read_in_and_beside_a_checkpoint(tmp_path: Path) -> None:
    path = one_file(tensors_of(TINY3), tmp_path)
    document = {"model_type": "moondream3", "config": {"text": {"max_context": 1234}}}
    (tmp_path / "config.json").write_text(json.dumps(document))
    for place in (tmp_path, path):
        assert load_config(place) == replace(MOONDREAM3, text=replace(MOONDREAM3.text, max_context=1234))


def test_bad_json_is_one_clear_error(tmp_path: Path) -> None:
    path = one_file(tensors_of(TINY3), tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(BadCheckpoint, match=r"config\.json is not valid JSON"):
        load_config(path)


@pytest.mark.parametrize(("config", "told"), [(TINY2, MOONDREAM2), (TINY3, MOONDREAM3)])
def test_without_a_config_the_names_tell_the_generation(
    config: MoondreamConfig, told: MoondreamConfig, tmp_path: Path
) -> None:
    path = one_file(tensors_of(config), tmp_path)
    assert load_config(path) == told
    assert load_config(path, default=config) == config
    (tmp_path / "config.json").write_text("{}")
    assert load_config(path) == told


def test_legacy_names_tell_moondream_2(tmp_path: Path) -> None:
    assert load_config(one_file(legacy(tensors_of(TINY2)), tmp_path)) == MOONDREAM2


def test_names_of_another_model_and_no_config_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadCheckpoint, match=r"has no config\.json"):
        load_config(one_file({"bert.weight": torch.zeros(1)}, tmp_path))


def test_a_preview_without_the_region_norm_loads_without_it(tmp_path: Path) -> None:
    tensors = {name: tensor for name, tensor in tensors_of(TINY3).items() if ".region.ln." not in name}
    path = one_file(tensors, tmp_path)
    config = load_config(path, default=TINY3)
    assert not config.region.norm
    assert_holds(load(path, config)[0], tensors)
