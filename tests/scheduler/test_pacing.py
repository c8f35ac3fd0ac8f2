"""Streams and pictures: what a step does for those that wait, and that nobody is forgotten."""

import pytest
from fake_pictures import FakePictures, fake_pacing
from fake_runtime import IMAGE_LENGTH
from stage import Stage, alone, both, said

from kestrel_core.loop.sequence import Sequence
from kestrel_core.loop.step import StepPlan
from kestrel_core.scheduler.pacing import MAX_AHEAD, MIN_CROPS, STEADY_CROPS, Pacing

DECODE_TOKENS = 60


def with_stream(pacing: Pacing | None, **options: int) -> tuple[Stage, Sequence]:
    """A stage on which one sequence streams."""
    stage = Stage(num_pages=400, max_running=50, step_tokens=1000, pacing=pacing, **options)
    stream = stage.admit("a stream", DECODE_TOKENS)
    for _ in range(8):
        stage.step()
    assert len(said(stream)) >= 6
    return stage, stream


def images(plan: StepPlan) -> list[str]:
    return [span.image.key for span in plan.spans if span.image is not None]


def crops(plan: StepPlan) -> dict[str, int]:
    return {one.image.key: one.num_crops for one in plan.encodes}


@both
def test_a_picture_beside_a_stream_is_encoded_in_slices_and_answers_the_same(overlaps: bool) -> None:
    stage, stream = with_stream(fake_pacing(), overlaps=overlaps)
    begun = len(stage.runtime.plans)
    asked = stage.admit("why?", 4, image="cat")
    stage.run()
    plans = stage.runtime.plans[begun:]
    assert [crops(plan) for plan in plans[:4]] == [{"cat": 3}, {"cat": 3}, {"cat": 1}, {}]
    assert [images(plan) for plan in plans[:4]] == [[], [], [], ["cat"]]
    assert all(len(plan.spans) >= 1 for plan in plans[:4]), "the stream goes on all the while"
    assert said(asked) == alone("why?", 4, image="cat")
    assert said(stream) == alone("a stream", DECODE_TOKENS)


@pytest.mark.parametrize("pacing", [None, fake_pacing()])
def test_without_streams_or_without_pacing_all_is_done_at_once(pacing: Pacing | None) -> None:
    if pacing is None:
        stage, _ = with_stream(None)
    else:
        stage = Stage(num_pages=400, max_running=40, step_tokens=1000, pacing=pacing)
        stage.admit("short", 3)
        stage.step()
    for number in range(5):
        stage.admit("why?", 4, image=f"cat {number}")
    stage.step()
    assert len(images(stage.runtime.plans[-1])) == 5 and not stage.runtime.plans[-1].encodes


def test_a_step_has_one_image_prefix_or_a_few_crops() -> None:
    stage, _ = with_stream(fake_pacing(num_steps=100))
    begun = len(stage.runtime.plans)
    asked = [stage.admit("why?", 1, image=f"cat {number}", order=number) for number in range(3)]
    while not all(sequence.ended for sequence in asked):
        stage.step()
    for plan in stage.runtime.plans[begun:]:
        assert len(images(plan)) <= 1 and sum(crops(plan).values()) <= MIN_CROPS
        assert not (images(plan) and crops(plan))
    assert sum(stage.pictures.sizes) == 21, "no crop was encoded twice"
    assert max(stage.pictures.sizes[:-1]) == MIN_CROPS, "crops of two pictures share a batch"


def test_the_more_waits_the_more_a_step_does_up_to_a_limit_and_with_very_much_it_does_all() -> None:
    sizes = []
    for number in (4, 12, 24):
        stage, _ = with_stream(fake_pacing(max_known=40))
        for index in range(number):
            stage.admit("why?", 1, image=f"cat {index}", order=index)
        stage.step()
        sizes.append(sum(crops(stage.runtime.plans[-1]).values()))
    assert sizes == [round(2 + min(number * (7 + 4.5), STEADY_CROPS) / 10) for number in (4, 12, 24)]
    stage, _ = with_stream(fake_pacing())
    for index in range(40):
        stage.admit("why?", 1, image=f"cat {index}", order=index)
    stage.step()
    assert len(images(stage.runtime.plans[-1])) == 40 and not stage.runtime.plans[-1].encodes


