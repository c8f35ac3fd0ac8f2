"""`kestrel bench soak`: mixed requests in a closed loop for minutes, and what memory does meanwhile.

All that may go wrong slowly: memory that grows, pages, slots or requests that are lost, errors nobody
expects, answers that never come. Nothing is kept of a request but sums, so that what grows is not the
benchmark's.
"""

import asyncio
import logging
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import count
from time import monotonic

from kestrel_core.build import Engine, build_engine, parse_device
from kestrel_core.engine import InferenceEngine
from kestrel_tools.bench.machine.memory import Moment, columns, complaints, look, summary, timeline
from kestrel_tools.bench.options import Soak
from kestrel_tools.bench.requests.chart_questions import question_texts
from kestrel_tools.bench.requests.mixed import Mixture, make_call
from kestrel_tools.bench.results import COMPUTED, Bench, Row
from kestrel_tools.progress import told

EVERY_S = 1.0  # between two looks at memory
CLOSE_S = 60.0  # that an idle engine may take to stop
MAX_FAILURES = 100  # by then there is enough to look at


@dataclass(slots=True)
class Tally:
    """Counts of one kind of requests."""

    requests: int = 0
    answered: int = 0
    left: int = 0  # by their callers
    refused: int = 0  # rightly
    failed: int = 0
    waited_s: float = 0.0  # for answers and refusals

    def row(self, kind: str) -> Row:
        ended = self.answered + self.refused
        return {
            "kind": kind,
            **{name: value for name, value in asdict(self).items() if name != "waited_s"},
            "mean_ms": 1000 * self.waited_s / ended if ended else None,
        }


class Load:
    """The callers, and what became of their requests."""

    def __init__(self, engine: InferenceEngine, mixture: Mixture, run: Soak, callers: int) -> None:
        self.tallies = {kind: Tally() for kind in mixture.kinds}
        self.problems: Counter[str] = Counter()
        self.num_hung = 0
        self._engine = engine
        self._mixture = mixture
        self._run = run
        self._callers = callers
        self._indices = count()
        self._began_s = 0.0

    @property
    def seconds(self) -> float:
        return monotonic() - self._began_s

    @property
    def over(self) -> bool:
        return (
            self.seconds >= self._run.seconds
            or self.num_hung > 0
            or sum(self.problems.values()) >= MAX_FAILURES
        )

    async def run(self, each_second: Callable[[], None]) -> None:
        """Returns when all requests have ended or were given up."""
        self._began_s = monotonic()
        async with asyncio.TaskGroup() as group:
            callers = [group.create_task(self._ask_and_ask()) for _ in range(self._callers)]
            while not self.over:
                each_second()
                await asyncio.wait(callers, timeout=min(EVERY_S, max(self._run.seconds - self.seconds, 0.0)))
        each_second()

    async def _ask_and_ask(self) -> None:
        while not self.over:
            call = self._mixture.call(next(self._indices))
            tally, began = self.tallies[call.kind], monotonic()
            tally.requests += 1
            try:
                async with asyncio.timeout(self._run.deadline_s):
                    outcome = await make_call(self._engine, call)
                setattr(tally, outcome, getattr(tally, outcome) + 1)
                if outcome != "left":
                    tally.waited_s += monotonic() - began
            except TimeoutError:
                tally.failed += 1
                self.num_hung += 1
            except Exception as error:  # whatever it is, nobody expects it
                tally.failed += 1
                self.problems[f"{call.kind}: {type(error).__name__}: {error}"[:200]] += 1
            await asyncio.sleep(0)  # some refusals come without waiting, and other callers must run too


class ErrorLog(logging.Handler):
    """Counts errors that the engine logs while it still answers, such as a step that was tried again."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.messages: Counter[str] = Counter()

    def emit(self, record: logging.LogRecord) -> None:
        cause = record.exc_info[1] if record.exc_info else None
        self.messages[record.getMessage() + (f" ({cause!r})"[:200] if cause is not None else "")] += 1


def bench_soak(run: Soak, bench: Bench) -> bool:
    """Whether all held."""
    config, console = bench.config, bench.console
    callers = run.callers if run.callers is not None else config.max_batch_size
    device, moments, errors = parse_device(config.device), list[Moment](), ErrorLog()
    with told(console) as say:
        say(f"loading {config.model}")
        engine = build_engine(config, warming=lambda done, total: say(f"warming up: {done} of {total}"))
        shape = engine.language.config
        max_context = config.max_context or shape.text.max_context
        say("drawing pictures")
        mixture = Mixture(run.seed, shape, max_context, question_texts(config))
        load = Load(InferenceEngine(engine), mixture, run, callers)

        def each_second() -> None:
            moments.append(look(load.seconds, engine.metrics(), device))
            ended = sum(tally.requests for tally in load.tallies.values())
            name = "device" if moments[-1].device is not None else "host"
            size = getattr(moments[-1], name)
            memory = f"{name} {size / 2**20:,.0f} MiB" if size is not None else "memory unknown"
            say(f"{load.seconds:.0f} of {run.seconds:g} s: {ended:,} requests; {memory}")

        logging.getLogger("kestrel").addHandler(errors)
        try:
            asyncio.run(load.run(each_second))
        finally:
            logging.getLogger("kestrel").removeHandler(errors)
            closed = _close(engine)
    metrics = engine.metrics()
    memory = summary(moments, run.settle_s, metrics.get("device_bytes_planned"))
    found = [
        *(f"{times} times: {problem}" for problem, times in load.problems.most_common()),
        *(f"logged {times} times: {message}" for message, times in errors.messages.most_common()),
        *([f"{load.num_hung} requests had no answer in {run.deadline_s:g} s"] if load.num_hung else ()),
        *([] if any(tally.answered for tally in load.tallies.values()) else ["no request was answered"]),
        *(lost(engine) if closed else [f"the engine did not stop within {CLOSE_S:g} s"]),
        *complaints(memory, run.shared),
    ]
    rows = [tally.row(kind) for kind, tally in load.tallies.items()]
    sums = ("requests", "answered", "left", "refused", "failed")
    workload = {
        "requests": "all skills, greedy and sampled, whole and streamed, 1 to 200 tokens, some left or bad",
        "pictures": "charts and photographs of 1 to 6,000,000 pixels, three in ten asked about before",
        "callers": callers,
        "seconds": run.seconds,
        "settled_after_s": run.settle_s,
        "device_shared": run.shared,
        "seed": run.seed,
    }
    bench.finish(
        "soak",
        config,
        workload,
        [*rows, {"kind": "all", **{name: sum(row[name] for row in rows) for name in sums}}],
        passed=not found,
        complaints=found,
        summary=memory,
        computed=[{name: metrics[name] for name in COMPUTED}],
        timeline=timeline(moments),
        moments=columns(moments),
    )
    for line in found or ["All held."]:
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    return not found


def lost(engine: Engine) -> list[str]:
    """What an engine still holds after it has stopped."""
    metrics = {**engine.metrics(), "open": engine.loop.num_open}
    names = ("open", "queued", "queued_bytes", "running", "pages_used")
    found = [f"after the run, {name} is {metrics[name]:,}" for name in names if metrics[name]]
    try:
        engine.loop.scheduler.check()
    except AssertionError as error:
        found.append(f"after the run, the scheduler's books do not agree: {error}")
    return found


def _close(engine: Engine) -> bool:
    """Close in a thread, so that an engine that hangs does not hang the benchmark too."""
    thread = threading.Thread(target=engine.close, name="soak-close", daemon=True)
    thread.start()
    thread.join(CLOSE_S)
    return not thread.is_alive()
