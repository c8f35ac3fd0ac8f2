"""More ways to offer two answers: a cat or a dog, red or blue, two or three."""

from .marks import wordings

MORE = wordings("""
this or
{} or {}[?|]
<know> <whether> [this|it|that] is {} or {}<end>
[Which is it|What is it|What do you think|What do you see here]: {} or {}?
Am I looking at {} or {}?
Is [what I see|what is shown|this thing here|the thing in <thepic>] {} or {}?
We can't [agree|decide]<then> [is it|is this] {} or {}?
I say it's {}, my <kid> says it's {}<then> [Which is it|What is it]?
Did <they> draw {} or {}?
Would you [call this|say it's|rather call it] {} or {}?
Could it be {} or is it {}?
{0:bare} or {1:bare}[?|]
[Pick one|Choose|Decide|Multiple choice]: {0:bare} or {1:bare}[?|]
It is one of the two<then> {} or {}?
Does this look more like {} or [more like|] {}?
I [can't tell|am not sure] <whether> [this|it] is {} or {}<then> [What do you say|Which is it|Help me]<end>
This is {} or {}?

the one or
<know> <whether> the {2} is {0} or {1}<end>
That {2}, {0} or {1}?
{2}: {0:bare} or {1:bare}[?|]
I see {2:a}<then> Is it {0} or {1}?
Which {2} is it, {0} or {1}?
We can't decide <whether> the {2} is {0} or {1}<then> [Which is it|What is it]?
Does the {2} look more like {0} or [more like|] {1}?
What kind of {2} is it, {0} or {1}?
The {2} [here|in <thepic>|] is {0} or {1}?
Look at the {2}<then> {0} or {1}?
There's {2:a} <here><then> {0} or {1}?
[Pick one|Choose]<then> is the {2} {0} or {1}?

red or
{2:bare} {0} or {1}[?|]
<know> <whether> {2} <is> {0} or {1}<end>
Which is it for {2}: {0} or {1}?
We can't agree on the color of {2}<then> {0} or {1}?
I see {2:a}<then> <Is> <it> {0} or {1}?
<Does> {2} look {0} or {1} [to you|]?
Did <they> paint {2} {0} or {1}?
Would you call {2} {0} or {1}?
The color of {2}: {0} or {1}?
In which color <is> {2} drawn, {0} or {1}?
{0} or {1}, [what|which] color <is> {2}?
I say {2} <is> {0}, my <kid> says {1}<then> [Which is it|What is it]?
[I'm|I am] color blind<then> <is> {2} {0} or {1}?
{2} <is> {0} or {1}?

left or right
{2:bare} {0} or {1}[?|]
<know> <whether> {2} <is> on the {0} or on the {1}<end>
Should I look for {2} on the {0} or on the {1}?
<Is> {2} more to the {0} or [more|] to the {1}?
Which half <is> {2} in, the {0} or the {1} [one|]?
[I'm|I am] looking for {2}<then> {0} or {1}?
Do I find {2} on the {0} or [on|] the {1} [side|]?
{0} or {1}: where <is> {2}?
{2} <is> on the {0} or the {1} side?
Did <they> put {2} on the {0} or on the {1}?
Where <is> {2}, {0} or {1}?
I see {2:a}<then> <Is> <it> on the {0} or on the {1}?
Do I have to [look|turn|point] {0} or {1} for {2}?

top or bottom
{2:bare} {0} or {1}[?|]
<know> <whether> {2} <is> at the {0} or at the {1}<end>
Should I look for {2} at the {0} or at the {1}?
<Is> {2} closer to the {0} or [closer|] to the {1}?
Which half <is> {2} in, the {0} or the {1} [one|]?
[I'm|I am] looking for {2}<then> {0} or {1}?
{0} or {1}: where <is> {2}?
Did <they> put {2} at the {0} or at the {1}?
Where <is> {2}, at the {0} or at the {1}?
I see {2:a}<then> <Is> <it> at the {0} or at the {1}?

side of
{2}<then> {0} or {1} {3}?
<know> <whether> {2} <is> {0} or {1} {3}<end>
<Does> {2} [stand|lie|sit|appear] {0} or {1} {3}?
Where <is> {2}, {0} or {1} {3}?
<Is> {2} to be found {0} or {1} {3}?
Look at {2}<then> <is> <it> {0} or {1} {3}?
Should I look {0} or {1} {3} to find {2}?
I can't tell <whether> {2} <is> {0} or {1} {3}<then> Which is it?
{2:bare} {0} or {1} {3}[?|]
Did <they> [draw|put|place] {2} {0} or {1} {3}?
My <kid> asks <whether> {2} <is> {0} or {1} {3}.

further
[What|Which] [sits|stands|lies|is placed] further {2}, {0} or {1}?
Of {0} and {1}, which [one|] is further {2}?
<know> [which|which one] is further {2}, {0} or {1}<end>
Compare {0} [and|with] {1}<then> which is further {2}?
{0} or {1}: [which|what] is [further|more] {2}?
Between {0} and {1}, which one is placed further {2}?
Which is more {2}, {0:bare} or {1:bare}
Did <they> put {0} or {1} further {2}?
I see {0:a} and {1:a}<then> Which [one|] is further {2}?

more or
{} or {}, [what|which] [are there|do you see] more of?
Compare the number of {} and {}<then> which [is larger|is higher|are there more of]?
Count the {} and the {}<then> Which are there more of?
<know> <whether> there are more {} or more {}<end>
What is more [frequent|numerous], {} or {}?
Which have we more of, {} or {}?
What did <they> draw more of, {} or {}?
Who [wins|is in the majority], the {} or the {}?
What do we have more of [here|], {} or {}?
More {} or {} here?
Which of the two are there more of: {} or {}?
We [bet|argue] about what there is more of<then> {} or {}?

which of
Of the {0} {2} and the {1} {2}, which is {3}?
Which one is {3}, the {0} {2} or the {1} {2}?
<know> which {2} is {3}, the {0} or the {1} one<end>
I see {0:a} {2} and {1:a} {2}<then> Which [one|] is {3}?
{0} or {1}: which {2} is {3}?
Is it the {0} or the {1} {2} that is {3}?
What is {3}: the {0} {2} or the {1} one?
Compare the {0} {2} with the {1} one<then> which [one|] is {3}?
Did <they> draw the {0} or the {1} {2} {3}?

outstanding
Look at the {2} {3}<then> Is it {0} or {1}?
<know> <whether> the {2} {3} is {0} or {1}<end>
The {2} {3} - {0} or {1}?
{0} or {1}: what is the {2} {3}?
Take the {2} {3}<then> is it {0} or {1}?
Find the {2} {3}<then> {0} or {1}?
My <kid> likes the {2} {3}<then> is it {0} or {1}?
{2} {3}: {0} or {1}[?|]

number or
{} or {} {}[?|]
<know> <whether> there are {} or {} {}<end>
Is it {} or {} {}?
How many {2}<then> {0} or {1}?
I [count|see] {0} {2}, my <kid> [counts|sees] {1}<then> [How many are there|Which is right]?
The number of {2}: {0} or {1}?
Did <they> draw {} or {} {}?
Are these {} or {} {}?
Would you say {} or {} {}?
{0} {2} or {1}?
""")
