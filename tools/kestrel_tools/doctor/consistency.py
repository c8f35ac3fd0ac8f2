"""The same question alone, in a batch, and from the prefix cache: it has to give the same answer.

This needs no known answers, so it holds for any weights. Encoded bytes and their decoded pixels are different
keys of the prefix cache, so the same picture can be asked about twice without meeting itself there.
"""

import asyncio
from collections.abc import Sequence

from kestrel_core.engine import InferenceEngine
from kestrel_core.intake.image_limits import ImageLimits
from kestrel_core.intake.images import decode_image
from kestrel_core.protocol.messages import EngineResult
from kestrel_tools.doctor.formats import PICTURES
from kestrel_tools.doctor.questions import Question, submit
from kestrel_tools.doctor.report import Finding, Report, fault, ok, skipped, warning

SECTION = "consistency"
ADVICE = "Send this report to the project: batching must not change an answer."


QUESTIONS = (
    Question("circles.png", "query", {"question": "What is in this picture?"}, max_tokens=24),
    Question("circles.png", "caption", {"length": "normal"}, max_tokens=24),
    Question("circles.png", "detect", {"object": "circle"}, max_objects=5),
    Question("circles.png", "point", {"object": "star"}, max_objects=5),
)


def check_consistency(report: Report, engine: InferenceEngine, is_exact: bool, has_cache: bool) -> None:
    """`is_exact`: float32, where sums in another order decide no tie; 16 bits may, and that is a warning."""
    encoded = (PICTURES / "circles.png").read_bytes()
    pixels = decode_image(encoded, ImageLimits())

    async def one_by_one() -> list[EngineResult]:
        return [await submit(engine, question, encoded) for question in QUESTIONS]

    async def together() -> list[EngineResult]:
        return list(await asyncio.gather(*(submit(engine, question, pixels) for question in QUESTIONS)))

    alone = report.learn(SECTION, "alone", lambda: asyncio.run(one_by_one()), _answered, ADVICE)
    if alone is None:
        return
    report.check(SECTION, "in a batch", lambda: compare(alone, asyncio.run(together()), is_exact), ADVICE)
    check = "from the prefix cache"
    if has_cache:
        report.check(SECTION, check, lambda: _from_cache(alone, asyncio.run(one_by_one()), is_exact), ADVICE)
    else:
        report.add(SECTION, check, skipped("the prefix cache is switched off"))


def _answered(results: Sequence[EngineResult]) -> Finding:
    tokens = sum(result.metrics.output_tokens for result in results)
    return ok(f"{len(results)} questions answered with {tokens:,} tokens")


def compare(alone: Sequence[EngineResult], others: Sequence[EngineResult], is_exact: bool) -> Finding:
    different = [
        f"{question.skill}: {other.output} instead of {one.output}"
        for question, one, other in zip(QUESTIONS, alone, others, strict=True)
        if (one.output, one.metrics.output_tokens) != (other.output, other.metrics.output_tokens)
    ]
    if not different:
        return ok(f"the same {len(others)} answers")
    found = f"{len(different)} of {len(others)} answers differ: {'; '.join(different)}"
    if is_exact:
        return fault(found, ADVICE)
    return warning(
        f"{found} (16 bits may round a tie the other way)", "Run again with --dtype float32 to be sure."
    )


def _from_cache(alone: Sequence[EngineResult], others: Sequence[EngineResult], is_exact: bool) -> Finding:
    cached = sum(other.metrics.cached_tokens for other in others)
    if cached == 0:
        return fault("nothing came from the prefix cache", ADVICE)
    finding = compare(alone, others, is_exact)
    return finding._replace(found=f"{finding.found}, {cached:,} positions of them cached")
