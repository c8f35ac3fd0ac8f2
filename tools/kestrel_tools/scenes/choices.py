"""`kestrel eval choices`: whether plain torch makes the recorded choices, and where not, how near it comes.

Greedy choices of two right computations differ only where two logits lie within rounding of each other, so a
difference is explained by its gap: how far, by the reference, what was chosen lies below the best. Gaps are
measured in roundings: one is how far the row's largest logit can move when it is rounded to the engine's
dtype, 2^-24 of it in float32, 2^-8 in bfloat16.
"""

import time
from collections.abc import Iterator
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from kestrel_core.build import DTYPES, LoadedModel, open_model
from kestrel_core.config import RuntimeConfig
from kestrel_core.protocol.errors import InvalidRequest
from kestrel_core.protocol.messages import Request, Settings
from kestrel_core.skills.registry import builtin_skills
from kestrel_core.skills.spec import Language
from kestrel_tools.bench.machine.versions import provenance
from kestrel_tools.bench.results import wide, write_document
from kestrel_tools.noted import Walk, walk
from kestrel_tools.progress import counted
from kestrel_tools.reference import Reference

from .asking import settings_of
from .command import pictures_of
from .options import ChoicesOptions, EvalOptions
from .pictures import Pictures
from .record import Record, Recorded, crops_digest, prepare
from .verdict import UNITS, Verdict

# By how many roundings two right computations may differ. In 16 bits the two logits themselves are rounded,
# which makes 2, and so was every layer before them. In float32 a sum is rounded at each of its terms, and
# devices add in different orders. Measured values are in docs/performance-log.md.
NEAR = {"float32": 64.0, "bfloat16": 4.0, "float16": 4.0}
# Of an engine that computes in few bits, in roundings of its 16 bits. Not measured yet.
FEW_BITS_NEAR = {"fp8": 24.0, "int4": 48.0}
MODEL = ("model", "model_path", "tokenizer_path", "weights", "seed")  # fields of a config
COLUMNS = (
    *("what", "choices", "equal", "different", "far"),
    *("gap in logits: median", "largest", "in spreads: median", "largest", "in roundings: median", "largest"),
)


def near_of(dtype: str, quantize: str, kv_dtype: str = "auto") -> float:
    return FEW_BITS_NEAR.get(quantize, FEW_BITS_NEAR.get(kv_dtype, NEAR[dtype]))


def eval_choices(options: ChoicesOptions, console: Console) -> bool:
    """Print the tables; True when all was recorded and every difference is a near tie."""
    record = Record(options.file)
    about = record.about
    folder = Path(about["folder"]) if about["folder"] else None
    world = about.get("world", "shapes")  # older records are all of shapes
    atlas = options.atlas or (Path(about["atlas"]) if about.get("atlas") else None)  # and do not name it
    number, seed = about["num_pictures"], about["seed"]
    pictures = pictures_of(EvalOptions(number, seed, pictures=folder, world=world, atlas=atlas))
    said = {"model_path": options.model_path} if options.model_path else {}
    named = {name: about["config"][name] for name in MODEL} | said
    model = open_model(RuntimeConfig(**named, device=options.device, dtype=options.dtype))
    dtype = about["dtype"]
    config = about["config"]
    bits = config.get("quantize", "off"), config.get("kv_dtype", "auto")
    near = near_of(dtype, *bits) if options.near is None else options.near
    verdict = Verdict(torch.finfo(DTYPES[dtype]).eps / 2, near, len(pictures))
    began = time.monotonic()
    check(record, pictures, model, verdict, console)
    document = {
        "recorded": about,
        "reference": {
            **asdict(options),
            "file": options.file.name,
            "atlas": str(atlas) if atlas else None,
            "report": None,
            **provenance(options.device),
        },
        "seconds": round(time.monotonic() - began, 1),
        **verdict.document(),
    }
    show(document, console)
    write_document(options.report, document)
    return verdict.passed


