"""How people may ask about days and hours with pictures: plans, and the weather. See `day_facts`."""

QUESTIONS: dict[str, tuple[str, ...]] = {
    # {0} the cake
    "which day": (
        "On [which|what] day <is> {0}?",
        "[Which|What] day [has|shows|is marked with|is the day of] {0}?",
        "When <is> {0}?",
        "For [which|what] day <is> {0} [planned|down|shown|entered]?",
        "{0}[:|,] [what|which] day?",
        "[I don't want to miss|Remind me of|I'm looking for] {0}. Which day is it?",
        "At which day do you see {0}?",
    ),
    "which time": (
        "When <is> {0}?",
        "At [which|what] time <is> {0}?",
        "[Which|What] time [has|shows|is marked with] {0}?",
        "{0}[:|,] [when|at what time]?",
        "[I don't want to miss|Remind me of] {0}. [When is it|What time is it]?",
    ),
    # {0} on Tue, {1} Tue
    "what on": (
        "What is [planned|shown|there|] {0}?",
        "[What's|What is] [the plan|on the plan|on|up] {0}?",
        "What do [I|we] have {0}?",
        "[What|Which picture|Which symbol|Which icon] is [at|by|with|shown for] {1}?",
        "What [happens|comes up|is going on] {0}?",
        "{0}[,|:] what [is there|is it|do you see]?",
        "What does the [plan|calendar|schedule|timetable] show for {1}?",
    ),
    # {0} the cake, {1} on Tue
    "is on": (
        "<is> {0} {1}?",
        "Do we have {0} {1}?",
        "[I thought|I think|They say] {0} <is> {1}. Is that right?",
        "<is> {0} planned {1}?",
    ),
    "after": (
        "What [comes|is|follows] [right|directly|] after {0}?",
        "What [comes|is] next after {0}?",
        "What is the next thing after {0}?",
        "When {0} <is> over, what is next?",
    ),
    # {0} on Fri, {1} Fri
    "weather on": (
        "[What's|What is] the weather [like|] {0}?",
        "What will the weather be [like|] {0}?",
        "[What's|What is] the forecast for {1}?",
        "What kind of weather [do we|will we|do they] [get|have|expect] {0}?",
        "[How is the weather|How will the weather be|How does the weather look] {0}?",
        "[I want to go out|We plan a picnic|I'm traveling|We have a party] {0}. What's the weather?",
        "{1}[:|,] what's the weather?",
        "What weather [is expected|is forecast|can we expect] {0}?",
    ),
    "symbol on": (
        "[What|Which] [symbol|icon|picture] is [shown|there|] {0}?",
        "[What|Which] [symbol|icon|picture] [belongs to|stands at|is at|is by] {1}?",
        "[What|Which] weather [symbol|icon] does {1} have?",
    ),
    # {0} day
    "sunny day": (
        "On [which|what] {0} [is it|will it be] sunny?", "When [does|will] the sun shine?",
        "[Which|What] {0} is sunny?", "When is [it sunny|there sun]?", "Which {0} [has|gets] sun?",
        "When can we go to the beach, I mean which {0} is sunny?", "Which {0} shows the sun?",
    ),
    "rainy day": (
        "On [which|what] {0} [does|will] it rain?", "When [does it rain|will it rain|is it going to rain]?",
        "[Which|What] {0} is rainy?", "Which {0} [has|gets] rain?", "When do we get wet?",
        "On which {0} do I need an umbrella?",
    ),
    "snowy day": (
        "On [which|what] {0} [does|will] it snow?", "When [does|will] it snow?", "[Which|What] {0} is snowy?",
        "Which {0} [has|gets] snow?", "When can the kids build a snowman?",
    ),
    "cloudy day": (
        "On [which|what] {0} is it cloudy?", "When [is it|will it be|does it get] cloudy?",
        "[Which|What] {0} is cloudy?", "Which {0} [has|shows] clouds?",
    ),
    "thunderstorm day": (
        "On [which|what] {0} is there a thunderstorm?",
        "When [is there|do we get] [lightning|a thunderstorm]?",
        "[Which|What] {0} [has|shows] lightning?", "Which {0} is stormy, with lightning?",
    ),
    "is sunny": (
        "Is [it|it going to be|the weather] sunny {0}?",
        "Is there sun {0}?", "[Does|Will] the sun shine {0}?",
        "Will it be sunny {0}?", "Can we expect sun {0}?",
    ),
    "is rainy": (
        "Does it rain {0}?", "Will it rain {0}?", "Is there rain {0}?", "Is it going to rain {0}?",
        "Will I get wet {0}?", "Do they expect rain {0}?",
    ),
    "is snowy": (
        "Does it snow {0}?", "Will it snow {0}?", "Is there snow {0}?", "Is it going to snow {0}?",
    ),
    "is cloudy": ("Is it cloudy {0}?", "Will it be cloudy {0}?", "[Are there|Will there be] clouds {0}?"),
    "umbrella": (
        "Do I need [an|my] umbrella {0}?",
        "Should I take an umbrella {0}?",
        "[I go for a walk|We go hiking|I have to go out] {0}. Umbrella, yes or no?",
    ),
    "number sunny": (
        "How many [sunny days|days with sun] are there?",
        "On how many days [is it sunny|does the sun shine]?",
        "How many days are sunny?",
    ),
    "number rainy": (
        "How many [rainy days|days with rain] are there?",
        "On how many days does it rain?",
        "How many days are rainy?",
    ),
    "degrees on": (
        "How [warm|cold|hot] [is it|will it be|does it get|will it get] {0}?",
        "[What's|What is|What will be] the temperature {0}?",
        "How many degrees [is it|will it be|do we get|are expected] {0}?",
        "[What|Which] temperature [is expected|is forecast|do they give|is shown] [for {1}|{0}]?",
        "{1}[:|,] how many degrees?",
        "[I'm packing|What should I wear? I go out|I travel] {0}. How warm [is it|will it be]?",
    ),
    "warmest": (
        "[What's|What is|Which is] the [warmest|hottest] {0}?",
        "[Which|What] {0} is [the warmest|warmest|the hottest|hottest]?",
        "When is it [warmest|hottest|the warmest]?",
        "On which {0} is the temperature highest?",
        "[I love the heat|I hate the cold]. Which {0} is the warmest?",
    ),
    "coldest": (
        "[What's|What is|Which is] the [coldest|coolest] {0}?",
        "[Which|What] {0} is [the coldest|coldest|the coolest]?",
        "When is it [coldest|the coldest]?",
        "On which {0} is the temperature lowest?",
        "[I hate the heat|I need my warm coat]. Which {0} is the coldest?",
    ),
    "highest degrees": (
        "[What's|What is] the highest temperature?", "How warm does it get at most?",
        "[What's|What is] the maximum [temperature|]?",
    ),
    "lowest degrees": (
        "[What's|What is] the lowest temperature?", "How cold does it get at the coldest?",
        "[What's|What is] the minimum [temperature|]?",
    ),
    # {0} on Mon, {1} on Tue
    "warmer": ("Is it warmer {0} than {1}?", "Is it hotter {0} than {1}?", "Will it be warmer {0} than {1}?"),
    "which warmer": (
        "When is it warmer, {0} or {1}?", "Is it warmer {0} or {1}?", "Warmer {0} or {1}?",
    ),
    "freezing": (
        "Is it below zero {0}?", "Does it freeze {0}?",
        "[Is the temperature|Will the temperature be] below zero {0}?",
    ),
}  # fmt: skip
