"""What `kestrel bench` measures, and what each part takes. No part is imported before it is chosen.

A part is the function `bench_NAME` in the module NAME of `parts`. It is given its options, then a `Bench`
where it builds an engine, or the console where it does not. Exit code 1 is for those that return False.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich.console import Console

from kestrel_core.cli.options import add_engine_options, engine_config
from kestrel_core.protocol.errors import InvalidRequest
from kestrel_tools.bench.pauses_options import Pauses
from kestrel_tools.bench.results import Bench, Row, markdown, read_document
from kestrel_tools.options import Option, add_command, check_no_folder, read_options, several, words

if TYPE_CHECKING:
    from kestrel_core.cli.options import Commands

STARTS = ("whole", "quick")
WAYS = ("engine", "triton", "gateway")
SERVER = "a server's gRPC; without, an engine is started here"
RANDOM = "Weights are random unless --weights says otherwise."


Batches = Annotated[Sequence[int], several("sequences decoded together (1,4,16,64)", "--batch")]
Repeats = Annotated[int, Option("of which the median counts (%(default)s)")]
GatewayWorkers = Annotated[int, Option("processes of the gateway (%(default)s)", metavar="N")]
OneLine = Annotated[bool, Option("print nothing but one JSON line to stdout")]


@dataclass(frozen=True, slots=True)
class Scheduler:
    """the host's share of a decode step

    Measures what the host does in a decode step, plan, commit and publish, with a runtime that takes no
    time: without a queue, and with one.
    """

    running: Annotated[int, Option("sequences that decode (%(default)s)")] = 64
    waiting: Annotated[int, Option("requests that wait (%(default)s)")] = 1000
    steps: Annotated[int, Option("to measure in each case (%(default)s)")] = 2000
    json: OneLine = False

    def __post_init__(self) -> None:
        if self.running < 1 or self.waiting < 0 or self.steps < 2:
            raise InvalidRequest("there must be a running sequence, at least, and two steps to measure")


@dataclass(frozen=True, slots=True)
class Serving:
    """what Triton and the gateway cost: engine alone, gRPC, HTTP and REST side by side

    Asks the same of the engine alone and of a server started for it, over gRPC, over Triton's HTTP and over
    the gateway's, whole and streaming, with the tiny model on the CPU.
    """

    callers: Annotated[Sequence[int], several("callers at a time (1,16)")] = (1, 16)
    tokens: Annotated[int, Option("of an answer (%(default)s); the fewer, the clearer what a way adds")] = 16
    gateway_workers: GatewayWorkers = 1
    seconds: Annotated[float, Option("to measure each way (%(default)s)")] = 10.0
    json: OneLine = False

    def __post_init__(self) -> None:
        if (
            not self.callers
            or min(*self.callers, self.tokens, self.gateway_workers) < 1
            or not self.seconds > 0
        ):
            raise InvalidRequest("there must be a caller, a token, a worker, and seconds to measure")


@dataclass(frozen=True, slots=True)
class ChartQA:
    """whole requests, closed loop: the engine, the real Triton, the gateway in front of it

    Charts of four sizes, five questions over every three, answers of exactly so many tokens, and a caller for
    each sequence of the batch.
    """

    batches: Batches = (1, 4, 16, 64)
    tokens: Annotated[Sequence[int], several("of an answer (3)")] = (3,)
    seconds: Annotated[float, Option("of each window (%(default)g)")] = 20.0
    warm_up: Annotated[int | None, Option("requests (20, and 4 a caller)", metavar="N")] = None
    ways: Annotated[
        Sequence[str],
        Option(f"of {', '.join(WAYS)} (engine)", "--through", type=words, metavar="WAY,..."),
    ] = ("engine",)
    gateway_workers: GatewayWorkers = 1
    num_adapters: Annotated[
        int, Option("random ones; the engine is measured without, with none in use, with all in turn")
    ] = 0
    adapter_rank: Annotated[int, Option("of them (%(default)s)", metavar="R")] = 16

    def __post_init__(self) -> None:
        if self.num_adapters < 0 or self.adapter_rank < 1:
            raise InvalidRequest("there can be no fewer than 0 adapters, of rank 1 or more")
        if not self.batches or not self.tokens or min(*self.batches, *self.tokens, 1) < 1:
            raise InvalidRequest("batch sizes and token counts must be 1 or more")
        if self.gateway_workers < 1:
            raise InvalidRequest("a gateway has one worker or more")
        if set(self.ways) - set(WAYS):
            raise InvalidRequest(f"a run goes through {', '.join(WAYS)}, not {', '.join(self.ways)}")
        if not self.seconds > 0 or (self.warm_up is not None and self.warm_up < 1):
            raise InvalidRequest("there must be seconds to measure, and a request to warm up with")

    def num_warm_up(self, batch: int) -> int:
        return self.warm_up if self.warm_up is not None else 20 + 4 * batch


@dataclass(frozen=True, slots=True)
class AdapterLoads:
    """adapters that are not on the device yet: time to the first token, and what running streams feel of it

    Streams decode all the while. Requests ask for an adapter that is on the device, then each for one that
    has only been on disk, then nobody asks. Adapters are random, and there are fewer places than adapters.
    """

    streams: Annotated[int, Option("that decode all the while (%(default)s)", metavar="N")] = 32
    loads: Annotated[int, Option("adapters that are loaded (%(default)s)", metavar="N")] = 8
    rank: Annotated[int, Option("of the adapters (%(default)s)", metavar="R")] = 16

    def __post_init__(self) -> None:
        if min(self.streams, self.loads, self.rank) < 1:
            raise InvalidRequest("there must be a stream, an adapter to load, and a rank of 1 or more")


@dataclass(frozen=True, slots=True)
class Decode:
    """decode steps over batch sizes, beside their floor

    Tokens/s of decode steps, what the host does in them, and the least they could take.
    """

    batches: Batches = (1, 4, 16, 64)
    context: Annotated[int, Option("positions of a sequence (%(default)s)")] = 800
    steps: Annotated[int, Option("to measure (%(default)s)")] = 200


@dataclass(frozen=True, slots=True)
class Vision:
    """the vision encoder over numbers of crops, beside its floor

    Crops/s from pixels on the host, and the least they could take.
    """

    crops: Annotated[Sequence[int], several("(1 to 56)")] = (1, 2, 7, 14, 28, 56)
    repeats: Repeats = 20

    def __post_init__(self) -> None:
        if not self.crops or min(*self.crops, self.repeats) < 1:
            raise InvalidRequest("vision needs numbers of crops, and repeats, of 1 or more")


@dataclass(frozen=True, slots=True)
class Prefill:
    """prompts of a picture and a question, beside their floor

    Milliseconds of a step that prefills so many prompts, and the least it could take.
    """

    requests: Annotated[Sequence[int], several("(1,4,16)")] = (1, 4, 16)
    repeats: Repeats = 20

    def __post_init__(self) -> None:
        if not self.requests or min(*self.requests, self.repeats) < 1:
            raise InvalidRequest("prefill needs numbers of requests, and repeats, of 1 or more")


@dataclass(frozen=True, slots=True)
class Ramp:
    """open loop: how many requests a second before thresholds are missed

    Requests arrive at random, at a rate that rises until a threshold is missed. Exit code 0, or 1 when one is
    missed at --rate.
    """

    url: Annotated[str | None, Option(SERVER, metavar="HOST:PORT")] = None
    rate: Annotated[float | None, Option("requests/s at which the thresholds must hold", metavar="R")] = None
    start: Annotated[float, Option("first requests/s (%(default)g)", metavar="R")] = 1.0
    factor: Annotated[float, Option("from step to step (%(default)g)")] = 1.5
    max_steps: Annotated[int, Option("at most; 0: --rate alone (%(default)s)", "--steps", metavar="N")] = 12
    seconds: Annotated[float, Option("of a step (%(default)g)")] = 15.0
    tokens: Annotated[int, Option("of an answer (%(default)s)", metavar="N")] = 3
    timeout_s: Annotated[float, Option("of a request (%(default)g)", "--timeout", metavar="S")] = 30.0
    html: Annotated[Path | None, Option("write a page with plots", metavar="FILE")] = None

    def __post_init__(self) -> None:
        if not (self.start > 0 and self.factor > 1 and self.seconds > 0 and self.timeout_s > 0):
            raise InvalidRequest("a ramp starts above 0, rises by a factor above 1, and its steps take time")
        if self.tokens < 1 or (self.rate is not None and not self.rate > 0) or self.max_steps < 0:
            raise InvalidRequest("tokens, and a promised rate, must be above 0")
        if self.max_steps == 0 and self.rate is None:
            raise InvalidRequest("there is nothing to measure: neither steps nor a rate")
        check_no_folder(self.html)


def width_and_height(text: str) -> tuple[int, int]:
    width, height = text.split("x")
    return int(width), int(height)


@dataclass(frozen=True, slots=True)
class Query:
    """one caller's wait for an answer: new pictures, one asked about before, captions

    Asks one thing after another, of an engine or of a running server.
    """

    url: Annotated[str | None, Option(SERVER, metavar="HOST:PORT")] = None
    requests: Annotated[int, Option("about new pictures (%(default)s); half of it else", metavar="N")] = 60
    size: Annotated[
        tuple[int, int], Option("of them (640x480)", type=width_and_height, metavar="WIDTHxHEIGHT")
    ] = (640, 480)
    tokens: Annotated[int, Option("of an answer at most (%(default)s); of a caption 4 times that")] = 32
    seed: Annotated[int, Option("of the pictures: a server knows those of the last run (%(default)s)")] = 0

    def __post_init__(self) -> None:
        if min(self.requests, self.tokens) < 1 or self.seed < 0:
            raise InvalidRequest("there must be a request, and a token of its answer; a seed is 0 or more")
        if not all(16 <= side <= 10_000 for side in self.size):
            raise InvalidRequest("a picture has 16 to 10,000 pixels a side")


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What every step has to keep; None is no limit."""

    p95_ms: Annotated[float | None, Option("of latency (%(default)g)", metavar="MS")] = 1000.0
    ttft_p95_ms: Annotated[float | None, Option("to the first token (no limit)", metavar="MS")] = None
    error_share: Annotated[float, Option("(%(default)g)", "--errors", metavar="SHARE")] = 0.01

    def hold(self, row: Row) -> bool:
        """Where nothing was answered, no latency was kept either."""

        def within(name: str, limit: float | None) -> bool:
            return limit is None or (row[name] is not None and row[name] <= limit)

        errors = row["errors"] <= self.error_share * row["requests"]
        return errors and within("p95_ms", self.p95_ms) and within("ttft_p95_ms", self.ttft_p95_ms)


