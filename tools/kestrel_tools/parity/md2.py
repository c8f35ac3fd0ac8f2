"""Stages of a Moondream 2 golden folder, as its README describes it."""

import json
import re
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file

from kestrel_core.intake.images import ImageLimits, decode_image
from kestrel_core.loop.step import Coord, Input, PreparedImage
from kestrel_core.moondream.checkpoint.files import read_json
from kestrel_core.moondream.checkpoint.weights import unpack_int4
from kestrel_core.moondream.crops.cutting import cut_crops
from kestrel_core.moondream.text import rotary_at, rotate
from kestrel_core.moondream.vision import pool, stitch
from kestrel_core.protocol.errors import BadCheckpoint
from kestrel_core.protocol.messages import Request, Settings
from kestrel_core.skills.spec import Language
from kestrel_tools.parity.report import Report
from kestrel_tools.parity.runs import SKILLS, GoldenRun, objects_run, text_output
from kestrel_tools.parity.stages import Golden, check_streaming, check_tilings, picture, probabilities
from kestrel_tools.parity.subject import Subject, interleaved, recorded

FLOAT32_TOLERANCE, FLOAT32_MEASURE = 1e-5, "relative L2"
EMBEDDINGS = ".emb"


def images(folder: Path) -> dict[str, PreparedImage]:
    """The golden crops; everything after the crops stage starts from them."""
    prepared = {}
    for file in sorted(folder.glob("crops_*.npz")):
        name = file.stem.removeprefix("crops_")
        if not name.startswith("pil_"):
            tiling = tuple(read_json(folder / "crops.json")[name]["tiling"])
            try:
                with file.open("rb") as archive:
                    crops = np.load(archive)["crops"]
            except (OSError, ValueError, BadZipFile) as error:
                raise BadCheckpoint(f"{file} holds no crops, or only a part of them ({error})") from error
            prepared[name] = PreparedImage(name, crops, tiling)
    return prepared


def check_stages(folder: Path, subject: Subject, language: Language, report: Report) -> None:
    prepared = images(folder)
    if (folder / "tiling.json").is_file():
        rows = json.loads((folder / "tiling.json").read_text())["rows"]
        cases = [(h, w, crops, margin, (th, tw)) for h, w, crops, margin, th, tw in rows]
        check_tilings(cases, subject.model.config.vision, report)
    _check_pictures(folder, prepared, subject, report)
    vision, unit, text = (
        Golden(folder / f"{name}.safetensors", report) for name in ("vision", "unit", "text")
    )
    if vision.tensors:
        _check_vision(vision, prepared, subject)
    if unit.tensors:
        _check_units(folder, unit, subject)
    if text.tensors:
        expected = json.loads((folder / "expected.json").read_text())
        _check_text(text, expected, prepared, subject, language)
    if (folder / "streaming.json").is_file():
        cases = json.loads((folder / "streaming.json").read_text())
        check_streaming([(c["ids"][: c["max_tokens"]], c["chunks"]) for c in cases], language, report)


def _check_pictures(
    folder: Path, prepared: dict[str, PreparedImage], subject: Subject, report: Report
) -> None:
    vision = subject.model.config.vision
    for name, image in prepared.items():
        file = picture(folder, name)
        crops = cut_crops(decode_image(file, ImageLimits(), upright=False), vision)
        report.equal("tiling", name, list(crops.tiling), list(image.tiling))
        levels = np.abs(crops.pixels.astype(int) - image.crops.astype(int)).max()
        # The resize is the reference's own; JPEG decoders may differ by a level or two.
        stage, limit = ("crops", 0.0) if file.suffix == ".png" else ("crops (jpeg)", 2.0)
        report.add(stage, name, float(levels), "grey levels", limit)
    modes = folder / "images" / "modes"
    if (modes / "expected_rgb.safetensors").is_file():
        for name, golden in load_file(modes / "expected_rgb.safetensors").items():
            rgb = decode_image(modes / name, ImageLimits(), upright=False)
            levels = np.abs(rgb.astype(int) - golden.numpy().astype(int)).max()
            stage, limit = ("colour modes", 0.0) if name.endswith(".png") else ("colour modes (jpeg)", 2.0)
            report.add(stage, name, float(levels), "grey levels", limit)


