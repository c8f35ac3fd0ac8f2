"""Small valid files of every format with some bytes changed, cut or added: a picture, or an error of ours."""

import pytest
from attacks.fuzzing import draw
from hypothesis import strategies as st
from image_files import EVERY_FORMAT, encode, picture

from kestrel_core.intake.images import ImageLimits, decode_image, restrict_libvips
from kestrel_core.protocol.errors import BadImage

FEW, MANY = 25, 4_000
LIMITS = ImageLimits(max_bytes=10_000, max_pixels=10_000)  # so no mutation makes much work
CHANGES = st.lists(
    st.tuples(st.integers(0, 9_999), st.binary(min_size=1, max_size=4)), min_size=1, max_size=4
)
CUTS = st.integers(0, 9_999)


def changed(file: bytes, changes: list[tuple[int, bytes]], cut: int) -> bytes:
    data = bytearray(file)
    for at, other in changes:
        at %= len(data)
        data[at : at + len(other)] = other
    return bytes(data[: len(data) - cut % len(data)]) if cut % 3 == 0 else bytes(data)


def check(file: bytes) -> None:
    try:
        rgb = decode_image(file, LIMITS)
    except BadImage as error:
        message = str(error)
        assert message.isprintable() and len(message) < 300 and "/" not in message.partition("(")[0]
    else:
        assert rgb.ndim == 3 and rgb.shape[2] == 3 and rgb.shape[0] * rgb.shape[1] <= LIMITS.max_pixels


def mutate(kind: str, number: int) -> None:
    restrict_libvips()
    file = encode(picture(16, 24), EVERY_FORMAT[kind])
    check(file)
    draw(number, lambda changes, cut: check(changed(file, changes, cut)), CHANGES, CUTS)


@pytest.mark.parametrize("kind", EVERY_FORMAT)
def test_a_file_that_was_tampered_with_is_a_picture_or_refused(kind: str) -> None:
    mutate(kind, FEW)


@pytest.mark.attacks
@pytest.mark.parametrize("kind", EVERY_FORMAT)
def test_so_are_thousands_of_them(kind: str) -> None:
    mutate(kind, MANY)
