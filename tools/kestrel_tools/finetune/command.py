"""`kestrel finetune`: from lines to an adapter that the server takes, with all that tells how it went."""

import json
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import Any

from rich.console import Console

from kestrel_core.build import LoadedModel, open_model
from kestrel_core.config import RuntimeConfig
from kestrel_core.intake.image_preparer import ImagePreparer
from kestrel_core.intake.images import ImageLimits
from kestrel_core.moondream.checkpoint.adapter_writing import write_moondream, write_peft
from kestrel_core.moondream.loading import DTYPES
from kestrel_core.protocol.errors import InvalidRequest
from kestrel_core.skills.registry import builtin_skills
from kestrel_tools.bench.machine import provenance
from kestrel_tools.curves import write_curves
from kestrel_tools.progress import counted, loading, told

from . import checkpoint
from .features import Features, pictures_of
from .lines import Data, Prepare, read_data
from .options import FinetuneOptions
from .order import Split, split
from .parameters import Parameters
from .training import Run, State, Trainer

FREE_TO_CHANGE = (
    "data",
    "out",
    "eval_data",
    "max_minutes",
    "recompute",
    "stored",
    "resume",
    "overwrite",
    "scored",
)


def finetune(options: FinetuneOptions, config: RuntimeConfig, console: Console) -> None:
    """Raises `KeyboardInterrupt` after an interrupted step, when the checkpoint is kept."""
    kept = options.out / "checkpoint"
    _check_folder(options, kept)
    with loading(console) as progress:
        model = open_model(config, progress)
    prepare = _preparer(model, config)
    data, split_lines = _read(options, model, prepare, console)
    options.out.mkdir(parents=True, exist_ok=True)
    if options.overwrite:
        shutil.rmtree(kept, ignore_errors=True)
    features = Features(kept / "pictures")
    with counted("pictures", len(pictures_of(data.lines)) or 1, console) as advance:
        features.compute(model.network, data.lines, prepare, advance)
    parameters = Parameters(model.network.config, options.rank, model.device, options.seed)
    trainer = Trainer(model.network, parameters, features, options)
    made_of = _made_of(options, config, model, data)
    state, best = checkpoint.restore(kept, trainer, made_of) if options.resume else (State(), {})
    _say(console, _begun(split_lines, parameters, options, state))
    with told(console) as tell, _interruptible() as interrupted:
        run = Run(
            trainer,
            state,
            best,
            [line.lesson for line in split_lines.training],
            [line.lesson for line in split_lines.evaluation],
            options,
            tell,
            lambda text: _say(console, text),
            interrupted,
            lambda: checkpoint.save(kept, trainer, state, best, made_of),
        )
        try:
            run.go()
        except KeyboardInterrupt:
            _say(console, f"interrupted after step {state.step:,}; --resume goes on from there")
            raise
    _write(options, config, model, parameters, state, data, split_lines)
    checkpoint.save(kept, trainer, state, best, made_of)
    shutil.rmtree(kept / "pictures", ignore_errors=True)  # of no use any more, and large
    _say(console, _ended(options, state))


def _check_folder(options: FinetuneOptions, kept: Path) -> None:
    if options.resume and options.overwrite:
        raise InvalidRequest("--resume goes on with a run and --overwrite begins anew; give one of them")
    if options.resume and not checkpoint.exists(kept):
        raise InvalidRequest(f"{options.out.name} holds no run to resume; leave out --resume")
    found = checkpoint.exists(kept) or (options.out / "adapter.safetensors").exists()
    if found and not options.resume and not options.overwrite:
        raise InvalidRequest(
            f"{options.out.name} holds a run already; --resume goes on with it, --overwrite begins anew"
        )


def _preparer(model: LoadedModel, config: RuntimeConfig) -> Prepare:
    limits = ImageLimits(config.max_image_bytes, config.max_image_pixels)
    return ImagePreparer(model.network.config.vision, limits, time.monotonic, lambda seconds: None)


