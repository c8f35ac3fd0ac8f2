"""One who answers, and what is known of it: whether it does, since when, and how much it has to do.

Whoever asks it notes here how that went. Only a probe (`probing`) calls a replica well again once it was
left: one that is ending still finishes what it has, and that says nothing about the next request.
"""

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable
from typing import Protocol

from kestrel_core.protocol.about import About
from kestrel_core.protocol.asking import AsyncCalls

log = logging.getLogger("kestrel.gateway")

STRANDED_S = 2.0  # for answers to come by a connection that fell silent, once its server is well again


class Guest(Protocol):
    """A request that a replica has."""

    def let_go(self) -> None:
        """The replica has fallen silent: ask another one, if that is still possible."""


class Replica:
    def __init__(
        self,
        name: str,
        calls: AsyncCalls,
        close: Callable[[], Awaitable[None]] | None = None,
        clock: Callable[[], float] = time.monotonic,
        reconnect: Callable[[], None] | None = None,
    ) -> None:
        self.name = name
        self._close = close
        self._reconnect = reconnect
        self.calls = calls
        self.about: About | None = None
        self.num_asked = 0
        self.doubted = asyncio.Event()  # set: look at it now, and not after the usual pause
        self.tell: Callable[[str, bool], None] = lambda name, is_well: None  # when that changes
        self._guests: set[Guest] = set()
        self._stranded: set[Guest] = set()  # on a connection that fell silent
        self._is_well: bool | None = None  # nobody has looked yet
        self._clock = clock
        self._answered_s = -math.inf
        self._about_s = -math.inf

    @property
    def is_well(self) -> bool:
        return self._is_well is True

    @property
    def num_open(self) -> int:
        return len(self._guests)

    @property
    def silent_s(self) -> float:
        """Seconds since its last answer."""
        return self._clock() - self._answered_s

    @property
    def about_age_s(self) -> float:
        """Seconds since it was asked about itself."""
        return self._clock() - self._about_s

    def note_about(self, about: About | None) -> None:
        """What it said about itself; None, as long as it has not answered."""
        self.about = about or self.about
        self._about_s = self._clock()

    def take_in(self, guest: Guest) -> None:
        self.num_asked += 1
        self._guests.add(guest)

    def release(self, guest: Guest) -> None:
        self._guests.discard(guest)
        self._stranded.discard(guest)

    def has_answered(self) -> None:
        """A real answer came, or a piece of one."""
        if self.is_well:
            self._answered_s = self._clock()

    def is_found_well(self) -> None:
        if not self.is_well:
            log.info("upstream %s answers", self.name)
            self.tell(self.name, True)
        if self._stranded:  # it was the connection, or it stood still and goes on: then they hear of it soon
            asyncio.get_running_loop().call_later(STRANDED_S, self._send_stranded_on)
        self._is_well = True
        self._answered_s = self._clock()

    def leave(self, why: object) -> None:
        """It refused, or cannot be reached. Requests that it has may still be answered."""
        if self._is_well is None:
            log.info("upstream %s does not answer yet", self.name)
        elif self._is_well:
            reason = str(why).partition("; ")[0]  # what follows advises who asked, as a client's user
            log.warning("upstream %s gets no more requests: %s", self.name, reason)
        if self._is_well is not False:
            self.tell(self.name, False)
            self.doubted.set()
        self._is_well = False

    def leave_silent(self) -> None:
        """It says nothing at all: those who wait for it are sent on.

        It may be the connection that is broken, and not closed, so the next look takes a new one.
        """
        self.leave("it has fallen silent")
        for guest in tuple(self._guests):
            guest.let_go()
        self._stranded |= self._guests
        if self._reconnect is not None:
            self._reconnect()

    def _send_stranded_on(self) -> None:
        for guest in tuple(self._stranded):
            guest.let_go()
        self._stranded.clear()

    async def close(self) -> None:
        if self._close is not None:
            await self._close()
