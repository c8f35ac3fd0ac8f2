"""A checkpoint in every form that is taken, loaded and run: the same outputs each time."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from goldens import lay_out
from safetensors.torch import load_file, save_file
from torch import Tensor

from kestrel_core.build import (
    assemble_engine,
    load_model,
    open_model,
    parse_device,
)
from kestrel_core.config import RuntimeConfig
from kestrel_core.protocol.errors import BadCheckpoint, InvalidRequest
from kestrel_core.runtime.vision.image_encoder import ImageEncoder
from kestrel_tools.parity.md2 import images
from kestrel_tools.parity.subject import Subject

Tensors = dict[str, Tensor]


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lay_out("md2", tmp_path_factory.mktemp("md2"))


@pytest.fixture(scope="module")
def tensors(golden: Path) -> Tensors:
    return load_file(golden / "model.safetensors")


def folder(tensors: Tensors, place: Path) -> Path:
    save_file(tensors, place / "model.safetensors")
    return place


def file(tensors: Tensors, place: Path) -> Path:
    save_file(tensors, place / "weights.safetensors")
    return place / "weights.safetensors"


def shards(tensors: Tensors, place: Path) -> Path:
    names = sorted(tensors)
    shard_of = {name: f"model-{i % 2}.safetensors" for i, name in enumerate(names)}
    for shard in sorted(set(shard_of.values())):
        save_file({name: tensors[name] for name in names if shard_of[name] == shard}, place / shard)
    (place / "model.safetensors.index.json").write_text(json.dumps({"weight_map": shard_of}))
    return place


def torch_file(tensors: Tensors, place: Path) -> Path:
    torch.save(tensors, place / "model.pt")
    return place


def bare_names(tensors: Tensors, place: Path) -> Path:
    return folder({name.removeprefix("model."): tensor for name, tensor in tensors.items()}, place)


def legacy(tensors: Tensors, golden: Path) -> Tensors:
    """Under the names the reference itself gave them at first; the features were stored transposed."""
    names = json.loads((golden / "legacy_names.json").read_text())
    transposed = {name: t.T.contiguous() if name.endswith("_features") else t for name, t in tensors.items()}
    return {names[name]: tensor for name, tensor in transposed.items()}


def outputs(path: Path, golden: Path) -> Tensors:
    """Of every part: embeddings of the golden picture, logits of a question about it, places and sizes."""
    model = load_model(path, golden / "tokenizer.json", torch.device("cpu"), torch.float32)
    network, region = model.network, model.network.region
    subject = Subject(network, model.device, ImageEncoder(network.vision))
    image, places = images(golden)["small"], torch.tensor([0.25, 0.75])
    with torch.inference_mode():
        hidden = subject.prefill(image, [1, 548, 2, 560, 3, 3])[-2:]
        return {
            "embeddings": subject.encode_image(image),
            "logits": subject.logits(hidden),
            "coordinates": region.coord_logits(hidden + region.encode_coord(places)),
            "sizes": region.size_logits(hidden + region.encode_size(places[None])),
        }


@pytest.fixture(scope="module")
def expected(golden: Path) -> Tensors:
    made = outputs(golden, golden)
    reference = load_file(golden / "vision.safetensors")["small.emb"]
    torch.testing.assert_close(made["embeddings"], reference, atol=1e-4, rtol=1e-4)
    return made


@pytest.mark.parametrize(
    ("form", "spelling"),
    [(form, "current") for form in (file, shards, torch_file, bare_names)] + [(folder, "legacy")],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_every_form_of_a_checkpoint_gives_identical_outputs(
    form: Callable[[Tensors, Path], Path],
    spelling: str,
    golden: Path,
    tensors: Tensors,
    expected: Tensors,
    tmp_path: Path,
) -> None:
    stored = legacy(tensors, golden) if spelling == "legacy" else tensors
    assert len(stored) == len(tensors) and (stored.keys() == tensors.keys()) == (spelling == "current")
    (tmp_path / "config.json").write_bytes((golden / "config.json").read_bytes())
    ours = outputs(form(stored, tmp_path), golden)
    for name, value in expected.items():
        assert torch.equal(ours[name], value), name


def test_the_tokenizer_beside_the_weights_is_taken_unless_another_is_named(golden: Path) -> None:
    model = load_model(golden, None, torch.device("cpu"), torch.bfloat16)
    assert model.language.tokenizer.encode("red circle")
    assert model.network.text.wte.dtype == torch.bfloat16 and not model.network.training
    with pytest.raises(BadCheckpoint, match="cannot be read"):
        load_model(golden, golden / "nowhere.json", torch.device("cpu"), torch.bfloat16)


@pytest.mark.parametrize("name", ["tpu", "meta", "", "cpu:x"])
def test_devices_are_cpu_or_cuda(name: str) -> None:
    assert parse_device("cpu") == torch.device("cpu")
    with pytest.raises(InvalidRequest, match="use cpu, cuda or cuda:N"):
        parse_device(name)


def test_the_context_is_a_setting_up_to_what_the_generation_is_good_for() -> None:
    model = open_model(RuntimeConfig(model="moondream-tiny", device="cpu"))
    longer = RuntimeConfig(device="cpu", max_batch_size=1, max_context=2_000, kv_cache_tokens=2_000)
    engine = assemble_engine(model, longer)
    assert engine.runtime.num_pages * engine.runtime.page_size >= 2_000
    engine.close()
    with pytest.raises(InvalidRequest, match="max_context is 40,000, and this model is good for 32,768"):
        assemble_engine(model, RuntimeConfig(device="cpu", max_context=40_000))


def test_random_weights_take_their_shape_and_words_from_a_folder_or_a_file_in_it(tmp_path: Path) -> None:
    folder = lay_out("md2", tmp_path)
    for path in (folder, folder / "model.safetensors"):
        config = RuntimeConfig(model_path=str(path), weights="random", device="cpu")
        assert open_model(config).language.tokenizer.encode("what") == [560]
