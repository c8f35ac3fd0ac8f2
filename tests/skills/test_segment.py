import json
from dataclasses import asdict, replace
from typing import Any

import fakes
import pytest
from fake_runtime import FakeRuntime
from fakes import FakeEngine
from goldens import golden_language

from kestrel_core.intake.tokenizer import Tokenizer
from kestrel_core.loop.sequence import GO_ON, Outcome
from kestrel_core.loop.step import Kind, PreparedImage, Sample, Size, Span
from kestrel_core.moondream.checkpoint.config_file import parse_config
from kestrel_core.moondream.config import MOONDREAM2, MOONDREAM3, MOONDREAM_TINY, Template
from kestrel_core.protocol.errors import InvalidRequest, UnsupportedSkill
from kestrel_core.protocol.messages import Request, Settings
from kestrel_core.skills.registry import builtin_skills
from kestrel_core.skills.segment import SegmentSkill
from kestrel_core.skills.spec import Language

TINY = Language(MOONDREAM_TINY, Tokenizer.of_bytes(MOONDREAM_TINY))
IMAGE = PreparedImage("picture", None, (1, 1))
EOS, COORD, OPEN, CLOSE = 0, 5, 7, 9
BOX = [Sample(COORD, coord=0.5), Sample(coord=0.25), Sample(size=Size(0.5, 0.25))]
TRIANGLE = (0.5, 0.0, 1.0, 1.0, 0.0, 1.0)
SQUARE = (0.25, 0.25, 0.75, 0.25, 0.75, 0.75, 0.25, 0.75)
BBOX = {"x_min": 0.25, "y_min": 0.125, "x_max": 0.75, "y_max": 0.375}


def ask(image: PreparedImage | None = IMAGE, **arguments: Any) -> Request:
    return Request("segment", {"object": "red ring", **arguments}, image)


def reply_of(**settings: Any) -> Any:
    return SegmentSkill().reply(replace(ask(), settings=Settings(**settings)), TINY)


def reply_within(max_tokens: int) -> Any:
    config = replace(MOONDREAM_TINY, dialog=replace(MOONDREAM_TINY.dialog, max_tokens=max_tokens))
    return SegmentSkill().reply(ask(), Language(config, TINY.tokenizer))


def subpath(*numbers: float) -> list[Sample]:
    return [Sample(OPEN), *(Sample(COORD, coord=number) for number in numbers)]


def say(reply: Any, samples: list[Sample]) -> list[Outcome]:
    return [reply.take(sample) for sample in samples]


def paths(reply: Any) -> list[str]:
    return [found["svg_path"] for found in reply.output()["segments"]]


