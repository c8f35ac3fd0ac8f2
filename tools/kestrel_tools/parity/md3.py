"""Stages of a Moondream 3 golden folder, as its README describes it."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from kestrel_core.intake.image_limits import ImageLimits
from kestrel_core.intake.images import decode_image
from kestrel_core.loop.step import Input, PreparedImage
from kestrel_core.moondream.checkpoint.weights import unscale_float8
from kestrel_core.moondream.crops.cutting import choose_tiling, cut_crops
from kestrel_core.moondream.lora import no_adapters
from kestrel_core.moondream.moe import MoE
from kestrel_core.moondream.text import TextAttention, rotary_at
from kestrel_core.moondream.vision import pool, stitch
from kestrel_core.protocol.messages import Request, Settings
from kestrel_core.skills.spec import Language
from kestrel_tools.parity.adapters import adapter_run, containers
from kestrel_tools.parity.report import Report
from kestrel_tools.parity.runs import SKILLS, GoldenRun, objects_run, text_output
from kestrel_tools.parity.stages import Golden, check_streaming, check_tilings, picture, probabilities
from kestrel_tools.parity.subject import Subject, interleaved, recorded
from kestrel_tools.parity.ties import turned, ways
from kestrel_tools.reference import Adapted

FLOAT32_TOLERANCE, FLOAT32_MEASURE = 2e-4, "max |a-b| / (1+|b|)"
EMBEDDINGS = ".embeddings"
CROPS_TOLERANCE = 4.0  # mean grey levels: these crops were resized by Pillow, ours by libvips


def adapter_files(folder: Path) -> list[Path]:
    """The containers of the folder's one adapter."""
    return containers(folder / "adapter")


def images(folder: Path, subject: Subject) -> dict[str, PreparedImage]:
    """The golden crops, stored under each other; everything after the crops stage starts from them."""
    side, prepared = subject.model.config.vision.crop_size, {}
    for file in sorted((folder / "crops").glob("*.png")):
        strip = decode_image(file, ImageLimits(), upright=False)
        height, width, _ = decode_image(picture(folder, file.stem), ImageLimits()).shape
        tiling = choose_tiling(height, width, subject.model.config.vision)
        prepared[file.stem] = PreparedImage(file.stem, strip.reshape(-1, side, side, 3), tiling)
    return prepared


def check_stages(folder: Path, subject: Subject, language: Language, report: Report) -> None:
    def golden(name: str) -> Golden:
        return Golden(folder / f"{name}.safetensors", report)

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
    _check_vision(golden("vision"), prepared, subject)
    _check_attention(golden("attention"), subject)
    _check_experts(golden("experts"), subject)
    _check_float8_experts(golden("experts_fp8"), golden("experts_fp8_expected"), subject)
    _check_region(golden("region"), subject)
    _check_prefill(folder, golden("prefill"), prepared, subject)
    _check_first_logits(folder, golden("first_logits"), prepared, subject, language)
    _check_adapter(folder, golden("first_logits"), prepared, subject)
    _check_sampling(golden("sampling"))
    if (folder / "streaming.json").is_file():
        cases = json.loads((folder / "streaming.json").read_text())
        eos = language.config.tokenizer.eos_id
        check_streaming(
            [([t for t in c["tokens"] if t != eos], c["chunks"]) for c in cases], language, report
        )


def _check_vision(golden: Golden, prepared: dict[str, PreparedImage], subject: Subject) -> None:
    vision = subject.model.vision
    for name, image in prepared.items():
        if f"{name}.tiling" in golden:
            golden.report.equal("tiling", name, list(image.tiling), golden[f"{name}.tiling"].tolist())
        if f"{name}.global_features" in golden:
            features = vision.encode(torch.from_numpy(image.crops).to(subject.device))
            golden.close("vision encoder", f"{name}.global_features", features[0], f"{name} global")
            golden.close("vision encoder", f"{name}.local_features_0", features[1], f"{name} local")
            pooled = pool(stitch(features[1:], image.tiling, vision.config), vision.config.grid)
            golden.close("pooling", f"{name}.pooled_local", pooled.flatten(0, 1), name)
        if f"{name}.embeddings" in golden:
            golden.close("image embeddings", f"{name}.embeddings", subject.encode_image(image), name)


