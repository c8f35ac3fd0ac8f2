"""How people ask for a bar by its place or colour, for the whole, and for what is not told. No torch.

As in `asked`.
"""

from kestrel_tools.things.language.questions import COLOUR

from .asked import Templates

ASKED_LOOKS: Templates = {
    "which way": {  # up or down
        "any": (
            "[Which way|In which direction|In what direction] [does it|does the {line}|do the values] go?",
            "[What's|What is] the [overall|general|] trend[ here|]?",
            "[What|Which] trend [do you|can I] see?",
            "[Where|Which way] is the {line} [going|heading|headed]?",
            "[What|Which] direction is the {line} [going|moving] [in|]?",
            "Does it go up or down from left to right?{if_line}",
            "What does the {line} do from [left to right|start to end|beginning to end]?",
            "Which way are the [values|numbers] [going|heading|moving]?",
        ),
        "time": (
            "[Which way|In which direction] [did it|did the numbers] go over the {ns}?",
            "How did it [develop|go on] over [time|the {ns}]?",
        ),
    },
    "going": {  # x and y: going up, falling
        "any": (
            "Is [it|the {line}|the trend] {x} or {y}?", "Are the [values|numbers] {x} or {y}?",
            "[Overall|All in all|On the whole], is it {x} or {y}?", "{x} or {y}?",
            "Would you say it is {x} or {y}?", "Is the {title} {x} or {y}?{if_one}",
            "Are the {title} {x} or {y}?{if_s}",
        ),
        "time": ("Over the {ns}, is it {x} or {y}?", "Were the numbers {x} or {y} over the {ns}?"),
    },
    "is going": {
        "any": (
            "Is [it|the {line}|the trend] {x}[ overall|]?", "Are the [values|numbers] {x}?",
            "Would you say it is {x}?", "It is {x}, [right|isn't it|correct]?", "Is the {title} {x}?{if_one}",
            "Are the {title} {x}?{if_s}",
        ),
        "time": ("Is it {x} over [time|the {ns}]?", "Were the numbers {x} over the {ns}?"),
    },
    "course": {  # up, then down
        "any": (
            "What does the {line} do from [left to right|start to end|beginning to end]?",
            "How does the {line} [go|move|run] from left to right?",
            "[In a few words|Briefly], how does [it|the {line}] go from start to end?",
        ),
        "time": ("How did it [develop|go on] over [time|the {ns}]?",),
    },
    "ends": {
        "any": (
            "Is it {x} at the end than at the [start|beginning]?",
            "Is the last [value|{bar}] {x} than the first[ one|]?",
            "Does it end {x} than it [starts|began|started]?", "Does it end up {x} than at the start?",
        ),
        "time": (
            "Was it {x} at the end than at the [start|beginning]?",
            "Was it {x} in the last {n} than in the first?",
        ),
    },
    "always": {
        "any": (
            "Does [it|the {line}] {x} [all the time|all the way|the whole time|at every step]?",
            "Does [it|the {line}] always {x}?", "Do the [values|numbers] {x} [every time|at each step]?",
        ),
        "time": ("Did it {x} every {n}?", "Did it {x} [all the time|the whole time]?"),
    },
    "ever": {
        "any": (
            "Does [it|the {line}] ever {x}?", "Does [it|the {line}] {x} [anywhere|at any point|at all]?",
        ),
        "time": ("Did it ever {x}?", "Did it {x} at any time?"),
    },
    "how often": {
        "any": (
            "How many times does [it|the {line}] {x}?", "How often does [it|the {line}] {x}?",
            "[Count|Tell me] how many times it does {x}.",
        ),
        "time": ("How many times did it {x}?", "How often did it {x}?"),
    },
    "turn": {  # first x, then y
        "any": (
            "After which [label|{bar}] does it [start to|begin to] {y}?", "Where does [it|the {line}] turn?",
            "Up to which [label|{bar}] does it {x}?", "At [which|what] {bar} does the direction change?",
        ),
        "time": (
            "After which {n} did it [start to|begin to] {y}?", "Until which {n} did it {x}?",
            "{On} which {n} did [it|things] turn?",
        ),
    },
    "is red taller": {  # x and y: red, left, first
        "any": (
            "Is the {x} {bar} {taller} than the {y} [one|{bar}]?",
            "Is the {x} one {taller} than the {y} one?",
            "The {x} {bar} is {taller} than the {y} one, [right|isn't it|correct]?",
        ),
    },
    "red or blue": {
        "any": (
            "Which {bar} is {taller}, the {x} or the {y} one?", "Is the {x} or the {y} {bar} {taller}?",
            "Which is {taller}, the {x} {bar} or the {y} {bar}?",
            "The {x} or the {y} {bar}: which is {taller}?",
            "Which one is {taller}: the {x} {bar} or the {y} one?",
        ),
    },
    "all colours": {
        "any": (
            f"[What|Which] {COLOUR}s are the bars?", f"[What|Which] {COLOUR}s do the bars have?",
            f"[List|Name] the {COLOUR}s of the bars.", f"[What|Which] {COLOUR}s are used for the bars?",
            f"In [which|what] {COLOUR}s are the bars [drawn|]?",
        ),
    },
    "how many red": {
        "any": (
            "How many bars are {x}?", "How many {x} bars [are there|do you see|can you count]?",
            "Count the {x} bars.", "How many of the bars are {x}?",
        ),
    },
    "any red": {
        "any": (
            "Is there a {x} bar?", "Are there any {x} bars?", "Is any [of the bars|bar] {x}?",
            "Do you see a {x} bar?", "Can you find a {x} bar [here|]?",
        ),
    },
    "which red": {
        "any": (
            "Which [bars|ones|labels] are {x}?", "[What|Which] labels do the {x} bars have?",
            "[List|Name] the labels of the {x} bars.",
        ),
    },
    "spot value": {  # the second bar from the left
        "any": (
            "[What's|What is] the value of the {spot}?", "What [number|value] does the {spot} [have|show]?",
            "How [long|big] is the {spot}?{if_flat}", "How [high|tall|big] is the {spot}?{if_upright}",
            "How high is the {spot}?{if_line}", "[Tell me|Read|Give me] the value of the {spot}.",
            "Value of the {spot}?",
        ),
    },
    "spot label": {
        "any": (
            "[What's|What is] the [label|name] of the {spot}?", "[What|Which] label does the {spot} have?",
            "What does the {spot} stand for?", "What is the {spot} [called|for]?", "Which one is the {spot}?",
            "{if_upright}What [is written|does it say] [under|below] the {spot}?",
        ),
        "who": ("Whose is the {spot}?", "Who has the {spot}?"),
    },
    "between": {
        "any": (
            "[Which|What] {bar} is between {a} and {b}?", "What [is|comes|stands] between {a} and {b}?",
            "Which label [is|stands] between {a} and {b}?",
            "What do you see between the {bars} of {a} and {b}?",
        ),
    },
    "next to": {
        "any": (
            "[What|Which {bar}|Which label] is [next to|beside|right next to] {a}?",
            "[What|Which one] is the neighbor of {a} on the {chart}?",
        ),
    },
    "both sides": {
        "any": (
            "[What|Which] {bars} are [next to|beside|on either side of|left and right of] {a}?{if_upright}",
            "[What|Which] {bars} are [next to|beside|above and below] {a}?{if_flat}",
            "Which [two|] labels are [next to|beside|the neighbors of] {a}?", "{a} is between which two?",
        ),
    },
    "nth value": {
        "any": (
            "[What's|What is] the value of the {pos} {bar}?",
            "What [number|value] does the {pos} {bar} [show|have|stand for]?", "How high is the {pos} {bar}?",
            "[Tell me|Read|Give me] the value of the {pos} {bar}.",
            "The {pos} {bar} [stands for|shows] [what|which] [number|value]?", "Value of {pos} {bar}?",
            "[What's|What is] the {pos_only} value?{if_line}",
            "With [which|what] [value|number] does the {line} {start}?",
        ),
    },
    "nth label": {
        "any": (
            "What is the label of the {pos} {bar}?",
            "[What|Which] [label|name|word] [belongs to|goes with|is at] the {pos} {bar}?",
            "Which [one|label] is [shown|listed|printed|named] {pos_only}?",
            "What does the {pos} {bar} stand for?",
            "{if_upright}What [is written|does it say|stands] [under|below] the {pos} {bar}?",
            "What is the {pos} {bar} [called|for]?", "[Name|Read] the label of the {pos} {bar}.",
        ),
        "time": (
            "[What|Which] is the {pos_only} {n} [shown|on the {chart}|]?",
            "With which {n} does [it|the {chart}] {start}?",
        ),
        "who": ("Whose {bar} is the {pos} one?", "Who is [listed|named|printed] {pos_only}?"),
        "what": ("[What|Which] is the {pos_only} {n} [listed|shown|on the {chart}]?",),
    },
    "red value": {
        "any": (
            "[What's|What is] the value of the {x} bar?",
            "What [number|value] does the {x} bar [show|have|stand for|reach]?",
            "How [high|long|big] is the {x} bar?", "{How_x} does the {x} bar stand for?",
            "The {x} bar [is|shows] how [much|many]?",
        ),
    },
    "red label": {
        "any": (
            "[What|Who or what] does the {x} bar [stand for|represent|belong to]?",
            "[Which|What] [one|label] [is|has] [drawn in|colored|the] {x} [bar|]?",
            "The {x} bar is for [what|which one]?", "What's the label of the {x} bar?",
        ),
        "who": ("Who has the {x} bar?", "Whose bar is {x}?", "Which {n} is [shown in|drawn in|] {x}?"),
        "time": ("Which {n} is [shown in|drawn in|marked in|] {x}?",),
        "what": ("Which {n} is [shown in|drawn in|marked in] {x}?", "Which {n} has the {x} bar?"),
    },
    "colour of best": {
        "any": (
            f"[What|Which] {COLOUR} is the [tallest|longest|biggest|highest|largest] bar?",
            f"[What|Which] {COLOUR} does the [biggest|highest|largest] [one|bar] have?",
            f"[What's|What is] the {COLOUR} of the [largest|highest|longest] bar?",
        ),
    },
    "colour of worst": {
        "any": (
            f"[What|Which] {COLOUR} is the [shortest|smallest|lowest] bar?",
            f"[What's|What is] the {COLOUR} of the [smallest|shortest|lowest] bar?",
        ),
    },
    "is red": {
        "any": (
            "Is the bar [of|for] {a} {x}?", "{is} {a} [shown|drawn|painted] in {x}?",
            "{does} {a} have a {x} bar?",
        ),
    },
    "same colour": {
        "any": (
            f"Are all [the|] bars the same {COLOUR}?", f"Do all [the|] bars have the same {COLOUR}?",
            f"Is there only one {COLOUR} [of|for the] bars?",
            f"Are [the|all] bars [drawn|painted] in one {COLOUR}?",
        ),
    },
    "other colour": {
        "any": (
            f"Which bar has [a different|another] {COLOUR}?",
            f"Which [one|bar|label] is [highlighted|marked|in another {COLOUR}]?",
            "Which one is highlighted?", f"Which bar is not the same {COLOUR} as the others?",
        ),
    },
    "number of colours": {
        "any": (
            f"How many [different|] {COLOUR}s do the bars have?",
            f"In how many {COLOUR}s are the bars [drawn|painted]?", f"How many bar {COLOUR}s are there?",
        ),
    },
    "line colour": {
        "any": (
            "Is the [line|curve] {x}?", "Is the [line|curve] [drawn|painted] in {x}?",
            "Do you see a {x} [line|curve]?",
        ),
    },
    "lies": {
        "any": (
            "Are the bars [vertical or horizontal|horizontal or vertical]?",
            "Is [it|this] a [vertical or a horizontal|horizontal or a vertical] bar [chart|graph]?",
            "[Which way|In which direction] do the bars go, [vertical or horizontal|horizontal or vertical]?",
        ),
    },
    "is flat": {
        "any": (
            "Are the bars horizontal?", "Is [this|it] a horizontal bar [chart|graph]?",
            "Do the bars [lie on their side|go sideways|lie]?", "Are these horizontal bars?",
        ),
    },
    "bars or line": {
        "any": (
            "Is [it|this|the {chart}] [made of|drawn with|shown with] bars or a line?", "Bars or a line?",
            "Do you see bars or a line?", "Does it have bars or a line?",
        ),
    },
    "has numbers": {
        "any": (
            "Are the values [printed|written] [at|on|next to] the {bars}?",
            "Does each {bar} have its [number|value] [printed|written] [on|at] it?",
            "Are there numbers [on|at|by] the {bars}?",
        ),
    },
    "all values": {
        "any": (
            "[Read|List|Tell me] all [the|] [values|numbers] [from left to right|in order|].{if_upright}",
            "[Read|List|Tell me] all [the|] [values|numbers] [from top to bottom|in order|].{if_flat}",
            "[What|Which] are [all|] the [values|numbers] [of|at] the {bars}?", "What numbers do you see?",
            "values?",
        ),
    },
    "pairs": {
        "any": (
            "[List|Read|Give me] [every|each] label [with|and] its [value|number].",
            "[Read|Read out] the whole {chart} [to me|].",
            "[Give me|List] all [the data|labels and values|entries with their values].",
            "Turn the {chart} into a list of labels and values.",
            "[What is|Extract|Print] the data [of|in] the {chart}[?|.|]",
        ),
        "time": ("[List|Tell me] the [value|number] for [each|every] {n}.", "How {much} was it in each {n}?"),
        "who": (
            "[List|Tell me] [how {much} each {n} has|everybody's number].", "{How_x} did each of them {do}?",
        ),
        "what": ("[List|Tell me] the [value|number] for [each|every] {n}.",),
    },
    "next": {  # to the right of a, or below it
        "any": (
            "{if_upright}[Which|What] {bar} is [directly|just|immediately] to the right of {a}?",
            "{if_upright}What [comes|stands|is] [directly|just|immediately] right of {a}?",
            "{if_flat}[Which|What] [label|{bar}] is [directly|right|just|immediately] [below|under] {a}?",
            "{if_flat}What [comes|stands|is] [directly|right|just] [below|under] {a}?",
            "Which label [comes|follows] [directly|right|just] after {a} on the {chart}?",
        ),
        "time": (
            "[What|Which {n}] comes [right|directly|] after {a} [on the {chart}|here]?{if_runs}",
            "Which {n} follows {a} [on the {chart}|here]?{if_runs}",
        ),
    },
    "previous": {
        "any": (
            "{if_upright}[Which|What] {bar} is [directly|just|immediately] to the left of {a}?",
            "{if_upright}What [comes|stands|is] [directly|just|immediately] left of {a}?",
            "{if_flat}[Which|What] [label|{bar}] is [directly|right|just|immediately] above {a}?",
            "Which label comes [directly|right|just] before {a} on the {chart}?",
        ),
        "time": ("[What|Which {n}] comes [right|directly|] before {a} [on the {chart}|here]?{if_runs}",),
    },
    "described": {
        "any": (
            "[Explain|Describe|Summarize|Sum up] this {chart} [to me|for me|in words|], please.",
            "What does this {chart} [tell|show] [me|us]?",
            "Put [this|the] {chart} [into|in] words [for a blind person|for someone who can't see it|].",
            "[What can I|What do you] [learn|read] from [this|the] {chart}?",
            "I [can't see|am blind]. What is [in|on] this {chart}?",
            "Give me a [summary|description] of the {chart}.", "[Talk|Walk] me through [this|the] {chart}.",
            "Alt text for this {chart}?",
        ),
    },
    "why": {
        "any": (
            "Why [is|was] {a} [so high|so low|different from the others|like that]?",
            "What is the reason for [this|these numbers|the difference]?",
            "Who [drew|designed|published|paid for|printed] this {chart}?",
            "[Which|What] program was used to make this {chart}?",
            "[Which|What] will be the highest [next time|next year|in ten years]?",
            "What will {a} be [next time|next year|in the future|in ten years]?",
            "How [was this|were the numbers] [collected|measured]?",
            "In [which|what] [newspaper|book|magazine] [was|is] this {chart} [printed|]?",
            "Who counted [this|all of this|the numbers]?",
            "Was {a} [better|higher|lower] [the year before|ten years ago|last time]?",
            "How [reliable|accurate|old] are these numbers?",
            "[Who|Which company] [ordered|wanted] this {chart}?",
            "How much did it cost to [make|draw] this {chart}?",
        ),
        "time": (
            "Why did it change {at}?", "What [happened|was going on] {at}?", "Why was it so [high|low] {at}?",
            "What [caused|explains] the [number|value] {at}?", "How will it go on?",
            "[Will it rise|Is it going to rise|Will it go down] next {n}?",
            "Was the weather nice {at}?{if_sold}",
        ),
        "who": (
            "{if_person}How old is {a}?{if_ageless}", "{if_person}Where does {a} live?",
            "{if_person}What is {a}'s [phone number|favorite food|job|hobby|favorite movie]?",
            "{if_person}[Is|Was] {a} [happy|sad|tired|angry|proud] [about it|]?",
            "{if_person}Does {a} have [children|a dog|a car|siblings]?",
            "{if_wins}Who will win [next time|next year|the next game]?",
            "{if_wins}Who won [last year|last time|the year before]?",
            "{if_wins}How long did the game [last|take]?", "{if_wins}Who was the [referee|judge|coach]?",
            "How did {a} manage [that|to do that]?", "{if_wins}What [prize|present] did the winner get?",
            "{if_wins}Where did they play?{if_bare}",
            "Who is {a}'s [best friend|teacher|neighbor]?{if_person}",
            "Why did {a} {do} so [much|little|few]?", "What color is {a}'s hair?{if_person}",
        ),
        "what": (
            "{if_votes}Who voted for {a}?", "{if_votes}Why do [people|they] [like|prefer] {a}?",
            "{if_votes}How old [were|are] the people who voted?",
            "{if_votes}Did my [mother|teacher|friend] vote for {a}?", "{if_votes}What did I vote for?",
            "{if_sold}Who bought {a}?", "{if_sold}Why did [people|they] buy so [many|few] {a}?",
        ),
    },
}  # fmt: skip
