"""Golden decodes of every skill, driven through the runtime one sequence at a time, and their verdict."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from kestrel_core.loop.sequence import Outcome, Prompt, Reply
from kestrel_core.loop.step import (
    Input,
    PreparedImage,
    Readout,
    Running,
    Runtime,
    Sample,
    Span,
    StepPlan,
)
from kestrel_core.protocol.messages import Request
from kestrel_core.skills.spatial import DetectSkill, PointSkill
from kestrel_core.skills.spec import Language, SkillSpec
from kestrel_core.skills.text import CaptionSkill, QuerySkill
from kestrel_tools.parity.report import Report

SKILLS: dict[str, SkillSpec] = {
    "query": QuerySkill(),
    "caption": CaptionSkill(),
    "detect": DetectSkill(),
    "point": PointSkill(),
}
BOX_TOLERANCE = 1e-6


@dataclass(frozen=True)
class GoldenRun:
    """One request and what it gave. `tokens` are those emitted, an end token left out; None where unknown."""

    stage: str
    where: str
    request: Request
    prompt_ids: Sequence[int]
    tokens: Sequence[int] | None = None
    reasoning_tokens: Sequence[int] | None = None
    chunks: Sequence[str] | None = None
    output: dict[str, Any] = field(default_factory=dict)
    inputs: tuple[Input, ...] | None = None  # a prompt that no skill makes

    @property
    def image(self) -> PreparedImage | None:
        image: PreparedImage | None = self.request.image
        return image


@dataclass
class Recorded:
    """A reply that remembers what it was given and what it said."""

    reply: Reply
    samples: list[Sample] = field(default_factory=list)
    chunks: list[str] = field(default_factory=list)
    phases: list[int] = field(default_factory=list)

    def readout(self, ahead: int = 0) -> Readout | None:
        return self.reply.readout(ahead)

    def take(self, sample: Sample) -> Outcome:
        outcome = self.reply.take(sample)
        self.samples.append(sample)
        self.chunks += [text for text in (outcome.text, outcome.rest) if text]
        if outcome.feed is not None:
            self.phases.append(len(self.samples))
        return outcome

    def cut(self) -> Outcome:
        return self.reply.cut()

    def output(self) -> dict[str, Any]:
        return self.reply.output()


Decode = Callable[[GoldenRun, Prompt, Recorded], None]


def drive(runtime: Runtime, image_prefix_length: int) -> Decode:
    """Decode with the runtime alone: one sequence in slot 1, its pages in order."""
    sequence = Running(1, list(range(1, runtime.num_pages)))

    def decode(run: GoldenRun, prompt: Prompt, reply: Recorded) -> None:
        spans, start, feed = [], 0, prompt.inputs
        if run.image is not None:
            start = image_prefix_length
            spans.append(Span(sequence, 0, start, None, image=run.image))
        finished = False
        while not finished:
            stop = start + len(feed)
            spans.append(Span(sequence, start, stop, feed, None, reply.readout()))
            sample = runtime.launch(StepPlan(spans)).collect()[1]
            outcome = reply.take(sample)
            spans, start = [], stop
            feed = outcome.feed if outcome.feed is not None else (sample.feed,)
            finished = outcome.finish is not None

    return decode


def check_runs(
    runs: Sequence[GoldenRun], language: Language, decode: Decode, report: Report, exact: bool
) -> None:
    """With `exact` everything must be equal; else the runs are only counted by how far they agree."""
    agreed = total = 0
    for run in runs:
        prompt = prompt_of(run, language)
        if run.inputs is None:
            ids = [_placeholder(i, language) for i in prompt.inputs]
            report.equal("prompts", run.where, ids, list(run.prompt_ids))
        reply = Recorded(SKILLS[run.request.skill].reply(run.request, language))
        decode(run, prompt, reply)
        if exact:
            check_run(run, reply, language, report)
        elif run.tokens is not None:
            ours = _emitted(reply, language)[1]
            same = next(
                (i for i, (a, b) in enumerate(zip(ours, run.tokens, strict=False)) if a != b), len(run.tokens)
            )
            agreed, total = agreed + same, total + len(run.tokens)
    if total:
        note = f"{agreed} of {total} tokens before the first difference; not judged in this dtype"
        report.add("decode text", "", 0.0, "differences", float("inf"), note)


def prompt_of(run: GoldenRun, language: Language) -> Prompt:
    if run.inputs is not None:
        return Prompt(run.inputs, run.image is not None)
    return SKILLS[run.request.skill].prompt(run.request, language)


def check_run(run: GoldenRun, reply: Recorded, language: Language, report: Report) -> None:
    thought, said = _emitted(reply, language)
    output = reply.output()
    if run.reasoning_tokens is not None:
        report.equal(run.stage, f"{run.where} reasoning", thought, list(run.reasoning_tokens))
    if run.tokens is not None:
        report.equal(run.stage, f"{run.where} tokens", said, list(run.tokens))
    if run.chunks is not None:
        report.equal(run.stage, f"{run.where} chunks", reply.chunks, list(run.chunks))
    for key, golden in run.output.items():
        if key in ("objects", "points"):
            _check_objects(run, output[key], golden, report)
        else:
            report.equal(run.stage, f"{run.where} {key}", output[key], golden)


def _check_objects(
    run: GoldenRun, ours: list[dict[str, float]], golden: list[dict[str, float]], report: Report
) -> None:
    stage = run.stage
    report.equal(stage, f"{run.where} number", len(ours), len(golden))
    worst = max((abs(a[k] - b[k]) for a, b in zip(ours, golden, strict=False) for k in b), default=0.0)
    report.add(f"{stage} places", run.where, worst, "max |a-b|", BOX_TOLERANCE)


def _emitted(reply: Recorded, language: Language) -> tuple[list[int], list[int]]:
    """Tokens of the reasoning and of the answer, without the ones that ended them."""
    ids = language.config.tokenizer
    tokens = [sample.token for sample in reply.samples if sample.token is not None]
    cut = reply.phases[0] if reply.phases else 0
    thought, said = tokens[:cut], tokens[cut:]
    if thought and thought[-1] == ids.answer_id:
        thought.pop()
    if said and said[-1] == ids.eos_id:
        said.pop()
    return thought, said


def _placeholder(value: Input, language: Language) -> int:
    ids = language.config.tokenizer
    if isinstance(value, int):
        return value
    return ids.coord_id if len(value) == 1 else ids.size_id
