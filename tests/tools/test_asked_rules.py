"""Which answers a rule of `kestrel eval asked` takes."""

from typing import Any

import pytest

from kestrel_core.protocol.errors import EngineFailed
from kestrel_tools.asked.rules import Rule

LEFT, RIGHT = (0.1, 0.1, 0.4, 0.4), (0.3, 0.1, 0.6, 0.4)  # they overlap
NAMES = ("cow", "dog", "police car", "orange", "saw", "star")


def accepts(rule: Rule, answer: str) -> bool:
    return rule.accepts("query", {"answer": answer}, NAMES)


@pytest.mark.parametrize("answer", ["3", "Three.", "There are three of them", "3 cows, that is three"])
def test_a_number_is_taken_as_digits_and_as_a_word(answer: str) -> None:
    assert accepts(Rule(number=3), answer)


@pytest.mark.parametrize("answer", ["", "4", "30", "3.5", "3 or 4", "none", "no"])
def test_another_number_or_two_of_them_are_wrong(answer: str) -> None:
    assert not accepts(Rule(number=3), answer)


def test_none_is_zero() -> None:
    assert accepts(Rule(number=0), "There are none.")


@pytest.mark.parametrize(("answer", "right"), [("47", True), ("42.8", True), ("48", False), ("42", False)])
def test_a_number_may_be_off_by_its_share(answer: str, right: bool) -> None:
    assert accepts(Rule(number=45, within=0.05), answer) is right


def test_yes_and_no_are_told_by_the_first_word() -> None:
    assert accepts(Rule(yes=True), "Yes, there is no doubt")
    assert accepts(Rule(yes=False), "no")
    assert not accepts(Rule(yes=True), "No, but yes")
    assert not accepts(Rule(yes=False), "Not sure")


@pytest.mark.parametrize("answer", ["a cow", "The Cows!", "COWS", "cow's"])
def test_case_punctuation_and_plural_do_not_count(answer: str) -> None:
    assert accepts(Rule(any=("cow",)), answer)


@pytest.mark.parametrize("answer", ["cowboy", "scow", "", "a cow and a dog"])
def test_a_part_of_a_word_and_a_thing_that_is_not_asked_for_are_wrong(answer: str) -> None:
    assert not accepts(Rule(any=("cow",)), answer)


def test_things_that_are_not_asked_for_may_be_named_where_the_rule_says_so() -> None:
    assert accepts(Rule(any=("cow",), others=True), "a cow and a dog")


def test_a_name_inside_an_accepted_one_is_no_other_thing() -> None:
    assert Rule(any=("police car",)).accepts("query", {"answer": "a police car"}, ("car",))


def test_a_word_that_is_also_a_colour_or_a_verb_names_no_other_thing() -> None:
    assert accepts(Rule(any=("cow",)), "I saw an orange cow")


def test_a_second_colour_is_wrong_where_a_colour_is_asked_for() -> None:
    rule = Rule(any=("red",))
    assert accepts(rule, "dark red")
    assert not accepts(rule, "red and blue")
    assert accepts(Rule(any=("gray",)), "Grey.")


def test_what_may_come_after_is_wrong_when_it_comes_first() -> None:
    rule = Rule(any=("dog",), after=("cat",))
    assert accepts(rule, "The dog is bigger than the cat.")
    assert not accepts(rule, "The cat is bigger than the dog.")


def test_of_every_group_one_is_named() -> None:
    rule = Rule(all=(("cow", "cattle"), ("dog",)))
    assert accepts(rule, "dogs and cattle")
    assert not accepts(rule, "cow, cattle")


def test_some_of_the_groups_are_enough_where_the_rule_says_so() -> None:
    rule = Rule(all=(("cow",), ("dog",), ("star",)), least=2)
    assert accepts(rule, "star, cow")
    assert not accepts(rule, "star")


@pytest.mark.parametrize(
    "answer",
    [
        "I can't tell.",
        "I can\u2019t tell",
        "Sorry, I cannot really say",
        "I don't know.",
        "That is not shown.",
        "I only know shapes.",
    ],
)
def test_that_it_cannot_be_told_is_said_in_several_ways(answer: str) -> None:
    assert accepts(Rule(unknown=True), answer)


@pytest.mark.parametrize("answer", ["Bob", "5", "You can tell it", "I can see a dog"])
def test_a_guess_does_not_say_that_it_cannot_be_told(answer: str) -> None:
    assert not accepts(Rule(unknown=True), answer)


def test_times_and_several_words_are_read_as_they_stand() -> None:
    assert accepts(Rule(any=("10:45",)), "At 10.45 or 10:45")
    assert not accepts(Rule(any=("10:45",)), "10:46")
    assert accepts(Rule(any=("zoo day",)), 'It says "ZOO DAY".')
    assert not accepts(Rule(any=("zoo day",)), "day at the zoo")


def boxes(*given: tuple[float, ...]) -> dict[str, Any]:
    return {"objects": [dict(zip(("x_min", "y_min", "x_max", "y_max"), box, strict=True)) for box in given]}


def points(*given: tuple[float, float]) -> dict[str, Any]:
    return {"points": [{"x": x, "y": y} for x, y in given]}


def test_boxes_are_right_when_all_are_found_and_no_others() -> None:
    rule = Rule(boxes=(LEFT, RIGHT))
    assert rule.accepts("detect", boxes((0.31, 0.1, 0.6, 0.4), LEFT))
    assert not rule.accepts("detect", boxes(LEFT))
    assert not rule.accepts("detect", boxes(LEFT, RIGHT, (0.7, 0.7, 0.9, 0.9)))
    assert not rule.accepts("detect", boxes(LEFT, (0.7, 0.7, 0.9, 0.9)))
    assert Rule(boxes=()).accepts("detect", boxes())


def test_every_place_has_a_point_of_its_own() -> None:
    rule = Rule(points=(LEFT, RIGHT))
    assert rule.accepts("point", points((0.45, 0.2), (0.35, 0.2)))
    assert not rule.accepts("point", points((0.5, 0.2), (0.55, 0.3)))
    assert not rule.accepts("point", points((0.2, 0.2)))
    assert not rule.accepts("point", points((0.2, 0.2), (0.5, 0.2), (0.9, 0.9)))


def test_an_error_is_never_right() -> None:
    assert not Rule(boxes=()).accepts("detect", EngineFailed("broken"))
    assert not Rule(unknown=True).accepts("query", EngineFailed("unknown"))
