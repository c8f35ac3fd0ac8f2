"""`kestrel bench pauses`: how long streams wait for their next token while others send pictures.

Streams decode all the while: first alone, then while requests about new pictures arrive, at moments that do
not depend on the answers. Tokens are timed where replies take them, in the engine's own thread. All policies
are measured over one model and one runtime, one after the other, with the same pictures at the same moments.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count, pairwise
from threading import Event as Flag
from time import monotonic, sleep

from kestrel_core.build import Engine, LoadedModel, assemble_engine, open_model
from kestrel_core.config import RuntimeConfig
from kestrel_core.intake.heap import keep_heap_level
from kestrel_core.loop.inbox import Sink, Ticket
from kestrel_core.protocol.errors import EngineFailed, KestrelError
from kestrel_core.protocol.messages import Event, Finished, Request, Settings
from kestrel_core.skills.registry import builtin_skills
from kestrel_tools.bench.parts.adapters import TimedQuery
from kestrel_tools.bench.pauses_options import Pauses
from kestrel_tools.bench.requests.callers import arrivals
from kestrel_tools.bench.requests.chart_questions import plan, question_texts
from kestrel_tools.bench.requests.charts import SIZES, draw_chart
from kestrel_tools.bench.results import Bench, Row, percentile
from kestrel_tools.progress import told

TOKENS = 3  # of an answer about a new picture
STREAM_TOKENS = 1000  # of an answer that streams; then the stream asks again
LEAD_IN = 8  # tokens of each stream before anything is measured
SLOTS = 32  # for requests beside the streams
MAX_QUEUE = 4096  # requests; none is refused, so that a policy that falls behind shows it by its latencies
ANSWER_S = 120.0


def bench_pauses(run: Pauses, bench: Bench) -> None:
    policies = run.policies or (bench.config.vision_pacing,)
    slots = max(bench.config.max_batch_size, max(run.streams) + SLOTS, run.callers)
    first = replace(bench.config, max_batch_size=slots, max_queue=max(bench.config.max_queue, MAX_QUEUE))
    configs = {policy: _with_policy(first, policy) for policy in policies}
    with told(bench.console) as say, ThreadPoolExecutor() as threads:
        say(f"loading {first.model}, drawing {run.num_charts:,} charts")
        charts = threads.map(draw_chart, range(run.num_charts))
        model, engines, rows = open_model(first), list[Engine](), list[Row]()
        keep_heap_level()
        try:
            for policy, config in configs.items():
                engine, query = _engine(model, config, first, engines)
                measuring = Measuring(engine, query, first, list(charts), policy, say)
                charts = iter(measuring.charts)
                for pair in run.pairs:
                    rows.append(measuring.pair(*pair, run))
                if run.callers:
                    rows[-1]["closed_per_s"] = measuring.closed_loop(run)
        finally:
            for engine in engines:  # last: the first one to end also ends the runtime
                engine.close(drain=False)
    workload = {
        "streams": "each about a picture of its own; one that ends begins anew",
        "pictures": f"{', '.join(f'{width}x{height}' for width, height in SIZES)}, each new, {TOKENS} tokens",
        "arrivals": "at even intervals" if run.even else "at random, as a Poisson process",
        "pause": "between two tokens of one stream",
        "latency": "from when a request was due to the end of its answer",
        **({"closed_loop": f"{run.callers} callers, {run.caller_tokens} tokens"} if run.callers else {}),
    }
    bench.finish("pauses", first, workload, rows)


def _with_policy(config: RuntimeConfig, policy: str) -> RuntimeConfig:
    """`policy`: a value of `vision_pacing`, and behind a colon `picture_steps`."""
    pacing, _, steps = policy.partition(":")
    config = replace(config, vision_pacing=pacing)
    return replace(config, picture_steps=int(steps)) if steps else config


def _engine(
    model: LoadedModel, config: RuntimeConfig, first: RuntimeConfig, engines: list[Engine]
) -> tuple[Engine, TimedQuery]:
    """One over the runtime of those before it, which are idle. The first one is made as `first` says."""
    if not engines:
        engines.append(assemble_engine(model, first))
    query = TimedQuery()
    engine = assemble_engine(model, config, builtin_skills().with_skill(query), runtime=engines[0].runtime)
    engines.append(engine)
    engine.loop.start()
    return engine, query


@dataclass
class Measuring:
    engine: Engine
    query: TimedQuery
    config: RuntimeConfig
    charts: list[bytes]
    policy: str
    say: Callable[[str], None]
    _failures: list[KestrelError] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=count)

    def pair(self, num_streams: int, rate: float, run: Pauses) -> Row:
        title = f"{self.policy}: {num_streams} streams"
        salt = f"{num_streams} and {rate}"  # so that no picture is known from a row before
        self._warm_up(salt)
        with self._streams(num_streams, salt):
            self.say(f"{title} alone")
            begin = monotonic()
            sleep(run.quiet_s)
            quiet = self._pauses(begin, monotonic())
            self.say(f"{title}, {rate:g} pictures/s")
            begin, moments = monotonic(), _moments(rate, run)
            latencies, ends = self._arrive(begin, moments, salt)
            end = begin + run.seconds
            sleep(max(0.0, end - monotonic()))
            pauses = self._pauses(begin, end)
        if self._failures:
            raise EngineFailed(f"{len(self._failures)} requests failed, the first with: {self._failures[0]}")
        return {
            "policy": self.policy,
            "streams": num_streams,
            "offered_per_s": len(moments) / run.seconds,
            **{f"quiet_p{share}_ms": _ms(quiet, share) for share in (50, 99)},
            **{f"pause_p{share}_ms": _ms(pauses, share) for share in (50, 95, 99)},
            "pause_max_ms": 1000 * max(pauses, default=0.0),
            "tokens_per_s": len(pauses) / run.seconds,
            **{f"p{share}_ms": _ms(latencies, share) for share in (50, 95, 99)},
            "requests_per_s": sum(at <= end for at in ends) / run.seconds,
            "requests": len(moments),
        }

    def closed_loop(self, run: Pauses) -> float:
        """Requests/s of callers who each wait for their answer, without streams."""
        self.say(f"{self.policy}: {run.callers} callers")
        numbers, ended, over = count(), list[float](), False

        def ask() -> None:
            question = plan(next(numbers))
            image = self.charts[question.chart % len(self.charts)]

            def sink(event: Event) -> None:
                if isinstance(event, KestrelError):
                    self._failures.append(event)
                elif isinstance(event, Finished):
                    ended.append(monotonic())
                    if not over:
                        ask()

            self._submit(image, question.words, "callers", run.caller_tokens, "asked", sink)

        for _ in range(run.callers):
            ask()
        while len(ended) < 2 * run.callers and not self._failures:
            sleep(0.01)
        begin = monotonic()
        sleep(run.seconds)
        over = True
        self._wait_until_idle()
        if self._failures:
            raise self._failures[0]
        return sum(begin <= at <= begin + run.seconds for at in ended) / run.seconds

    def _warm_up(self, salt: str) -> None:
        """A few pictures, so that nothing is measured that is made on first use."""
        done = [Flag() for _ in SIZES]
        for chart, flag in enumerate(done):
            sink = self._sink(lambda flag=flag: flag.set())  # type: ignore[misc]
            self._submit(self.charts[chart], chart, f"{salt}, warm-up", TOKENS, "asked", sink)
        if not all(flag.wait(ANSWER_S) for flag in done):
            raise EngineFailed("the warm-up was not answered")

    def _arrive(self, begin: float, moments: Sequence[float], salt: str) -> tuple[list[float], list[float]]:
        """Seconds from when each request was due to its end; and when it ended. Returns when all have."""
        ends: list[tuple[float, float]] = []
        num_failed = len(self._failures)
        for index, moment in enumerate(moments):
            due = begin + moment
            sleep(max(0.0, due - monotonic()))
            sink = self._sink(lambda due=due: ends.append((due, monotonic())))  # type: ignore[misc]
            self._submit(self.charts[index % len(self.charts)], index, salt, TOKENS, "asked", sink)
        patience = monotonic() + ANSWER_S
        while len(ends) + len(self._failures) - num_failed < len(moments) and monotonic() < patience:
            sleep(0.005)
        return [end - due for due, end in ends], [end for _, end in ends]

    @contextmanager
    def _streams(self, number: int, salt: str) -> Iterator[None]:
        """So many streams, for as long as the block lasts. One that ends begins anew."""
        stopping, tickets, names = False, dict[int, Ticket](), list[str]()

        def begin(stream: int) -> None:
            def again() -> None:
                if not stopping:
                    begin(stream)

            # Of different lengths, so that they do not all begin at once.
            tokens = max(LEAD_IN, self._stream_tokens * (number - stream % 8) // number)
            name = f"stream {next(self._numbers)}"
            names.append(name)
            image = self.charts[stream % len(self.charts)]
            tickets[stream] = self._submit(image, stream, f"{salt}, streams", tokens, name, self._sink(again))

        for stream in range(number):
            begin(stream)
        while sum(len(self.query.moments.get(name, ())) >= LEAD_IN for name in list(names)) < number:
            if self._failures:
                raise self._failures[0]
            sleep(0.01)
        try:
            yield
        finally:
            stopping = True
            for ticket in list(tickets.values()):
                self.engine.loop.cancel(ticket)
            self._wait_until_idle()
            self.query.moments.clear()

    def _wait_until_idle(self) -> None:
        patience = monotonic() + ANSWER_S
        while self.engine.loop.num_open:
            if monotonic() > patience:
                raise EngineFailed(f"{self.engine.loop.num_open} requests were never answered")
            sleep(0.01)

    def _pauses(self, begin: float, end: float) -> list[float]:
        """Between the tokens of each stream, of those that ended within the window."""
        return [
            later - earlier
            for name, moments in list(self.query.moments.items())
            if name.startswith("stream")
            for earlier, later in pairwise(list(moments))
            if begin <= later <= end
        ]

    @property
    def _stream_tokens(self) -> int:
        """As many as the context has room for behind a picture and a question."""
        shape = self.engine.language.config
        context = self.config.max_context or shape.text.max_context
        return max(LEAD_IN, min(STREAM_TOKENS, context - shape.image_prefix_length - 100))

    def _sink(self, ended: Callable[[], None]) -> Sink:
        def sink(event: Event) -> None:
            if isinstance(event, KestrelError):
                self._failures.append(event)
            elif isinstance(event, Finished):
                ended()

        return sink

    def _submit(self, image: bytes, words: int, salt: str, tokens: int, name: str, sink: Sink) -> Ticket:
        texts = question_texts(self.config)
        settings, arguments = (
            Settings(temperature=0.0, max_tokens=tokens),
            {"question": texts[words % len(texts)]},
        )
        return self.engine.loop.submit(
            Request("query", arguments, image, settings, name, cache_salt=salt), sink
        )


def _moments(rate: float, run: Pauses) -> list[float]:
    if run.even:
        return [(index + 0.5) / rate for index in range(max(1, round(rate * run.seconds)))]
    return arrivals(rate, run.seconds, seed=0)


def _ms(seconds: Sequence[float], share: int) -> float | None:
    return 1000 * percentile(seconds, share / 100) if seconds else None
