"""What charts are about: labels that belong together, and titles that suit them. No torch."""

from functools import cache, lru_cache
from random import Random
from typing import NamedTuple

from kestrel_tools.things.lettering import MOST_LETTERS, any_word, cased

from .topics import (
    CALENDAR,
    GOODS,
    MORE_TOPICS,
    NOT_GOODS,
    PEOPLE,
    SUBTITLES,
    UNITS,
    WIDER_LABELS,
    Topic,
    unit_in,
)

# The tokenizer is made with these labels and titles; more follow below.
LABELS: tuple[tuple[str, ...], ...] = (
    ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"),
    ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),
    ("A", "B", "C", "D", "E", "F", "G", "H"),
    ("Q1", "Q2", "Q3", "Q4"),
    tuple(str(year) for year in range(2010, 2027)),
    ("Dogs", "Cats", "Birds", "Fish", "Cows", "Pigs", "Mice", "Bees"),
    ("Tea", "Milk", "Juice", "Water", "Cola", "Beer", "Wine"),
    ("Ann", "Bob", "Eva", "Tom", "Max", "Lea", "Sam", "Zoe", "Ben"),
    ("Red", "Blue", "Green", "Pink", "Black", "White", "Gray"),
    ("Paris", "Rome", "Oslo", "Bern", "Cairo", "Lima", "Tokyo", "Delhi"),
    ("Apple", "Pear", "Plum", "Kiwi", "Grape", "Lemon", "Peach"),
    ("Car", "Bus", "Train", "Bike", "Taxi", "Plane", "Boat"),
    ("North", "East", "South", "West"),
    ("Yes", "No", "Maybe"),
    tuple(str(number) for number in range(1, 13)),
)
FAMILIES = (  # what each of those is
    "day", "month", "letter", "quarter", "year", "animal", "drink", "person", "color", "city", "fruit",
    "vehicle", "direction", "answer", "number",
)  # fmt: skip
TITLES = (
    "Sales", "Visitors", "Votes", "Points", "Rain", "Sun hours", "Books read", "Profit", "Costs", "Goals",
    "Tickets", "Users", "Orders", "Score", "Price", "Weight", "Speed", "Results", "Survey", "Budget",
)  # fmt: skip
MORE_LABELS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("day", ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")),
    (
        "month",
        ("January", "February", "March", "April", "June", "July", "August", "September", "October"),
    ),
    ("person", ("Mia", "Leo", "Kim", "Joe", "Amy", "Dan", "Liz", "Pam", "Ian")),
    ("person", ("Emma", "Liam", "Noah", "Olga", "Ivan", "Sara", "Omar", "Nina")),
    ("team", ("Reds", "Blues", "Lions", "Bears", "Hawks", "Wolves", "Sharks")),
    ("city", ("London", "Berlin", "Madrid", "Vienna", "Prague", "Dublin", "Athens")),
    ("city", ("Boston", "Miami", "Dallas", "Denver", "Austin")),
    ("country", ("Spain", "Italy", "Japan", "Peru", "India", "China", "Chile", "Kenya")),
    ("fruit", ("Apples", "Bananas", "Mangos", "Cherries", "Grapes", "Oranges", "Plums")),
    ("vegetable", ("Carrots", "Beans", "Peas", "Corn", "Onions", "Leeks")),
    ("subject", ("Math", "Art", "Music", "History", "Biology")),
    ("season", ("Spring", "Summer", "Autumn", "Winter")),
    ("week", ("Week 1", "Week 2", "Week 3", "Week 4", "Week 5")),
    ("sport", ("Tennis", "Soccer", "Golf", "Hockey", "Judo", "Chess")),
    ("dish", ("Pizza", "Pasta", "Soup", "Salad", "Rice", "Cake")),
    ("product", ("Shirts", "Shoes", "Hats", "Socks", "Coats", "Bags")),
    ("room", ("Kitchen", "Bath", "Office", "Garden", "Hall")),
    ("hour", ("9 am", "10 am", "11 am", "12 pm", "1 pm", "2 pm", "3 pm")),
    ("class", ("1A", "1B", "2A", "2B", "3A", "3B")),
    ("pet", ("Dog", "Cat", "Hamster", "Rabbit", "Parrot")),
    ("flavor", ("Vanilla", "Mint", "Mango", "Cherry", "Coffee")),
)
TIMES = {
    "day": "on", "month": "in", "quarter": "in", "year": "in", "season": "in", "week": "in", "hour": "at",
    "decade": "in", "round": "in", "game": "in",
}  # fmt: skip
# Where others are; all else is said with "for".
PLACED = {
    "city": "in", "country": "in", "room": "in", "continent": "in", "department": "in", "school": "at",
    "store": "at",
}  # fmt: skip

