"""A Triton and a gateway that behave as the supervisor sees them, and write down what happens to them.

Each takes the flags of the real one, answers every GET, notes its start and its signals in a common journal,
and ends on SIGTERM: Triton at once, the gateway after it has finished, for which FINISHES_S is its time.
"""

import os
import signal
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

NAME, JOURNAL = sys.argv[1], Path(os.environ["JOURNAL"])


def note(what: str) -> None:
    with JOURNAL.open("a") as journal:
        journal.write(f"{NAME} {what} {os.getpid()} {time.monotonic()}\n")


def flag(name: str) -> str:
    words = " ".join(sys.argv[2:]).replace("=", " ").split(" ")
    return words[words.index(f"--{name}") + 1]


class Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    do_POST = do_GET

    def log_message(self, *_: Any) -> None: ...


def end(*_: Any) -> None:
    note("SIGTERM")
    time.sleep(float(os.environ.get("FINISHES_S", "0")) if NAME == "gateway" else 0)
    note("ends")
    os._exit(int(os.environ.get("EXIT_CODE", "0")) if NAME == "gateway" else 0)


signal.signal(signal.SIGTERM, end)
signal.signal(signal.SIGHUP, lambda *_: note("SIGHUP"))
note("starts")
if NAME == "gateway" and "BROKEN" in os.environ:
    sys.exit(int(os.environ["BROKEN"]))
place = (flag("host"), int(flag("port"))) if NAME == "gateway" else ("127.0.0.1", int(flag("http-port")))
ThreadingHTTPServer(place, Answer).serve_forever()
