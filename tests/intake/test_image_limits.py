"""Pictures that cost more to decode than their bytes say: counted and refused before it is done."""

import io
import struct

import numpy as np
import pytest
import pyvips
from image_files import EVERY_FORMAT, LIMITS, decode, encode, noise, picture, refusal
from PIL import Image

from kestrel_core.intake import images
from kestrel_core.intake.image_limits import ImageLimits
from kestrel_core.intake.images import ImageFile


def gif(width: int, height: int, frames: int = 1) -> bytes:
    """Frames of any size with one pixel in them."""
    head = b"GIF89a" + struct.pack("<HH", width, height) + b"\x80\0\0" + b"\0\0\0\xff\xff\xff"
    frame = b"\x2c" + struct.pack("<HHHH", 0, 0, width, height) + b"\0" + b"\x02\x02D\x01\0"
    return head + frame * frames + b";"


def webp(frames: int) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (16, 16)).save(file, "webp", lossless=True)
    side = struct.pack("<I", 15)[:3]
    frame = bytes(6) + side + side + b"\1\0\0\0" + file.getvalue()[12:]
    chunks = [(b"VP8X", b"\x02\0\0\0" + side + side), (b"ANIM", bytes(6)), *[(b"ANMF", frame)] * frames]
    body = b"WEBP" + b"".join(
        kind + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2) for kind, data in chunks
    )
    return b"RIFF" + struct.pack("<I", len(body)) + body


def tiff(pages: int) -> bytes:
    tags = ((256, 1), (257, 1), (258, 8), (259, 1), (262, 1), (273, 8), (277, 1), (278, 1), (279, 1))
    entries = struct.pack("<H", len(tags)) + b"".join(struct.pack("<HHII", tag, 4, 1, v) for tag, v in tags)
    size = len(entries) + 4
    following = [10 + size * (page + 1) for page in range(pages - 1)] + [0]
    directories = b"".join(entries + struct.pack("<I", place) for place in following)
    return b"II*\0" + struct.pack("<I", 10) + b"\0\0" + directories


@pytest.fixture
def no_pixel(monkeypatch: pytest.MonkeyPatch) -> None:
    def decoded(*arguments: object) -> None:
        raise AssertionError("a pixel was decoded")

    monkeypatch.setattr(images, "_render", decoded)


def test_a_few_bytes_that_claim_many_pixels_are_refused_by_cost(no_pixel: None) -> None:
    bomb = gif(9999, 9999)
    assert len(bomb) < 43
    message = refusal(bomb)
    assert "9,999 x 9,999 in 35 bytes of GIF" in message
    assert "the limit is 400,000,000 (max_image_cost)" in message


@pytest.mark.parametrize("make", [gif, webp, tiff], ids=lambda make: make.__name__)
def test_more_frames_than_the_limit_are_refused_before_any_is_decoded(make: object, no_pixel: None) -> None:
    file = gif(10, 10, 1001) if make is gif else make(1001)  # type: ignore[operator]
    assert "more than 1,000 frames or pages, which is the limit (max_image_frames)" in refusal(file)


@pytest.mark.parametrize("make", [webp, tiff], ids=lambda make: make.__name__)
def test_frames_that_take_long_to_open_are_counted_before(
    make: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = make(1001)  # type: ignore[operator]
    [name] = {name for name, _ in [images.LOADERS[kind] for kind in images.LOADERS] if make.__name__ in name}  # type: ignore[attr-defined]
    monkeypatch.setattr(pyvips.Image, name, lambda *arguments, **options: pytest.fail("it was opened"))
    assert "frames or pages" in refusal(file)


def test_as_many_frames_as_the_limit_are_taken_and_the_first_is_shown() -> None:
    for file, size in ((gif(10, 5, 1000), (5, 10)), (webp(1000), (16, 16)), (tiff(1000), (1, 1))):
        assert decode(file).shape[:2] == size


def test_a_tiff_whose_directories_form_a_ring_is_refused_or_read_in_finite_time() -> None:
    ring = bytearray(tiff(3))
    ring[-4:] = struct.pack("<I", 10)
    assert "frames or pages" in refusal(bytes(ring))


def many_scans(count: int) -> bytes:
    """A progressive JPEG with so many scans; whether they follow each other is not looked at here."""
    file = io.BytesIO()
    Image.new("L", (2000, 2000)).save(file, "jpeg", progressive=True)
    whole = file.getvalue()
    last = whole.rindex(b"\xff\xda")
    return whole[:-2] + whole[last:-2] * (count - whole.count(b"\xff\xda")) + b"\xff\xd9"


def test_every_scan_of_a_progressive_jpeg_costs(no_pixel: None) -> None:
    assert ImageFile(many_scans(10), LIMITS).cost == 10_000_000
    assert "bytes of JPEG" in refusal(many_scans(401))


def cost(suffix: str, *shape: int, dtype: type = np.uint8, interpretation: str | None = None) -> int:
    return ImageFile(encode(noise(*shape, dtype=dtype), suffix, interpretation), LIMITS).cost


def test_plain_files_cost_their_pixels_and_slower_ones_more() -> None:
    assert cost(".jpg", 40, 60, 3) == cost(".png", 40, 60, 3) == cost(".png", 40, 60) == 2400
    assert cost(".webp", 40, 60, 3) == 3 * 2400
    assert cost(".png[interlace]", 40, 60, 3) == 4 * 2400
    assert cost(".png", 40, 60, 3, dtype=np.uint16, interpretation="rgb16") == 2 * 2400


@pytest.mark.parametrize("name", EVERY_FORMAT)
def test_the_cost_limit_is_inclusive(name: str) -> None:
    file = encode(picture(), EVERY_FORMAT[name])
    exact = ImageFile(file, LIMITS).cost
    ImageFile(file, ImageLimits(max_cost=exact)).decode()
    assert f"the limit is {exact - 1:,} (max_image_cost)" in refusal(file, ImageLimits(max_cost=exact - 1))


def test_a_blank_page_is_no_bomb() -> None:
    file = io.BytesIO()
    Image.new("1", (5000, 7000), 1).save(file, "png")
    assert ImageFile(file.getvalue(), LIMITS).cost < 2 * 35_000_000
