"""What is asked about things in cells, and about print at them, has the true answer."""

from dataclasses import replace

import pytest

from kestrel_tools.things.language import spelling
from kestrel_tools.things.language.fact import caption
from tests.card_scenes import cards_of, laid_out, scenes, told


@pytest.fixture(autouse=True)
def no_typos(monkeypatch: pytest.MonkeyPatch) -> None:
    """The words of a question are looked for here."""
    monkeypatch.setattr(spelling, "mistyped", lambda rng, question: question)


ZOO = laid_out("memory", "dog cat crown", "bee dog banana")
DIRECTLY = "(directly|right|just|immediately)"


def test_rows_and_columns_are_listed() -> None:
    assert told(ZOO, r"^What (is|do you see|have we got) in the (top|first) row\?") == {"dog, cat, crown"}
    assert told(ZOO, r"^List .*(cards|tiles|pictures) in the (bottom|last|second) row\.$") == {
        "bee, dog, banana"
    }
    assert told(ZOO, r"^What (is|do you see|have we got) in the (left|first) column\?") == {"dog, bee"}
    assert told(ZOO, r"^What .*in the (middle|second) column\?") == {"cat, dog"}
    assert told(
        laid_out("shelf", "dog cat", "bee"), r"^What (is|do you see) on the top (shelf|board)\?$"
    ) == {"dog, cat"}


def test_cells_are_named_by_their_place() -> None:
    assert told(ZOO, "(top|upper) right corner") == {"crown"}
    assert told(ZOO, "(bottom|lower) left corner") == {"bee"}
    assert told(ZOO, r"the third (card|tile|picture)\?") == {"crown"}
    assert told(ZOO, "the (very )?last (card|tile|picture)[?.,]") == {"banana"}
    row = laid_out("stickers", "dog cat crown")
    assert told(row, "in the (middle|center|centre)") == {"cat"}
    assert told(row, "third from the left") == {"crown"}
    column = laid_out("memory", "dog", "cat", "crown")
    assert told(column, "second from the top") == {"cat"}
    assert not told(column, r"\brow"), "nobody speaks of rows there"


def test_the_neighbour_is_that_of_the_next_cell() -> None:
    assert told(ZOO, rf"{DIRECTLY} (below|under) the (cat|kitten|kitty)\b") == {"dog"}
    assert told(ZOO, rf"{DIRECTLY} (above|over) the banana\b") == {"crown"}
    assert told(ZOO, r"(left of) the crown\b") == {"cat"}
    assert told(ZOO, r"(left of) the (bee|honeybee|wasp)\b") == {"nothing"}
    assert not told(ZOO, r"(left|right) of the dog\b"), "which dog?"
    shifted = ZOO.cards.rows[1][1].box  # type: ignore[union-attr]
    moved = replace(ZOO.cards.rows[1][1], box=(shifted[0] + 0.15, shifted[1], shifted[2] + 0.15, shifted[3]))  # type: ignore[union-attr]
    cards = replace(ZOO.cards, rows=(ZOO.cards.rows[0], (moved,)))  # type: ignore[union-attr, type-var]
    assert not told(replace(ZOO, cards=cards), rf"{DIRECTLY} (below|under) the (cat|kitten|kitty)\b")


def test_cards_rows_and_pairs_are_counted() -> None:
    assert told(ZOO, r"^how many (cards|tiles|pictures) are there\b(?!.*(row|column))") == {"6"}
    assert told(ZOO, "how many rows (are there|do you see|does)") == {"2"}
    assert told(ZOO, "how many columns (are there|do you see|does)") == {"3"}
    assert told(ZOO, "how many (cards|tiles|pictures) per row|in each row") == {"3"}
    assert told(ZOO, "how many pairs are") == {"1"}
    assert told(ZOO, "(is there|appears|occurs) (twice|two times)") >= {"dog"}
    assert told(ZOO, "is the (dog|doggy|puppy) there twice") == {"yes"}
    assert told(ZOO, "is the (crown) there twice") == {"no"}
    alone = laid_out("memory", "dog cat", "bee cat", "bee crown")
    assert told(alone, r"(only once|has no (partner|twin|match|double))\?") <= {"dog, crown", "no"}
    assert told(alone, r"has no (partner|twin|match|double)") == {"dog, crown"}


