"""What the title of a chart says of it, and subjects beyond those of the scored charts. No torch."""

import re
from typing import NamedTuple

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
    wins: bool = False  # whoever has most is the winner
    sums: bool = True  # two of them may be added up
    cap: int = 9000  # that no value is above
    measured: bool = False  # a size of each, of which nobody has many


# More labels, for charts of other looks than the scored ones; longer ones too. Lists of a calendar are in its
# order.
WIDER_LABELS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("month", ("January", "February", "March", "April", "May", "June", "July", "August", "September",
               "October", "November", "December")),
    ("day", ("Day 1", "Day 2", "Day 3", "Day 4", "Day 5", "Day 6")),
    ("week", ("1st week", "2nd week", "3rd week", "4th week")),
    ("year", tuple(str(year) for year in range(1994, 2010))),
    ("decade", ("1950s", "1960s", "1970s", "1980s", "1990s", "2000s", "2010s")),
    ("hour", ("8:00", "9:00", "10:00", "11:00", "12:00", "13:00", "14:00")),
    ("round", ("Round 1", "Round 2", "Round 3", "Round 4", "Round 5")),
    ("game", ("Game 1", "Game 2", "Game 3", "Game 4", "Game 5")),
    ("person", ("Oliver", "Sophia", "Lucas", "Hannah", "Daniel", "Maria", "Peter", "Julia", "Simon")),
    ("person", ("Alexander", "Charlotte", "Benjamin", "Elizabeth", "Christopher", "Isabella", "Sebastian")),
    ("person", ("Aisha", "Wei", "Carlos", "Fatima", "Yuki", "Priya", "Kofi", "Ingrid", "Diego")),
    ("person", ("Mr. Smith", "Ms. Jones", "Dr. Lee", "Mrs. Hill", "Mr. Novak", "Ms. Garcia")),
    ("person", ("Mom", "Dad", "Grandma", "Grandpa", "Uncle Joe", "Aunt May")),
    ("person", ("Anna K.", "Paul M.", "Lisa B.", "Jan W.", "Nora S.", "Tim R.")),
    ("team", ("Tigers", "Eagles", "Dragons", "Pirates", "Rockets", "Giants", "Falcons")),
    ("team", ("Team A", "Team B", "Team C", "Team D", "Team E")),
    ("team", ("Red team", "Blue team", "Green team", "Yellow team")),
    ("country", ("Germany", "France", "Brazil", "Canada", "Mexico", "Norway", "Egypt", "Poland")),
    ("country", ("Australia", "Argentina", "Portugal", "Switzerland", "Netherlands", "South Korea")),
    ("city", ("New York", "Los Angeles", "Chicago", "Houston", "Seattle", "Phoenix")),
    ("city", ("Amsterdam", "Barcelona", "Copenhagen", "Stockholm", "Budapest", "Warsaw")),
    ("continent", ("Africa", "Asia", "Europe", "Oceania")),
    ("fruit", ("Strawberries", "Blueberries", "Pineapples", "Watermelons", "Raspberries", "Lemons")),
    ("fruit", ("Banana", "Melon", "Apricot", "Pineapple", "Strawberry", "Blueberry")),
    ("vegetable", ("Tomatoes", "Potatoes", "Cucumbers", "Pumpkins", "Peppers", "Radishes")),
    ("drink", ("Coffee", "Lemonade", "Hot chocolate", "Orange juice", "Iced tea", "Smoothie")),
    ("dish", ("Burger", "Tacos", "Sushi", "Noodles", "Curry", "Sandwich", "Lasagna")),
    ("dessert", ("Brownie", "Pancakes", "Pudding", "Waffles", "Ice cream", "Donut", "Apple pie")),
    ("flavor", ("Chocolate", "Vanilla", "Pistachio", "Caramel", "Hazelnut", "Strawberry")),
    ("product", ("Laptop", "Phone", "Tablet", "Camera", "Headphones", "Printer")),
    ("product", ("Bread", "Butter", "Cheese", "Eggs", "Honey", "Flour")),
    ("toy", ("Dolls", "Puzzles", "Blocks", "Balls", "Robots", "Kites", "Teddy bears")),
    ("sport", ("Basketball", "Volleyball", "Swimming", "Running", "Cycling", "Baseball", "Skiing")),
    ("subject", ("English", "Science", "Geography", "Physics", "Chemistry", "Spanish", "French")),
    ("instrument", ("Piano", "Guitar", "Violin", "Drums", "Flute", "Trumpet", "Saxophone")),
    ("hobby", ("Reading", "Gaming", "Cooking", "Dancing", "Drawing", "Fishing", "Hiking")),
    ("genre", ("Comedy", "Action", "Drama", "Horror", "Romance", "Fantasy", "Thriller")),
    ("movie", ("Moon Race", "Lost Dog", "Big Waves", "Old House", "The Last Train", "Robot City")),
    ("color", ("Orange", "Purple", "Yellow", "Brown", "Turquoise", "Silver")),
    ("animal", ("Elephants", "Giraffes", "Zebras", "Monkeys", "Penguins", "Snakes", "Camels")),
    ("animal", ("Horses", "Sheep", "Goats", "Ducks", "Chickens", "Rabbits", "Donkeys")),
    ("pet", ("Guinea pig", "Goldfish", "Turtle", "Canary", "Budgie")),
    ("vehicle", ("Motorcycle", "Scooter", "Truck", "Tram", "Subway", "Helicopter", "Bicycle")),
    ("flower", ("Roses", "Tulips", "Daisies", "Lilies", "Sunflowers", "Orchids")),
    ("tree", ("Oak", "Pine", "Birch", "Maple", "Beech", "Willow")),
    ("class", ("Class 1", "Class 2", "Class 3", "Class 4", "Class 5")),
    ("class", ("Grade 4", "Grade 5", "Grade 6", "Grade 7", "Grade 8")),
    ("school", ("North High", "West High", "Lakeside", "Hillview", "Riverside", "Oakwood")),
    ("room", ("Bedroom", "Bathroom", "Living room", "Garage", "Basement", "Attic")),
    ("department", ("Marketing", "Finance", "Support", "Design", "Legal", "Research")),
    ("store", ("Main Street", "Park Lane", "Station", "Airport", "Old Town", "Harbor")),
    ("age group", ("0-9", "10-19", "20-29", "30-39", "40-49", "50-59")),
    ("size", ("S", "M", "L", "XL", "XXL")),
    ("answer", ("Very good", "Good", "Okay", "Bad", "Very bad")),
    ("answer", ("Agree", "Disagree", "Not sure")),
    ("answer", ("Always", "Often", "Sometimes", "Never")),
)  # fmt: skip

