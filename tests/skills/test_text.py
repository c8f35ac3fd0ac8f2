from dataclasses import replace
from typing import Any

import pytest
from goldens import golden_language

from kestrel_core.loop.sequence import Outcome, Reply
from kestrel_core.loop.step import Coord, Kind, PreparedImage, Sample, Size
from kestrel_core.moondream.config import LEGACY_DIALOG
from kestrel_core.protocol.errors import InvalidRequest
from kestrel_core.protocol.messages import Request, Settings
from kestrel_core.skills.registry import SkillRegistry
from kestrel_core.skills.spec import Language
from kestrel_core.skills.text import CaptionSkill, QuerySkill

MD2, MD3 = golden_language("md2"), golden_language("md3")
LEGACY = Language(replace(MD2.config, dialog=LEGACY_DIALOG), MD2.tokenizer)
IMAGE = PreparedImage("picture", None, (1, 1))
EOS, ANSWER, THINKING, COORD, SIZE, START_POINTS, END_POINTS = 0, 3, 4, 5, 6, 7, 9


def query(image: PreparedImage | None = IMAGE, settings: Settings | None = None, **arguments: Any) -> Request:
    return Request("query", {"question": "how many?", **arguments}, image, settings or Settings())


def prompt(language: Language, request: Request) -> tuple[Any, ...]:
    return QuerySkill().prompt(request, language).inputs


def reply_to(language: Language = MD3, **settings: Any) -> Reply:
    return QuerySkill().reply(query(settings=Settings(**settings)), language)


def reasoning_reply(language: Language = MD3, **settings: Any) -> Reply:
    return QuerySkill().reply(query(settings=Settings(**settings), reasoning=True), language)


def letters(text: str, language: Language = MD3) -> list[int]:
    """Token by token, each a single letter's, so that words cross token borders."""
    return [i for letter in text for i in language.tokenizer.encode(letter)]


def say(reply: Reply, tokens: list[int]) -> list[Outcome]:
    return [reply.take(Sample(token)) for token in tokens]


def refused(request: Request, language: Language = MD3) -> str:
    with pytest.raises(InvalidRequest) as caught:
        SKILLS.check(request).prompt(request, language)
    return str(caught.value)


SKILLS = SkillRegistry([QuerySkill(), CaptionSkill()])


# Prompts.


def test_a_question_stands_between_prefix_and_suffix_of_its_generation() -> None:
    two, three = (language.tokenizer.encode("how many?") for language in (MD2, MD3))
    assert prompt(MD2, query()) == (1, 548, 2, *two, 3, 3), "Moondream 2 repeats the suffix"
    assert prompt(MD3, query()) == (1, 330, 509, 104, 2, *three, 3)
    assert prompt(LEGACY, query()) == (1, 548, 2, *MD2.tokenizer.encode(" how many?"), 3)


def test_reasoning_ends_the_prompt_with_the_thinking_token() -> None:
    two, three = (language.tokenizer.encode("how many?") for language in (MD2, MD3))
    assert prompt(MD2, query(reasoning=True)) == (1, 548, 2, *two, ANSWER, THINKING)
    assert prompt(MD3, query(reasoning=True)) == (1, 330, 509, 104, 2, *three, THINKING)


def test_without_a_picture_a_prompt_begins_with_bos() -> None:
    made = QuerySkill().prompt(query(image=None), MD3)
    assert made.inputs == (0, *prompt(MD3, query())) and not made.with_image
    assert QuerySkill().prompt(query(), MD3).with_image


def test_a_question_is_encoded_as_given() -> None:
    spaced = query(question="  why <|endoftext|>? ")
    words = MD3.tokenizer.encode("  why <|endoftext|>? ")
    assert prompt(MD3, spaced)[5:-1] == tuple(words) and EOS not in words


def test_spatial_references_come_before_the_question() -> None:
    inputs = prompt(MD3, query(spatial_refs=[[0.25, 0.75], [0.1, 0.2, 0.5, 0.8]]))
    expected = (Coord(0.25), Coord(0.75), Coord(0.3), Coord(0.5), Size(0.4, 0.6000000000000001))
    assert inputs[5:10] == expected
    assert inputs[:5] + inputs[10:] == prompt(MD3, query())