def _read(
    options: FinetuneOptions, model: LoadedModel, prepare: Prepare, console: Console
) -> tuple[Data, Split]:
    def read(path: Path) -> Data:
        with told(console) as tell:
            tell(f"checking the lines of {path.name}")
            return read_data(path, model.language, builtin_skills(), prepare)

    data = read(options.data)
    if options.eval_data is None:
        divided = split(data.lines, options.eval_share, options.seed)
        return data, divided
    other = read(options.eval_data)
    both = Data([*data.lines, *other.lines], data.digest + other.digest)
    return both, Split(data.lines, other.lines)


def _made_of(
    options: FinetuneOptions, config: RuntimeConfig, model: LoadedModel, data: Data
) -> dict[str, Any]:
    """All that decides what a run comes to."""
    chosen = {name: value for name, value in asdict(options).items() if name not in FREE_TO_CHANGE}
    return {
        **chosen,
        "model": config.model_path or config.model,
        "dtype": str(model.network.text.wte.dtype).removeprefix("torch."),
        "data": data.digest,
    }


def _write(
    options: FinetuneOptions,
    config: RuntimeConfig,
    model: LoadedModel,
    parameters: Parameters,
    state: State,
    data: Data,
    lines: Split,
) -> None:
    out = options.out
    adapter = parameters.adapter(DTYPES[options.stored])
    shape = model.network.config.text
    write_moondream(adapter, shape, out / "adapter.safetensors")
    write_peft(adapter, shape, out / "peft", config.model)
    document = {
        "made_of": _made_of(options, config, model, data),
        "lines": len(lines.training),
        "evaluation_lines": len(lines.evaluation),
        "pictures": len(pictures_of(data.lines)),
        "numbers": parameters.num_numbers,
        **provenance(config.device),
        **asdict(state),
    }
    if not state.eval_losses:
        document["best_loss"] = None
    (out / "training.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    curves = {"training": smoothed(state.training_losses), "evaluation": state.eval_losses}
    write_curves(out / "loss.svg", {name: curve for name, curve in curves.items() if curve}, "steps")


def smoothed(losses: list[tuple[int, float]], at_most: int = 200) -> list[tuple[int, float]]:
    """Means over neighbours, so that a curve has `at_most` points."""
    size = -(-len(losses) // at_most) or 1
    parts = [losses[start : start + size] for start in range(0, len(losses), size)]
    return [(part[-1][0], sum(loss for _, loss in part) / len(part)) for part in parts]


def _begun(lines: Split, parameters: Parameters, options: FinetuneOptions, state: State) -> str:
    pictures = len(pictures_of([*lines.training, *lines.evaluation]))
    again = f", from step {state.step:,} on" if state.step else ""
    return (
        f"{len(lines.training):,} lines to train with and {len(lines.evaluation):,} to evaluate with, "
        f"{pictures:,} pictures; rank {options.rank}, {parameters.num_numbers:,} numbers{again}"
    )


def _ended(options: FinetuneOptions, state: State) -> str:
    best = (
        f", best evaluation loss {state.best_loss:.4f} at step {state.best_step:,}"
        if state.eval_losses
        else ""
    )
    return f"{state.ended}: {state.step:,} steps in {state.seconds:,.0f} s{best}; see {options.out}/loss.svg"


def _say(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False)


@contextmanager
def _interruptible() -> Iterator[Callable[[], bool]]:
    """Yields whether Ctrl-C was pressed: a step is finished first. Pressed again, it ends at once."""
    pressed = False

    def press(number: int, frame: FrameType | None) -> None:
        nonlocal pressed
        pressed = True
        signal.signal(signal.SIGINT, signal.default_int_handler)

    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    before = signal.signal(signal.SIGINT, press)
    try:
        yield lambda: pressed
    finally:
        signal.signal(signal.SIGINT, before)
