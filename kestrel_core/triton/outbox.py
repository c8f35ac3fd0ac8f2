"""The way out to a slow door: a few threads send what the engine's one thread has to say, and never stall it.

A response costs the same whatever its size, so what waits for one request goes out together: the first text
and the last at once, everything between at most once per `pause_s`. One thread at a time sends a request's.
"""

import logging
import threading
from collections.abc import Callable
from queue import SimpleQueue

from kestrel_core.protocol.errors import EngineFailed, KestrelError
from kestrel_core.protocol.messages import Chunk, Event
from kestrel_core.protocol.wire import encode_chunk, encode_result

log = logging.getLogger("kestrel")

# Given JSON or an error, and whether it is the last of its request; may block.
Send = Callable[[str | KestrelError, bool], None]


class Outgoing:
    """One request's responses. `put` is the sink that the step loop calls; it never blocks."""

    def __init__(self, outbox: "Outbox", send: Send) -> None:
        self.stream = False  # whether the last response repeats the text that is left as a chunk
        self._outbox = outbox
        self._send = send
        self._lost = False
        self._lock = threading.Lock()
        self._waiting: list[Event] = []
        self._state = "first"  # then "idle" and "paced" in turn, and "ready" in a sender's hands

    def put(self, event: Event) -> None:
        with self._lock:
            self._waiting.append(event)
            if self._state != "ready":
                self._hand_over()

    def hurry(self) -> None:
        """The pause is over."""
        with self._lock:
            if self._state == "paced":
                self._state = "ready"
                self._outbox.ready.put(self)

    def deliver(self) -> None:
        """Send what waits. In one sender's thread: the state is "ready" until this has returned."""
        with self._lock:
            events, self._waiting = self._waiting, []
        try:
            self._send(*self._coalesce(events))
        except Exception:
            log.exception("a response could not be sent")
            self._lost = True
        with self._lock:
            self._state = "idle"
            if self._waiting:
                self._hand_over()

    def _coalesce(self, events: list[Event]) -> tuple[str | KestrelError, bool]:
        """All that waits as one response, and whether it is the last."""
        last = events[-1]
        if isinstance(last, KestrelError):
            return last, True
        text = "".join(event.text for event in events if isinstance(event, Chunk))
        if isinstance(last, Chunk):
            return encode_chunk(Chunk(text, last.token_index)), False
        if self._lost:
            return EngineFailed("a part of the answer was lost on its way; ask again"), True
        rest = Chunk(text + last.rest.text, last.rest.token_index) if self.stream else None
        try:
            return encode_result(last.result, rest), True
        except Exception as error:  # a skill of somebody's own may give what JSON cannot hold
            return EngineFailed(f"the answer cannot be written as JSON ({type(error).__name__})"), True

    def _hand_over(self) -> None:
        if self._state == "first" or not isinstance(self._waiting[-1], Chunk):
            self._state = "ready"
            self._outbox.ready.put(self)
        elif self._state == "idle":
            self._state = "paced"
            self._outbox.paced.put(self)


class Outbox:
    def __init__(self, num_threads: int = 4, pause_s: float = 0.025) -> None:
        self.ready: SimpleQueue[Outgoing | None] = SimpleQueue()
        self.paced: SimpleQueue[Outgoing | None] = SimpleQueue()
        self._pause_s = pause_s
        self._closed = threading.Event()
        self._threads = [threading.Thread(target=self._pace, name="kestrel-pace", daemon=True)]
        for number in range(num_threads):
            self._threads.append(
                threading.Thread(target=self._deliver, name=f"kestrel-send-{number}", daemon=True)
            )
        for thread in self._threads:
            thread.start()

    def open(self, send: Send) -> Outgoing:
        return Outgoing(self, send)

    def close(self) -> None:
        """Stop the threads, once every request has had its last event."""
        self._closed.set()
        self.paced.put(None)
        for _ in self._threads[1:]:
            self.ready.put(None)
        for thread in self._threads:
            thread.join()

    def _deliver(self) -> None:
        while (outgoing := self.ready.get()) is not None:
            outgoing.deliver()

    def _pace(self) -> None:
        """In rounds of one pause, while anybody waits for the next: so none is sent twice in a round."""
        while (first := self.paced.get()) is not None:
            self._closed.wait(self._pause_s)
            waiting = [first, *(self.paced.get() for _ in range(self.paced.qsize()))]
            for outgoing in waiting:
                if outgoing is None:
                    return
                outgoing.hurry()
