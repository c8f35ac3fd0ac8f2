"""Golden decodes of every skill: run through the runtime one sequence at a time, then compared or judged."""

from collections import Counter
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

from kestrel_core.loop.sequence import Prompt
from kestrel_core.loop.step import Input, PreparedImage, Running, Runtime, Span, StepPlan
from kestrel_core.moondream.lora import Adapter
from kestrel_core.moondream.model import Moondream
from kestrel_core.protocol.messages import Request
from kestrel_core.runtime.vision.image_encoder import ImageEncoder
from kestrel_core.skills.registry import builtin_skills
from kestrel_core.skills.spec import Language
from kestrel_tools.noted import Choice, NotedReply, walk
from kestrel_tools.parity.report import Report
from kestrel_tools.parity.ties import turned, ways
from kestrel_tools.reference import Adapted, Reference

SKILLS = builtin_skills()
BOX_TOLERANCE = 1e-6


@dataclass(frozen=True)
class GoldenRun:
    """One request and its golden answer. `tokens` are without the end token, and None where unknown."""

    stage: str
    where: str
    request: Request
    prompt_ids: Sequence[int]
    tokens: Sequence[int] | None = None
    reasoning_tokens: Sequence[int] | None = None
    chunks: Sequence[str] | None = None
    output: dict[str, Any] = field(default_factory=dict)
    inputs: tuple[Input, ...] | None = None  # a prompt that no skill makes
    adapter: Adapter | None = None
    on_image: bool = True  # False: the image prefix is computed without the adapter
    is_golden: bool = True  # False: only the request is golden, and its answer is not known

    @property
    def whose(self) -> str:
        """For the name of a stage: whether the run has an adapter, and the golden one."""
        if self.adapter is None:
            return ""
        return "adapter " if self.is_golden else "other adapters "

    @property
    def image(self) -> PreparedImage | None:
        image: PreparedImage | None = self.request.image
        return image


def objects_run(where: str, request: Request, prompt_ids: Sequence[int], run: dict[str, Any]) -> GoldenRun:
    key = "objects" if request.skill == "detect" else "points"
    return GoldenRun(f"decode {request.skill}", where, request, prompt_ids, output={key: run[key]})


def text_output(skill: str, text: str, thought: dict[str, Any] | None) -> dict[str, Any]:
    output: dict[str, Any] = {"answer" if skill == "query" else "caption": text}
    if thought is not None:
        output["reasoning"] = {"text": thought["text"], "grounding": thought["grounding"]}
    return output


Decode = Callable[[GoldenRun, Prompt, NotedReply], None]


def drive(runtime: Runtime, image_prefix_length: int) -> Decode:
    """Decode with the runtime alone: one sequence in slot 1, its pages in order; its adapter has index 1."""
    plain = Running(1, list(range(1, runtime.num_pages)))

    def decode(run: GoldenRun, prompt: Prompt, reply: NotedReply) -> None:
        spans, start, feed, sequence = [], 0, prompt.inputs, plain
        if run.adapter is not None:
            runtime.adapter_loader(1)(run.adapter)
            sequence = replace(plain, adapter=1)
        if run.image is not None:
            start = image_prefix_length
            spans.append(Span(sequence if run.on_image else plain, 0, start, None, image=run.image))
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


