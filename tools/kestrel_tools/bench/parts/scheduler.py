"""`kestrel bench scheduler`: what the host does in a decode step, without a device to wait for.

The step loop, the scheduler and the text replies are the real ones; the runtime answers at once. Random bytes
seldom end a word, so they make few chunks, but a third of them are parts of characters, which takes longer;
spaces make a chunk of every token. Real answers are mostly ASCII and make a chunk of every word. The cases
take turns, so that whatever else the machine does meanwhile slows them all.
"""

import json
import os
import platform
import random
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import quantiles
from time import perf_counter_ns

from rich.console import Console
from rich.table import Table

from kestrel_core.intake.tokenizer import Tokenizer
from kestrel_core.loop.inbox import Ticket
from kestrel_core.loop.limits import QueueLimits
from kestrel_core.loop.metrics import Metrics
from kestrel_core.loop.step import Adapter, PreparedImage, Sample, StepPlan
from kestrel_core.loop.step_loop import StepLoop
from kestrel_core.moondream.config import MOONDREAM3
from kestrel_core.protocol.messages import Event, Request, Settings
from kestrel_core.scheduler.pages import PagePool
from kestrel_core.scheduler.prefix_cache import PrefixCache
from kestrel_core.scheduler.scheduler import Limits, Scheduler, Update
from kestrel_core.skills.registry import builtin_skills
from kestrel_core.skills.spec import Language
from kestrel_tools.bench.machine.versions import cpu_name
from kestrel_tools.bench.options import Scheduler as Run

PAGE_SIZE = 10  # as in both generations: it divides their image prefix
PROMPT_TOKENS = 64
WARM_UP_STEPS = 50
BLOCK_STEPS = 50  # that one engine runs before the next one
TARGET_US = 150
PHASES = ("plan", "commit", "publish", "step")

Microseconds = dict[str, dict[str, float]]  # by phase, then by statistic


def bench_scheduler(run: Run, console: Console) -> None:
    """Print a table; with `run.json` also one JSON document, to stdout."""
    running, waiting, steps = run.running, run.waiting, run.steps
    language = Language(MOONDREAM3, Tokenizer.of_bytes(MOONDREAM3))
    every = [i for i in range(MOONDREAM3.text.vocab_size) if language.tokenizer.bytes_of(i)]
    subjects = {
        case: Subject(language, tokens, running, queue, steps)
        for case, tokens, queue in (
            ("random bytes", every, 0),
            (f"random bytes, {waiting:,} wait", every, waiting),
            ("letters, every sixth a space", language.tokenizer.encode("words "), 0),
            ("a chunk every token", language.tokenizer.encode(" "), 0),
        )
    }
    for done in range(0, steps, BLOCK_STEPS):
        for subject in subjects.values():
            subject.run(min(BLOCK_STEPS, steps - done))
    measured = {case: subject.microseconds() for case, subject in subjects.items()}
    for subject in subjects.values():
        subject.close()
    machine = f"{os.cpu_count()} cores, {cpu_name()}"
    python = f"{platform.python_implementation()} {platform.python_version()}"
    table = Table(
        title=f"Host time of a decode step, microseconds: {running} streamed queries running\n"
        f"{machine}; {python}; {steps} steps; target: step under {TARGET_US} at 64"
    )
    table.add_column("case")
    table.add_column("phase")
    for statistic in ("median", "p95", "p99"):
        table.add_column(statistic, justify="right")
    for case, phases in measured.items():
        for phase, times in phases.items():
            label = case if phase == PHASES[0] else ""
            table.add_row(
                label, phase, *(f"{time:.1f}" for time in times.values()), end_section=phase == "step"
            )
    console.print(table)
    if run.json:
        workload = {"running": running, "waiting": waiting, "steps": steps}
        document = {"machine": machine, "python": python, **workload, "microseconds": measured}
        print(json.dumps(document), flush=True)


