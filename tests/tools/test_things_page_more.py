"""What people ask about pages beside what a line tells: sums, limits, what is below what, if it is right."""

import re
from collections import Counter

import pytest

from kestrel_tools.things.language.pages.facts import page_text
from kestrel_tools.things.language.pages.view import View, number_in
from kestrel_tools.things.scene import Scene
from tests.page_scenes import answers, asked, mentioned, page_of, plain, told

ORDER = ("first", "second", "third", "fourth", "fifth", "sixth")


@pytest.fixture
def plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    plain(monkeypatch)


def table(kind: str, title: str, *rows: tuple[str, str]) -> Scene:
    return page_of(kind, title, *((one, told, {"thing": one, "detail": told}) for one, told in rows))


MENU = table("menu", "Lunch", ("Tomato soup", "$4"), ("Beer", "$3"), ("Brownie", "$7"))


def test_a_price_that_somebody_names_is_right_or_wrong(plainly: None) -> None:
    assert answers(MENU, "Does the beer cost \\$3\\?") == {"yes"}
    assert answers(MENU, "(Does the beer cost|Is the beer|Is the price of the beer) \\$[124-9]\\?") == {"no"}
    assert answers(MENU, "Is the beer the cheapest|Does the brownie cost the most") == {"yes"}
    assert answers(MENU, "Is the brownie the cheapest") == {"no"}


def test_prices_are_added_and_compared_with_a_limit(plainly: None) -> None:
    assert answers(MENU, "What do I pay for the (beer and the brownie|brownie and the beer)") == {"$10"}
    assert answers(MENU, "difference (in price )?between the brownie and the beer") == {"$4"}
    assert answers(MENU, "I (pay|paid) for the beer with \\$5") == {"$2"}
    assert answers(MENU, "Which dishes cost less than \\$5|Which things cost less than \\$5") == {
        "Tomato soup, Beer"
    }
    over = "How many (dishes|things|prices) (cost more than|are over|are above) \\$[456]\\?"
    assert answers(MENU, over, tries=8000) == {"1"}
    assert answers(MENU, "second cheapest") == {"Tomato soup"}


def test_prices_in_cents_are_not_added(plainly: None) -> None:
    scene = table("menu", "Lunch", ("Soup", "4.15"), ("Beer", "3.85"))
    assert not answers(scene, "together|in total|plus|difference|change")


def test_a_menu_has_something_to_drink_and_for_dessert(plainly: None) -> None:
    assert answers(MENU, "^What could I drink|thirsty, what") == {"Beer"}
    assert answers(MENU, "for dessert") == {"Brownie"} and answers(MENU, "Is there (a|any) soup") == {"yes"}
    assert answers(MENU, "Is there (a|any) salad") == {"no"}
    unknown = table("menu", "Lunch", ("Blorp", "$4"), ("Beer", "$3"))
    assert not answers(unknown, "What could I (eat|drink)|dessert")
    assert answers(unknown, "(any|some)thing to drink") == {"yes"}


def test_lines_stand_below_each_other(plainly: None) -> None:
    assert answers(MENU, "(under|below|beneath|after) Beer") == {"Brownie $7"}
    assert answers(MENU, "(above|over|before) Beer") == {"Tomato soup $4"}
    assert answers(MENU, "between (Tomato soup and Brownie|Brownie and Tomato soup)") == {"Beer $3"}
    assert answers(MENU, "(under|below) the (title|heading)") == {"Tomato soup $4"}
    assert answers(MENU, "How many lines") == {"4"}
    assert not answers(table("menu", "", ("Pea soup", "$4"), ("Soup", "$3")), "(under|below) (Pea s|S)oup")


def test_the_next_one_is_after_now(plainly: None) -> None:
    scene = table("departures", "Trains", ("Rome", "9:00"), ("Oslo", "12:30"))
    assert answers(scene, "It's 8:\\d\\d.* Where does the next train go") == {"Rome"}
    assert answers(scene, "It's 12:\\d\\d.* When does the next train leave") == {"12:30"}
    assert answers(scene, "Does the train to rome leave at 12:30") == {"no"}
    assert answers(scene, "[Ww]here can I go after 10:00|destinations are there after 10:00") == {"Oslo"}


def hours(*rows: tuple[str, str, str]) -> Scene:
    rowed = []
    for day, opens, closes in rows:
        text = f"{opens}-{closes}" if closes else "Closed"
        parts = {"thing": day, "detail": text} | ({"opens": opens, "closes": closes} if closes else {})
        rowed.append((day, text, parts))
    return page_of("opening hours", "Hours", *rowed)


