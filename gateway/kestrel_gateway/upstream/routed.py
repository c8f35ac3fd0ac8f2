"""One request on its way to a replica that answers it, and to the next one if the first does not.

As long as nothing of the answer has come, a request may be asked elsewhere: a replica that is full, that ends
or that cannot be reached costs its caller nothing but a little time. Once a piece has come, it may not, since
an answer would begin twice. A request that two replicas may have begun before they failed is not asked again:
it may be what ended them, and would end the others too.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from kestrel_core.protocol.asking import AnswerStream
from kestrel_core.protocol.errors import (
    Cancelled,
    DeadlinePassed,
    EngineFailed,
    KestrelError,
    Overloaded,
    ServerUnreachable,
    ShuttingDown,
)
from kestrel_core.protocol.messages import Chunk, EngineResult, Request
from kestrel_gateway.upstream.choosing import choose, digest_of
from kestrel_gateway.upstream.lanes import Lanes
from kestrel_gateway.upstream.replica import Replica

FIRST_WAIT_S, MAX_WAIT_S = 0.05, 0.4  # between rounds in which no replica could be reached
NOBODY = "no server behind this gateway answers at the moment; ask again"
SILENT = "the server fell silent before it answered; ask again"
CANCELLED = "the request was cancelled by its caller"
MAX_LOST = 2
SHORT_S = 0.01  # by which no deadline is made shorter


class RoutedStream(AnswerStream[EngineResult]):
    def __init__(
        self,
        replicas: Sequence[Replica],
        lanes: Lanes,
        request: Request,
        patience_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._replicas = replicas
        self._lanes = lanes
        self._is_in_lane = False
        self._request = request
        self._digest = digest_of(request.image) if len(replicas) > 1 else None  # of one there is no choice
        self._clock = clock
        self._began_s = self._entered_s = clock()
        self._patience_s = patience_s
        self._wait_s = FIRST_WAIT_S
        self._tried: dict[Replica, KestrelError] = {}  # in this round
        self._num_lost = 0  # attempts, in all rounds, that may have ended who had the request
        self._replica: Replica | None = None
        self._answers: AnswerStream[EngineResult] | None = None
        self._has_begun = False
        self._was_let_go = False
        self._cancelled = asyncio.Event()

    @property
    def upstream(self) -> str:
        """The name of the replica that has the request, or had it last."""
        return "" if self._replica is None else self._replica.name

    @property
    def is_done(self) -> bool:
        return self._answers is not None and self._answers.is_done

    async def start(self) -> None:
        """Ask a replica, once the caller's lane has room."""
        try:
            await self._enter_lane()
            await self._ask()
        except BaseException:
            self._leave_lane()
            raise

    async def _ask(self) -> None:
        """A replica; the next one, if this one refuses at once."""
        while True:
            self._replica = replica = await self._next()
            replica.take_in(self)
            try:
                self._answers = await replica.calls.open(self._with_time_left())
                if self._cancelled.is_set():
                    self._answers.cancel()
                return
            except KestrelError as error:
                self._give_up(error)
            except BaseException:
                replica.release(self)
                raise

    async def next_chunk(self) -> Chunk | None:
        while True:
            if self._answers is None:
                await self.start()
            assert self._answers is not None and self._replica is not None
            try:
                chunk = await self._answers.next_chunk()
            except KestrelError as error:
                self._give_up(error)
                continue
            except BaseException:  # the task that reads was cancelled
                self.cancel()
                raise
            self._has_begun = True
            self._replica.has_answered()
            if chunk is None:
                self._replica.release(self)
                self._leave_lane()
            return chunk

    async def result(self) -> EngineResult:
        while await self.next_chunk() is not None:
            pass
        assert self._answers is not None
        return await self._answers.result()

    def cancel(self) -> None:
        self._cancelled.set()
        if self._answers is not None and not self._answers.is_done:
            self._answers.cancel()
        if self._replica is not None:
            self._replica.release(self)
        self._leave_lane()

    def let_go(self) -> None:
        others = any(replica.is_well for replica in self._replicas)
        if others and not self._has_begun and self._answers is not None:
            self._was_let_go = True
            self._answers.cancel()

    async def _enter_lane(self) -> None:
        request = self._request
        if not self._is_in_lane:
            await self._lanes.enter(request.tenant, request.priority, request.timeout_s)
            self._is_in_lane, self._entered_s = True, self._clock()
            if self._cancelled.is_set():
                raise Cancelled(CANCELLED)

    def _leave_lane(self) -> None:
        if self._is_in_lane:
            self._is_in_lane = False
            self._lanes.leave(self._request.tenant)

    def _give_up(self, error: KestrelError) -> None:
        """Note how the replica failed; raises if asking another one may not be done, or would not help."""
        replica = self._replica
        assert replica is not None
        replica.release(self)
        self._answers = None
        if self._was_let_go and not self._cancelled.is_set():
            self._was_let_go, error = False, ServerUnreachable(SILENT, may_have_begun=True)
            self._entered_s = self._clock()  # who kept it waiting was not the next one
        elif isinstance(error, ServerUnreachable | ShuttingDown):
            replica.leave(error)
        elif isinstance(error, EngineFailed):
            replica.doubted.set()
        is_ours = isinstance(error, EngineFailed | ServerUnreachable | Overloaded) or type(error) is Cancelled
        self._num_lost += _may_have_ended_it(error)
        is_suspect = _may_have_ended_it(error) and self._num_lost >= MAX_LOST
        if self._has_begun or self._cancelled.is_set() or not is_ours or is_suspect:
            self._leave_lane()
            raise _told(error, replica.name, self._has_begun)
        self._tried[replica] = error

    async def _next(self) -> Replica:
        """The best of those not asked yet. If all could not be reached, they are asked again for a while."""
        while True:
            left = [replica for replica in self._replicas if replica not in self._tried]
            if left:
                well = [replica for replica in left if replica.is_well]
                return choose(well or left, self._digest)
            if any(_is_final(error) for error in self._tried.values()) or not self._may_wait():
                raise self._most_useful()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._cancelled.wait(), self._wait_s)
            if self._cancelled.is_set():
                raise Cancelled(CANCELLED)
            self._wait_s = min(2 * self._wait_s, MAX_WAIT_S)
            self._tried.clear()

    def _may_wait(self) -> bool:
        then_s, timeout_s = self._clock() + self._wait_s, self._request.timeout_s
        is_in_time = timeout_s is None or then_s - self._began_s < timeout_s
        return is_in_time and then_s - self._entered_s < self._patience_s

    def _most_useful(self) -> KestrelError:
        """A full queue says that somebody is there; an engine's own words say more than none."""
        for replica, error in self._tried.items():
            if isinstance(error, Overloaded) and not isinstance(error, ShuttingDown):
                return _told(error, replica.name, self._has_begun)
        for replica, error in self._tried.items():
            if isinstance(error, EngineFailed):
                return _told(error, replica.name, self._has_begun)
        return ServerUnreachable(NOBODY)

    def _with_time_left(self) -> Request:
        timeout_s = self._request.timeout_s
        waited_s = self._clock() - self._began_s
        if timeout_s is None or waited_s < SHORT_S:
            return self._request
        left_s = timeout_s - waited_s
        if left_s <= 0:
            raise DeadlinePassed(f"no server could take the request within {timeout_s:g} s; ask again")
        return replace(self._request, timeout_s=left_s)


def _is_final(error: KestrelError) -> bool:
    """Whether waiting a second would not change it: a server that starts again does not need longer."""
    return not isinstance(error, ServerUnreachable | ShuttingDown | Cancelled)


def _may_have_ended_it(error: KestrelError) -> bool:
    """Whether the request may be the reason why the replica failed."""
    return isinstance(error, EngineFailed) or (isinstance(error, ServerUnreachable) and error.may_have_begun)


def _told(error: KestrelError, name: str, has_begun: bool) -> KestrelError:
    """The error for somebody outside, to whom the address of a replica means nothing."""
    if type(error) is Cancelled or name not in str(error):
        return error
    if isinstance(error, DeadlinePassed):
        return DeadlinePassed("the server gave no answer in the time that it had; ask again")
    if isinstance(error, ServerUnreachable):
        when = "in the middle of the answer" if has_begun else "before it answered"
        return ServerUnreachable(f"the server went away {when}; ask again", error.may_have_begun)
    return type(error)(str(error).replace(name, "the server"))
