"""How many bytes of bodies and pictures all requests together hold, and no more than that."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kestrel_gateway.admission.holdings import MAX_SHARE, ByCaller
from kestrel_gateway.errors import Full, TooManyAtOnce

FREE_BYTES = 2**19  # of each request: small ones are let in beside however many large ones


class Memory:
    """Each request gives back what it held when it ends."""

    def __init__(self, max_bytes: int) -> None:
        self._held = ByCaller()
        self._max_bytes = max_bytes

    @property
    def num_bytes(self) -> int:
        return self._held.total

    @contextmanager
    def share(self, caller: str = "") -> Iterator[Callable[[int], None]]:
        """For one request: call what it gives for every so many bytes that are kept from now on."""
        size = held = 0

        def take(count: int) -> None:
            nonlocal size, held
            more = max(0, size + count - FREE_BYTES) - held
            if more:
                self._check(caller, held, more)
            size += count
            held += more
            self._held.add(caller, more)

        try:
            yield take
        finally:
            self._held.add(caller, -held)

    def _check(self, caller: str, held: int, more: int) -> None:
        if self.num_bytes + more > self._max_bytes:
            raise Full(
                f"requests of {self._max_bytes:,} bytes are open together, which is the limit; ask again"
            )
        own = self._held.of(caller)
        if own > held and own + more > MAX_SHARE * self._max_bytes:
            raise TooManyAtOnce(
                f"your open requests have {own:,} bytes, and the rest of the room is for others; "
                "wait for answers before you ask again"
            )
