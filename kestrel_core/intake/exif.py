"""EXIF data is taken out of a picture before libvips sees it; all that is read of it is the orientation.

libvips gives it to libexif, which follows each pointer to another directory every time it meets it: with 999
pointers to the directory they stand in, 12 kB of a picture take minutes, before any cost is known. Nothing
else in it changes a pixel, so libexif gets nothing to read, and no limit has to tell such files from a
camera's. A TIFF is such a directory itself, which libtiff reads once, so TIFFs are left as they are.
"""

import re
import struct
from collections.abc import Callable, Iterator

from kestrel_core.protocol.errors import BadImage

ORIENTATION = 0x0112
ENTRY_BYTES = 12
NUMBERS = {1: "B", 3: "H", 4: "I", 6: "b", 8: "h", 9: "i"}  # EXIF's types that are whole numbers
TIFF_HEADERS = {b"II*\0": "<", b"MM\0*": ">"}
PREFIX = b"Exif\0\0"

# Decoders go over segments, chunks and boxes fast, and this is Python. Pictures have some hundreds at most.
MAX_PARTS = 10_000

JPEG_APP1, JPEG_SCAN = b"\xff\xe1", b"\xda"
JPEG_MARKER = re.compile(rb"[^\xff]*\xff+(.)", re.DOTALL)  # and what is skipped before it
JPEG_ALONE = re.compile(rb"[\x00\x01\xd0-\xd7]")  # no length stands behind these
PNG_SIGNATURE_BYTES = 8
WEBP_FIRST_CHUNK, WEBP_FLAGS, WEBP_HAS_EXIF = 12, 20, 0x08
# What stands between the name of an item's box in AVIF and the item's type: version, flags, number and
# protection. The number has 2 or 4 bytes, and a size of 8 bytes may come first.
AVIF_BEFORE_TYPE = (8, 10, 16, 18)


def take_out(encoded: bytes, name: str) -> tuple[bytes, int | None]:
    """A file of this format in which libvips finds no EXIF data, and the orientation that they had, 1 to 8.

    Of several blocks the first one counts, as in libvips. AVIF has its orientation elsewhere.
    """
    ways = {"JPEG": _of_jpeg, "PNG": _of_png, "WebP": _of_webp, "AVIF": _of_avif}
    if name not in ways:
        return encoded, None
    changed, block = ways[name](encoded)
    return changed, read_orientation(block)


