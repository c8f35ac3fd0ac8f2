"""How people ask for the values of a chart, what they add up to, and how it goes on. No torch.

As in `asked`.
"""

from .asked import Templates

ASKED_MORE: Templates = {
    "value of": {
        "any": (
            "What [figure|number|value] [belongs to|goes with|is given for|do you read for] {a}?",
            "I'd like the [number|figure|value] [for|of] {a}[, please|].", "{a} = ?", "{a} how [much|many]?",
            "[Look up|Find|Get|Read out|Check] the [value|number|figure] [for|of] {a}[, please|].",
            "How [tall|high|big] is the {bar} [of|for] {a}?{if_bar}",
            "How [long|high|big] is {a_bar}?{if_bar}", "What is the value of {a_bar}?",
            "{a} stands at [what|which] [number|value]?",
            "What [value|number] does the {bar} [of|for] {a} [reach|have|show|stand for]?",
            "{if_printed}What number is [written|printed] [at|by|next to] [the {bar} of|the {bar} for|] {a}?",
            "How far [does|up does] the {bar} [of|for] {a} go?{if_bar}",
            "[Could|Can] you read me [the number for|the value of] {a}?", "{How_x} {does} {a} have?",
            "Can you see how {much} it is {at}?", "Exactly how {much} is it {at}?",
        ),
        "time": (
            "{How_x} did [they|we|you|people] {do} {at}?", "{How_x} [do|did] [we|they] have {at}?",
            "What was it {at}?", "How high was it {at}?", "{at} [they|we] {did} {how_x}?",
            "What's the [number|figure] {at}?", "{a}'s [value|number|figure]?",
            "What were the {title} {at}?{if_s}", "What was the {title} {at}?{if_one}",
            "[Give me|I need|Look up] the {title} {at}.{if_s}", "How high was the {title} {at}?{if_one}",
        ),
        "who": (
            "{How_x} did {a} {do}?", "{a} {did} {how_x}?", "{if_wins}With {how_x} did {a} finish?",
            "What's {a}'s [result|total|number|figure]?", "{How_x} [has {a} got|did {a} have|can {a} show]?",
            "How did {a} do{if_wins}?", "{if_wins}I'm {a}. {How_x} did I {do}?",
            "[Tell me|Do you know] {how_x} {a} {did}.",
            "What [number|value] [is|stands] [next to|beside|at] {a}'s name?{if_printed}",
        ),
        "what": (
            "{How_x} did {a} {get}?",
            "{if_votes}How many [kids|people|of them|] [like|prefer|want|voted for|picked] {a}?",
            "{if_votes}How many said {a}?", "{if_sold}How many {a} were sold?{if_many}",
            "{if_counted}How many {a} [are there|do they have|did they count]?{if_many}{if_untitled}",
            "What about {a}, how {much}?", "{if_price}What {does} {a} cost?",
        ),
    },
    "who has": {
        "any": (
            "Which [one|{bar}|label] [shows|is at|reaches|stands at|has the number] {N}?",
            "Where do [you|I] [find|see] the [number|value] {N}?",
            "The [number|value] {N} belongs to [which one|which label|what]?",
            "{Who} has [exactly|] {N} [{noun}|]?", "What is the {N} for?", "{Who} {got} [exactly|] {N}?",
            "Find the one with [the value|] {N}.", "label where value == {N}",
        ),
        "time": (
            "When did [they|we] {do} [exactly|] {N} [{noun}|]?", "When was it [exactly|] {N}?",
            "{On} which {n} [was it|did it reach|do you read] {N}?",
        ),
        "who": (
            "Who {did} [exactly|] {N} [{noun}|]?", "Whose [number|result|value] is {N}?",
            "{N} [{noun}|] belong to [whom|who]?",
        ),
        "what": (
            "[Which|What] {n} {got} [exactly|] {N} [{noun}|]?", "{if_votes}Which {n} do {N} people like?",
        ),
    },
    "difference": {  # a is more than b
        "any": (
            "What is the [difference|gap] between {a} and {b}?",
            "By how much is {a} [higher|bigger|larger|more] than {b}?",
            "How much [higher|bigger|larger|more] is {a} than {b}?", "{a} minus {b}?", "{a} - {b} = ?",
            "[Subtract|Take away] {b} from {a}.", "{How_more} {does} {a} have than {b}?",
            "How [big|large] is the [difference|gap] between {a} and {b}?",
            "{How_fewer} does {b} have than {a}?",
            "How much [is missing|needs to be added] to get from {b} to {a}?",
            "How [much|far] is {b} behind {a}?", "What do you get when you subtract {b} from {a}?",
            "[Calculate|Compute] the difference between {a} and {b}.", "How far apart are {a} and {b}?",
        ),
        "time": (
            "{How_more} did [they|we|you] {do} {at} than {at_b}?", "How much higher was it {at} than {at_b}?",
            "{How_fewer} did [they|we] {do} {at_b} than {at}?", "How much more was it {at} than {at_b}?",
        ),
        "who": (
            "{How_more} did {a} {do} than {b}?", "{How_fewer} did {b} {do} than {a}?",
            "By {how_x} is {a} ahead of {b}?",
            "{How_x} does {b} need to [catch up with|reach|draw level with] {a}?",
            "{if_wins}By {how_x} did {a} beat {b}?", "{How_x} [separate|are between] {a} and {b}?{if_wins}",
        ),
        "what": (
            "{How_more} did {a} {get} than {b}?", "{if_votes}How many more [people|] like {a} than {b}?",
            "{if_votes}By {how_x} {does} {a} lead over {b}?",
        ),
    },
    "change": {  # from a to b
        "time": (
            "By how much did it [go {up}|change] from {a} to {b}?",
            "How much did it [go {up}|{rise}] between {a} and {b}?",
            "How big was the {growth} from {a} to {b}?",
        ),
    },
    "range": {
        "any": (
            "What is the difference between the [highest|largest] and the [lowest|smallest] [value|{bar}]?",
            "[What's|What is] the range of the values?",
            "How far apart are the [largest and the smallest|highest and the lowest] value?",
            "Highest minus lowest?",
            "How much [more|higher|bigger] is the [largest|highest] than the [smallest|lowest]?",
        ),
        "who": (
            "{if_wins}{How_more} did the winner {do} than the last one?",
            "{if_wins}{How_x} are between first and last place?",
        ),
        "time": ("What's the difference between the {most} and the {least} {n}?",),
    },
    "lead": {
        "any": (
            "By how much is the [highest|largest] ahead of the second [highest|largest]?",
            "What is the gap between the [top two|two highest|two largest]?",
        ),
        "who": (
            "{if_wins}By how [many {noun}|much] did the winner win?",
            "{if_wins}How far ahead is first place of second place?",
            "{if_wins}{How_more} did {a} {do} than second place?",
            "{if_wins}[What is|How big is] the winner's lead?",
        ),
        "what": ("{if_votes}By how many {noun} did {a} win?",),
    },
    "sum": {
        "any": (
            "What is the sum of {a} and {b}?",
            "[What do|How much do] {a} and {b} [add up to|make together|come to]?",
            "Add {a} and {b}[, please|].", "{a} plus {b}?",
            "{How_x} do {a} and {b} have [together|in total|combined|altogether|in sum]?",
            "[If you put|Put] {a} and {b} together, [what do you get|how {much} is that]?", "{a} + {b} = ?",
            "What is the [total|combined value] of {a} and {b}?", "What do you get when you add {b} to {a}?",
        ),
        "time": (
            "{How_x} did [they|we|you] {do} {at} and {at_b} [together|in total|combined|]?",
            "What's the total for {a} and {b}?",
        ),
        "who": (
            "{How_x} did {a} and {b} {do} [together|in total|combined|between them]?",
            "If {a} and {b} were one team, {how_x} would they have?{if_wins}",
        ),
        "what": (
            "{How_x} did {a} and {b} {get} together?",
            "{if_price}If I buy {a} and {b}, how much do I pay?",
            "{if_counted}How many {a} and {b} are there together?{if_many}",
        ),
    },
    "total": {
        "any": (
            "What is the [total|sum] of [all {bars}|all values|all of them|everything]?",
            "[Add up|Sum up|Add] all the [values|{bars}|numbers of the {bars}].",
            "How {much} [is it|is that|are there] [in total|altogether|all together|all in all]?",
            "sum(values)?", "What do all {count} add up to?", "What's the grand total?",
        ),
        "time": (
            "{How_x} did [they|we] {do} in [all {count} {ns}|the whole time|total]?",
            "{How_x} over all {ns}?", "{How_x} in total over the {count} {ns}?",
        ),
        "who": (
            "{How_x} did [everybody|all {count}|they] {do} [together|in total|altogether]?",
            "{How_x} do the {count} {ns} have [together|in total]?",
        ),
        "what": (
            "{if_votes}How many votes were [cast|counted] [in total|altogether|]?",
            "{How_x} do all {ns} have together?",
        ),
    },
    "mean": {
        "any": (
            "What is the [average|mean] [value|of the values|of all {bars}|]?",
            "[Calculate|Compute] the [average|mean].", "How {much} is it on average?",
        ),
    },
    "over": {
        "any": (
            "How many [of them|{bars}|values|] are [above|over|higher than|more than|greater than] {N}?",
            "How many [{bars}|of them] [reach|get|go|come] [above|over] {N}?",
            "Count [the {bars}|all|the ones] that are [above|over|higher than] {N}.",
            "How many values > {N}?", "How many have more than {N} [{noun}|]?",
            "[Tell me|Say] how many are over {N}.",
        ),
        "time": (
            "{On_many} how many {ns} was it [above|over|more than] {N}?",
            "How many {ns} had more than {N} [{noun}|]?", "How many times was it [over|above] {N}?",
        ),
        "who": (
            "How many {ns} [have|had|{did}] more than {N} [{noun}|]?",
            "How many [people|{ns}] {did} more than {N}?",
        ),
        "what": ("How many {ns} {got_many} more than {N} [{noun}|]?", "How many of the {ns} are above {N}?"),
    },
    "under": {
        "any": (
            "How many [of them|{bars}|values|] are [below|under|lower than|less than|smaller than] {N}?",
            "How many [{bars}|of them] [stay|are|remain] [below|under] {N}?", "How many do not reach {N}?",
            "How many values < {N}?", "How many have less than {N} [{noun}|]?",
        ),
        "time": (
            "{On_many} how many {ns} was it [below|under|less than] {N}?",
            "How many {ns} had less than {N} [{noun}|]?",
        ),
        "who": ("How many {ns} [have|had|{did}] less than {N} [{noun}|]?",),
        "what": ("How many {ns} {got_many} less than {N} [{noun}|]?",),
    },
    "which over": {
        "any": (
            "Which [ones|{bars}|of them|labels] are [above|over|higher than|more than] {N}?",
            "[List|Name] [everything|all] above {N}.", "{Who} has more than {N} [{noun}|]?",
            "Which [ones|{bars}] [exceed|reach more than|go over] {N}?", "labels with value > {N}",
        ),
        "time": (
            "Which {ns} had more than {N} [{noun}|]?", "When was it [over|above|more than] {N}?",
            "When did [they|we] {do} more than {N} [{noun}|]?",
        ),
        "who": ("Who {did} more than {N} [{noun}|]?", "Which {ns} have more than {N} [{noun}|]?"),
        "what": ("Which {ns} {got_many} more than {N} [{noun}|]?", "Which {ns} are above {N}?"),
    },
    "which under": {
        "any": (
            "Which [ones|{bars}|of them|labels] are [below|under|lower than|less than] {N}?",
            "[List|Name] [everything|all] below {N}.", "{Who} has less than {N} [{noun}|]?",
        ),
        "time": ("Which {ns} had less than {N} [{noun}|]?", "When was it [under|below|less than] {N}?"),
        "who": ("Who {did} less than {N} [{noun}|]?",),
        "what": ("Which {ns} {got_many} less than {N} [{noun}|]?",),
    },
    "any over": {
        "any": (
            "Is [any|one] of them [above|over|higher than] {N}?",
            "Does any [{bar}|of them|value] [go above|go over|exceed] {N}?",
            "Is there [a {bar}|one|anything] [above|over] {N}?",
        ),
        "time": ("Was it ever [above|over|more than] {N}?", "Was there a {n} with more than {N} [{noun}|]?"),
        "who": ("Did anybody {do} more than {N} [{noun}|]?", "Does anyone have more than {N} [{noun}|]?"),
    },
    "all over": {
        "any": (
            "Are all [of them|{bars}|values|] [above|over|higher than] {N}?",
            "Is every [{bar}|one of them|value] [above|over|more than] {N}?",
            "Do all of them [reach|have] more than {N}?",
        ),
        "time": ("Was it always [above|over|more than] {N}?", "Did every {n} have more than {N} [{noun}|]?"),
        "who": ("Did everybody {do} more than {N} [{noun}|]?", "Does everyone have more than {N} [{noun}|]?"),
    },
    "is over": {
        "any": (
            "{is} {a} [above|over|more than|higher than|greater than|bigger than] {N}?",
            "{does} {a} [go over|exceed|pass|come to more than] {N}?",
            "{does} {a} have more than {N} [{noun}|]?",
            "Is the value [of|for] {a} [above|over|more than] {N}?", "{a} > {N}?",
            "{does} {a} [reach|get to|make it to] {N}?",
        ),
        "time": (
            "Was it [more than|over|above] {N} {at}?", "Did [they|we] {do} more than {N} [{noun}|] {at}?",
        ),
        "who": ("Did {a} {do} more than {N} [{noun}|]?", "Did {a} {do} at least {N} [{noun}|]?"),
        "what": ("Did {a} {get} more than {N} [{noun}|]?",),
    },
    "is under": {
        "any": (
            "{is} {a} [below|under|less than|lower than|smaller than] {N}?",
            "{does} {a} have less than {N} [{noun}|]?", "{does} {a} [stay|remain] [below|under] {N}?",
            "{a} < {N}?",
        ),
        "time": (
            "Was it [less than|under|below] {N} {at}?", "Did [they|we] {do} less than {N} [{noun}|] {at}?",
        ),
        "who": ("Did {a} {do} less than {N} [{noun}|]?",),
        "what": ("Did {a} {get} less than {N} [{noun}|]?",),
    },
    "is it": {
        "any": (
            "Is the [value|number] [of|for] {a} [exactly|really|] {N}?",
            "{does} {a} have exactly {N} [{noun}|]?", "{a}: {N}, [right|correct|is that right]?",
            "I read {N} for {a}. [Correct|Is that right|Am I right]?", "{is} {a} at {N}?", "Is it {N} {at}?",
        ),
        "who": ("Did {a} {do} exactly {N} [{noun}|]?",),
        "time": ("Was it {N} {at}?", "Did [they|we] {do} exactly {N} [{noun}|] {at}?"),
    },
    "step": {  # from a to b; u and d: two words for the ways
        "any": (
            "Does it {u} or {d} from {a} to {b}?", "From {a} to {b}, does [it|the {line}] {u} or {d}?",
            "Between {a} and {b}, does it {u} or {d}?",
            "What does [it|the {line}] do from {a} to {b}, {u} or {d}?",
            "When you go from {a} to {b}, does it {u} or {d}?",
            "Do the [values|numbers] {u} or {d} from {a} to {b}?",
        ),
        "time": (
            "Did it {u} or {d} from {a} to {b}?", "Did the {title} {u} or {d} from {a} to {b}?",
            "From {a} to {b}, did [things|the numbers] {u} or {d}?",
        ),
    },
    "did it": {
        "any": (
            "Does [it|the {line}] {u} from {a} to {b}?", "Do the [values|numbers] {u} between {a} and {b}?",
            "Is there a {growth} from {a} to {b}?",
        ),
        "time": (
            "Did it {u} from {a} to {b}?", "Did the {title} {u} from {a} to {b}?",
            "Was there a {growth} [from {a} to {b}|between {a} and {b}]?",
            "Did [it|the numbers] {u} [right|] after {a}?{if_next}",
        ),
    },
    "in the end": {
        "any": (
            "Does it {u} or {d} [in the end|at the end|at the very end|towards the end|in the last step]?",
            "In the end, does it {u} or {d}?", "What happens at the end, does it {u} or {d}?",
        ),
        "time": ("Did it {u} or {d} in the last {n}?", "How does it end: does it {u} or {d}?"),
    },
    "after": {
        "any": (
            "Does it {u} or {d} [right|directly|just|] after {a}?{if_next}",
            "What happens [right|directly|just] after {a}, does it {u} or {d}?",
        ),
        "time": ("Did it {u} or {d} [right|directly|just] after {a}?",),
    },
    "steepest": {
        "any": (
            "Between which two [labels|{bars}|of them] does it {fall} [the most|most]?",
            "Where is the [biggest|largest|steepest] {drop}?",
            "Between which two is the [biggest|largest] {drop}?",
        ),
        "time": (
            "Between which two {ns} [does|did] it {fall} [the most|most]?",
            "From which {n} to which [{n}|] [does|did] it {fall} the most?",
            "Between which {ns} was the [biggest|largest|sharpest] {drop}?",
        ),
    },
}  # fmt: skip