@pytest.mark.parametrize("language", [MD2, MD3], ids=["md2", "md3"])
@pytest.mark.parametrize("length", ["short", "normal", "long", None])
def test_a_caption_is_its_template(language: Language, length: str | None) -> None:
    request = Request("caption", {"length": length} if length else {}, IMAGE)
    template = getattr(language.config.tokenizer.templates.caption, length or "normal")
    assert CaptionSkill().prompt(request, language).inputs == template


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (Request("query", {}, IMAGE), "QUESTION is required for query"),
        (query(question=" \n"), "QUESTION is empty"),
        (query(question=7), "QUESTION is 7; it must be a string"),
        (query(reasoning="yes"), "REASONING is 'yes'; it must be true or false"),
        (query(image=None, spatial_refs=[[0.1, 0.2]]), "SPATIAL_REFS need an IMAGE"),
        (query(spatial_refs=[[0.1]]), "a row of 1 numbers; a point has 2, a box has 4"),
        (query(spatial_refs=[[0.1, 0.2, 0.3]]), "a row of 3 numbers"),
        (query(spatial_refs=[0.1, 0.2]), "SPATIAL_REFS must be rows of 2 or 4 numbers"),
        (query(spatial_refs=5), "SPATIAL_REFS is 5; it must be a list"),
        (query(spatial_refs=[["a", "b"]]), "SPATIAL_REFS must be rows"),
        (query(spatial_refs=[["0.1", 0.2]]), "SPATIAL_REFS must be rows"),
        (query(spatial_refs=[[False, 0.2]]), "SPATIAL_REFS must be rows"),
        (query(spatial_refs=[[0.1, 1.5]]), "numbers are fractions of the picture, from 0 to 1"),
        (query(spatial_refs=[[0.1, float("nan")]]), "from 0 to 1"),
        (query(spatial_refs=[[0.5, 0.1, 0.4, 0.2]]), "it must be x_min, y_min, x_max, y_max"),
        (query(spatial_refs=[[0.5, 0.5]] * 101), "101 entries; at most 100 are taken"),
        (Request("caption", {"length": "epic"}, IMAGE), 'LENGTH is "epic"; it can be short, normal or long'),
        (Request("caption", {}), "IMAGE is required for caption"),
        (Request("paint", {}), 'there is no skill "paint"; known are query, caption'),
    ],
)
def test_arguments_that_cannot_be_served_are_named(request_: Request, said: str) -> None:
    assert said in refused(request_)


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (query(image=None), "answers no question without a picture"),
        (query(reasoning=True), "REASONING is not known to this model"),
        (query(spatial_refs=[[0.1, 0.2]]), "a model that understands them"),
    ],
)
def test_old_releases_know_less(request_: Request, said: str) -> None:
    assert said in refused(request_, LEGACY)


# Replies.


def test_an_answer_ends_at_the_end_token_which_is_not_part_of_it() -> None:
    reply = reply_to()
    outcomes = say(reply, [*letters("two red circles"), EOS])
    assert [outcome.text for outcome in outcomes if outcome.text] == ["two ", "red "]
    assert outcomes[-1] == Outcome("", "circles", finish="stop")
    assert all(outcome.finish is None and outcome.feed is None for outcome in outcomes[:-1])
    assert reply.output() == {"answer": "two red circles"}


def test_an_answer_may_be_empty() -> None:
    reply = reply_to()
    assert say(reply, [EOS]) == [Outcome(finish="stop")]
    assert reply.output() == {"answer": ""}


def test_an_answer_ends_after_max_tokens() -> None:
    reply = reply_to(max_tokens=5)
    outcomes = say(reply, letters("ab cd"))
    assert outcomes[-1] == Outcome("", "cd", finish="length") and outcomes[-2].finish is None
    assert reply.output() == {"answer": "ab cd"}


@pytest.mark.parametrize(("language", "limit"), [(MD2, 768), (MD3, 768)])
def test_the_model_sets_the_limit_that_nobody_asked_for(language: Language, limit: int) -> None:
    reply = reply_to(language)
    outcomes = say(reply, letters("a", language) * limit)
    assert [outcome.finish for outcome in outcomes] == [None] * (limit - 1) + ["length"]


def test_an_unfinished_answer_gives_what_was_shown() -> None:
    reply = reply_to()
    say(reply, letters("two red cir"))
    assert reply.output() == {"answer": "two red "}
    assert reply.cut() == Outcome("", "cir", finish="length")
    assert reply.output() == {"answer": "two red cir"}


