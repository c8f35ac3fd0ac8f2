"""What is printed at things that are laid out in cells: days, prices, names, numbers. No torch."""

import re
from collections.abc import Sequence
from functools import cache
from random import Random
from typing import NamedTuple

from kestrel_tools.things.charts.subjects import labels_of
from kestrel_tools.things.lettering import MOST_LETTERS, any_word, printed_text
from kestrel_tools.things.names import Noun, by_name, disputed, nouns

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
LONG_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
PARTS_OF_DAY = ("Morning", "Noon", "Evening", "Night")
PEOPLE = (
    "Ada", "Adam", "Aisha", "Alex", "Alma", "Amir", "Anna", "Anton", "Ava", "Bella", "Carl", "Carla", "Clara",
    "Dad", "David", "Diego", "Elif", "Ella", "Emil", "Erik", "Eve", "Felix", "Finn", "Grandma", "Grandpa",
    "Hana", "Hugo", "Ida", "Igor", "Ines", "Jack", "Jan", "Jane", "John", "Jonas", "Jose", "Julia", "Kai",
    "Karim", "Kate", "Lara", "Lena", "Lily", "Lisa", "Luca", "Lucy", "Maria", "Mark", "Marta", "Maya", "Mina",
    "Mom", "Nadia", "Nick", "Nora", "Oscar", "Otto", "Paul", "Peter", "Priya", "Rita", "Rosa", "Ruth", "Sam",
    "Sofia", "Tina", "Uncle Bob", "Vera", "Wei", "Yara", "Yuki", "Zara",
)  # fmt: skip
PETS = ("Rex", "Bella", "Max", "Luna", "Coco", "Buddy", "Bruno", "Milo", "Daisy", "Ziggy", "Toto", "Bonnie")
TEAMS = (
    ("Team A", "Team B", "Team C", "Team D", "Team E", "Team F"),
    ("Team 1", "Team 2", "Team 3", "Team 4", "Team 5", "Team 6"),
    ("Red Team", "Blue Team", "Gold Team", "Pink Team", "Black Team"),
    ("Boston", "Miami", "Dallas", "Denver", "Austin", "Oslo", "Rome"),
    ("FC Bern", "FC Rome", "FC Lima", "FC Oslo", "FC Cairo"),
    ("Stars", "Giants", "Rangers", "Rovers", "United", "City", "Kings"),
)
TITLES: dict[str, tuple[str, ...]] = {
    "memory": ("Memory", "Find the pairs", "Pairs", "Match them", "Memory game"),
    "bingo": ("Bingo", "BINGO", "Picture bingo"),
    "stickers": ("Stickers", "My stickers", "Sticker sheet", "Collection"),
    "shelf": ("Shop", "Toys", "Shelf", "Museum", "For sale"),
    "forecast": ("Weather", "Forecast", "This week", "Weather report"),
    "menu": ("Menu", "Snacks", "Lunch", "Cafe", "Today", "Bistro", "Kids menu"),
    "shop": ("Shop", "Sale", "Prices", "Price list", "Flea market", "Offers"),
    "names": ("Our class", "Whose is it?", "Lockers", "Presents", "Lost & found", "Pets"),
    "choices": ("Quiz", "Choose one", "Vote", "Pick one", "Question 3", "Test"),
    "vocabulary": ("Vocabulary", "English", "Words", "Unit 4", "Learn", "Lesson 2"),
    "calendar": ("Plan", "This week", "Timetable", "Calendar", "My week", "Schedule"),
    "badges": ("Teams", "League", "Cup 2025", "Clubs"),
    "board": ("Board game", "Start", "Game"),
    "words": ("Exhibits", "Gallery", "Things"),
}
# What each symbol of a forecast stands for.
WEATHER = {
    "sun": "sunny", "cloud": "cloudy", "snowflake": "snowy", "lightning": "thunderstorm",
    "umbrella": "rainy", "drop": "rainy",
}  # fmt: skip


class Prices(NamedTuple):
    """How the prices of one list are written."""

    form: str
    cents: tuple[int, ...]
    most: int

    def draw(self, rng: Random) -> str:
        whole = rng.randint(1, self.most)
        cents = rng.choice(self.cents) if self.cents else 0
        return self.form.format(f"{whole}.{cents:02}" if self.cents else whole)


