"""`kestrel bench adapters`: requests whose adapter lies on disk, and the streams that decode meanwhile.

Tokens are timed where replies take them, in the engine's own thread: nothing stands between a sample and its
moment. Every request asks about a picture of its own, so each has to be encoded and prefilled, whether its
adapter is on the device or not. Their files are dropped from the system's cache before.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count, pairwise
from pathlib import Path
from queue import SimpleQueue
from statistics import median
from tempfile import TemporaryDirectory
from time import monotonic, sleep

from kestrel_core.build import Engine, open_model, start_engine
from kestrel_core.config import RuntimeConfig
from kestrel_core.loop.sequence import Outcome, Reply
from kestrel_core.loop.step import Sample
from kestrel_core.moondream.config import TextConfig
from kestrel_core.protocol.errors import EngineFailed, KestrelError
from kestrel_core.protocol.messages import Event, Finished, Request, Settings
from kestrel_core.skills.registry import builtin_skills
from kestrel_core.skills.spec import Language
from kestrel_tools.bench.options import AdapterLoads
from kestrel_tools.bench.requests.chart_questions import question_texts
from kestrel_tools.bench.requests.charts import draw_chart
from kestrel_tools.bench.requests.endless_query import EndlessQuery, EndlessReply
from kestrel_tools.bench.results import Bench, Row
from kestrel_tools.progress import told
from kestrel_tools.random_adapters import write_random_adapters

TOKENS = 3  # of an answer that is timed
STREAM_TOKENS = 1000  # of an answer that streams; then the stream asks again
LEAD_IN = 8  # tokens of each stream before anything is measured
ANSWER_S = 120.0


class TimedReply(EndlessReply):
    """Notes the moment of each of its tokens."""

    def __init__(self, request: Request, language: Language, moments: list[float]) -> None:
        super().__init__(request, language)
        self._moments = moments

    def take(self, sample: Sample) -> Outcome:
        self._moments.append(monotonic())
        return super().take(sample)


class TimedQuery(EndlessQuery):
    def __init__(self) -> None:
        self.moments: dict[str, list[float]] = {}  # by request

    def reply(self, request: Request, language: Language) -> Reply:
        return TimedReply(request, language, self.moments.setdefault(request.request_id, []))


def bench_adapters(run: AdapterLoads, bench: Bench) -> None:
    places = max(2, run.loads // 2)
    config = replace(
        bench.config,
        max_batch_size=max(bench.config.max_batch_size, run.streams + 1),
        max_adapters=places,
        max_adapter_rank=max(run.rank, bench.config.max_adapter_rank),
    )
    with TemporaryDirectory() as folder, told(bench.console) as say:
        say(f"loading {config.model}")
        model = open_model(config)
        text = model.network.config.text
        say(f"writing {1 + run.loads} adapters of rank {run.rank}")
        names = write_random_adapters(Path(folder), text, [run.rank] * (1 + run.loads))
        _leave_to_the_disk(Path(folder))
        config, query = replace(config, adapters=folder), TimedQuery()
        say("starting an engine")
        engine = start_engine(model, config, builtin_skills().with_skill(query))
        try:
            rows = Measuring(engine, query, config, text, say).rows(run.streams, names)
        finally:
            engine.close(drain=False)
    workload = {
        "streams": f"{run.streams}, every second one with an adapter that stays on the device",
        "requests": f"one at a time, each about a picture of its own, {TOKENS} tokens, greedy",
        "adapters": f"rank {run.rank}, bfloat16, random; {places} places on the device",
        "first_token": "from submitting the request to its first token, picture and prefill included",
        "pause": "between two tokens of one stream",
    }
    bench.finish("adapters", replace(config, adapters=None), workload, rows)


def _leave_to_the_disk(folder: Path) -> None:
    """Drop the files from the system's cache, where the system lets us."""
    for file in folder.iterdir():
        with file.open("rb") as opened:
            os.fsync(opened.fileno())
            if hasattr(os, "posix_fadvise"):
                os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


