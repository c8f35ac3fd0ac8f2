"""Draws the pictures in this folder: coloured shapes, so that a glance tells whether an answer is right."""

import math
from pathlib import Path

from PIL import Image, ImageDraw

HERE = Path(__file__).parent


def shapes() -> Image.Image:
    picture = Image.new("RGB", (640, 480), (244, 241, 232))
    pen = ImageDraw.Draw(picture)
    pen.ellipse((70, 60, 250, 240), fill=(214, 48, 49))
    pen.rectangle((360, 90, 560, 230), fill=(9, 132, 227))
    pen.polygon(((200, 420), (320, 270), (440, 420)), fill=(253, 203, 110))
    return picture


def circles() -> Image.Image:
    """Five green circles in a row of two and a row of three, to count, detect and point at."""
    picture = Image.new("RGB", (640, 480), (45, 52, 54))
    pen = ImageDraw.Draw(picture)
    for x, y in ((200, 140), (440, 140), (120, 340), (320, 340), (520, 340)):
        pen.ellipse((x - 60, y - 60, x + 60, y + 60), fill=(0, 184, 148))
    return picture


def house() -> Image.Image:
    picture = Image.new("RGB", (800, 600), (129, 207, 240))
    pen = ImageDraw.Draw(picture)
    pen.rectangle((0, 430, 800, 600), fill=(88, 160, 76))
    pen.ellipse((620, 50, 730, 160), fill=(255, 221, 89))
    for ray in range(12):
        x, y = math.cos(ray * math.pi / 6), math.sin(ray * math.pi / 6)
        pen.line((675 + 66 * x, 105 + 66 * y, 675 + 88 * x, 105 + 88 * y), fill=(255, 221, 89), width=5)
    pen.rectangle((220, 270, 500, 480), fill=(230, 180, 140))
    pen.polygon(((190, 270), (360, 150), (530, 270)), fill=(170, 60, 50))
    pen.rectangle((330, 370, 395, 480), fill=(96, 56, 30))
    for x in (250, 420):
        pen.rectangle((x, 310, x + 55, 360), fill=(250, 250, 210), outline=(96, 56, 30), width=4)
    return picture


if __name__ == "__main__":
    shapes().save(HERE / "shapes.png", optimize=True)
    circles().save(HERE / "circles.png", optimize=True)
    house().save(HERE / "house.jpg", quality=88)