def test_the_object_follows_a_space() -> None:
    words = TINY.tokenizer.encode(" red ring")
    made = SegmentSkill().prompt(ask(), TINY)
    assert made.inputs == (1, 14, 2, *words, 3) and made.with_image


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (Request("segment", {}, IMAGE), "OBJECT is required for segment"),
        (ask(object=" "), "OBJECT is empty"),
        (ask(image=None), "IMAGE is required for segment"),
        (ask(spatial_refs=[[0.1, 0.2]]), "SPATIAL_REFS are not known to segment"),
    ],
)
def test_arguments_that_cannot_be_served_are_named(request_: Request, said: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        builtin_skills().check(request_).prompt(request_, TINY)
    assert said in str(caught.value)


@pytest.mark.parametrize("name", ["md2", "md3"])
def test_the_published_models_refuse(name: Any) -> None:
    language = golden_language(name)
    with pytest.raises(UnsupportedSkill) as caught:
        SegmentSkill().prompt(ask(), language)
    assert str(caught.value) == (
        "segment is not supported by this model: its prompt and path tokens are not published; "
        "use detect for boxes or point for points"
    )


def test_a_config_file_may_bring_the_template() -> None:
    written = json.loads(json.dumps({"model_type": "moondream3", "config": asdict(MOONDREAM_TINY)}))
    assert parse_config(written).tokenizer.templates.segment == Template((1, 14, 2), (3,))
    assert MOONDREAM2.tokenizer.templates.segment is None is MOONDREAM3.tokenizer.templates.segment


def test_an_outline_follows_its_box_and_is_relative_to_it() -> None:
    reply = reply_of()
    assert say(reply, BOX + subpath(*TRIANGLE)) == [GO_ON] * 10
    # Fed explicitly, so that whatever read on along the path is void.
    assert reply.take(Sample(CLOSE)) == Outcome(feed=(CLOSE,))
    assert reply.take(Sample(EOS, coord=0.9)) == Outcome(finish="stop")
    assert reply.output() == {"segments": [{"svg_path": "M 0.5 0 L 1 1 L 0 1 Z", "bbox": BBOX}]}


def test_a_second_subpath_is_a_hole() -> None:
    reply = reply_of()
    say(reply, [*BOX, *subpath(*TRIANGLE), *subpath(*SQUARE), Sample(CLOSE)])
    hole = "M 0.25 0.25 L 0.75 0.25 L 0.75 0.75 L 0.25 0.75 Z"
    assert paths(reply) == [f"M 0.5 0 L 1 1 L 0 1 Z {hole}"]


def test_every_object_has_its_own_path() -> None:
    reply = reply_of()
    say(reply, [*BOX, *subpath(*TRIANGLE), Sample(CLOSE), *BOX, *subpath(*SQUARE), Sample(CLOSE)])
    assert [path.count("L") for path in paths(reply)] == [2, 3]


def test_there_may_be_none() -> None:
    reply = reply_of()
    assert reply.take(Sample(EOS, coord=0.3)) == Outcome(finish="stop")
    assert reply.output() == {"segments": []}


def test_numbers_are_as_long_as_they_need_to_be() -> None:
    reply = reply_of()
    say(reply, [*BOX, *subpath(1 / 1024, 341 / 1024, 1023 / 1024, 0.5, 0.0, 1.0), Sample(CLOSE)])
    assert paths(reply) == ["M 0.0009766 0.333 L 0.999 0.5 L 0 1 Z"]


@pytest.mark.parametrize("end", [subpath(*SQUARE)[:1], []], ids=["before a hole", "at the end"])
def test_an_x_without_its_y_is_dropped(end: list[Sample]) -> None:
    reply = reply_of()
    say(reply, [*BOX, *subpath(*TRIANGLE, 0.9), *end, Sample(CLOSE)])
    assert paths(reply) == ["M 0.5 0 L 1 1 L 0 1 Z"]


def test_what_encloses_nothing_is_dropped() -> None:
    reply = reply_of()
    say(reply, [*BOX, *subpath(), *subpath(0.1, 0.1, 0.2, 0.2), *subpath(*TRIANGLE), Sample(CLOSE)])
    say(reply, [*BOX, Sample(CLOSE)])
    assert paths(reply) == ["M 0.5 0 L 1 1 L 0 1 Z", ""]


def test_an_unfinished_path_is_left_out() -> None:
    reply = reply_of()
    say(reply, [*BOX, *subpath(*TRIANGLE), Sample(CLOSE), *BOX, *subpath(*SQUARE)])
    assert reply.cut() == Outcome(finish="length")
    assert paths(reply) == ["M 0.5 0 L 1 1 L 0 1 Z"]


def test_the_limit_of_objects_ends_the_reply_with_the_last_path() -> None:
    reply = reply_of(max_objects=2)
    outcomes = say(reply, [*BOX, *subpath(*TRIANGLE), Sample(CLOSE)] * 2)
    assert [outcome.finish for outcome in outcomes] == [None] * 21 + ["length"]
    assert len(paths(reply)) == 2


def test_the_limit_of_tokens_bounds_all_paths_together() -> None:
    reply = reply_within(11)
    outcomes = say(reply, [*BOX, *subpath(*TRIANGLE), Sample(CLOSE), *BOX, *subpath(0.1, 0.2)])
    assert [outcome.finish for outcome in outcomes] == [None] * 16 + ["length"]
    assert len(paths(reply)) == 1
    reply = reply_within(8)
    outcomes = say(reply, [*BOX, *subpath(*TRIANGLE), Sample(CLOSE)])
    assert outcomes[-1] == Outcome(finish="length") and len(paths(reply)) == 1


def test_a_path_nobody_limits_ends_at_the_model_s_own_limit() -> None:
    reply = reply_of()
    outcomes = say(reply, [*BOX, *subpath(*[0.5] * (MOONDREAM_TINY.dialog.max_tokens - 1))])
    assert [outcome.finish for outcome in outcomes].index(
        "length"
    ) == 3 + MOONDREAM_TINY.dialog.max_tokens - 1


def test_only_the_grammar_s_tokens_can_be_chosen() -> None:
    reply = reply_of()
    assert reply.readout().choices == (), "the first decision weighs all tokens"
    say(reply, BOX)
    assert set(reply.readout().choices) == {OPEN, CLOSE}, "a path begins with a subpath"
    say(reply, subpath(*TRIANGLE))
    assert set(reply.readout().choices) == {COORD, OPEN, CLOSE}
    reply.take(Sample(CLOSE))
    assert reply.readout().choices == (COORD, EOS)


def test_what_will_be_read_is_known_ahead() -> None:
    reply = reply_of()
    for num_objects in range(2):
        samples = BOX + subpath(*TRIANGLE)
        ahead = [reply.readout(n) for n in range(len(samples) + 1)]
        kinds = [Kind.OBJECT, Kind.COORD, Kind.SIZE, *[Kind.GROUNDED] * 8]
        assert [readout.kind for readout in ahead] == kinds
        assert bool(ahead[0].choices) == bool(num_objects)
        for n, sample in enumerate(samples):
            assert [reply.readout(m) for m in range(len(ahead) - n)] == ahead[n:]
            reply.take(sample)
        reply.take(Sample(CLOSE))


def test_reading_ahead_gives_the_same_outlines(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that overlaps its steps has read on along the path when it learns that it was closed."""

    class PathRuntime(FakeRuntime):
        def _sample(self, span: Span, digest: int) -> Sample:
            sample = super()._sample(span, digest)
            assert span.readout is not None
            if span.readout.kind is not Kind.GROUNDED:
                return sample
            places = span.readout.choices
            token = places[hash((digest, 1)) % len(places)]
            return Sample(token, coord=digest % 64 / 64 if token == COORD else None)

    config = fakes.LANGUAGE.config
    templates = replace(config.tokenizer.templates, segment=Template((1, 28, 2), (3,)))
    config = replace(config, tokenizer=replace(config.tokenizer, templates=templates))
    monkeypatch.setattr(fakes, "LANGUAGE", Language(config, fakes.LANGUAGE.tokenizer))
    monkeypatch.setattr(fakes, "FakeRuntime", PathRuntime)
    told = []
    for overlaps in (False, True):
        engine = FakeEngine(overlaps=overlaps, max_context=300, num_pages=900)
        heard = [engine.ask("segment", b"cat", object=f"tail {n}") for n in range(12)]
        engine.run_until_idle()
        engine.check_idle()
        told.append([(one.output, one.finished.result.finish_reason) for one in heard])
    plain, ahead = told
    assert plain == ahead
    found = [len(output["segments"]) for output, _ in plain]
    assert max(found) > 2 and any(part["svg_path"] for output, _ in plain for part in output["segments"])


def test_samples_are_always_the_likeliest() -> None:
    assert SegmentSkill().greedy