def _check_attention(golden: Golden, subject: Subject) -> None:
    config = subject.model.config.text
    for case in sorted({key.split(".")[0] for key in golden.tensors}):
        if not golden.has(f"{case}.layer", f"{case}.x", f"{case}.positions"):
            continue
        attn = subject.model.text.blocks[int(golden[f"{case}.layer"])].attn
        assert isinstance(attn, TextAttention)
        x = golden[f"{case}.x"].to(subject.device, subject.model.text.wte.dtype)
        at = rotary_at(golden[f"{case}.positions"].to(subject.device), config)
        qkv = attn.qkv(x)
        golden.close("attention", f"{case}.qkv", qkv)
        if attn.tau is not None:
            by_q, by_v = attn.tau(qkv, at)
            golden.close("tau", f"{case}.tau_q", by_q[..., 0].T)
            golden.close("tau", f"{case}.tau_v", by_v[..., 0].T)
        q, k, v = (heads.transpose(0, 1) for heads in attn.project(x, at))
        golden.close("attention", f"{case}.q", interleaved(q, config.rotary_dim))
        golden.close("attention", f"{case}.k", interleaved(k, config.rotary_dim))
        golden.close("attention", f"{case}.v", v)
        if f"{case}.mask" in golden:
            mask = golden[f"{case}.mask"].to(subject.device)
            mixed = F.scaled_dot_product_attention(
                q[None], k[None], v[None], attn_mask=mask, enable_gqa=len(q) != len(k)
            )
            golden.close("attention", f"{case}.out", attn.output(mixed[0].transpose(0, 1), x, no_adapters))


def _check_experts(golden: Golden, subject: Subject) -> None:
    report = golden.report
    for layer in sorted({key.split(".")[0] for key in golden.tensors}):
        if f"{layer}.x" not in golden:
            continue
        mlp = subject.model.text.blocks[int(layer)].mlp
        assert isinstance(mlp, MoE)
        x = golden[f"{layer}.x"].to(subject.device, subject.model.text.wte.dtype)
        golden.close("MoE router", f"{layer}.router_logits", mlp.router(x), f"block {layer}")
        if f"{layer}.expert_ids" not in golden:
            continue
        ids, weights = mlp.route(x)
        same = (ids.cpu() == golden[f"{layer}.expert_ids"]).all(-1)
        if x.dtype == torch.float32:
            wrong = int((~same).sum())
            report.add("MoE choice", f"block {layer}", wrong, "differences", 0.0)
        # Where rounding decided a near tie otherwise, the other expert is right as well.
        for stage, name, ours in (("MoE weights", "expert_weights", weights), ("MoE output", "out", mlp(x))):
            if f"{layer}.{name}" in golden:
                report.close(stage, f"block {layer}", ours.cpu()[same], golden[f"{layer}.{name}"][same])


def _check_float8_experts(stored: Golden, golden: Golden, subject: Subject) -> None:
    if not golden.has("layer", "x"):
        return
    layer = int(golden["layer"])
    ours = subject.model.text.blocks[layer].mlp
    assert isinstance(ours, MoE)
    block = f"model.text.blocks.{layer}"
    weights = [f"{block}.mlp.{leaf}.weight" for leaf in ("fc1", "fc2")]
    scales = [f"{block}.moe_quant.{scale}" for scale in ("up_scale", "down_scale")]
    if not stored.has(*weights, *scales):
        return
    kept = ours.fc1.weight, ours.fc2.weight
    x = golden["x"].to(subject.device, kept[0].dtype)
    for dtype, name in ((torch.float32, "out_float32_weights"), (torch.bfloat16, "out_bfloat16_weights")):
        for experts, named, scale in zip((ours.fc1, ours.fc2), weights, scales, strict=True):
            weight = torch.empty(experts.weight.shape, dtype=dtype, device=subject.device)
            unscale_float8(stored[named], stored[scale], weight)
            experts.weight = torch.nn.Parameter(weight.to(kept[0].dtype), requires_grad=False)
        golden.close("float8 experts", name, ours(x))
    ours.fc1.weight, ours.fc2.weight = kept


