"""What the gateway writes: a line for each request, and what the programs under it have to say.

`text` is for people, `json` for machines: one object a line, also for uvicorn's lines and for tracebacks. A
line tells who asked what kind of thing and how it ended; never a picture, a prompt or an answer. Each line is
one write, short enough that lines of several workers do not mix in a pipe.
"""

import logging
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Literal

import msgspec

from kestrel_core.protocol.names import shown
from kestrel_gateway.records.visits import Visit

LOGGER = "kestrel.gateway"
Write = Callable[[bytes], object]
EXPECTED = (200, 503)  # of probes
MAX_PATH = 200
MAX_MESSAGE = 2000
MAX_TRACEBACK = 8000
MAX_ALIKE = 10  # lines a second of one caller's requests that ended alike, and not well
ALIKE_S = 1.0


class Log(logging.Handler):
    """An observer of visits, and the handler of all loggers of this process."""

    def __init__(self, style: Literal["text", "json"], write: Write | None = None) -> None:
        super().__init__(logging.INFO)
        self._write = write or to_stdout
        self._is_json = style == "json"
        self._alike = Alike()

    def install(self) -> None:
        """All loggers write here from now on. uvicorn must not be given a configuration of its own."""
        logging.basicConfig(level=logging.INFO, handlers=[self], force=True)
        logging.getLogger("uvicorn").setLevel(logging.WARNING)  # it tells of every start and end

    def began(self, visit: Visit) -> None:
        pass

    def asked(self, visit: Visit) -> None:
        pass

    def ended(self, visit: Visit) -> None:
        """Probes come every few seconds. Why the answer to them changes stands in a line of its own."""
        for line in self._alike.told():
            self.emit(logging.makeLogRecord({"name": LOGGER, "levelname": "INFO", "msg": line}))
        if visit.outcome != "ok" and self._alike.is_one_more(visit):
            return
        if not visit.is_probe or visit.status not in EXPECTED:
            fields = told(visit)
            self._line(json_line(fields) if self._is_json else text_line(fields))

    def emit(self, record: logging.LogRecord) -> None:
        fields = {
            "time": stamp(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": shown(record.getMessage(), MAX_MESSAGE),
        }
        traceback = ""
        if record.exc_info:
            lines = logging.Formatter().formatException(record.exc_info)[-MAX_TRACEBACK:].splitlines()
            traceback = "\n".join(shown(line, MAX_MESSAGE) for line in lines)
        if self._is_json:
            self._line(json_line(fields | ({"traceback": traceback} if traceback else {})))
        else:
            head = f"{fields['time']} {fields['level']} {fields['logger']}: {fields['message']}"
            self._line("\n".join(filter(None, (head, traceback))).encode("utf-8", "replace"))

    def _line(self, line: bytes) -> None:
        with suppress(OSError):  # whoever read the log has gone, which is no reason to answer nobody
            self._write(line + b"\n")


class Alike:
    """Counts requests of one caller that end alike again and again, so that nobody fills the log."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began_s = clock()
        self._counts = Counter[tuple[str, str]]()  # in this second, by caller and outcome

    def is_one_more(self, visit: Visit) -> bool:
        """Whether there were so many this second that this one is counted and not told."""
        self._counts[visit.caller, visit.outcome] += 1
        return self._counts[visit.caller, visit.outcome] > MAX_ALIKE

    def told(self) -> list[str]:
        """Once the second is over: a sentence for each caller and outcome that went on."""
        now = self._clock()
        if not self._counts or now < self._began_s + ALIKE_S:
            return []
        over = {alike: count - MAX_ALIKE for alike, count in self._counts.items() if count > MAX_ALIKE}
        self._counts.clear()
        self._began_s = now
        return [f"{over[it]:,} more requests of {it[0]} ended with {it[1]}" for it in over]


def to_stdout(line: bytes) -> None:
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()


def told(visit: Visit) -> dict[str, Any]:
    """What a line says of a visit. None and the empty text are left out."""
    usage = visit.usage
    fields: dict[str, Any] = {
        "time": stamp(time.time()),
        "level": "info" if visit.status < 500 else "error",
        "request_id": visit.request_id,
        "method": visit.method if visit.method.isalpha() else shown(visit.method),
        "path": shown(visit.path, MAX_PATH),
        "status": visit.status,
        "outcome": visit.outcome,
        "latency_ms": _ms(visit.latency_s),
        "key": visit.key,
    }
    if visit.request is not None:
        fields |= {
            "skill": visit.skill,
            "model": visit.model,
            "adapter": shown(visit.request.settings.adapter or ""),
            "stream": visit.is_stream,
            "upstream": visit.upstream,
            "ttft_ms": _ms(visit.ttft_s),
            "finish_reason": visit.finish_reason,
        }
    if visit.traceparent:
        fields["trace_id"] = visit.traceparent.split("-")[1]
    if usage is not None:
        fields |= {
            "queue_ms": round(usage.queue_time_ms, 3),
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "cached_tokens": usage.cached_tokens,
        }
    return {name: value for name, value in fields.items() if value is not None and value != ""}


def json_line(fields: dict[str, Any]) -> bytes:
    return msgspec.json.encode(fields)


def text_line(fields: dict[str, Any]) -> bytes:
    head = " ".join(_word(fields.pop(name)) for name in ("time", "level", "method", "path", "status"))
    return f"{head} {' '.join(f'{name}={_word(value)}' for name, value in fields.items())}".encode()


def _word(value: Any) -> str:
    """Quoted where it would otherwise be taken for more than one field."""
    text = str(value)
    return msgspec.json.encode(text).decode() if any(mark in text for mark in ' ="') else text


def stamp(seconds: float) -> str:
    """UTC, to the millisecond."""
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return f"{whole}.{int(seconds % 1 * 1000):03d}Z"


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1000, 3)
