"""GIFs decode to what Pillow shows of their first frame, transparent or smaller than the picture."""

import io
import random
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from image_files import LIMITS, Pixels, decode
from PIL import Image

from kestrel_core.intake.gif_frames import MAX_BLOCKS
from kestrel_core.intake.image_limits import ImageLimits
from kestrel_core.intake.images import decode_image
from kestrel_core.protocol.errors import BadImage

Table = Sequence[tuple[int, int, int]]
FOUR: Table = [(10, 10, 200), (20, 0, 0), (30, 0, 0), (40, 0, 0)]
COMMENT = b"\x21\xfe\x03one\x01,\0"


def blocks(content: bytes) -> bytes:
    cut = [content[at : at + 255] for at in range(0, len(content), 255)]
    return b"".join(bytes([len(block)]) + block for block in cut) + b"\0"


def compressed(entries: Sequence[int], bits: int) -> bytes:
    """LZW that starts anew so often that its codes never grow."""
    clear, codes = 1 << bits, list[int]()
    for number, entry in enumerate(entries):
        codes += [clear] if number % (clear - 2) == 0 else []
        codes.append(entry)
    stream = sum(code << number * (bits + 1) for number, code in enumerate([*codes, clear + 1]))
    return bytes([bits]) + blocks(stream.to_bytes(-(-stream.bit_length() // 8), "little"))


def table_flags(table: Table | None) -> int:
    return 0 if table is None else 0x80 | (len(table).bit_length() - 2)


def colours(table: Table | None) -> bytes:
    return b"" if table is None else bytes(level for colour in table for level in colour)


@dataclass
class Frame:
    """Entries of a colour table, which may be its own."""

    entries: Pixels
    left: int = 0
    top: int = 0
    table: Table | None = None
    transparent: int | None = None
    interlaced: bool = False
    disposal: int = 0
    bits: int = 2

    def encode(self) -> bytes:
        height, width = self.entries.shape
        rows = range(height)
        order = [*rows[::8], *rows[4::8], *rows[2::4], *rows[1::2]] if self.interlaced else [*rows]
        control = b""
        if self.transparent is not None or self.disposal:
            flags = self.disposal << 2 | (self.transparent is not None)
            control = b"\x21\xf9\x04" + struct.pack("<BHBx", flags, 5, self.transparent or 0)
        flags = self.interlaced << 6 | table_flags(self.table)
        place = b"\x2c" + struct.pack("<4HB", self.left, self.top, width, height, flags)
        packed = compressed(self.entries[order].flatten().tolist(), self.bits)
        return control + place + colours(self.table) + packed


def gif(width: int, height: int, table: Table | None, *frames: Frame, before: bytes = b"") -> bytes:
    header = b"GIF89a" + struct.pack("<HHBBB", width, height, 0x70 | table_flags(table), 1, 0)
    return header + colours(table) + before + b"".join(frame.encode() for frame in frames) + b"\x3b"


def row(*entries: int, left: int = 0, transparent: int | None = None) -> Frame:
    return Frame(np.array([entries], np.uint8), left=left, transparent=transparent)


def as_pillow_shows(file: bytes) -> Pixels:
    return np.asarray(Image.open(io.BytesIO(file)).convert("RGB"))


def any_gif(rng: random.Random) -> bytes:
    """Still or animated, with any tables; its first frame may leave some of the picture, or exceed it."""
    bits, width, height = rng.choice([2, 3, 8]), rng.randint(1, 14), rng.randint(1, 14)
    used = rng.choice([1 << bits, 1 << bits, 1 << (bits - 1)])  # of the entries that could be

    def any_table(kinds: Sequence[str]) -> Table | None:
        kind = rng.choice(kinds)
        if kind == "greys":
            return [(level, level, level) for level in range(1 << bits)]
        some = [(rng.randrange(256), rng.randrange(256), rng.randrange(256)) for _ in range(used)]
        return some if kind == "colours" else None

    table = any_table(["none", "colours", "colours", "greys"])
    # Over a frame's own table of greys Pillow prefers the common one, against the format: not tried.
    own_kinds = ["none", "none", "colours"] + (["greys"] if table is None else [])

    def any_frame(is_first: bool) -> Frame:
        rows, cols = height, width
        if not is_first or rng.random() < 0.5:
            rows, cols = rng.randint(1, height), rng.randint(1, width)
        exceed = rng.choice([0, 0, 0, 3]) if is_first else 0
        entries = [[rng.randrange(used) for _ in range(cols)] for _ in range(rows)]
        return Frame(
            np.array(entries, np.uint8),
            left=rng.randint(0, width - cols) + exceed,
            top=rng.randint(0, height - rows) + exceed,
            table=any_table(own_kinds),
            transparent=rng.choice([None, rng.randrange(1 << bits)]),
            interlaced=rng.random() < 0.4,
            disposal=rng.randrange(4),
            bits=bits,
        )

    frames = [any_frame(number == 0) for number in range(rng.choice([1, 1, 3]))]
    return gif(width, height, table, *frames, before=rng.choice([b"", b"", COMMENT]))


def test_transparent_pixels_keep_their_colour() -> None:
    logo = row(1, 2, 1, 3, transparent=2)
    expected = [[FOUR[entry] for entry in (1, 2, 1, 3)]]
    np.testing.assert_array_equal(decode(gif(4, 1, FOUR, logo)), expected)


def test_around_a_small_frame_is_the_transparent_colour_or_the_first() -> None:
    for transparent, around in ((3, FOUR[3]), (None, FOUR[0])):
        file = gif(3, 1, FOUR, row(1, left=1, transparent=transparent))
        np.testing.assert_array_equal(decode(file), [[around, FOUR[1], around]])


@pytest.mark.parametrize("seed", range(300))
def test_any_gif_is_what_pillow_shows(seed: int) -> None:
    file = any_gif(random.Random(seed))
    np.testing.assert_array_equal(decode(file), as_pillow_shows(file))


@pytest.mark.parametrize("seed", range(200))
def test_damaged_gifs_are_refused_or_decoded(seed: int) -> None:
    rng = random.Random(seed)
    file = bytearray(any_gif(rng))
    for _ in range(rng.randrange(3)):
        file[rng.randrange(6, rng.choice([len(file), 30]))] = rng.randrange(256)
    cuts = range(len(file)) if seed % 20 == 0 else [rng.randint(6, len(file))]
    for cut in cuts:
        try:
            rgb = decode_image(bytes(file[:cut]), ImageLimits(max_pixels=10_000))
        except BadImage as error:
            assert "\n" not in str(error)
        else:
            assert rgb.ndim == 3 and rgb.shape[2] == 3


@pytest.mark.parametrize(
    "before",
    [lambda count: b"\x21\xfe" + b"\x01a" * (count - 1) + b"\0", lambda count: b"\x21\xfe\0" * count],
    ids=["of a comment", "empty"],
)
def test_blocks_before_the_first_frame_are_not_followed_forever(before: Callable[[int], bytes]) -> None:
    logo = row(1, 2, transparent=2)
    for many, shown in ((MAX_BLOCKS, [20, 30]), (MAX_BLOCKS + 1, [20, 0])):
        file = gif(2, 1, FOUR, logo, before=before(many - 1))
        assert len(file) < LIMITS.max_bytes
        assert decode(file)[0, :, 0].tolist() == shown
