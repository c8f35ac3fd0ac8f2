"""Small parts of a Moondream 2 golden folder, each by itself: those of `unit.safetensors`."""

import re
from dataclasses import replace
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file

from kestrel_core.moondream.checkpoint.weights import unpack_int4
from kestrel_core.moondream.text import rotary_at, rotate
from kestrel_core.moondream.vision import pool, stitch
from kestrel_tools.parity.stages import Golden, probabilities
from kestrel_tools.parity.subject import Subject, interleaved


def check_units(folder: Path, golden: Golden, subject: Subject) -> None:
    model, device = subject.model, subject.device
    region, dtype = model.region, model.text.wte.dtype
    if dtype == torch.bfloat16 and (folder / "bf16.safetensors").is_file():
        # In bfloat16 a phase is off by whole periods, so these encodings agree with bfloat16 ones only.
        rounded = load_file(folder / "bf16.safetensors").items()
        golden.tensors |= {k.removeprefix("region."): v for k, v in rounded if k.startswith("region.")}
    if "coord_in" in golden:
        coords = golden["coord_in"].to(device)
        golden.close("region encoders", "coord_feat", region.fourier(coords, region.coord_features))
        golden.close("region encoders", "coord_emb", region.encode_coord(coords[:, 0]))
    if "size_in" in golden:
        sizes = golden["size_in"].to(device)
        golden.close("region encoders", "size_feat", region.fourier(sizes, region.size_features))
        golden.close("region encoders", "size_emb", region.encode_size(sizes))
    if "hidden_in" in golden:
        hidden = golden["hidden_in"].to(device, dtype)
        golden.close("region decoders", "coord_logits", region.coord_logits(hidden))
        golden.close("region decoders", "size_logits", region.size_logits(hidden))
    bins = torch.arange(region.config.num_size_bins, device=device)
    golden.close("region decoders", "bin_to_size", region.size_of_bin(bins))
    for name, norm in (("vision", model.vision.post_ln), ("text", model.text.post_ln)):
        key = f"ln.{name}.post_ln.x"
        if key in golden:
            # Always in float32: in bfloat16 the rows could not tell one epsilon from another.
            x, weight, bias = golden[key].to(device), norm.weight.float(), norm.bias.float()
            y = F.layer_norm(x, norm.normalized_shape, weight, bias, norm.eps)
            golden.close("layer norm", f"ln.{name}.post_ln.y", y)
    if golden.has("rope.pos", "rope.x"):
        at = rotary_at(golden["rope.pos"].to(device), model.config.text)
        rotated = rotate(golden["rope.x"].to(device, dtype).transpose(0, 1), at).transpose(0, 1)
        golden.close("rotary", "rope.y", interleaved(rotated, model.config.text.rotary_dim))
    for key in golden.tensors:
        if key.startswith("recon.") and not key.endswith(".pooled"):
            _check_stitching(key, golden, subject)
        if key.startswith("sampling.") and not key.endswith(".logits"):
            _check_sampling(key, golden)
    for key, kind in (("quant.weight_f32", torch.float32), ("quant.weight_bf16", torch.bfloat16)):
        if golden.has(key, "quant.packed", "quant.scale", "quant.zero_point"):
            weight = torch.empty_like(golden[key], dtype=kind)
            unpack_int4(golden["quant.packed"], golden["quant.scale"], golden["quant.zero_point"], weight)
            golden.report.equal(
                "int4 weights", key, weight.flatten().tolist(), golden[key].flatten().tolist()
            )


def _check_stitching(key: str, golden: Golden, subject: Subject) -> None:
    _, tiles, margin = key.split(".")
    rows, cols = map(int, tiles.split("x"))
    config = replace(subject.model.config.vision, overlap_margin=int(margin.removeprefix("m")))
    crop, row, col = torch.meshgrid(
        *map(torch.arange, (rows * cols, config.grid, config.grid)), indexing="ij"
    )
    labels = torch.stack((crop, row, col), dim=-1).flatten(1, 2).float()
    whole = stitch(labels, (rows, cols), config)
    golden.report.equal("stitching", key, whole.flatten().tolist(), golden[key].flatten().tolist())
    golden.close("pooling", f"{key}.pooled", pool(whole, config.grid))


def _check_sampling(key: str, golden: Golden) -> None:
    named = re.fullmatch(r"sampling\.(.*)\.t([\d.]+)\.p([\d.]+)", key)
    assert named is not None
    vector, temperature, top_p = named.groups()
    if f"sampling.{vector}.logits" not in golden:
        return
    ours = probabilities(golden[f"sampling.{vector}.logits"], float(temperature), float(top_p))
    if vector.startswith("ties"):  # the order of equal values is the sort's own choice
        golden.report.close("sampling", key, *(p.sort(descending=True).values for p in (ours, golden[key])))
    else:
        golden.close("sampling", key, ours)
