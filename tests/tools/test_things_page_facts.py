"""Pages that a test names are asked what they tell, and nothing that people would differ on."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

from kestrel_tools.things.language.fact import CANNOT_TELL
from kestrel_tools.things.language.pages.facts import page_caption, page_text, plain_name
from kestrel_tools.things.language.pages.view import View, akin, is_many, number_in, stems_of
from kestrel_tools.things.scene import Scene
from tests.page_scenes import answers, page_of, pages, plain
from tests.thing_scenes import at


@pytest.fixture
def plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    plain(monkeypatch)


def menu(*prices: str) -> Scene:
    dishes = ("Soup", "Fries", "Pizza")
    return page_of(
        "menu", "Lunch", *((d, p, {"thing": d, "detail": p}) for d, p in zip(dishes, prices, strict=False))
    )


def test_a_menu_tells_its_prices(plainly: None) -> None:
    scene = menu("4.50", "3.00", "9.00")
    assert answers(scene, "^How much is the soup|^What does the soup cost") == {"4.50"}
    assert answers(scene, "^How much are the fries") == {"3.00"}
    assert answers(scene, "[Cc]heapest (dish|thing|one|item)?.?\\?$") >= {"Fries"}
    assert answers(scene, "What costs 9.00") == {"Pizza"}
    assert answers(scene, "[Ww]hat is listed last|Which dish is last") == {"Pizza"}
    assert answers(scene, "kind of document") == {"menu"}
    assert answers(scene, "Is (this|it|that) a receipt\\?") == set(), "some menus look like one"


def test_where_two_are_equal_nobody_is_asked_which_is_cheaper(plainly: None) -> None:
    scene = menu("4.50", "4.50", "4.50")
    assert not answers(
        scene, "cheapest|most expensive|(more|less), |(more|less) than the|costs the|What (costs|is) 4.50"
    )


def test_nobody_wins_a_draw(plainly: None) -> None:
    rows = tuple((team, "2", {"thing": team, "detail": "2"}) for team in ("Lions", "Bears"))
    assert not answers(
        page_of("scoreboard", "", *rows), r"\bwon\b|winner|lost|loser|ahead|beat|Did \w+ (win|lose)"
    )


def test_an_invitation_tells_who_when_and_where(plainly: None) -> None:
    scene = page_of(
        "invitation",
        "Party!",
        ("Anna turns 7", "", {"name": "Anna", "age": "7"}),
        ("When:", "Friday", {"day": "Friday"}),
        ("Where:", "Zoo", {"place": "Zoo"}),
    )
    assert answers(scene, "Whose birthday is it|Who is the party for") == {"Anna"}
    assert answers(scene, "How many candles") == {"7"}
    assert answers(scene, "What date does (it|this|the party) (happen|take place)") == {"Friday"}
    assert answers(scene, "What is the venue") == {"Zoo"}
    assert answers(scene, "number (should|can|do|must) I call|the (phone|telephone) number") == {CANNOT_TELL}


def test_rules_forbid_and_demand(plainly: None) -> None:
    scene = page_of(
        "rules", "Rules", ("No smoking", "", {"no": "smoke"}), ("Be quiet", "", {"must": "be quiet"})
    )
    assert answers(scene, "^(May|Can) I smoke|allowed to smoke (here)?\\?$") >= {"no"}
    assert answers(scene, "^(May|Can) I smoke") == {"no"} and answers(scene, "forbidden to smoke") == {"yes"}
    assert answers(scene, "(Must|Should) I be quiet") == {"yes"}
    assert answers(scene, "What is (forbidden|prohibited)") == {"smoking"}
    assert answers(scene, "(May|Can) I swim", tries=9000) == {CANNOT_TELL}


def test_buttons_are_pressed_for_what_they_say(plainly: None) -> None:
    rows = (
        ("Disk is full", "", {"message": "Disk is full"}),
        ("Retry", "", {"button": "Retry"}),
        ("Help", "", {"button": "Help"}),
    )
    scene = page_of("error message", "Error", *rows)
    assert answers(scene, "to try again") == {"Retry"} and answers(scene, "to get help") == {"Help"}
    assert answers(scene, "What went wrong") == {"Disk is full"}
    assert answers(scene, "How many buttons") == {"2"}
    assert answers(scene, "Which buttons are there") == {"Retry, Help"}
    doubtful = page_of("dialog", "Quit?", ("No", "", {"button": "No"}), ("Cancel", "", {"button": "Cancel"}))
    assert not answers(doubtful, "to stop it|to refuse")


def test_a_thing_beside_the_text_is_named(plainly: None) -> None:
    scene = replace(menu("1", "2"), items=(at("dog", 0.9, 0.9),))
    assert answers(scene, "Apart from the text") == {"dog"}
    assert answers(scene, "Does it have a picture") == {"yes"}
    assert page_caption(scene, "short") == "A menu and a dog."
    assert page_caption(scene, "normal") == "A menu and a dog. The text says Lunch, Soup 1, Fries 2."


def test_a_page_is_named_where_its_title_tells() -> None:
    names = {plain_name(page) for _, page in pages()}
    assert {"", "menu", "invitation", "shopping list"} <= names
    for _, page in pages():
        if page.title is None:
            assert plain_name(page) == ""


def test_absent_things_have_nothing_to_do_with_what_is_listed() -> None:
    assert akin(stems_of("fish"), stems_of("tuna salad")) and akin(
        stems_of("tomatoes"), stems_of("Tomato soup")
    )
    assert not akin(stems_of("rice"), stems_of("apple pie"))
    rng = Random(9)
    for scene, page in pages():
        word = View(scene, page).absent(rng)
        assert word is None or word.lower() not in page_text(page).lower()


@pytest.mark.parametrize(
    ("read", "text", "right"),
    [
        (number_in, "$4.50", 4.5),
        (number_in, "9:15", 555.0),
        (number_in, "12 pm", 720.0),
        (number_in, "-6 C", -6.0),
        (is_many, "fish and chips", True),
        (is_many, "corn on the cob", False),
        (is_many, "Paris", False),
    ],
)
def test_numbers_and_plurals_are_read(read: Callable[[str], object], text: str, right: object) -> None:
    assert read(text) == right


def test_words_that_fit_two_lines_are_not_asked(plainly: None) -> None:
    scene = page_of("poster", "Jazz", ("Friday", "", {"day": "Friday"}), ("9 pm", "", {"time": "9 pm"}))
    assert not answers(scene, "^When (is|does)") and answers(scene, "What time does") == {"9 pm"}
    both = page_of("card", "Thank you", ("To Ann", "", {"name": "Ann"}), ("From Bo", "", {"sender": "Bo"}))
    assert not answers(both, "(What|Which) name") and answers(both, "Who is it from") == {"Bo"}
