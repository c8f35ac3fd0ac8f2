"""The Triton model `moondream`: tensors in, JSON out. Nothing else knows Triton's Python module, `pb_utils`.

`execute` parses a request and hands it to the engine's step loop. What the loop has to say goes through the
outbox to `Call.send`, and the last response carries Triton's final flag.
"""

import gc
import json
import logging
import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable
from functools import partial
from importlib import import_module
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from kestrel_core.config import RuntimeConfig, moondream_api_key
from kestrel_core.loop.inbox import Ticket
from kestrel_core.loop.metrics import Exporter, Histogram, Series, exported
from kestrel_core.protocol.about import ABOUT, About
from kestrel_core.protocol.arguments import MAX_TEXT_BYTES
from kestrel_core.protocol.errors import EngineFailed, KestrelError, TooLarge
from kestrel_core.protocol.limits import InputLimits
from kestrel_core.protocol.messages import Finished, Request
from kestrel_core.protocol.wire import decode_request
from kestrel_core.skills.registry import SkillRegistry, installed_skills
from kestrel_core.triton.outbox import Outbox

if TYPE_CHECKING:
    from kestrel_core.triton.tracing import Tracing

CODES = ("INVALID_ARG", "NOT_FOUND", "UNAVAILABLE", "INTERNAL")  # of a refusal
MAX_PARAMETERS = 2 * MAX_TEXT_BYTES  # letters of JSON; the longest of them is `spatial_refs`

log = logging.getLogger("kestrel")


class TritonPythonModel:
    skills: SkillRegistry | None = None  # None: built-in and installed ones; a subclass may have its own

    def initialize(self, args: dict[str, str]) -> None:
        # To look for garbage takes a tenth of the time of the imports, and 0.1 s each time afterwards.
        gc.disable()
        from kestrel_core.build import build_engine  # late: Triton may import this file only to look at it

        gc.freeze()
        gc.enable()
        logging.basicConfig(format="%(levelname)s %(name)s: %(message)s")
        # A thread that sends gives up the GIL, and would wait up to Python's 5 ms to get it back.
        sys.setswitchinterval(0.0005)
        self.pb_utils = import_module("triton_python_backend_utils")  # exists in Triton's process alone
        self.instance = args["model_instance_name"].rpartition("_")[2]
        parameters = json.loads(args["model_config"]).get("parameters", {}).items()
        options = {name: value["string_value"] for name, value in parameters}
        config = RuntimeConfig.from_parameters(options, int(self.instance))
        self.limits = InputLimits.parse(config.input_limits)
        skills = self.skills or installed_skills(config.skills)
        self.engine = build_engine(config, skills.public(), warming=tell_warming, api_key=moondream_api_key())
        self.outbox = Outbox()
        self.tracing = open_tracing(self.engine.about)
        self.open: set[Call] = set()
        self.refused = Counter(dict.fromkeys(CODES, 0))
        self.ids = count(1)
        self.info = {"version": self.engine.about.version, **self.engine.in_use()}
        self.has_given_up = False
        self.closing = threading.Event()
        self.threads = [
            threading.Thread(target=work, name=f"kestrel-{name}", daemon=True)
            for name, work in (("watch", self.keep_watching), ("metrics", self.keep_exporting))
        ]
        for thread in self.threads:
            thread.start()

    def execute(self, requests: list[Any]) -> None:
        """Take requests in and return. A request that cannot be taken in gets its error as its response."""
        for triton_request in requests:
            call = Call(self.pb_utils, triton_request.get_response_sender(), self.open.discard)
            outgoing = self.outbox.open(call.send)
            self.open.add(call)
            if self.tracing is not None:
                outgoing.on_end = partial(self.trace, self.tracing, call)
            try:
                request = self.parse(triton_request)
                outgoing.stream = request.stream
                if request.skill == ABOUT:
                    outgoing.put(self.engine.about.answer(request))
                else:
                    call.ticket = self.engine.loop.submit(request, outgoing.put)
            except KestrelError as error:
                self.refused[error.code] += 1
                outgoing.put(error)
            except Exception as error:
                log.exception("a request could not be taken in")
                self.refused["INTERNAL"] += 1
                outgoing.put(EngineFailed(f"the request could not be taken in ({type(error).__name__})"))

    def parse(self, triton_request: Any) -> Request:
        """Sizes are checked before values are converted, because all requests wait while Python converts.

        `as_numpy` itself costs little: Triton's stub makes the objects of a STRING input before it calls
        `execute`, and the arrays of other types are views of shared memory.
        """
        values = {tensor.name(): tensor.as_numpy() for tensor in triton_request.inputs()}
        parameters = triton_request.parameters() or "{}"
        if len(parameters) > MAX_PARAMETERS:
            raise TooLarge(
                f"the request's parameters are {len(parameters):,} letters of JSON; at most "
                f"{MAX_PARAMETERS:,} are taken"
            )
        request_id = triton_request.request_id() or str(next(self.ids))
        timeout_us, given = triton_request.timeout(), json.loads(parameters)
        return decode_request(values, request_id, timeout_us, given, self.limits)

    def trace(self, tracing: "Tracing", call: "Call", event: Finished | KestrelError) -> None:
        """In a sender's thread. Requests that were not taken in have no trace."""
        if call.ticket is not None:
            tracing.record(call.ticket, event)

    def is_ready(self) -> bool:
        return self.engine.loop.healthy and not self.has_given_up

    def finalize(self) -> None:
        self.closing.set()
        for thread in self.threads:
            thread.join()
        self.engine.close()
        self.outbox.close()
        if self.tracing is not None:
            self.tracing.close()

    # In the thread that watches

    def keep_watching(self) -> None:
        self.repeat(self.watch, pause_s=0.02)

    def watch(self) -> None:
        """Cancel requests whose callers have gone. If the engine is broken, ask the server to end."""
        if self.engine.loop.heartbeat.is_stuck():
            self.die()
        tickets = [(call, call.ticket) for call in list(self.open) if call.ticket is not None]
        for call, ticket in tickets:
            if call.is_cancelled():
                self.engine.loop.cancel(ticket)
        if not self.engine.loop.healthy and not tickets and not self.has_given_up:
            log.critical("the engine is broken and every caller has been told; asking the server to end")
            self.has_given_up = True
            os.kill(os.getppid(), signal.SIGTERM)

    def die(self) -> None:
        """A step never ends, so nobody can be told and nothing closed: a server would wait for us in vain."""
        log.critical(
            "a step has not ended within %g s (max_step_s): the engine is stuck, its process ends itself",
            self.engine.loop.heartbeat.limit_s,
        )
        self.has_given_up = True
        os.kill(os.getppid(), signal.SIGTERM)  # who runs a server without `kestrel serve` replaces all of it
        os.kill(os.getpid(), signal.SIGKILL)

    # In the thread of the metrics

    def keep_exporting(self) -> None:
        """Triton's metrics belong to this thread: if two use them, the whole server aborts.

        They are also released here. Those that are left when Python shuts down end the process by a
        segmentation fault: each tells the server of its end, and the connection is closed by then.
        """
        families: dict[str, Any] = {}
        exporter = Exporter(lambda series: self.make_metric(families, series))
        self.repeat(lambda: self.export_metrics(exporter), pause_s=0.25)
        exporter.forget()  # the metrics first, then their families
        families.clear()
        gc.collect()

    def export_metrics(self, exporter: Exporter) -> None:
        served = {"open": len(self.open), "refused": dict(self.refused), "info": self.info}
        for series in exported(self.engine.metrics() | served, self.engine.loop.metrics):
            exporter.tell(series)

    def make_metric(self, families: dict[str, Any], series: Series) -> Any:
        if series.name not in families:
            kind = getattr(self.pb_utils.MetricFamily, series.kind.upper())
            families[series.name] = self.pb_utils.MetricFamily(series.name, series.meaning, kind)
        labels = {"engine": self.instance, **dict(series.labels)}
        if isinstance(series.value, Histogram):
            return families[series.name].Metric(labels=labels, buckets=list(series.value.bounds))
        return families[series.name].Metric(labels=labels)

    def repeat(self, work: Callable[[], None], pause_s: float) -> None:
        """Again and again, until the model is finalized."""
        while not self.closing.wait(pause_s):
            try:
                work()
            except Exception:
                log.exception("%s failed; it is tried again", threading.current_thread().name)