TOPICS = (
    Topic(
        ("Sales", "Sales 2024", "Ice cream sales", "Cars sold", "Tickets", "Tickets sold"),
        "many sales", ("best", "strongest", "most successful"), ("worst", "weakest"), ("sell", "sold"),
        (*CALENDAR, *PEOPLE, *GOODS, "city", "country", "hour"),
        ("How [many|much] [were|was] sold {at}?", "How many did [we|they|you] sell {at}?"),
    ),
    Topic(
        ("Visitors", "Guests", "Attendance", "Customers", "Users"),
        "many visitors", ("busiest", "most popular"), ("quietest", "emptiest"), ("have", "had"),
        (*CALENDAR, "city", "country", "hour", "room", "class"),
        ("How many [people|visitors|guests] came {at}?", "How many people were there {at}?"),
    ),
    Topic(
        ("Votes", "Survey", "Favorites", "Poll", "Likes"),
        "many votes", ("most popular", "best liked", "favorite"), ("least popular", "least liked"),
        ("get", "got"), (*GOODS, *PEOPLE, "animal", "color", "vehicle", "sport", "subject", "pet", "answer"),
        ("How many [people|] [like|chose|picked|voted for] {label}?",), wins=True, cap=900,
    ),
    Topic(
        ("Points", "Score", "Goals", "Results", "Final score"),
        "many points", ("best", "strongest"), ("worst", "weakest"), ("score", "scored"),
        (*PEOPLE, "class", "country"), ("[What's|What is] the score of {label}?",), wins=True, cap=200,
    ),
    Topic(
        ("Medals", "Gold medals"), "many medals", ("best", "most successful"), ("worst",),
        ("win", "won"), (*PEOPLE, "country", "class"), wins=True, cap=100,
    ),
    Topic(
        ("Rain", "Rainfall", "Rain in mm"), "much rain", ("wettest", "rainiest"), ("driest",), ("get", "got"),
        (*CALENDAR, "city", "country"), ("How much did it rain {at}?", "How [wet|rainy] was it {at}?"),
        cap=400,
    ),
    Topic(
        ("Snow", "Snow in cm"), "much snow", ("snowiest", "whitest"), ("least snowy",), ("get", "got"),
        (*CALENDAR, "city", "country"), ("How much did it snow {at}?",), cap=200,
    ),
    Topic(
        ("Sun hours", "Sunshine"), "many hours of sun", ("sunniest", "brightest"), ("cloudiest", "darkest"),
        ("get", "got"), (*CALENDAR, "city", "country"),
        ("How [long|many hours] did the sun shine {at}?", "How sunny was it {at}?"), cap=400,
    ),
    Topic(
        ("Temperature", "Temperatures"), "many degrees", ("hottest", "warmest"), ("coldest", "coolest"),
        ("have", "had"), (*CALENDAR, "city", "country", "hour", "room"),
        ("How [hot|warm|cold] [was|is] it {at}?", "What was the temperature {at}?"), sums=False, cap=50,
        measured=True,
    ),
    Topic(
        ("Books read", "Books"), "many books", ("best",), ("worst",), ("read", "read"),
        (*PEOPLE, "class", "month", "year"), (), cap=100,
    ),
    Topic(
        ("Profit", "Income", "Savings", "Tips"), "much money", ("best", "most profitable"), ("worst",),
        ("make", "made"), (*CALENDAR, "person", "city", "product"),
        ("How much [money|profit] was made {at}?",),
    ),
    Topic(
        ("Costs", "Budget", "Spending", "Bills"), "much money", ("most expensive",), ("cheapest",),
        ("spend", "spent"), (*CALENDAR, "person", "room", "product"),
        ("How much [money|] was spent {at}?", "What did {label} cost?"),
    ),
    Topic(
        ("Price", "Prices"), "", ("most expensive", "priciest"), ("cheapest", "least expensive"),
        ("pay", "paid"), (*GOODS, "vehicle", "pet"),
        ("How much [{does} {label} cost|{is} {label}]?", "[What's|What is] the price of {label}?"), cap=900,
        measured=True,
    ),
    Topic(
        ("Weight", "Weight in kg"), "", ("heaviest",), ("lightest",), ("lift", "lifted"),
        ("person", "animal", "pet", "fruit", "vehicle"),
        ("How heavy {is} {label}?", "How much {does} {label} weigh?"), cap=900, measured=True,
    ),
    Topic(
        ("Speed", "Top speed"), "", ("fastest", "quickest"), ("slowest",), ("reach", "reached"),
        ("vehicle", "animal", "person", "pet"), ("How fast {is} {label}?",), sums=False, cap=400,
        measured=True,
    ),
    Topic(
        ("Orders", "Downloads", "Emails", "Calls"), "many", ("busiest",), ("quietest", "slowest"),
        ("get", "got"), (*CALENDAR, "person", "city", "hour", "dish"), (),
    ),
    Topic(
        ("Steps", "Steps walked"), "many steps", ("most active",), ("laziest", "least active"),
        ("walk", "walked"), ("person", "day", "week", "month"), (),
    ),
    Topic(
        ("Hours slept", "Homework", "Screen time"), "many hours", ("longest",), ("shortest",),
        ("need", "needed"), ("person", "day", "week"), ("How [many hours|long] was it {at}?",), cap=20,
    ),
    Topic(
        ("Pupils", "Class size", "Population"), "many people", ("biggest", "largest"), ("smallest",),
        ("have", "had"), ("class", "city", "country"), ("How many people live {at}?", "How big is {label}?"),
    ),
)  # fmt: skip
TITLED = 0.55  # of all charts
ANY_WORDS = 0.45
MOST_WORDS, LONGEST_WORD = 8, 8
MORE_TITLED = 0.8  # of the charts of other looks
SUBTITLED = 0.3  # of those that have a title
NAMED = 0.2  # of those whose labels have a name, such as "Month"


