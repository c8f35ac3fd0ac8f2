"""Pictures made ready: named by their content, decoded once, forgotten when they are bad."""

import io
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pyvips
from fake_runtime import fake_config
from fakes import Clock
from PIL import Image

from kestrel_core.intake.image_limits import ImageLimits
from kestrel_core.intake.image_preparer import ImagePreparer
from kestrel_core.intake.images import decode_image, image_hash, source_bytes
from kestrel_core.loop.step import PreparedImage
from kestrel_core.moondream.crops.cutting import cut_crops
from kestrel_core.protocol.errors import BadImage

VISION = fake_config().vision


def make_preparer(max_remembered: int = 16, **limits: int) -> tuple[ImagePreparer, list[float]]:
    """The preparer, and the times it took, one for each picture it decoded."""
    times: list[float] = []
    return ImagePreparer(VISION, ImageLimits(**limits), Clock(), times.append, max_remembered), times


def pixels(seed: int = 0, height: int = 40, width: int = 60) -> Any:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def png(seed: int = 0) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels(seed)).save(file, "png")
    return file.getvalue()


def test_a_picture_is_its_crops() -> None:
    prepare, _ = make_preparer()
    prepared, crops = prepare(png()), cut_crops(pixels(), VISION)
    assert np.array_equal(prepared.crops, crops.pixels)
    assert prepared.tiling == crops.tiling != (1, 1)


def test_every_way_to_hand_a_picture_over_gives_the_same_crops(tmp_path: Path) -> None:
    path = tmp_path / "picture.png"
    path.write_bytes(png())
    sources = [
        png(),
        bytearray(png()),
        memoryview(png()),
        path,
        str(path),
        pixels(),
        Image.fromarray(pixels()),
    ]
    prepare, times = make_preparer()
    prepared = [prepare(source) for source in sources]
    assert all(np.array_equal(one.crops, prepared[0].crops) for one in prepared)
    assert len({one.key for one in prepared[:5]}) == 1, "five times the same file"
    assert len({one.key for one in prepared[5:]}) == 1, "twice the same pixels"
    assert len(times) == 2


def test_a_buffer_may_be_overwritten_once_its_picture_has_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    prepare, _ = make_preparer()
    buffer = bytearray(png())

    def name_and_overwrite(content: Any, version: int, **options: Any) -> str:
        key = image_hash(content, version, **options)
        buffer[:] = png(1)
        return key

    monkeypatch.setattr("kestrel_core.intake.image_preparer.image_hash", name_and_overwrite)
    assert np.array_equal(prepare(buffer).crops, cut_crops(pixels(), VISION).pixels)


def test_the_key_follows_the_content() -> None:
    prepare, _ = make_preparer()
    keys = {
        prepare(source).key for source in (png(0), png(1), pixels(0), pixels(1), pixels(0).transpose(1, 0, 2))
    }
    assert len(keys) == 5


def test_what_is_prepared_already_passes() -> None:
    prepare, times = make_preparer()
    prepared = PreparedImage("key", None, (1, 1))
    assert prepare(prepared) is prepared and times == []


def test_the_last_few_are_remembered() -> None:
    prepare, times = make_preparer(max_remembered=2)
    for seed in (0, 1, 0, 2, 0, 1):
        prepare(pixels(seed))
    assert len(times) == 4  # 0, 1, 2, and 1 again, which 2 had displaced


def test_a_bad_picture_is_bad_each_time_and_not_remembered() -> None:
    prepare, times = make_preparer()
    for _ in range(2):
        with pytest.raises(BadImage, match="no accepted format"):
            prepare(b"no picture")
    cut = png()[:-30]
    for _ in range(2):
        with pytest.raises(BadImage, match="cut short"):
            prepare(cut)
    assert len(times) == 2, "of those that were begun to be decoded"


