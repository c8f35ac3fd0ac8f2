"""Boxes, points and outlines' boxes drawn onto a copy of a picture. The one place that needs Pillow."""

from collections.abc import Iterable
from pathlib import Path

from kestrel_core.protocol.errors import BadImage, KestrelError

from .results import Box, Detection, Point, Points, Segments

BOX, POINT, EDGE = (255, 64, 64), (64, 160, 255), (255, 255, 255)


def draw(source: Path, target: Path, results: Iterable[object]) -> None:
    """Draws what of the results has a place in the picture, and writes the format that `target` ends in."""
    from PIL import Image, ImageDraw, ImageOps

    try:
        with Image.open(source) as opened:
            # Upright, as the server sees it: coordinates are those of the picture as shown.
            picture = ImageOps.exif_transpose(opened).convert("RGB")
    except (OSError, SyntaxError, ValueError) as error:
        raise BadImage(f"{str(source)!r} cannot be drawn on: Pillow does not read it") from error
    pen = ImageDraw.Draw(picture)
    (width, height), thick = picture.size, max(2, max(picture.size) // 250)
    boxes, points = _places(results)
    for box in boxes:
        x0, x1 = sorted((box.x_min * width, box.x_max * width))
        y0, y1 = sorted((box.y_min * height, box.y_max * height))
        pen.rectangle((x0, y0, x1, y1), outline=BOX, width=thick)
    for point in points:
        x, y, radius = point.x * width, point.y * height, 2 * thick
        pen.ellipse((x - radius, y - radius, x + radius, y + radius), fill=POINT, outline=EDGE)
    try:
        picture.save(target)
    except (OSError, ValueError) as error:
        raise KestrelError(f"{str(target)!r} cannot be written ({error})") from error


def _places(results: Iterable[object]) -> tuple[list[Box], list[Point]]:
    boxes: list[Box] = []
    points: list[Point] = []
    for result in results:
        match result:
            case Detection():
                boxes += result.objects
            case Segments():
                boxes += [segment.bbox for segment in result.segments]
            case Points():
                points += result.points
    return boxes, points
