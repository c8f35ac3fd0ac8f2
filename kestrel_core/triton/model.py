"""The Triton model `moondream`: tensors in, JSON out. The only file that knows `pb_utils`.

A request's life here: `execute` parses it and hands it to the engine's step loop; whatever the loop has to
say goes through the outbox to `Call.send`, and the last of it carries Triton's final flag.
"""

import json
import logging
import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils

from kestrel_core.config import RuntimeConfig
from kestrel_core.loop.inbox import Ticket
from kestrel_core.loop.metrics import Exporter, Series, exported
from kestrel_core.protocol.errors import EngineFailed, KestrelError
from kestrel_core.protocol.messages import Request
from kestrel_core.protocol.wire import decode_request
from kestrel_core.skills.registry import SkillRegistry
from kestrel_core.triton.outbox import Outbox

FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL
CODES = ("INVALID_ARG", "NOT_FOUND", "UNAVAILABLE", "INTERNAL")  # of a refusal

log = logging.getLogger("kestrel")


class TritonPythonModel:
    skills: SkillRegistry | None = None  # None: those every server has; a subclass may bring its own

    def initialize(self, args: dict[str, str]) -> None:
        from kestrel_core.build import build_engine  # late: Triton may import this file only to look at it

        logging.basicConfig(format="%(levelname)s %(name)s: %(message)s")
        # A sender is without the GIL while it sends; at Python's own 5 ms it would wait long to get it back.
        sys.setswitchinterval(0.0005)
        self.instance = args["model_instance_name"].rpartition("_")[2]
        parameters = json.loads(args["model_config"]).get("parameters", {}).items()
        options = {name: value["string_value"] for name, value in parameters}
        config = RuntimeConfig.from_parameters(options, int(self.instance))
        self.engine = build_engine(config, self.skills, warming=tell_warming)
        self.outbox = Outbox()
        self.open: set[Call] = set()
        self.refused = Counter(dict.fromkeys(CODES, 0))
        self.ids = count(1)
        self.exporter = Exporter(self.make_metric)
        self.families: dict[str, Any] = {}
        self.has_given_up = False
        self.closing = threading.Event()
        self.threads = [
            threading.Thread(target=self.repeat, args=(work, pause_s), name=f"kestrel-{name}", daemon=True)
            for name, work, pause_s in (("watch", self.watch, 0.02), ("metrics", self.export_metrics, 0.25))
        ]
        for thread in self.threads:
            thread.start()

    def execute(self, requests: list[Any]) -> None:
        """Takes requests in and returns; what is wrong with one is answered like everything else."""
        for triton_request in requests:
            call = Call(triton_request.get_response_sender(), self.open.discard)
            outgoing = self.outbox.open(call.send)
            self.open.add(call)
            try:
                request = self.parse(triton_request)
                outgoing.stream = request.stream
                call.ticket = self.engine.loop.submit(request, outgoing.put)
            except KestrelError as error:
                self.refused[error.code] += 1
                outgoing.put(error)
            except Exception as error:
                log.exception("a request could not be taken in")
                self.refused["INTERNAL"] += 1
                outgoing.put(EngineFailed(f"the request could not be taken in ({type(error).__name__})"))

    def parse(self, triton_request: Any) -> Request:
        return decode_request(
            {tensor.name(): tensor.as_numpy() for tensor in triton_request.inputs()},
            triton_request.request_id() or str(next(self.ids)),
            triton_request.timeout(),
            json.loads(triton_request.parameters() or "{}"),
        )

    def is_ready(self) -> bool:
        return self.engine.loop.healthy

    def watch(self) -> None:
        """Cancel what nobody waits for any more; take down, in order, a server whose engine is broken."""
        tickets = [(call, call.ticket) for call in list(self.open) if call.ticket is not None]
        for call, ticket in tickets:
            if call.is_cancelled():
                self.engine.loop.cancel(ticket)
        if not self.engine.loop.healthy and not tickets and not self.has_given_up:
            log.critical("the engine is broken and everybody has been told; asking the server to end")
            self.has_given_up = True
            os.kill(os.getppid(), signal.SIGTERM)

    def export_metrics(self) -> None:
        """In one thread alone: Triton's metrics, touched from two, abort the whole server."""
        snapshot = self.engine.metrics() | {"open": len(self.open), "refused": dict(self.refused)}
        for series in exported(snapshot):
            self.exporter.tell(series)

    def make_metric(self, series: Series) -> Any:
        if series.name not in self.families:
            kind = getattr(pb_utils.MetricFamily, series.kind.upper())
            self.families[series.name] = pb_utils.MetricFamily(series.name, series.meaning, kind)
        return self.families[series.name].Metric(labels={"engine": self.instance, **dict(series.labels)})

    def repeat(self, work: Callable[[], None], pause_s: float) -> None:
        while not self.closing.wait(pause_s):
            try:
                work()
            except Exception:
                log.exception("%s failed; it is tried again", threading.current_thread().name)

    def finalize(self) -> None:
        self.closing.set()
        for thread in self.threads:
            thread.join()
        self.engine.close()
        self.outbox.close()


class Call:
    """A request as Triton knows it. Its sender is used by one thread at a time, and never after the last."""

    def __init__(self, sender: Any, on_end: Callable[["Call"], None]) -> None:
        self.ticket: Ticket | None = None
        self._sender = sender
        self._on_end = on_end
        self._lock = threading.Lock()

    def send(self, document: str | KestrelError, last: bool) -> None:
        with self._lock:
            sender = self._sender
            if not last:
                sender.send(response(document))
                return
            self._sender = None
            try:
                sender.send(response(document), flags=FINAL)
            except Exception:
                sender.send(flags=FINAL)  # or the client waits for ever
                raise
            finally:
                self._on_end(self)

    def is_cancelled(self) -> bool:
        with self._lock:
            return self._sender is not None and bool(self._sender.is_cancelled())


def tell_warming(done: int, total: int) -> None:
    """Into the server's log: a GPU is warmed up for some time before the first request."""
    print(f"kestrel: warming up, {done} of {total} batch sizes", file=sys.stderr, flush=True)


def response(document: str | KestrelError) -> Any:
    if isinstance(document, KestrelError):
        code = getattr(pb_utils.TritonError, document.code)
        # Triton drops the code on most ways to the client, so the text repeats it.
        return pb_utils.InferenceResponse(error=pb_utils.TritonError(f"{document.code}: {document}", code))
    text = np.array([document.encode()], dtype=np.object_)
    return pb_utils.InferenceResponse([pb_utils.Tensor("TEXT_OUTPUT", text)])