def test_no_more_is_encoded_ahead_than_is_remembered() -> None:
    stage, _ = with_stream(fake_pacing(num_steps=1, max_known=40))
    for index in range(20):
        stage.admit("why?", 1, image=f"small {index}", order=index)
    stage.step()
    assert len(crops(stage.runtime.plans[-1])) == MAX_AHEAD
    ends = stage.run()
    assert len(ends) == 21 and sum(stage.pictures.sizes) <= 40


def test_a_short_prompt_does_not_wait_for_the_pictures_before_it() -> None:
    stage, _ = with_stream(fake_pacing())
    for index in range(4):
        stage.admit("why?", 1, image=f"cat {index}", order=index)
    text = stage.admit("what is it?", 3, order=9)
    stage.step()
    assert len(said(text)) == 1


def test_a_long_prompt_comes_in_pieces() -> None:
    stage, _ = with_stream(fake_pacing(), max_context=500)
    begun = len(stage.runtime.plans)
    long = stage.admit("so long a question " * 20, 1)
    stage.run()
    pieces = [
        span for plan in stage.runtime.plans[begun:] for span in plan.spans if len(span.inputs or ()) > 1
    ]
    assert len(pieces) > 3 and pieces[-1].stop == 380
    unpaced = Stage(num_pages=400, max_context=500)
    same = unpaced.admit("so long a question " * 20, 1)
    unpaced.run()
    assert said(long) == said(same)


@both
def test_two_salts_of_one_picture_encode_it_once(overlaps: bool) -> None:
    stage, _ = with_stream(fake_pacing(), overlaps=overlaps)
    for order, root in enumerate(("one", "two")):
        sequence = stage.admit("why?", 2, image="cat", order=order)
        sequence.root = root
    stage.run()
    assert sum(stage.pictures.sizes) == 7 and stage.runtime.num_images == 2


@both
def test_whoever_leaves_or_is_preempted_while_its_picture_is_encoded_gives_all_back(overlaps: bool) -> None:
    stage, _ = with_stream(fake_pacing(), overlaps=overlaps)
    gone, preempted, after = (stage.admit("why?", 2, image=name, order=at) for at, name in enumerate("abc"))
    stage.step()
    assert all(sequence.slot for sequence in (gone, preempted, after))
    stage.scheduler.end(gone)
    stage.scheduler.preempt(preempted)
    stage.scheduler.check()
    stage.run()
    assert said(preempted) == alone("why?", 2, image="b") and said(after) == alone("why?", 2, image="c")
    assert not stage.scheduler._building and stage.num_unused == 399


def test_what_cannot_be_encoded_in_slices_is_encoded_with_its_step() -> None:
    pacing = fake_pacing()
    assert isinstance(pacing.pictures, FakePictures)
    pacing.pictures.failing.add("cat")
    stage, _ = with_stream(pacing)
    asked = stage.admit("why?", 1, image="cat")
    stage.step()
    assert images(stage.runtime.plans[-1]) == ["cat"] and said(asked)


@pytest.mark.parametrize("has_experts", [False, True])
def test_an_image_prefix_costs_more_crops_with_experts(has_experts: bool) -> None:
    pictures = FakePictures()
    assert Pacing.chosen("off", 5, pictures, IMAGE_LENGTH, has_experts) is None
    slices = Pacing.chosen("slices", 5, pictures, IMAGE_LENGTH, has_experts)
    assert slices is not None and slices.position_crops * IMAGE_LENGTH == (6.5 if has_experts else 2.5)
