"""Scores a model on scenes it has not seen: every task decoded greedily, as the server decodes it.

For quick looks during training, in batches and on any device. `kestrel eval scenes` asks the server itself.
"""

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from kestrel_core.moondream.config import TokenizerConfig
from kestrel_core.moondream.model import Moondream
from kestrel_core.step import Coord, Input, Size

from . import network, render, tasks
from .batches import TILINGS, draw_scenes
from .tasks import Task, Teacher
from .words import Words
from .world import COLOURS, SHAPES, Scene, Thing, outline_on_picture

Box = tuple[float, float, float, float]
SPARE = 12  # positions an answer may be longer than the right one before it is cut


@dataclass
class Found:
    """What the model answered."""

    text: str = ""
    thought: str = ""
    points: list[tuple[float, float]] = field(default_factory=list)
    boxes: list[Box] = field(default_factory=list)
    paths: list[list[list[tuple[float, float]]]] = field(default_factory=list)  # relative to the box


class Reader:
    """Follows one answer: what is read next, and what is fed for it."""

    def __init__(self, task: Task, ids: TokenizerConfig) -> None:
        self.skill, self._ids = task.kind.split()[0], ids
        self.tokens: list[int] = []
        self.thought: list[int] = []
        self._thinking = self.skill == "reason"
        self._stage, self._first = "object", True
        self._x = self._y = 0.0
        self._numbers: list[float] = []
        self.found = Found()
        self.done = False

    def take(self, token: int, more: bool, coord: float, size: Size) -> Input:
        if self.skill in ("point", "detect", "segment"):
            return self._take_object(token, more, coord, size)
        if self._thinking:
            if token == self._ids.answer_id:
                self._thinking = False
                return token
            self.thought.append(token)
            return Coord(coord) if token == self._ids.coord_id else token
        self.done = token == self._ids.eos_id
        self.tokens.append(token)
        return token

    def _take_object(self, token: int, more: bool, coord: float, size: Size) -> Input:
        if self._stage == "object":
            if (token == self._ids.eos_id) if self._first else not more:
                self.done = True
                return token
            self._first, self._x, self._stage = False, coord, "y"
            return Coord(coord)
        if self._stage == "y":
            self._y = coord
            if self.skill == "point":
                self.found.points.append((self._x, coord))
            self._stage = "object" if self.skill == "point" else "size"
            return Coord(coord)
        if self._stage == "size":
            x, y, (w, h) = self._x, self._y, size
            self.found.boxes.append((x - w / 2, y - h / 2, x + w / 2, y + h / 2))
            self.found.paths.append([])
            self._stage = "object" if self.skill == "detect" else "path"
            return size
        if token == self._ids.coord_id and self.found.paths[-1]:
            self._numbers.append(coord)
            if len(self._numbers) == 2:
                self.found.paths[-1][-1].append((self._numbers[0], self._numbers[1]))
                self._numbers = []
            return Coord(coord)
        if token == self._ids.start_ground_points_id:
            self.found.paths[-1].append([])
        else:
            self._stage = "object"
        return token


class Keys:
    """Keys and values of a batch whose sequences all stand at the same position."""

    def __init__(self, model: Moondream, batch: int, length: int) -> None:
        text = model.config.text
        shape = (text.n_layers, 2, batch, text.n_heads, length, text.head_dim)
        self._kv = torch.zeros(shape, device=model.text.wte.device)
        self._batch, self.used = batch, 0

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        q, k, v = (t.unflatten(0, (self._batch, -1)).transpose(1, 2).float() for t in (q, k, v))
        end = self.used + k.shape[2]
        self._kv[layer, 0, :, :, self.used : end] = k
        self._kv[layer, 1, :, :, self.used : end] = v
        # One new position, or a whole prefix that is seen both ways: no mask in either case.
        mixed = F.scaled_dot_product_attention(
            q, self._kv[layer, 0, :, :, :end], self._kv[layer, 1, :, :, :end]
        )
        return mixed.transpose(1, 2).flatten(0, 1)


@torch.no_grad()
def answer(model: Moondream, images: Tensor | None, asked: list[Task], words: Words) -> list[Found]:
    """images: [tasks, patches, dim], each task's own; None for tasks without a picture."""
    device, ids = model.text.wte.device, model.config.tokenizer
    readers = [Reader(task, ids) for task in asked]
    prefix = model.config.image_prefix_length if images is not None else 0
    longest = max(task.length for task in asked) + SPARE
    keys = Keys(model, len(asked), prefix + longest)
    if images is not None:
        bos = model.text.wte[ids.bos_id].expand(len(asked), 1, -1)
        positions = torch.arange(prefix, device=device).repeat(len(asked))
        model.text(torch.cat((bos, images), 1).flatten(0, 1), positions, keys)
        keys.used = prefix
    feeds: list[Input] = [task.prompt[0] for task in asked]
    for at in range(longest):
        hidden = model.text(_embed(model, feeds), torch.full((len(asked),), prefix + at, device=device), keys)
        keys.used += 1
        tokens, more, coords, sizes = _read(model, hidden)
        for row, (task, reader) in enumerate(zip(asked, readers, strict=True)):
            if at + 1 < len(task.prompt):
                feeds[row] = task.prompt[at + 1]
            elif not reader.done and at < task.length + SPARE:
                feeds[row] = reader.take(tokens[row], more[row], coords[row], Size(*sizes[row]))
        if all(reader.done for reader in readers):
            break
    for reader in readers:
        reader.found.text = words.decode(reader.tokens)
        reader.found.thought = words.decode(reader.thought)
    return [reader.found for reader in readers]