def _check_region(golden: Golden, subject: Subject) -> None:
    region, device = subject.model.region, subject.device
    if "coords" in golden:
        coords = golden["coords"][:, 0].to(device)
        golden.close("region encoders", "coords_encoded", region.encode_coord(coords), "coords")
    if "sizes" in golden:
        sizes = golden["sizes"].to(device)
        golden.close("region encoders", "sizes_encoded", region.encode_size(sizes), "sizes")
    if "hidden" in golden:
        hidden = golden["hidden"].to(device, subject.model.text.wte.dtype)
        golden.close("region decoders", "coord_logits", region.coord_logits(hidden))
        golden.close("region decoders", "size_logits", region.size_logits(hidden))
    if "bins" in golden:
        golden.close("region decoders", "bin_sizes", region.size_of_bin(golden["bins"].to(device)))


def _check_prefill(
    folder: Path, golden: Golden, prepared: dict[str, PreparedImage], subject: Subject
) -> None:
    if "prompt_tokens" not in golden:
        return
    name = json.loads((folder / "runs.json").read_text())["query"][1]["image"]  # the README says so
    if name not in prepared:
        return
    with recorded([*subject.model.text.blocks]) as seen:
        hidden = subject.prefill(prepared[name], golden["prompt_tokens"].tolist())
    if "watched_positions" in golden:
        inputs = seen[0][golden["watched_positions"]]
        golden.close("prefill inputs", "inputs_embeds_watched", inputs, name)
    if golden.has("watched_positions", "layers_watched"):
        watched = golden["watched_positions"]
        states = zip([*seen[1:], hidden], golden["layers_watched"], strict=True)
        for layer, (state, expected) in enumerate(states):
            golden.report.close("prefill blocks", f"block {layer}", state[watched], expected)
    golden.close("prefill", "final_hidden", hidden, "final hidden")
    golden.close("prefill", "last_logits", subject.logits(hidden[-1]), "last logits")


def _check_first_logits(
    folder: Path,
    golden: Golden,
    prepared: dict[str, PreparedImage],
    subject: Subject,
    language: Language,
) -> None:
    """Logits after the last prompt of each run. Where reasoning comes first, its golden tokens are fed."""
    if not golden.tensors or not (folder / "runs.json").is_file():
        return
    documents = json.loads((folder / "runs.json").read_text())
    for skill in ("query", "caption"):
        for index, run in enumerate(documents[skill]):
            image = prepared.get(run["image"]) if run["image"] else None
            grounded = language.config.tokenizer.coord_id in run.get("reasoning", {}).get("tokens", ())
            if f"{skill}.{index}" not in golden or (run["image"] and image is None) or grounded:
                continue  # the golden folder does not have the values of grounded coordinates
            request = _request(skill, run, image)
            inputs = [*SKILLS[skill].prompt(request, language).inputs]
            thought = run.get("reasoning")
            if thought is not None:
                inputs += thought["tokens"][: -1 if thought["ended"] else None] + run["answer_prompt_tokens"]
            key = f"{skill}.{index}"
            logits = _logits(golden, key, subject, image, inputs)
            golden.close("first logits", key, logits, f"{skill} {index}")


def _logits(
    golden: Golden,
    key: str,
    subject: Subject,
    image: PreparedImage | None,
    inputs: Sequence[Input],
    adapted: Adapted | None = None,
) -> Tensor:
    """Behind the last input; with near ties of the routers turned where that is nearer to the golden ones."""
    near, wanted = golden.report.tolerance, golden[key].double()
    first = subject.model.config.image_prefix_length if image is not None else 0
    found: list[tuple[float, Tensor]] = []
    for way in ways(subject.model):
        with turned(way, first, near):
            logits = subject.logits(subject.prefill(image, inputs, adapted)[-1])
        found.append((float((logits.cpu().double() - wanted).norm() / wanted.norm()), logits))
        if found[-1][0] <= near:
            break
    return min(found, key=lambda one: one[0])[1]