def test_two_cards_match_or_not() -> None:
    two = laid_out("memory", "dog dog", "cat bee")
    assert told(two, r"two (cards|tiles|pictures) in the (top|first|upper) row") == {"yes"}
    assert told(two, r"two (cards|tiles|pictures) in the (bottom|last) row") == {"no"}


def test_where_a_thing_is_in_words() -> None:
    assert told(ZOO, "(which|what) row (is|has|contains|shows|holds) the banana") >= {"bottom row"}
    assert told(ZOO, "column (is the banana|has|contains|shows|holds the banana)") >= {"right column"}
    assert told(ZOO, "row and.* column.*banana|banana.*row and.*column") == {"row 2, column 3"}
    wide = laid_out("bingo", "dog cat crown bee", "sun moon cloud key")
    assert told(wide, "where in the grid is the cat") == {"top row, second from the left"}
    assert told(wide, "where in the grid is the key") == {"bottom row, far right"}
    assert told(wide, "^(Is|Can|Would|Do|I|They|My) .*the crown .*in the (top|first|upper) row") == {"yes"}


def test_empty_cells() -> None:
    board = laid_out("board", "-:1 dog:2 -:3", "-:4 cat:5 -:6")
    assert told(board, r"how many (fields|spaces|squares) are (empty|blank|free)") == {"4"}
    assert told(board, r"\bon (field|square|space) (number )?2\?") >= {"dog"}
    assert told(board, r"^(What's|What is) on (field|square|space) (number )?3\?") == {"nothing"}
    assert told(board, r"^Is (field|square|space) (number )?3 (empty|free|blank)") == {"yes"}
    assert told(board, r"^Is (field|square|space) (number )?5 (empty|free|blank)") == {"no"}
    assert told(board, r"(field|square|space) is the (dog|puppy|doggy) on") == {"2"}


# Print at things.


def test_print_is_told_by_its_thing_and_things_by_their_print() -> None:
    words = laid_out("words", "dog:Hill cat:Door", "bee:Milk crown:Door")
    assert told(words, r"(under|below|beneath|underneath) the (dog|puppy|doggy)\b(?!.*Door|.*Milk)") >= {
        "Hill"
    }
    assert told(words, r"what does it say (under|below|beneath|underneath) the crown") == {"Door"}
    assert told(words, r"(above|over) .*hill") == {"dog"}
    assert not told(words, r"(above|over|on top of) .*door"), "there are two"
    assert told(words, r"^Does it say .?milk.? \w+ the (bee|honeybee|wasp)") == {"yes"}
    assert told(words, r"^Does it say .?milk.? \w+ the crown") == {"no"}


MENU = laid_out("menu", "pizza:$4 cake:$2.50 banana:$9")


def test_prices() -> None:
    assert told(MENU, r"how much (is|does) the (pizza|slice of pizza|pizza slice)\b") == {"$4"}
    assert told(MENU, r"(What|Which \w+) costs .?\$9") == {"banana"}
    assert told(MENU, r"is the cheapest") >= {"cake"} and "pizza" not in told(MENU, "the cheapest")
    assert told(MENU, "(?<!second )most expensive(\\?| thing| one| item)") <= {"banana", "$9"}
    assert told(MENU, "the lowest price") == {"$2.50", "cake"}, "what has it, and what it is"
    assert told(MENU, r"^(Is|Does|Do I) .*pizza.* (cheaper|less) (than|for).* banana") == {"yes"}
    assert told(MENU, r"^(Is|Does|Do I) .*pizza.* (expensive|cost more|pay more) .*banana") == {"no"}
    assert told(MENU, r"(\$5|\b5 dollars)\b.*pizza") >= {"yes"}
    assert told(MENU, r"(\$5|\b5 dollars)\b.*banana") == {"no"}
    same = laid_out("menu", "pizza:$4 cake:$4 banana:$9")
    assert not told(same, r"costs .?\$4") and not told(same, "cheapest thing")
    absent = {answer for answer in told(MENU, "how much (is|does|are|do) the") if answer.startswith("There")}
    assert len(absent) > 5 and not any("pizza" in answer for answer in absent)


