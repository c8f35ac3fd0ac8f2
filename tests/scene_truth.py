"""What is asked about a picture of a scene, and what a model that knows everything would answer."""

from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np

from kestrel_tools.scenes.asking import Asked, scene_requests
from kestrel_tools.scenes.pictures import Picture
from kestrel_tools.scenes.score import Outcome, Scores, grade
from kestrel_tools.scenes.world import Thing


def asked_about(picture: Picture) -> list[Asked]:
    return scene_requests(Random(picture.name), picture.scene)


def box(thing: Thing) -> dict[str, float]:
    return dict(zip(("x_min", "y_min", "x_max", "y_max"), thing.box, strict=True))


def segment(thing: Thing, picture: Picture) -> dict[str, Any]:
    low, high = np.array(thing.box[:2]), np.array(thing.box[2:])
    paths = [
        " L ".join(f"{x:.4g} {y:.4g}" for x, y in (path - low) / (high - low))
        for path in picture.outlines[thing]
    ]
    return {"svg_path": " ".join(f"M {path} Z" for path in paths), "bbox": box(thing)}


def truth(asked: Asked, picture: Picture) -> dict[str, Any]:
    """What a model that knows everything would answer."""
    things = asked.things
    match asked.skill:
        case "caption":
            return {"caption": asked.answer}
        case "detect":
            return {"objects": [box(thing) for thing in things]}
        case "point":
            return {"points": [{"x": x, "y": y} for x, y in (thing.centre for thing in things)]}
        case "segment":
            return {"segments": [segment(thing, picture) for thing in things]}
    grounding = [{"start_idx": 0, "end_idx": 5, "points": [list(thing.centre) for thing in things]}]
    thoughts = {"text": "I see", "grounding": grounding if things else []}
    return {"answer": asked.answer} | ({"reasoning": thoughts} if asked.kind == "reasoning" else {})


def scores_of(outcomes: Sequence[tuple[Asked, Outcome, Picture]]) -> dict[str, float]:
    scores = Scores()
    for asked, outcome, picture in outcomes:
        scores.add(asked, grade(asked, outcome, picture), picture)
    return {row.name: row.value for row in scores.rows()}
