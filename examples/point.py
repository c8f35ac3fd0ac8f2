"""Point at things in a picture: the middle of each, in fractions of the picture from its top left corner.

    python examples/point.py client/samples/shapes.png star

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
        result = await engine.point(Path(picture).read_bytes(), thing)
        points = result.output["points"]
        print(f"{len(points)} x {thing}")
        for point in points:
            print("  at ({x:.3f}, {y:.3f})".format(**point))
    finally:
        await engine.shutdown()


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(f"usage: {sys.argv[0]} PICTURE OBJECT")
    asyncio.run(main(*sys.argv[1:]))
