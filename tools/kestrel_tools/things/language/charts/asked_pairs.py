"""How people compare one of a chart with another. No torch.

As in `asked`.
"""

from .asked import Templates

ASKED_PAIRS: Templates = {
    "more of": {  # a is more than b, or not
        "any": (
            "{is} {a} [above|higher than|bigger than|larger than|more than] {b}?",
            "[{does}|Did] {a} have {x_more} than {b}?",
            "Is the {bar} [for|of] {a} [higher|bigger|taller] than the one [for|of] {b}?", "{a} > {b}?",
            "{if_bar}Is {a_bar} [higher|bigger|longer] than {b_bar}?",
            "Would you say {a} {is} [more|higher] than {b}?",
        ),
        "time": (
            "Was it more {at} than {at_b}?", "Was it {more_adj} {at} than {at_b}?",
            "{was} {a} {more_adj} than {b}?", "Did [they|we] {do} {x_more} {at} than {at_b}?",
            "{was} {a} [a better|a stronger] {n} than {b}?{if_sold}",
            "Were the numbers higher {at} than {at_b}?",
        ),
        "who": (
            "{if_wins}Did {a} beat {b}?",
            "{if_wins}Did {a} [win against|finish ahead of|do better than|defeat] {b}?",
            "Did {a} {do} {x_more} than {b}?", "{is} {a} {more_adj} than {b}{if_measured}?",
            "{is} {a} ahead of {b}?", "{if_wins}{is} {a} better than {b}?",
            "{does} {a} have a higher [number|value] than {b}?",
        ),
        "what": (
            "{is} {a} {more_adj} than {b}?", "Did {a} {get} {x_more} than {b}?",
            "{if_price}{does} {a} cost more than {b}?",
            "{if_votes}Do [people|they|the kids] like {a} more than {b}?", "{if_votes}Did {a} beat {b}?",
            "{if_sold}{does} {a} sell better than {b}?",
        ),
    },
    "less of": {
        "any": (
            "{is} {a} [below|lower than|smaller than|less than] {b}?",
            "[{does}|Did] {a} have {x_fewer} than {b}?",
            "{if_bar}Is {a_bar} [lower|smaller|shorter] than {b_bar}?",
            "Is the {bar} [for|of] {a} [lower|smaller|shorter] than the one [for|of] {b}?", "{a} < {b}?",
        ),
        "time": (
            "Was it less {at} than {at_b}?", "Was it {less_adj} {at} than {at_b}?",
            "{was} {a} {less_adj} than {b}?", "Did [they|we] {do} {x_fewer} {at} than {at_b}?",
            "Were the numbers lower {at} than {at_b}?",
        ),
        "who": (
            "{if_wins}Did {a} lose [to|against] {b}?", "{if_wins}Did {a} finish behind {b}?",
            "{is} {a} behind {b}?", "Did {a} {do} {x_fewer} than {b}?",
            "{is} {a} {less_adj} than {b}{if_measured}?",
        ),
        "what": (
            "{is} {a} {less_adj} than {b}?", "Did {a} {get} {x_fewer} than {b}?",
            "{if_votes}{is} {a} liked less than {b}?",
        ),
    },
    "which of two": {
        "any": (
            "Between {a} and {b}, [which|which one] [is higher|is bigger|is ahead|has {x_more}]?",
            "{a} or {b}: [which|which one] is [higher|bigger|larger|greater]?",
            "{a} vs {b}, which is higher?", "Compare {a} [and|with] {b}. Which one is [larger|higher]?",
            "Which of the two is [larger|higher], {a} or {b}?",
            "Which {bar} is [taller|higher|bigger], [that of|the one for|] {a} or {b}?",
            "Is it {a} or {b} that has {x_more}?", "{Who} has {x_more}, {a} or {b}?",
            "Which {bar} is [higher|bigger|longer], {a} or {b}?{if_bar}",
            "{if_bar}Which is [higher|bigger|longer], {a_bar} or {b_bar}?",
            "I can't decide: is {a} or {b} higher?",
        ),
        "time": (
            "Did [they|we|you|people] {do} {x_more} {at} or {at_b}?", "Was it {more_adj} {at} or {at_b}?",
            "Which {n} was {more_adj}, {a} or {b}?", "Was there more {at} or {at_b}?",
            "When was it higher, {at} or {at_b}?", "Were the numbers better {at} or {at_b}?{if_sold}",
            "{at} or {at_b}, when did [they|we] {do} {x_more}?",
        ),
        "who": (
            "{if_wins}Who won, {a} or {b}?", "{if_wins}Who did better, {a} or {b}?",
            "{if_wins}Who is better, {a} or {b}?",
            "{if_wins}{a} against {b}: who won?", "Who {did} {x_more}, {a} or {b}?",
            "Did {a} or {b} {do} {x_more}?", "{if_measured}Who is {more_adj}, {a} or {b}?",
            "Who is ahead, {a} or {b}?", "Whose {bar} is [higher|longer|bigger], {a}'s or {b}'s?",
        ),
        "what": (
            "Which {n} is {more_adj}, {a} or {b}?", "{is} {a} or {b} {more_adj}?",
            "{if_price}[Which|What] costs more, {a} or {b}?",
            "{if_votes}Do [people|they] prefer {a} or {b}?", "{if_votes}What is liked more, {a} or {b}?",
            "{if_sold}Which sells better, {a} or {b}?", "Did {a} or {b} {get} {x_more}?",
            "{if_counted}Are there more {a} or {b}?{if_many}{if_untitled}",
        ),
    },
    "lower of two": {
        "any": (
            "Between {a} and {b}, [which|which one] [is lower|is smaller|has {x_fewer}]?",
            "{a} or {b}: which one is [lower|smaller]?", "{Who} has {x_fewer}, {a} or {b}?",
            "Which {bar} is [lower|smaller|shorter], {a} or {b}?{if_bar}",
            "{if_bar}Which is [lower|smaller|shorter], {a_bar} or {b_bar}?",
            "Which of the two is [smaller|lower], {a} or {b}?",
        ),
        "time": (
            "Was it {less_adj} {at} or {at_b}?", "Did [they|we] {do} {x_fewer} {at} or {at_b}?",
            "Which {n} was {less_adj}, {a} or {b}?",
        ),
        "who": (
            "Who {did} {x_fewer}, {a} or {b}?", "{if_wins}Who lost, {a} or {b}?",
            "{if_measured}Who is {less_adj}, {a} or {b}?", "Who is behind, {a} or {b}?",
        ),
        "what": (
            "Which {n} is {less_adj}, {a} or {b}?", "{if_price}[Which|What] costs less, {a} or {b}?",
            "{if_votes}What is liked less, {a} or {b}?",
        ),
    },
    "ahead of": {
        "any": (
            "Which [ones|of them|{bars}] are [higher|bigger|larger] than {a}?",
            "What is above {a} in value?", "{Who} has {x_more} than {a}?",
            "[List|Name] [all|everything] that is higher than {a}.",
        ),
        "time": (
            "Which {ns} were {more_adj} than {a}?", "When was it higher than {at}?",
            "Which {ns} had {x_more} than {a}?",
        ),
        "who": (
            "{if_wins}Who [beat|is better than|finished ahead of] {a}?", "Who is ahead of {a}?",
            "Who {did} {x_more} than {a}?",
        ),
        "what": ("Which {ns} are {more_adj} than {a}?", "Which {ns} {got_many} {x_more} than {a}?"),
    },
    "behind": {
        "any": (
            "Which [ones|of them|{bars}] are [lower|smaller] than {a}?", "{Who} has {x_fewer} than {a}?",
            "[List|Name] [all|everything] that is lower than {a}.",
        ),
        "time": ("Which {ns} were {less_adj} than {a}?", "When was it lower than {at}?"),
        "who": ("{if_wins}Whom did {a} beat?", "Who {did} {x_fewer} than {a}?"),
        "what": ("Which {ns} are {less_adj} than {a}?", "Which {ns} {got_many} {x_fewer} than {a}?"),
    },
    "how many ahead": {
        "any": (
            "How many [of them|{bars}|others] are [higher|bigger|larger] than {a}?",
            "How many are [above|ahead of] {a}?",
        ),
        "time": ("How many {ns} were {more_adj} than {a}?", "How many {ns} had {x_more} than {a}?"),
        "who": (
            "{if_wins}How many {ns} [beat|were better than|finished ahead of] {a}?",
            "How many {ns} have {x_more} than {a}?",
        ),
        "what": ("How many {ns} have {x_more} than {a}?", "How many {ns} are {more_adj} than {a}?"),
    },
    "equal": {
        "any": (
            "Are {a} and {b} [equal|the same|exactly the same|equally high|level]?",
            "Do {a} and {b} have the same [value|amount|number|number of {noun}]?",
            "{is} {a} [equal to|the same as|exactly as high as] {b}?",
            "Are the {bars} [of|for] {a} and {b} equally high?",
            "{if_bar}Are the {bars} [of|for] {a} and {b} the same [height|size|length]?", "{a} == {b}?",
        ),
        "time": ("Was it the same {at} and {at_b}?", "Was it exactly the same {at} as {at_b}?"),
        "who": (
            "{if_wins}Is it a [tie|draw] between {a} and {b}?",
            "Did {a} and {b} {do} the same [number of {noun}|]?", "{if_wins}Are {a} and {b} tied?",
        ),
        "what": ("Did {a} and {b} {get} the same [number of {noun}|]?",),
    },
    "any equal": {
        "any": (
            "Are [any|any two|two] [{bars}|of them|values] [equal|the same|exactly the same]?",
            "Is there [any|a] pair with the same [value|number]?",
            "Are there two [{bars}|values] [of the same height|that are equal]?",
        ),
        "who": (
            "{if_wins}Is there a tie [anywhere|somewhere|]?", "Do any two {ns} have the same [value|number]?",
        ),
        "time": ("Was it the same in any two {ns}?", "Are there two {ns} with the same [value|number]?"),
    },
    "which equal": {
        "any": (
            "Which two [are equal|are the same|have the same value|have the same number]?",
            "Which [two|] {bars} [are equally high|have the same height|are the same]?",
            "Name the two that are [equal|the same].",
        ),
        "who": (
            "{if_wins}Who is tied?", "Which two {ns} have the same number [of {noun}|]?",
            "{if_wins}Which two {ns} are tied?",
        ),
        "time": ("Which two {ns} are the same?", "{On} which two {ns} was it the same?"),
        "what": ("Which two {ns} have the same number [of {noun}|]?",),
    },
    "same as": {
        "any": (
            "{Who} has [the same value|the same number|exactly as {much}] as {a}?",
            "Which [other one|one|{bar}] is [equal to|the same as|as high as] {a}?",
            "[What|Which] has the same value as {a}?",
        ),
        "who": (
            "{if_wins}Who is tied with {a}?", "Who {did} [as {much}|exactly as {much}] [{noun}|] as {a}?",
        ),
    },
    "closest": {
        "any": (
            "Which two are [closest|nearest] [to each other|] [in value|]?",
            "Which two [{bars}|values] are the closest to each other [in height|]?",
            "Between which two is the difference [smallest|the smallest]?",
        ),
        "who": ("Which two {ns} are closest to each other [in value|]?",),
    },
    "twice": {  # a and b
        "any": (
            "{is} {a} [twice as high as|twice as big as|double|exactly double|two times] {b}?",
            "{does} {a} have [exactly|] twice as {much} [{noun}|] as {b}?", "Is {b} half of {a}?",
            "Is {b} [exactly|] half as [high|big|much] as {a}?", "{is} {a} two times as [high|much] as {b}?",
            "{a} is double of {b}, [yes or no|right]?",
        ),
        "who": (
            "Did {a} {do} twice as {much} [{noun}|] as {b}?", "Did {b} {do} half as {much} [{noun}|] as {a}?",
        ),
        "time": (
            "Was it twice as [much|high] {at} as {at_b}?",
            "Did [they|we] {do} twice as {much} [{noun}|] {at} as {at_b}?",
        ),
    },
    "double of": {
        "any": (
            "{Who} has [exactly|] twice as {much} [{noun}|] as {a}?",
            "Which [one|{bar}|label] is [exactly|] [double|twice] {a}?",
            "Which is twice as [high|big] as {a}?",
        ),
        "who": ("Who {did} twice as {much} [{noun}|] as {a}?",),
    },
}  # fmt: skip