def test_owners() -> None:
    names = laid_out("names", "guitar:Mia hat:Leo", "drum:Eva key:Tom")
    assert told(names, r"^Whose is the guitar") == {"Mia"}
    assert told(names, r"What does Leo have") == {"hat"}
    assert told(names, r"^Does Eva have the drum") == {"yes"}
    assert told(names, r"^(Does Eva have|Has Eva got|Did Eva get) the (guitar|key|hat)") == {"no"}
    assert told(names, r"how many (people|names)") == {"4"}
    assert told(names, r"^(What|Which) names are there") == {"Mia, Leo, Eva, Tom"}
    assert told(names, r"What does (Nora|Oscar|Paul|Kate|Lily) have") == {"I can't tell."}


def test_choices() -> None:
    quiz = laid_out("choices", "dog:A car:B taxi:C", "hammer:D crown:E bee:F")
    assert told(quiz, r"(letter (is|belongs to|goes with|stands by)|letter of) the crown") == {"E"}
    assert told(quiz, r"^(What's|What is) (letter|option|picture|answer) B\?") == {"car"}
    assert told(quiz, r"^Is (letter|option|picture|answer) D a hammer") == {"yes"}
    assert told(quiz, r"^Is (letter|option|picture|answer) D a crown") == {"no"}
    assert not told(quiz, r"^Is (letter|option|picture|answer) C a car"), "some call a taxi a car"
    assert told(quiz, r"letter .*a tool") == {"D"}
    assert not told(quiz, r"letter .*an animal"), "there are two"


WEEK = laid_out("forecast", "sun:Mon umbrella:Tue cloud:Wed snowflake:Thu")
DEGREES = laid_out(
    "forecast", "sun:Mon cloud:Tue snowflake:Wed", second={"Mon": "21 C", "Tue": "12 C", "Wed": "-3 C"}
)


def test_the_weather() -> None:
    assert told(WEEK, r"weather (like )?on (Tue|Tuesday)\?") == {"rainy"}
    assert told(WEEK, r"weather (like )?on (Mon|Monday)\?") == {"sunny"}
    assert told(WEEK, r"On (which|what) day (does|will) it snow") == {"Thu"}
    assert told(WEEK, r"^(Is|Does|Will|Can) .*sun.* on (Mon|Monday)\?") == {"yes"}
    assert told(WEEK, r"^(Is|Does|Will|Can) .*sun.* on (Tue|Tuesday)\?") == {"no"}
    assert told(WEEK, r"umbrella on (Tue|Tuesday)\?") == {"yes"}
    assert not told(WEEK, r"cloudy on (Tue|Tuesday)"), "it may be so on a day with rain"
    storm = laid_out("forecast", "lightning:Mon umbrella:Tue cloud:Wed")
    assert not told(storm, "rain on (Mon|Monday)|day (does|will) it rain"), "a thunderstorm may bring rain"
    assert told(storm, "day is it cloudy") == {"Wed"}
    assert told(WEEK, r"weather (like )?on (Fri|Friday|Sat|Saturday|Sun|Sunday)\?") == {"I can't tell."}
    assert not told(laid_out("forecast", "rainbow:Mon sun:Tue"), "weather (like )?on (Mon|Monday)")


def test_temperatures() -> None:
    assert told(DEGREES, r"how (warm|cold|hot) (is|will) it (be )?on (Mon|Monday)") == {"21 C"}
    assert told(DEGREES, r"the coldest day") == {"Wed"} and told(DEGREES, "the warmest day") == {"Mon"}
    assert told(DEGREES, r"the (highest|maximum) temperature") == {"21 C"}
    assert told(DEGREES, r"^Is it warmer on (Mon|Monday) or on (Tue|Tuesday)") == {"Mon"}
    assert told(DEGREES, r"below zero on (Wed|Wednesday)") == {"yes"}
    assert told(DEGREES, r"below zero on (Mon|Monday)") == {"no"}


