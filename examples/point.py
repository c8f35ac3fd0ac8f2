"""Point at things in a picture: the middle of each, in fractions of the picture from its top left corner.

    python examples/point.py client/samples/shapes.png star

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
        result = await engine.point(picture, thing)
        points = result.output["points"]
        print(f"{len(points)} x {thing}")
        for point in points:
            print("  at ({x:.3f}, {y:.3f})".format(**point))
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
