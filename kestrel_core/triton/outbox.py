"""The outbox: a few threads send the responses, so that the engine's one thread never waits for a client.

A response costs the same whatever its size, so all that waits for one request is sent together. The first
text and the end of an answer are sent at once, the text between them at most once per `pause_s`. The
responses of one request are sent by one thread at a time.
"""

import logging
import threading
from collections.abc import Callable, Iterator
from itertools import chain, groupby
from queue import SimpleQueue

from kestrel_core.protocol.errors import EngineFailed, KestrelError
from kestrel_core.protocol.messages import Chunk, Event, Finished
from kestrel_core.protocol.wire import encode_chunk, encode_result

log = logging.getLogger("kestrel")

OnEnd = Callable[[Finished | KestrelError], None]
# Takes JSON or an error, and whether it is the last of its request. It may block.
Send = Callable[[str | KestrelError, bool], None]


def join(chunks: list[Chunk]) -> Chunk:
    """Several chunks of one kind as one."""
    text = "".join(chunk.text for chunk in chunks)
    logprobs = tuple(chain.from_iterable(chunk.logprobs for chunk in chunks))
    return chunks[-1]._replace(text=text, logprobs=logprobs)


class Outgoing:
    """One request's responses. `put` is the sink that the step loop calls; it never blocks."""

    def __init__(self, outbox: "Outbox", send: Send) -> None:
        self.stream = False  # whether the last response repeats the text that is left as a chunk
        self.on_end: OnEnd | None = None  # called in a sender's thread once the last response was sent
        self._outbox = outbox
        self._send = send
        self._lost = False
        self._lock = threading.Lock()
        self._waiting: list[Event] = []
        # "first" until something is sent, then "idle" and "paced" in turn; "ready" while a sender has it.
        self._state = "first"

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
        while True:
            with self._lock:
                events, self._waiting = self._waiting, []
            self._deliver(events)
            self._tell_end(events[-1])
            with self._lock:
                # An end that came meanwhile is sent by this thread. Put into the queue again, it could come
                # after the marks that stop the threads.
                if not self._waiting or isinstance(self._waiting[-1], Chunk):
                    self._state = "idle"
                    if self._waiting:
                        self._hand_over()
                    return

    def _deliver(self, events: list[Event]) -> None:
        try:
            for document, last in self._coalesce(events):
                self._try_to_send(document, last)
        except Exception as error:  # the text that a skill gave is no text; this thread has others to serve
            log.exception("a response could not be written")
            self._lost = True
            if not isinstance(events[-1], Chunk):
                kind = type(error).__name__
                self._try_to_send(EngineFailed(f"the answer's text cannot be written ({kind})"), True)

    def _tell_end(self, event: Event) -> None:
        if self.on_end is not None and not isinstance(event, Chunk):
            try:
                self.on_end(event)
            except Exception:  # this thread has others to serve
                log.exception("what follows the end of a request failed")

    def _try_to_send(self, document: str | KestrelError, last: bool) -> None:
        try:
            self._send(document, last)
        except Exception:
            log.exception("a response could not be sent")
            self._lost = True  # which the last response then says

    def _coalesce(self, events: list[Event]) -> Iterator[tuple[str | KestrelError, bool]]:
        """One response for each run of chunks of one kind, and the end; with each, whether it is the last."""
        end = events[-1]
        if isinstance(end, KestrelError):
            yield end, True
            return
        chunks = [event for event in events if isinstance(event, Chunk)]
        if isinstance(end, Finished):
            chunks.append(end.rest)
        runs = [list(run) for _, run in groupby(chunks, key=lambda chunk: chunk.kind)]
        joined = [join(run) for run in runs]
        rest = joined.pop() if isinstance(end, Finished) else None
        for chunk in joined:
            yield encode_chunk(chunk), False
        if isinstance(end, Finished):
            yield self._last_response(end, rest if self.stream else None), True

    def _last_response(self, end: Finished, rest: Chunk | None) -> str | KestrelError:
        if self._lost:
            return EngineFailed("a part of the answer was lost on its way; ask again")
        try:
            return encode_result(end.result, rest)
        except Exception as error:  # a skill may give what JSON cannot hold
            return EngineFailed(f"the answer cannot be written as JSON ({type(error).__name__})")

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
        """Send what waits and stop the threads. Every request must have been given its last event."""
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
        """Rounds, each one pause long: no request is sent to twice in a round."""
        while (first := self.paced.get()) is not None:
            self._closed.wait(self._pause_s)
            waiting = [first, *(self.paced.get() for _ in range(self.paced.qsize()))]
            for outgoing in waiting:
                if outgoing is None:
                    return
                outgoing.hurry()