def test_plans() -> None:
    plan = laid_out("calendar", "cake:Mon -:Tue guitar:Wed")
    assert told(plan, r"^(What's|What is) (planned |shown |there )?on (Mon|Monday)\?") == {"cake"}
    assert told(plan, r"^(What's|What is) (planned |shown |there )?on (Tue|Tuesday)\?") == {"nothing"}
    assert told(plan, r"On (which|what) day is the guitar") == {"Wed"}
    assert told(plan, r"^Is the guitar (planned )?on (Mon|Monday)\?") == {"no"}
    assert not told(plan, "after the cake"), "a day without anything follows"
    hours = laid_out("calendar", "cake:9:00 guitar:10:00")
    assert told(hours, r"at what time is the guitar") == {"10:00"}
    assert told(hours, r"after the (cake|birthday cake)") == {"guitar"}
    assert not told(hours, "(which|what) day")


def test_vocabulary() -> None:
    right, wrong = laid_out("vocabulary", "dog:Dog cat:Cat"), laid_out("vocabulary", "dog:Dog cat:Bee")
    assert told(right, "^Are (all )?the (words|labels|names|texts) (right|correct)") == {"yes"}
    assert told(wrong, "^Are (all )?the (words|labels|names|texts) (right|correct)") == {"no"}
    assert told(wrong, r"(word|label|name) \w+ the (dog|puppy|doggy) (right|correct)") == {"yes"}
    assert told(wrong, r"(word|label|name) \w+ the (cat|kitten|kitty) (right|correct)") == {"no"}
    assert told(wrong, "(word|label|name|text) is (wrong|false|incorrect)") == {"Bee"}
    assert told(right, "(word|label|name|text) is (wrong|false|incorrect)") == {"none"}
    assert told(wrong, "(has|got) the wrong") == {"cat"}
    assert told(wrong, r"instead of .?Bee") == {"cat"}
    assert told(wrong, r"The card says .?Bee") == {"cat"}


def test_teams_and_tags() -> None:
    teams = laid_out("badges", "eagle:Team_A lion:Team_B")
    assert told(teams, "^(Which|What) team (has|uses|shows|plays with) the eagle") == {"Team A"}
    assert told(teams, r"(?<!left )of team b\?") == {"lion"}
    dog, hat = laid_out("tag", "dog:Rex"), laid_out("tag", "hat:Leo")
    assert told(dog, "^(What's|What is) the (dog|puppy|doggy) called") == {"Rex"}
    assert told(hat, "^Whose is the") == {"Leo"} and not told(hat, " called")


# What is asked further.


def test_rows_are_compared_and_what_shares_one_is_named() -> None:
    assert told(ZOO, "are the (cat and the crown|crown and the cat) in the same row") == {"yes"}
    assert told(ZOO, "are the (crown and the banana|banana and the crown) in the same row") == {"no"}
    assert told(ZOO, "are the (crown and the banana|banana and the crown) in the same column") == {"yes"}
    assert told(ZOO, "are the two dogs in the same row") == {"no"}
    assert told(ZOO, r"^What (else )?is in the same row as the banana") == {"bee, dog"}
    assert told(ZOO, r"^Which animals are in the top row\?") == {"dog, cat"}
    assert told(ZOO, r"^How many animals are in the bottom row\?") == {"2"}
    assert told(ZOO, r"(a fruit|any fruits) in the (top|first) row\?") == {"no"}
    assert told(ZOO, r"^Is the crown (right |directly |just )?next to the cat\?") == {"yes"}
    assert told(ZOO, r"left and (to the )?right of the cat\b") == {"dog, crown"}
    shelf = laid_out("shelf", "dog cat", "bee", "drum hat sun")
    assert told(shelf, r"^Which shelf has the most things\?") == {"bottom shelf"}
    assert told(shelf, r"^Which shelf has the fewest things\?") == {"middle shelf"}
    assert told(shelf, "on the same shelf as the drum") >= {"hat, sun"}
    game = laid_out("memory", "dog cat crown", "bee - banana")
    assert told(game, "row has the (empty|blank)") == {"bottom row"}
    assert told(laid_out("memory", "dog cat crown", "bee sun banana"), "four corners") == {
        "dog, crown, bee, banana"
    }