class Judge:
    """Judges choices by their margins: for dtypes in which rounding may decide a near tie either way.

    The reference is the same network in float32, plain torch. Outside float32 two right computations choose
    differently only where two logits lie near each other, so a choice is good when, by the reference, it lies
    below the best one by no more than the tolerance of tensors, as a share of the largest logit. Where a
    router has near ties, it may be good by either expert.

    The largest of thousands of gaps scatters widely where numbers are coarse, and their mean does not: with a
    `mean_tolerance` that is limited too, over all choices.
    """

    def __init__(
        self, network: Moondream, language: Language, tolerance: float, mean_tolerance: float | None = None
    ) -> None:
        self._network = deepcopy(network).float()
        self._reference = Reference(self._network, ImageEncoder(self._network.vision))
        self._language = language
        self._tolerance = tolerance
        self._mean_tolerance = mean_tolerance
        self._checked: list[float] = []
        # Most runs choose the same every time, so what was judged once is kept.
        self._gaps: dict[tuple[str, tuple[Choice, ...]], list[float]] = {}

    def check(self, stage: str, run: GoldenRun, reply: NotedReply, report: Report) -> None:
        key = run.where, tuple(reply.choices)
        if key not in self._gaps:
            self._gaps[key] = self._judged(run, reply)
        for gap in self._gaps[key]:
            report.add(stage, run.where, gap, "gap / largest logit", self._tolerance)
        self._checked += self._gaps[key]

    def check_mean(self, stage: str, report: Report) -> None:
        if self._mean_tolerance is not None and self._checked:
            mean, note = sum(self._checked) / len(self._checked), f"of {len(self._checked)} choices"
            report.add(stage, "", mean, "mean gap / largest logit", self._mean_tolerance, note)

    def _judged(self, run: GoldenRun, reply: NotedReply) -> list[float]:
        fresh = SKILLS[run.request.skill].reply(run.request, self._language)
        prompt = prompt_of(run, self._language).inputs
        path = walk(run.where, prompt, fresh, reply.choices, run.image is not None)
        adapted = None
        if run.adapter is not None:
            adapted = Adapted.by(run.adapter, self._network.text.wte, run.on_image)
        first = self._network.config.image_prefix_length if run.image is not None else 0
        gaps: list[float] = []
        for way in ways(self._network):
            with turned(way, first, self._tolerance):
                [judged] = self._reference.judge(run.image, [path], adapted)
            found = [choice.gap / choice.largest for choice in judged]
            gaps = [*map(min, gaps, found)] if gaps else found
            if max(gaps, default=0.0) <= self._tolerance:
                break
        return gaps


def check_runs(
    runs: Sequence[GoldenRun], language: Language, decode: Decode, report: Report, judge: Judge | None
) -> None:
    """Without a judge, everything must equal the golden values. A judge compares margins instead."""
    agreed, total = Counter[str](), Counter[str]()
    for run in runs:
        prompt = prompt_of(run, language)
        if run.inputs is None:
            ids = [_placeholder(i, language) for i in prompt.inputs]
            report.equal("prompts", run.where, ids, list(run.prompt_ids))
        reply = NotedReply(SKILLS[run.request.skill].reply(run.request, language))
        decode(run, prompt, reply)
        if judge is None:
            check_run(run, reply, language, report)
            continue
        stage = "decode text" if run.adapter is None else "adapter decode text"
        judge.check(stage, run, reply, report)
        if run.tokens is not None:
            ours = _emitted(reply, language)[1]
            pairs = enumerate(zip(ours, run.tokens, strict=False))
            agreed[stage] += next((i for i, (a, b) in pairs if a != b), len(run.tokens))
            total[stage] += len(run.tokens)
    for stage, number in total.items():
        report.stages[stage].note = f"{agreed[stage]} of {number} tokens before the first difference"


def prompt_of(run: GoldenRun, language: Language) -> Prompt:
    if run.inputs is not None:
        return Prompt(run.inputs, run.image is not None)
    return SKILLS[run.request.skill].prompt(run.request, language)


def check_run(run: GoldenRun, reply: NotedReply, language: Language, report: Report) -> None:
    thought, said = _emitted(reply, language)
    output, told = reply.output(), {"reasoning": thought, "tokens": said, "chunks": reply.chunks}
    golden = {"reasoning": run.reasoning_tokens, "tokens": run.tokens, "chunks": run.chunks}
    for what, expected in golden.items():
        if expected is not None:
            report.equal(run.stage, f"{run.where} {what}", told[what], list(expected))
    for key, value in run.output.items():
        if key in ("objects", "points"):
            _check_objects(run, output[key], value, report)
        else:
            report.equal(run.stage, f"{run.where} {key}", output[key], value)


def _check_objects(
    run: GoldenRun, ours: list[dict[str, float]], golden: list[dict[str, float]], report: Report
) -> None:
    stage = run.stage
    report.equal(stage, f"{run.where} number", len(ours), len(golden))
    worst = max((abs(a[k] - b[k]) for a, b in zip(ours, golden, strict=False) for k in b), default=0.0)
    report.add(f"{stage} places", run.where, worst, "max |a-b|", BOX_TOLERANCE)


def _emitted(reply: NotedReply, language: Language) -> tuple[list[int], list[int]]:
    """Tokens of the reasoning and of the answer, without the ones that ended them."""
    ids = language.config.tokenizer
    # Reasoning ends where the prompt of the answer is fed instead of the last token.
    cut = next((at for at, choice in enumerate(reply.choices, 1) if choice.fed is not None), 0)
    tokens = [choice.sample.token for choice in reply.choices]
    thought, said = ([t for t in part if t is not None] for part in (tokens[:cut], tokens[cut:]))
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
