"""How people may ask about print at things: days, prices, names. The answers are in `label_facts`."""

QUESTIONS: dict[str, tuple[str, ...]] = {
    # {0} the dog, {1} under
    "label at": (
        "What does it say {1} {0}?",
        "[What's|What is] [written|printed|the text|the word] {1} {0}?",
        "[Read|Please read|Can you read] [me|] [what is|the text|the print|the label] {1} {0}[.|?]",
        "[Which|What] [word|text|label] is {1} {0}?",
        "{1} {0} [something is|there's something] written[.|,] [What is it|What does it say]?",
        "[I can't read|My eyes are too bad for] what is {1} {0}. What does it say?",
        "What do the letters {1} {0} say?",
        "Transcribe the label {1} {0}.",
    ),
    "label of": (
        "[What's|What is] the [label|caption|text] of {0}?",
        "[What|Which] [label|caption|text] <does> {0} have?",
        "How <is> {0} labeled?",
        "[What|Which text] is printed [at|by|on the card with|with] {0}?",
        "What does it say [at|by|on the card with] {0}?",
        "Find {0} and read [its|the] label.",
        "[What|Which] print belongs to {0}?",
    ),
    # {0} the word, {1} above
    "thing at": (
        "[What's|What is] {1} {0}?",
        "[What|Which] [thing|picture] is {1} {0}?",
        "What do you see {1} {0}?",
        "What [is shown|is drawn|can be seen|is pictured] {1} {0}?",
        "{1} {0}[,|:] what is [it|there|that]?",
        "[It says|I can read] {0} [there|somewhere|]. What is {1} [it|that]?",
    ),
    "thing with": (
        "[What|Which] [thing|picture] [has the label|is labeled|goes with|belongs to] {0}?",
        "What is [labeled|marked|captioned] {0}?",
        "What does the picture [labeled|with the label|marked|captioned] {0} show?",
        "What is shown where it says {0}?",
        "{0}[:|,] [what is it|what picture is that|what is shown there]?",
        "[Find|Look for] {0}. What is [pictured|shown|drawn] there?",
    ),
    # {0} the dog, {1} under, {2} text
    "says at": (
        "Does it say {2} {1} {0}?",
        "Is {2} [written|printed|what it says] {1} {0}?",
        "Is [the word|the label|the text] {1} {0} {2}?",
        "[I think|I believe] it says {2} {1} {0}. [Right|Is that so|Correct]?",
    ),
    # {0} the pizza
    "price of": (
        "How much <is> {0}?",
        "How much <does> {0} cost?",
        "What <does> {0} cost?",
        "[What's|What is] the price of {0}?",
        "[What|How much] do I [pay|have to pay|owe] for {0}?",
        "[I'd like|I'll take|I want|Give me] {0}. [How much is that|What does that cost|What do I owe you]?",
        "{0}[:|,] how much?",
        "[Which|What] price <does> {0} have?",
        "How much [do they want|are they asking|money do I need] for {0}?",
        "Price of {0}?",
        "[What's|What is] the price tag [of|on|at] {0}?",
        "[Tell me|Look up] the price of {0}.",
    ),
    # {0} $3
    "costs": (
        "[What|Which thing|Which one|Which item] costs {0}?",
        "What [can I get|do I get|can I buy] for [exactly|] {0}?",
        "[What|Which one] is {0}?",
        "[What|Which item] is [sold|on sale|offered] for {0}?",
        "Which [thing|item] has the price {0}?",
        "[I paid|They charged me] {0}. What did I buy?",
        "What is the thing for {0}?",
    ),
    "cheapest": (
        "[What's|What is|Which is] the cheapest[| thing| item| one]?",
        "[What|Which one|Which thing|Which item] is [the cheapest|cheapest|the least expensive]?",
        "[What|Which thing|Which item] costs [the least|least]?",
        "What has the lowest price?",
        "[I have [little|not much] money|I'm broke|I need to save money]. What is the cheapest [thing|one]?",
        "I want to spend as little as I can. What do I take?",
    ),
    "dearest": (
        "[What's|What is|Which is] the most expensive[| thing| item| one]?",
        "[What|Which one|Which thing|Which item] is [the most expensive|the priciest|the dearest]?",
        "[What|Which thing|Which item] costs [the most|most]?",
        "What has the highest price?",
        "[Money is no problem|I am rich|Price doesn't matter]. What is the most expensive [thing|one]?",
    ),
    "lowest price": (
        "[What's|What is] the lowest price?",
        "How much is the cheapest [one|thing|item]?",
        "What does the cheapest [one|thing|item] cost?",
        "Which price is the lowest?",
    ),
    "highest price": (
        "[What's|What is] the highest price?",
        "How much is the most expensive [one|thing|item]?",
        "What does the most expensive [one|thing|item] cost?",
        "Which price is the highest?",
    ),
    # {0} the pizza, {1} the cake
    "dearer": (
        "<is> {0} more expensive than {1}?",
        "<does> {0} cost more than {1}?",
        "Do I pay more for {0} than for {1}?",
        "Is the price of {0} higher than that of {1}?",
    ),
    "cheaper": (
        "<is> {0} cheaper than {1}?",
        "<does> {0} cost less than {1}?",
        "Do I pay less for {0} than for {1}?",
        "Would I save money with {0} instead of {1}?",
    ),
    "which cheaper": (
        "[Which|What] is cheaper, {0} or {1}?",
        "[Which|What] costs less: {0} or {1}?",
        "[I can't decide between|I'm torn between] {0} and {1}. Which is cheaper?",
        "{0} or {1}, which [one|] is cheaper?",
    ),
    "which dearer": (
        "[Which|What] is more expensive, {0} or {1}?",
        "[Which|What] costs more: {0} or {1}?",
        "{0} or {1}, which [one|] is more expensive?",
    ),
    # {0} the pizza, {1} $5
    "afford": (
        "I have {1}. Can I [buy|afford|get|pay for] {0}?",
        "[Is|Are] {1} enough for {0}?",
        "[My son|My daughter|Grandpa|She] has {1}. Is that enough for {0}?",
        "Can I [buy|get] {0} with {1}?",
        "With {1} in my pocket, can I buy {0}?",
    ),
    # {0} the guitar
    "whose": (
        "Whose <is> {0}?",
        "[Who has|Who owns|Who's got|Who got|Who brought] {0}?",
        "[To whom <does> {0} belong|Who <does> {0} belong to]?",
        "[Which|What] [person|name|kid|child] has {0}?",
        "[Someone|Somebody] left {0}. [Whose <is> <it>|Who should I call|Whose name is on it]?",
        "[Whose name|Which name|What name] is [at|with|by|on] {0}?",
        "Who is the owner of {0}?",
        "{0}[:|,] whose?",
        "I found {0}. Who do I give <them> to?",
    ),
    # {0} Mia
    "has what": (
        "What does {0} have?",
        "What has {0} got?",
        "What [belongs to|is owned by] {0}?",
        "[What|Which thing|Which one|Which picture] is {0}'s?",
        "[What|Which thing] did {0} [bring|get|choose|pick]?",
        "[What|Which picture] is [next to|at|by|with] the name {0}?",
        "{0} has what?",
        "[I'm|I am|My name is] {0}. What is mine?",
        "What thing does {0} own?",
    ),
    # {0} Mia, {1} the guitar
    "does have": (
        "Does {0} have {1}?",
        "Has {0} got {1}?",
        "Is it true that {0} has {1}?",
        "Is {1} {0}'s?",
        "Did {0} get {1}?",
        "Is it {0} who has {1}?",
    ),
    "number of people": (
        "How many [people|names|persons|owners] are [there|listed|mentioned|named]?",
        "How many [names|people's names] [do you see|can you read|are printed]?",
        "Count the names.",
    ),
    "who": (
        "[Who|Which people] [is|are] [listed|named|mentioned] [here|there|]?",
        "[What|Which] names [are there|do you see|can you read|are printed]?",
        "[Read|List|Name|Give me] [all|] the names[ here||].",
        "What are [they|the people] called?",
    ),
    # {0} the cat, {1} number
    "which sign": (
        "[Which|What] {1} <is> {0}?",
        "[Which|What] {1} [is at|belongs to|goes with|stands by] {0}?",
        "[What's|What is] the {1} of {0}?",
        "[I choose|I pick|I vote for|My answer is|I want] {0}. Which {1} is that?",
        "{0}[:|,] which {1}?",
        "The answer is {0}. [Which|What] {1} do I [press|type|tick|write down]?",
        "Under which {1} do I find {0}?",
        "If I [mean|want] {0}, which {1} do I say?",
    ),
    # {0} number 2
    "what is sign": (
        "[What's|What is] {0}?",
        "What does {0} show?",
        "[What|Which thing] is shown [as|at|under] {0}?",
        "What [do you see|can you see] at {0}?",
        "[He|She|Somebody|My friend] [chose|picked|voted for] {0}. What is [that|it]?",
        "{0}[:|,] what is [it|that|shown]?",
        "[Tell me|Describe|Name] {0}.",
        "What picture is {0}?",
        "[I'd like to know|Do you know|I wonder] what {0} is.",
    ),
    # {0} number 2, {1} a cat
    "is sign": (
        "Is {0} {1}?",
        "Does {0} show {1}?",
        "Is {1} what {0} shows?",
        "[I think|I say] {0} is {1}. [Right|Correct|Am I right]?",
        "Can you confirm that {0} is {1}?",
    ),
    # {0} an animal, {1} number
    "sign of kind": (
        "[Which|What] {1} [is|shows] {0}?",
        "[Which|What] {1} [do I pick|should I choose|must I press] for {0}?",
        "Only one of them is {0}. Which {1}?",
        "Where is {0}? Give me the {1}.",
        "Under which {1} is there {0}?",
    ),
    # {0} the dog, {1} under
    "right label": (
        "Is the [word|label|name|text] {1} {0} [right|correct]?",
        "<is> {0} labeled [correctly|right|properly]?",
        "<does> {0} have the right [label|name|word]?",
        "Does the [word|label|text] {1} {0} fit the picture?",
        "[Someone|My kid|My student|The teacher] wrote the word {1} {0}. Is it [right|correct]?",
        "Do the word and the picture match [for|at] {0}?",
        "Is what it says {1} {0} true?",
    ),
    "all right": (
        "Are [all|] the [words|labels|names|texts] [right|correct]?",
        "Do all the words [fit|match] [the|their] pictures?",
        "Is everything labeled correctly?",
        "Is [every word|each label|every label] right?",
        "Did [she|he|the kid|the teacher|I] label everything right?",
        "No mistakes in the labels, right?",
    ),
    "any wrong": (
        "Is [one|any] of the [words|labels|names] wrong?",
        "Is there a mistake [here|in the labels|in the words|]?",
        "[Do|Can] you [see|find|spot] a [mistake|wrong label|wrong word]?",
        "Is something labeled wrong?",
    ),
    "wrong label": (
        "[Which|What] [word|label|name|text] is [wrong|false|incorrect|the wrong one]?",
        "Which [word|label] does not [fit|match] [its|the] picture?",
        "[What|Which word] is the mistake?",
        "[Find|Spot] the wrong [word|label].",
        "One [word|label] [may be|is perhaps] wrong. Which [one|]?",
    ),
    "wrong picture": (
        "[Which|What] [thing|picture] [has|got] the wrong [word|label|name]?",
        "[What|Which thing] is labeled wrong?",
        "[Which|What] thing is [mislabeled|wrongly named|not what its label says]?",
    ),
    # {0} Cat
    "really shows": (
        "It says {0} there. What [is it|does it show] really?",
        "The card says {0}. What is really [on it|pictured|shown]?",
        "What is [actually|really] shown where it says {0}?",
        "[Never mind|Forget] the word {0}: what does that picture show?",
        "What does the picture [with the word|called|labeled|named] {0} [really|actually] show?",
    ),
    "should say": (
        "What should it say [instead of|and not] {0}?",
        "{0} is [wrong|not right] there. What [is right|should it say|is the right word]?",
        "[What|Which word] would be [right|correct] instead of {0}?",
        "Correct the word {0}.",
    ),
    # {0} the eagle
    "which team": (
        "[Which|What] team [has|uses|shows|plays with] {0}?",
        "[Which|What] team has {0} [as its [badge|emblem|logo|mascot]|on its badge]?",
        "Whose [badge|emblem|logo|mascot] <is> {0}?",
        "To which team <does> {0} belong?",
        "For which team <does> {0} stand?",
        "Who plays under {0}?",
    ),
    # {0} Team A
    "badge of": (
        "[What's|What is] the [badge|emblem|logo|symbol|mascot] of {0}?",
        "[What|Which thing] does {0} have [as its [badge|emblem|logo|symbol]|on its badge]?",
        "[Which|What] [badge|emblem|logo] [belongs to {0}|does {0} have|is that of {0}]?",
        "How do I recognize {0}? What is on the badge?",
        "I'm a fan of {0}. What is on our badge?",
        "What does {0}'s [badge|logo|emblem] show?",
    ),
    # {0} the dog
    "called": (
        "[What's|What is] {0} called?",
        "[What's|What is] the name of {0}?",
        "[What|Which] name does {0} have?",
        "How do I call {0}? What's [its|the] name?",
        "[Who is|What do they call] {0}?",
        "[What's|What is] {0}'s name?",
        "Does {0} have a name? What is it?",
        "[Aw|Oh], how cute[!|,] [What's|what is] its name?",
    ),
    "tag": (
        "[Whose name|What name|Which name] is on [the tag|it|the label]?",
        "What does the [name tag|tag|label] say?",
        "What name [do you see|can you read|is printed|is written] [here|there|]?",
        "Read the [tag|name tag|name].",
    ),
    # {0} field 5
    "on field": (
        "[What's|What is] on {0}?",
        "What [do you see|is there|is standing|is placed] on {0}?",
        "Who or what is on {0}?",
        "[I landed on|I rolled and came to|My piece is on] {0}. What is [there|on it]?",
        "{0}[:|,] what is on it?",
        "Is [something|anything] on {0}? What?",
    ),
    # {0} the cat, {1} field
    "which field": (
        "On [which|what] {1} <is> {0}?",
        "[Which|What] {1} <is> {0} on?",
        "[What's|What is] the number of the {1} with {0}?",
        "[Which|What] number has the {1} with {0}?",
        "Where <is> {0}? [Tell me the number of the {1}.|On which {1}?]",
        "How far <is> {0}, on which {1}?",
    ),
    "field empty": (
        "Is {0} [empty|free|blank]?",
        "Is there nothing on {0}?",
        "Can I go to {0}, is it [free|empty]?",
    ),
    "field taken": (
        "Is [anything|something] on {0}?",
        "Is {0} [taken|occupied]?",
        "Is there [anything|something] on {0}?",
    ),
}  # fmt: skip
# Where print is, as seen from the thing, and where the thing is, as seen from the print.
WHERE = {
    "below": (("under", "below", "beneath", "underneath"), ("above", "over", "above")),
    "above": (("above", "over"), ("under", "below", "beneath")),
    "beside": (("beside", "next to", "to the right of"), ("beside", "next to", "to the left of")),
}
SIGNS = {
    "number": ("number", "option", "picture", "answer", "no."),
    "letter": ("letter", "option", "picture", "answer"),
}