FAVORITES = (
    "fruit", "drink", "sport", "color", "pet", "dish", "animal", "flavor", "season", "hobby", "genre",
    "movie", "toy", "flower", "month", "day", "city",
)  # fmt: skip
BEST: tuple[tuple[str, ...], ...] = ((), ("best", "most successful"))
WORST: tuple[tuple[str, ...], ...] = ((), ("worst",))
WORK = ("sell", "pick", "catch", "plant", "collect", "wash", "score")  # the more the better
LIKED = "How many [people|kids|] [like|chose|picked|prefer|voted for] {label} [best|]?"
MORE_TOPICS: tuple[Topic, ...] = (
    *(
        Topic(
            (f"Favorite {family}",), "many votes", ("most popular", "best liked", "favorite"),
            ("least popular", "least liked"), ("get", "got"), (family,), (LIKED,), cap=200,
        )
        for family in FAVORITES
    ),
    Topic(
        ("Wins", "Games won", "Matches won"), "many games", ("best", "most successful"), ("worst",),
        ("win", "won"), (*PEOPLE, "country", "class", "school"), wins=True, cap=60,
    ),
    Topic(
        ("Quiz", "Quiz night", "Game night", "Tournament", "Bowling", "Darts", "High scores", "League"),
        "many points", ("best", "strongest"), ("worst", "weakest"), ("score", "scored"),
        (*PEOPLE, "class", "school", "country"), ("[What's|What is] the score of {label}?",), wins=True,
        cap=400,
    ),
    Topic(
        ("Math test", "Spelling test", "Test results", "Exam results"), "many points", ("best",), ("worst",),
        ("get", "got"), ("person", "class", "subject"), (), sums=False, cap=100,
    ),
    Topic(
        ("Laps run", "Laps"), "many laps", ("best",), ("worst",), ("run", "ran"), (*PEOPLE, "class", "day"),
        cap=60,
    ),
    Topic(
        ("Pages read",), "many pages", ("best",), ("worst",), ("read", "read"),
        (*PEOPLE, "class", "day", "week", "month"), cap=500,
    ),
    *(
        Topic((title,), f"many {noun}", BEST[good], WORST[good], does, families, cap=500)
        for title, noun, does, families in (
            ("Cookies sold", "cookies", ("sell", "sold"), (*PEOPLE, *CALENDAR, "class", "store", "hour")),
            ("Cakes sold", "cakes", ("sell", "sold"), (*PEOPLE, *CALENDAR, "class", "store")),
            ("Bikes sold", "bikes", ("sell", "sold"), (*CALENDAR, "city", "store", "person")),
            ("Cookies eaten", "cookies", ("eat", "ate"), ("person", "day", "month")),
            ("Apples picked", "apples", ("pick", "picked"), ("person", "day", "class", "team")),
            ("Fish caught", "fish", ("catch", "caught"), ("person", "day", "month", "season")),
            ("Trees planted", "trees", ("plant", "planted"), (*CALENDAR, "class", "person", "school")),
            ("Cans collected", "cans", ("collect", "collected"), (*PEOPLE, "class", "school", "day", "week")),
            ("Photos taken", "photos", ("take", "took"), ("person", "day", "month", "season")),
            ("Messages sent", "messages", ("send", "sent"), ("person", "day", "month", "department")),
            ("Cars washed", "cars", ("wash", "washed"), ("person", "day", "week", "team")),
            ("Goals scored", "goals", ("score", "scored"), (*PEOPLE, "game", "season", "year", "month")),
            ("Cups of coffee", "cups of coffee", ("drink", "drank"), ("person", "day", "department")),
            ("Glasses of milk", "glasses of milk", ("drink", "drank"), ("person", "day")),
        )
        for good in (does[0] in WORK,)
    ),
    Topic(
        ("Money raised", "Donations"), "much money", ("best", "most successful"), ("worst",),
        ("raise", "raised"), (*PEOPLE, "class", "school", "month", "day", "year"),
        ("How much [money|] was raised {at}?",),
    ),
    Topic(
        ("Pocket money", "Allowance"), "much money", ("richest",), ("poorest",), ("get", "got"), ("person",),
        cap=100,
    ),
    Topic(
        ("Revenue", "Earnings"), "much money", ("best", "strongest"), ("worst", "weakest"),
        ("earn", "earned"), (*CALENDAR, "person", "city", "store", "department", "decade"),
    ),
    Topic(
        ("Distance in km", "Km cycled", "Km run", "Kilometers"), "many kilometers", ("longest",),
        ("shortest",), ("cover", "covered"), ("person", "team", "day", "week", "month"),
        ("How far [was it|did they go] {at}?",), cap=200,
    ),
    Topic(
        ("Height", "Height in cm"), "", ("tallest",), ("shortest",), ("reach", "reached"),
        ("person", "tree", "flower"), ("How tall {is} {label}?", "How [big|high] {is} {label}?"), sums=False,
        cap=200, measured=True,
    ),
    Topic(
        ("Age", "Age in years"), "", ("oldest",), ("youngest",), ("reach", "reached"), ("person", "pet"),
        ("How old {is} {label}?", "[What's|What is] the age of {label}?"), sums=False, cap=100, measured=True,
    ),
    Topic(
        ("Wind speed", "Wind in km/h"), "", ("windiest", "stormiest"), ("calmest",), ("have", "had"),
        ("day", "month", "city", "hour", "season"), ("How windy was it {at}?",), sums=False, cap=100,
        measured=True,
    ),
    Topic(
        ("Temp. in C", "Water temp."), "", ("hottest", "warmest"), ("coldest", "coolest"), ("have", "had"),
        ("day", "month", "city", "hour", "season", "room"), ("How [warm|cold|hot] was it {at}?",), sums=False,
        cap=50, measured=True,
    ),
    Topic(
        ("Waiting time", "Delay in min"), "many minutes", ("longest",), ("shortest",), ("wait", "waited"),
        ("day", "hour", "month", "store", "person"), ("How long did they [have to|] wait {at}?",), sums=False,
        cap=100,
    ),
    Topic(
        ("Travel time",), "many minutes", ("slowest",), ("fastest", "quickest"), ("take", "took"),
        ("vehicle",), ("How long {does} {label} take?",), sums=False, cap=200,
    ),
    Topic(
        ("Accidents",), "many accidents", ("most dangerous",), ("safest",), ("have", "had"),
        (*CALENDAR, "city", "country", "hour", "vehicle"), cap=200,
    ),
    Topic(
        ("Births", "Weddings", "Concerts", "Parties", "Lessons", "Meetings"), "many", ("busiest",),
        ("quietest",), ("have", "had"), ("month", "year", "city", "season", "day", "week"), cap=200,
    ),
    Topic(
        ("Viewers", "Fans", "Listeners", "Subscribers", "Followers"), "many", ("most popular",),
        ("least popular",), ("have", "had"), ("movie", "sport", "month", "person", "team", "genre", "year"),
    ),
    Topic(
        ("Students", "Members", "Children"), "many", ("biggest", "largest"), ("smallest",), ("have", "had"),
        ("class", "school", "subject", "instrument", "sport", "hobby"), cap=900,
    ),
    Topic(
        ("Employees", "Workers"), "many", ("biggest", "largest"), ("smallest",), ("have", "had"),
        ("department", "store", "city", "country"), cap=900,
    ),
    Topic(
        ("Answers", "Replies", "Feedback"), "many answers", ("most common",), ("least common", "rarest"),
        ("get", "got"), ("answer", "age group"), ("How many [people|] [said|answered|chose] {label}?",),
    ),
    Topic(
        ("Animals seen", "Our animals", "Farm animals"), "", ("most common",), ("rarest", "least common"),
        ("see", "saw"), ("animal",),
        ("How many {label} [are there|were there|did they count]?",), cap=200,
    ),
    Topic(
        ("Electricity", "Water used", "Power used"), "", ("most expensive",), ("cheapest",), ("use", "used"),
        (*CALENDAR, "room", "city"), ("How much [was used|did they use] {at}?",),
    ),
    Topic(
        ("Coins", "Stickers", "Marbles", "Candies", "Balloons", "Stamps", "Badges"), "many", ("richest",),
        ("poorest",), ("have", "had"), ("person", "team"), cap=200,
    ),
    Topic(
        ("Hours worked", "Hours trained"), "many hours", ("busiest",), ("laziest",), ("work", "worked"),
        ("person", "day", "week", "month"), ("How long did [they|we] work {at}?",), cap=60,
    ),
    Topic(
        ("T-shirts sold", "Shoes sold"), "", ("best selling", "most popular"), ("least popular",),
        ("sell", "sold"), ("size", "color", "store", "month"), ("How many [were sold|did they sell] {at}?",),
    ),
)  # fmt: skip