@dataclass
class Measuring:
    engine: Engine
    query: TimedQuery
    config: RuntimeConfig
    text: TextConfig
    say: Callable[[str], None]
    _numbers: Iterator[int] = field(default_factory=count)
    _failures: list[KestrelError] = field(default_factory=list)

    def rows(self, num_streams: int, names: Sequence[str]) -> list[Row]:
        resident, *fresh = names
        with self._streams(num_streams, resident):
            self.say("warming up")
            for _ in range(2):
                self._ask(resident)
            self.say("asking for an adapter that is on the device")
            rows = [self._window("an adapter on the device", [resident] * len(fresh))]
            self.say("asking for adapters that are not")
            rows.append(self._window("adapters on disk", fresh))
            self.say("asking for nothing")
            rows.append(self._window("nothing", [], rows[-1]["seconds"]))
        if self._failures:
            raise EngineFailed(f"{len(self._failures)} requests failed, the first with: {self._failures[0]}")
        return rows

    def _window(self, asked: str, names: Sequence[str], seconds: float = 0.0) -> Row:
        before, begin = self.engine.metrics(), monotonic()
        waits = [1000 * self._ask(name) for name in names]
        sleep(max(0.0, begin + seconds - monotonic()))
        after, end = self.engine.metrics(), monotonic()
        pauses = self._pauses(begin, end)
        loads = after["adapter_loads"] - before["adapter_loads"]
        took_s = after["adapter_load_s"]["sum"] - before["adapter_load_s"]["sum"]
        return {
            "asked": asked,
            "requests": len(names),
            "ttft_min_ms": min(waits, default=None),
            "ttft_p50_ms": median(waits) if waits else None,
            "ttft_max_ms": max(waits, default=None),
            "pause_p50_ms": 1000 * median(pauses) if pauses else None,
            "pause_max_ms": 1000 * max(pauses) if pauses else None,
            "tokens_per_s": len(pauses) / (end - begin),
            "loads": loads,
            "evictions": after["adapter_evictions"] - before["adapter_evictions"],
            "load_ms": 1000 * took_s / loads if loads else None,
            "seconds": end - begin,
        }

    def _pauses(self, begin: float, end: float) -> list[float]:
        """Between the tokens of each stream, of those that ended within the window."""
        return [
            later - earlier
            for request_id, moments in list(self.query.moments.items())
            if request_id.startswith("stream")
            for earlier, later in pairwise(list(moments))
            if begin <= later <= end
        ]

    def _ask(self, adapter: str) -> float:
        """Seconds from submitting a request to its first token. Returns when it has ended."""
        number, ended = next(self._numbers), SimpleQueue[Event]()
        request_id = f"timed {number}"
        request = self._request(number, request_id, adapter, TOKENS)

        def sink(event: Event) -> None:
            if isinstance(event, Finished | KestrelError):
                ended.put(event)

        began = monotonic()
        self.engine.loop.submit(request, sink)
        event = ended.get(timeout=ANSWER_S)
        if isinstance(event, KestrelError):
            raise event
        return self.query.moments[request_id][0] - began

    @contextmanager
    def _streams(self, number: int, resident: str) -> Iterator[None]:
        """So many streams, for as long as the block lasts. One that ends begins anew."""
        stopping = False

        def begin(stream: int, turn: int) -> None:
            def sink(event: Event) -> None:
                if isinstance(event, KestrelError) and not stopping:
                    self._failures.append(event)
                elif isinstance(event, Finished) and not stopping:
                    begin(stream, turn + 1)

            adapter = resident if stream % 2 else None
            request_id = f"stream {stream}, {turn}"
            self.engine.loop.submit(self._request(stream, request_id, adapter, self._stream_tokens), sink)

        for stream in range(number):
            begin(stream, 0)
        while sum(len(moments) >= LEAD_IN for moments in list(self.query.moments.values())) < number:
            if self._failures:
                raise self._failures[0]
            sleep(0.01)
        try:
            yield
        finally:
            stopping = True

    @property
    def _stream_tokens(self) -> int:
        """As many as the context has room for behind a picture and a question."""
        context = self.config.max_context or self.text.max_context
        prefix = self.engine.language.config.image_prefix_length
        return max(LEAD_IN, min(STREAM_TOKENS, context - prefix - 100))

    def _request(self, picture: int, request_id: str, adapter: str | None, tokens: int) -> Request:
        texts = question_texts(self.config)
        settings = Settings(temperature=0.0, max_tokens=tokens, adapter=adapter)
        arguments = {"question": texts[picture % len(texts)]}
        return Request("query", arguments, draw_chart(picture), settings, request_id)
