"""How many gRPC calls are open, of each caller and together. A call has many requests, or none for a while.

gRPC could count them itself. But it knows no callers, and it refuses a call before it has read what was sent:
clients for asyncio then tell their users of an internal error, and not that they should wait.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from kestrel_gateway.admission.holdings import MAX_SHARE, ByCaller
from kestrel_gateway.errors import Full, RateLimited, TooManyAtOnce
from kestrel_gateway.options import GatewayOptions


class OpenCalls:
    def __init__(self, options: GatewayOptions) -> None:
        self._open = Places(options.max_calls)
        self._refused = Places(options.max_connections)  # who has more of these is refused unread
        self._sending_s = options.body_timeout_s

    @asynccontextmanager
    async def place(self, caller: str, context: Any) -> AsyncIterator[None]:
        """For as long as this call is open."""
        if (refusal := self._open.refusal(caller)) is not None:
            if self._refused.refusal(caller) is None:
                with self._refused.taken.one_more(caller), suppress(TimeoutError):
                    async with asyncio.timeout(self._sending_s):
                        await context.read()
            raise refusal
        with self._open.taken.one_more(caller):
            yield


class Places:
    """So many, of which no caller has all."""

    def __init__(self, number: int) -> None:
        self._number = number
        self.taken = ByCaller()

    def refusal(self, caller: str) -> RateLimited | None:
        if self.taken.total >= self._number:
            return Full(f"{self._number:,} calls are open, which is the limit; ask again")
        own = self.taken.of(caller)
        if own >= max(1, int(MAX_SHARE * self._number)):
            return TooManyAtOnce(
                f"you have {own:,} calls open, and the rest is for others; wait for answers to them"
            )
        return None