# What is told of a title, where the topic's own noun does not say it; empty: nothing that can be counted.
NOUNS = {
    "Sales": "", "Sales 2024": "", "Ice cream sales": "ice creams", "Cars sold": "cars", "Tickets": "tickets",
    "Tickets sold": "tickets", "Guests": "guests", "Customers": "customers", "Users": "users",
    "Attendance": "people", "Likes": "likes", "Goals": "goals", "Gold medals": "gold medals",
    "Temperature": "", "Temperatures": "", "Results": "", "Wins": "wins", "Matches won": "matches",
    "Water used": "", "Profit": "profit", "Income": "", "Tips": "", "Budget": "", "Bills": "",
}  # fmt: skip
VERBS = {
    "Hours slept": ("sleep", "slept"), "Homework": ("spend", "spent"), "Screen time": ("spend", "spent"),
    "Wins": ("get", "got"), "Likes": ("get", "got"), "Km cycled": ("cycle", "cycled"),
    "Km run": ("run", "ran"), "Hours trained": ("train", "trained"), "Ice cream sales": ("sell", "sold"),
    "Savings": ("save", "saved"), "Income": ("earn", "earned"), "Budget": ("have", "had"),
}  # fmt: skip
NOT_GOODS = ("Ice cream sales", "Cars sold", "Tickets", "Tickets sold")  # no fruit sells tickets

