"""How people may ask further about cells and print at them: see `row_facts` and `more_facts`."""

# {0} the dog and the cat, {1} in the same row
OF_ROWS: dict[str, tuple[str, ...]] = {
    "same row": (
        "Are {0} {1}?",
        "Are {0} {1}, or not?",
        "[Do you find|Can I find] {0} {1}?",
        "[I think|They say] {0} are {1}. [Is that right|True|Right]?",
    ),
    # {0} the dog, {1} in the same row as
    "others in row": (
        "What [else|] is {1} {0}?",
        "[What|Which] [other |]things are {1} {0}?",
        "[Name|List|Tell me] [all|] the other things {1} {0}.",
        "[What|Which] things [do you see|are shown] {1} {0}?",
        "{1} {0}, what [else |]is there?",
    ),
    # {0} row, {1} things, {2} most
    "fullest row": (
        "[Which|What] {0} has the {2} {1}?",
        "[Which|What] {0} has the {2} {1} [on it|in it|]?",
        "Where are the {2} {1}[, which {0}|: which {0}]?",
        "Tell me the {0} with the {2} {1}.",
    ),
    # {0} on the top shelf, {1} on the bottom shelf
    "which fuller": (
        "Are there more things {0} or {1}?",
        "Where are more things: {0} or {1}?",
    ),
    # {0} in the top row, {1} animal, {2} animals, {3} an animal
    "kind in row": (
        "[What|Which] {1} is {0}?",
        "[What|Which] {1} [do you see|is there|is shown] {0}?",
        "Name the {1} {0}.",
        "{0}, which {1} is there?",
    ),
    "kinds in row": (
        "[What|Which] {2} are {0}?",
        "[What|Which] {2} [do you see|are there|are shown] {0}?",
        "[Name|List] the {2} {0}.",
        "[Tell me|Say] which {2} are {0}.",
    ),
    "number of kind in row": (
        "How many {2} are {0}?",
        "How many {2} [do you see|are there|can you find] {0}?",
        "Count the {2} {0}.",
        "{0}, how many {2} are there?",
    ),
    "is kind in row": (
        "Is there {3} {0}?",
        "[Do|Can] you see {3} {0}?",
        "Are there any {2} {0}?",
        "Any {2} {0}?",
    ),
    # {0} the dog, {1} the cat
    "next to": (
        "<Is> {0} [right|directly|just|] next to {1}?",
        "<Is> {0} [right|directly|] beside {1}?",
        "Are {0} and {1} [next to each other|neighbors|side by side]?",
        "[I think|They say] {0} <is> next to {1}. [Right|Is that so|True]?",
    ),
    # {0} the dog
    "both sides": (
        "What is [directly |]to the left and [to the |]right of {0}?",
        "[What|Which] things are [right |directly |][beside|next to] {0}, left and right?",
        "What [things|two things] are to the left and right of {0}?",
    ),
    "between which": (
        "[What|Which] two things <is> {0} [right |]between?",
        "Between [what|which two things] <is> {0}?",
        "[What|Which] two things are on either side of {0}?",
        "What are the two neighbors of {0}?",
    ),
    # {0} card
    "empty in row": (
        "[Which|What] row has the [empty|blank] {0}?",
        "In [which|what] row is the [empty|blank] {0}?",
        "Where is the [empty|blank] {0}[, in which row|: which row]?",
        "One {0} is [empty|blank]. [In which row|Which row is it in]?",
    ),
    "corners": (
        "What is in the [four|] corners?",
        "[What|Which] [things|pictures] are in the [four|] corners?",
        "[Name|List] what is in the four corners.",
    ),
}  # fmt: skip

