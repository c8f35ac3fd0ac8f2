"""Trains `moondream-tiny`: `python -m examples.train_tiny.train --device cuda --minutes 8 --out runs/tiny`.

Needs torch and numpy alone. Writes a checkpoint the server loads (`model.pt` in bfloat16, `config.json`,
`tokenizer.json`), `resume_*.pt` (float32, to go on from), `log.jsonl`, `curves.svg`, `scenes.png` and
`eval.json` into the folder.
"""

import argparse
import json
import math
import os
import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

import torch
from torch import Tensor

from kestrel_core.moondream.config import MOONDREAM_TINY
from kestrel_core.moondream.model import Moondream

from . import batches, evaluate, network, pictures, render
from .batches import SLOTS, TALK_LENGTH, Batch
from .words import TOKENIZER

WEIGHTS = {"token": 1.0, "coord": 0.4, "size": 0.4, "talk": 0.1, "balance": 0.01}
RESUME_PARTS = 2


def main() -> None:
    options = parse()
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    stream = batches.stream(options.seed, options.batch, MOONDREAM_TINY, options.workers)
    first = next(stream)  # the workers are forked here, before CUDA
    device = torch.device(options.device)
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.allow_tf32 = True
    model = network.new_model(MOONDREAM_TINY, device, options.seed)
    if options.resume:
        resume(model, Path(options.resume))
    print(
        f"{sum(p.numel() for p in model.parameters()):,} parameters on {device}, torch {torch.__version__}",
        flush=True,
    )
    trainer = Trainer(model, options.batch, options.lr, options.seed, options.compile)
    trainer.draw_sheet(first, out / "scenes.png")
    train(trainer, first, stream, options, out)
    stream.close()
    save(model, out)
    if options.eval_scenes:
        rounded(model)
        report = evaluate.run(model, options.eval_scenes, options.seed + 1_000_003)
        (out / "eval.json").write_text(json.dumps(report, indent=1))
        print(evaluate.table(report), flush=True)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default="runs/tiny")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--steps", type=int, default=0, help="train so many steps")
    parser.add_argument(
        "--minutes", type=float, default=0.0, help="or so long; the schedule follows the clock"
    )
    parser.add_argument("--batch", type=int, default=256, help="pictures in a step")
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=max(0, (os.cpu_count() or 1) - 1))
    parser.add_argument(
        "--compile", action="store_true", help="compile encoder and decoder: a minute first, then faster"
    )
    parser.add_argument("--resume", default="", help="a folder with resume_*.pt")
    parser.add_argument("--save-every", type=float, default=2.0, help="minutes between checkpoints")
    parser.add_argument("--eval-scenes", type=int, default=500, help="0: no evaluation at the end")
    options = parser.parse_args()
    if bool(options.steps) == bool(options.minutes):
        parser.error("give one of --steps and --minutes")
    return options


