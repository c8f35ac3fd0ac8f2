"""Draws `docs/answers.png`, with which the README opens, and prints the JSON beside it.

make serve                              # in another shell
.venv/bin/python docs/draw_answers.py   # asks it, over gRPC
"""

import argparse
import json
from pathlib import Path
from typing import Any

from kestrel_client import Client, drawing

ROOT = Path(__file__).parents[1]
SAMPLE = ROOT / "client/samples/shapes.png"
PICTURE = ROOT / "docs/answers.png"


def main(url: str) -> None:
    data = SAMPLE.read_bytes()
    greedy: dict[str, Any] = {"temperature": 0.0}
    with Client(url) as client:
        answers = [
            client.query(data, "Is the yellow triangle below the blue square?", **greedy),
            client.query(data, "How many shapes are there?", reasoning=True, **greedy),
            client.caption(data, "short", **greedy),
            client.detect(data, "big shapes"),
            client.point(data, "purple heart"),
            client.segment(data, "yellow triangle"),
        ]
    for answer in answers:
        print(json.dumps(answer.output))
    drawing.draw(SAMPLE, PICTURE, answers)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="localhost:8001", help="host:port of the server's gRPC")
    main(parser.parse_args().url)