def test_the_answer_token_is_suppressed_in_all_steps_but_the_first() -> None:
    reply = reply_to()
    assert reply.readout().suppressed == ()
    assert reply.readout(ahead=1).suppressed == (ANSWER,)
    say(reply, letters("a"))
    assert reply.readout().suppressed == (ANSWER,) and reply.readout().kind is Kind.TOKEN
    old = reply_to(LEGACY)
    say(old, letters("a"))
    assert old.readout().suppressed == ()


def test_coordinate_tokens_of_an_answer_are_plain_silent_tokens() -> None:
    reply = reply_to()
    say(reply, [*letters("at "), COORD, SIZE, START_POINTS, *letters("x"), EOS])
    assert reply.output() == {"answer": "at x"}
    assert reply_to().readout().kind is Kind.TOKEN


def test_captions_reply_under_their_own_name() -> None:
    reply = CaptionSkill().reply(Request("caption", {}, IMAGE), MD3)
    say(reply, [*letters("a dog"), EOS])
    assert reply.output() == {"caption": "a dog"}


# Reasoning.


def test_reasoning_ends_at_the_answer_token_and_prompts_for_the_answer() -> None:
    reply = reasoning_reply()
    outcomes = say(reply, letters("I see"))
    assert [outcome.reasoning for outcome in outcomes] == ["", "I ", "", "", ""], "word by word"
    assert reply.take(Sample(ANSWER)) == Outcome(feed=(ANSWER,), reasoning="see")
    assert say(reply, [*letters("two"), EOS])[-1] == Outcome("", "two", finish="stop")
    assert reply.output() == {"reasoning": {"text": "I see", "grounding": []}, "answer": "two"}


def test_reasoning_and_answer_have_max_tokens_each() -> None:
    reply = reasoning_reply(max_tokens=2)
    a, b, c, d = letters("abcd")
    assert say(reply, [a, b]) == [Outcome(), Outcome(feed=(b, ANSWER), reasoning="ab")], (
        "the last thought is fed before the suffix"
    )
    assert say(reply, [c, d])[-1].finish == "length"
    assert reply.output() == {"reasoning": {"text": "ab", "grounding": []}, "answer": "cd"}


def test_reasoning_cut_at_a_coordinate_feeds_the_coordinate() -> None:
    reply = reasoning_reply(max_tokens=1)
    assert reply.take(Sample(COORD, coord=0.5)) == Outcome(feed=(Coord(0.5), ANSWER))


def test_what_is_suppressed_in_reasoning_and_then_in_the_answer() -> None:
    reply = reasoning_reply()
    assert reply.readout().suppressed == () and reply.readout().kind is Kind.GROUNDED
    say(reply, letters("a"))
    assert reply.readout().suppressed == (EOS, SIZE) and reply.readout().kind is Kind.GROUNDED
    say(reply, [ANSWER])
    assert reply.readout().suppressed == () and reply.readout().kind is Kind.TOKEN
    say(reply, letters("a"))
    assert reply.readout().suppressed == (ANSWER,)


def test_grounded_points_belong_to_the_words_between_their_tokens() -> None:
    reply = reasoning_reply()
    say(reply, [*letters("I see "), START_POINTS])
    for x in (0.25, 0.5, 0.75, 0.125):
        reply.take(Sample(COORD, coord=x))
    say(reply, [*letters("2 dogs"), END_POINTS, *letters(".")])
    reply.take(Sample(COORD, coord=0.9))  # half a pair: dropped
    say(reply, [START_POINTS, ANSWER, EOS])
    assert reply.output()["reasoning"] == {
        "text": "I see 2 dogs.",
        "grounding": [{"start_idx": 6, "end_idx": 12, "points": [[0.25, 0.5], [0.75, 0.125]]}],
    }


def test_unfinished_reasoning_is_shown_with_an_empty_answer() -> None:
    reply = reasoning_reply()
    say(reply, letters("I th"))
    assert reply.output() == {"reasoning": {"text": "I th", "grounding": []}, "answer": ""}
    assert reply.cut().finish == "length"


def test_a_skill_can_be_added_without_touching_the_others() -> None:
    more = SKILLS.with_skill(QuerySkill())
    assert more["caption"] is SKILLS["caption"] and more is not SKILLS
    assert (SKILLS["query"].greedy, SKILLS["caption"].greedy) == (False, False)
