"""How people ask about signs: prices, times, gates, what words mean. The answers are in `more`."""

from kestrel_tools.things.language.questions import CARRIER

QUESTIONS: dict[str, tuple[str, ...]] = {
    "price": (
        "[How much|What] [do I have to|will I|would I|must I] pay [for it|here|]?",
        f"[What|Which] price is on [the|this] {CARRIER}?",
        "What does [it|this|that] sell for?",
        "[Price|The price|Price tag], please[.|?|]",
        "How expensive is it, according to the [sign|tag|label]?",
        "What's it going to cost me?",
        "[I want to buy this|I would like to buy it][.|:|,] [What's|What is] the price?",
        "what does it cost how much money",
        "Read [me|] the price [tag|].",
        "What [amount|sum] of money is [written|printed|given] [there|here]?",
    ),
    "is price": (
        "Is there a price [on it|here|given|]?",
        "Does it [say|tell] [what|how much] it costs?",
        "Is [a|the] price [written|printed|shown] [anywhere|here|]?",
    ),
    "time": (
        "What time does it [show|give|read|tell] [here|]?",
        f"[What|Which] time is [given|written|printed|on] [on|] [the|this] {CARRIER}?",
        "[At what|At which] time, according to the [text|sign|notice]?",
        "[What|Which] [time|clock time] is printed [there|here|]?",
        "[When is it|When], according to the [sign|notice|note]?",
        "I must not be late[.|:] [What|Which] time does it say?",
        "What's the time it says?",
    ),
    "percentage": (
        "How many percent [are given|are on the sign|do they write|is that|stand there]?",
        "[What|Which] percentage does [it|the sign|the text] [say|give|mention]?",
        "[What's|What is] the percentage [here|on it|]?",
        "How much is it in percent?",
        "It is a number of percent[.|:|,] [which|how many]?",
    ),
    "year": (
        "[What|Which] year is [written|printed|shown|given|mentioned] [here|]?",
        "[What|Which] year does it say?",
        "[What's|What is] the year [on it|printed there|]?",
    ),
    "distance": (
        "How far is it, according to the [sign|text]?",
        "How many kilometers [does it say|is it|are given]?",
        "[What|Which] distance is [given|written|printed]?",
    ),
    "weight": (
        "[What|Which] weight is [given|written|printed] [here|]?",
        "How heavy is it, according to the [label|text]?",
        "How much does it say it weighs?",
    ),
    "length": (
        "[What|Which] [length|measure] is [given|written|printed] [here|]?",
        "How long is it, according to the [label|text]?",
    ),
    "volume": (
        "How many liters [does it say|are given|is it]?",
        "[What|Which] amount is [given|printed] [here|]?",
    ),
    "speed": (
        "How fast [may I drive|can I go|may one go] [here|], according to the sign?",
        "[What|Which] speed is [given|written|printed|shown] [here|]?",
        "[What's|What is] the speed limit?",
    ),
    "temperature": (
        "[What|Which] temperature is [given|written|printed|shown] [here|]?",
        "How [hot|warm|cold] is it, according to the [text|sign|display]?",
        "How many degrees [does it say|are shown]?",
    ),
    # {1} is gate, room, seat.
    "numbered": (
        "[What|Which] {1} [is it|do I want|is mine|is meant|is written|is printed] [here|]?",
        "[What|Which] {1} does [the|this] [sign|ticket|card|note] say?",
        "I [am looking for|can't find|forgot] my {1}[.|,|:] Which [number|one] is it?",
        "[Tell me|Give me|Read] the {1} number.",
        "{1} number[, please|?]",
        "To which {1} [do I|should I|must we] go?",
    ),
    "seat": ("Where do I sit? Which seat?", "[What|Which] seat [have I got|is mine|was I given|do I have]?"),
    "floor": ("[On|To] which floor [is it|do I have to go]?", "How high up? Which floor?"),
    "gate": ("[At|From] which gate [do I board|does it leave|is boarding]?", "Where do I board? Which gate?"),
    "room": ("In which room [is it|does it take place|am I]?", "Where is the meeting? Which room?"),
    "bus": ("[What|Which] bus [do I take|is it|is coming|should I take]?", "Number of the bus?"),
    "track": ("[From|At] which track does the train [leave|stop]?", "Which track is the train on?"),
    # What words mean.
    "city": (
        "[What|Which] [city|town] is [written|named|mentioned|printed] [there|here|in the text|]?",
        "[What|Which] city [do you read|does it say|does the text name|does the sign mention]?",
        "The name of a city is written there[.|:|,] [Which|Which one]?",
        "Where does the sign [say|point] to? Which city?",
    ),
    "country": (
        "[What|Which] country is [written|named|mentioned|printed] [there|here|in the text|]?",
        "[What|Which] country [do you read|does it say|does the text name]?",
        "The name of a country is written there[.|:|,] Which?",
    ),
    "name": (
        "Whose name is [written|printed|on it|there|on the card]?",
        "Who is it for[, according to the text|, going by the name|]?",
        "[What|Which] [person|first name] is [named|mentioned|written] [here|in the text|]?",
        "[What|Which] name [do you read|is on the tag|is on the card|does it say|is printed there]?",
        "Who is the [card|note|letter|message|parcel] [addressed to|for]?",
        "[What's|What is] the name? It is printed there.",
        "Who is named?",
    ),
    "day": (
        "[What|Which] day [of the week|] is [written|named|printed|mentioned|given] [there|here|]?",
        "[What|Which] day does it say?",
        "On [what|which] day is it, according to the [text|note|sign]?",
        "[What|Which] weekday do you read?",
    ),
    "month": (
        "[What|Which] month is [written|named|printed|mentioned|given] [there|here|]?",
        "[What|Which] month does it say?",
        "In [what|which] month is it, according to the [text|note|poster]?",
    ),
    "season": (
        "[What|Which] season is [written|named|printed|mentioned] [there|here|]?",
        "[What|Which] season does it say?",
    ),
    "animal": (
        "[What|Which] animal is [named|mentioned] in the [text|writing]?",
        "[What|Which] animal's name is [written|printed] [there|here|]?",
        "The text names an animal[.|,|:] Which?",
    ),
    "drink": (
        "[What|Which] drink is [named|mentioned|written|printed] [there|here|in the text]?",
        "The text names something to drink[.|,|:] What?",
    ),
    "food": (
        "[What|Which] food is [named|mentioned|written|printed] in the text?",
        "The text names something to eat[.|,|:] What?",
    ),
    "number word": (
        "[What|Which] number is written [out|as a word|in letters|in words]?",
        "The text has a number in letters[.|,|:] Which?",
    ),
}  # fmt: skip