@dataclass(frozen=True, slots=True)
class Soak:
    """mixed requests for minutes: memory that grows, pages that are lost, answers that never come

    A closed loop of all skills, with pictures of many sizes, callers who leave and requests that are wrong.
    Exit code 1 when a request fails or hangs, pages or slots are lost, or device memory grows by over 1 %
    after settling or is over 5 % off its plan.
    """

    seconds: Annotated[float, Option("of load (%(default)g)")] = 300.0
    settle_s: Annotated[
        float, Option("after which memory must not grow (%(default)g)", "--settle", metavar="S")
    ] = 30.0
    callers: Annotated[int | None, Option("that ask at a time (max_batch_size)", metavar="N")] = None
    deadline_s: Annotated[float, Option("of an answer (%(default)g)", "--deadline", metavar="S")] = 120.0
    seed: Annotated[int, Option("of what is asked (%(default)s)")] = 0
    shared: Annotated[
        bool, Option("others use the device too: judge only what torch took of it in this process")
    ] = False

    def __post_init__(self) -> None:
        if not 0 <= self.settle_s < self.seconds:
            raise InvalidRequest("memory settles before the end: settle must be less than seconds")
        if (self.callers is not None and self.callers < 1) or not self.deadline_s > 0:
            raise InvalidRequest("there must be a caller, and time for an answer")


