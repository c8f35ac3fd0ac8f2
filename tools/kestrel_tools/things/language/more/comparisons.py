"""More ways to ask about things in relation to each other: sides, sizes, numbers."""

from .marks import wordings

# Of the outermost on the left and on the right, and of the biggest and the smallest, the wordings are alike.
SIDEMOST = """
<side>most {} <please>
{} on the [far|very|extreme] <side>[?|]
Look at the [far|very] <side><then> Which {} [is that|is it]?
Look at the far <side><then> What is there?
Which {} [stands|sits|is located|is placed|lies] [furthest|farthest] [to the <side>|<side>|on the <side>]?
<know> which {} is [furthest <side>|the <side>most|at the far <side>]<end>
[Name|Identify|Tell me] the {} [furthest|farthest] [<side>|to the <side>].
Which {} is [closest|nearest] to the <side> [edge|border|side|margin]?
What {} is most <side>
Most <side> {}[?|]
At the <side> end, what {} is there?
What {} is in <side> end
The others are all further <other> than one {}<then> Which one [is it|]?
The {} all the way [to the|on the] <side>, what is it?
If you move <other>wards from the <side> edge, what {} do you [meet|reach|see] first?
No {} is further <side> than this one<then> [Which|What] is it?
My <kid> is pointing at the {} on the far <side><then> What is it?
"""
SIZED = """
<most> {} [please|pls|here|][?|]
What {} is [most <plain>|the most <plain>]
<know> which {} is the <most><end>
[Identify|Find|Tell me|Show me] the <most> {}.
Which {} was drawn <most>?
Which {} is <more> than [all the others|all others|the rest|any other]?
If you sorted them [by size|] and put the <most> one first, which {} [is that|comes first]?
My <kid> wants the <most> {}<then> Which one is it?
The <most> {} is [what|which][?|]
Compare the sizes<then> which {} is <most>?
No {} is <more> than this one<then> [Which|What] is it?
Look at how [big|large] they are<then> which {} is the <most>?
Point out the <most> {}<then> what is it?
Of all of them, which {} is the <most> [one|]?
Which {} is <more> than every other one?
The {} that is <more> than the others, what is it?
"""
COMPARED = """
Which one is the <more> one, {} or {}?
What is more <plain>: {} or {}
{} or {}[:|,] [which|what|who] is <more>?
Compare {} [and|with] {}<then> [Which|Which one|What] is <more>?
<know> [which|what|which one] is <more>, {} or {}<end>
Of {} and {}, which [one|] is <more>?
Between {} and {}, which [one|] [is|looks] <more>?
Who is <more>, {} or {}?
{:bare} or {:bare}, [which is|the] <more> [one|][?|]
Which of the two is <more>: {} or {}?
If you compare {} with {}, which [one|] is <more>?
I see {:a} and {:a}<then> Which [one|] is <more>?
Did <they> draw {} or {} <more>?
We [argue|can't agree]<then> is {} <more> or {}?
"""
BIG = {"<most>": "[biggest|largest]", "<more>": "[bigger|larger]", "<plain>": "[big|large]"}
SMALL = {"<most>": "[smallest|tiniest]", "<more>": "smaller", "<plain>": "small"}


def _of(kind: str, table: str, words: dict[str, str]) -> str:
    for mark, word in words.items():
        table = table.replace(mark, word)
    return f"\n{kind}\n{table.strip()}\n"


ALIKE = (
    _of("most left", SIDEMOST, {"<side>": "left", "<other>": "right"})
    + _of("most right", SIDEMOST, {"<side>": "right", "<other>": "left"})
    + _of("most big", SIZED, BIG)
    + _of("most small", SIZED, SMALL)
    + _of("bigger of", COMPARED, BIG)
    + _of("smaller of", COMPARED, SMALL)
)

