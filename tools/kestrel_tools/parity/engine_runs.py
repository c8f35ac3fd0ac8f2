"""Golden decodes through the whole engine: alone, from the cache, in mixed batches, and preempted.

The golden prompts and recording replies enter as a skill of their own, as any third party's would.
"""

import random
from collections.abc import Sequence
from dataclasses import replace

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
    config: RuntimeConfig,
    report: Report,
    judge: Judge | None,
    console: Console,
) -> None:
    """`encode_image` remembers the pictures already, so vision is not computed again."""
    language = model.language

    def check(
        stage: str,
        config: RuntimeConfig,
        chosen: Sequence[GoldenRun],
        gaps: int,
        times: int = 1,
        preempt: float = 0.0,
    ) -> Engine:
        """Run all of `chosen` `times` over on one engine, with up to `gaps` steps between two arrivals."""
        engine = assemble_engine(model, config, SkillRegistry([GoldenSkill()]), overlaps=gaps % 2 == 1)
        engine.runtime.encode_image = encode_image
        rng = random.Random(len(chosen))
        for _ in range(times):
            with console.status(f"engine: {stage}"):
                replies = _run_all(engine, chosen, gaps, rng, preempt)
            for run, reply in zip(chosen, replies, strict=True):
                if isinstance(reply, KestrelError):
                    report.add(f"engine {stage}", f"{run.where}: {reply}", 1, "differences", 0.0)
                elif judge is None:
                    check_run(replace(run, stage=f"engine {stage}"), reply, language, report)
                else:
                    judge.check(f"engine {stage}", run, reply, report)
            report.equal(f"engine {stage}", "requests left", engine.loop.num_open, 0)
            engine.loop.scheduler.check()
        engine.close()
        return engine

    plain = replace(config, device=str(model.device), max_batch_size=1, max_queue=len(runs) + 1)
    check("alone, then cached", plain, runs, 0, times=2)
    check("without the cache", replace(plain, prefix_cache=False), runs, 0)
    mixed = list(runs)
    for size in BATCH_SIZES:
        random.Random(size).shuffle(mixed)
        check(f"mixed, {size} at a time", replace(plain, max_batch_size=size), mixed, gaps=size)
    for name in sorted({run.image.key for run in runs if run.image is not None}):
        together = [run for run in runs if run.image is not None and run.image.key == name]
        longest = max(_most_positions(run, model) for run in together)
        longest = min(longest, model.network.config.text.max_context)
        tight = replace(plain, max_batch_size=16, max_context=longest, kv_cache_tokens=longest)
        for gaps in (0, 1):  # planned ahead, and not
            engine = check("preempted and resumed", tight, together, gaps, preempt=0.2)
            preempted = engine.loop.scheduler.num_preemptions > 0
            report.equal("engine preempted and resumed", f"{name}: any preemption", preempted, True)


def _run_all(
    engine: Engine, runs: Sequence[GoldenRun], gaps: int, rng: random.Random, preempt: float
) -> list[NotedReply | KestrelError]:
    """`preempt` is the probability that a sequence is preempted after a step, whatever room there is."""
    replies: dict[str, NotedReply] = {}
    failed: dict[str, KestrelError] = {}
    for index, run in enumerate(runs):
        number = str(index)

        def sink(event: Event, number: str = number) -> None:
            if isinstance(event, KestrelError):
                failed[number] = event

        arguments = {"run": run, "replies": replies}
        engine.loop.submit(Request("golden", arguments, run.image, run.request.settings, number), sink)
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