@dataclass(frozen=True, slots=True)
class Start:
    """from the start of a process to its first answer, by parts: compiled or not, whole or quick

    Starts processes one after the other. Cold ones find nothing compiled and come first; with --cache-folder
    what they compile stays there.
    """

    starts: Annotated[
        Sequence[str], Option("warm ones, in this order (whole,quick)", type=words, metavar="START,...")
    ] = STARTS
    cold: Annotated[
        Sequence[str], Option("the same for cold ones (whole,quick)", type=words, metavar="START,...")
    ] = STARTS
    tokens: Annotated[int, Option("of an answer (%(default)s)", metavar="N")] = 8
    requests: Annotated[int, Option("to compare answers (%(default)s)", metavar="N")] = 4
    saved: Annotated[bool, Option("write random weights to disk first, and load them from there")] = False

    def __post_init__(self) -> None:
        if not self.starts and not self.cold:
            raise InvalidRequest("there is no start to measure")
        if {*self.starts, *self.cold} - {*STARTS}:
            raise InvalidRequest(f"a start is {' or '.join(STARTS)}")
        if min(self.tokens, self.requests) < 1:
            raise InvalidRequest("there must be a request, and a token of its answer")


@dataclass(frozen=True, slots=True)
class Attacks:
    """a normal user's latencies while somebody else attacks the same server

    Sends requests that once crashed, froze or starved servers, each in a loop, and asks as a normal user
    beside them. Only for servers of your own. Exit code 1 when an answer is wrong, late or missing, or an
    attack does not end as it must.
    """

    url: Annotated[str, Option("of the gateway (%(default)s)", metavar="HOST:PORT")] = "localhost:8080"
    grpc: Annotated[
        str | None, Option("of the guard's gRPC; without, what needs it is left out", metavar="HOST:PORT")
    ] = None
    key: Annotated[str | None, Option("of the normal user", metavar="KEY")] = None
    attacker_key: Annotated[str | None, Option("(the user's)", metavar="KEY")] = None
    seconds: Annotated[float, Option("of each attack (%(default)g)")] = 60.0
    rate: Annotated[float, Option("requests/s of the user (%(default)g)", metavar="R")] = 2.0
    slower: Annotated[float, Option("so many times the P95 may be (%(default)g)", metavar="X")] = 3.0
    only: Annotated[str, Option("attacks with these words in their name", metavar="WORDS")] = ""
    report: Annotated[Path | None, Option("write the result here too", "--json", metavar="FILE")] = None
    commit: Annotated[str | None, Option("to be named in the result", metavar="ID")] = None

    def __post_init__(self) -> None:
        if not (self.seconds > 0 and self.rate > 0 and self.slower >= 1):
            raise InvalidRequest("an attack takes time, a user asks at a rate, and P95 may be 1 times itself")
        check_no_folder(self.report)