class Trainer:
    def __init__(self, model: Moondream, batch: int, lr: float, seed: int, compiled: bool = False) -> None:
        self.model, self.lr = model, lr
        self.device = model.text.wte.device
        self.generator = torch.Generator(self.device).manual_seed(seed)
        config = model.config
        self.prefix = config.image_prefix_length
        self._positions = network.slot_positions(self.prefix, SLOTS, self.device).repeat(batch)
        self._attend = network.Together(batch, self.prefix, SLOTS, self.device)
        talks = max(1, batch // 8)
        self._talk_positions = network.slot_positions(0, (TALK_LENGTH,), self.device).repeat(talks)
        self._talk_attend = network.Together(talks, 0, (TALK_LENGTH,), self.device)
        trained = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
        still = ("wte", "pos_emb")
        decayed = [p for name, p in trained if p.ndim > 1 and not name.endswith(still)]
        others = [p for name, p in trained if p.ndim < 2 or name.endswith(still)]
        self.optimizer = torch.optim.AdamW(
            [{"params": decayed, "weight_decay": 0.05}, {"params": others, "weight_decay": 0.0}],
            lr=lr,
            betas=(0.9, 0.98),
            fused=self.device.type == "cuda",
        )
        self._encode: Callable[..., Tensor] = network.image_embeddings
        self._decode: Callable[..., Tensor] = _decode
        self._draw: Callable[..., Tensor] = render.draw
        if compiled:
            torch._dynamo.config.cache_size_limit = 64
            self._encode = torch.compile(self._encode, dynamic=False)
            self._decode = torch.compile(self._decode, dynamic=False)

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
        picture = render.wear(self._draw(scenes, height, width, self.generator), self.generator)
        return render.cut_crops(picture, batch.tiling, vision)

    def step(self, batch: Batch, rate: float) -> dict[str, Tensor]:
        found = self.losses(batch)
        total = torch.stack([WEIGHTS[name] * value for name, value in found.items()]).sum()
        self.optimizer.zero_grad(set_to_none=True)
        total.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        for group in self.optimizer.param_groups:
            group["lr"] = self.lr * rate
        self.optimizer.step()
        return {
            "loss": total.detach(),
            "norm": norm,
            **{name: value.detach() for name, value in found.items()},
        }

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        model = self.model
        crops = self.crops(batch)
        fed = network.Fed.of(batch.rows, self.prefix, self.device)
        talk = network.Fed.of(batch.talk, 0, self.device)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda"):
            image = self._encode(model, crops, batch.tiling)
            bos = model.text.wte[model.config.tokenizer.bos_id].expand(len(image), 1, -1)
            x = torch.cat((bos, image.float(), network.embed(model, fed, self.generator)), dim=1)
            hidden = self._decode(model, x.flatten(0, 1), self._positions, self._attend)
            found = network.losses(model, hidden, fed)
            found["balance"] = network.balance(model)
            x = network.embed(model, talk, None).flatten(0, 1)
            talked = model.text(x, self._talk_positions, self._talk_attend)
            found["talk"] = network.losses(model, talked, talk)["token"]
        return found

    def draw_sheet(self, batch: Batch, path: Path) -> None:
        crops = self.crops(batch)[:48, 0].cpu().numpy()
        pictures.write_png(path, pictures.sheet(crops, 8))


def _decode(model: Moondream, x: Tensor, positions: Tensor, attend: network.Together) -> Tensor:
    hidden: Tensor = model.text(x, positions, attend)
    return hidden


def train(
    trainer: Trainer, first: Batch, stream: Iterator[Batch], options: argparse.Namespace, out: Path
) -> None:
    start = saved = shown = time.monotonic()
    step, batch, progress = 0, first, 0.0
    sums: dict[str, Tensor] = defaultdict(lambda: torch.zeros((), device=trainer.device))
    since = 0
    curves: dict[str, list[tuple[float, float]]] = defaultdict(list)
    waited = 0.0
    with (out / "log.jsonl").open("w") as log:
        while progress < 1:
            for name, value in trainer.step(batch, schedule(progress)).items():
                sums[name] = sums[name] + value
            step, since = step + 1, since + 1
            before = time.monotonic()
            batch = next(stream)
            now = time.monotonic()
            waited += now - before
            progress = step / options.steps if options.steps else (now - start) / (60 * options.minutes)
            every = 50 if trainer.device.type == "cuda" else 5
            if step % every == 0 or progress >= 1:
                means = {name: float(value) / since for name, value in sums.items()}  # waits for the device
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
                since, shown = 0, now
            if now - saved > 60 * options.save_every:
                save(trainer.model, out)
                pictures.write_curves(out / "curves.svg", curves, "steps")
                saved = time.monotonic()
    pictures.write_curves(out / "curves.svg", curves, "steps")


def schedule(progress: float) -> float:
    """A short warm-up, then half a cosine down to a hundredth."""
    warm = min(1.0, (progress + 1e-4) / 0.03)
    return warm * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * min(1.0, progress))))


def save(model: Moondream, out: Path) -> None:
    """Replaced whole, so that a run that is cut short leaves its last checkpoint."""
    weights = {f"model.{name}": p.detach().cpu() for name, p in model.named_parameters()}
    _write(out / "model.pt", {name: p.to(torch.bfloat16) for name, p in weights.items()})
    document = {"model_type": "moondream3", "config": asdict(model.config)}
    (out / "config.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    shutil.copyfile(TOKENIZER, out / "tokenizer.json")
    names = list(weights)
    for part in range(RESUME_PARTS):
        _write(out / f"resume_{part}.pt", {name: weights[name] for name in _share(names, weights, part)})


def _share(names: list[str], weights: dict[str, Tensor], part: int) -> list[str]:
    """Names in order, cut where a share of all numbers is reached."""
    total, before, share = sum(w.numel() for w in weights.values()), 0, []
    for name in names:
        if min(RESUME_PARTS - 1, before * RESUME_PARTS // total) == part:
            share.append(name)
        before += weights[name].numel()
    return share


def _write(path: Path, content: dict[str, Tensor]) -> None:
    fresh = path.with_suffix(".new")
    torch.save(content, fresh)
    fresh.replace(path)


@torch.no_grad()
def resume(model: Moondream, folder: Path) -> None:
    parts = [torch.load(path, weights_only=True) for path in sorted(folder.glob("resume_*.pt"))]
    weights = {name.removeprefix("model."): tensor for part in parts for name, tensor in part.items()}
    model.load_state_dict(weights)


@torch.no_grad()
def rounded(model: Moondream) -> None:
    """To the weights that are shipped."""
    for parameter in model.parameters():
        parameter.copy_(parameter.to(torch.bfloat16))


if __name__ == "__main__":
    main()