PRICES = (
    Prices("${}", (), 12),
    Prices("${}", (), 99),
    Prices("${}", (0, 50), 9),
    Prices("${}", (0, 20, 25, 50, 75, 80, 90, 95, 99), 9),
    Prices("${}", (50, 99, 95), 49),
    Prices("{} EUR", (), 30),
    Prices("{}", (0, 50, 20, 90), 9),
    Prices("{}", (), 20),
    Prices("{} $", (), 20),
)


def labels_for(rng: Random, kind: str, things: Sequence[str]) -> list[str] | None:
    """What is printed at each of these things, as suits that kind of cards."""
    count = len(things)
    match kind:
        case "forecast" | "calendar":
            return _times(rng, kind, count)
        case "menu" | "shop":
            return _prices(rng, count)
        case "names":
            lists = (PEOPLE, *labels_of("person"))
            chosen = rng.choice((PEOPLE, PEOPLE, *lists))
            return rng.sample(chosen, count) if count <= len(chosen) else None
        case "choices":
            signs = rng.choice(("123456789", "123456789", "ABCDEFGH", "ABCDEFGH", "abcdefgh"))
            return list(signs[:count])
        case "board":
            start = rng.choice((1, 1, 1, 1, 5, 10, 21))
            return [str(start + at) for at in range(count)]
        case "vocabulary":
            return list(things)
        case "badges":
            names = rng.choice(TEAMS)
            return list(names[:count]) if count <= len(names) else None
        case "tag":
            return [_tag(rng, thing) for thing in things]
    words = (any_word(rng).title() if rng.random() < 0.5 else printed_text(rng) for _ in range(3 * count))
    found = list(dict.fromkeys(word for word in words if len(word) <= 9))[:count]
    return found if len({word.lower() for word in found}) == count else None


def _times(rng: Random, kind: str, count: int) -> list[str] | None:
    if rng.random() < (0.15 if kind == "forecast" else 0.35):
        if kind == "forecast" or rng.random() < 0.3:
            return list(PARTS_OF_DAY[:count]) if count <= len(PARTS_OF_DAY) else None
        first, step = rng.randint(7, 12), rng.choice((1, 1, 2))
        minutes = rng.choice(("00", "00", "30", "15"))
        return [f"{first + step * at}:{minutes}" for at in range(count)]
    days = LONG_DAYS if count <= 4 and rng.random() < 0.4 else DAYS
    if count > len(days):
        return None
    start = rng.choice((0, rng.randrange(len(days))))
    found = [days[(start + at) % len(days)] for at in range(count)]
    return [day.upper() for day in found] if rng.random() < 0.12 else found


def _prices(rng: Random, count: int) -> list[str]:
    prices = rng.choice(PRICES)
    found = [prices.draw(rng) for _ in range(count)]
    if rng.random() < 0.85:  # else some may cost the same
        while len(dict.fromkeys(found)) < count:
            found = [*dict.fromkeys(found), prices.draw(rng)][:count]
    return found


def temperatures(rng: Random, things: Sequence[str]) -> list[str]:
    """In degrees, as suits the weather: it snows where it is cold."""
    unit, warm = rng.choice(("", " C", " C", "C")), rng.randint(5, 26)
    found: list[int] = []
    for thing in things:
        low, high = (-9, 2) if thing == "snowflake" else (warm - 5, warm + 6)
        found.append(rng.choice([degrees for degrees in range(low, high + 1) if degrees not in found]))
    return [f"{degrees}{unit}" for degrees in found]


def number_in(text: str) -> float:
    """A price or a temperature as a number."""
    [found] = re.findall(r"-?\d+(?:\.\d+)?", text)
    return float(found)


def misnamed(rng: Random, noun: Noun) -> str | None:
    """The name of another thing, that nobody would call this one."""
    akin_ones = _of_kinds(noun.kinds) if noun.kinds and rng.random() < 0.4 else nouns()
    for _ in range(8):
        other = rng.choice(akin_ones)
        akin = {noun.name, *noun.also, *noun.arguably, *noun.kinds}
        if len(other.name) > MOST_LETTERS or akin & {other.name, *other.also, *other.arguably}:
            continue
        if not any(disputed(noun, word) or word in noun.name for word in (other.name, *other.also)):
            return other.name
    return None


@cache
def _of_kinds(kinds: tuple[str, ...]) -> tuple[Noun, ...]:
    return tuple(noun for noun in nouns() if noun.kinds == kinds)


def _tag(rng: Random, thing: str) -> str:
    """Of an animal its own name, of other things whose it is."""
    return rng.choice(PETS if "animal" in by_name()[thing].kinds else PEOPLE)