class Subject(NamedTuple):
    """What is printed on a chart beside its numbers; the axis is that of the labels."""

    title: str
    labels: tuple[str, ...]
    subtitle: str = ""
    axis: str = ""
    cap: int = 9000  # that no value is above


def draw_subject(rng: Random, any_words: float = ANY_WORDS) -> tuple[str, tuple[str, ...]]:
    """A title, or none, and labels of which some are shown; the two often suit each other.

    Some labels (`any_words`) are of no family: with these lists alone a model guesses from the first letter.
    """
    if rng.random() < any_words:
        title = rng.choice(TITLES) if rng.random() < 0.5 else cased(rng, any_word(rng))
        return title if rng.random() < TITLED else "", _some_words(rng)
    if rng.random() > TITLED:
        return "", rng.choice(LABELS) if rng.random() < 0.5 else rng.choice(MORE_LABELS)[1]
    if rng.random() < 0.3:
        return rng.choice(TITLES), rng.choice(LABELS)
    topic = rng.choice(TOPICS)
    return rng.choice(topic.titles), rng.choice(labels_of(rng.choice(topic.families)))


def draw_wider_subject(rng: Random, any_words: float = ANY_WORDS) -> Subject:
    """From all lists, with longer labels, and with what else charts print."""
    titled, cap = rng.random() < MORE_TITLED, 9000
    if rng.random() < any_words:
        title = " ".join(any_word(rng) for _ in range(rng.choice((1, 2, 2))))
        known = rng.random() < 0.4 or len(title) > MOST_LETTERS
        title = rng.choice(ALL_TITLES) if known else cased(rng, title)
        labels, family = _some_words(rng, rng.choice((LONGEST_WORD, LONGEST_WORD, 11))), ""
    else:
        topic = rng.choice(ALL_TOPICS)
        family = rng.choice(topic.families if titled else tuple(_families_of_all()))
        cap = topic.cap if titled else cap
        titles = [title for title in topic.titles if title not in NOT_GOODS or family not in GOODS]
        title, labels = rng.choice(titles or [""]), rng.choice(all_labels_of(family))
    if rng.random() < 0.1:
        labels = tuple(map(str.upper, labels))
    axis = family.capitalize() if rng.random() < NAMED and family not in ("person", "answer") else ""
    if not titled:
        return Subject("", labels, "", axis, cap)
    subtitle = ""
    if rng.random() < SUBTITLED and not any(letter.isdigit() for letter in title):
        unit = UNITS.get(title, "") if rng.random() < 0.8 else ""
        subtitle = f"in {unit}" if unit else "" if unit_in(title) else rng.choice(SUBTITLES)
    if rng.random() < 0.15:
        title = title.upper()
    return Subject(title, labels, subtitle, axis, cap)


