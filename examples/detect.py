"""Find things in a picture: the box of each, in fractions of the picture from its top left corner.

    python examples/detect.py client/samples/shapes.png "red circle"

The bundled model knows drawings; KESTREL_MODEL=moondream2 KESTREL_DEVICE=cuda is for photographs.
"""

import argparse
import asyncio
import os

from kestrel_core import InferenceEngine, KestrelError, RuntimeConfig

BUNDLED = {"KESTREL_MODEL": "moondream-tiny", "KESTREL_DEVICE": "cpu"}  # unless told otherwise


async def main(picture: str, thing: str) -> None:
    engine = await InferenceEngine.create(RuntimeConfig.from_environment({**BUNDLED, **os.environ}))
    try:
        result = await engine.detect(picture, thing, max_objects=20)
        boxes = result.output["objects"]
        print(f"{len(boxes)} x {thing}")
        for box in boxes:
            print("  from ({x_min:.3f}, {y_min:.3f}) to ({x_max:.3f}, {y_max:.3f})".format(**box))
    finally:
        await engine.shutdown()


if __name__ == "__main__":
    command = argparse.ArgumentParser()
    command.add_argument("picture", metavar="PICTURE")
    command.add_argument("thing", metavar="OBJECT")
    given = command.parse_args()
    try:
        asyncio.run(main(given.picture, given.thing))
    except KestrelError as error:
        command.error(str(error))