# {0} the pizza, {1} the cake, {2} $10
OF_GOODS: dict[str, tuple[str, ...]] = {
    "both together": (
        "How much [are|is|do I pay for|would be] {0} and {1} [together|in total|altogether]?",
        "[What|How much] do {0} and {1} cost [together|in total|altogether]?",
        "[I'd like|I'll take|Give me] {0} and {1}. [How much is that|What does that make|What do I owe you]?",
        "[What's|What is] the total for {0} and {1}?",
        "If I buy {0} and {1}, [what do I pay|how much is it]?",
        "Add up {0} and {1}[: how much|].",
    ),
    "price apart": (
        "How much more [does {0} cost|expensive is {0}] than {1}?",
        "How much cheaper is {1} than {0}?",
        "[What's|What is] the difference in price between {0} and {1}?",
        "How much do I save if I [take|buy] {1} instead of {0}?",
    ),
    "change": (
        "I [pay for|buy] {0} with {2}. How much [change |]do I get back?",
        "I buy {0} and [give|pay with] {2}. [What's|What is] my change?",
        "I have {2} and buy {0}. How much [is|do I have] left?",
        "What is left of {2} if I buy {0}?",
    ),
    "same price": (
        "Do {0} and {1} cost the same?",
        "Are {0} and {1} the same price?",
        "Is the price of {0} and {1} the same?",
        "Do I pay the same for {0} and {1}?",
    ),
    # {0} $5
    "costs less": (
        "What [costs|is] less than {0}?",
        "[Which things|Which items|What things] [cost|are] less than {0}?",
        "What [can I get|can I buy|is there|do they have] for [less than|under] {0}?",
        "[Name|List|Show me] everything [under|below|for less than] {0}.",
        "[Which items|Which things|Which ones] are [under|below|cheaper than] {0}?",
    ),
    "costs more": (
        "What [costs|is] more than {0}?",
        "[Which things|Which items|What things] [cost|are] more than {0}?",
        "[Name|List|Show me] everything [over|above] {0}.",
        "[Which items|Which things|Which ones] are [over|above|more expensive than] {0}?",
    ),
    "number less": (
        "How many [things|items] [cost less than|are under|are cheaper than] {0}?",
        "How many of [the things|them] cost less than {0}?",
    ),
    "number more": (
        "How many [things|items] [cost more than|are over|are above] {0}?",
    ),
    "second cheapest": (
        "[What's|What is|Which is] the second cheapest [thing|item|one|]?",
        "[What|Which item] is the second cheapest?",
    ),
    "second dearest": (
        "[What's|What is|Which is] the second most expensive [thing|item|one|]?",
        "[What|Which item] is the second most expensive?",
    ),
    "prices": (
        "[What|Which] prices [are there|do you see|can you read|are shown]?",
        "[Read|List|Tell me|Give me] [all|] the prices.",
        "What are the prices?",
    ),
    "goods": (
        "What [can I buy|do they sell|is for sale|is on offer|can I get|can I order] [here|]?",
        "What do they have?",
        "What is there to buy?",
        "What [things|items] have a price?",
    ),
    # {0} a pizza, {1} pizzas
    "in stock": (
        "[Do they|Do you] [have|sell] {1}?",
        "Can I [buy|get|order] {0} [here|]?",
        "Is {0} [for sale|sold here|on offer]?",
        "I'd like {0}. [Do you have one|Is that possible|Do they have it]?",
    ),
    # {0} fruit
    "price of kind": (
        "How much is the {0}?",
        "[What|How much] does the {0} cost?",
        "[What's|What is] the price of the {0}?",
        "I only want the {0}. How much is [that|it]?",
    ),
}  # fmt: skip

OF_LABELS: dict[str, tuple[str, ...]] = {
    # {0} an animal, {1} the animal
    "who has kind": (
        "Who has {0}?",
        "Who [owns|got|brought|chose] {0}?",
        "Whose is {1}?",
        "[Which|What] [person|name] has {0}?",
        "To whom does {1} belong?",
    ),
    "team of kind": (
        "[Which|What] team has {0} [on its badge|as its badge|]?",
        "Which team plays with {0}?",
        "Whose badge shows {0}?",
    ),
    # {0} the guitar, {1} Mia, {2} Leo
    "who of two": (
        "Who has {0}, {1} or {2}?",
        "Whose <is> {0}: {1}'s or {2}'s?",
        "{1} or {2}: who has {0}?",
        "Who is it that has {0}, {1} or {2}?",
    ),
    "sign of two": (
        "Which <is> {0}, {1} or {2}?",
        "<Is> {0} {1} or {2}?",
        "{1} or {2}: which <is> {0}?",
    ),
    # {0} Mia
    "is listed": (
        "Is {0} [there|listed|on it|on the list]?",
        "Is there a name {0}?",
        "[Do|Can] you [see|find|read] the name {0}?",
    ),
    "is option": (
        "Is there [an option|a choice|an answer] {0}?",
        "Can I [choose|pick|say] {0}?",
        "[Do|Can] you see {0} among the [options|choices]?",
    ),
    "is shown": (
        "Is {0} [shown|there|on it|listed]?",
        "Does it show {0}?",
        "[Do|Can] you see {0}?",
        "Is {0} among [the days|them]?",
    ),
    # {0} animals, {1} letters
    "signs of kind": (
        "[Which|What] {1} [are|show] {0}?",
        "[Which|What] {1} [do I pick|must I press] for the {0}?",
        "[Give me|Tell me|List] the {1} of the {0}.",
        "Under which {1} are there {0}?",
    ),
    "teams": (
        "[What|Which] teams [are there|do you see|are shown|play]?",
        "[Name|List|Tell me] [all|] the teams.",
        "What are the teams called?",
    ),
    "number of teams": (
        "How many teams [are there|do you see|are shown]?",
        "Count the teams.",
    ),
    "days": (
        "[What|Which] days [are there|are shown|do you see|does it show]?",
        "For [which|what] days is it?",
        "[Name|List|Tell me] the days.",
    ),
    "number of days": (
        "How many days [are there|are shown|do you see|does it show]?",
        "For how many days is it?",
        "Count the days.",
    ),
    # {0} left, {1} Hill
    "thing beside": (
        "[What|Which thing] is to the {0} of the [picture|one] [labeled|marked|called] {1}?",
        "[What|Which thing] is [directly |just |]{0} of the [picture|one] with {1}?",
    ),
    "label beside": (
        "[What|Which] [word|label|text] is [directly |just |]to the {0} of {1}?",
        "What does it say to the {0} of {1}?",
        "[Read|Tell me] the [word|label|text] to the {0} of {1}.",
    ),
    # {0} fields
    "free fields": (
        "[Which|What] {0} are [empty|free|blank]?",
        "[Name|List|Give me] the numbers of the [empty|free|blank] {0}.",
        "To which {0} can I go, which are [free|empty]?",
    ),
    # {0} field 3, {1} 2
    "after steps": (
        "I'm on {0} and go {1} [further|on]. What is [there|on that field]?",
        "I [am|stand] on {0} and [roll|throw] a {1}. What do I land on?",
        "My piece is on {0}. I roll {1}. What is on the field I reach?",
    ),
    # {0} the dog, {1} the cat
    "steps between": (
        "How many [fields|steps] is it from {0} to {1}?",
        "How many [fields|steps] do I go from {0} to {1}?",
        "I'm at {0}. What must I roll to get to {1}?",
    ),
}  # fmt: skip

