"""libvips gets no EXIF data, so none of it costs anything; the orientation that it names is kept."""

import io
import struct
import zlib
from collections.abc import Callable, Sequence

import numpy as np
import pytest
import pyvips
from image_files import decode, encode, noise, picture, refusal
from PIL import Image

from kestrel_core.intake import exif
from kestrel_core.intake.exif import MAX_PARTS, ORIENTATION, PREFIX, read_orientation, take_out

Entry = tuple[int, int, int, int]  # tag, type, count, value

SHORT, LONG = 3, 4
POINTERS = (0x8769, 0x8825, 0xA005)  # to the directories of EXIF, of GPS and of interoperability
START = 8  # of the first directory
FORMATS = ("JPEG", "PNG", "WebP", "AVIF")
OPEN: dict[str, Callable[..., pyvips.Image]] = {
    "JPEG": pyvips.Image.jpegload_buffer,
    "PNG": pyvips.Image.pngload_buffer,
    "WebP": pyvips.Image.webpload_buffer,
    "AVIF": pyvips.Image.heifload_buffer,
    "TIFF": pyvips.Image.tiffload_buffer,
}


def directory(entries: Sequence[Entry], order: str = "<", more: bytes = b"") -> bytes:
    packed = b"".join(
        struct.pack(order + "HHI", tag, kind, count)
        + (struct.pack(order + "HH", value, 0) if kind == SHORT else struct.pack(order + "I", value))
        for tag, kind, count, value in entries
    )
    head = {"<": b"II*\0", ">": b"MM\0*"}[order] + struct.pack(order + "IH", START, len(entries))
    return head + packed + bytes(4) + more


def loop(times: int) -> list[Entry]:
    """A directory of pointers to itself: libexif takes some times**3 steps, 60 are more than a second."""
    return [(POINTERS[number % 3], LONG, 1, START) for number in range(times)]


def file(name: str, block: bytes, height: int = 48, width: int = 64) -> bytes:
    target = io.BytesIO()
    prefix = PREFIX if name == "JPEG" else b""
    Image.fromarray(picture(height, width)).save(target, name, exif=prefix + block)
    return target.getvalue()


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def with_segments(*contents: bytes) -> bytes:
    target = io.BytesIO()
    Image.fromarray(picture()).save(target, "JPEG")
    plain = target.getvalue()
    segments = [b"\xff\xe1" + struct.pack(">H", len(content) + 2) + content for content in contents]
    return plain[:2] + b"".join(segments) + plain[2:]


TURNED, HALF_TURNED = (directory([(ORIENTATION, SHORT, 1, number)]) for number in (6, 3))


def has_exif(encoded: bytes, name: str) -> bool:
    return bool(OPEN[name](encoded, fail_on="error").get_typeof("exif-data"))


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("times", [60, 999])
def test_a_directory_that_points_to_itself_is_not_gone_through(name: str, times: int) -> None:
    encoded = file(name, directory(loop(times)))
    assert decode(encoded).shape == (48, 64, 3)
    changed, orientation = take_out(encoded, name)
    assert not has_exif(changed, name) and orientation is None


@pytest.mark.parametrize("name", FORMATS)
def test_libvips_would_see_it_if_it_were_not_taken_out(name: str) -> None:
    encoded = file(name, directory(loop(3)))
    assert has_exif(encoded, name)
    assert not has_exif(take_out(encoded, name)[0], name)


@pytest.mark.parametrize("name", FORMATS)
def test_a_picture_without_it_is_left_as_it_is(name: str) -> None:
    target = io.BytesIO()
    Image.fromarray(picture()).save(target, name)
    assert take_out(target.getvalue(), name) == (target.getvalue(), None)


def test_a_tiff_whose_directory_points_to_itself_is_read_once() -> None:
    fields = [(256, 4), (257, 4), (258, 8), (259, 1), (262, 1), (273, 0), (277, 1), (278, 4), (279, 16)]
    entries = [(tag, LONG, 1, value) for tag, value in fields] + loop(999)
    pixels = len(directory(entries))
    entries[5] = (273, LONG, 1, pixels)
    encoded = directory(entries, more=bytes(16))
    assert decode(encoded).shape == (4, 4, 3)
    assert not has_exif(encoded, "TIFF")
    assert take_out(encoded, "TIFF") == (encoded, None)


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("name", ["JPEG", "PNG", "WebP"])
def test_the_orientation_is_the_one_that_libvips_would_read(name: str, orientation: int, order: str) -> None:
    entries = [(0x0110, 2, 4, 0), (ORIENTATION, SHORT, 1, orientation), (0x0213, SHORT, 1, 1)]
    encoded = file(name, directory(entries, order))
    assert OPEN[name](encoded).get("orientation") == orientation
    changed, found = take_out(encoded, name)
    assert found == orientation and not has_exif(changed, name)
    shown = np.asarray(OPEN[name](encoded).autorot().numpy())
    np.testing.assert_array_equal(decode(encoded), shown)


