"""The sizes that small steps are padded to, and what is captured for each."""

from collections.abc import Sequence
from dataclasses import dataclass

from kestrel_core.loop.step import Span
from kestrel_core.runtime.attention.protocol import DecodeAttention
from kestrel_core.runtime.graphs import Work, bucket_sizes

ROWS = 64  # small steps have at most this many rows, or a multiple of it
IMAGES = (1, 2, 3, 4, 5)  # images of a small step that has any; more of them keep the device busy


@dataclass(slots=True)
class Bucket:
    """Small steps of one size: a number of image prefixes, and a number of rows."""

    num_images: int
    size: int
    attention: DecodeAttention
    forward: Work | None = None  # once it is captured
    adapted_forward: Work | None = None  # the same for steps in which a token has an adapter

    @property
    def order(self) -> tuple[int, int]:
        """Buckets are sorted by it, and known by it."""
        return self.num_images, self.size

    def captured(self, adapted: bool) -> Work | None:
        return self.adapted_forward if adapted else self.forward


def most_rows(max_batch: int, max_captured: int) -> int:
    """The rows of the largest small step."""
    # Prompts need rows beside those of the batch, but not too many: each row reads all keys it sees.
    wanted = max_batch + min(2 * max_batch + ROWS // 2, 2 * ROWS)
    return max(max_batch, min(-(-wanted // ROWS) * ROWS, max_captured))


def small_steps(max_rows: int, max_captured: int) -> list[tuple[int, int]]:
    """Numbers of images and of rows, the smaller ones first."""
    sizes = [(0, size) for size in bucket_sizes(max_rows)]
    return sizes + [
        (num_images, size)
        for num_images in IMAGES
        for size in range(ROWS // 2, min(max_rows, max_captured) + 1, ROWS // 2)
    ]


def first_steps(sizes: Sequence[tuple[int, int]]) -> set[tuple[int, int]]:
    """Those that a quick start captures: powers of two, the smallest with an image, and all the largest."""
    largest = dict(sizes)  # of each number of images, since sizes grow
    first = {(0, size) for num_images, size in sizes if num_images == 0 and size & (size - 1) == 0}
    return first | set(largest.items()) | {(1, ROWS // 2)}


def find_bucket(
    buckets: Sequence[Bucket], images: Sequence[Span], others: Sequence[Span], adapted: bool
) -> Bucket | None:
    """The smallest that the step fits. A prompt goes row by row only if the bucket is captured."""
    num_rows = sum(span.stop - span.start for span in others)
    decodes = not images and num_rows == len(others)
    for bucket in buckets:
        if bucket.num_images == len(images) and bucket.size >= num_rows:
            return bucket if decodes or bucket.captured(adapted) is not None else None
    return None
