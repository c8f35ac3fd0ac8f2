"""Find things in a picture: the box of each, in fractions of the picture from its top left corner.

    python examples/detect.py client/samples/shapes.png "red circle"

The bundled model knows drawings; KESTREL_MODEL=moondream2 KESTREL_DEVICE=cuda is for photographs.
"""

import asyncio
import os
import sys
from pathlib import Path

from kestrel_core import InferenceEngine, RuntimeConfig

BUNDLED = {"KESTREL_MODEL": "moondream-tiny", "KESTREL_DEVICE": "cpu"}  # unless told otherwise


async def main(picture: str, thing: str) -> None:
    engine = await InferenceEngine.create(RuntimeConfig.from_environment({**BUNDLED, **os.environ}))
    try:
        result = await engine.detect(Path(picture).read_bytes(), thing, max_objects=20)
        boxes = result.output["objects"]
        print(f"{len(boxes)} x {thing}")
        for box in boxes:
            print("  from ({x_min:.3f}, {y_min:.3f}) to ({x_max:.3f}, {y_max:.3f})".format(**box))
    finally:
        await engine.shutdown()


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(f"usage: {sys.argv[0]} PICTURE OBJECT")
    asyncio.run(main(*sys.argv[1:]))