@pytest.mark.parametrize(
    "block",
    [
        directory([(ORIENTATION, LONG, 1, 6)]),
        directory([(ORIENTATION, LONG, 1, 6)], ">"),
        directory([(ORIENTATION, 1, 1, 6)]),
        directory([(ORIENTATION, SHORT, 0, 6)]),
        directory([(ORIENTATION, SHORT, 0, 6), (ORIENTATION, SHORT, 1, 3)]),
        directory([(ORIENTATION, SHORT, 2, 6)]),
        directory([(ORIENTATION, 13, 1, 6)]),
        directory([(ORIENTATION, SHORT, 1, 3), (ORIENTATION, SHORT, 1, 6)]),
        directory([(ORIENTATION, SHORT, 1, 0)]),
        directory([(ORIENTATION, SHORT, 1, 9)]),
        directory([(ORIENTATION, SHORT, 1, 65535)]),
        directory([(ORIENTATION, SHORT, 1, 6)]).replace(b"\x01\0\x12", b"\xff\xff\x12"),
        directory([(ORIENTATION, SHORT, 1, 6)]).replace(b"*\0", b"+\0"),
        directory([(ORIENTATION, SHORT, 1, 6)])[:-9],
        directory([]),
        b"II*\0\xff\xff\xff\xff" + bytes(20),
        b"II*\0",
        b"",
    ],
    ids=lambda block: block.hex()[:60] or "empty",
)
def test_what_is_odd_is_read_as_libvips_reads_it(block: bytes) -> None:
    opened = OPEN["JPEG"](with_segments(PREFIX + block), fail_on="error")
    theirs = opened.get("orientation") if opened.get_typeof("orientation") else None
    assert (read_orientation(PREFIX + block) or 1) == (theirs or 1)
    assert read_orientation(block) == read_orientation(PREFIX + block)


def with_chunks(*chunks: bytes) -> bytes:
    target = io.BytesIO()
    Image.fromarray(picture()).save(target, "PNG")
    plain = target.getvalue()
    return plain[:33] + b"".join(chunks) + plain[33:]


def test_of_several_blocks_the_first_counts_and_none_is_left() -> None:
    blocks = [directory([(ORIENTATION, SHORT, 1, number)]) for number in (6, 3, 8)]
    jpeg = with_segments(*[PREFIX + block for block in blocks])
    png = with_chunks(*[chunk(b"eXIf", block) for block in blocks])
    for encoded, name in ((jpeg, "JPEG"), (png, "PNG")):
        assert OPEN[name](encoded).get("orientation") == 6
        changed, orientation = take_out(encoded, name)
        assert orientation == 6 and not has_exif(changed, name)


def app(number: int, content: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, 0xE0 + number, len(content) + 2) + content


@pytest.mark.parametrize(
    ("before", "behind", "expected"),
    [
        ((), with_segments(PREFIX + TURNED), 1),
        ((app(13, b"Photoshop 3.0\0" + with_segments(PREFIX + TURNED)[:200]),), b"", 1),
        ((app(13, with_segments(PREFIX + TURNED)[:200]), app(1, PREFIX + HALF_TURNED)), b"", 3),
        ((b"\xff\x01\xff\xff", app(2, b"\xff"), b"\xff\xff\xff", app(1, PREFIX + HALF_TURNED)), b"", 3),
        ((app(1, b"http://ns.adobe.com/xap/1.0/\0"), app(1, PREFIX + HALF_TURNED)), b"", 3),
    ],
    ids=["another picture behind", "thumbnail", "thumbnail first", "odd bytes between", "XMP first"],
)
def test_a_jpeg_is_turned_by_its_own_data_alone(
    before: Sequence[bytes], behind: bytes, expected: int
) -> None:
    plain = with_segments()
    encoded = plain[:2] + b"".join(before) + plain[2:] + behind
    opened = OPEN["JPEG"](encoded)
    assert (opened.get("orientation") if opened.get_typeof("orientation") else 1) == expected
    changed, orientation = take_out(encoded, "JPEG")
    assert (orientation or 1) == expected and not has_exif(changed, "JPEG")
    np.testing.assert_array_equal(decode(encoded), np.asarray(opened.autorot().numpy()))


def test_what_libvips_takes_for_exif_data_by_four_letters_is_taken_out_too() -> None:
    encoded = with_segments(b"ExifXX" + directory(loop(3)))
    assert has_exif(encoded, "JPEG") and not has_exif(take_out(encoded, "JPEG")[0], "JPEG")


@pytest.mark.parametrize("kind", [b"exif", b"EXIF", b"eXiF"])
def test_an_item_of_avif_is_found_in_capitals_and_in_small_letters(kind: bytes) -> None:
    encoded = file("AVIF", directory(loop(3)))
    assert encoded.count(b"\0\0Exif") == 1
    encoded = encoded.replace(b"\0\0Exif", b"\0\0" + kind)
    assert has_exif(encoded, "AVIF") and not has_exif(take_out(encoded, "AVIF")[0], "AVIF")


