"""How many bytes of bodies and pictures all requests together hold, and no more than that."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kestrel_gateway.errors import Busy

FREE_BYTES = 2**19  # of each request: small ones are let in beside however many large ones


class Memory:
    """Owns the count. Each request gives back what it held when it ends."""

    def __init__(self, max_bytes: int) -> None:
        self.num_bytes = 0
        self._max_bytes = max_bytes

    @contextmanager
    def share(self) -> Iterator[Callable[[int], None]]:
        """For one request: call what it gives for every so many bytes that are kept from now on."""
        size = 0

        def take(count: int) -> None:
            nonlocal size
            more = max(0, size + count - FREE_BYTES) - max(0, size - FREE_BYTES)
            if more and self.num_bytes + more > self._max_bytes:
                raise Busy(
                    f"requests of {self._max_bytes:,} bytes are open together, which is the limit; ask again"
                )
            size += count
            self.num_bytes += more

        try:
            yield take
        finally:
            self.num_bytes -= max(0, size - FREE_BYTES)