MORE = wordings(
    ALIKE
    + """
most left
If [I|you] go from left to right, which {} comes first?
If [I|you] go from left to right, what comes first?
What's the first {} when you start on the left?
[What|Which] {} begins the row on the left?

most right
If [I|you] go from left to right, which {} comes last?
If [I|you] go from left to right, what comes last?
What's the last {} when you go from left to right?
[What|Which] {} ends the row on the right?

most big
Which {} [covers|fills|occupies|takes] the most [space|area|room]?

most small
Which {} [covers|fills|occupies|takes] the least [space|area|room]?

most top
Highest {} <please>
{} at the very top[?|]
Which {} [hangs|sits|is placed|is located|lies] [highest|highest up|closest to the top]?
Look all the way up<then> Which {} is [that|it]?
Which {} is [nearest|closest] to the [top|upper] [edge|border|margin]?
The others are all [below|lower than] one {}<then> Which one [is it|]?
[What|Which] {} is above all [the others|others|the rest]?
<know> which {} is [highest|the highest|at the very top|furthest up]<end>
[Name|Identify|Tell me] the {} [furthest up|at the very top|nearest to the top].
What {} is most [up|high]
Top most {}[?|]
If you go from top to bottom, which {} comes first?
If you go from top to bottom, what comes first?
No {} is higher [up|] than this one<then> [Which|What] is it?
[Going|Reading] downwards, what is the first {}?

most bottom
Lowest {} <please>
{} at the very bottom[?|]
Which {} [sits|is placed|is located|lies|stands] [lowest|lowest down|closest to the bottom]?
Look all the way down<then> Which {} is [that|it]?
Which {} is [nearest|closest] to the [bottom|lower] [edge|border|margin]?
The others are all [above|higher than] one {}<then> Which one [is it|]?
[What|Which] {} is below all [the others|others|the rest]?
<know> which {} is [lowest|the lowest|at the very bottom|furthest down]<end>
[Name|Identify|Tell me] the {} [furthest down|at the very bottom|nearest to the bottom].
What {} is most [down|low]
Bottom most {}[?|]
If you go from top to bottom, which {} comes last?
If you go from top to bottom, what comes last?
No {} is lower [down|] than this one<then> [Which|What] is it?
[Going|Reading] downwards, what is the last {}?

ordinal
{} from [the|] {}[?|]
[Name|Tell me|Identify] the {} <thing> from the {}.
<know> what the {} <thing> from the {} is<end>
Start at the {1} and count<then> what is the {0} [<thing>|one]?
If [I|you|we] count from the {1}, what comes {0}?
[Which|What] <thing> comes {} [when counting|counting|if you count] from the {}?
The {} [one|<thing>] from the {}, what is it?
What thing is on {} place from {}
I'm counting from the {1}<then> [Which <thing>|What] is the {0} [one|]?
In order from the {1}, what is the {0} <thing>?
{} <thing> counting from {} side
You start at the {1}<then> what do you [meet|see|reach] as the {0} <thing>?
My <kid> points at the {} <thing> from the {}<then> What is it?
Which <thing> is in {} place, [seen|counted] from the {}?

relation
{} <is> {} {}, [right|correct|yes|is that so]?
<claim> {} <is> {} {}<then> <right>?
<know> <whether> {} <is> {} {} [or not|]<end>
Is it [true|correct|right|the case] that {} <is> {} {}?
Can you [confirm|verify] that {} <is> {} {}?
[Check|Find out] <whether> {} <is> {} {}.
<Is> {} [placed|located|positioned|drawn|somewhere|to be found] {} {}?
<Does> {} [lie|sit|stand|appear] {} {}?
{0:bare} {1} {2:bare}[?| yes or no?]
Do you see {} {} {}?
Could one say that {} <is> {} {}?
{} <is> {} {} or not?
Would you agree that {} <is> {} {}?
Did <they> [draw|put|place] {} {} {}?
I see {0:a} and {2:a}<then> <Is> {0} {1} {2}?
Yes or no<then> {} <is> {} {}?

nearest
I see {:a}<then> What is [next to|closest to|nearest to] <them>?
What is [standing|sitting|lying|placed|drawn] [closest|nearest] to {}?
[What|Which <thing>] comes closest to {}?
[Nearest|Closest] <thing> to {:bare}[?|]
Closest to {:bare}[?|]
{}: [what is|what's] [closest|nearest] to <them>?
<know> [what|which <thing>] is [closest|nearest] to {}<end>
Starting from {}, what is the [nearest|closest] other <thing>?
If I go from {} to the [nearest|closest] thing, what do I [reach|get to|find]?
Of all the [others|other things], [which|what] is [nearest|closest] to {}?
Which <thing> has the [smallest|shortest] distance to {}?
What is [immediately|directly|right] [beside|next to] {}?
[Find|Look for|Look at] {} and [tell me|say] what is [closest|nearest] to <them>.
What thing [is|] near {:bare}
[Name|Identify|Tell me] the <thing> [nearest|closest] to {}.
Which <thing> <does> {} have right [next to|beside] <them>?
The [nearest|closest] neighbor of {} is [what|which <thing>]?
What <is> {} [standing|sitting|placed] next to?
My <kid> [points|is pointing] at {}<then> What is [next|closest] to <them>?
What do you see [close to|near|beside|next to] {}?

compare size
{} <is> {} than {}, [right|correct|yes|is that so]?
<claim> {} <is> {} than {}<then> <right>?
<know> <whether> {} <is> {} than {} [or not|]<end>
Is it [true|correct|right] that {} <is> {} than {}?
Would you say [that|] {} <is> {} than {}?
<Does> {} look {} than {}?
Compared [with|to] {2}, <is> {0} {1}?
{0:bare} {1} than {2:bare}[?|]
[Check|Find out] <whether> {} <is> {} than {}.
Can you confirm that {} <is> {} than {}?
I see {0:a} and {2:a}<then> <Is> {0} {1}?
Did <they> draw {} {} than {}?
{} <is> {} than {} or not?

more of
Do the {} outnumber the {}?
<claim> there are more {} than {}<then> <right>?
More {} than {}[?|]
<know> <whether> there are more {} than {}<end>
Are the {} more numerous than the {}?
Compare the {0} with the {1}<then> are there more {0}?
Is it [true|correct|right] that there are more {} than {}?
Does <thepic> [have|show|contain] more {} than {}?
Is more {} than {} here?
There are more {} than {}, [right|aren't there|correct]?
If you count both, do you get more {} than {}?
Did <they> draw more {} than {}?
Is it more {} than {}?

which more
Which is there more of: {} or {}?
{} or {}, [what|which] [are there|do you see] more of?
Compare the number of {} and {}<then> which [is larger|is higher|are there more of]?
Count the {} and the {}<then> Which are there more of?
<know> <whether> there are more {} or more {}<end>
What is more [common|frequent|numerous], {} or {}?
More {} or more {}[?| or equally many?]
Are there more {}, more {} or equally many?
Which have we more of, {} or {}?
What did <they> draw more of, {} or {}?
What is here more, {} or {}?
What do we have more of [here|], {} or {}?
"""
)