def test_an_item_of_avif_is_found_behind_long_sizes_and_numbers() -> None:
    long_size = struct.pack(">I4sQ", 1, b"infe", 29)
    for head, number in ((b"infe", "H"), (b"infe", "I"), (long_size, "H"), (long_size, "I")):
        item = head + b"\2\0\0\0" + struct.pack(">" + number, 2) + b"\0\0"
        changed, _ = take_out(bytes(4) + b"ftyp" + item + b"Exif\0", "AVIF")
        assert changed == bytes(4) + b"ftyp" + item + b"none\0"


def test_avif_with_a_minimized_header_is_refused() -> None:
    encoded = file("AVIF", directory(loop(3)))
    small = encoded[:4] + encoded[4 : int.from_bytes(encoded[:4], "big")] + struct.pack(">I4s", 8, b"mini")
    assert "header of the minimized kind" in refusal(small)


def parts(name: str, count: int) -> bytes:
    """So many things for Python to go through as decoders do."""
    if name == "JPEG":
        return with_segments(*[b"Exif"] * count)
    if name == "PNG":
        return with_chunks(chunk(b"tEXt", b"a\0b") * count)
    if name == "WebP":
        encoded = file("WebP", directory([(ORIENTATION, SHORT, 1, 6)]))
        at = encoded.index(b"EXIF")
        body = encoded[8:at] + b"abcd\0\0\0\0" * count + encoded[at:]
        return b"RIFF" + struct.pack("<I", len(body)) + body
    return file("AVIF", directory([])) + struct.pack(">I4s", 8, b"free") * count


@pytest.mark.parametrize("name", FORMATS)
def test_a_picture_of_more_parts_than_one_can_go_through_is_refused(name: str) -> None:
    assert refusal(parts(name, MAX_PARTS + 1)) == (
        f"the {name} image has more than 10,000 blocks of metadata, which is the limit; save it without them"
    )
    assert decode(parts(name, 1000)).size


def test_items_of_avif_are_counted_too() -> None:
    assert "more than 10,000 blocks" in refusal(file("AVIF", directory([])) + b"infe" * (MAX_PARTS + 1))


def test_no_more_parts_are_looked_at_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = []

    def look(encoded: bytes, at: int) -> tuple[bytes, int]:
        looked.append(at)
        return b"tEXt", at  # as if a chunk had no end

    monkeypatch.setattr(exif, "_png_chunk", look)
    assert "more than 10,000 blocks" in refusal(with_chunks())
    assert len(looked) == MAX_PARTS


def test_large_data_of_cameras_keep_their_orientation() -> None:
    """Thumbnails and maker notes of nearly 64 kB, hundreds of tags, and pointers that go somewhere."""
    data = Image.Exif()
    data[ORIENTATION] = 6
    data[0x010F], data[0x0110] = "Maker", "Model"
    data.get_ifd(0x8769).update({0x9003: "2024:02:29 12:00:00", 0x927C: noise(60_000).tobytes()})
    data.get_ifd(0x8825).update({1: "N", 2: (52.0, 31.0, 12.0), 3: "E", 4: (13.0, 24.0, 36.0)})
    for tag in range(0xC000, 0xC000 + 300):
        data[tag] = tag & 7
    block = data.tobytes().removeprefix(PREFIX)
    assert 60_000 < len(block) < 65_000
    for name in ("JPEG", "PNG", "WebP"):
        encoded = file(name, block)
        assert OPEN[name](encoded).get("orientation") == 6
        assert decode(encoded).shape == (64, 48, 3)
        assert decode(encoded, upright=False).shape == (48, 64, 3)
    assert decode(file("AVIF", block)).shape == (64, 48, 3)  # Pillow turns it into one of the container


def test_pixels_that_look_like_exif_data_stay() -> None:
    words = np.frombuffer(b"Exif\0\0II*\0eXIfinfe\2\0\0\0\0\1\0\0Exif" * 60, np.uint8)
    pixels = np.resize(words, (20, 30, 3))
    encoded = encode(pixels, ".png[compression=0,filter=none]")
    assert encoded.count(b"eXIfinfe") > 20
    np.testing.assert_array_equal(decode(encoded), pixels)


@pytest.mark.parametrize("name", FORMATS)
def test_wherever_a_file_is_cut_nothing_else_is_raised(name: str) -> None:
    encoded = file(name, directory([(ORIENTATION, SHORT, 1, 6)]), 8, 8)
    for end in range(len(encoded)):
        changed, orientation = take_out(encoded[:end], name)
        assert len(changed) <= end and orientation in (None, 6)


def test_a_name_that_is_no_text_damages_its_own_picture_alone() -> None:
    """libvips quotes it in what it says, which pyvips cannot read and did not clear away."""
    turned = Image.Exif()
    turned[0x0112] = 6
    buffer = io.BytesIO()
    Image.new("RGB", (24, 16)).save(buffer, "AVIF", exif=turned)
    assert buffer.getvalue().count(b"irot") == 1
    assert "the AVIF image is damaged" in refusal(buffer.getvalue().replace(b"irot", b"i\xb4ot"))
    other = io.BytesIO()
    Image.new("RGB", (24, 16)).save(other, "PNG")
    assert "the PNG image is damaged" in refusal(other.getvalue()[:60])
    assert decode(other.getvalue()).shape == (16, 24, 3)
