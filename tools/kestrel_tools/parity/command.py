"""`kestrel parity DIR`: a golden folder, stage by stage, against the tolerances its README gives."""

import json
import shlex
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import torch
from rich.console import Console

from kestrel_core.build import DTYPES, load_model, parse_device
from kestrel_core.config import RuntimeConfig
from kestrel_core.moondream.checkpoint.files import open_checkpoint, read_json
from kestrel_core.moondream.lora import Stacks
from kestrel_core.protocol.errors import BadCheckpoint
from kestrel_core.runtime.quantising import settle_quantize, stores_float8
from kestrel_core.runtime.torch_runtime import TorchRuntime, best_page_size
from kestrel_tools.parity import md2, md3
from kestrel_tools.parity.adapters import read_golden_adapter
from kestrel_tools.parity.engine_runs import check_engine
from kestrel_tools.parity.options import ParityOptions
from kestrel_tools.parity.report import Report
from kestrel_tools.parity.rounding import RoundedProducts
from kestrel_tools.parity.runs import Judge, check_runs, drive
from kestrel_tools.parity.stages import embeddings
from kestrel_tools.parity.subject import Subject
from kestrel_tools.progress import loading

BFLOAT16_TOLERANCE = 5e-2
FLOAT32_GAP = 1e-4  # of choices whose golden values are not known


class GapTolerance(NamedTuple):
    """Of all choices of an engine that computes in few bits."""

    largest: float
    mean: float


# Rounding alone costs the random network of a golden folder a mean of 0.0061 with a standard deviation of
# 0.0007, of which four more are allowed. Most matrices that are 1.3 times too large cost 0.009 to 0.042, so
# the mean is what notices a fault. The largest of thousands of gaps scatters by a factor of two: 0.11 to 0.21
# in faultless computations, of which a fifth more is allowed. `tools/few_bits_gaps.py` computes these; all
# numbers are in docs/performance-log.md.
FEW_BITS_TOLERANCE = {"fp8": GapTolerance(0.25, 9e-3), "int4": GapTolerance(0.25, 9e-3)}


@torch.inference_mode()
def parity(options: ParityOptions, engine: RuntimeConfig, console: Console) -> bool:
    """Print the table and, last, one line of JSON. True when every stage is within its tolerance.

    With `options.engine` every golden decode also runs through the whole engine: alone, mixed, cached,
    preempted. Of `engine` only what is said about the device half counts.
    """
    folder, exact = options.folder, options.dtype == "float32"
    layout = _layout(folder)
    _refuse_packed(folder)
    _refuse_damaged(folder)
    with loading(console) as progress:
        device, dtype = parse_device(options.device), DTYPES[options.dtype]
        model = load_model(folder, None, device, dtype, progress=progress)
    config, language = model.network.config, model.language
    page_size = best_page_size(config.image_prefix_length)
    rounds = model.device.type == "cpu" and not exact
    products = RoundedProducts() if rounds else nullcontext()
    if exact:
        report, judge = Report(layout.FLOAT32_MEASURE, layout.FLOAT32_TOLERANCE), None
    else:
        report = Report("relative RMS", BFLOAT16_TOLERANCE)
        judge = Judge(model.network, language, BFLOAT16_TOLERANCE)
    files = layout.adapter_files(folder)
    adapter = read_golden_adapter(files, config.text, dtype, report)
    runtime = TorchRuntime(
        model.network,
        1 + -(-config.text.max_context // page_size),
        page_size,
        stacks=Stacks(config.text, 1, adapter.rank, model.device, dtype) if adapter else None,
    )
    golden = {} if exact else embeddings(folder, layout.EMBEDDINGS)
    subject = Subject(model.network, model.device, runtime.encode_image, golden, adapter)
    with console.status("stages"), products:
        layout.check_stages(folder, subject, language, report)
    runs = list(layout.runs(folder, subject, language))
    if all(run.adapter is None for run in runs):
        report.absent("adapter decode", "not all of adapter, image and answers are there")
    with console.status(f"decoding {len(runs)} runs"), products:
        check_runs(runs, language, drive(runtime, config.image_prefix_length), report, judge)
    if options.engine:
        with products:
            judging = judge or Judge(model.network, language, FLOAT32_GAP)
            bits = settle_quantize(engine.quantize, "off", model.network)  # where it cannot be had, it is off
            if bits == "off" and stores_float8(engine.kv_dtype, model.network):
                bits = "fp8"
            if few := FEW_BITS_TOLERANCE.get(bits):
                judging, exact = Judge(model.network, language, *few), False
            check_engine(model, runs, runtime.encode_image, files, engine, report, judging, exact, console)
    told = f"{options.device}, {options.dtype}{' (float32 products, rounded once)' * rounds}"
    told += f", engine in {model.fast_paths.quantised}" * (model.fast_paths.quantised != "off")
    console.print(report.table(f"Moondream {config.generation}, {told}"))
    document = {"folder": folder.name, "device": options.device, "dtype": options.dtype}
    document["quantize"] = model.fast_paths.quantised
    print(json.dumps(document | report.document()), flush=True)
    return report.passed


def _layout(folder: Path) -> ModuleType:
    """The module that reads this kind of golden folder."""
    if not folder.is_dir():
        raise BadCheckpoint(f"{folder} is not a folder; give one with a checkpoint and its golden values")
    if (folder / "expected.json").is_file():
        return md2
    if (folder / "runs.json").is_file():
        return md3
    raise BadCheckpoint(f"{folder} has neither expected.json nor runs.json, so no golden values")


def _refuse_packed(folder: Path) -> None:
    """tests/golden keeps its checkpoints packed; other safetensors beside them would be taken for one."""
    checkpoint = folder / "model.safetensors"
    packed = checkpoint.with_name(f"{checkpoint.name}.xz")
    if packed.is_file() and not checkpoint.is_file():
        command = f"cp -r {shlex.quote(str(folder))} unpacked && xz -d unpacked/*.xz"
        raise BadCheckpoint(f"{packed} is packed; unpack a copy of the folder: {command}")


def _refuse_damaged(folder: Path) -> None:
    """Name a damaged golden file at once, in one sentence, before some stage fails on it."""
    for file in folder.glob("*.json"):
        read_json(file)
    for file in folder.glob("*.safetensors"):
        open_checkpoint(file)
