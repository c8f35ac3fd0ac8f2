"""Looks whether a replica answers: it has to give one token of an answer, whatever its server says of itself.

While requests are answered nobody is probed. An idle replica gets one text of a few tokens every two seconds,
which costs a GPU a few milliseconds of them.

What a replica says about itself is read when it is found well, and then every few seconds: adapters come and
go while it serves. That costs no step of the model.
"""

import asyncio
import logging
from contextlib import suppress

from kestrel_core.protocol.asking import make_request
from kestrel_core.protocol.errors import EngineFailed, KestrelError, ServerUnreachable, ShuttingDown
from kestrel_gateway.upstream.replica import Replica

log = logging.getLogger("kestrel.gateway")

IDLE_S = 2.0  # without an answer, after which a replica is asked
PAUSE_S = 1.0  # between two looks
RETURN_S = 0.25  # between two looks at one that is away: its callers wait for it
TIMEOUT_S = 5.0
# The server itself says that a deadline has passed before the client does. If neither comes, it is frozen.
FROZEN_S = TIMEOUT_S + 0.5
ABOUT_S = 4.0  # the age at which what a replica said about itself is read again
ABOUT_TIMEOUT_S = 1.0
# Nobody has looked for longer than looking takes.
STALE_S = IDLE_S + PAUSE_S + FROZEN_S + ABOUT_TIMEOUT_S + 0.5

SICK = (EngineFailed, ServerUnreachable, ShuttingDown)
PROBE = make_request(
    "query",
    None,
    {"question": "?", "max_tokens": 1, "temperature": 0.0, "timeout_s": TIMEOUT_S, "priority": -10},
)


async def keep_probing(replica: Replica) -> None:
    while True:
        if not replica.is_well or replica.silent_s >= IDLE_S or replica.doubted.is_set():
            await probe(replica)
        if replica.is_well and replica.about_age_s >= ABOUT_S:
            await _read_about(replica, ABOUT_TIMEOUT_S)
        replica.doubted.clear()
        with suppress(TimeoutError):
            await asyncio.wait_for(replica.doubted.wait(), PAUSE_S if replica.is_well else RETURN_S)


async def probe(replica: Replica, frozen_s: float = FROZEN_S) -> None:
    """Note whether it answers. A refusal is an answer too: who says that the queue is full is there."""
    try:
        async with asyncio.timeout(frozen_s):
            await replica.calls.submit(PROBE)
    except TimeoutError:
        return replica.leave_silent()
    except SICK as error:
        return replica.leave(error)
    except KestrelError as error:
        log.debug("upstream %s refuses, so it is there: %s", replica.name, error)
    if not replica.is_well:
        await _read_about(replica, frozen_s)
    replica.is_found_well()


async def _read_about(replica: Replica, timeout_s: float) -> None:
    """Which model and adapters it has now; what was known stays where the server is too old to say."""
    replica.note_about(None)
    with suppress(KestrelError, TimeoutError):
        async with asyncio.timeout(timeout_s):
            replica.note_about(await replica.calls.about())
