"""Prepares requests for the scheduler: makes the prompt and the picture of each, in worker threads.

A decoded picture is many times larger than its file, so pictures are not decoded ahead without limit. While
the pictures of requests that have not begun take more than `max_bytes`, no further one is decoded: its
request is put aside until there is room again, and the most urgent ones go on first. The limit can be
exceeded by the pictures that workers are decoding at that moment. Costly pictures wait for each other
(`costly_pictures`), and not in the workers.
"""

import heapq
import random
import threading
from collections.abc import Callable, Hashable
from typing import Protocol

from kestrel_core.loop.costly_pictures import CostlyPictures
from kestrel_core.loop.inbox import PreparedRequest, Ticket
from kestrel_core.loop.sequence import Prompt, Sequence
from kestrel_core.loop.step import PreparedImage, Sampling
from kestrel_core.moondream.config import DialogConfig
from kestrel_core.protocol.errors import EngineFailed, KestrelError, PromptTooLong, ShuttingDown, caused
from kestrel_core.protocol.messages import Settings
from kestrel_core.skills.spec import Language

MAX_RESUMED = 4  # requests that go on at once when there is room; each of them then lets others go on


class Workers(Protocol):
    """Threads that run what they are given, as a `concurrent.futures.Executor` does."""

    def submit(self, work: Callable[[Ticket], None], ticket: Ticket, /) -> object: ...

    def shutdown(self) -> None: ...


class PrepareImage(Protocol):
    def __call__(
        self, source: object, may_decode: Callable[[str, int], bool], salt: str, /
    ) -> PreparedImage | None:
        """The picture, or None if it has to be decoded and `may_decode`, given its key and its cost, says no.

        The same picture has another key with another salt. Raises `BadImage`.
        """
        ...


class Preparation:
    """`tell` is called in a worker's thread with what became of a request. `is_cached` is asked whether the
    image prefix under a root is in the KV cache.
    """

    def __init__(
        self,
        language: Language,
        prepare_image: PrepareImage,
        workers: Workers,
        max_context: int,
        max_bytes: int,
        is_cached: Callable[[Hashable], bool],
        tell: Callable[[Ticket, PreparedRequest | KestrelError], None],
        clock: Callable[[], float],
        max_costly: int = 1,
    ) -> None:
        self._language = language
        self._prepare_image = prepare_image
        self._workers = workers
        self._max_context = max_context
        self._max_bytes = max_bytes
        self._is_cached = is_cached
        self._tell = tell
        self._clock = clock
        self._lock = threading.Lock()
        self._held: dict[Ticket, PreparedImage] = {}  # by requests that have not begun
        self._num_holders: dict[int, int] = {}  # by identity of the image: equal requests share one
        self._aside: set[Ticket] = set()
        self._costly = CostlyPictures(max_costly)
        self.held_bytes = 0

    def start(self, ticket: Ticket) -> None:
        try:
            self._workers.submit(self._prepare, ticket)
        except RuntimeError:  # they were shut down, after the loop had ended all requests or while it does
            self._tell(ticket, ShuttingDown("the server is shutting down; try another one"))

    def release(self, ticket: Ticket) -> None:
        """The request has begun or ended: its picture does not count any more."""
        with self._lock:
            self._aside.discard(ticket)
            image = self._held.pop(ticket, None)
            if image is not None:
                self._num_holders[id(image)] -= 1
                if not self._num_holders[id(image)]:
                    del self._num_holders[id(image)]
                    self.held_bytes -= image.num_bytes
        if self._aside:
            self._resume()

    def shut_down(self) -> None:
        self._workers.shutdown()

    # In a worker's thread

    def _prepare(self, ticket: Ticket) -> None:
        try:
            prepared = None if ticket.done else self._all_of(ticket)
            if prepared is not None:
                self._tell(ticket, prepared)
        except KestrelError as error:
            self._tell(ticket, error)
        except Exception as error:
            kind = type(error).__name__
            self._tell(ticket, caused(EngineFailed(f"the request could not be prepared ({kind})"), error))
        finally:
            if (following := self._costly.end(ticket)) is not None:
                self.start(following)
            if self._aside:
                self._resume()

    def _all_of(self, ticket: Ticket) -> PreparedRequest | None:
        """None: the request was put aside, or its picture has to wait for its turn."""
        prompt, request = self._prompt(ticket), ticket.request
        length = self._length(prompt)
        if not prompt.with_image:
            return PreparedRequest(prompt, None, length)
        began_s = self._clock()
        image = self._prepare_image(
            request.image, lambda key, cost: self._may_decode(ticket, key, cost), ticket.picture_salt
        )
        if image is None:
            return None
        self._hold(ticket, image)
        return PreparedRequest(prompt, image, length, began_s, self._clock())

    def _prompt(self, ticket: Ticket) -> Prompt:
        skill = ticket.skill
        try:
            prompt = skill.prompt(ticket.request, self._language)
        except KestrelError:
            raise
        except Exception as error:  # a skill is not always our code
            kind = type(error).__name__
            raise EngineFailed(f"skill {skill.name} could not make a prompt ({kind})") from error
        if not prompt.inputs:
            raise EngineFailed(f"skill {skill.name} made an empty prompt; there is nothing to answer")
        length = self._length(prompt)
        if length >= self._max_context:
            text = len(prompt.inputs)
            raise PromptTooLong(
                f"prompt needs {length:,} positions ({length - text:,} image + {text:,} text) and "
                f"max_context is {self._max_context:,}; shorten the text or serve with a larger max_context"
            )
        return prompt

    def _length(self, prompt: Prompt) -> int:
        image_length = self._language.config.image_prefix_length if prompt.with_image else 0
        return image_length + len(prompt.inputs)

    def _may_decode(self, ticket: Ticket, key: str, cost: int) -> bool:
        """If not, the request is put aside. A picture whose KV is cached is given twice the room, because its
        request will begin sooner than those it would wait for.
        """
        room = 2 if self._is_cached(root_of(ticket, key)) else 1
        with self._lock:
            if self.held_bytes > room * self._max_bytes:
                if not ticket.done:  # it ends before it is released: it is either seen here or removed there
                    self._aside.add(ticket)
                return False
        return self._costly.may_begin(ticket, cost)

    def _hold(self, ticket: Ticket, image: PreparedImage) -> None:
        with self._lock:
            if ticket.done:  # as above
                return
            self._held[ticket] = image
            holders = self._num_holders.get(id(image), 0)
            self._num_holders[id(image)] = holders + 1
            self.held_bytes += 0 if holders else image.num_bytes

    def _resume(self) -> None:
        """Let those that were put aside go on, if there is room."""
        with self._lock:
            if self.held_bytes > self._max_bytes:
                return
            resumed = heapq.nsmallest(MAX_RESUMED, self._aside, key=lambda ticket: ticket.order)
            self._aside.difference_update(resumed)
        for ticket in resumed:
            self.start(ticket)


