"""Small files that promise large pictures, or that make a decoder talk."""

import struct
import zlib

SIDE = 9999


def gif_bomb(side: int = SIDE) -> bytes:
    """43 bytes that say that they are a picture of a hundred megapixels."""
    size = struct.pack("<HH", side, side)
    screen = b"GIF89a" + size + b"\x80\x00\x00" + b"\x00\x00\x00\xff\xff\xff"
    control = b"\x21\xf9\x04\x01\x00\x00\x00\x00"
    frame = b"\x2c" + bytes(4) + size + b"\x00"
    return screen + control + frame + b"\x02\x02\x44\x01\x00\x3b"


def png_bomb(side: int = SIDE) -> bytes:
    """One bit a pixel and all of them equal: some twelve kilobytes."""
    row = bytes(1 + (side + 7) // 8)
    parts = (
        (b"IHDR", struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)),
        (b"IDAT", zlib.compress(row * side, 9)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in parts)


def talkative_fax(width: int = 64, height: int = 10_000) -> bytes:
    """A TIFF in the code of fax machines whose lines are damaged: a decoder warns of each."""
    data = b"\x55" * 90
    fields = {256: width, 257: height, 258: 1, 259: 3, 262: 0, 273: 8, 277: 1, 278: height, 279: len(data)}
    entries = [struct.pack("<HHII", tag, 4, 1, value) for tag, value in fields.items()]
    directory = struct.pack("<H", len(entries)) + b"".join(entries) + bytes(4)
    return b"II*\0" + struct.pack("<I", 8 + len(data)) + data + directory


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
