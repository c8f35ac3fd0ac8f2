"""How people ask for what is printed on a chart. No torch.

As in `asked`.
"""

from .asked import Templates

ASKED_PRINT: Templates = {
    "title": {
        "any": (
            "[What's|What is] the [heading|headline|title|caption|name] [of|on] [this|the] {chart}?",
            "How is [this|the] {chart} [titled|called|named]?",
            "[Read|Tell|Give|Spell] me the [headline|title|heading|caption] [of the {chart}|], please.",
            "[Title|Heading|Headline] of the {chart}?",
            "Which [title|heading|headline] does [it|the {chart}|this {chart}] have?",
            "What [title|heading] was given to [it|the {chart}]?",
            "What [title|heading] did they give [it|the {chart}]?",
            "Does the {chart} have a [title|heading|headline]? [What is it|Which one|If so, read it]?",
            "What is [written|printed] as the [title|heading|headline]?",
            "Under [what|which] [title|heading] [are these numbers shown|do you see these {bars}]?",
            "I'd like to know the [title|heading|name] of this {chart}.", "chart title [pls|please|]",
            "What did the author call this {chart}?", "What [words are|text is] used as the title?", "title",
        ),
    },
    "topic": {
        "any": (
            "What is [this|the] {chart} [about|on]?",
            "What's the [subject|topic|theme] of [this|the] {chart}?",
            "What [does|is] this {chart} [deal with|all about]?",
            "[What|Which] [topic|subject] does the {chart} [show|cover|have]?",
            "I can't see it. What is the {chart} about?", "What are these numbers about?",
            "[In one or two words|Briefly], what is this {chart} about?", "What's it about?",
            "About what is this {chart}?",
            "{if_bare}What does it say [at the top|at the very top|on top|in the top line]?",
            "{if_bare}What is [written|printed] [at the top|above everything else|over the {chart}]?",
            "{if_bare}[Read|Tell me] the [top line|line at the top|text at the top|words at the top].",
        ),
    },
    "has title": {
        "any": (
            "Does [it|this {chart}|the {chart}] have a [title|heading|headline|caption]?",
            "Is there [a|any] [title|heading|headline] [above|on|over|for] the {chart}?",
            "Has [this|the] {chart} got a [title|heading]?", "Did they give the {chart} a [title|heading]?",
            "Can you see a [title|heading]?",
        ),
    },
    "is title": {
        "any": (
            "Is the [title|heading|headline] {x}?", "Is [this|the] {chart} [called|titled|named] {x}?",
            "Does the [title|heading] say {x}?", "The title is {x}, [right|isn't it|correct]?",
            "Is {x} [the title|what it says at the top|the heading]?",
        ),
    },
    "about": {
        "any": (
            "Is [this|the] {chart} about {x}?", "Does [this|the] {chart} [show|deal with] {x}?",
            "Are these numbers about {x}?", "It's about {x}, [right|isn't it|or not]?",
            "Is {x} [the topic|the subject|what this is about]?", "Are we looking at {x} here?",
            "Has this {chart} anything to do with {x}?",
        ),
    },
    "about or": {
        "any": (
            "Is [this|the] {chart} about {x} or {y}?", "Does it show {x} or {y}?",
            "What is it about, {x} or {y}?", "{x} or {y}: which is the {chart} about?",
        ),
    },
    "subtitle": {
        "any": (
            "What does the [smaller|small|second] line [under|below] the title say?",
            "[What's|What is] the subtitle?",
            "What is [written|printed] [right|directly|just|] [under|below] the [title|heading]?",
            "Read the [subtitle|small print below the title].",
            "What does it say below the [title|headline|heading]?",
        ),
    },
    "unit": {
        "any": (
            "[What|Which] unit is [used|this in|given|it in]?",
            "In [what|which] unit [is it|is this|are the values] [given|measured|shown|]?",
            "[What's|What is] the unit [of the values|of measurement|]?",
            "What are the [numbers|values] measured in?", "Unit?", "In what are the [numbers|values] given?",
        ),
    },
    "unit or": {
        "any": (
            "Are the [numbers|values] in {x} or [in|] {y}?", "Is it [measured|given|shown] in {x} or {y}?",
            "{x} or {y}?", "Is that {x} or {y}?", "Are these {x} or {y}?",
        ),
    },
    "axis end": {
        "any": (
            "What is the [highest|largest|top|biggest] number on the [axis|scale|{side} axis]?",
            "How far does the [scale|axis] go?", "Up to [what|which] number does the [axis|scale] go?",
            "What do the numbers [on|along|at] the {edge} go up to?",
            "Where does the [scale|axis] [end|stop]?",
            "[Which|What] is the [largest|biggest|highest] number [on|along|at] the {edge}?",
            "The numbers [on|along] the {edge}: what is the [highest|largest|biggest] one?",
            "{side}-axis [max|maximum|limit]?", "What's the maximum [of|on] the {side}-axis?",
        ),
    },
    "axis start": {
        "any": (
            "What is the [lowest|smallest] number on the [axis|scale|{side} axis]?",
            "[At|With] [what|which] number does the [axis|scale] [start|begin]?",
            "Where does the [scale|axis] [start|begin]?",
        ),
    },
    "axis step": {
        "any": (
            "In steps of [what|how much] do the numbers [on|along] the {edge} go [up|]?",
            "How [big|large] is one step on the [axis|scale]?",
            "What's the [step|interval|distance] between two numbers on the [axis|scale]?",
            "By how much do the numbers on the {side}-axis [go up|increase] each [time|step]?",
        ),
    },
    "has axis": {
        "any": (
            "Does [it|the {chart}] have [a scale|an axis with numbers|numbers [on|along] the {edge}]?",
            "Are there numbers [on|along|at] the {edge}?",
            "Is there [a scale|an axis] with numbers [on|at|along] the {edge}?",
        ),
    },
    "axis name": {
        "any": (
            "[What's|What is] the [x-axis|x axis|horizontal axis] [called|labeled|titled|named]?",
            "[What's|What is] the name of the [x-axis|horizontal axis|bottom axis]?",
            "What does it say [at the very bottom|below the labels|in the last line at the bottom]?",
            "What is [written|printed] below the [labels|names]?",
        ),
    },
    "labels": {
        "any": (
            "[Read|List|Tell me] [all|] the [names|labels|words] [next to|at|of] the {bars}.{if_flat}",
            "[Read|List|Tell me] [all|] the [names|labels|words] [under|below] the {bars}.{if_upright}",
            "[What's|What is] [written|printed] [under|below] the {bars}?{if_upright}{if_unnamed}",
            "{if_unnamed}What [labels|words] [are|stand|do you see] along the bottom?{if_upright}",
            "What [labels|words] [are|stand|do you see] on the left?{if_flat}",
            "What are the [names|labels] [of|for] the {bars}?",
            "[What|Which] [labels|categories|entries] [does it have|are listed|are compared|can you read]?",
            "[Which|What] things are [compared|listed] [here|]?", "labels?",
            "{if_unnamed}[What's|What is] on the x-axis? [List|Name] all of it.{if_upright}",
        ),
        "time": (
            "Which {ns} [does it cover|are included|can you see|are on the {chart}]?",
            "For which {ns} are there [numbers|values]?",
            "[List|Name|Read out] [all|] the {ns} [on the {chart}|shown|].",
        ),
        "who": (
            "{if_wins}Who [took part|played|competed|was in it]?",
            "Who is [on the list|included|mentioned|shown] [here|]?",
            "Which {ns} [are included|are on the {chart}|do you see|are compared]?",
            "[Read|List|Tell me] [all|] the names[, please|].", "Whose [numbers|results] are shown?",
        ),
        "what": (
            "Which {ns} [are included|are compared|are on the {chart}|can you see|are mentioned]?",
            "{if_votes}What could [they|people] [vote for|choose from|pick]?",
            "{if_votes}What are the [options|choices]?", "[List|Name|Read out] [all|] the {ns}.",
        ),
    },
    "number of": {
        "any": (
            "How many [categories|entries|items|labels] [are compared|are listed|does it have]?",
            "How many {bars} [can you count|are in the {chart}|does this {chart} have|are drawn|are there]?",
            "[Number|count] of [data points|categories|{bars}]?",
            "How many data points [are plotted|does it have|are there]?",
            "How many different [things|labels|ones] are [there|shown|compared]?",
            "[Please|Can you|] count the {bars} [for me|]", "How many {bars} in total?",
            "How many [ones|] are being compared?",
        ),
        "time": (
            "How many {ns} does [it|the {chart}|this] [cover|show|include]?",
            "[Over|For] how many {ns} does it go?{if_runs}",
            "How many {ns} [were measured|are listed|can you count]?",
            "How many {ns} long is [this|it]?{if_runs}",
        ),
        "who": (
            "{if_wins}How many [people|{ns}] [took part|participated|played|competed|were in it]?",
            "How many {ns} are [on the list|being compared|included|mentioned]?",
            "How many names [are there|do you see|are listed]?",
            "How many {ns} [can you count|does the {chart} show]?",
        ),
        "what": (
            "How many [different|] {ns} are [included|mentioned|compared|on the {chart}|being compared]?",
            "{if_votes}How many {ns} could they [choose from|vote for]?",
            "How many {ns} [can you count|does the {chart} list]?",
        ),
    },
    "family or": {
        "any": (
            "Does it show {x} or {y}?", "Are [these|the labels|those] {x} or {y}?", "Is it about {x} or {y}?",
            "[What|Which] is [compared|shown] here, {x} or {y}?", "{x} or {y}?",
        ),
    },
    "has": {
        "any": (
            "{is} {a} [on|in|part of] [this|the] {chart}?", "Is there a {bar} for {a}?",
            "Does [it|the {chart}] [include|mention|cover|list|show] {a}?",
            "Can [I|you] find {a} [here|in this {chart}|anywhere]?",
            "{is} {a} [listed|mentioned|included|among them]?",
            "Is there [anything|a number|a value] [for|about] {a}?", "Do they mention {a}?",
        ),
        "time": (
            "Does it [say|show] anything about {a}?", "Did they [count|measure] [anything|] {at}?",
            "{is} {a} one of the {ns} [shown|]?", "Are there [numbers|values] for {a}?",
        ),
        "who": (
            "{if_wins}Did {a} [take part|play|compete]?", "{is} {a} one of the {ns}?",
            "{is} {a} on the list?",
        ),
        "what": (
            "{is} {a} one of the {ns} [shown|compared|]?", "{if_votes}Could [people|they] vote for {a}?",
            "{if_votes}Was {a} an option?",
        ),
    },
}  # fmt: skip