class Call:
    """A request as Triton knows it. One thread at a time uses its sender, none after the last response."""

    def __init__(self, pb_utils: Any, sender: Any, on_end: Callable[["Call"], None]) -> None:
        self.ticket: Ticket | None = None
        self._pb_utils = pb_utils
        self._sender = sender
        self._on_end = on_end
        self._lock = threading.Lock()

    def send(self, document: str | KestrelError, last: bool) -> None:
        final = self._pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL
        with self._lock:
            sender = self._sender
            if not last:
                sender.send(self._response(document))
                return
            self._sender = None
            try:
                sender.send(self._response(document), flags=final)
            except Exception:
                sender.send(flags=final)  # or the client waits for ever
                raise
            finally:
                self._on_end(self)

    def is_cancelled(self) -> bool:
        with self._lock:
            return self._sender is not None and bool(self._sender.is_cancelled())

    def _response(self, document: str | KestrelError) -> Any:
        pb_utils = self._pb_utils
        if isinstance(document, KestrelError):
            error = pb_utils.TritonError(document.wire_text, getattr(pb_utils.TritonError, document.code))
            return pb_utils.InferenceResponse(error=error)
        text = np.array([document.encode()], dtype=np.object_)
        return pb_utils.InferenceResponse([pb_utils.Tensor("TEXT_OUTPUT", text)])


def tell_warming(done: int, total: int) -> None:
    """Into the server's log: a GPU is warmed up for some time before the first request."""
    print(f"kestrel: warming up, {done} of {total} batch sizes", file=sys.stderr, flush=True)


def open_tracing(about: About) -> "Tracing | None":
    """Where requests are traced: nowhere, unless OpenTelemetry's own variables name a collector."""
    given = os.environ.get
    endpoint = given("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") or given("OTEL_EXPORTER_OTLP_ENDPOINT")
    if not endpoint or given("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return None
    try:
        from kestrel_core.triton.tracing import Tracing
    except ImportError:
        log.warning(
            "a collector of traces is named, but OpenTelemetry is not installed: kestrel-triton[otel]"
        )
        return None
    return Tracing(about.model, about.version)