@dataclass(frozen=True, slots=True)
class Result:
    """Where the result goes, and what it says of the code. Every part that builds an engine has these."""

    report: Annotated[Path | None, Option("write the result here too", "--json", metavar="FILE")] = None
    commit: Annotated[
        str | None, Option("to be named in the result; else what git says here", metavar="ID")
    ] = None

    def __post_init__(self) -> None:
        check_no_folder(self.report)


@dataclass(frozen=True, slots=True)
class Report:
    """results as Markdown

    Prints files that --json wrote as one page of Markdown.
    """

    files: Annotated[Sequence[Path], Option("as --json wrote it", nargs="+", metavar="FILE")]


# By name: whether it builds an engine, and what it takes.
PARTS: dict[str, tuple[bool, tuple[type, ...]]] = {
    "scheduler": (False, (Scheduler,)),
    "serving": (False, (Serving,)),
    "attacks": (False, (Attacks,)),
    "chartqa": (True, (ChartQA,)),
    "adapters": (True, (AdapterLoads,)),
    "pauses": (True, (Pauses,)),
    "decode": (True, (Decode,)),
    "vision": (True, (Vision,)),
    "prefill": (True, (Prefill,)),
    "load": (True, (Ramp, Thresholds)),
    "query": (True, (Query,)),
    "soak": (True, (Soak,)),
    "start": (True, (Start,)),
}


def add_parts(parts: "Commands") -> None:
    for name, (builds_engine, kinds) in PARTS.items():
        if not builds_engine:
            add_command(parts, name, _run, *kinds).set_defaults(part=name)
            continue
        command = add_command(parts, name, _run, *kinds, Result, more=RANDOM)
        add_engine_options(command, defaults={"weights": "random"})
        command.set_defaults(part=name, engine_weights="random")
    add_command(parts, "report", _report, Report)


def _run(options: argparse.Namespace, console: Console) -> int:
    builds_engine, kinds = PARTS[options.part]
    chosen: list[object] = [read_options(kind, options) for kind in kinds]
    target: Bench | Console = console
    if builds_engine:
        result = read_options(Result, options)
        target = Bench(engine_config(options), console, result.report, result.commit)
    measure = getattr(import_module(f"kestrel_tools.bench.parts.{options.part}"), f"bench_{options.part}")
    return 1 if measure(*chosen, target) is False else 0


def _report(options: argparse.Namespace, console: Console) -> int:
    print("\n".join(markdown(read_document(file)) for file in options.files), end="")
    return 0