def _check_vision(golden: Golden, prepared: dict[str, PreparedImage], subject: Subject) -> None:
    report = golden.report
    vision, device = subject.model.vision, subject.device
    if "pixel_lut" in golden:
        side = vision.config.crop_size
        greys = torch.arange(256, dtype=torch.uint8, device=device)[:, None, None, None]
        pixels = vision.patches(greys.expand(256, side, side, 3))[:, 0, 0]
        report.equal("pixels", "pixel_lut", pixels.float().cpu().tolist(), golden["pixel_lut"].tolist())
    subset = golden["token_subset"]
    traced = "small" if "small" in prepared else next(iter(prepared), None)
    for name, image in prepared.items():
        if f"{name}.emb" not in golden:
            continue
        with recorded(
            [*vision.blocks, *(b.get_submodule("ln2") for b in vision.blocks), vision.post_ln]
        ) as seen:
            features = vision.encode(torch.from_numpy(image.crops).to(device))
        for crop in (0, 1):
            golden.close("vision encoder", f"{name}.enc_crop{crop}", features[crop])
        golden.close("vision encoder", f"{name}.enc_subset", features[:, subset])
        grid = vision.config.grid
        whole = stitch(features[1:], image.tiling, vision.config)
        report.equal("stitching", name, list(whole.shape), golden[f"{name}.recon_shape"].tolist())
        golden.close("pooling", f"{name}.pooled", pool(whole, grid))
        golden.close("image embeddings", f"{name}.emb", subject.encode_image(image))
        if name == traced:
            for i in range(len(vision.blocks)):
                for key, state in ((f"trace.block{i}_in", 2 * i), (f"trace.block{i}_mid", 2 * i + 1)):
                    golden.close("vision blocks", key, seen[state][0, subset])
            golden.close("vision blocks", "trace.post_ln_in", seen[-1][0, subset])


def _check_units(folder: Path, golden: Golden, subject: Subject) -> None:
    model, device = subject.model, subject.device
    region, dtype = model.region, model.text.wte.dtype
    if dtype == torch.bfloat16 and (folder / "bf16.safetensors").is_file():
        # In bfloat16 a phase is off by whole periods, so these encodings agree with bfloat16 ones only.
        rounded = load_file(folder / "bf16.safetensors").items()
        golden.tensors |= {k.removeprefix("region."): v for k, v in rounded if k.startswith("region.")}
    coords, sizes = golden["coord_in"].to(device), golden["size_in"].to(device)
    features = region.coord_features, region.size_features
    golden.close("region encoders", "coord_feat", region.fourier(coords, features[0]))
    golden.close("region encoders", "coord_emb", region.encode_coord(coords[:, 0]))
    golden.close("region encoders", "size_feat", region.fourier(sizes, features[1]))
    golden.close("region encoders", "size_emb", region.encode_size(sizes))
    hidden = golden["hidden_in"].to(device, dtype)
    golden.close("region decoders", "coord_logits", region.coord_logits(hidden))
    golden.close("region decoders", "size_logits", region.size_logits(hidden))
    bins = torch.arange(region.config.num_size_bins, device=device)
    golden.close("region decoders", "bin_to_size", region.size_of_bin(bins))
    for name, norm in (("vision", model.vision.post_ln), ("text", model.text.post_ln)):
        # Always in float32: in bfloat16 the rows could not tell one epsilon from another.
        x, weight, bias = golden[f"ln.{name}.post_ln.x"].to(device), norm.weight.float(), norm.bias.float()
        y = F.layer_norm(x, norm.normalized_shape, weight, bias, norm.eps)
        golden.close("layer norm", f"ln.{name}.post_ln.y", y)
    at = rotary_at(golden["rope.pos"].to(device), model.config.text)
    rotated = rotate(golden["rope.x"].to(device, dtype).transpose(0, 1), at).transpose(0, 1)
    golden.close("rotary", "rope.y", interleaved(rotated, model.config.text.rotary_dim))
    for key in golden.tensors:
        if key.startswith("recon.") and not key.endswith(".pooled"):
            _check_stitching(key, golden, subject)
        if key.startswith("sampling.") and not key.endswith(".logits"):
            _check_sampling(key, golden)
    if "quant.packed" in golden:
        for key, kind in (("quant.weight_f32", torch.float32), ("quant.weight_bf16", torch.bfloat16)):
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
    ours = probabilities(golden[f"sampling.{vector}.logits"], float(temperature), float(top_p))
    if vector.startswith("ties"):  # the order of equal values is the sort's own choice
        golden.report.close("sampling", key, *(p.sort(descending=True).values for p in (ours, golden[key])))
    else:
        golden.close("sampling", key, ours)


