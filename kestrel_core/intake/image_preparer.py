"""Makes pictures ready for the model: decodes them within limits, cuts crops, names them by a digest.

Runs in worker threads. The last few pictures are remembered. A picture that is asked for several times at
once is decoded once, and the others wait for it.
"""

from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kestrel_core.intake.image_limits import ImageLimits, check_bytes
from kestrel_core.intake.images import ImageFile, decode_image, image_hash, read_file, restrict_libvips
from kestrel_core.loop.step import PreparedImage
from kestrel_core.moondream.config import VisionConfig
from kestrel_core.moondream.crops.cutting import PREPROCESSING_VERSION, choose_tiling, cut_crops
from kestrel_core.moondream.crops.resampling import can_cut
from kestrel_core.protocol.wire import decode_image_input


class ImagePreparer:
    def __init__(
        self,
        vision: VisionConfig,
        limits: ImageLimits,
        clock: Callable[[], float],
        observe: Callable[[float], None],
        max_remembered: int = 16,
        max_remembered_bytes: int = 128 * 2**20,
        leave_cutting: bool = False,
    ) -> None:
        """`leave_cutting`: pictures stay whole if the device can cut them to the same bytes."""
        restrict_libvips()
        self._vision = vision
        self._limits = limits
        self._clock = clock
        self._observe = observe
        self._max_remembered = max_remembered
        self._max_remembered_bytes = max_remembered_bytes
        self._leave_cutting = leave_cutting
        self._known: OrderedDict[str, Future[PreparedImage]] = OrderedDict()
        self._lock = Lock()

    def __call__(self, source: Any) -> PreparedImage:
        """Raises `BadImage`. `source` is anything that `images.decode_image` takes, or prepared already."""
        image = self.prepare(source, lambda key, cost: True)
        assert image is not None
        return image

    def prepare(
        self, source: Any, may_decode: Callable[[str, int], bool], salt: str = ""
    ) -> PreparedImage | None:
        """As above; None if the picture is not remembered and `may_decode` says no, given its key and its
        cost in pixels.

        The salt is a part of the key. So nobody learns, by how long this takes, what pictures others sent.
        """
        if isinstance(source, PreparedImage):
            return source
        if isinstance(source, str) or hasattr(source, "__fspath__"):
            source = read_file(source, self._limits)
        if isinstance(source, bytes | bytearray | memoryview):
            # Before it is copied. As base64 it may be a third longer than the picture.
            check_bytes(memoryview(source).nbytes * 3 // 4, self._limits)
            # A copy, because the caller's buffer may change between the digest and the decoding.
            source = decode_image_input(bytes(source))
            check_bytes(len(source), self._limits)
        else:
            source = decode_image(source, self._limits)  # upright from here on: an array has no orientation
        key = image_hash(source, PREPROCESSING_VERSION, salt=salt)
        with self._lock:
            known = self._known.get(key)
            if known is not None and known.done():
                self._known.move_to_end(key)
                return known.result()
        # Whoever waits for another one's decoding asks too: it keeps a worker as long as if it decoded.
        picture = ImageFile(source, self._limits) if isinstance(source, bytes) else source
        if not may_decode(key, picture.cost if isinstance(picture, ImageFile) else picture.size // 3):
            return None
        with self._lock:
            known = self._known.get(key)
            mine = known is None
            if known is None:
                known = self._known[key] = Future()
            self._known.move_to_end(key)
        if mine:
            self._prepare(key, picture, known)
        return known.result()

    def _prepare(self, key: str, picture: Any, promise: "Future[PreparedImage]") -> None:
        began = self._clock()
        try:
            promise.set_result(self._cut(key, decode_image(picture, self._limits)))
        except BaseException as error:
            with self._lock:
                del self._known[key]  # the same bytes may be sent again, and get the same answer
            promise.set_exception(error)
        finally:
            with self._lock:
                self._observe(self._clock() - began)
                self._forget()

    def _forget(self) -> None:
        """Keep the last few, as far as their bytes allow. Pictures that are being decoded stay."""
        done = [(key, kept.result()) for key, kept in self._known.items() if kept.done()]
        num_bytes = sum(image.num_bytes for _, image in done)
        for key, image in done:
            if len(self._known) <= self._max_remembered and num_bytes <= self._max_remembered_bytes:
                break
            del self._known[key]
            num_bytes -= image.num_bytes

    def _cut(self, key: str, rgb: NDArray[np.uint8]) -> PreparedImage:
        height, width, _ = rgb.shape
        if self._leave_cutting and can_cut(height, width, self._vision):
            rows, cols = choose_tiling(height, width, self._vision)
            if rows * cols <= self._vision.max_crops:  # more do not fit the device's batches
                return PreparedImage(key, None, (rows, cols), rgb)
        crops = cut_crops(rgb, self._vision)
        return PreparedImage(key, crops.pixels, crops.tiling)
