"""What charts are about: labels that belong together, and titles that suit them. No torch."""

from functools import cache
from random import Random
from typing import NamedTuple

from .lettering import any_word, cased

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
    "day": "on", "month": "in", "quarter": "in", "year": "in", "season": "in", "week": "in", "hour": "at"
}  # fmt: skip
PEOPLE = ("person", "team")
CALENDAR = ("day", "month", "quarter", "year", "season", "week")
GOODS = ("fruit", "drink", "vegetable", "product", "dish", "flavor")


class Topic(NamedTuple):
    """What a chart with one of the titles is about, in the words of its questions."""

    titles: tuple[str, ...]
    amount: str  # after "how": many tickets, much rain; "many": of what the title says
    most: tuple[str, ...]  # the wettest
    least: tuple[str, ...]
    does: tuple[str, str]  # what people do, and did
    families: tuple[str, ...]  # that it is told of
    value: tuple[str, ...] = ()  # how else a value is asked for: label, and label with its preposition


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
        ("How many [people|] [like|chose|picked|voted for] {label}?",),
    ),
    Topic(
        ("Points", "Score", "Goals", "Results", "Final score"),
        "many points", ("best", "strongest"), ("worst", "weakest"), ("score", "scored"),
        (*PEOPLE, "class", "country"), ("[What's|What is] the score of {label}?",),
    ),
    Topic(
        ("Medals", "Gold medals"), "many medals", ("best", "most successful"), ("worst",),
        ("win", "won"), (*PEOPLE, "country", "class"),
    ),
    Topic(
        ("Rain", "Rainfall", "Rain in mm"), "much rain", ("wettest", "rainiest"), ("driest",), ("get", "got"),
        (*CALENDAR, "city", "country"), ("How much did it rain {at}?", "How [wet|rainy] was it {at}?"),
    ),
    Topic(
        ("Snow", "Snow in cm"), "much snow", ("snowiest", "whitest"), ("least snowy",), ("get", "got"),
        (*CALENDAR, "city", "country"), ("How much did it snow {at}?",),
    ),
    Topic(
        ("Sun hours", "Sunshine"), "many hours of sun", ("sunniest", "brightest"), ("cloudiest", "darkest"),
        ("get", "got"), (*CALENDAR, "city", "country"),
        ("How [long|many hours] did the sun shine {at}?", "How sunny was it {at}?"),
    ),
    Topic(
        ("Temperature", "Temperatures"), "many degrees", ("hottest", "warmest"), ("coldest", "coolest"),
        ("have", "had"), (*CALENDAR, "city", "country", "hour", "room"),
        ("How [hot|warm|cold] [was|is] it {at}?", "What was the temperature {at}?"),
    ),
    Topic(
        ("Books read", "Books"), "many books", ("best",), ("worst",), ("read", "read"),
        (*PEOPLE, "class", "month", "year"), (),
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
        ("How much [{does} {label} cost|{is} {label}]?", "[What's|What is] the price of {label}?"),
    ),
    Topic(
        ("Weight", "Weight in kg"), "", ("heaviest",), ("lightest",), ("lift", "lifted"),
        ("person", "animal", "pet", "fruit", "vehicle"),
        ("How heavy {is} {label}?", "How much {does} {label} weigh?"),
    ),
    Topic(
        ("Speed", "Top speed"), "", ("fastest", "quickest"), ("slowest",), ("reach", "reached"),
        ("vehicle", "animal", "person", "pet"), ("How fast {is} {label}?",),
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
        ("need", "needed"), ("person", "day", "week"), ("How [many hours|long] was it {at}?",),
    ),
    Topic(
        ("Pupils", "Class size", "Population"), "many people", ("biggest", "largest"), ("smallest",),
        ("have", "had"), ("class", "city", "country"), ("How many people live {at}?", "How big is {label}?"),
    ),
)  # fmt: skip
TITLED = 0.55  # of all charts
ANY_WORDS = 0.45
MOST_WORDS, LONGEST_WORD = 8, 8


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


def _some_words(rng: Random) -> tuple[str, ...]:
    words = dict.fromkeys(any_word(rng) for _ in range(2 * MOST_WORDS))
    case = rng.choice((str.title, str.title, str.lower, str.upper))
    return tuple(word for word in map(case, words) if len(word) <= LONGEST_WORD and not family_of(word))[
        :MOST_WORDS
    ]


@cache
def labels_of(family: str) -> tuple[tuple[str, ...], ...]:
    pairs = (*zip(FAMILIES, LABELS, strict=True), *MORE_LABELS)
    return tuple(labels for name, labels in pairs if name == family)


@cache
def _families() -> dict[str, str]:
    names = dict.fromkeys((*FAMILIES, *(name for name, _ in MORE_LABELS)))
    return {label: name for name in names for labels in labels_of(name) for label in labels}


def family_of(label: str) -> str:
    """What a label is: a day, a person; empty where it is none of these."""
    return _families().get(label, "")


@cache
def topic_of(title: str) -> Topic | None:
    return next((topic for topic in TOPICS if title in topic.titles), None)
