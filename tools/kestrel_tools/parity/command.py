"""`kestrel parity DIR`: a golden folder, stage by stage, against the tolerances its README gives."""

import json
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType

import torch
from rich.console import Console
from rich.progress import Progress

from kestrel_core.build import DTYPES, load_model, parse_device
from kestrel_core.config import RuntimeConfig
from kestrel_core.moondream.checkpoint.files import open_checkpoint, read_json
from kestrel_core.protocol.errors import BadCheckpoint
from kestrel_core.runtime.torch_runtime import TorchRuntime, best_page_size
from kestrel_tools.parity import md2, md3
from kestrel_tools.parity.engine_runs import check_engine
from kestrel_tools.parity.report import Report
from kestrel_tools.parity.rounding import RoundedProducts
from kestrel_tools.parity.runs import check_runs, drive
from kestrel_tools.parity.subject import Subject

BFLOAT16_TOLERANCE = 5e-2


@torch.inference_mode()
def parity(
    folder: Path, device: str, dtype: str, console: Console, engine: RuntimeConfig | None = None
) -> bool:
    """Print the table and, last, one line of JSON. True when every stage is within its tolerance.

    With `engine` every golden decode also runs through the whole engine: alone, mixed, cached, preempted.
    Of it only what is said about the device half counts.
    """
    if not folder.is_dir():
        raise BadCheckpoint(f"{folder} is not a folder; give one with a checkpoint and its golden values")
    if (folder / "expected.json").is_file():
        layout: ModuleType = md2
    elif (folder / "runs.json").is_file():
        layout = md3
    else:
        raise BadCheckpoint(f"{folder} has neither expected.json nor runs.json, so no golden values")
    _refuse_damaged(folder)
    with Progress(console=console, transient=True) as progress:
        bar = progress.add_task("weights", total=None)
        model = load_model(
            folder,
            None,
            parse_device(device),
            DTYPES[dtype],
            progress=lambda done, total: progress.update(bar, completed=done, total=total),
        )
    exact = dtype == "float32"
    config, language = model.network.config, model.language
    page_size = best_page_size(config.image_prefix_length)
    runtime = TorchRuntime(model.network, 1 + -(-config.text.max_context // page_size), page_size)
    subject = Subject(
        model.network,
        model.device,
        runtime.encode_image,
        {} if exact else layout.embeddings(folder),
    )
    rounds = model.device.type == "cpu" and not exact
    products = RoundedProducts() if rounds else nullcontext()
    report = (
        Report(layout.FLOAT32_MEASURE, layout.FLOAT32_TOLERANCE)
        if exact
        else Report("relative RMS", BFLOAT16_TOLERANCE)
    )
    with console.status("stages"), products:
        layout.check_stages(folder, subject, language, report)
    runs = list(layout.runs(folder, subject, language))
    with console.status(f"decoding {len(runs)} runs"), products:
        check_runs(runs, language, drive(runtime, config.image_prefix_length), report, exact)
    if engine is not None:
        with products:
            check_engine(model, runs, runtime.encode_image, engine, report, exact, console)
    title = f"Moondream {config.generation}, {device}, {dtype}{' (float32 products, rounded once)' * rounds}"
    report.print(title, console)
    document = {"folder": folder.name, "device": device, "dtype": dtype, **report.document()}
    print(json.dumps(document), flush=True)
    return report.passed


def _refuse_damaged(folder: Path) -> None:
    """Half a golden file is named here in one sentence, not by whichever stage trips over it."""
    for file in folder.glob("*.json"):
        read_json(file)
    for file in folder.glob("*.safetensors"):
        open_checkpoint(file)
