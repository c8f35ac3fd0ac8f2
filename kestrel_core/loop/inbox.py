"""The inbox of the step loop: the requests it has taken in, and what other threads want its thread to do.

Any thread may use it: all of its state is under one lock.
"""

import threading
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from kestrel_core.loop.sequence import Prompt, Sequence, ThinkingReply
from kestrel_core.loop.step import Adapter, PreparedImage
from kestrel_core.protocol.errors import Overloaded, ShuttingDown
from kestrel_core.protocol.messages import Event, Request, Usage
from kestrel_core.skills.spec import SkillSpec

Sink = Callable[[Event], None]
PhaseName = Literal["queue", "image", "vision", "prefill", "decode"]
MAX_SHARE = 0.75  # of the queue, that one tenant may have


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """All that a request needs before it can be scheduled."""

    prompt: Prompt
    image: PreparedImage | None
    input_length: int  # positions of the whole prompt, those of the image included
    image_began_s: float = 0.0
    image_ended_s: float = 0.0


class Phase(NamedTuple):
    name: PhaseName
    began_s: float
    ended_s: float


@dataclass(eq=False, slots=True)
class Ticket:
    """A request on its way through the loop. The fields from `prepared` on belong to the loop's thread."""

    request: Request
    sink: Sink
    skill: SkillSpec
    num_bytes: int  # of the picture, as it came in
    arrived_s: float
    order: float  # the lowest is served first: the time of arrival, moved by the priority
    picture_salt: str = ""  # of its picture's KV; the request's own, unless all salts share pictures
    adapter: Adapter | None = None  # once it is found, which is before anything is prepared
    prepared: PreparedRequest | None = None
    sequence: Sequence | None = None
    queued: bool = True
    done: bool = False
    image_began_s: float = 0.0  # these moments are 0 until they come
    image_ended_s: float = 0.0
    started_s: float = 0.0
    first_s: float = 0.0
    last_s: float = 0.0
    vision_s: float = 0.0  # how long the vision encoder took

    def phases(self, now_s: float) -> Iterator[Phase]:
        """Where its time went, in order and without gaps, up to its last token, or up to now if it has none.

        It may wait twice: for its adapter to be found and for a worker that prepares its picture, and then
        for its adapter to be loaded and for a step.
        """
        first_s = self.first_s or now_s
        ends: list[tuple[PhaseName, float]] = [
            ("queue", self.image_began_s),
            ("image", self.image_ended_s),
            ("queue", self.started_s or first_s),
        ]
        if self.started_s:
            if self.vision_s:
                ends.append(("vision", min(self.started_s + self.vision_s, first_s)))
            ends += [("prefill", first_s), ("decode", self.last_s)]
        began_s = self.arrived_s
        for name, ended_s in ends:
            if ended_s:
                yield Phase(name, began_s, ended_s)
                began_s = ended_s

    def usage(self, now_s: float) -> Usage:
        """How many tokens it took so far, and where the time went."""
        sequence, prepared = self.sequence, self.prepared
        spent_s: dict[PhaseName, float] = defaultdict(float)
        for name, began_s, ended_s in self.phases(now_s):
            spent_s[name] += ended_s - began_s
        image_length = prepared.input_length - len(prepared.prompt.inputs) if prepared is not None else 0
        reply = sequence.reply if sequence is not None else None
        return Usage(
            input_tokens=prepared.input_length if prepared is not None else 0,
            output_tokens=sequence.num_taken if sequence is not None else 0,
            cached_tokens=sequence.cached_tokens if sequence is not None else 0,
            queue_time_ms=_ms(spent_s["queue"]),
            prefill_time_ms=_ms(spent_s["prefill"]),
            decode_time_ms=_ms(spent_s["decode"]),
            ttft_ms=_ms(self.first_s - self.arrived_s) if self.first_s else 0.0,
            image_tokens=max(image_length - 1, 0),  # BOS is no part of the picture
            reasoning_tokens=reply.num_reasoning if isinstance(reply, ThinkingReply) else 0,
            image_time_ms=_ms(spent_s["image"]),
            vision_time_ms=_ms(spent_s["vision"]),
        )