# Words that mean one thing only, by what they mean. Each is printed now and then.
MEANINGS: dict[str, frozenset[str]] = {
    kind: frozenset(words.split())
    for kind, words in {
        "city": "amsterdam athens atlanta berlin boston chicago dublin istanbul lisbon london madrid miami "
        "milan moscow munich naples prague rome sydney tokyo turin venice vienna warsaw zurich",
        "country": "austria brazil canada denmark finland france germany greece ireland italy japan kenya "
        "mexico norway poland portugal russia spain sweden",
        "name": "adam alice anna bella carla charlie clara daniel david diana edward ella emily frank george "
        "hannah harry helen henry hugo isabel jack james julia karen kevin laura lucas lucy maria martin "
        "monica nora oliver oscar peter robert simon sofia stella thomas vincent",
        "day": "monday tuesday wednesday thursday friday saturday sunday",
        "month": "january june july august september october",
        "season": "summer autumn winter",
        "animal": "dog cat zebra lion bird elephant dolphin donkey eagle duck cow goat horse monkey otter "
        "parrot pigeon pony puppy rabbit raven shark sheep spider tiger turtle whale wolf fox cobra panda",
        "drink": "coffee tea milk juice wine lemonade",
        "food": "bread cake cheese soup salad pizza sandwich noodle pasta bacon bagel biscuit burger cookie "
        "muffin pudding sausage steak toast yogurt",
        "number word": "one two three four five six seven eight nine ten eleven twelve twenty thirty forty "
        "fifty",
    }.items()
}
# Of these, no second word of a kindred meaning may stand beside the one that is asked for.
AKIN = {"city": ("country", "name"), "country": ("city",), "name": ("city",), "food": ("drink", "animal")}
MEANING_OF = {word: kind for kind, words in MEANINGS.items() for word in words}
