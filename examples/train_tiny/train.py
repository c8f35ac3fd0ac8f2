"""Trains `moondream-tiny`: `python -m examples.train_tiny.train --device cuda --minutes 18 --out runs/tiny`.

With `--of STEPS` the schedule counts steps and a run is a slice of it: the same command goes on where the
last one stopped, in the same folder, until all steps are done.

Writes a checkpoint the server loads (`model.safetensors` in bfloat16, `config.json`, `tokenizer.json`),
`resume_*.safetensors` (float32, to go on from), `log.jsonl`, `curves.svg`, `scenes.png`, `eval.json` and
`sheet.svg` into the folder.
"""

import argparse
import json
import math
import os
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from rich.console import Console
from torch import Tensor

from kestrel_core.config import RuntimeConfig
from kestrel_core.moondream.config import MOONDREAM_TINY
from kestrel_tools.curves import write_curves
from kestrel_tools.scenes.command import eval_scenes
from kestrel_tools.scenes.options import EvalOptions

from . import batches, network, pace
from .batches import Batch
from .checkpoints import resume, save, trained_steps
from .trainer import Trainer
from .worlds import SHAPES, WORLDS

LAST_SECONDS = 6  # of the minutes, for writing the files


def main() -> None:
    began, options = time.monotonic(), parse()
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    world = WORLDS[options.world]
    if options.of and (out / "resume_0.safetensors").exists():
        options.resume = options.out
    first_step = trained_steps(Path(options.resume)) if options.resume else 0
    if options.of and first_step >= options.of:
        raise SystemExit(f"{out} has its {options.of:,} steps")
    stream = batches.stream(world.maker(options.seed, options.batch), options.workers, first_step)
    first = next(stream)  # the workers are forked here, before CUDA
    device = torch.device(options.device)
    if device.type == "cuda":
        # Batches are copied to pinned memory by as many threads as there are cores, and the workers have
        # those: a step took 120 ms and more with 16 of them, and 65 to 80 with one.
        torch.set_num_threads(1)
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.allow_tf32 = True
    torch.manual_seed(options.seed + first_step)
    model = network.new_model(MOONDREAM_TINY, device, options.seed)
    if options.resume:
        resume(model, Path(options.resume))
    print(
        f"{sum(p.numel() for p in model.parameters()):,} parameters on {device}, torch {torch.__version__}",
        flush=True,
    )
    muon = options.optimizer == "muon"
    trainer = Trainer(
        model, options.batch, options.lr, muon, options.compile, world, options.ema, options.seed
    )
    trainer.draw_sheet(first, out / "scenes.png")
    if options.compile:
        trainer.warm_up(first)
        print(f"compiled after {time.monotonic() - began:.0f} s", flush=True)
    if options.profile:
        pace.report(trainer, stream, options.profile)
        return
    steps = train(trainer, first, stream, options, out, first_step, began)
    stream.close()
    save(model, out, steps, options.half_resume, trainer.average)
    if options.eval_scenes:
        for scored in (
            ("shapes", "things", "unseen", "line-art", "wide") if world is not SHAPES else ("shapes",)
        ):
            score(out, options.eval_scenes, options.device, scored)


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default="runs/tiny")
    parser.add_argument("--world", choices=tuple(WORLDS), default="shapes", help="what is learnt")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--steps", type=int, default=0, help="train so many steps")
    parser.add_argument(
        "--minutes",
        type=float,
        default=0.0,
        help="or so long, compiling included; the schedule follows the clock",
    )
    parser.add_argument("--profile", type=int, default=0, metavar="STEPS", help="only measure so many steps")
    parser.add_argument(
        "--of", type=int, default=0, metavar="STEPS", help="a slice of so many steps; goes on from --out"
    )
    parser.add_argument("--batch", type=int, default=256, help="pictures in a step")
    parser.add_argument("--optimizer", choices=("muon", "adamw"), default="muon")
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=max(0, (os.cpu_count() or 1) - 1))
    parser.add_argument(
        "--compile",
        action=argparse.BooleanOptionalAction,
        default=torch.cuda.is_available(),
        help="compile renderer, encoder and decoder: a minute first, then faster",
    )
    parser.add_argument(
        "--ema", type=float, default=0.999, help="what is kept of the mean of the weights a step"
    )
    parser.add_argument(
        "--resume", default="", help="a folder with resume_*.safetensors, or with model.safetensors alone"
    )
    parser.add_argument(
        "--slice",
        type=int,
        nargs=2,
        metavar=("K", "N"),
        help="this run is the Kth of N that are as long as it",
    )
    parser.add_argument(
        "--part",
        type=float,
        nargs=2,
        default=(0.0, 1.0),
        metavar=("FROM", "TO"),
        help="which part of the schedule this run is, for a training in several runs",
    )
    parser.add_argument(
        "--half-resume", action="store_true", help="resume_* in float16, where files have to travel"
    )
    parser.add_argument("--save-every", type=float, default=2.0, help="minutes between checkpoints")
    parser.add_argument("--eval-scenes", type=int, default=500, help="0: no evaluation at the end")
    options = parser.parse_args(arguments)
    if (bool(options.steps) + bool(options.minutes) + bool(options.profile)) != 1:
        parser.error("give one of --steps, --minutes and --profile")
    if options.slice:
        number, count = options.slice
        options.part = ((number - 1) / count, number / count)
    return options


