"""A wanted answer as the engine would have to read it: what is fed, and what is read where. No torch.

The skill makes the prompt, and its own reply is given the wanted samples. So a lesson is fed what an answer
would be fed, and what decoding rules out (suppressed tokens, two-way choices) is ruled out in training too.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from kestrel_core.loop.step import Input, Readout, Sample, Size
from kestrel_core.protocol.errors import InvalidRequest
from kestrel_core.protocol.messages import Request, Settings
from kestrel_core.skills.spec import Language, SkillSpec

from .bins import nearest_coord, nearest_size

# What each skill's line wants: the key of its answer, as the server's document has it.
WANTED = {"query": "answer", "caption": "caption", "detect": "objects", "point": "points"}
TEXTS = ("query", "caption")


class Read(NamedTuple):
    at: int  # of the lesson's inputs: the position whose hidden state is read
    readout: Readout
    sample: Sample


@dataclass(frozen=True, slots=True)
class Lesson:
    """`inputs` follow the image prefix if there is a picture, whose key this is."""

    picture: str | None
    inputs: tuple[Input, ...]
    reads: tuple[Read, ...]

    @property
    def num_choices(self) -> int:
        """Tokens, coordinates, widths and heights."""
        return sum(
            (sample.token is not None) + (sample.coord is not None) + 2 * (sample.size is not None)
            for _, _, sample in self.reads
        )


def make_lesson(
    request: Request, skill: SkillSpec, picture: str | None, wanted: Any, language: Language
) -> Lesson:
    """Raises `InvalidRequest` if the prompt cannot be made, or no reply can come to this answer."""
    samples = samples_of(request.skill, wanted, language)
    # The reply must not end the answer before the wanted one has ended.
    room = len(samples) + 1
    limits = Settings(max_tokens=room) if request.skill in TEXTS else Settings(max_objects=room)
    asked = skill.with_defaults(replace(request, settings=limits))
    inputs = list(skill.prompt(asked, language).inputs)
    reply, reads = skill.reply(asked, language), list[Read]()
    for sample in samples:
        readout = reply.readout()
        assert readout is not None
        reads.append(Read(len(inputs) - 1, readout, sample))
        outcome = reply.take(sample)
        if outcome.finish is None:
            inputs += outcome.feed if outcome.feed is not None else (sample.feed,)
    if request.skill in TEXTS:
        said = reply.output()[WANTED[request.skill]]
        if said != language.config.dialog.question_lead + wanted:
            raise InvalidRequest("the answer holds what the model has no tokens for; it can only be text")
    return Lesson(picture, tuple(inputs), tuple(reads))


def samples_of(skill: str, wanted: Any, language: Language) -> list[Sample]:
    ids, region = language.config.tokenizer, language.config.region
    end = Sample(ids.eos_id)
    if skill in TEXTS:
        # Generations that put a space before a question begin their answers with one.
        text = language.config.dialog.question_lead + wanted
        return [*map(Sample, language.tokenizer.encode_answer(text)), end]

    def point(x: float, y: float) -> tuple[Sample, Sample]:
        return Sample(ids.coord_id, nearest_coord(x, region.coord_out_dim)), Sample(
            coord=nearest_coord(y, region.coord_out_dim)
        )

    if skill == "point":
        return [*(sample for one in wanted for sample in point(one["x"], one["y"])), end]
    samples = list[Sample]()
    for box in wanted:
        x_min, y_min, x_max, y_max = corners(box)
        size = (nearest_size(side, region.num_size_bins) for side in (x_max - x_min, y_max - y_min))
        samples += (*point((x_min + x_max) / 2, (y_min + y_max) / 2), Sample(size=Size(*size)))
    return [*samples, end]


def corners(box: Mapping[str, float]) -> tuple[float, float, float, float]:
    return box["x_min"], box["y_min"], box["x_max"], box["y_max"]
