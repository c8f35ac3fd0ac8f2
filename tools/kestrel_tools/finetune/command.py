"""`kestrel finetune`: from lines to an adapter that the server takes, with all that tells how it went."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from types import FrameType
from typing import Any

from rich.console import Console

from kestrel_core.build import LoadedModel, assemble_engine, open_model
from kestrel_core.config import RuntimeConfig
from kestrel_core.intake.image_limits import ImageLimits
from kestrel_core.intake.image_preparer import ImagePreparer
from kestrel_core.intake.local_adapters import MAX_NAME, PEFT_CONFIG, PEFT_TENSORS, is_name
from kestrel_core.intake.models import MODELS
from kestrel_core.moondream.checkpoint.adapter_writing import write_moondream, write_peft
from kestrel_core.moondream.config import TextConfig
from kestrel_core.moondream.loading import DTYPES
from kestrel_core.moondream.lora import expert_rank
from kestrel_core.protocol.errors import InvalidRequest
from kestrel_core.protocol.names import shown
from kestrel_core.skills.registry import builtin_skills
from kestrel_tools.bench.machine.versions import provenance
from kestrel_tools.bench.results import write_document
from kestrel_tools.curves import write_curves
from kestrel_tools.progress import counted, loading, told
from kestrel_tools.scenes.answers import EngineAnswers

from . import checkpoint, scoring
from .features import Features, pictures_of
from .lines import Asked, Data, Lessons, read_data
from .options import FinetuneOptions
from .order import Split, split
from .parameters import TRAINED, Parameters, trained
from .training import Run, State, Trainer

ADAPTER, PEFT = "adapter.safetensors", "peft"  # a file and a folder
REPORT, PLOT = "training.json", "loss.svg"
CHECKPOINT = "checkpoint"  # a folder, and the next one in it
PICTURES = f"{CHECKPOINT}/pictures"
OF_PICTURES = (f"{PICTURES}/*.features", f"{PICTURES}/*.new")
MADE = (  # the files that a run leaves
    ADAPTER,
    f"{PEFT}/{PEFT_TENSORS}",
    f"{PEFT}/{PEFT_CONFIG}",
    REPORT,
    PLOT,
    f"{CHECKPOINT}/{checkpoint.FILE}",
    f"{CHECKPOINT}/{checkpoint.FILE}.new",
    *OF_PICTURES,
)
SCORING_BATCH = 16
# What a run that goes on may have otherwise than before.
FREE = ("data", "out", "eval_data", "max_minutes", "recompute", "stored", "resume", "overwrite", "scored")


def finetune(options: FinetuneOptions, config: RuntimeConfig, console: Console) -> dict[str, Any]:
    """Returns what training.json holds.

    Raises `KeyboardInterrupt` after an interrupted step, when the checkpoint is kept.
    """
    out, kept = options.out, options.out / CHECKPOINT
    _check_folder(options, kept)
    with loading(console) as progress:
        model = open_model(config, progress)
    _check_reach(options, model.network.config.text)
    limits = ImageLimits(config.max_image_bytes, config.max_image_pixels)
    prepare = ImagePreparer(model.network.config.vision, limits, time.monotonic, lambda seconds: None)
    data, lines = _read(options, Lessons(model.language, builtin_skills(), prepare), console)
    _make_folder(options, kept)
    features, pictures = Features(out / PICTURES), pictures_of(data.lines)
    with counted("pictures", max(1, len(pictures)), console) as advance:
        features.compute(model.network, pictures, prepare, advance)
    targets = trained(model.network.config.generation, options.targets)
    parameters = Parameters(
        model.network.config,
        options.rank,
        model.device,
        options.seed,
        targets,
        blocks=options.blocks,
        expert_rank=options.expert_rank,
    )
    trainer = Trainer(model.network, parameters, features, options)
    made_of = _made_of(options, config, model, data)
    state, best = checkpoint.restore(kept, trainer, made_of) if options.resume else (State(), {})
    _say(
        console,
        f"{len(lines.training):,} lines to train with and {len(lines.evaluation):,} to evaluate with, "
        f"{len(pictures):,} pictures; rank {options.rank}, {parameters.num_numbers:,} numbers",
    )

    def keep() -> None:
        checkpoint.save(kept, trainer, state, best, made_of)

    with told(console) as tell, _interruptible() as interrupted:
        run = Run(
            trainer,
            state,
            best,
            [line.lesson for line in lines.training],
            [line.lesson for line in lines.evaluation],
            options,
            tell,
            lambda text: _say(console, text),
            interrupted,
            keep,
        )
        try:
            run.go()
        except KeyboardInterrupt:
            _say(console, f"interrupted after step {state.step:,}; --resume goes on from there")
            raise
    _write_adapter(options, config, model, parameters)
    write_plot(out / PLOT, state)
    asked = [line.asked for line in lines.evaluation[: options.scored]]
    document = {
        "made_of": made_of,
        "lines": {"training": len(lines.training), "evaluation": len(lines.evaluation)},
        "evaluation_lines": [line.asked.number for line in lines.evaluation],
        "pictures": len(pictures),
        "numbers": parameters.num_numbers,
        **provenance(config.device),
        **asdict(state),
        "best_loss": state.best_loss if state.eval_losses else None,
        "scores": None,
    }
    write_document(out / REPORT, document)
    if asked:
        document["scores"] = _scores(asked, model, config, options, console)
        write_document(out / REPORT, document)
    if run.is_complete:
        with suppress(OSError):
            _remove(out, *OF_PICTURES)  # of no use any more, and large
    best_was = f", best at step {state.best_step:,}" if state.eval_losses else ""
    _say(console, f"{state.ended}: {state.step:,} steps in {state.seconds:,.0f} s{best_was}; {out} holds it")
    return document


def _check_folder(options: FinetuneOptions, kept: Path) -> None:
    if options.resume and options.overwrite:
        raise InvalidRequest("--resume goes on with a run and --overwrite begins anew; give one of them")
    if options.resume and not checkpoint.exists(kept):
        raise InvalidRequest(f"{options.out} holds no run to resume; leave out --resume")
    name = os.path.basename(os.path.realpath(options.out))
    if not is_name(f"{name}/{PEFT}"):  # the longer one of the two that the adapter has
        raise InvalidRequest(
            f'--out ends in "{shown(name)}", which no server takes for the name of an adapter; it has up to '
            f"{MAX_NAME - len(PEFT) - 1} letters that can be printed, and does not begin with a dot"
        )
    for folder in (options.out, options.out / PEFT, kept):
        if os.path.lexists(folder) and not os.path.isdir(folder):
            raise InvalidRequest(
                f"{folder} is no folder, and a run makes one there; --out can be another place"
            )
    if options.resume or options.overwrite:
        return
    if checkpoint.exists(kept):
        raise InvalidRequest(
            f"{options.out} holds a run already; --resume goes on with it, --overwrite begins anew"
        )
    for made in (ADAPTER, PEFT, REPORT, PLOT):
        if os.path.lexists(options.out / made):
            raise InvalidRequest(
                f"{options.out} holds {made} already, where a run writes its own; "
                "--overwrite replaces what a run writes, and --out can be another place"
            )


def _make_folder(options: FinetuneOptions, kept: Path) -> None:
    try:
        if options.overwrite:
            _remove(options.out, *MADE)
        kept.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidRequest(f"{options.out} cannot be written to ({error.strerror})") from None


def _remove(out: Path, *patterns: str) -> None:
    """A run's own files, and its folders that are empty then: whatever else lies there is somebody's."""
    for path in [path for pattern in patterns for path in out.glob(pattern)]:
        path.unlink()
    for folder in (PEFT, PICTURES, CHECKPOINT):
        with suppress(OSError):
            os.rmdir(out / folder)


def _check_reach(options: FinetuneOptions, config: TextConfig) -> None:
    blocks, own_rank = options.blocks, options.expert_rank
    if blocks is not None and blocks > config.n_layers:
        raise InvalidRequest(f"blocks is {blocks}; the model has {config.n_layers}")
    if own_rank is not None and config.moe is None:
        raise InvalidRequest("expert_rank is for models with experts; this one has none")
    if own_rank is not None and own_rank > (most := expert_rank(config, options.rank)):
        raise InvalidRequest(f"expert_rank is {own_rank}; with rank {options.rank} it can be up to {most}")


def _read(options: FinetuneOptions, lessons: Lessons, console: Console) -> tuple[Data, Split]:
    def read(path: Path) -> Data:
        size, done = os.path.getsize(path) if os.path.isfile(path) else 0, 0
        with told(console) as tell:

            def advance(num_bytes: int) -> None:
                nonlocal done
                done += num_bytes
                tell(f"checking the lines of {path.name}: {done / size:.0%}")

            return read_data(path, builtin_skills(), lessons, advance)

    data = read(options.data)
    if options.eval_data is None:
        return data, split(data.lines, options.eval_share, options.seed)
    other = read(options.eval_data)
    both = Data([*data.lines, *other.lines], data.digest + other.digest)
    return both, Split(data.lines, other.lines)


def _made_of(
    options: FinetuneOptions, config: RuntimeConfig, model: LoadedModel, data: Data
) -> dict[str, Any]:
    """All that decides what a run comes to."""
    return {
        **{name: value for name, value in asdict(options).items() if name not in FREE},
        "model": config.model_path or config.model,
        "dtype": str(model.network.text.wte.dtype).removeprefix("torch."),
        "data": data.digest,
    }


def _write_adapter(
    options: FinetuneOptions, config: RuntimeConfig, model: LoadedModel, parameters: Parameters
) -> None:
    adapter, shape = parameters.adapter(DTYPES[options.stored]), model.network.config.text
    if parameters.targets <= set(TRAINED[model.network.config.generation]):
        write_moondream(adapter, shape, options.out / ADAPTER)
    else:  # a server would take one that lies there for this run's, and not the folder beside it
        (options.out / ADAPTER).unlink(missing_ok=True)
    write_peft(adapter, shape, options.out / PEFT, _base_model(config))


def _base_model(config: RuntimeConfig) -> str:
    """As PEFT names it: by its repository, where it has one."""
    known = MODELS.get(config.model)
    if config.model_path is not None or known is None:
        return Path(config.model_path or config.model).name
    return known.repository.name if known.repository is not None else known.name


def write_plot(path: Path, state: State) -> None:
    curves = {"training": smoothed(state.training_losses), "evaluation": state.eval_losses}
    write_curves(path, {name: curve for name, curve in curves.items() if curve}, "steps")


def smoothed(losses: list[tuple[int, float]], at_most: int = 200) -> list[tuple[int, float]]:
    """Means over neighbours, so that a curve has `at_most` points."""
    size = -(-len(losses) // at_most) or 1
    parts = [losses[start : start + size] for start in range(0, len(losses), size)]
    return [(part[-1][0], sum(loss for _, loss in part) / len(part)) for part in parts]


def _scores(
    asked: list[Asked],
    model: LoadedModel,
    config: RuntimeConfig,
    options: FinetuneOptions,
    console: Console,
) -> dict[str, Any]:
    """Of an engine that serves the adapter as a server would: from the folder above, by its name."""
    place = options.out.resolve()
    name = place.name if (place / ADAPTER).exists() else f"{place.name}/{PEFT}"
    serving = replace(
        config,
        adapters=str(place.parent),
        max_adapter_rank=max(options.rank, config.max_adapter_rank),
        max_batch_size=max(SCORING_BATCH, config.max_batch_size),
    )
    engine = assemble_engine(model, serving, builtin_skills())
    with closing(EngineAnswers(engine, serving.max_batch_size)) as answers:
        columns = {
            "without": scoring.outcomes(answers, asked, None, console),
            "with": scoring.outcomes(answers, asked, name, console),
        }
    found = scoring.document(asked, columns)
    scoring.print_scores(found, console)
    return found


def _say(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)


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