def test_a_shop_is_open_on_some_days(plainly: None) -> None:
    scene = hours(("Mon-Fri", "9:00", "18:00"), ("Sat", "9:00", "13:00"), ("Sun", "", ""))
    assert answers(scene, "How many days") == {"6"} and answers(scene, "seven days a week") == {"no"}
    assert answers(scene, "close the earliest") == {"Sat"}
    assert answers(scene, "When do they (open|close) on Sunday") == {"Closed"}
    assert answers(scene, "Do they close at 18:00 on Tuesday") == {"yes"}
    assert not answers(scene, "on the weekend\\?"), "it is on one of its days"
    assert answers(hours(("Sat", "9:00", "13:00"), ("Sun", "9:00", "13:00")), "on the weekend") == {"yes"}


def test_an_invitation_is_for_whom_it_says(plainly: None) -> None:
    rows = (("For Anna", "", {"name": "Anna"}), ("When:", "May 3", {"day": "May 3"}))
    scene = page_of("invitation", "Party!", *rows)
    assert answers(scene, "^Is (it|this|the invitation) (meant )?for \\w+\\?") == {"yes", "no"}
    assert answers(scene, "(on|place on) may 3\\?") == {"yes"}
    assert answers(scene, "^(Is (it|this|the party)|Does .* place) on (?!may 3)") == {"no"}
    assert answers(scene, "Is there a phone number on it|Is there a price") == {"no"}
    assert answers(scene, "Does it say (on )?which day") == {"yes"}


def test_rules_mean_something(plainly: None) -> None:
    scene = page_of("warning", "", ("No smoking", "", {"no": "smoke"}))
    assert answers(scene, "cigarette") == {"no"}
    quiet = page_of("warning", "", ("Be quiet", "", {"must": "be quiet"}))
    assert answers(quiet, "be loud|talk loudly") == {"no"}
    assert not answers(quiet, "play loud music"), "people know the answer"


def test_two_buttons_are_above_each_other(plainly: None) -> None:
    rows = (("Retry", "", {"button": "Retry"}), ("Help", "", {"button": "Help"}))
    scene = page_of("error message", "Error", *rows)
    assert answers(scene, "lower button|button is at the bottom") == {"Help"}
    assert not answers(scene, "left|right button")


def test_random_pages_are_asked_what_is_true() -> None:
    seen = Counter[str]()
    for scene, page, fact in asked():
        seen[fact.kind] += 1
        if fact.kind == "page beside":
            assert fact.answer in [text for text, _ in View(scene, page).lines], fact
        elif fact.kind == "page nth value" and (
            found := re.search("|".join((*ORDER, "last")), fact.question)
        ):
            details = [detail for _, _, detail in told(page)]
            assert fact.answer == details[-1 if found[0] == "last" else ORDER.index(found[0])], fact
        elif fact.kind == "page which":
            on_it = fact.answer.lower() in page_text(page).lower()
            no = re.search(r"\bnot\b|missing", fact.question)
            assert fact.answer in ("yes", "no") or on_it != bool(no), fact
        elif fact.kind == "page sum" and "together" in fact.question:
            named = mentioned(page, fact.question)
            whole = sum(number_in(detail) for _, _, detail in named)
            assert len(named) < 2 or number_in(fact.answer) == pytest.approx(whole), fact
    kinds = ("beside", "nth value", "which", "sum", "several", "claim", "next", "second", "sort", "given")
    assert all(seen[f"page {kind}"] > 9 for kind in (*kinds, "days", "colour")), seen


def test_a_price_that_is_claimed_on_a_random_page_is_the_printed_one() -> None:
    compared = "than|cheap|most|least|highest|lowest|expensive|below|under|above|over|enough|have"
    seen = Counter[str]()
    for _, page, fact in asked():
        priced = page.kind in ("menu", "price list", "receipt") and fact.kind == "page claim"
        if not priced or re.search(compared, fact.question):
            continue
        [(_, _, printed)] = mentioned(page, fact.question)
        claimed = [float(number) for number in re.findall(r"\d+(?:\.\d+)?", fact.question)]
        assert fact.answer == ("yes" if number_in(printed) in claimed else "no"), fact
        seen[fact.answer] += 1
    assert min(seen["yes"], seen["no"]) > 30, seen
