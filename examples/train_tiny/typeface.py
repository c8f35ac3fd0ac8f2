"""Letters of a WOFF or TrueType file as paths: just enough of the format to draw plain text.

Tables are big-endian; what is read here: `cmap` (format 4 or 12), `head`, `hmtx`, `hhea`, `loca` and `glyf`.
"""

import struct
import zlib

Curve = list[tuple[float, float, bool]]  # x, y upwards, and whether the point lies on the curve

REPEAT, X_SHORT, Y_SHORT, X_SAME, Y_SAME, ON_CURVE = 8, 2, 4, 16, 32, 1
WORDS, OFFSETS, SCALED, MORE, TWO_SCALES, FOUR_SCALES = 1, 2, 8, 32, 64, 128  # flags of a composite's part


class Typeface:
    def __init__(self, data: bytes) -> None:
        self._tables = _woff_tables(data) if data[:4] == b"wOFF" else _plain_tables(data)
        head = self._tables["head"]
        self.units, self._long_offsets = _u16(head, 18), _u16(head, 50) == 1
        self._num_advances = _u16(self._tables["hhea"], 34)
        self._glyphs = _characters(self._tables["cmap"])

    def advance(self, character: str) -> int:
        glyph = min(self._glyphs.get(ord(character), 0), self._num_advances - 1)
        return _u16(self._tables["hmtx"], 4 * glyph)

    def has(self, character: str) -> bool:
        return ord(character) in self._glyphs

    def svg_path(self, character: str, scale: float, x: float, y: float) -> str:
        """The letter with its origin at (x, y), `scale` pixels a unit, y downwards."""
        contours = self._contours(self._glyphs.get(ord(character), 0))
        return " ".join(
            _svg([(x + px * scale, y - py * scale, on) for px, py, on in contour])
            for contour in contours
            if contour
        )

    def _contours(self, glyph: int) -> list[Curve]:
        loca, glyf = self._tables["loca"], self._tables["glyf"]
        if self._long_offsets:
            start, end = struct.unpack_from(">II", loca, 4 * glyph)
        else:
            start, end = (2 * offset for offset in struct.unpack_from(">HH", loca, 2 * glyph))
        if start == end:
            return []
        data = glyf[start:end]
        [count] = struct.unpack_from(">h", data)
        return _simple(data, count) if count >= 0 else self._composite(data)

    def _composite(self, data: bytes) -> list[Curve]:
        contours: list[Curve] = []
        at, flags = 10, MORE
        while flags & MORE:
            flags, part = struct.unpack_from(">HH", data, at)
            dx, dy = struct.unpack_from(">hh" if flags & WORDS else ">bb", data, at + 4)
            at += 8 if flags & WORDS else 6
            xx, xy, yx, yy = 1.0, 0.0, 0.0, 1.0
            if flags & SCALED:
                xx = yy = _fixed(data, at)
                at += 2
            elif flags & TWO_SCALES:
                xx, yy = _fixed(data, at), _fixed(data, at + 2)
                at += 4
            elif flags & FOUR_SCALES:
                xx, xy, yx, yy = (_fixed(data, at + 2 * i) for i in range(4))
                at += 8
            if not flags & OFFSETS:
                dx = dy = 0
            contours += [
                [(x * xx + y * yx + dx, x * xy + y * yy + dy, on) for x, y, on in contour]
                for contour in self._contours(part)
            ]
        return contours


def _simple(data: bytes, count: int) -> list[Curve]:
    if count == 0:
        return []
    ends = struct.unpack_from(f">{count}H", data, 10)
    at = 10 + 2 * count
    at += 2 + _u16(data, at)  # instructions
    flags: list[int] = []
    while len(flags) <= ends[-1]:
        flag, at = data[at], at + 1
        times = 1
        if flag & REPEAT:
            times, at = 1 + data[at], at + 1
        flags += [flag] * times
    xs, at = _deltas(data, at, flags, X_SHORT, X_SAME)
    ys, at = _deltas(data, at, flags, Y_SHORT, Y_SAME)
    points = [(float(x), float(y), bool(flag & ON_CURVE)) for x, y, flag in zip(xs, ys, flags, strict=True)]
    starts = (0, *(end + 1 for end in ends[:-1]))
    return [points[start : end + 1] for start, end in zip(starts, ends, strict=True)]


