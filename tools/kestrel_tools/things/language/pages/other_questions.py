"""How people ask about scores, recipes, floors, distances, weather and grades: see `page_questions`."""

OTHERS = """
= scores
- value
How many points has {x} [got|]?
How many points [does {x} have|did {x} get|did {x} score]?
[What's|What is] the score of {x}?
How many [points|goals] for {x}?
What did {x} [score|get]?
{x}: how many [points|]?
[I'm a fan of|I cheer for|I bet on] {x}. How many did they get?
- thing
Who [has|got|scored] {w} [points|]?
[Whose score is|Who is on] {w}?
Which [one|of them] got {w}?
- most
Who [won|is the winner|has won|is winning|is ahead|is in the lead]?
Who has the [most points|highest score|best result]?
Who is [the best|leading]?
[Congratulations are due, but to whom|Who gets the cup|Who takes the trophy home]?
[I missed the game|I wasn't there|I only saw the board]. Who won?
- least
Who [lost|is the loser|is losing|is behind]?
Who has the [fewest points|lowest score|worst result]?
Who [did worst|scored the least]?
- most value
[What's|What is] the [highest|best|top] score?
How many points does the [winner|leader|best one] have?
With how many points did they win?
- least value
[What's|What is] the [lowest|worst] score?
How many points does the loser have?
- which more
Who [has|got] more [points|], {x} or {y}?
Who is better, {x} or {y}?
<Is> {x} or {y} ahead?
- more
[Does|Did] {x} have more [points|] than {y}?
Did {x} beat {y}?
<Is> {x} ahead of {y}?
- less
Did {x} lose to {y}?
<Is> {x} behind {y}?
Does {x} have [fewer|less] points than {y}?
- has
Did {x} [play|take part]?
<Is> {x} on the [list|board]?
<Is> {x} listed?
- list
Who [played|took part|is on the list|is listed]?
[List|Name] [all|] the [players|names|participants].
Which names [are there|do you see]?
- count
How many [players|participants|names] are [there|listed|on it]?
How many took part?
= scoreboard < scores
- count
How many teams are [there|listed|playing]?
= results < scores
= ranking
- value
[What|Which] place did {x} [get|come in|take|finish in]?
[Which|What] place is {x} in?
Where did {x} [finish|end up]? [Which place|What place]?
[What's|What is] the rank of {x}?
- thing
Who [came|finished|was|is] {o}?
Who is in {o} place?
Who took {o} place?
Whose place is the {o}?
- more
Did {x} finish behind {y}?
<Is> {x} below {y}?
- less
Did {x} finish [ahead of|before] {y}?
Was {x} better than {y}?
- has
Did {x} take part?
<Is> {x} on the list?
- least
Who [won|is the winner|got gold|came first]?
Who is the best?
- most
Who [came|was|is] last?
Who is at the bottom of the list?
- list
Who [took part|is on the list|is listed]?
[List|Name] [all|] the names.
- count
How many [people|names] are [there|listed]?
= amounts
- value
How <many> {x} [do I need|do I have to take|<is> needed|<is> in it|<is> there]?
How <many> {x}?
[What's|What is] the amount of {x}?
{x}: how <many>?
I'm [measuring|weighing] {x} [now|]. How much should it be?
- thing
Of what do [I|you] need {v}?
What do I need {v} of?
Which ingredient is {v}?
- has
[Do I need|Is there|Does it need|Does it take] [any|] {x}?
<Is> {x} [in it|on the list|one of the ingredients]?
I'm allergic to {x}. Is it in there?
- list
[What|Which ingredients] do I need?
What goes in?
[List|Name|Read me] [all|] the ingredients[, no amounts|without amounts|].
What are the ingredients?
- count
How many ingredients [are there|are listed|do I need]?
Count the ingredients.
= recipe < amounts
= nutrition < amounts
- value
How much {x} [is in it|does it have|does it contain|is there]?
How many grams of {x} [are in it|does it have|]?
[What's|What is] the [amount of {x}|{x} content]?
I have to watch my {x}. How much is in there?
- thing
What is there {v} of?
Which of them is {v}?
Of what does it contain {v}?
- has
Does it [contain|have] [any|] {x}?
<Is> {x} [listed|mentioned]?
- list
Which nutrients are listed?
What is listed?
What does it contain?
- count
How many [nutrients|things|lines] are listed?
- most
What does it [contain|have] the most of?
Of what is there the most?
- least
What does it [contain|have] the least of?
Of what is there the least?
- which more
[What|Which] is there more of, {x} or {y}?
Does it have more {x} or more {y}?
- more
Is there more {x} than {y}?
Does it have more {x} than {y}?
= floors
- value
[On which|On what|Which] floor [<is>|do I find|can I find] {a}?
Where <is> {a}? [Which floor|On what floor]?
I'm looking for {a}. Which floor do I go to?
[What|Which] [floor|button] do I [press|take] in the elevator for {a}?
- thing
What [is|do I find|can I find|is there] on [the {f} floor|floor {w}]?
I'm on floor {w}. What is here?
[Which department|What] is on floor {w}?
- has
<Is> there [any|] {x} in [this|the] building?
<Is> {x} listed?
Do they have {x}?
- list
What is [there|listed] in [the|this] building?
[List|Name] everything on the [directory|sign].
- count
How many floors [are there|are listed|does it show]?
= rooms
- value
[What|Which|In which|In what] room is {x} [in|]?
Where is {x}? [Which room|I need the room]?
I'm late for {x}. Which room is it?
[What's|What is] the room number for {x}?
Which room do I have to go to for {x}?
- thing
What is in room {w}?
What takes place in room {w}?
I'm at room {w}. What happens here?
- has
<Is> there [any|] {x}?
<Is> {x} [listed|on the list]?
- list
Which [courses|things|classes] are [listed|there]?
[List|Name] all the [courses|classes].
- count
How many rooms are [listed|on the list|on it]?
= distances
- value
How far is [it to|] {x}?
How [far|long] [is it|] to {x}?
[What's|What is] the distance to {x}?
I'm driving to {x}. How far do I still have to go?
{x}, how far?
- thing
[What|Which town|Which city|Which place] is {v} [away|from here]?
What is {v} away?
- least
[Which|What] [town|city|place] is [nearest|closest|the nearest|the closest]?
What's the nearest town?
- most
[Which|What] [town|city|place] is [farthest|furthest|the farthest] [away|]?
- which less
[Which|What] is [closer|nearer], {x} or {y}?
- which more
[Which|What] is [farther|further] [away|], {x} or {y}?
- less
<Is> {x} [closer|nearer] than {y}?
Is it shorter to {x} than to {y}?
- more
<Is> {x} [farther|further] [away|] than {y}?
- has
<Is> {x} on the sign?
Does the sign [mention|show|say] {x}?
- list
Which [towns|cities|places] are [on the sign|listed]?
[Name|List] the [towns|cities|places].
- count
How many [towns|cities|places] are [on the sign|listed|there]?
= forecast
- value
How [warm|cold|hot] is it in {x}?
[What's|What is] the [temperature|weather] in {x}?
How many degrees [is it|does it have|are there] in {x}?
I'm flying to {x} [tomorrow|]. How warm is it there?
- thing
Where is it {v}?
[Which city|Which town|What] has {v}?
- most
Where is it [warmest|hottest|the warmest]?
[Which|What] [city|town|place] is [warmest|the hottest]?
- least
Where is it [coldest|coolest|the coldest]?
[Which|What] [city|town|place] is [coldest|the coldest]?
- most value
[What's|What is] the highest temperature?
How hot does it get?
- least value
[What's|What is] the lowest temperature?
How cold does it get?
- which more
Where is it warmer, in {x} or in {y}?
- more
Is it warmer in {x} than in {y}?
<Is> {x} hotter than {y}?
- less
Is it colder in {x} than in {y}?
<Is> {x} colder than {y}?
- has
<Is> {x} listed?
Does it tell the weather for {x}?
- list
Which [cities|towns|places] are listed?
- count
How many [cities|towns|places] are listed?
= forecast by day
- value
How [warm|cold|hot] [is it|will it be|does it get] on {x}?
[What's|What is] the temperature on {x}?
How many degrees [are expected|will it be|is it] on {x}?
We have a picnic on {x}. How warm will it be?
- thing
When [is it|will it be] {v}?
[Which|What] day has {v}?
- most
[Which|What] day is [warmest|the warmest|the hottest]?
When is it [warmest|hottest]?
- least
[Which|What] day is [coldest|the coldest]?
When is it [coldest|coolest]?
- most value
[What's|What is] the highest temperature?
How hot does it get?
- least value
[What's|What is] the lowest temperature?
How cold does it get?
- which more
Which day is warmer, {x} or {y}?
- more
Is it warmer on {x} than on {y}?
Will {x} be warmer than {y}?
- less
Is it colder on {x} than on {y}?
- list
Which days are listed?
- count
How many days are [listed|shown|there]?
= stock
- value
How many {x} [are there|do we have|are left|are in stock]?
[What's|What is] the [number|stock] [of|for] {x}?
{x}: how many?
A customer wants {x}. How many do we have?
- thing
What do we have {v} of?
What are there {v} of?
Of what are {v} left?
- most
What do we have the most of?
Of what is there the most?
- least
What do we have the [least|fewest] of?
What should I order first, what's lowest in stock?
- which more
What do we have more of, {x} or {y}?
- has
Do we have [any|] {x}?
<Is> {x} [listed|in stock]?
- list
What is in stock?
[List|Name] [all|] the [goods|things|items].
- count
How many [kinds of goods|different things|lines] are listed?
= grades
- value
[What|Which] [grade|mark] [is there|did I get|did she get|is it] in {x}?
How did [I|he|she|my son] do in {x}? [Which grade|What grade]?
[What's|What is] the grade [in|for] {x}?
{x} grade?
- thing
[In which|In what] subject is the grade {v}?
Which subject has the grade {v}?
What was graded {v}?
- has
<Is> {x} [on the report|graded|listed]?
Is there a grade in {x}?
- list
Which subjects are [listed|graded|on the report]?
[List|Name] [all|] the subjects.
- count
How many [subjects|grades] are [there|listed]?
"""