class Inbox:
    def __init__(self, max_queued: int, max_queued_bytes: int) -> None:
        self._max_queued = max_queued
        self._max_queued_bytes = max_queued_bytes
        self._changed = threading.Condition()
        self._calls: deque[Callable[[], None]] = deque()
        self._open: set[Ticket] = set()
        self._queued = Counter[str]()  # how many of each tenant, and how many bytes of their pictures
        self._queued_bytes = Counter[str]()
        self.num_queued = 0
        self.queued_bytes = 0
        self.is_closed = False
        self.is_broken = False

    @property
    def num_open(self) -> int:
        return len(self._open)

    @property
    def is_drained(self) -> bool:
        """No request is open, and none will be."""
        with self._changed:
            return self.is_closed and not self._open

    def open_tickets(self) -> list[Ticket]:
        with self._changed:
            return list(self._open)

    def add(self, ticket: Ticket) -> None:
        """Take a request into the queue. Raises `Overloaded`; then it was not taken."""
        with self._changed:
            self._refuse_if_full(ticket)
            self._open.add(ticket)
            self._count(ticket, 1)

    def begin(self, ticket: Ticket) -> None:
        """The request does not wait in the queue any more."""
        with self._changed:
            self._unqueue(ticket)

    def remove(self, ticket: Ticket) -> None:
        """The request has ended."""
        with self._changed:
            self._unqueue(ticket)
            self._open.discard(ticket)

    def close(self) -> None:
        """Refuse every request from now on."""
        with self._changed:
            self.is_closed = True
        self.call(lambda: None)  # a loop that waits looks again

    def mark_broken(self) -> None:
        """The loop has failed: refuse every request from now on."""
        with self._changed:
            self.is_broken = True

    def call(self, what: Callable[[], None]) -> None:
        """Have the loop's thread do something soon."""
        with self._changed:
            self._calls.append(what)
            self._changed.notify()

    @property
    def has_calls(self) -> bool:
        return bool(self._calls)

    def take_calls(self) -> Iterator[Callable[[], None]]:
        """All calls that are there, and those that are added meanwhile."""
        while self._calls:
            yield self._calls.popleft()

    def wait(self, timeout_s: float | None) -> None:
        """Wait until there is a call."""
        longest = threading.TIMEOUT_MAX  # Python cannot wait longer than that
        with self._changed:
            self._changed.wait_for(
                lambda: self._calls, longest if timeout_s is None else min(timeout_s, longest)
            )

    def _refuse_if_full(self, ticket: Ticket) -> None:
        if self.is_broken:
            raise ShuttingDown("the engine has failed and waits for its restart; try another server")
        if self.is_closed:
            raise ShuttingDown("the server is shutting down; try another one")
        if self.num_queued >= self._max_queued:
            raise Overloaded(f"{self.num_queued} requests wait, and no more may (max_queue); try again later")
        if self.queued_bytes + ticket.num_bytes > self._max_queued_bytes and self.queued_bytes:
            raise Overloaded(
                f"{self.queued_bytes:,} bytes of pictures wait, and {self._max_queued_bytes:,} may "
                "(max_queue_bytes); try again later"
            )
        if ticket.request.tenant:
            self._refuse_if_greedy(ticket)

    def _refuse_if_greedy(self, ticket: Ticket) -> None:
        """Whoever floods the queue leaves room in it for others."""
        queued, queued_bytes = self._queued[ticket.request.tenant], self._queued_bytes[ticket.request.tenant]
        if queued >= max(1, int(MAX_SHARE * self._max_queued)):
            raise Overloaded(
                f"{queued} requests of this caller wait, and the rest of the queue is for others; "
                "wait for answers before you ask again"
            )
        if queued and queued_bytes + ticket.num_bytes > MAX_SHARE * self._max_queued_bytes:
            raise Overloaded(
                f"{queued_bytes:,} bytes of this caller's pictures wait, and the rest of the room is for "
                "others; wait for answers before you ask again"
            )

    def _unqueue(self, ticket: Ticket) -> None:
        if ticket.queued:
            ticket.queued = False
            self._count(ticket, -1)

    def _count(self, ticket: Ticket, change: int) -> None:
        tenant, num_bytes = ticket.request.tenant, change * ticket.num_bytes
        self.num_queued += change
        self.queued_bytes += num_bytes
        self._queued[tenant] += change
        self._queued_bytes[tenant] += num_bytes
        if not self._queued[tenant]:
            del self._queued[tenant], self._queued_bytes[tenant]


def _ms(seconds: float) -> float:
    return round(1000 * seconds, 3)
