"""Pictures without a drawing library: PNG from pixels, and loss curves as SVG."""

import struct
import zlib
from collections.abc import Mapping, Sequence
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


COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b")


def write_curves(path: Path, curves: Mapping[str, Sequence[tuple[float, float]]], across: str) -> None:
    """Lines on a logarithmic scale: each is a list of (x, y)."""
    width, height, margin = 800, 420, 50
    points = [point for curve in curves.values() for point in curve if point[1] > 0]
    if not points:
        return
    last = max(x for x, _ in points) or 1.0
    low, high = np.floor(np.log10(min(y for _, y in points))), np.ceil(np.log10(max(y for _, y in points)))

    def place(x: float, y: float) -> str:
        share = (np.log10(max(y, 1e-9)) - low) / max(high - low, 1)
        right, up = x / last * (width - 2 * margin), share * (height - 2 * margin)
        return f"{margin + right:.1f},{height - margin - up:.1f}"

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for power in range(int(low), int(high) + 1):
        left, right = place(0, 10.0**power), place(last, 10.0**power)
        parts.append(f'<polyline points="{left} {right}" stroke="#ddd"/>')
        parts.append(f'<text x="6" y="{float(left.split(",")[1]) + 4}">{10.0**power:g}</text>')
    for index, (name, curve) in enumerate(curves.items()):
        colour = COLOURS[index % len(COLOURS)]
        line = " ".join(place(x, y) for x, y in curve)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}"/>')
        parts.append(
            f'<text x="{width - margin - 90}" y="{margin + 16 * index}" fill="{colour}">{name}</text>'
        )
    parts.append(f'<text x="{width / 2}" y="{height - 12}">{across}, 0 to {last:g}</text></svg>')
    path.write_text("\n".join(parts), encoding="utf-8")
