"""Boxes, points and outlines drawn onto a copy of a picture. The one place that needs Pillow."""

import re
from collections.abc import Iterable
from pathlib import Path

from kestrel_core.protocol.errors import BadImage, KestrelError
from kestrel_core.protocol.results import Box, Detection, Point, Points, Segment, Segments

BOX, POINT, EDGE, OUTLINE = (255, 64, 64), (64, 160, 255), (255, 255, 255), (255, 0, 200)
VERTEX = re.compile(r"[ML]\s*(-?[\d.eE+-]+)[\s,]+(-?[\d.eE+-]+)")


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
    boxes, points, segments = _places(results)
    for segment in segments:
        for outline in outlines(segment):
            corners = [(x * width, y * height) for x, y in (*outline, outline[0])]
            pen.line(corners, fill=OUTLINE, width=thick, joint="curve")
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


def outlines(segment: Segment) -> list[list[tuple[float, float]]]:
    """The closed polygons of a segment in fractions of the picture; its path is relative to its box."""
    box, found = segment.bbox, []
    for part in segment.svg_path.split("Z"):
        corners = [
            (
                box.x_min + float(x) * (box.x_max - box.x_min),
                box.y_min + float(y) * (box.y_max - box.y_min),
            )
            for x, y in VERTEX.findall(part)
        ]
        if len(corners) > 2:
            found.append(corners)
    return found


def _places(results: Iterable[object]) -> tuple[list[Box], list[Point], list[Segment]]:
    boxes: list[Box] = []
    points: list[Point] = []
    segments: list[Segment] = []
    for result in results:
        match result:
            case Detection():
                boxes += result.objects
            case Segments():
                segments += result.segments
            case Points():
                points += result.points
    return boxes, points, segments
