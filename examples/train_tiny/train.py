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
import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import torch
from rich.console import Console
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from kestrel_core.config import RuntimeConfig
from kestrel_core.moondream.model import Moondream
from kestrel_tools.curves import write_curves
from kestrel_tools.scenes import render
from kestrel_tools.scenes.command import eval_scenes
from kestrel_tools.scenes.options import EvalOptions

from . import batches, camera, network, pictures
from .batches import Batch
from .muon import Muon
from .worlds import SHAPES, WORLDS, World

WEIGHTS = {"token": 1.0, "coord": 0.4, "size": 0.4, "talk": 0.1, "balance": 0.01}
TALK_EVERY = 4  # steps, since small talk is learnt soon
WEIGHT_DECAY = 0.05
WARM_UP_BATCHES = 6
RESUME_PARTS = 3  # files, so that none is too large to be sent


def main() -> None:
    options = parse()
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
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.allow_tf32 = True
    torch.manual_seed(options.seed + first_step)
    model = network.new_model(world.config, device, options.seed)
    if options.resume:
        resume(model, Path(options.resume))
    print(
        f"{sum(p.numel() for p in model.parameters()):,} parameters on {device}, torch {torch.__version__}",
        flush=True,
    )
    muon = options.optimizer == "muon"
    trainer = Trainer(model, options.batch, options.lr, muon, options.compile, world)
    trainer.draw_sheet(first, out / "scenes.png")
    if options.compile:
        trainer.warm_up(options.seed, options.batch)
    steps = train(trainer, first, stream, options, out, first_step)
    stream.close()
    save(model, out, steps, world, options.half_resume)
    if options.eval_scenes:
        for scored in ("shapes", "things", "unseen") if world is not SHAPES else ("shapes",):
            score(out, options.eval_scenes, options.device, scored)


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default="runs/tiny")
    parser.add_argument("--world", choices=tuple(WORLDS), default="shapes", help="what is learnt")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--steps", type=int, default=0, help="train so many steps")
    parser.add_argument(
        "--minutes", type=float, default=0.0, help="or so long; the schedule follows the clock"
    )
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
    parser.add_argument("--resume", default="", help="a folder with resume_*.safetensors")
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
    if bool(options.steps) == bool(options.minutes):
        parser.error("give one of --steps and --minutes")
    return options


