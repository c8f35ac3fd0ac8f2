"""Makes the lines that the French adapter learns from: `python -m examples.french_adapter.make_data FOLDER`.

Into the folder come `train.jsonl`, `eval.jsonl` and `pictures/`: the same ones each time, however many
processes draw. Pictures are small, because large ones take long to draw. The model has learned to see
pictures of any size already; what it learns here is what to say about them.
"""

import argparse
import json
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import torch
from rich.console import Console

from kestrel_tools.progress import counted
from kestrel_tools.scenes.facts import caption_text, target
from kestrel_tools.scenes.pictures import draw, encode, legible_pixels
from kestrel_tools.scenes.world import Scene, Thing, draw_scene

from .french import without_accents
from .questions import ask

Line = Mapping[str, Any]

SHORTEST, LONGEST = 160, 320  # sides in pixels
NUM_QUESTIONS = 22  # of each picture at most, besides a caption and something to find


def picture_lines(rng: Random, scene: Scene, image: str) -> Iterator[Line]:
    """What is asked about one picture, and the wanted answers: without accents, for which see README.md."""
    for asked in ask(rng, scene, NUM_QUESTIONS):
        answer = without_accents(asked.answer)
        yield {"skill": "query", "image": image, "question": asked.question, "answer": answer}
    yield {"skill": "caption", "image": image, "length": "short", "caption": caption_text(scene, "short")}
    words, things = target(rng, scene)
    if rng.random() < 0.5:
        yield {"skill": "detect", "image": image, "object": words, "objects": [*map(_box, things)]}
    else:
        yield {"skill": "point", "image": image, "object": words, "points": [*map(_point, things)]}


def _box(thing: Thing) -> dict[str, float]:
    names = ("x_min", "y_min", "x_max", "y_max")
    return {name: round(value, 4) for name, value in zip(names, thing.box, strict=True)}


def _point(thing: Thing) -> dict[str, float]:
    x, y = thing.centre
    return {"x": round(x, 4), "y": round(y, 4)}


def make_picture(folder: Path, name: str, index: int) -> list[Line]:
    """Draw picture `index` of the file `name`, and return its lines."""
    torch.set_num_threads(1)  # processes share the work already
    rng = Random(f"french {name} {index}")
    width, height = rng.randint(SHORTEST, LONGEST), rng.randint(SHORTEST, LONGEST)
    scene = draw_scene(rng, width / height, legible_pixels(width, height))
    image = f"pictures/{name}-{index}.png"
    (folder / image).write_bytes(encode(draw(scene, width, height, rng.getrandbits(32)), None))
    return [*picture_lines(rng, scene, image)]


def make_file(folder: Path, name: str, count: int, console: Console) -> None:
    path = folder / f"{name}.jsonl"
    with (
        path.open("w", encoding="utf-8") as file,
        ProcessPoolExecutor(os.cpu_count()) as processes,
        counted(f"pictures for {path.name}", count, console) as advance,
    ):
        for lines in processes.map(partial(make_picture, folder, name), range(count), chunksize=4):
            file.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
            advance(1)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pictures", type=int, default=400, help="to train on (%(default)s)")
    parser.add_argument("--eval-pictures", type=int, default=40, help="to score (%(default)s)")
    options = parser.parse_args()
    (options.folder / "pictures").mkdir(parents=True, exist_ok=True)
    console = Console()
    make_file(options.folder, "train", options.pictures, console)
    make_file(options.folder, "eval", options.eval_pictures, console)


if __name__ == "__main__":
    main()
