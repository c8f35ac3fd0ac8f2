"""Stages of a Moondream 3 golden folder, as its README describes it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor

from kestrel_core.intake.images import ImageLimits, decode_image
from kestrel_core.loop.step import PreparedImage, Sampling
from kestrel_core.moondream.checkpoint.weights import unscale_float8
from kestrel_core.moondream.crops.cutting import choose_tiling, cut_crops
from kestrel_core.moondream.moe import MoE
from kestrel_core.moondream.text import TextAttention, rotary_at
from kestrel_core.moondream.vision import pool, stitch
from kestrel_core.protocol.messages import Request, Settings
from kestrel_core.runtime.readouts.plain import nucleus
from kestrel_core.skills.spec import Language
from kestrel_tools.parity.report import Report
from kestrel_tools.parity.runs import SKILLS, GoldenRun
from kestrel_tools.parity.stages import check_streaming, check_tilings, picture
from kestrel_tools.parity.subject import Subject, interleaved, recorded

FLOAT32_TOLERANCE, FLOAT32_MEASURE = 2e-4, "max |a-b| / (1+|b|)"
CROPS_TOLERANCE = 4.0  # mean grey levels: these crops were resized by Pillow, ours by libvips


def images(folder: Path, subject: Subject) -> dict[str, PreparedImage]:
    """The golden crops, stored under each other; everything after the crops stage starts from them."""
    side, prepared = subject.model.config.vision.crop_size, {}
    for file in sorted((folder / "crops").glob("*.png")):
        strip = decode_image(file, ImageLimits(), upright=False)
        height, width, _ = decode_image(picture(folder, file.stem), ImageLimits()).shape
        tiling = choose_tiling(height, width, subject.model.config.vision)
        prepared[file.stem] = PreparedImage(file.stem, strip.reshape(-1, side, side, 3), tiling)
    return prepared


def embeddings(folder: Path) -> dict[str, Tensor]:
    file = folder / "vision.safetensors"
    golden = load_file(file) if file.is_file() else {}
    end = ".embeddings"
    return {key.removesuffix(end): value for key, value in golden.items() if key.endswith(end)}


def check_stages(folder: Path, subject: Subject, language: Language, report: Report) -> None:
    def golden(name: str) -> dict[str, Tensor]:
        file = folder / f"{name}.safetensors"
        return load_file(file) if file.is_file() else {}

    vision, prepared = subject.model.config.vision, images(folder, subject)
    if (folder / "tilings.json").is_file():
        rows = json.loads((folder / "tilings.json").read_text())
        limits = vision.max_crops, vision.overlap_margin
        check_tilings([(r["height"], r["width"], *limits, tuple(r["tiling"])) for r in rows], vision, report)
    for name, image in prepared.items():
        file = picture(folder, name)
        crops = cut_crops(decode_image(file, ImageLimits(), upright=False), vision)
        report.equal("crops' number", name, len(crops.pixels), len(image.crops))
        levels = np.abs(crops.pixels.astype(int) - image.crops.astype(int)).mean()
        report.add("crops (loosely)", name, float(levels), "mean grey levels", CROPS_TOLERANCE)
    _check_vision(golden("vision"), prepared, subject, report)
    _check_attention(golden("attention"), subject, report)
    _check_experts(golden("experts"), subject, report)
    _check_float8_experts(golden("experts_fp8"), golden("experts_fp8_expected"), subject, report)
    _check_region(golden("region"), subject, report)
    _check_prefill(folder, golden("prefill"), prepared, subject, report)
    _check_first_logits(folder, golden("first_logits"), prepared, subject, language, report)
    _check_sampling(golden("sampling"), report)
    if (folder / "streaming.json").is_file():
        cases = json.loads((folder / "streaming.json").read_text())
        eos = language.config.tokenizer.eos_id
        check_streaming(
            [([t for t in c["tokens"] if t != eos], c["chunks"]) for c in cases], language, report
        )


def _check_vision(
    golden: dict[str, Tensor], prepared: dict[str, PreparedImage], subject: Subject, report: Report
) -> None:
    vision = subject.model.vision
    for name, image in prepared.items():
        if f"{name}.tiling" in golden:
            report.equal("tiling", name, list(image.tiling), golden[f"{name}.tiling"].tolist())
        if f"{name}.global_features" in golden:
            features = vision.encode(torch.from_numpy(image.crops).to(subject.device))
            report.close("vision encoder", f"{name} global", features[0], golden[f"{name}.global_features"])
            report.close("vision encoder", f"{name} local", features[1], golden[f"{name}.local_features_0"])
            pooled = pool(stitch(features[1:], image.tiling, vision.config), vision.config.grid)
            report.close("pooling", name, pooled.flatten(0, 1), golden[f"{name}.pooled_local"])
        if f"{name}.embeddings" in golden:
            report.close("image embeddings", name, subject.encode_image(image), golden[f"{name}.embeddings"])


def _check_attention(golden: dict[str, Tensor], subject: Subject, report: Report) -> None:
    config = subject.model.config.text
    for case in sorted({key.split(".")[0] for key in golden}):
        g = {key.split(".")[1]: value for key, value in golden.items() if key.startswith(f"{case}.")}
        attn = subject.model.text.blocks[int(g["layer"])].attn
        assert isinstance(attn, TextAttention)
        x = g["x"].to(subject.device, subject.model.text.wte.dtype)
        at = rotary_at(g["positions"].to(subject.device), config)
        qkv = attn.qkv(x)
        report.close("attention", f"{case} qkv", qkv, g["qkv"])
        if attn.tau is not None:
            by_q, by_v = attn.tau(qkv, at)
            report.close("tau", f"{case} tau_q", by_q[..., 0].T, g["tau_q"])
            report.close("tau", f"{case} tau_v", by_v[..., 0].T, g["tau_v"])
        q, k, v = (heads.transpose(0, 1) for heads in attn.project(x, at))
        for name, ours in (("q", q), ("k", k)):
            report.close("attention", f"{case} {name}", interleaved(ours, config.rotary_dim), g[name])
        report.close("attention", f"{case} v", v, g["v"])
        mixed = F.scaled_dot_product_attention(
            q[None], k[None], v[None], attn_mask=g["mask"].to(subject.device), enable_gqa=len(q) != len(k)
        )
        report.close("attention", f"{case} out", attn.output(mixed[0].transpose(0, 1)), g["out"])


def _check_experts(golden: dict[str, Tensor], subject: Subject, report: Report) -> None:
    for layer in sorted({key.split(".")[0] for key in golden}):
        mlp = subject.model.text.blocks[int(layer)].mlp
        assert isinstance(mlp, MoE)
        x = golden[f"{layer}.x"].to(subject.device, subject.model.text.wte.dtype)
        report.close("MoE router", f"block {layer}", mlp.router(x), golden[f"{layer}.router_logits"])
        ids, weights = mlp.route(x)
        same = (ids.cpu() == golden[f"{layer}.expert_ids"]).all(-1)
        if x.dtype == torch.float32:
            wrong = int((~same).sum())
            report.add("MoE choice", f"block {layer}", wrong, "differences", 0.0)
        # Where rounding turned a near-tie, another expert was right to be asked.
        chosen = golden[f"{layer}.expert_weights"]
        report.close("MoE weights", f"block {layer}", weights.cpu()[same], chosen[same])
        report.close("MoE output", f"block {layer}", mlp(x).cpu()[same], golden[f"{layer}.out"][same])


def _check_float8_experts(
    stored: dict[str, Tensor], golden: dict[str, Tensor], subject: Subject, report: Report
) -> None:
    if not stored or not golden:
        return
    layer = int(golden["layer"])
    ours = subject.model.text.blocks[layer].mlp
    assert isinstance(ours, MoE)
    block = f"model.text.blocks.{layer}"
    kept = ours.fc1.weight, ours.fc2.weight
    x = golden["x"].to(subject.device, kept[0].dtype)
    for dtype, name in ((torch.float32, "out_float32_weights"), (torch.bfloat16, "out_bfloat16_weights")):
        for experts, leaf, scale in ((ours.fc1, "fc1", "up_scale"), (ours.fc2, "fc2", "down_scale")):
            weight = torch.empty(experts.weight.shape, dtype=dtype, device=subject.device)
            unscale_float8(stored[f"{block}.mlp.{leaf}.weight"], stored[f"{block}.moe_quant.{scale}"], weight)
            experts.weight = torch.nn.Parameter(weight.to(kept[0].dtype), requires_grad=False)
        report.close("float8 experts", name, ours(x), golden[name])
    ours.fc1.weight, ours.fc2.weight = kept


def _check_region(golden: dict[str, Tensor], subject: Subject, report: Report) -> None:
    if not golden:
        return
    region, device = subject.model.region, subject.device
    hidden = golden["hidden"].to(device, subject.model.text.wte.dtype)
    report.close(
        "region encoders",
        "coords",
        region.encode_coord(golden["coords"][:, 0].to(device)),
        golden["coords_encoded"],
    )
    report.close(
        "region encoders", "sizes", region.encode_size(golden["sizes"].to(device)), golden["sizes_encoded"]
    )
    report.close("region decoders", "coord_logits", region.coord_logits(hidden), golden["coord_logits"])
    report.close("region decoders", "size_logits", region.size_logits(hidden), golden["size_logits"])
    sizes = region.size_of_bin(golden["bins"].to(device))
    report.close("region decoders", "bin_sizes", sizes, golden["bin_sizes"])


def _check_prefill(
    folder: Path,
    golden: dict[str, Tensor],
    prepared: dict[str, PreparedImage],
    subject: Subject,
    report: Report,
) -> None:
    if not golden:
        return
    name = json.loads((folder / "runs.json").read_text())["query"][1]["image"]  # the README says so
    if name not in prepared:
        return
    watched = golden["watched_positions"]
    with recorded([*subject.model.text.blocks]) as seen:
        hidden = subject.prefill(prepared[name], golden["prompt_tokens"].tolist())
    report.close("prefill inputs", name, seen[0][watched], golden["inputs_embeds_watched"])
    for layer, (state, expected) in enumerate(
        zip([*seen[1:], hidden], golden["layers_watched"], strict=True)
    ):
        report.close("prefill blocks", f"block {layer}", state[watched], expected)
    report.close("prefill", "final hidden", hidden, golden["final_hidden"])
    report.close("prefill", "last logits", subject.logits(hidden[-1]), golden["last_logits"])


def _check_first_logits(
    folder: Path,
    golden: dict[str, Tensor],
    prepared: dict[str, PreparedImage],
    subject: Subject,
    language: Language,
    report: Report,
) -> None:
    """Logits behind the last prompt of each run; where reasoning comes first, its golden tokens are fed."""
    if not golden or not (folder / "runs.json").is_file():
        return
    documents = json.loads((folder / "runs.json").read_text())
    for skill in ("query", "caption"):
        for index, run in enumerate(documents[skill]):
            image = prepared.get(run["image"]) if run["image"] else None
            grounded = language.config.tokenizer.coord_id in run.get("reasoning", {}).get("tokens", ())
            if f"{skill}.{index}" not in golden or (run["image"] and image is None) or grounded:
                continue  # the values of grounded coordinates are not told
            request = _request(skill, run, image)
            inputs = [*SKILLS[skill].prompt(request, language).inputs]
            thought = run.get("reasoning")
            if thought is not None:
                inputs += thought["tokens"][: -1 if thought["ended"] else None] + run["answer_prompt_tokens"]
            logits = subject.logits(subject.prefill(image, inputs)[-1])
            report.close("first logits", f"{skill} {index}", logits, golden[f"{skill}.{index}"])


def _check_sampling(golden: dict[str, Tensor], report: Report) -> None:
    for index in range(len(golden) // 2):
        temperature, top_p = golden[f"{index}.settings"].tolist()
        for row, logits in enumerate(golden["logits"]):
            if temperature == 0:
                continue
            best, order = nucleus(logits, Sampling(temperature, top_p))
            probabilities = torch.zeros_like(best).scatter(0, order, best)
            report.close("sampling", f"{index}, row {row}", probabilities, golden[f"{index}.probs"][row])


def _request(skill: str, run: dict[str, Any], image: PreparedImage | None) -> Request:
    settings = Settings(temperature=0, max_tokens=run.get("max_tokens"), max_objects=run.get("max_objects"))
    names = {"question": "question", "reasoning_mode": "reasoning", "spatial_refs": "spatial_refs"}
    names |= {"length": "length", "object": "object"}
    arguments = {ours: run[theirs] for theirs, ours in names.items() if theirs in run}
    return Request(skill, arguments, image, settings)


def runs(folder: Path, subject: Subject, language: Language) -> Iterator[GoldenRun]:
    if not (folder / "runs.json").is_file():
        return
    prepared, ids = images(folder, subject), language.config.tokenizer
    for skill, rows in json.loads((folder / "runs.json").read_text()).items():
        if skill not in SKILLS:
            continue
        for index, run in enumerate(rows):
            if run["image"] is not None and run["image"] not in prepared:
                continue
            request = _request(skill, run, prepared.get(run["image"]))
            where = f"{skill} {index} ({run['image'] or 'no image'})"
            prompt_ids, kind = run["prompt_tokens"], skill
            if skill in ("detect", "point"):
                key = "objects" if skill == "detect" else "points"
                yield GoldenRun(f"decode {skill}", where, request, prompt_ids, output={key: run[key]})
                continue
            answer, thought = run["answer"], run.get("reasoning")
            output: dict[str, Any] = {"answer" if skill == "query" else "caption": answer["text"]}
            if thought is not None:
                kind = "reasoning"
                output["reasoning"] = {"text": thought["text"], "grounding": thought["grounding"]}
            elif "spatial_refs" in run:
                kind = "spatial"
            yield GoldenRun(
                stage=f"decode {kind}",
                where=where,
                request=request,
                prompt_ids=prompt_ids,
                tokens=_emitted(answer, ids.eos_id),
                reasoning_tokens=None if thought is None else _emitted(thought, ids.answer_id),
                chunks=answer["chunks"],
                output=output,
            )


def _emitted(run: dict[str, Any], end: int) -> list[int]:
    tokens: list[int] = run["tokens"]
    return tokens[:-1] if run["ended"] and tokens[-1] == end else tokens