def test_prices_are_added_and_bounded() -> None:
    shop = laid_out("shop", "hat:$4 drum:$9 banana:$2", "key:$7 dog:$5")
    assert told(shop, r"the (hat and the drum|drum and the hat)\b.* (together|in total|altogether)") == {
        "$13"
    }
    assert told(shop, r"(drum (than|and) the hat|hat than the drum|hat instead of the drum)\?$") >= {"$5"}
    assert told(shop, r"\$10 and buy the key. How much (is|do I have) left|key .*\$10.*change") == {"$3"}
    assert told(shop, r"less than \$6\?$") >= {"hat, banana, dog"}
    assert told(shop, r"more than \$6\?$") >= {"drum, key"}
    assert told(shop, r"second cheapest") == {"hat"}
    assert told(shop, r"the (fruit|animal)\b.*\?$") >= {"$2", "$5"}
    assert told(shop, r"^Do (they|you) (have|sell) hats\?") == {"yes"}
    assert "no" in told(shop, r"^Do (they|you) (have|sell) ")
    assert not told(laid_out("menu", "pizza:$4.35 cake:$2.25 kiwi:$9.99"), "and the .* together"), "too hard"
    euros = laid_out("menu", "pizza:4_EUR", "cake:2_EUR", "kiwi:9_EUR")
    assert told(euros, r"the (pizza and the cake|cake and the pizza)\b.* (together|in total|altogether)") == {
        "6 EUR"
    }


def test_who_has_one_of_a_kind_and_which_of_two() -> None:
    names = laid_out("names", "guitar:Mia hat:Leo", "dog:Eva key:Tom")
    assert told(names, r"^Who has an animal\?") == {"Eva"}
    assert told(names, r"^Who has the hat, (Leo or \w+|\w+ or Leo)\?") == {"Leo"}
    assert told(names, r"^Is Mia (there|listed|on it|on the list)\?") == {"yes"}
    assert "no" in told(names, r"^Is \w+ (there|listed|on it|on the list)\?")
    quiz = laid_out("choices", "dog:A hat:B", "cat:C drum:D")
    assert told(quiz, r"^Which letters (are|show) animals") == {"A, C"}
    assert told(quiz, r"^Is the hat (B or \w|\w or B)\?") == {"B"}
    assert told(quiz, r"^Is there (an option|a choice|an answer) [E-I]\?") == {"no"}
    words = laid_out("words", "dog:Hill cat:Door")
    assert told(words, r"left of the (picture|one) (labeled|marked|called|with) .?door") == {"dog"}
    assert told(words, r"^(Which|What) (word|label|text) is (directly |just )?to the right of .?hill") == {
        "Door"
    }


def test_fields_days_and_degrees() -> None:
    board = laid_out("board", "-:1 dog:2 -:3", "hat:4 -:5 cat:6")
    assert told(board, "^(Which|What) (fields|spaces|squares) are (empty|free|blank)") == {"1, 3, 5"}
    assert told(board, r"on (field|square|space) 2 and go 4 (further|on)") == {"cat"}
    assert told(board, r"from the (dog|puppy|doggy) to the (cat|kitty|kitten)") == {"4"}
    plan = laid_out("calendar", "cake:Mon -:Tue guitar:Wed")
    assert told(plan, "days are (free|empty)") == {"Tue"}
    assert told(plan, r"^What (comes|is) (last)\?") == {"guitar"}
    assert told(WEEK, "snow at all") == {"yes"}
    assert told(WEEK, r"^(What|Which) days are shown\?") == {"Mon, Tue, Wed, Thu"}
    assert told(WEEK, r"weather the same on (Mon|Monday) and (on )?(Tue|Tuesday)") == {"no"}
    assert told(DEGREES, r"degrees warmer is it on (Mon|Monday) than on (Tue|Tuesday)") == {"9"}
    assert told(DEGREES, r"(warmer than|above|over) 15( degrees)? on (Tue|Tuesday)") == {"no"}


def test_cells_are_told_row_by_row_and_scattered_things_from_left_to_right() -> None:
    tiles = next(
        scene
        for scene in scenes()
        if scene.row_by_row and scene.cards and min(map(len, scene.cards.rows)) > 1 < len(scene.cards.rows)
    )
    assert caption(tiles, "normal").startswith("Row by row: ")
    assert [item.name for item in tiles.items] == [card.item.name for card in cards_of(tiles) if card.item]
    bare = [scene for scene in scenes() if scene.cards and not scene.row_by_row and len(scene.items) > 1]
    assert bare and all(caption(scene, "normal").startswith("From left to right: ") for scene in bare)