# {0} on Tue, {1} Tue
OF_DAYS: dict[str, tuple[str, ...]] = {
    "free days": (
        "[Which|What] days are [free|empty]?",
        "When is [nothing planned|there nothing]?",
        "On which days [is there nothing|do I have nothing|is nothing planned]?",
        "When am I free?",
    ),
    "is free": (
        "Is {1} [free|empty]?",
        "[Am I|Are we] free {0}?",
        "Is there nothing {0}?",
    ),
    "is planned": (
        "Is [anything|something] [planned|shown|] {0}?",
        "[Do I|Do we] have [anything|something] {0}?",
        "Is there anything {0}?",
    ),
    "first": (
        "What [comes|is] first?",
        "[What's|What is] the first thing [on the plan|planned|]?",
        "What do we [begin|start] with?",
    ),
    "last": (
        "What [comes|is] last?",
        "[What's|What is] the last thing [on the plan|planned|]?",
        "What do we [end|finish] with?",
    ),
    # {0} the cake
    "before": (
        "What [comes|is] [right|directly|just|] before {0}?",
        "[What's|What is] [the thing |]just before {0}?",
    ),
    "day after": (
        "What [comes|is] [planned |]the day after {1}?",
        "What [is there|do we have|comes] [on |]the next day after {1}?",
    ),
    "ever rainy": (
        "[Does|Will] it rain [at all|on any day|sometime]?",
        "Is there any rain [coming|]?",
        "Is any day rainy?",
    ),
    "ever snowy": (
        "[Does|Will] it snow [at all|on any day|sometime]?",
        "Is there any snow [coming|]?",
    ),
    "ever sunny": (
        "Is it [ever|] sunny [on any day|at all|sometime]?",
        "Will there be any sun?",
        "[Does|Will] the sun shine [at all|on any day]?",
    ),
    # {0} on Mon, {1} on Tue, {2} Mon, {3} Tue
    "same weather": (
        "Is the weather the same {0} and {1}?",
        "Is it the same [weather|symbol] {0} and {1}?",
        "Do {2} and {3} have the same weather?",
        "Is the weather {1} the same as {0}?",
    ),
    "degrees apart": (
        "How many degrees warmer is it {0} than {1}?",
        "How much warmer is it {0} than {1}?",
        "How many degrees colder is it {1} than {0}?",
        "[What's|What is] the difference in [temperature|degrees] between {2} and {3}?",
    ),
    # {0} 20 degrees
    "days above": (
        "[Which|What] days are [warmer than|above|over] {0}?",
        "On which days is it [warmer than|above|over] {0}?",
        "When is it [warmer than|above|over] {0}?",
    ),
    "days below": (
        "[Which|What] days are [colder than|below|under] {0}?",
        "On which days is it [colder than|below|under] {0}?",
        "When is it [colder than|below|under] {0}?",
    ),
    # {0} on Mon, {1} 20 degrees
    "is above": (
        "Is it [warmer than|above|over] {1} {0}?",
        "Will it be [warmer than|above|over] {1} {0}?",
    ),
    "temperatures": (
        "[What|Which] temperatures [are there|do you see|are shown]?",
        "[Read|List|Tell me] [all|] the temperatures.",
        "What are the temperatures?",
    ),
}  # fmt: skip
QUESTIONS = OF_ROWS | OF_GOODS | OF_LABELS | OF_DAYS
