"""Point at things in a picture: the middle of each, in fractions of the picture from its top left corner.

KESTREL_MODEL=moondream2 python examples/point.py photo.jpg person
"""

import asyncio
import sys
from pathlib import Path

from kestrel_core.config import RuntimeConfig
from kestrel_core.engine import InferenceEngine


async def main(picture: str, thing: str) -> None:
    engine = await InferenceEngine.create(RuntimeConfig.from_environment())
    try:
        result = await engine.point(Path(picture).read_bytes(), thing)
        points = result.output["points"]
        print(f"{len(points)} x {thing}")
        for point in points:
            print("  at ({x:.3f}, {y:.3f})".format(**point))
    finally:
        await engine.shutdown()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
