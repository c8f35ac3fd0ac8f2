"""More ways to ask about places: one side of a thing, a part of the picture, between two."""

from .marks import wordings

MORE = wordings("""
neighbour
What thing is {} {:bare}
What [stands|lies|sits|appears|can be seen] {} {}?
{} {}, what [is there|do you see|can be seen]?
<know> what is {} {}<end>
I see {1:a}<then> What is {0} <them>?
Look at {1}<then> What [is|do you see|can you find] {0} <them>?
[Find|Look for|Take] {1}<then> [now|then|] [tell me|say] what is {0} <them>.
My <kid> points at {1} and asks what is {0} <them>.
The <thing> {} {}, what is it?
Name the <thing> {} {}.
[What|Which] <thing> [sits|stands|lies|is placed|is drawn|can be seen|do you find] {} {}?
What [u|you] see {} {}
What {} {:bare}
What is {} {}, if anything?
Is there anything {} {}, and what is it?
Identify the <thing> {} {}.
What [will I find|would I see|do I get to see|would you find] {} {}?
What did <they> [put|draw|place] {} {}?
Tell me the name of the <thing> {} {}.
{1}<then> what is {0} <them>?
{1:bare} - what's {0} <them>
I found {1}<then> [and|so|] what is {0} <them>?
[Seen from|If I start at] {1}, what is the [next|nearest] thing {0} <them>?
Is something {} {}? Tell me what.
Only name the <thing> [directly|just|] {} {} <please>
[Thing|Object] {} {:bare}[?|]

neighbour of kind
[The|That] {2} {0} {1}, [what is it|what's it called]?
<know> [what|which] {2} is {0} {1}<end>
I see {1:a}<then> [What|Which] {2} is {0} <them>?
What {2} {0} {1:bare}
Identify the {2} {0} {1}.
[Which|What] {2} [stands|sits|lies|is placed|is drawn|can be seen] {0} {1}?
Look at {1}<then> Which {2} do you see {0} <them>?
{0} {1} there should be {2:a}<then> [Which one|What is it]?
Tell me the name of the {2} {0} {1}.
Is there {2:a} {0} {1}? Which one?
{0} {1}, which {2} do you see?
What {2} did <they> draw {0} {1}?

all beside
Everything {} {} <please>
What all [stands|lies|sits|is there|can be seen] {} {}?
[Give me|Make|Write] a list of [everything|all things|all the objects] {} {}.
I [need|want] [all|] the [things|objects] {} {}.
[Which|What] [objects|things|items] [stand|lie|sit|are drawn|are placed|can be seen] {} {}?
<know> [what things|which objects|what objects] are {} {}<end>
I see {1:a}<then> What [things|objects|items] are {0} <them>?
Look at {1}<then> [List|Name] [everything|all the things|all objects] {0} <them>.
From left to right, what [things|objects] are {} {}?
Go through [everything|all things|all objects] {} {}.
What things is {} {:bare}
Name every <thing> {} {}.
[All|The] [objects|things|items] {} {}: [name them|which are they|what are they]
Can you [list|name] [all that is|everything that is|every object that is] {} {}?
What [things|objects] did <they> [draw|put] {} {}?

in part
Whats {}
{}: what['s there|is there|]?
What <thing> [can be seen|is drawn|is placed|is to be found] {}?
<know> what is {} [of <thepic>|]<end>
[Look|Have a look] {}<then> What [is there|do you see]?
What [u|you] see {}
What is there {} of <thepic>?
[Name|Tell me] what [you see|can be seen|you find] {}.
What did <they> [draw|put|place] {}?
Can you [tell me|make out|see] what is {}?
What's [hiding|hidden] {}?
[Which|What] [thing|object|things|objects] [would I find|will I see|do we find] {}?
What thing is {}
The [thing|object] {}, what is it?
Is there anything {}, and if so, what?
What all do you [see|find] {}?
Let's look {}<then> what is there?
[I'm|I am] blind<then> what is {} of <thepic>?
My <kid> asks what [that|the thing] {} is.
If I look {}, what do I see?
Only what is {} <please>
{} of <thepic> is what?

kind in part
{1} {0}[?|]
Which {1} [can be seen|is drawn|is placed|sits|do we have] {0}?
<know> [what|which] {1} is {0}<end>
[Identify|Tell me] the {1} {0}.
What {1} [u|you] see {0}
What [kind|sort|type] of {1} is {0}?
Look {0}<then> [which|what] {1} is [that|there]?
[What's|What is] the name of the {1} {0}?
{0}: which {1}?
The {1} {0} is [what|which one]?
My <kid> asks which {1} is {0}.
Which {1} did <they> draw {0}?

anything in part
<know> <whether> there is anything {}<end>
Is something [drawn|shown|placed|to be seen|visible] {}?
Does [anything|something] [appear|lie|show up] {}?
Did <they> [draw|put] anything {}?
Is there a thing {}?
<claim> there is something {}<then> <right>?
Can [anything|something] be seen {}?
You see [something|anything] {}?
Have you found anything {}?
Look {}<then> is there [anything|something]?
Is there [any|some] <thing> {}?

is in part
{1} <is> {0}, [right|correct|yes|is that so]?
<know> <whether> {1} <is> {0} [or not|]<end>
<claim> {1} <is> {0}<then> <right>?
Is it [true|correct|right] that {1} <is> {0}?
<Is> {1} [located|placed|drawn|to be found|somewhere] {0}?
{1:bare} {0}[?|]
[Can|Will|Would] I find {1} {0}?
<Does> {1} [sit|lie|appear] {0}?
Did <they> [put|draw|place] {1} {0}?
Should I look {0} to find {1}?
{0}, <is> that where {1} <is>?
Can you confirm that {1} <is> {0}?

count in part
{1} {0}<then> how many?
Number of {1} {0}[?|]
<know> how many {1} [there are|are] {0}<end>
Count [all|] the {1} {0} <please>
How much {1} is {0}
Look {0}<then> How many {1} are there?
How many {1} [can be seen|are drawn|are placed|lie|can you find] {0}?
How many of the {1} are {0}?
Of [all|] the {1}, how many are {0}?
[Give me|Tell me] the number of {1} {0}.
How many {1} did <they> [draw|put] {0}?
I only care about what is {0}<then> how many {1} are there?

between
What is [halfway|in the middle|somewhere] between {} and {}?
I see {:a} and {:a}<then> What is between them?
Look at {} and {}<then> What do you see [in|] between [them|]?
<know> what is between {} and {}<end>
[Going|If I go] from {} to {}, what [do I|would I] [pass|meet|come across]?
What separates {} [from|and] {}?
Name what is [in|] between {} and {}.
[What's|What is] sandwiched between {} and {}?
What is on the way from {} to {}?
What thing is between {0:bare} and {1:bare}
In the middle of {} and {} is what
Which <thing> has {} on one side and {} on the other?
Between {0:bare} and {1:bare}[?|]
What did <they> [put|draw|place] between {} and {}?
What's [standing|sitting|lying|placed] between {} and {}?
My <kid> asks what is between {} and {}.
[What|Which <thing>] do {} and {} have between them?

between two
I see two {}<then> What is [in|] between [them|]?
What separates the two {}?
<know> what is between the two {}<end>
Look at the two {}<then> What [is|do you see] between them?
[Going|If I go] from one of the {} to the other, what do I [pass|meet|come across]?
What thing is between two {}
In the middle of two {} is what
What do the [two|] {} have between them?
What did <they> [put|draw|place] between the two {}?
Name what is between the [two|] {}.
[What's|What is] sandwiched between the two {}?
Which <thing> is [in|] between both {}?

anything between
<know> <whether> there is anything between {} and {}<end>
Does [anything|something] [lie|stand|sit] between {} and {}?
Do {} and {} have [anything|something] between them?
I see {:a} and {:a}<then> Is there anything between them?
Anything between {} and {}[?|]
[Going|If I go] from {} to {}, do I [pass|meet|come across] anything?
Is something in [the|] middle of {} and {}?
Did <they> [put|draw|place] anything between {} and {}?
Is there something that separates {} from {}?
<claim> there is something between {} and {}<then> <right>?

is between
{2} <is> between {0} and {1}, [right|correct|yes|is that so]?
<Does> {2} [stand|lie|sit|appear] between {0} and {1}?
<know> <whether> {2} <is> between {0} and {1}<end>
<claim> {2} <is> between {0} and {1}<then> <right>?
Is it [true|correct|right] that {2} <is> between {0} and {1}?
[Going|If I go] from {0} to {1}, do I [pass|meet|come across] {2}?
<Does> {2} separate {0} [from|and] {1}?
{2:bare} between {0:bare} and {1:bare}[?|]
Can you confirm that {2} <is> between {0} and {1}?
<Is> {2} in the middle of {0} and {1}?
Did <they> [put|draw|place] {2} between {0} and {1}?
""")