def root_of(ticket: Ticket, image_key: str | None) -> Hashable:
    """What every position depends on, and the salt: sequences of different roots share no KV.

    The text behind a picture has a salt of its own, since all salts may share pictures.
    """
    adapter = ticket.adapter  # it counts by what it is, whatever name it was asked for by
    salt = ticket.request.cache_salt if image_key is None else ticket.picture_salt
    return salt, adapter.identity if adapter is not None else None, image_key


def make_sequence(ticket: Ticket, prepared: PreparedRequest, language: Language) -> Sequence:
    """What the scheduler takes. Raises what is wrong with the skill's reply."""
    request, image = ticket.request, prepared.image
    try:
        reply = ticket.skill.reply(request, language)
    except KestrelError:
        raise
    except Exception as error:
        kind = type(error).__name__
        raise EngineFailed(f"skill {ticket.skill.name} could not begin its reply ({kind})") from error
    return Sequence(
        request_id=request.request_id,
        reply=reply,
        inputs=list(prepared.prompt.inputs),
        root=root_of(ticket, image.key if image else None),
        image=image,
        image_length=language.config.image_prefix_length if image else 0,
        adapter=ticket.adapter,
        sampling=_sampling(request.settings, ticket.skill.greedy, language.config.dialog),
        order=ticket.order,
        tenant=request.tenant,
        text_salt=request.cache_salt if image else "",
    )


def _sampling(settings: Settings, greedy: bool, dialog: DialogConfig) -> Sampling:
    if greedy:
        return Sampling(logprobs=settings.logprobs)
    return Sampling(
        temperature=dialog.temperature if settings.temperature is None else settings.temperature,
        top_p=dialog.top_p if settings.top_p is None else settings.top_p,
        top_k=settings.top_k or 0,
        seed=random.getrandbits(63) if settings.seed is None else settings.seed,
        logprobs=settings.logprobs,
    )
