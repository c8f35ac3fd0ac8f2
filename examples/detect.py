"""Find things in a picture: the box of each, in fractions of the picture from its top left corner.

KESTREL_MODEL=moondream2 python examples/detect.py photo.jpg car
"""

import asyncio
import sys
from pathlib import Path

from kestrel_core.config import RuntimeConfig
from kestrel_core.engine import InferenceEngine


async def main(picture: str, thing: str) -> None:
    engine = await InferenceEngine.create(RuntimeConfig.from_environment())
    try:
        result = await engine.detect(Path(picture).read_bytes(), thing, settings={"max_objects": 20})
        boxes = result.output["objects"]
        print(f"{len(boxes)} x {thing}")
        for box in boxes:
            print("  from ({x_min:.3f}, {y_min:.3f}) to ({x_max:.3f}, {y_max:.3f})".format(**box))
    finally:
        await engine.shutdown()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