def _deltas(data: bytes, at: int, flags: list[int], short: int, same: int) -> tuple[list[int], int]:
    values, value = [], 0
    for flag in flags:
        if flag & short:
            value += data[at] if flag & same else -data[at]
            at += 1
        elif not flag & same:
            value += struct.unpack_from(">h", data, at)[0]
            at += 2
        values.append(value)
    return values, at


def _svg(contour: Curve) -> str:
    """Quadratic curves; between two points off the curve lies one on it, in the middle."""
    full: Curve = []
    for (x, y, on), (next_x, next_y, next_on) in zip(contour, contour[1:] + contour[:1], strict=True):
        full.append((x, y, on))
        if not on and not next_on:
            full.append(((x + next_x) / 2, (y + next_y) / 2, True))
    first = next((i for i, point in enumerate(full) if point[2]), 0)
    full = full[first:] + full[: first + 1]
    parts, at = [f"M{full[0][0]:.3f} {full[0][1]:.3f}"], 1
    while at < len(full):
        x, y, on = full[at]
        if on:
            parts.append(f"L{x:.3f} {y:.3f}")
        else:
            at += 1
            parts.append(f"Q{x:.3f} {y:.3f} {full[at][0]:.3f} {full[at][1]:.3f}")
        at += 1
    return "".join(parts) + "Z"


def _characters(cmap: bytes) -> dict[int, int]:
    """Glyph of each code point; of those below 65,536, where the font has no table of the others."""
    tables = {}
    for index in range(_u16(cmap, 2)):
        [offset] = struct.unpack_from(">I", cmap, 8 + 8 * index)
        tables[_u16(cmap, offset)] = offset
    if 12 in tables:
        return _in_groups(cmap, tables[12])
    if 4 in tables:
        return _in_segments(cmap, tables[4])
    raise ValueError("the font has no character table of format 4 or 12")


def _in_groups(cmap: bytes, offset: int) -> dict[int, int]:
    [count] = struct.unpack_from(">I", cmap, offset + 12)
    groups = (struct.unpack_from(">III", cmap, offset + 16 + 12 * index) for index in range(count))
    return {code: glyph + code - start for start, end, glyph in groups for code in range(start, end + 1)}


def _in_segments(cmap: bytes, offset: int) -> dict[int, int]:
    count = _u16(cmap, offset + 6) // 2
    at = offset + 14
    ends = struct.unpack_from(f">{count}H", cmap, at)
    starts = struct.unpack_from(f">{count}H", cmap, at + 2 * count + 2)
    deltas = struct.unpack_from(f">{count}H", cmap, at + 4 * count + 2)
    ranges_at = at + 6 * count + 2
    found = {}
    for index, (start, end, delta) in enumerate(zip(starts, ends, deltas, strict=True)):
        skip = _u16(cmap, ranges_at + 2 * index)
        for code in range(start, min(end, 0xFFFE) + 1):
            if skip:
                glyph = _u16(cmap, ranges_at + 2 * index + skip + 2 * (code - start))
                glyph = (glyph + delta) & 0xFFFF if glyph else 0
            else:
                glyph = (code + delta) & 0xFFFF
            if glyph:
                found[code] = glyph
    return found


def _woff_tables(data: bytes) -> dict[str, bytes]:
    tables = {}
    for index in range(_u16(data, 12)):
        tag, offset, packed, length, _ = struct.unpack_from(">4sIIII", data, 44 + 20 * index)
        part = data[offset : offset + packed]
        tables[tag.decode()] = zlib.decompress(part) if packed < length else part
    return tables


def _plain_tables(data: bytes) -> dict[str, bytes]:
    tables = {}
    for index in range(_u16(data, 4)):
        tag, _, offset, length = struct.unpack_from(">4sIII", data, 12 + 16 * index)
        tables[tag.decode()] = data[offset : offset + length]
    return tables


def _u16(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 2], "big")


def _fixed(data: bytes, at: int) -> float:
    [value] = struct.unpack_from(">h", data, at)
    return float(value) / 16384
