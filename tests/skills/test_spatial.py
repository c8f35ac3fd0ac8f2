from dataclasses import replace
from typing import Any, Literal

import pytest
from goldens import golden_language

from kestrel_core.loop.sequence import GO_ON, Outcome
from kestrel_core.loop.step import Coord, Kind, PreparedImage, Sample, Size
from kestrel_core.moondream.config import LEGACY_DIALOG
from kestrel_core.protocol.errors import InvalidRequest
from kestrel_core.protocol.messages import Request, Settings
from kestrel_core.skills.registry import builtin_skills
from kestrel_core.skills.spatial import DetectSkill, PointSkill
from kestrel_core.skills.spec import Language

MD2, MD3 = golden_language("md2"), golden_language("md3")
LEGACY = Language(replace(MD2.config, dialog=LEGACY_DIALOG), MD2.tokenizer)
IMAGE = PreparedImage("picture", None, (1, 1))
EOS, COORD = 0, 5
Skill = Literal["point", "detect"]


def ask(skill: Skill, image: PreparedImage | None = IMAGE, **arguments: Any) -> Request:
    return Request(skill, {"object": "red circle", **arguments}, image)


def reply_of(skill: Skill, language: Language = MD3, max_objects: int | None = None) -> Any:
    request = replace(ask(skill), settings=Settings(max_objects=max_objects))
    return builtin_skills()[skill].reply(request, language)


def refused(request: Request, language: Language = MD3) -> str:
    assert request.skill in ("point", "detect")
    with pytest.raises(InvalidRequest) as caught:
        builtin_skills().check(request).prompt(request, language)
    return str(caught.value)


@pytest.mark.parametrize(
    ("language", "detect", "point"),
    [
        (MD2, (1, 598, 495, 2), (1, 551, 2)),
        (MD3, (1, 293, 99, 510, 2), (1, 95, 94, 274, 99, 2)),
    ],
)
def test_the_object_follows_a_space(
    language: Language, detect: tuple[int, ...], point: tuple[int, ...]
) -> None:
    words = language.tokenizer.encode(" red circle")
    made = DetectSkill().prompt(ask("detect"), language)
    assert made.inputs == (*detect, *words, 3) and made.with_image
    assert PointSkill().prompt(ask("point"), language).inputs == (*point, *words, 3)


def test_a_point_request_may_carry_spatial_references() -> None:
    made = PointSkill().prompt(ask("point", object="gaze", spatial_refs=[[0.5, 0.25]]), MD3)
    words = MD3.tokenizer.encode(" gaze")
    assert made.inputs == (1, 95, 94, 274, 99, 2, Coord(0.5), Coord(0.25), *words, 3)


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (Request("detect", {}, IMAGE), "OBJECT is required for detect"),
        (ask("point", object=""), "OBJECT is empty"),
        (ask("detect", object=["dog"]), "OBJECT is a list; it must be a string"),
        (ask("detect", image=None), "IMAGE is required for detect"),
        (ask("point", image=None), "IMAGE is required for point"),
        (ask("detect", spatial_refs=[[0.1, 0.2]]), 'detect takes no "spatial_refs"; known are object'),
        (ask("point", spatial_refs=[[0.1, 2]]), "fractions of the picture"),
    ],
)
def test_arguments_that_cannot_be_served_are_named(request_: Request, said: str) -> None:
    assert said in refused(request_)


def test_old_releases_take_no_spatial_references() -> None:
    assert "SPATIAL_REFS are not known to point" in refused(ask("point", spatial_refs=[[0.1, 0.2]]), LEGACY)