class Subject:
    """An engine that is measured: `running` sequences decode for ever, `waiting` ones never get a slot."""

    def __init__(self, language: Language, tokens: list[int], running: int, waiting: int, steps: int) -> None:
        max_context = 2 * PROMPT_TOKENS + running + WARM_UP_STEPS + steps
        pool = PagePool(1 + 2 * running * -(-max_context // PAGE_SIZE))
        self._runtime = InstantRuntime(tokens, pool.num_pages)
        self._scheduler = TimedScheduler(
            pool, PrefixCache(pool), PAGE_SIZE, Limits(running, max_context, step_tokens=2048)
        )
        self._loop = StepLoop(
            self._runtime,
            self._scheduler,
            builtin_skills(),
            language,
            no_image,
            InlineWorkers(),
            QueueLimits(
                running + waiting,
                1,
                max_context,
                priority_s=1.0,
                default_timeout_s=None,
                max_prepared_bytes=1,
            ),
            Metrics(),
        )
        self._times_ns: dict[str, list[int]] = {phase: [] for phase in PHASES}
        rng, heard = random.Random(0), deque[Event](maxlen=1)  # which costs as little as an outbox
        for index in range(running + waiting):
            words = "".join(rng.choices("abcdefgh ", k=PROMPT_TOKENS - 1 + rng.randrange(PAGE_SIZE))) + "."
            settings = Settings(max_tokens=2 * max_context, seed=index)
            self._loop.submit(
                Request("query", {"question": words}, settings=settings, request_id=str(index), stream=True),
                heard.append,
            )
        while self._scheduler.num_running < running:
            self._loop.step()
        for _ in range(WARM_UP_STEPS):
            self._loop.step()

    def run(self, steps: int) -> None:
        scheduler, runtime, times = self._scheduler, self._runtime, self._times_ns
        for _ in range(steps):
            began = perf_counter_ns()
            self._loop.step()
            step = perf_counter_ns() - began - runtime.launch_ns
            times["plan"].append(scheduler.plan_ns)
            times["commit"].append(scheduler.commit_ns)
            # The rest: taking in arrivals, giving chunks to sinks, counting.
            times["publish"].append(step - scheduler.plan_ns - scheduler.commit_ns)
            times["step"].append(step)

    def microseconds(self) -> Microseconds:
        found: Microseconds = {}
        for phase, times in self._times_ns.items():
            cuts = quantiles(times, n=100)
            found[phase] = {
                name: cuts[at - 1] / 1000 for name, at in (("median", 50), ("p95", 95), ("p99", 99))
            }
        return found

    def close(self) -> None:
        self._loop.close()


class TimedScheduler(Scheduler):
    plan_ns = 0
    commit_ns = 0

    def plan(self) -> StepPlan | None:
        began = perf_counter_ns()
        plan = super().plan()
        self.plan_ns = perf_counter_ns() - began
        return plan

    def commit(self, samples: Mapping[int, Sample]) -> list[Update]:
        began = perf_counter_ns()
        updates = super().commit(samples)
        self.commit_ns = perf_counter_ns() - began
        return updates


class InstantRuntime:
    """Draws its samples as soon as a step is launched, and notes how long that took."""

    overlaps = True
    page_size = PAGE_SIZE

    def __init__(self, tokens: list[int], num_pages: int) -> None:
        self.num_pages = num_pages
        self.launch_ns = 0
        self._rng = random.Random(0)
        self._samples = [Sample(token=token) for token in tokens]

    def launch(self, plan: StepPlan) -> "Drawn":
        began = perf_counter_ns()
        drawn = self._rng.choices(self._samples, k=len(plan.spans))
        launched = Drawn({span.slot: sample for span, sample in zip(plan.spans, drawn, strict=True)})
        self.launch_ns = perf_counter_ns() - began
        return launched

    def vision_s(self, image: PreparedImage) -> float:
        return 0.0

    def adapter_loader(self, index: int) -> Callable[[Adapter], None]:
        raise AssertionError("no request has an adapter here")

    def capture_more(self, idle: bool) -> bool:
        return False

    def close(self) -> None:
        pass


@dataclass(frozen=True, slots=True)
class Drawn:
    samples: Mapping[int, Sample]

    def collect(self) -> Mapping[int, Sample]:
        return self.samples


class InlineWorkers:
    """In place of worker threads: prepares requests in the thread that submits them."""

    def submit(self, work: Callable[[Ticket], None], ticket: Ticket, /) -> None:
        work(ticket)

    def shutdown(self) -> None:
        pass


def no_image(source: object, may_decode: Callable[[str, int], bool], salt: str) -> PreparedImage:
    raise AssertionError("nobody sends a picture here")
