"""`kestrel quantize`: from pictures to the scales of a model's products in float8."""

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from kestrel_core.build import LoadedModel, open_model
from kestrel_core.config import RuntimeConfig
from kestrel_core.intake.image_limits import ImageLimits
from kestrel_core.intake.image_preparer import ImagePreparer
from kestrel_core.intake.models import MODELS, find_model
from kestrel_core.moondream.fast_vision import deviation
from kestrel_core.moondream.float8_vision import float8_vision
from kestrel_core.moondream.ops.choose import choose_fused
from kestrel_core.moondream.ops.choose_few_bits import choose_products
from kestrel_core.moondream.scales import FILE, InputScales, measure_scales
from kestrel_core.protocol.errors import BadImage, InvalidRequest
from kestrel_tools.bench.requests.charts import draw_chart
from kestrel_tools.progress import counted, loading
from kestrel_tools.quantize.options import QuantizeOptions
from kestrel_tools.scenes.pictures import new_picture

SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".gif", ".tif", ".tiff", ".bmp", ".avif")
QUESTIONS = (
    "What is in this picture?",
    "How many people are there, and what are they doing?",
    "What does the text say?",
    "Which year has the highest value, and what is it?",
)
JUDGED_CROPS = 2

Picture = tuple[Tensor, tuple[int, int]]  # crops, and how their tiles lie


def quantize(options: QuantizeOptions, config: RuntimeConfig, console: Console) -> InputScales:
    """Measure, write, and print what was found."""
    config = replace(_named(options.model, config), quantize="off")  # whatever the environment says
    with loading(console) as progress:
        model = open_model(config, progress)
    out = options.out or (model.folder / FILE if model.folder is not None else None)
    if out is None:
        raise InvalidRequest("random weights lie in no folder; say where to with --out FILE")
    pictures = list(_pictures(options, model, console))
    with counted("pictures", len(pictures), console) as advance:
        scales = measure_scales(model.network, pictures, _prompts(model), lambda done, total: advance(1))
    try:
        scales.write(out)
    except OSError as error:
        raise InvalidRequest(f"{out} cannot be written ({error}); say where to with --out FILE") from error
    console.print(_table(scales))
    console.print(f"vision in float8 is off by {_vision_off(model, scales, pictures):.1%} of the RMS")
    console.print(f"{out}: the scales of {len(scales.largest)} products, from {len(pictures)} pictures")
    return scales


def _named(model: str, config: RuntimeConfig) -> RuntimeConfig:
    if model in MODELS:
        return replace(config, model=model, model_path=None)
    if Path(model).exists():
        return replace(config, model_path=model)
    find_model(model)  # which says what there is
    raise AssertionError


def _pictures(options: QuantizeOptions, model: LoadedModel, console: Console) -> Iterator[Picture]:
    limits = ImageLimits(RuntimeConfig().max_image_bytes, RuntimeConfig().max_image_pixels)
    prepare = ImagePreparer(model.network.config.vision, limits, time.monotonic, lambda seconds: None)
    taken = 0
    for name, source in _sources(options):
        try:
            image = prepare(source)
        except BadImage as error:
            console.print(f"{name} is left out: {error}", markup=False, highlight=False)
            continue
        taken += 1
        yield torch.from_numpy(image.crops), image.tiling
    if not taken:
        raise InvalidRequest(f"{options.pictures} has no picture that can be read ({', '.join(SUFFIXES)})")


def _sources(options: QuantizeOptions) -> Iterator[tuple[str, bytes | Path]]:
    if options.pictures is None:
        for number in range(options.count):
            drawn = draw_chart(number) if number % 2 else new_picture(0, number).data
            yield f"picture {number}", drawn
        return
    files = sorted(file for file in options.pictures.iterdir() if file.suffix.lower() in SUFFIXES)
    for file in files[: options.count]:
        yield file.name, file


def _prompts(model: LoadedModel) -> list[list[int]]:
    templates, encode = model.language.config.tokenizer.templates, model.language.tokenizer.encode
    lead = model.language.config.dialog.question_lead
    asked = [
        [*templates.query.prefix, *encode(lead + question), *templates.query.suffix] for question in QUESTIONS
    ]
    return [*asked, list(templates.caption.normal), list(templates.caption.long)]


def _vision_off(model: LoadedModel, scales: InputScales, pictures: list[Picture]) -> float:
    vision, fused = model.network.vision, choose_fused(model.device)
    with torch.inference_mode():
        products = choose_products(fused, model.device, vision.pos_emb.dtype)
        encoder = float8_vision(vision, fused, products, scales)
        crops = torch.cat([crops[:1] for crops, _ in pictures[:JUDGED_CROPS]])
        return deviation(vision, encoder, crops.to(model.device))


def _table(scales: InputScales) -> Table:
    """By kind of product: the largest input of the block with the smallest, and of that with the largest."""
    kinds: dict[tuple[str, str], list[float]] = {}
    for name, value in scales.largest.items():
        half, _, _, *parts = name.split(".")
        kinds.setdefault((half, ".".join(parts)), []).append(value)
    table = Table(title="Largest inputs, over the blocks")
    for column in ("", "product", "blocks", "smallest", "largest"):
        table.add_column(column, justify="left" if column in ("", "product") else "right")
    for (half, layer), values in kinds.items():
        table.add_row(half, layer, str(len(values)), f"{min(values):.3g}", f"{max(values):.3g}")
    return table