class Trainer:
    def __init__(
        self,
        model: Moondream,
        batch: int,
        lr: float,
        muon: bool = True,
        compiled: bool = False,
        world: World = SHAPES,
    ) -> None:
        self.model, self.lr, self.world = model, lr, world
        self.device = model.text.wte.device
        self.prefix = model.config.image_prefix_length
        self._positions = network.slot_positions(self.prefix, world.slots, self.device).repeat(batch)
        self._attend = network.Together(batch, self.prefix, world.slots, self.device)
        talks = max(1, batch // 8)
        self._talk_positions = network.slot_positions(0, (world.talk_length,), self.device).repeat(talks)
        self._talk_attend = network.Together(talks, 0, (world.talk_length,), self.device)
        self._step = 0
        inner, outer, plain = split_parameters(model, muon)
        self._muon = Muon(inner, WEIGHT_DECAY)
        self._adamw = torch.optim.AdamW(
            [{"params": outer, "weight_decay": WEIGHT_DECAY}, {"params": plain, "weight_decay": 0.0}],
            lr=lr,
            betas=(0.9, 0.98),
            fused=self.device.type == "cuda",
        )
        self._painter = world.painter(self.device, compiled)
        self._wear: Callable[..., Tensor] = camera.wear
        self._features: Callable[..., Tensor] = network.features
        self._decode: Callable[..., Tensor] = _decode
        if compiled:
            self._wear = torch.compile(camera.wear, dynamic=True)
            self._features = torch.compile(network.features, dynamic=True)
            self._decode = torch.compile(_decode, dynamic=False)

    @torch.no_grad()
    def crops(self, batch: Batch) -> Tensor:
        vision = self.model.config.vision
        height, width = (
            8 * round(batch.zoom * (n * vision.window_px + 2 * vision.margin_px) / 8)
            if batch.zoom != 1
            else n * vision.window_px + 2 * vision.margin_px
            for n in batch.tiling
        )
        scenes = render.to_tensors(batch.scenes, self.device)
        picture = camera.worn(self._painter.draw(scenes, height, width, None), None, self._wear)
        return camera.cut_crops(picture, batch.tiling, vision)

    def step(self, batch: Batch, rate: float) -> dict[str, Tensor]:
        found = self.losses(batch)
        total = torch.stack([WEIGHTS[name] * value for name, value in found.items()]).sum()
        self.model.zero_grad(set_to_none=True)
        total.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        for group in self._adamw.param_groups:
            group["lr"] = self.lr * rate
        self._adamw.step()
        self._muon.step(self.lr * rate)
        self._step += 1
        return {
            "loss": total.detach(),
            "norm": norm,
            **{name: value.detach() for name, value in found.items()},
        }

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        model = self.model
        crops = self.crops(batch)
        fed = network.Fed.of(batch.rows, self.prefix, self.device)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda"):
            image = network.image_embeddings(model, crops, batch.tiling, self._features)
            bos = model.text.wte[model.config.tokenizer.bos_id].expand(len(image), 1, -1)
            x = torch.cat((bos, image.float(), network.embed(model, fed, jitter=True)), dim=1)
            hidden = self._decode(model, x.flatten(0, 1), self._positions, self._attend)
            found = network.losses(model, hidden, fed)
            found["balance"] = network.balance(model)
            if self._step % TALK_EVERY == 0:
                talk = network.Fed.of(batch.talk, 0, self.device)
                x = network.embed(model, talk, jitter=False).flatten(0, 1)
                talked = model.text(x, self._talk_positions, self._talk_attend)
                found["talk"] = network.losses(model, talked, talk)["token"]
        return found

    def warm_up(self, seed: int, size: int) -> None:
        """Compile before the clock runs, with batches of several tilings; nothing is learnt."""
        make, start = self.world.maker(seed, size), time.monotonic()
        for index in range(WARM_UP_BATCHES):
            batch = make(self.world.easy_steps + index)
            torch.stack(list(self.losses(batch).values())).sum().backward()
            self.model.zero_grad(set_to_none=True)
            done = f"{index + 1} of {WARM_UP_BATCHES}"
            print(f"compiled, {done}: {time.monotonic() - start:.0f} s", flush=True)

    def draw_sheet(self, batch: Batch, path: Path) -> None:
        crops = self.crops(batch)[:48, 0].cpu().numpy()
        pictures.write_png(path, pictures.sheet(crops, 8))


def split_parameters(
    model: Moondream, muon: bool
) -> tuple[list[torch.nn.Parameter], list[torch.nn.Parameter], list[torch.nn.Parameter]]:
    """The matrices inside the network, for Muon; those at its ends; and all that has no weight decay."""
    inner, outer, plain = [], [], []
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        if parameter.ndim < 2 or name.endswith(("wte", "pos_emb")):
            plain.append(parameter)
        elif muon and ".blocks." in name and not any(part in name for part in (".router.", ".tau.")):
            inner.append(parameter)
        else:
            outer.append(parameter)
    return inner, outer, plain


def _decode(model: Moondream, x: Tensor, positions: Tensor, attend: network.Together) -> Tensor:
    hidden: Tensor = model.text(x, positions, attend)
    return hidden


def train(
    trainer: Trainer,
    first: Batch,
    stream: Iterator[Batch],
    options: argparse.Namespace,
    out: Path,
    step: int,
) -> int:
    """Returns the number of the last step; the first is `step`."""
    batch, progress, first_step, since = first, 0.0, step, 0
    start = saved = shown = time.monotonic()
    begin, end = options.part
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
            progress = passed(options, step, first_step, now - start)
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
                for name in ("token", "coord", "size", "talk"):
                    if name in means:
                        curves[name].append((step, max(means[name], 1e-4)))
                if not math.isfinite(means["loss"]):
                    raise SystemExit("the loss is no number any more; try a lower --lr")
                sums.clear()
                counts.clear()
                since, shown = 0, now
            if now - saved > 60 * options.save_every:
                save(trainer.model, out, step, trainer.world, options.half_resume)
                write_curves(out / "curves.svg", curves, "steps")
                saved = time.monotonic()
    write_curves(out / "curves.svg", curves, "steps")
    return step


def passed(options: argparse.Namespace, step: int, first_step: int, seconds: float) -> float:
    """How much of this run is over, by its steps or its minutes; a slice also ends with the last step."""
    if options.of and step >= options.of:
        return 1.0
    if options.steps:
        return float(step - first_step) / options.steps
    return seconds / (60 * float(options.minutes))


def schedule(progress: float) -> float:
    """High for the first half, then down in a straight line."""
    return min(1.0, 0.01 + 0.99 * 2 * (1 - min(1.0, progress)))


def save(model: Moondream, out: Path, steps: int, world: World = SHAPES, half: bool = False) -> None:
    """Each file is replaced as a whole, so a run that is cut short leaves its last checkpoint."""
    weights = {f"model.{name}": p.detach().cpu().contiguous() for name, p in model.named_parameters()}
    _write(out / "model.safetensors", {name: p.to(torch.bfloat16) for name, p in weights.items()}, steps)
    document = {"model_type": "moondream3", "config": asdict(model.config)}
    (out / "config.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    shutil.copyfile(world.tokenizer, out / "tokenizer.json")
    for part in range(RESUME_PARTS):
        dtype = torch.float16 if half else torch.float32
        own = {name: weight.to(dtype) for name, weight in list(weights.items())[part::RESUME_PARTS]}
        _write(out / f"resume_{part}.safetensors", own, steps)


def score(out: Path, scenes: int, device: str, world: str = "shapes") -> None:
    """As `kestrel eval scenes` does it, through the engine: needs what the server needs, pyvips among it."""
    suffix = "" if world == "shapes" else f"_{world}"
    report, sheet = out / f"eval{suffix}.json", out / f"sheet{suffix}.svg"
    asked = EvalOptions(scenes, seed=1, world=world, report=report, sheet=sheet)
    config = RuntimeConfig(model_path=str(out), device=device, dtype="float32", max_batch_size=64)
    eval_scenes(asked, config, Console())


def _write(path: Path, content: dict[str, Tensor], steps: int) -> None:
    fresh = path.with_suffix(".new")
    save_file(content, fresh, metadata={"steps": str(steps)})
    fresh.replace(path)


def trained_steps(folder: Path) -> int:
    with safe_open(folder / "resume_0.safetensors", "pt") as file:
        return int(file.metadata()["steps"])


@torch.no_grad()
def resume(model: Moondream, folder: Path) -> None:
    parts = [load_file(path) for path in sorted(folder.glob("resume_*.safetensors"))]
    weights = {name.removeprefix("model."): tensor for part in parts for name, tensor in part.items()}
    model.load_state_dict(weights)


if __name__ == "__main__":
    main()
