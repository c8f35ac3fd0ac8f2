"""supervision reads a detection as Moondream's client gives it: `supervision_boxes.py ADDRESS PICTURE`."""

import json
import sys

import moondream
import supervision as sv
from PIL import Image

address, path = sys.argv[1:]
picture = Image.open(path)
client = moondream.vl(endpoint=f"{address}/v1")


def boxes(name: str) -> list[list[float]]:
    result = client.detect(picture, name)
    found: list[list[float]] = sv.Detections.from_vlm(
        sv.VLM.MOONDREAM, result, resolution_wh=picture.size
    ).xyxy.tolist()
    return found


print(json.dumps({"size": picture.size, "found": boxes("green circle"), "nothing": boxes("black cross")}))