def check(record: Record, pictures: Pictures, model: LoadedModel, verdict: Verdict, console: Console) -> None:
    """Judge all that was recorded, a picture at a time."""
    reference, vision = Reference(model.network), model.network.config.vision
    groups: Iterator[tuple[str, Iterator[Recorded]]] = groupby(record, key=lambda one: one.picture)
    with counted("pictures", len(pictures), console) as advance:
        for index, (name, group) in enumerate(groups):
            picture = pictures[index] if index < len(pictures) else None
            if picture is None or picture.name != name:
                raise InvalidRequest(f'the record\'s picture {index} is "{name}", which is not so here')
            requests, image = list(group), prepare(picture.data, vision)
            walks = [retrace(one, record.settings, model.language) for one in requests]
            for one, judged in zip(requests, reference.judge(image, walks), strict=True):
                verdict.add(one, judged)
            verdict.add_picture(any(one.crops not in (None, crops_digest(image)) for one in requests))
            advance(1)


def retrace(recorded: Recorded, settings: Settings, language: Language) -> Walk:
    skill, has_image = builtin_skills()[recorded.skill], recorded.crops is not None
    image = object() if has_image else None  # skills only ask whether there is one
    asked_with = settings_of(recorded.skill, settings)
    request = Request(recorded.skill, recorded.arguments, image, asked_with)
    prompt, reply = skill.prompt(request, language), skill.reply(request, language)
    return walk(str(recorded), prompt.inputs, reply, recorded.choices, has_image)


def show(document: dict[str, Any], console: Console) -> None:
    console = wide(console)
    recorded, config, reference = document["recorded"], document["recorded"]["config"], document["reference"]
    console.print(
        f"{document['num_pictures']} pictures, {document['num_requests']:,} requests, recorded from "
        f"{config['model_path'] or config['model']}: {recorded['dtype']} on {config['device']}, runtime "
        f"{config['runtime']}; beside it plain torch: {reference['dtype']} on {reference['device']}, "
        f"{document['seconds']:,.0f} s",
        markup=False,
        highlight=False,
    )
    table = Table(title=f"choices; near ties have gaps up to {document['near']:g} roundings")
    for name in COLUMNS:
        table.add_column(name, justify="left" if name == "what" else "right")
    for row in document["choices"]:
        counts = (f"{row[name]:,}" for name in ("choices", "equal", "different", "far"))
        gaps = (row[unit] for unit in UNITS)
        shown = [f"{gap[name]:.3g}" if gap else "" for gap in gaps for name in ("median", "largest")]
        table.add_row(row["kind"], *counts, *shown, style="bold red" if row["far"] else "")
    histogram = Table(*document["histogram"], title="different ones by their gap in logits")
    histogram.add_row(*map(str, document["histogram"].values()))
    console.print(table, histogram)
    for one in document["worst"]:
        asked = f"picture {one['picture']}, request {one['number']}, {one['skill']} {one['arguments']}"
        gap = f"{one['logits']:.3g} logits, {one['spreads']:.3g} spreads, {one['roundings']:.3g} roundings"
        chosen = f"{one['kind']} {one['chosen']} instead of {one['best']}"
        console.print(f"{asked}: {chosen}, {gap}", markup=False, highlight=False)
    if noise := document["noise"]:
        told = ", ".join(f"{name} {value:.3g}" for name, value in noise.items())
        console.print(f"noise of the two likeliest tokens' distance, roundings: {told}", highlight=False)
    if document["num_redrawn"]:
        console.print(
            f"{document['num_redrawn']} pictures are not to the pixel what was recorded: machines draw "
            "differently by a shade. Check where it was recorded to leave that out.",
            highlight=False,
        )
    if document["num_pictures"] < document["num_expected"]:
        console.print(f"{document['num_expected'] - document['num_pictures']} pictures are not in the record")
    for failed in document["failed"]:
        console.print(failed, markup=False, highlight=False)
