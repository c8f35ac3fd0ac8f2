"""FlashInfer compiled in a thread beside the rest of a start, which waits for its decodes alone.

Prefills take three times as long to compile, and only large steps need them. Those are not captured, so SDPA
computes them until then.
"""

import logging
from collections.abc import Callable
from threading import Event, Thread
from typing import Protocol

import torch

from kestrel_core.moondream.text import Attend
from kestrel_core.runtime.attention.protocol import DecodeAttention, DecodeRows, PagedAttention, SpanRows

log = logging.getLogger("kestrel")

THREAD = "kestrel-flashinfer"


class Modules(Protocol):
    """FlashInfer's for one kind of heads. Each is compiled where it has to be, and loaded."""

    def compile_together(self) -> None:
        """What is missing of both, side by side."""
        ...

    def load_decodes(self) -> None: ...

    def has_prefills(self) -> bool:
        """Whether they are compiled."""
        ...

    def load_prefills(self) -> None: ...


Kind = tuple[int, torch.dtype, torch.dtype]  # width of heads, type of queries and results, of keys and values


class Compiler(Thread):
    def __init__(self, make: Callable[[], Modules], kind: Kind, late: bool) -> None:
        """`make` imports FlashInfer, which takes a while. `late`: prefills may come after the start."""
        super().__init__(name=THREAD, daemon=True)
        self._make = make
        self._kind = kind
        self._late = late
        self._prefills_follow = False
        self._may_start = Event()
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            modules = self._make()
            if not self._late:
                modules.compile_together()
            modules.load_decodes()
            if self._late and not modules.has_prefills():
                self._prefills_follow = True
                self._may_start.set()
            modules.load_prefills()
        except Exception as error:
            self.error = error
            log.debug("FlashInfer is not compiled ahead: %s", error)
        self._may_start.set()

    @property
    def ready(self) -> bool:
        return self._may_start.is_set()

    def wait(self) -> None:
        """Until `choose_attention` may be called. That says what went wrong."""
        self._may_start.wait()

    def still_compiles_prefills(self, kind: Kind) -> bool:
        """Asked when the wait is over. Those of another kind than was guessed are waited for: the right ones
        are compiled in the same folder then, and two ninjas there spoil each other's record.
        """
        if kind != self._kind:
            self.join()
        return self._prefills_follow and self.is_alive()


class TriedAttention(PagedAttention, Protocol):
    def try_out_spans(self) -> None: ...


class LatePrefills:
    """An attention whose spans another one computes until the compiler has ended; for good if it failed."""

    def __init__(self, attention: TriedAttention, meanwhile: PagedAttention, compiler: Compiler) -> None:
        self.name = attention.name
        self.max_captured = attention.max_captured
        self._attention = attention
        self._for_spans = meanwhile
        self._compiler: Compiler | None = compiler

    def for_decode(self, rows: DecodeRows, captured: bool) -> DecodeAttention:
        return self._attention.for_decode(rows, captured)

    def for_spans(self, rows: SpanRows) -> Attend:
        if self._compiler is not None and not self._compiler.is_alive():
            self._take_over(self._compiler.error)
            self._compiler = None
        return self._for_spans.for_spans(rows)

    def _take_over(self, error: Exception | None) -> None:
        try:
            if error is not None:
                raise error
            self._attention.try_out_spans()
            self._for_spans = self._attention
        except Exception as reason:
            log.warning(
                "large steps are computed without FlashInfer, span by span: %s: %s",
                type(reason).__name__,
                reason,
            )
