"""Pictures without a drawing library: PNG from pixels."""

import struct
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


def write_png(path: Path, pixels: NDArray[np.uint8]) -> None:
    """pixels: [height, width, 3]."""
    height, width, _ = pixels.shape
    lines = b"".join(b"\0" + row.tobytes() for row in np.ascontiguousarray(pixels))

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = (chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(lines, 6)), chunk(b"IEND", b""))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(parts))


def sheet(pictures: NDArray[np.uint8], columns: int) -> NDArray[np.uint8]:
    """[n, height, width, 3] in rows of `columns`, white between them."""
    framed = np.pad(pictures, ((0, -len(pictures) % columns), (2, 2), (2, 2), (0, 0)), constant_values=255)
    rows = framed.reshape(-1, columns, *framed.shape[1:])
    return np.concatenate([np.concatenate(list(row), axis=1) for row in rows])