def read_orientation(block: bytes) -> int | None:
    """What the first directory says, if that is a whole number; one that is none of 1 to 8 is a 1."""
    block = block.removeprefix(PREFIX)
    order = TIFF_HEADERS.get(block[:4])
    if order is None or len(block) < 8:
        return None
    [at] = struct.unpack_from(order + "I", block, 4)
    if at + 2 > len(block):
        return None
    [entry_count] = struct.unpack_from(order + "H", block, at)
    entries = block[at + 2 : at + 2 + entry_count * ENTRY_BYTES]
    whole = entries[: len(entries) // ENTRY_BYTES * ENTRY_BYTES]
    for tag, kind, count, value in struct.iter_unpack(order + "HHI4s", whole):
        if tag == ORIENTATION and kind in NUMBERS:
            number = order + NUMBERS[kind]
            if 0 < count * struct.calcsize(number) <= len(value):  # else it has none, or it stands elsewhere
                [orientation] = struct.unpack_from(number, value)
                return orientation if 1 <= orientation <= 8 else 1
    return None


def _of_jpeg(encoded: bytes) -> tuple[bytes, bytes]:
    # Within a scan a byte of ones is followed by zeros or a restart, so no pixel can look like this.
    found = [at for at in _places(encoded, b"Exif", "JPEG") if encoded[at - 4 : at - 2] == JPEG_APP1]
    if not found:
        return encoded, b""
    changed = bytearray(encoded)
    for at in found:
        changed[at : at + 4] = b"None"
    return bytes(changed), _block_of_jpeg(encoded)


def _block_of_jpeg(encoded: bytes) -> bytes:
    """The picture's own: a thumbnail in another segment, or a picture behind its end, may have one too."""
    at = 2
    for _ in range(MAX_PARTS):
        marker = JPEG_MARKER.match(encoded, at)
        if marker is None or marker[1] == JPEG_SCAN:
            return b""
        at = marker.end()
        if JPEG_ALONE.match(marker[1]):
            continue
        length = max(int.from_bytes(encoded[at : at + 2], "big"), 2)
        if marker[1] == JPEG_APP1[1:] and encoded.startswith(b"Exif", at + 2):
            return encoded[at + 2 : at + length]
        at += length
    raise _too_many("JPEG")


def _of_png(encoded: bytes) -> tuple[bytes, bytes]:
    kept: list[bytes] = []
    block = b""
    done = 0
    for kind, start, end in _parts(encoded, PNG_SIGNATURE_BYTES, "PNG", _png_chunk):
        if kind == b"IDAT":  # what comes behind the pixels is not read
            break
        if kind == b"eXIf":
            block = block or encoded[start + 8 : end - 4]
            kept.append(encoded[done:start])
            done = end
    return b"".join([*kept, encoded[done:]]) if kept else encoded, block


def _of_webp(encoded: bytes) -> tuple[bytes, bytes]:
    """The flag in its head decides whether the chunk is looked for."""
    if encoded[WEBP_FIRST_CHUNK : WEBP_FIRST_CHUNK + 4] != b"VP8X" or len(encoded) <= WEBP_FLAGS:
        return encoded, b""
    if not encoded[WEBP_FLAGS] & WEBP_HAS_EXIF:
        return encoded, b""
    changed = bytearray(encoded)
    changed[WEBP_FLAGS] &= ~WEBP_HAS_EXIF
    for kind, start, end in _parts(encoded, WEBP_FIRST_CHUNK, "WebP", _webp_chunk):
        if kind == b"EXIF":
            return bytes(changed), encoded[start + 8 : end]
    return bytes(changed), b""


def _of_avif(encoded: bytes) -> tuple[bytes, bytes]:
    """The item gets another type. Its bytes may be scattered over the file, so they are not looked for."""
    for kind, _, _ in _parts(encoded, 0, "AVIF", _avif_box):
        if kind == b"mini":  # has no boxes of items, but may have EXIF data
            raise BadImage("the AVIF image has a header of the minimized kind; save it with an ordinary one")
    ends = [at + 4 + gap + 4 for at in _places(encoded, b"infe", "AVIF") for gap in AVIF_BEFORE_TYPE]
    ends = [end for end in ends if encoded[end - 4 : end].lower() == b"exif"]  # as libvips compares it
    if not ends:
        return encoded, b""
    changed = bytearray(encoded)
    for end in ends:
        changed[end - 4 : end] = b"none"
    return bytes(changed), b""


def _places(encoded: bytes, word: bytes, name: str) -> list[int]:
    """Where these letters are. A regular expression takes seconds for 60 MB, and no thread runs meanwhile."""
    places: list[int] = []
    at = encoded.find(word)
    while at >= 0:
        if len(places) == MAX_PARTS:
            raise _too_many(name)
        places.append(at)
        at = encoded.find(word, at + len(word))
    return places


def _parts(
    encoded: bytes, at: int, name: str, head: Callable[[bytes, int], tuple[bytes, int]]
) -> Iterator[tuple[bytes, int, int]]:
    """Kind, start and end of each chunk or box. What is damaged is left for the decoder to refuse."""
    for _ in range(MAX_PARTS):
        try:
            kind, end = head(encoded, at)
        except (struct.error, OverflowError):
            return
        yield kind, at, end
        at = end
    raise _too_many(name)


def _png_chunk(encoded: bytes, at: int) -> tuple[bytes, int]:
    length, kind = struct.unpack_from(">I4s", encoded, at)
    return kind, at + 12 + length


def _webp_chunk(encoded: bytes, at: int) -> tuple[bytes, int]:
    kind, length = struct.unpack_from("<4sI", encoded, at)
    return kind, at + 8 + length + length % 2


def _avif_box(encoded: bytes, at: int) -> tuple[bytes, int]:
    size, kind = struct.unpack_from(">I4s", encoded, at)
    if size == 1:
        [size] = struct.unpack_from(">Q", encoded, at + 8)
    return kind, at + max(size, 8) if size else len(encoded)


def _too_many(name: str) -> BadImage:
    return BadImage(
        f"the {name} image has more than {MAX_PARTS:,} blocks of metadata, which is the limit; "
        "save it without them"
    )
