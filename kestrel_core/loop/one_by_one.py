"""What to do when a step fails: launch its sequences one by one, to find whose fault it was."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import groupby

from kestrel_core.loop.step import Runtime, Sample, StepInFlight, StepPlan
from kestrel_core.protocol.errors import EngineFailed, KestrelError


@dataclass(frozen=True, slots=True)
class Collected:
    """A step that was collected already."""

    samples: Mapping[int, Sample]

    def collect(self) -> Mapping[int, Sample]:
        return self.samples


def launch_one_by_one(
    runtime: Runtime, plan: StepPlan, pending: StepInFlight | None
) -> tuple[Collected | None, Collected, dict[int, KestrelError]]:
    """The step before, collected; this step, without the sequences that failed; and their errors by slot.

    A span that is computed again writes the same to the same cells. But the launch that failed may have
    replaced what each slot sampled last, so the step before is collected first, and every input is given.
    """
    before = Collected(pending.collect()) if pending is not None else None
    samples: dict[int, Sample] = {}
    errors: dict[int, KestrelError] = {}
    for slot, spans in groupby(plan.spans, key=lambda span: span.slot):
        given = []
        for span in spans:
            if span.feeds_last_sample:
                assert before is not None, "a decode runs ahead of no step"
                span = replace(span, inputs=(before.samples[slot].feed,))
            given.append(span)
        try:
            samples |= runtime.launch(StepPlan(given)).collect()
        except KestrelError as error:
            errors[slot] = error
        except Exception as error:
            errors[slot] = EngineFailed(f"computing this request failed ({type(error).__name__})")
    return before, Collected(samples), errors
