"""The first frame of a GIF as Pillow shows it: transparent pixels in their colours, and something around it.

libvips makes a transparent pixel black, although its colour stands in the file, and so is all that a small
frame leaves of the picture. Pillow drops transparency alone, and fills the rest with the transparent entry
of the colour table, or with the first one.
"""

import struct
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

HEADER_BYTES = 13
HAS_TABLE, IS_TRANSPARENT = 0x80, 0x01
EXTENSION, GRAPHIC_CONTROL, FRAME = 0x21, 0xF9, 0x2C
# Decoders skip blocks fast, and this is Python: a file could have 30 million before its first frame. Comments
# and colour profiles have some hundreds.
MAX_BLOCKS = 100_000
GREY_TABLE = bytes(level for level in range(256) for _ in range(3))


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where the first frame lies in its picture, and the colour of what is around it."""

    colour: tuple[int, ...]
    left: int
    top: int
    width: int
    height: int

    def fill(self, rgb: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """The same picture with this colour around the frame."""
        if (self.left, self.top) == (0, 0) and rgb.shape[:2] == (self.height, self.width):
            return rgb
        filled = np.empty_like(rgb)
        filled[:] = self.colour
        frame = (slice(self.top, self.top + self.height), slice(self.left, self.left + self.width))
        filled[frame] = rgb[frame]
        return filled


class _Start(NamedTuple):
    """What a file says before its first frame: where that begins, and which entry is transparent."""

    frame: int
    controls: list[int]  # where the flags of graphic control extensions are
    transparent: int | None


def opaque(encoded: bytes) -> tuple[bytes, Surroundings | None]:
    """A file whose first frame has no transparency and does have colours, and what is around that frame.

    What is damaged comes back as it is, for the decoder to refuse.
    """
    try:
        start = _read_start(encoded)
        if start is None:
            return encoded, None
        left, top, width, height, flags = struct.unpack_from("<4HB", encoded, start.frame + 1)
        table = _table(encoded, start.frame + 10, flags) or _table(encoded, HEADER_BYTES, encoded[10])
    except (IndexError, struct.error):
        return encoded, None
    changed = bytearray(encoded)
    for at in start.controls:
        changed[at] &= ~IS_TRANSPARENT
    if not table:  # libvips would have black and white
        table = GREY_TABLE
        changed[HEADER_BYTES:HEADER_BYTES] = table
        changed[10] |= HAS_TABLE | 7
    index = start.transparent or 0
    colour = table[3 * index : 3 * index + 3].ljust(3, b"\0")  # an entry that is not there is black
    return bytes(changed), Surroundings(tuple(colour), left, top, width, height)


def _read_start(encoded: bytes) -> _Start | None:
    at = HEADER_BYTES + len(_table(encoded, HEADER_BYTES, encoded[10]))
    controls: list[int] = []
    transparent = None
    blocks = 0
    while encoded[at] == EXTENSION and blocks <= MAX_BLOCKS:
        if encoded[at + 1] == GRAPHIC_CONTROL and encoded[at + 2] >= 4:
            controls.append(at + 3)
            if encoded[at + 3] & IS_TRANSPARENT:
                transparent = encoded[at + 6]
        at += 2
        while encoded[at]:
            at += 1 + encoded[at]
            blocks += 1
            if blocks > MAX_BLOCKS:
                return None
        at += 1
        blocks += 1  # the empty one at the end, which may be the only one
    return _Start(at, controls, transparent) if encoded[at] == FRAME else None


def _table(encoded: bytes, at: int, flags: int) -> bytes:
    """The colour table that lies here if the flags say that there is one."""
    return encoded[at : at + (6 << (flags & 7))] if flags & HAS_TABLE else b""