def _embed(model: Moondream, feeds: list[Input]) -> Tensor:
    device = model.text.wte.device
    ids = torch.tensor([f if isinstance(f, int) else 0 for f in feeds], device=device)
    x = model.text.embed(ids)
    coords = [(row, f.value) for row, f in enumerate(feeds) if isinstance(f, Coord)]
    sizes = [(row, f) for row, f in enumerate(feeds) if isinstance(f, Size)]
    if coords:
        rows, values = zip(*coords, strict=True)
        x[list(rows)] = model.region.encode_coord(torch.tensor(values, device=device))
    if sizes:
        rows, pairs = zip(*sizes, strict=True)
        x[list(rows)] = model.region.encode_size(torch.tensor(pairs, device=device))
    return x


def _read(model: Moondream, hidden: Tensor) -> tuple[list[int], list[bool], list[float], list[list[float]]]:
    ids, region = model.config.tokenizer, model.region
    logits = model.text.logits(hidden)
    more = logits[:, ids.coord_id] >= logits[:, ids.eos_id]
    coords = region.coord_of_bin(region.coord_logits(hidden).argmax(-1))
    sizes = region.size_of_bin(region.size_logits(hidden).argmax(-1))
    return logits.argmax(-1).tolist(), more.tolist(), coords.tolist(), sizes.tolist()


def scene_tasks(rng: Random, scene: Scene, teacher: Teacher) -> list[Task]:
    """What a scene is asked: questions, and each of the other skills once."""
    asked = [teacher.query(rng, tasks.facts(rng, scene)) for _ in range(4)]
    asked.append(teacher.query(rng, tasks._count(rng, scene), reasoning=True))
    if (fact := tasks._read(rng, scene)) is not None:
        asked.append(teacher.query(rng, fact))
    if (spatial := tasks.spatial_fact(rng, scene)) is not None:
        asked.append(teacher.query(rng, spatial[0], refs=spatial[1]))
    asked += [teacher.caption(scene, "normal"), teacher.caption(scene, "short")]
    for make in (teacher.detect, teacher.point):
        asked += [make(*tasks.target(rng, scene)) for _ in range(2)]
    segment = teacher.segment(*tasks.target(rng, scene), scene.unit)
    return [*asked, segment] if segment.length < 200 else asked


@torch.no_grad()
def run(model: Moondream, num_scenes: int, seed: int, rows: int = 512) -> dict[str, Any]:
    """Scores on fresh scenes of all tilings. Float32 throughout."""
    rng = Random(seed)
    device, config = model.text.wte.device, model.config
    generator = torch.Generator(device).manual_seed(seed)
    teacher = Teacher(config.tokenizer)
    scores = Scores()
    for tiling, (share, _, _) in TILINGS.items():
        scenes = draw_scenes(rng, tiling, max(1, round(share * num_scenes)), config)
        pixels = tuple(n * config.vision.window_px + 2 * config.vision.margin_px for n in tiling)
        images = []
        for start in range(0, len(scenes), 64):
            arrays = render.to_tensors(render.scene_arrays(scenes[start : start + 64]), device)
            picture = render.wear(render.draw(arrays, pixels[0], pixels[1], generator), generator)
            crops = render.cut_crops(picture, tiling, config.vision)
            images.append(network.image_embeddings(model, crops, tiling))
        embeddings = torch.cat(images)
        asked = [
            (index, task) for index, scene in enumerate(scenes) for task in scene_tasks(rng, scene, teacher)
        ]
        asked.sort(key=lambda pair: pair[1].length)  # so that few wait for long answers
        for start in range(0, len(asked), rows):
            part = asked[start : start + rows]
            chosen = embeddings[[index for index, _ in part]]
            for (index, task), found in zip(
                part, answer(model, chosen, [t for _, t in part], teacher.words), strict=True
            ):
                scores.add(scenes[index], task, found)
    talk = [tasks.small_talk(rng, teacher, False) for _ in range(50)]
    for task, found in zip(talk, answer(model, None, talk, teacher.words), strict=True):
        scores.add(None, task, found)
    return scores.report()