def train(
    trainer: Trainer,
    first: Batch,
    stream: Iterator[Batch],
    options: argparse.Namespace,
    out: Path,
    step: int,
    began: float,
) -> int:
    """Returns the number of the last step; the first is `step`. Minutes count from `began`."""
    batch, progress, first_step, since = first, 0.0, step, 0
    start = saved = shown = time.monotonic()
    begin, end = options.part
    seconds = 60 * options.minutes - LAST_SECONDS - (start - began)
    sums: dict[str, Tensor] = defaultdict(lambda: torch.zeros((), device=trainer.device))
    counts: dict[str, int] = defaultdict(int)
    curves: dict[str, list[tuple[float, float]]] = defaultdict(list)
    waited = 0.0
    with (out / "log.jsonl").open("a" if options.of else "w") as log:
        while progress < 1:
            done = step / options.of if options.of else begin + progress * (end - begin)
            rate = schedule(done) * min(1.0, (step - first_step + 1) / 100)
            for name, value in trainer.step(batch, rate).items():
                sums[name] = sums[name] + value
                counts[name] += 1
            step, since = step + 1, since + 1
            before = time.monotonic()
            batch = next(stream)
            now = time.monotonic()
            waited += now - before
            progress = passed(options, step, first_step, (now - start) / max(seconds, 1.0))
            every = 50 if trainer.device.type == "cuda" else 5
            if step % every == 0 or progress >= 1:
                means = {
                    name: float(value) / counts[name] for name, value in sums.items()
                }  # waits for the device
                now = time.monotonic()
                line = {
                    "step": step,
                    "s": round(now - start, 1),
                    "steps_per_s": since / (now - shown),
                    "waited_s": waited,
                }
                log.write(json.dumps(line | means) + "\n")
                log.flush()
                if step % (4 * every) == 0 or step <= every or progress >= 1:
                    told = "  ".join(f"{name} {value:.3f}" for name, value in means.items())
                    pace = f"{line['steps_per_s']:.1f}/s  waited {waited:.0f} s"
                    print(f"step {step}  {now - start:.0f} s  {pace}  {told}", flush=True)
                for name in ("token", "coord", "size"):
                    if name in means:
                        curves[name].append((step, max(means[name], 1e-4)))
                if not math.isfinite(means["loss"]):
                    raise SystemExit("the loss is no number any more; try a lower --lr")
                sums.clear()
                counts.clear()
                since, shown = 0, now
            if now - saved > 60 * options.save_every:
                save(trainer.model, out, step, options.half_resume, trainer.average)
                write_curves(out / "curves.svg", curves, "steps")
                saved = time.monotonic()
    write_curves(out / "curves.svg", curves, "steps")
    return step


def passed(options: argparse.Namespace, step: int, first_step: int, by_clock: float) -> float:
    """How much of this run is over, by its steps or its minutes; a slice also ends with the last step."""
    if options.of and step >= options.of:
        return 1.0
    if options.steps:
        return float(step - first_step) / options.steps
    return by_clock


def schedule(progress: float) -> float:
    """High for the first half, then down in a straight line."""
    return min(1.0, 0.01 + 0.99 * 2 * (1 - min(1.0, progress)))


def score(out: Path, scenes: int, device: str, world: str = "shapes") -> None:
    """As `kestrel eval scenes` does it, through the engine: needs what the server needs, pyvips among it."""
    suffix = "" if world == "shapes" else f"_{world}"
    report, sheet = out / f"eval{suffix}.json", out / f"sheet{suffix}.svg"
    asked = EvalOptions(scenes, seed=1, world=world, report=report, sheet=sheet)
    config = RuntimeConfig(model_path=str(out), device=device, dtype="float32", max_batch_size=64)
    eval_scenes(asked, config, Console())


if __name__ == "__main__":
    main()