def test_a_box_is_its_centre_and_size() -> None:
    reply = reply_of("detect")
    kinds = []
    for sample in (Sample(COORD, coord=0.5), Sample(coord=0.25), Sample(size=Size(0.5, 0.75))):
        kinds.append(reply.readout().kind)
        assert reply.take(sample) == GO_ON
    assert kinds == [Kind.OBJECT, Kind.COORD, Kind.SIZE] and reply.readout().kind is Kind.OBJECT
    assert reply.take(Sample(EOS, coord=0.9)) == Outcome(finish="stop")
    # Not clipped: boxes may leave the picture.
    box = {"x_min": 0.25, "y_min": -0.125, "x_max": 0.75, "y_max": 0.625}
    assert reply.output() == {"objects": [box]}


def test_points_take_two_samples_each() -> None:
    reply = reply_of("point")
    for x, y in ((0.25, 0.5), (0.75, 1.0)):
        assert reply.readout().kind is Kind.OBJECT
        assert reply.take(Sample(COORD, coord=x)) == GO_ON
        assert reply.readout().kind is Kind.COORD
        assert reply.take(Sample(coord=y)) == GO_ON
    reply.take(Sample(EOS, coord=0.0))
    assert reply.output() == {"points": [{"x": 0.25, "y": 0.5}, {"x": 0.75, "y": 1.0}]}


@pytest.mark.parametrize("skill", ["point", "detect"])
def test_there_may_be_none(skill: Skill) -> None:
    reply = reply_of(skill)
    assert reply.take(Sample(EOS, coord=0.3)) == Outcome(finish="stop")
    assert reply.output() == {"objects" if skill == "detect" else "points": []}


def test_any_token_but_the_end_means_another_one() -> None:
    reply = reply_of("point", MD2)
    assert reply.take(Sample(77, coord=0.25)) == GO_ON
    reply.take(Sample(coord=0.5))
    assert reply.output() == {"points": [{"x": 0.25, "y": 0.5}]}


def test_the_limit_ends_the_reply_with_its_last_object() -> None:
    reply = reply_of("point", max_objects=2)
    outcomes = [reply.take(s) for s in [Sample(COORD, coord=0.1), Sample(coord=0.2)] * 2]
    assert outcomes == [GO_ON, GO_ON, GO_ON, Outcome(finish="length")]
    assert len(reply.output()["points"]) == 2


@pytest.mark.parametrize(("language", "limit"), [(MD2, 50), (MD3, 150)])
def test_the_generation_sets_the_limit_that_nobody_asked_for(language: Language, limit: int) -> None:
    reply = reply_of("point", language)
    outcomes = [reply.take(s) for _ in range(limit) for s in (Sample(COORD, coord=0.1), Sample(coord=0.2))]
    assert [outcome.finish for outcome in outcomes].index("length") == 2 * limit - 1


def test_later_decisions_of_moondream_3_weigh_coordinate_against_end() -> None:
    for language, later in ((MD3, (COORD, EOS)), (MD2, ())):
        reply = reply_of("point", language)
        assert reply.readout().choices == (), "the first decision weighs all tokens"
        reply.take(Sample(COORD, coord=0.1))
        reply.take(Sample(coord=0.2))
        assert reply.readout().choices == later and reply.readout().suppressed == ()


def test_what_will_be_read_is_known_ahead() -> None:
    reply = reply_of("detect")
    ahead = [reply.readout(n) for n in range(7)]
    assert [readout.kind.value for readout in ahead] == ["object", "coord", "size"] * 2 + ["object"]
    for n, sample in enumerate(
        [Sample(COORD, coord=0.1), Sample(coord=0.2), Sample(size=Size(0.1, 0.1))] * 2
    ):
        assert reply.readout() == ahead[n]
        reply.take(sample)


def test_an_unfinished_reply_gives_the_objects_it_has() -> None:
    reply = reply_of("detect")
    for sample in (Sample(COORD, coord=0.5), Sample(coord=0.5), Sample(size=Size(0.5, 0.5))):
        reply.take(sample)
    reply.take(Sample(COORD, coord=0.1))
    assert len(reply.output()["objects"]) == 1
    assert reply.cut().finish == "length"


def test_samples_are_always_the_likeliest() -> None:
    assert PointSkill().greedy and DetectSkill().greedy
