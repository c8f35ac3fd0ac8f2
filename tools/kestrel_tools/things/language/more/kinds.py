"""More ways to ask about kinds and colours: which fruit there is, what the yellow thing is."""

from .marks import wordings

MORE = wordings("""
coloured one
The {} [thing|one|object] <please>
Whats the {} thing
<know> what the {} [thing|object|one] is<end>
I see something {}<then> What is it?
I spy with my little eye something {}<then> What is it?
[Name|Identify|Tell me] the [thing|object] that is {}.
Which [thing|object] [is painted|was painted|did <they> paint|is colored] {}?
What {} thing [do you see|is there|can be seen]?
Something <here> is {}<then> What [is it|]?
What thing have {} color
What is of {} color?
One [thing|object] is {}<then> which one?
Find something {}<then> What is it?
Which object is {} in color?
Is there anything {}, and if so, what?
If I [point at|ask for|pick] the {} thing, what do I get?
My <kid> likes the {} one<then> What is it?

coloured of kind
I see {0:a} {1}<then> What is it?
<know> which {1} is {0}<end>
Of the {2}, which [one|] is {0}?
Among the {2}, [which|what] is {0}?
The {0} {1}[?|: which one?| is what?]
Identify the {0} {1}.
Which {1} [is painted|was painted|did <they> paint|is colored] {0}?
One of the {2} is {0}<then> Which one?
What {1} has {0} color
Look for {0:a} {1}<then> What is it?
[What's|What is] the name of the {0} {1}?
I spy {0:a} {1}<then> which one is it?
Is there {0:a} {1}? Which one?

colours
Colors of [the|] {} <please>
<know> [what|which] colors the {} [are|have]<end>
The {}: [what|which] colors?
How are the {} colored?
Look at the {}<then> [What|Which] colors [are they|do you see]?
What colors has the {}
I see [some|several] {}<then> [What|Which] colors are they?
List every color that the {} have.
[What|Which] colors were used for the {}?
[What|Which] colors did <they> [use for|paint|give] the {}?
[Name|List] the colors you see on the {}.
If I had to paint the {}, [what|which] colors would I [need|use]?

all colours
[What|Which] colors [were used for|are on|did <they> use for|can be found on] the [shapes|figures]?
Colors of [the|all] [shapes|figures][?|]
Look at the [shapes|figures]<then> [what|which] colors [are they|do you see]?
[Name|List] every color [that the shapes have|of the shapes|used for the shapes].
<know> [what|which] colors the [shapes|figures] [are|have]<end>
Besides the background, [what|which] colors [are there|do you see]?
[What|Which] colors do I need to draw these shapes?

all are
<know> <whether> all [the|] {0} are {1}<end>
Is it [true|correct|right] that all [the|] {0} are {1}?
Are the {0} {1}, all of them?
<claim> all [the|] {0} are {1}<then> <right>?
Every {2} is {1}, [right|isn't it|correct]?
Does every {2} have the color {1}?
All {0} {1}[?|]
Are the {0} {1} without exception?
Would I be right to say that all {0} are {1}?
Did <they> paint all the {0} {1}?
Is {1} the color of all the {0}?
Look at the {0}<then> are they all {1}?

count not
<know> how many {} are not {}<end>
Number of {} that [are not|aren't] {}[?|]
How many {} are [something|anything] other than {}?
How many {} remain if [you take away|I remove] those that are {}?
Count [all|] the {} except those that are {}.
How much {} is not {}
Of the {}, how many are not {}?
Some {} are not {}<then> How many?
Leave out the {0} that are {1}<then> how many {0} are left?
[Tell me|Give me] the number of {} that are not {}.

which of kind
[What|Which] {} have we [got|] here?
[What|Which] {} can be [found|seen|spotted] [here|in <thepic>|]?
<know> [what|which] {} there is [here|]<end>
What {} [u|you] see
List the {} [in <thepic>|here|].
I love {0}<then> What {0} is [there|here]?
What [is there|do you see] in the way of {}?
Is there any {}, and if so, [which|what]?
What {} did <they> draw?
What {} is [on offer|available|to be had] here?
My <kid> wants to know [what|which] {} [this|it|there] is.

which are
[What|Which] {} have we [got|] here?
Names of [the|all] {} <please>
<know> [what|which] {} there are [here|]<end>
[What|Which] {} did <they> draw?
Identify [all|] the {} [here|in <thepic>|].
Are there any {}, and if so, which?
[What|Which] {} [appear|can be spotted|have been drawn|can be found] [here|in <thepic>|]?
I like {}<then> [Which ones|Which|What ones] [do you see|are there]?
List of {} <please>
What [is there|do you see] in the way of {}?
What {} is there
[Which|What] {} can you tell me about [here|in <thepic>]? Just the names.
All the {} by name <please>
My <kid> asks [what|which] {} these are.

any of kind
<know> <whether> there is any {} <here><end>
Got [any|some|] {} [there|here|in it|][?|]
Have {}?
Is [any|some] {} [to be seen|to be found|visible] [here|in <thepic>|]?
Does it have {} in it?
[I'm|I am] looking for {}<then> Is there any?
[Can|Could] you [find|spot|make out|see] any {} [here|in <thepic>|]?
There is some {} [here|], [isn't there|right]?
Did <they> draw any {}?
Have you [spotted|seen|found] any {}?
<claim> there is some {} [here|in <thepic>|]<then> <right>?
I love {}<then> is there any <here>?

how many kinds
How many distinct {} [are there|do you see|are shown]?
Number of different {}[?|]
<know> how many different {} there are<end>
If I count each kind only once, how many {} are there?
How many [sorts|kinds] of {} [can you find|did <they> draw|have we got here]?
Count the [sorts|kinds|types] of {}.
Not counting the same kind twice, how many {} are there?
[What's|What is] the number of [distinct|different] {}?
How many [kind|type] of {} is here
""")
