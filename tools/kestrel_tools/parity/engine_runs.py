"""Golden decodes through the whole engine: alone, from the cache, in mixed batches, and preempted.

The golden prompts and recording replies enter as a skill of their own, as any third party's would. Requests
without an adapter, with the folder's and with random ones run side by side; the last are judged by plain
torch. All engines share one runtime, so that what is captured at its start is captured once.
"""

import random
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from kestrel_core.build import Engine, LoadedModel, assemble_engine
from kestrel_core.config import RuntimeConfig
from kestrel_core.loop.sequence import Prompt, Reply
from kestrel_core.protocol.arguments import Argument
from kestrel_core.protocol.errors import KestrelError
from kestrel_core.protocol.messages import Event, Request
from kestrel_core.runtime.vision.image_encoder import ImageEncoder
from kestrel_core.skills.registry import SkillRegistry
from kestrel_core.skills.spec import Language, SkillSpec
from kestrel_tools.noted import NotedReply
from kestrel_tools.parity.adapters import MixedAdapters
from kestrel_tools.parity.report import Report
from kestrel_tools.parity.runs import SKILLS, GoldenRun, Judge, check_run, prompt_of

BATCH_SIZES = (2, 3, 5, 8, 16)


class GoldenSkill(SkillSpec):
    """A golden run as a request: its arguments are the run and where to put its reply."""

    name = "golden"
    arguments = (Argument("run", GoldenRun), Argument("replies", dict))
    image = "optional"
    greedy = True

    def prompt(self, request: Request, language: Language) -> Prompt:
        return prompt_of(request.arguments["run"], language)

    def reply(self, request: Request, language: Language) -> Reply:
        run: GoldenRun = request.arguments["run"]
        reply = NotedReply(SKILLS[run.request.skill].reply(run.request, language))
        request.arguments["replies"][request.request_id] = reply
        return reply


def check_engine(
    model: LoadedModel,
    runs: Sequence[GoldenRun],
    encode_image: ImageEncoder,
    adapter_files: Sequence[Path],
    config: RuntimeConfig,
    report: Report,
    judge: Judge,
    exact: bool,
    console: Console,
) -> None:
    """`encode_image` remembers the pictures already, so vision is not computed again.

    If `exact`, golden runs must equal the golden values. Everything else is judged.
    """
    # An engine computes image prefixes with the adapter of the request, so the others cannot be asked for.
    runs = [run for run in runs if run.on_image]
    with ExitStack() as stack:
        mixed = stack.enter_context(MixedAdapters.among(runs, adapter_files, model.network.config.text))
        tokens = 2 * max(BATCH_SIZES) * model.network.config.text.max_context
        config = replace(config, device=str(model.device), kv_cache_tokens=tokens, **mixed.options)
        config = replace(config, max_queue=len(mixed.runs) + 1)
        largest = replace(config, max_batch_size=max(BATCH_SIZES))
        with console.status("engine: warming up"):
            first = assemble_engine(model, largest, SkillRegistry([GoldenSkill()]))
        stack.callback(first.close)
        first.runtime.encode_image = encode_image
        checks = EngineChecks(model, first, config, mixed.names, report, judge, exact, console, stack)
        checks.run_all(mixed.runs)