def _check_adapter(
    folder: Path, golden: Golden, prepared: dict[str, PreparedImage], subject: Subject
) -> None:
    compared = False
    for skill, run in json.loads((folder / "runs.json").read_text()).get("adapter", {}).items():
        there = run["image"] is None or run["image"] in prepared
        if subject.adapter is not None and there and f"adapter_{skill}" in golden:
            image, key = prepared.get(run["image"]), f"adapter_{skill}"
            logits = _logits(golden, key, subject, image, run["prompt_tokens"], subject.adapted())
            golden.close("adapter first logits", key, logits)
            compared = True
    if not compared:
        golden.report.absent("adapter first logits", "not all of adapter, image and logits are there")


def _check_sampling(golden: Golden) -> None:
    settings = [key.split(".")[0] for key in golden.tensors if key.endswith(".settings")]
    for index in settings if "logits" in golden else ():
        if f"{index}.probs" not in golden:
            continue
        temperature, top_p = golden[f"{index}.settings"].tolist()
        for row, logits in enumerate(golden["logits"] if temperature != 0 else ()):
            ours = probabilities(logits, temperature, top_p)
            golden.report.close("sampling", f"{index}, row {row}", ours, golden[f"{index}.probs"][row])


def _request(skill: str, run: dict[str, Any], image: PreparedImage | None) -> Request:
    settings = Settings(temperature=0, max_tokens=run.get("max_tokens"), max_objects=run.get("max_objects"))
    names = {"question": "question", "reasoning_mode": "reasoning", "spatial_refs": "spatial_refs"}
    names |= {"length": "length", "object": "object"}
    arguments = {ours: run[theirs] for theirs, ours in names.items() if theirs in run}
    return Request(skill, arguments, image, settings)


def runs(folder: Path, subject: Subject, language: Language) -> Iterator[GoldenRun]:
    if not (folder / "runs.json").is_file():
        return
    prepared, documents = images(folder, subject), json.loads((folder / "runs.json").read_text())
    adapted = documents.pop("adapter", {})
    for skill, rows in documents.items():
        for index, run in enumerate(rows):
            if run["image"] is None or run["image"] in prepared:
                where = f"{skill} {index} ({run['image'] or 'no image'})"
                yield _run(skill, where, run, prepared.get(run["image"]), language)
    for skill, run in adapted.items():
        if subject.adapter is not None and (run["image"] is None or run["image"] in prepared):
            where = f"adapter {skill} ({run['image'] or 'no image'})"
            found = _run(skill, where, run, prepared.get(run["image"]), language)
            yield adapter_run(found, subject.adapter)


def _run(
    skill: str, where: str, run: dict[str, Any], image: PreparedImage | None, language: Language
) -> GoldenRun:
    ids = language.config.tokenizer
    request = _request(skill, run, image)
    prompt_ids, kind = run["prompt_tokens"], skill
    if skill in ("detect", "point"):
        return objects_run(where, request, prompt_ids, run)
    answer, thought = run["answer"], run.get("reasoning")
    if thought is not None:
        kind = "reasoning"
    elif "spatial_refs" in run:
        kind = "spatial"
    return GoldenRun(
        stage=f"decode {kind}",
        where=where,
        request=request,
        prompt_ids=prompt_ids,
        tokens=_emitted(answer, ids.eos_id),
        reasoning_tokens=None if thought is None else _emitted(thought, ids.answer_id),
        chunks=answer["chunks"],
        output=text_output(skill, answer["text"], thought),
    )


def _emitted(run: dict[str, Any], end: int) -> list[int]:
    tokens: list[int] = run["tokens"]
    return tokens[:-1] if run["ended"] and tokens[-1] == end else tokens
