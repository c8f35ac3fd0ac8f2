"""Stages of a Moondream 2 golden folder, as its README describes it."""

import json
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import torch
from safetensors.torch import load_file

from kestrel_core.intake.image_limits import ImageLimits
from kestrel_core.intake.images import decode_image
from kestrel_core.loop.step import Coord, Input, PreparedImage
from kestrel_core.moondream.checkpoint.files import read_json
from kestrel_core.moondream.crops.cutting import cut_crops
from kestrel_core.moondream.vision import pool, stitch
from kestrel_core.protocol.errors import BadCheckpoint
from kestrel_core.protocol.messages import Request, Settings
from kestrel_core.skills.spec import Language
from kestrel_tools.parity.adapters import adapter_run, containers
from kestrel_tools.parity.md2_units import check_units
from kestrel_tools.parity.report import Report
from kestrel_tools.parity.runs import SKILLS, GoldenRun, objects_run, text_output
from kestrel_tools.parity.stages import Golden, check_streaming, check_tilings, picture
from kestrel_tools.parity.subject import Subject, interleaved, recorded

FLOAT32_TOLERANCE, FLOAT32_MEASURE = 1e-5, "relative L2"
EMBEDDINGS = ".emb"
BASE_PREFIX = "_base_prefix"  # an adapter's run whose image was encoded without it


def adapter_files(folder: Path) -> list[Path]:
    """The containers of the folder's one adapter, laid out as the reference's cache is."""
    variants = sorted(path for path in folder.glob("md_variants/*") if path.is_dir())
    return containers(variants[0]) if variants else []


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
        check_units(folder, unit, subject)
    expected = json.loads((folder / "expected.json").read_text())
    if text.tensors:
        _check_text(text, expected, prepared, subject, language)
    _check_adapter(text, expected.get("lora", {}), prepared, subject)
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
        if "token_subset" in golden:
            golden.close("vision encoder", f"{name}.enc_subset", features[:, golden["token_subset"]])
        grid = vision.config.grid
        whole = stitch(features[1:], image.tiling, vision.config)
        if f"{name}.recon_shape" in golden:
            report.equal("stitching", name, list(whole.shape), golden[f"{name}.recon_shape"].tolist())
        golden.close("pooling", f"{name}.pooled", pool(whole, grid))
        golden.close("image embeddings", f"{name}.emb", subject.encode_image(image))
        if name == traced and "token_subset" in golden:
            subset = golden["token_subset"]
            for i in range(len(vision.blocks)):
                for key, state in ((f"trace.block{i}_in", 2 * i), (f"trace.block{i}_mid", 2 * i + 1)):
                    golden.close("vision blocks", key, seen[state][0, subset])
            golden.close("vision blocks", "trace.post_ln_in", seen[-1][0, subset])


def _check_text(
    golden: Golden,
    expected: dict[str, Any],
    prepared: dict[str, PreparedImage],
    subject: Subject,
    language: Language,
) -> None:
    config = subject.model.config
    prefix, rotary = config.image_prefix_length, config.text.rotary_dim
    for name, image in prepared.items():
        if f"{name}.prefix_hidden_subset" in golden:
            hidden = subject.prefill(image, ())
            golden.close("image prefill", f"{name}.prefix_hidden", hidden)
            if "position_subset" in golden:
                subset = golden["position_subset"]
                golden.close("image prefill", f"{name}.prefix_hidden_subset", hidden[subset])
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


def _check_adapter(
    golden: Golden, expected: dict[str, Any], prepared: dict[str, PreparedImage], subject: Subject
) -> None:
    """The prompts of `lora`; its image has the adapter too, unless the label says otherwise."""
    image = prepared.get(expected.get("image", ""))
    labels = [label for label in expected if f"lora.{label}.logits" in golden]
    if subject.adapter is None or image is None or not labels:
        golden.report.absent("adapter first logits", "not all of adapter, image and logits are there")
        return
    for label in labels:
        adapted = subject.adapted(not label.endswith(BASE_PREFIX))
        hidden = subject.prefill(image, expected[label]["prompt_ids"], adapted)
        hidden = hidden[subject.model.config.image_prefix_length :]
        golden.close("adapter prompt prefill", f"lora.{label}.hidden", hidden)
        golden.close("adapter first logits", f"lora.{label}.logits", subject.logits(hidden[-1]))


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
            yield from _run_of(label, f"{name} {label}", run, image, settings)
            if label == "gaze" and words is not None:
                yield from _gaze_runs(name, run, words, image, settings)
    if "text_only" in expected:
        yield _text_run("query", "text_only", "text_only", expected["text_only"], None, settings)
    adapted = expected.get("lora", {})
    if subject.adapter is not None and adapted.get("image") in prepared:
        for label, run in adapted.items():
            for found in _run_of(label, f"lora {label}", run, prepared[adapted["image"]], settings):
                yield adapter_run(found, subject.adapter, on_image=not label.endswith(BASE_PREFIX))


def _run_of(
    label: str, where: str, run: Any, image: PreparedImage, settings: Settings
) -> Iterator[GoldenRun]:
    """The run that stands under this label, if it is one of a skill's."""
    kind = label.split("_")[0].rstrip("0123456789")
    if kind in ("query", "spatial", "reasoning", "caption"):
        yield _text_run(kind, label, where, run, image, settings)
    elif kind in ("detect", "point"):
        request = Request(kind, {"object": run["object"]}, image, settings)
        yield objects_run(where, request, run["prompt_ids"], run)


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