def _some_words(rng: Random, longest: int = LONGEST_WORD) -> tuple[str, ...]:
    words = dict.fromkeys(any_word(rng) for _ in range(2 * MOST_WORDS))
    case = rng.choice((str.title, str.title, str.lower, str.upper))
    return tuple(word for word in map(case, words) if len(word) <= longest and not family_of(word))[
        :MOST_WORDS
    ]


@cache
def labels_of(family: str) -> tuple[tuple[str, ...], ...]:
    """Lists of the scored charts; where these have none, the others."""
    pairs = (*zip(FAMILIES, LABELS, strict=True), *MORE_LABELS)
    found = tuple(labels for name, labels in pairs if name == family)
    return found or tuple(labels for name, labels in WIDER_LABELS if name == family)


@cache
def all_labels_of(family: str) -> tuple[tuple[str, ...], ...]:
    wider = tuple(labels for name, labels in WIDER_LABELS if name == family)
    return tuple(dict.fromkeys((*labels_of(family), *wider)))


@cache
def _families() -> dict[str, str]:
    names = dict.fromkeys((*FAMILIES, *(name for name, _ in MORE_LABELS)))
    return {label: name for name in names for labels in labels_of(name) for label in labels}


@cache
def _families_of_all() -> dict[str, frozenset[str]]:
    """Every family, with its labels in small letters."""
    names = dict.fromkeys((*FAMILIES, *(name for name, _ in (*MORE_LABELS, *WIDER_LABELS))))
    return {
        name: frozenset(label.lower() for labels in all_labels_of(name) for label in labels) for name in names
    }


def family_of(label: str) -> str:
    """What a label is: a day, a person; empty where it is none of these."""
    return _families().get(label, "")


@lru_cache(4096)
def family_of_all(labels: tuple[str, ...]) -> str:
    """What all of the labels are, whatever their case; empty where two families have them."""
    shown = {label.lower() for label in labels}
    names = [name for name, known in _families_of_all().items() if shown <= known]
    return names[0] if len(names) == 1 else ""


@lru_cache(4096)
def in_order(labels: tuple[str, ...]) -> bool:
    """Whether they follow each other as in their list, with none left out."""
    shown = [label.lower() for label in labels]
    for known in all_labels_of(family_of_all(labels)):
        small = [label.lower() for label in known]
        if shown[0] in small and small[(at := small.index(shown[0])) : at + len(shown)] == shown:
            return True
    return False


@cache
def topic_of(title: str) -> Topic | None:
    return next((topic for topic in TOPICS if title in topic.titles), None)


@lru_cache(4096)
def any_topic_of(title: str) -> tuple[str, Topic] | None:
    """The title as it is in its topic, whatever its case here."""
    found = ((name, topic) for topic in ALL_TOPICS for name in topic.titles if name.lower() == title.lower())
    return next(found, None)


ALL_TOPICS = (*TOPICS, *MORE_TOPICS)
ALL_TITLES = tuple(dict.fromkeys((*TITLES, *(title for topic in ALL_TOPICS for title in topic.titles))))
