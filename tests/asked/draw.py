"""Draws the pictures of this folder, and writes down what is on them and where: pictures/ and truth.json.

    python tests/asked/draw.py ASSETS [NAME...]

ASSETS is a folder with the archives that README.md names. The fonts among them must be found by fontconfig,
so the script makes a configuration for them before it loads libvips.
"""

import json
import os
import struct
import sys
import tarfile
import tempfile
import zlib
from pathlib import Path
from typing import Any

from compositions import PICTURES
from parts import Picture, Sheet

FOLDER = Path(__file__).parent
SEEN = 40  # of 255: opacity from which a pixel belongs to a thing


def use_fonts(assets: Path, folder: Path) -> None:
    for archive in assets.glob("fontsource-*.tgz"):
        with tarfile.open(archive) as packed:
            for member in packed:
                if "-latin-" in member.name and member.name.endswith("-normal.woff"):
                    file = packed.extractfile(member)
                    assert file is not None
                    (folder / Path(member.name).name).with_suffix(".ttf").write_bytes(unpacked(file.read()))
    config = folder / "fonts.conf"
    config.write_text(
        f"<fontconfig><dir>{folder}</dir><dir>/usr/share/fonts</dir><cachedir>{folder}/cache</cachedir></fontconfig>"
    )
    os.environ["FONTCONFIG_FILE"] = str(config)


def unpacked(woff: bytes) -> bytes:
    """The TrueType font inside a WOFF file, because Pango takes no WOFF."""
    flavour, count = struct.unpack(">4x4s4xH", woff[:14])
    entries = [struct.unpack(">4s4I", woff[44 + 20 * i : 64 + 20 * i]) for i in range(count)]
    power = count.bit_length() - 1
    head = struct.pack(">4s4H", flavour, count, 16 << power, power, 16 * (count - (1 << power)))
    at, tables, body = 12 + 16 * count, b"", b""
    for tag, offset, packed, length, checksum in entries:
        table = woff[offset : offset + packed]
        table = zlib.decompress(table) if packed < length else table
        tables += struct.pack(">4s3I", tag, checksum, at + len(body), length)
        body += table + bytes(-length % 4)
    return head + tables + body


def svg(sheet: Sheet, *parts: str) -> bytes:
    size = f'width="{sheet.width}" height="{sheet.height}" viewBox="0 0 {sheet.width} {sheet.height}"'
    links = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    return f"<svg {links} {size}>{''.join(parts)}</svg>".encode()


def draw(picture: Picture, assets: Path) -> dict[str, Any]:
    """Writes the picture and returns the truth about it."""
    import pyvips

    sheet = Sheet(picture.width, picture.height, picture.drawn, assets)
    drawn = [part.draw(sheet) for part in picture.parts]
    whole = pyvips.Image.svgload_buffer(svg(sheet, picture.behind(sheet), *drawn)).flatten(background=255)
    path = FOLDER / "pictures" / picture.name
    if path.suffix == ".jpg":
        whole.jpegsave(str(path), Q=80, keep="none")
    else:
        whole.pngsave(str(path), compression=9, keep="none")
    things = []
    for part, code in zip(picture.parts, drawn, strict=True):
        if part.name:
            alpha = pyvips.Image.svgload_buffer(svg(sheet, code))[3]
            left, top, width, height = (alpha > SEEN).find_trim(background=0, threshold=1)
            box = (
                left / sheet.width,
                top / sheet.height,
                (left + width) / sheet.width,
                (top + height) / sheet.height,
            )
            things.append({"name": part.name, "box": [round(edge, 4) for edge in box]})
    values = {"values": dict(picture.values)} if picture.values else {}
    return {"drawn": picture.drawn, "things": things, **values}


def main(assets: Path, names: list[str]) -> None:
    path = FOLDER / "truth.json"
    truth = json.loads(path.read_text()) if path.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        use_fonts(assets, Path(folder))
        for picture in PICTURES:
            if not names or picture.name.partition(".")[0] in names:
                truth[picture.name] = draw(picture, assets)
    lines = (
        f"{json.dumps(name)}: {json.dumps(truth[picture.name])}"
        for picture in PICTURES
        if (name := picture.name)
    )
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
