"""How people ask whether a value is right, for sums, and for all that cost less: see `page_questions`.

{c} is a value or a limit that somebody names, {t} a time, {au} "a train" or "one".
"""

TABLES = """
= any
- claim
Does it say {c} [next to|beside|for] {x}?
Is it {c} that [stands|is written] [next to|beside] {x}?
{x}: {c}, [right|is that right|correct]?
= prices < any
- claim
<Does> {a} cost {c}?
<Is> {a} {c}?
Do I [have to|] pay {c} for {a}?
Is the price of {a} {c}?
Is {c} the price of {a}?
{x}, {c}[, right|, is that right|]?
- dearer
<Does> {a} cost more than {c}?
<Is> {a} more expensive than {c}?
<Is> {a} over {c}?
- cheaper
<Does> {a} cost less than {c}?
<Is> {a} [under|below|cheaper than] {c}?
I [only|] have {c}. Is [that|it] enough for {a}?
- is most
<Is> {a} the most expensive [{n}|thing|one]?
<Does> {a} cost the most?
- is least
<Is> {a} the cheapest [{n}|thing|one]?
<Does> {a} cost the least?
- second most
[What's|What is|Which is] the second most expensive [{n}|thing|one]?
- second least
[What's|What is|Which is] the second cheapest [{n}|thing|one]?
- nth value
[What's|What is] the {k} price [on the {p}|on it|]?
How much is the {k} [{n}|one] [on the {p}|on the list|from the top|]?
- both
What do I pay for {a} and {b} [together|]?
{x} and {y}[,|:] how much [is that|] [together|in total|altogether|]?
How much do {a} and {b} cost [together|in total|]?
I'd like {a} and {b}. [How much is that|What do I owe|What does that make]?
[What's|What is] the price of {a} plus {b}?
- difference
How much more <does> {a} cost than {b}?
By how much <is> {a} more expensive than {b}?
[What's|What is] the difference [in price|] between {a} and {b}?
How much do I save with {b} instead of {a}?
- change
I [pay|paid] for {a} with {c}. How much [change|money] do I get back?
If I give them {c} for {a}, what do I get back?
- count over
How many {ns} [cost more than|are over|are more expensive than] {c}?
How many [things|prices] are [over|above] {c}?
- count under
How many {ns} [cost less than|are under|are cheaper than] {c}?
How many [things|prices] are [below|under] {c}?
- over
What costs more than {c}?
Which {ns} [cost more than|are over|are above] {c}?
Which {ns} are [over|above|more expensive than] {c}?
- under
What can I [get|buy|have] for [less than|under] {c}?
Which {ns} cost less than {c}?
Which {ns} are [under|below|cheaper than] {c}?
- all under
Is everything [under|below|cheaper than] {c}?
Does everything cost less than {c}?
- any over
Is [anything|something] [over|above|more expensive than] {c}?
Does anything cost more than {c}?
= menu < prices
- called
What is the [restaurant|place] called?
[What's|What is] the name of the [restaurant|place]?
[Which|What] restaurant is [it|this]?
Where [can I eat this|is this menu from]?
= price list < prices
= admission < any
- claim
Do {x} pay {c}?
Is it {c} for {x}?
Does a ticket for {x} cost {c}?
- nth value
[What's|What is] the {k} price [on the list|on it|]?
- over
Who [pays|has to pay] more than {c}?
- under
Who [pays|has to pay] less than {c}?
- second most
Who pays the second most?
= receipt < prices
- claim
Did {a} cost {c}?
<was> {a} {c}?
Did [I|we|they] pay {c} for {a}?
- both
What did {a} and {b} cost together?
How much did I pay for {a} and {b} together?
- difference
How much more did {a} cost than {b}?
- change
- dearer
Did {a} cost more than {c}?
- cheaper
Did {a} cost less than {c}?
- under
Which things cost less than {c}?
What cost less than {c}?
- over
Which things cost more than {c}?
What cost more than {c}?
- all under
Did everything cost less than {c}?
- any over
Did anything cost more than {c}?
- called
[Where|In which shop|In which store] [did I buy this|was this bought|did they shop]?
[Which|What] [shop|store] is [it|the receipt] from?
[What's|What is] the name of the [shop|store]?
= shopping list < any
= to-do list < any
= departures < any
- claim
Does the {u} to {x} [leave|go|depart] at {c}?
Is {c} the departure [time|] [to|for] {x}?
- next
It's {t} [now|]. Where does the next {u} go?
It is {t}. [Which|What] is the next [departure|destination]?
I'm at the station at {t}. Where can I go [next|first]?
- next value
It's {t} [now|]. When does the next {u} leave?
When does the [next|first] {u} after {t} [leave|go]?
- over
[Where can I go|Which ones leave|Which destinations are there] after {c}?
- under
[Where can I go|Which ones leave|Which destinations are there] before {c}?
- nth value
[What's|What is] the {k} [time|departure time] [on the board|]?
= arrivals < any
- claim
Does the {u} from {x} [arrive|come in] at {c}?
Is {c} the arrival time from {x}?
- next
It's {t} [now|]. Where does the next {u} come from?
- next value
It's {t} [now|]. When does the next {u} [arrive|come]?
- nth value
[What's|What is] the {k} time [on the board|]?
= where < any
- claim
Is it {u} {c} for {x}?
Does the one to {x} leave from {u} {c}?
I'm going to {x}. Is {u} {c} right?
= platforms < where
= gates < where
= tracks < where
= timetable < any
- claim
Is {x} at {c}?
Does {x} [start|begin] at {c}?
{x} at {c}[, right|, is that right|]?
- next
It's {t} [now|]. What [is|comes] next?
What [is|comes] first after {t}?
It is {t}. What do I [have|do] next?
- next value
It's {t} [now|]. When [does the next thing start|is the next item]?
- over
What [is|happens|is on] after {c}?
- under
What [is|happens|is on] before {c}?
- before noon
What [is on|happens|is planned|do we do] [before noon|in the morning]?
- after noon
What [is on|happens|is planned] after [noon|12 o'clock]?
- nth value
[What's|What is] the {k} time [on the plan|on it|]?
= week < any
- claim
Is {x} on {c}?
Do [I|we] have {x} on {c}?
= shifts < any
- claim
Does {x} work on {c}?
Is it {x}'s turn on {c}?
Is {x} on duty on {c}?
= birthdays < any
- claim
Is {x}'s birthday [on|] {c}?
Was {x} born on {c}?
= phone list < any
- claim
Is {c} {x}'s [number|phone number]?
Is {x}'s [number|phone number] {c}?
= duties < any
- claim
Does {c} [do|take care of] {a}?
Is {c} [responsible for|in charge of] {a}?
= scores < any
- claim
Is {c} the score of {x}?
Did {x} [score|get] {c}?
Does {x} have a score of {c}?
- is most
Did {x} win?
Is {x} [winning|the winner|the best]?
- is least
Did {x} [lose|come last]?
- second most
Who [came|is|was] second?
Who has the second [highest|best] score?
Who is in second place?
- both
How many points do {x} and {y} have together?
[What's|What is] the sum of the points of {x} and {y}?
- difference
How many [more points|points more] [has {x} got|does {x} have] than {y}?
By how many points is {x} ahead of {y}?
How many points is {y} behind {x}?
- over
Who has more than {c} [points|]?
- count over
How many [of them|] have more than {c} points?
- under
Who has [less|fewer] than {c} [points|]?
- nth value
[What's|What is] the {k} [number|score] [on the board|]?
= scoreboard < scores
- is least
Did {x} lose?
Is {x} [losing|behind]?
= results < scores
= ranking < any
- claim
Did {x} come {o}?
Was {x} {o}?
Is {x} in {o} place?
= recipe < any
- claim
Do I need {c} of {x}?
Is it {c} of {x}?
= nutrition < recipe
- claim
Does it [have|contain] {c} of {x}?
Is there {c} of {x} in it?
- is most
Is {x} what it has the most of?
- over
What is there more than {c} of?
= floors < any
- claim
<Is> {a} on floor {c}?
Do I find {a} on floor {c}?
= rooms < any
- claim
Is {x} in room {c}?
Is room {c} right for {x}?
= distances < any
- claim
Is it {c} to {x}?
Is {x} {c} away?
- dearer
Is {x} more than {c} away?
Is it more than {c} to {x}?
- cheaper
Is {x} less than {c} away?
- is most
Is {x} the farthest [town|place|]?
- is least
Is {x} the [nearest|closest] [town|place|]?
- second least
[What|Which town] is the second [nearest|closest]?
- difference
How much [farther|further] is {x} than {y}?
- over
[What|Which [towns|places]] [is|are] more than {c} away?
- under
[What|Which [towns|places]] [is|are] less than {c} away?
- nth value
[What's|What is] the {k} [distance|number] [on the sign|]?
= forecast < any
- claim
Is it {c} in {x}?
- is most
Is {x} the warmest [place|town]?
- is least
Is {x} the coldest [place|town]?
- dearer
Is it warmer than {c} in {x}?
- over
Where is it warmer than {c}?
- under
Where is it colder than {c}?
= forecast by day < any
- claim
Is it {c} on {x}?
Will it be {c} on {x}?
- is most
Is {x} the warmest day?
- is least
Is {x} the coldest day?
- dearer
Will it be warmer than {c} on {x}?
- over
[When|On which days] is it warmer than {c}?
- under
[When|On which days] is it colder than {c}?
= stock < any
- claim
[Are there|Do we have] {c} {x}?
Are {c} {x} left?
- dearer
[Are there|Do we have] more than {c} {x}?
- cheaper
[Are there|Do we have] fewer than {c} {x}?
- both
How many {x} and {y} are there together?
- difference
How many more {x} than {y} are there?
- over
What do we have more than {c} of?
- under
What do we have fewer than {c} of?
= grades < any
- claim
Is the grade in {x} {c}?
Did [I|she|he] get {c} in {x}?
= opening hours
- open days
[On which|On what|Which|What] days [are they|is it] open?
When can I come, on which days?
- number of days
How many days [a week|] are they open?
On how many days is it open?
- weekend
[Are they|Is it] open [on the weekend|at the weekend|on weekends]?
Can I go there on the weekend?
- every day
[Are they|Is it] open [every day|all week|seven days a week]?
- closed at all
[Are they|Is it] closed on any day?
Is there a day when they are closed?
- opens claim
Do they open at {c} on {x}?
Is {c} when they open on {x}?
- closes claim
Do they close at {c} on {x}?
Is {c} when they close on {x}?
- most closes
[On which|On what|Which] day [are they|is it] open [the latest|latest]?
On which day do they close [the latest|latest]?
- least closes
On which day do they close [the earliest|earliest|first]?
- least opens
On which day do they open [the earliest|earliest]?
- called
What is the [shop|place|store] called?
[What's|What is] the name of the [shop|place|store]?
Whose opening hours are these?
"""