def test_limits_hold() -> None:
    prepare, _ = make_preparer(max_pixels=100)
    with pytest.raises(BadImage, match="limit is 100 pixels"):
        prepare(png())
    prepare, _ = make_preparer(max_bytes=100)
    with pytest.raises(BadImage, match=r"limit is 100 \(max_image_bytes\); send a smaller file"):
        prepare(png())


def test_one_picture_asked_for_at_once_is_decoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one decodes; the others are let in meanwhile, and wait for it."""
    prepare, times = make_preparer()
    others_are_in = threading.Event()

    def slowly(*arguments: Any) -> Any:
        assert others_are_in.wait(60)
        return decode_image(*arguments)

    monkeypatch.setattr("kestrel_core.intake.image_preparer.decode_image", slowly)
    encoded = png()
    with ThreadPoolExecutor(4) as workers:
        asked = [workers.submit(prepare, encoded) for _ in range(8)]
        others_are_in.set()
        prepared = [future.result() for future in asked]
    assert len(times) == 1
    assert all(one is prepared[0] for one in prepared)


def test_what_is_too_large_is_refused_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    prepare, times = make_preparer(max_bytes=100)
    read: list[int] = []
    monkeypatch.setattr(
        "kestrel_core.intake.image_preparer.image_hash", lambda content, _: read.append(len(content))
    )
    with pytest.raises(BadImage, match="101 bytes and the limit is 100"):
        prepare(memoryview(bytes(101)))
    assert not read and not times


# Not decoding


def test_a_picture_that_may_not_be_decoded_is_not_and_may_come_again() -> None:
    prepare, times = make_preparer()
    asked: list[str] = []

    def refuse(key: str, cost: int) -> bool:
        asked.append(key)
        assert cost > 0
        return False

    assert prepare.prepare(png(), refuse) is None and times == []
    assert asked == [prepare(png()).key] and len(times) == 1


def test_nobody_is_asked_for_what_is_remembered_or_prepared_already() -> None:
    def never(key: str, cost: int) -> bool:
        raise AssertionError("nothing has to be decoded")

    prepare, _ = make_preparer()
    prepared = prepare(png())
    assert prepare.prepare(png(), never) is prepared
    assert prepare.prepare(prepared, never) is prepared


def test_a_picture_is_remembered_for_its_own_salt_alone() -> None:
    prepare, times = make_preparer()
    one, two, again = (prepare.prepare(png(), lambda key, cost: True, salt) for salt in ("one", "two", "one"))
    assert one is not None and two is not None and again is one and len(times) == 2
    assert len({one.key, two.key, prepare(png()).key}) == 3
    assert np.array_equal(one.crops, two.crops)


def test_pictures_are_remembered_as_far_as_their_bytes_allow() -> None:
    each = make_preparer()[0](pixels()).num_bytes
    times: list[float] = []
    prepare = ImagePreparer(VISION, ImageLimits(), Clock(), times.append, max_remembered_bytes=2 * each)
    for seed in (0, 1, 0, 2, 0):
        prepare(pixels(seed))
    assert len(times) == 3
    prepare(pixels(1))
    assert len(times) == 4, "there was room for two, and 2 displaced it"
    small = ImagePreparer(VISION, ImageLimits(), Clock(), times.append, max_remembered_bytes=each - 1)
    assert small(pixels()) is not small(pixels())


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (None, 0),
        ("a/path.png", 0),
        (b"12345", 5),
        (bytearray(5), 5),
        (memoryview(bytes(10))[::2], 5),
        (np.zeros((4, 5, 3), np.uint8), 60),
        (Image.new("L", (4, 5)), 60),
        (pyvips.Image.black(4, 5), 60),
        (PreparedImage("key", np.zeros((2, 4, 4, 3), np.uint8), (1, 1)), 96),
        (PreparedImage("key", None, (1, 1), np.zeros((4, 5, 3), np.uint8)), 60),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_picture_counts_with_its_bytes_or_its_pixels(source: object, expected: int) -> None:
    assert source_bytes(source) == expected
