"""Equal beginnings are computed once: pictures, prompts, answers."""

import pytest
from stage import Stage, alone, both, said


@both
def test_an_image_in_the_works_is_waited_for_and_computed_once(overlaps: bool) -> None:
    stage = Stage(overlaps=overlaps)
    sequences = [stage.admit(prompt, image="cat") for prompt in ("one", "two", "three")]
    other = stage.admit("four", image="dog")
    stage.step()
    assert [bool(sequence.slot) for sequence in sequences] == [True, False, False]
    assert other.slot, "those who wait for the cat stand in nobody's way"
    stage.run()
    assert stage.runtime.num_images == 2
    assert [sequence.cached_tokens for sequence in sequences] == [0, 5, 5]
    assert [said(s) for s in sequences] == [alone(p, image="cat") for p in ("one", "two", "three")]


@both
@pytest.mark.parametrize("end", ["cancelled", "not finite"])
def test_who_waits_for_an_image_computes_it_when_the_first_one_fails(overlaps: bool, end: str) -> None:
    stage = Stage(overlaps=overlaps, step_tokens=6)
    stage.runtime.not_finite.add(ord("!"))
    first, second = stage.admit("one!", image="cat"), stage.admit("two", image="cat")
    stage.step()
    if end == "cancelled":
        stage.scheduler.end(first)
    stage.run()
    assert said(first) == [] and stage.runtime.num_images == 2
    assert (said(second), second.cached_tokens) == (alone("two", image="cat"), 0)


@both
def test_an_answer_of_one_sample_leaves_its_image_to_others(overlaps: bool) -> None:
    stage = Stage(overlaps=overlaps)
    first, second = stage.admit("one", 1, "cat"), stage.admit("two", 1, "cat")
    assert [update[0] for update in stage.run()] == [first, second]
    assert second.cached_tokens == 5


def test_the_same_prompt_is_found_up_to_its_last_full_page_but_one_position_is_computed() -> None:
    stage = Stage()
    for prompt, cached in (("x" * 10, 0), ("x" * 10, 5), ("x" * 11, 10), ("x" * 13 + "y", 10)):
        sequence = stage.admit(prompt, num_tokens=1)
        stage.run()
        assert sequence.cached_tokens == cached
        assert said(sequence) == alone(prompt, 1)


def test_what_was_said_is_found_again() -> None:
    stage = Stage()
    first = stage.admit("what is this?", num_tokens=9, image="cat")
    stage.run()
    follow_up = "what is this?" + "".join(map(chr, said(first))) + "and that?"
    second = stage.admit(follow_up, image="cat")
    stage.run()
    # All but the last sample was fed: 5 + 13 + 8 positions.
    assert second.cached_tokens == 25
    assert said(second) == alone(follow_up, image="cat")


def test_two_who_compute_the_same_text_at_once_end_up_on_the_same_pages() -> None:
    stage = Stage()
    first, second = stage.admit("x" * 12, 6), stage.admit("x" * 12, 6)
    stage.step()
    mine, others = first.running.pages, second.running.pages
    assert mine[:2] == others[:2] and mine[2] != others[2]
    stage.run()
    assert said(first) == said(second) == alone("x" * 12, 6)


def test_the_image_not_used_for_longest_is_forgotten_first() -> None:
    stage = Stage(num_pages=9, max_context=40)

    def ask(image: str, prompt: str = "x", num_tokens: int = 1) -> int:
        sequence = stage.admit(prompt, num_tokens, image)
        stage.run()
        return sequence.cached_tokens

    for image in ("cat", "dog", "elk"):
        assert ask(image) == 0
    assert ask("cat") == 5
    assert ask("gnu", "x" * 25) == 0  # takes 6 of 8 pages: of three old ones, one goes
    assert [ask("elk"), ask("dog")] == [5, 0]


@both
def test_without_the_prefix_cache_all_is_computed_and_nothing_kept(overlaps: bool) -> None:
    stage = Stage(prefix_cache=False, overlaps=overlaps)
    sequences = [stage.admit("what?", image="cat") for _ in range(3)]
    stage.run()
    assert stage.runtime.num_images == 3
    assert [said(sequence) for sequence in sequences] == [alone("what?", image="cat")] * 3
    assert [sequence.cached_tokens for sequence in sequences] == [0, 0, 0]
    assert stage.pool.num_free == 40