class Scores:
    def __init__(self) -> None:
        self._right: dict[str, list[float]] = defaultdict(list)
        self._found: Counter[str] = Counter()
        self._wrong: dict[str, list[str]] = defaultdict(list)

    def add(self, scene: Scene | None, task: Task, found: Found) -> None:
        kind = task.kind
        if kind.startswith("caption"):
            self._right[kind].append(named(found.text) == Counter(t.name for t in task.things))
            self._right[f"{kind} exact"].append(found.text == task.text)
        elif kind.split()[0] in ("point", "detect", "segment"):
            self._add_objects(scene, task, found)
        else:
            right = found.text == task.text
            self._right[kind].append(right)
            if not kind.startswith(("reason", "read", "talk")):
                self._right["query"].append(right)
            if not right and len(self._wrong[kind]) < 6:
                self._wrong[kind].append(f"{task.text} <- {found.text}")

    def _add_objects(self, scene: Scene | None, task: Task, found: Found) -> None:
        kind, answers = task.kind.split()[0], found.points or found.boxes
        if not task.things:
            self._right[f"{kind} none"].append(not answers)
            return
        self._found[f"{kind} wanted"] += len(task.things)
        self._found[f"{kind} given"] += len(answers)
        left = list(task.things)
        for index, given in enumerate(answers):
            overlaps = [overlap(given, thing) for thing in left]
            best = int(np.argmax(overlaps)) if overlaps else 0
            if not overlaps or overlaps[best] < 0.5:
                continue
            self._found[f"{kind} hit"] += 1
            self._right[f"{kind} iou"].append(overlaps[best])
            thing = left.pop(best)
            if kind == "segment" and scene is not None:
                self._right["segment path iou"].append(path_overlap(found, index, thing, scene))

    def report(self) -> dict[str, Any]:
        rates = {kind: round(float(np.mean(values)), 4) for kind, values in sorted(self._right.items())}
        for kind in ("detect", "point", "segment"):
            total = self._found[f"{kind} wanted"] + self._found[f"{kind} given"]
            rates[f"{kind} f1"] = round(2 * self._found[f"{kind} hit"] / max(1, total), 4)
        rates.pop("point iou", None)
        counts = {kind: len(values) for kind, values in self._right.items()}
        return {"rates": rates, "counts": counts, "wrong": dict(self._wrong)}


def named(text: str) -> Counter[str]:
    """The coloured shapes a caption speaks of."""
    return Counter(re.findall(rf"\b(?:{'|'.join(COLOURS)}) (?:{'|'.join(SHAPES)})\b", text))


def overlap(given: tuple[float, ...], thing: Thing) -> float:
    """IoU of a box; for a point 1 when it lies inside the shape's outline, holes filled."""
    if len(given) == 2:
        x_min, y_min, x_max, y_max = thing.box
        u = (given[0] - x_min) / (x_max - x_min) * 2 - 1
        v = (given[1] - y_min) / (y_max - y_min) * 2 - 1
        return float(
            max(abs(u), abs(v)) <= 1 and (thing.shape not in ("circle", "ring") or u * u + v * v <= 1)
        )
    return box_iou((given[0], given[1], given[2], given[3]), thing.box)


def box_iou(a: Box, b: Box) -> float:
    width = max(0.0, min(a[2], b[2]) - max(a[0], b[0]))
    height = max(0.0, min(a[3], b[3]) - max(a[1], b[1]))
    both = width * height
    return both / max(1e-9, (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both)


def path_overlap(found: Found, index: int, thing: Thing, scene: Scene) -> float:
    """IoU of the outline that was given and the true one, on a grid a little larger than the true box."""
    low, high = np.array(found.boxes[index][:2]), np.array(found.boxes[index][2:])
    given = [np.array(path) * (high - low) + low for path in found.paths[index] if len(path) > 2]
    x_min, y_min, x_max, y_max = thing.box
    side = (np.arange(96) + 0.5) / 96 * 1.4 - 0.2
    grid = np.stack(np.meshgrid(x_min + side * (x_max - x_min), y_min + side * (y_max - y_min)), -1).reshape(
        -1, 2
    )
    a, b = inside(given, grid), inside(outline_on_picture(thing, scene.unit), grid)
    return float((a & b).sum() / max(1, (a | b).sum()))


def inside(paths: list[NDArray[np.float64]], points: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Even-odd: a second path is a hole."""
    result = np.zeros(len(points), bool)
    x, y = points.T
    for path in paths:
        for (x1, y1), (x2, y2) in zip(path, np.roll(path, -1, axis=0), strict=True):
            crosses = (y1 > y) != (y2 > y)
            result ^= crosses & (x < (x2 - x1) * (y - y1) / (y2 - y1 + 1e-12) + x1)
    return result


def table(report: dict[str, Any]) -> str:
    counts = report["counts"]
    lines = [f"{kind:24} {rate:7.4f}  {counts.get(kind, ''):>6}" for kind, rate in report["rates"].items()]
    wrong = [f"  {kind}: {'; '.join(some)}" for kind, some in report["wrong"].items()]
    return "\n".join(
        [f"{'what':24} {'score':>7}  {'of':>6}", *lines, "wrong answers, right <- given:", *wrong]
    )
