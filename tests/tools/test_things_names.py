"""The names of things are one thing's each, and read as English."""

import pytest

from kestrel_tools.scenes.world import COLOURS, SHAPES
from kestrel_tools.things.names import KINDS, is_plural, nouns, plural, strangers, with_article


def test_every_name_means_one_thing() -> None:
    names = [name for noun in nouns() for name in (noun.name, *noun.also)]
    assert len(names) == len(set(names))
    assert not {*names} & {*SHAPES, *KINDS, *strangers()}


def test_no_thing_is_drawn_by_the_icon_of_another() -> None:
    icons = [icon for noun in nouns() for icon in noun.icons]
    assert len(icons) == len(set(icons))


def test_only_one_name_is_also_a_colour() -> None:
    assert {noun.name for noun in nouns()} & {*COLOURS} == {"orange"}


def test_there_are_more_than_a_hundred_things_of_known_kinds() -> None:
    assert len(nouns()) > 100
    assert {kind for noun in nouns() for kind in noun.kinds} == {*KINDS}


@pytest.mark.parametrize(
    ("one", "many"),
    [("dog", "dogs"), ("fox", "foxes"), ("mouse", "mice"), ("strawberry", "strawberries"), ("key", "keys"),
     ("tomato", "tomatoes"), ("peach", "peaches"), ("grapes", "grapes"), ("hot dog", "hot dogs")],
)  # fmt: skip
def test_plurals(one: str, many: str) -> None:
    assert plural(one) == many


def test_articles_leave_pairs_and_substances_alone() -> None:
    told = [with_article(name) for name in ("dog", "apple", "grapes", "bread", "loaf of bread", "red circle")]
    assert told == ["a dog", "an apple", "grapes", "bread", "a loaf of bread", "a red circle"]
    assert is_plural("grapes") and not is_plural("bunch of grapes")