def _check_text(
    golden: Golden,
    expected: dict[str, Any],
    prepared: dict[str, PreparedImage],
    subject: Subject,
    language: Language,
) -> None:
    config = subject.model.config
    prefix, rotary = config.image_prefix_length, config.text.rotary_dim
    subset = golden["position_subset"]
    for name, image in prepared.items():
        if f"{name}.prefix_hidden_subset" in golden:
            hidden = subject.prefill(image, ())
            golden.close("image prefill", f"{name}.prefix_hidden_subset", hidden[subset])
            golden.close("image prefill", f"{name}.prefix_hidden", hidden)
            for layer in range(config.text.n_layers):
                k, v = subject.cached(layer, subset)
                golden.close("kv cache", f"{name}.k{layer}_subset", interleaved(k, rotary))
                golden.close("kv cache", f"{name}.v{layer}_subset", v)
        for label, run in expected.get(name, {}).items():
            if f"{name}.{label}.logits" in golden:
                inputs = _prompt(run, language, image)
                hidden = subject.prefill(image, inputs)[prefix:]
                golden.close("prompt prefill", f"{name}.{label}.hidden", hidden)
                golden.close("first logits", f"{name}.{label}.logits", subject.logits(hidden[-1]))
            if f"{name}.{label}.step_logits" in golden:  # teacher-forced: each step sees the golden tokens
                steps = golden[f"{name}.{label}.step_logits"]
                fed = (*_prompt(run, language, image), *run["output_ids"][: len(steps)])
                states = subject.prefill(image, fed)[-len(steps) :]
                golden.close("step logits", f"{name}.{label}.step_logits", subject.logits(states))
    if "text_only.logits" in golden:
        with recorded([*subject.model.text.blocks]) as seen:
            hidden = subject.prefill(None, expected["text_only"]["prompt_ids"])
        for layer, state in enumerate(seen):
            golden.close("text blocks", f"text_only.block{layer}_in", state)
        golden.close("text blocks", "text_only.hidden", hidden)
        golden.close("first logits", "text_only.logits", subject.logits(hidden[-1]))


def _prompt(run: dict[str, Any], language: Language, image: PreparedImage) -> tuple[Input, ...]:
    if "spatial_refs" not in run:
        return tuple(run["prompt_ids"])
    request = Request("query", {k: run[k] for k in ("question", "spatial_refs")}, image)
    return SKILLS["query"].prompt(request, language).inputs


def runs(folder: Path, subject: Subject, language: Language) -> Iterator[GoldenRun]:
    if not (folder / "expected.json").is_file():
        return
    expected = json.loads((folder / "expected.json").read_text())
    prepared = images(folder)
    limits = {f.name for f in fields(Settings)}
    settings = Settings(**{k: v for k, v in expected["settings"].items() if k in limits})
    words = next((run["gaze_prompt_ids"] for run in expected.values() if "gaze_prompt_ids" in run), None)
    for name, image in prepared.items():
        for label, run in expected.get(name, {}).items():
            kind = label.rstrip("0123456789").split("_")[0]
            if kind in ("query", "spatial", "reasoning", "caption"):
                yield _text_run(kind, label, f"{name} {label}", run, image, settings)
            elif kind in ("detect", "point"):
                request = Request(kind, {"object": run["object"]}, image, settings)
                yield objects_run(f"{name} {label}", request, run["prompt_ids"], run)
            elif label == "gaze" and words is not None:
                yield from _gaze_runs(name, run, words, image, settings)
    if "text_only" in expected:
        yield _text_run("query", "text_only", "text_only", expected["text_only"], None, settings)


def _text_run(
    kind: str, label: str, where: str, run: dict[str, Any], image: PreparedImage | None, settings: Settings
) -> GoldenRun:
    if kind == "caption":
        request = Request("caption", {"length": label.split("_")[1]}, image, settings)
    else:
        arguments = {"question": run["question"], "reasoning": kind == "reasoning"}
        refs = {"spatial_refs": run["spatial_refs"]} if "spatial_refs" in run else {}
        request = Request("query", arguments | refs, image, settings)
    thought = run.get("reasoning")
    return GoldenRun(
        stage=f"decode {kind}",
        where=where,
        request=request,
        prompt_ids=run["prompt_ids"] if thought is None else thought["prompt_ids"],
        tokens=run["output_ids"],
        reasoning_tokens=None if thought is None else thought["output_ids"],
        chunks=run["chunks"],
        output=text_output(request.skill, run["text"], thought),
    )


def _gaze_runs(
    name: str,
    gazes: list[dict[str, Any]],
    ids: dict[str, list[int]],
    image: PreparedImage,
    settings: Settings,
) -> Iterator[GoldenRun]:
    """Gaze is a point request with the legacy words, and the place of the eye in the prompt."""
    for index, gaze in enumerate(gazes):
        x, y = gaze["eye"]
        points = [gaze["gaze"]] if gaze["gaze"] is not None else []
        request = Request("point", {"object": "gaze"}, image, replace(settings, max_objects=1))
        inputs: tuple[Input, ...] = (*ids["before"], Coord(x), Coord(y), *ids["after"])
        yield GoldenRun(
            "decode gaze", f"{name} gaze{index}", request, (), output={"points": points}, inputs=inputs
        )