# Below the title, in smaller print: what unit it has, or anything.
UNITS = {
    "Rain": "mm", "Rainfall": "mm", "Snow": "cm", "Weight": "kg", "Height": "cm", "Age": "years",
    "Profit": "dollars", "Income": "euros", "Savings": "dollars", "Tips": "dollars", "Costs": "euros",
    "Budget": "dollars", "Spending": "dollars", "Bills": "euros", "Price": "dollars", "Prices": "euros",
    "Speed": "km/h", "Top speed": "km/h", "Money raised": "dollars", "Donations": "euros",
    "Pocket money": "euros", "Revenue": "dollars", "Wind speed": "km/h", "Waiting time": "minutes",
    "Travel time": "minutes", "Screen time": "hours", "Homework": "hours", "Electricity": "kWh",
    "Water used": "liters", "Earnings": "dollars", "Allowance": "dollars",
}  # fmt: skip
SUBTITLES = (
    "our class", "Summer camp", "City survey", "Year 2023", "Season 2024", "School fair", "All results",
    "Final round", "Team report", "in 2022", "in 2024", "All classes", "Our town", "Main office",
    "Group B", "First half", "Sports club", "Village hall", "Annual report",
)  # fmt: skip
UNIT_NAMES = frozenset(name.lower() for name in (*UNITS.values(), "C", "min", "km"))


def unit_in(text: str) -> str:
    """The unit that a title, or what is below it, names in the end: "Rain in mm"."""
    found = re.search(r"\bin (\S+)$", text, re.IGNORECASE)
    return found[1] if found and found[1].lower() in UNIT_NAMES else ""


def spoken(title: str) -> str:
    """The title as one says it, without its unit."""
    said = title.lower().replace("temp.", "temperature")
    unit = unit_in(said)
    return said.removesuffix(f" in {unit}") if unit else said