@dataclass(frozen=True)
class EngineChecks:
    model: LoadedModel
    first: Engine  # whose runtime serves all others
    config: RuntimeConfig
    names: Mapping[str, Sequence[str]]  # of adapters, by identity
    report: Report
    judge: Judge
    exact: bool
    console: Console
    stack: ExitStack

    def run_all(self, runs: Sequence[GoldenRun]) -> None:
        plain = replace(self.config, max_batch_size=1)
        cached = self._check("alone, then cached", plain, runs, 0, times=2)
        pictures = sum(run.image is not None for run in runs)
        hits = cached.loop.metrics.prefix_hits
        self.report.equal("engine alone, then cached", f"{hits} cached", hits >= pictures, True)
        self._check("without the cache", replace(plain, prefix_cache=False), runs, 0)
        mixed = list(runs)
        for size in BATCH_SIZES:
            random.Random(size).shuffle(mixed)
            self._check(f"mixed, {size} at a time", replace(plain, max_batch_size=size), mixed, gaps=size)
        for name in sorted({run.image.key for run in runs if run.image is not None}):
            together = [run for run in runs if run.image is not None and run.image.key == name]
            longest = max(_most_positions(run, self.model) for run in together)
            longest = min(longest, self.model.network.config.text.max_context)
            tight = replace(
                plain, max_batch_size=max(BATCH_SIZES), max_context=longest, kv_cache_tokens=longest
            )
            for gaps in (0, 1):  # planned ahead, and not
                engine = self._check("preempted and resumed", tight, together, gaps, preempt=0.2)
                preempted = engine.loop.scheduler.num_preemptions > 0
                where = f"{name}: any preemption"
                self.report.equal("engine preempted and resumed", where, preempted, True)
        self.judge.check_mean("engine, all choices", self.report)

    def _check(
        self,
        stage: str,
        config: RuntimeConfig,
        chosen: Sequence[GoldenRun],
        gaps: int,
        times: int = 1,
        preempt: float = 0.0,
    ) -> Engine:
        """Run all of `chosen` `times` over on one engine, with up to `gaps` steps between two arrivals."""
        runtime = self.first.runtime
        runtime.overlaps = gaps % 2 == 1
        engine = assemble_engine(self.model, config, SkillRegistry([GoldenSkill()]), runtime=runtime)
        self.stack.callback(engine.close)
        rng = random.Random(len(chosen))
        for _ in range(times):
            with self.console.status(f"engine: {stage}"):
                replies = _run_all(engine, chosen, self.names, gaps, rng, preempt)
            for run, reply in zip(chosen, replies, strict=True):
                self._compare(stage, run, reply)
            self.report.equal(f"engine {stage}", "requests left", engine.loop.num_open, 0)
            engine.loop.scheduler.check()
        return engine

    def _compare(self, stage: str, run: GoldenRun, reply: NotedReply | KestrelError) -> None:
        stage = f"engine {run.whose}{stage}"
        if isinstance(reply, KestrelError):
            self.report.add(stage, f"{run.where}: {reply}", 1, "differences", 0.0)
        elif self.exact and run.is_golden:
            check_run(replace(run, stage=stage), reply, self.model.language, self.report)
        else:
            self.judge.check(stage, run, reply, self.report)


def _run_all(
    engine: Engine,
    runs: Sequence[GoldenRun],
    names: Mapping[str, Sequence[str]],
    gaps: int,
    rng: random.Random,
    preempt: float,
) -> list[NotedReply | KestrelError]:
    """`preempt` is the probability that a sequence is preempted after a step, whatever room there is."""
    replies: dict[str, NotedReply] = {}
    failed: dict[str, KestrelError] = {}
    for index, run in enumerate(runs):
        number = str(index)

        def sink(event: Event, number: str = number) -> None:
            if isinstance(event, KestrelError):
                failed[number] = event

        arguments, settings = {"run": run, "replies": replies}, run.request.settings
        if run.adapter is not None:
            settings = replace(settings, adapter=rng.choice(names[run.adapter.identity]))
        engine.loop.submit(Request("golden", arguments, run.image, settings, number), sink)
        for _ in range(rng.randint(0, gaps)):
            engine.loop.step()
    while engine.loop.num_open:
        engine.loop.step(wait=True)
        running = engine.loop.scheduler.running
        if running and rng.random() < preempt:
            engine.loop.scheduler.preempt(rng.choice(running))
    return [failed.get(str(i)) or replies[str(i)] for i in range(len(runs))]


def _most_positions(run: GoldenRun, model: LoadedModel) -> int:
    """Positions that the run may need: its prompt, and the longest answer and reasoning it may give."""
    settings = run.request.settings
    said = 2 * (settings.max_tokens or 0) if run.tokens is not None else 3 * (settings.max_objects or 0)
    return model.network.config.image_prefix_length + len(prompt_of(run, model.language).inputs) + said + 4
