"""Looks whether a replica answers: it has to give one token of an answer, whatever its server says of itself.

While requests are answered nobody is probed. An idle replica gets one text of a few tokens every two seconds,
which costs a GPU a few milliseconds of them.
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
TIMEOUT_S = 5.0
# The server itself says that a deadline has passed before the client does. If neither comes, it is frozen.
FROZEN_S = TIMEOUT_S + 0.5
STALE_S = IDLE_S + PAUSE_S + FROZEN_S + 1.5  # nobody has looked for longer than looking takes

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
        replica.doubted.clear()
        with suppress(TimeoutError):
            await asyncio.wait_for(replica.doubted.wait(), PAUSE_S)


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
    """Which model it has now; what was known stays where the server is too old to say."""
    with suppress(KestrelError, TimeoutError):
        async with asyncio.timeout(timeout_s):
            replica.about = await replica.calls.about()
