"""In place of an image encoder, as far as the scheduler sees one: which crops of which pictures are there."""

from collections import OrderedDict
from collections.abc import Sequence

from kestrel_core.loop.step import Encode, PreparedImage
from kestrel_core.scheduler.pacing import Pacing


class FakePictures:
    """A picture has seven crops, one whose name begins with "small" has two. Few are remembered."""

    def __init__(self, max_known: int = 3) -> None:
        self._max_known = max_known
        self._missing: OrderedDict[str, int] = OrderedDict()
        self.failing: set[str] = set()  # they can only be encoded as a whole
        self.sizes: list[int] = []  # crops of each batch

    def num_missing(self, image: PreparedImage) -> int:
        if image.key in self.failing:
            return 0
        if image.key in self._missing:
            self._missing.move_to_end(image.key)
        return self._missing.get(image.key, 2 if image.key.startswith("small") else 7)

    def encode(self, encodes: Sequence[Encode]) -> None:
        assert len({one.image.key for one in encodes}) == len(encodes), "a picture is encoded twice"
        self.sizes.append(sum(one.num_crops for one in encodes))
        for one in encodes:
            missing = self.num_missing(one.image)
            assert 0 < one.num_crops <= missing
            self._missing[one.image.key] = missing - one.num_crops
        while len(self._missing) > self._max_known:
            self._missing.popitem(last=False)


def fake_pacing(num_steps: int = 10, max_known: int = 3) -> Pacing:
    """A position costs half a crop, so an image prefix of five costs 2.5, as on a device."""
    return Pacing(FakePictures(max_known), 0.5, num_steps)
