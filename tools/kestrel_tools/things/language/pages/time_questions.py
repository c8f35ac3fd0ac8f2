"""How people ask about opening hours, departures, timetables and weeks: see `page_questions`."""

TIMES = """
= opening hours
- opens
When do they open on {x}?
[What time|At what time|When] does [it|the place|the store|the shop] open on {x}?
From when [on|] [are they|is it] open on {x}?
How early can I [come|go there|get in] on {x}?
{x}: opens when?
I want to be [the first one there|there first] on {x}. When does it open?
- closes
When do they close on {x}?
[What time|At what time|When] does [it|the place|the store|the shop] close on {x}?
[Until when|How long|Till when] [are they|is it] open on {x}?
How late can I [come|go there|be there] on {x}?
When do [I|we] have to be out on {x}?
I work late. When do they close on {x}?
- hours
[What are|Tell me] the [hours|opening hours|opening times] [on|for] {x}[?|]
When [are they|is it] open on {x}? [From when to when|Give me both times].
{x} hours?
What does it say for {x}?
- is open
[Are they|Is it|Is the place|Is the store|Is the shop] open on {x}?
Can I [go|go there|come|shop|drop by] on {x}?
I'm free on {x}. Are they open [then|]?
[Is there|Do they have] anybody there on {x}?
open {x}?
- is closed
[Are they|Is it|Is the place|Is the store] closed on {x}?
<Is> {x} their day off?
Do they stay closed on {x}?
- closed
[On which|On what|Which|What] day [are they|is it] closed?
When is it closed [all day|]?
[What's|What is] their day off?
On which day can't I go there?
- open at
[Are they|Is it] [still|already|] open at {t} on {x}?
Can I [come|go there] at {t} on {x}?
On {x} at {t}, is it open?
If I get there at {t} on {x}, is it open?
- now
[Are they|Is it] open [right now|at the moment|now]?
Is it [closed|open] at this moment?
[Which day is it today|What day is it today]?
How many people work there?
What is the [phone number|address]?
= departures
- value
When does the {u} [to|for] {x} [leave|depart|go]?
What time does the {u} to {x} leave?
[What time|At what time] [does it leave|is the departure] [to|for] {x}?
I [have to go|want to go|am going|need to travel] to {x}. When [does it leave|must I be there]?
When is the departure [to|for] {x}?
{x}: what time?
When do [I|we] leave for {x}?
When does the {u} to {x} go?
[What's|What is] the departure time [to|for] {x}?
- thing
Where does the {v} {u} go [to|]?
[Which one|What] leaves at {v}?
[Where to|Which destination is it] at {v}?
Where can I go at {v}?
Where does the {u} at {v} go?
- least
Where does the [first|earliest] [one|] go?
Which [destination|city|town] is [first|the earliest]?
Which one leaves [first|earliest]?
- most
Where does the [last|latest] [one|] go?
Which one leaves [last|latest]?
Which [destination|city|town] is the last one of the day?
- least value
When does the [first|earliest] [one|] [leave|go]?
What's the earliest departure?
- most value
When does the [last|latest] [one|] [leave|go]?
What's the latest departure?
- which less
[Which|What] leaves [first|earlier|sooner], the one to {x} or the one to {y}?
- less
Does the one to {x} leave [before|earlier than] the one to {y}?
<Is> {x} before {y}?
- has
[Is there|Do they have] [{au}|a connection|anything] to {x}?
Can I [go|travel|get] to {x} [from here|]?
<Is> {x} [on the board|listed|one of the destinations]?
- list
[Which|What] [destinations|cities|places|towns] are [listed|there|on the board]?
Where can [I|we] go [from here|]?
[List|Name] [all|] the destinations.
- count
How many [departures|destinations|cities] [are there|are listed|are on the board]?
= arrivals
- value
When does the {u} from {x} [arrive|get in|come in]?
My [mom|uncle|friend|guest] is coming from {x}. When [should I be there|does it arrive]?
[What's|What is] the arrival time from {x}?
[What time|When] is the arrival from {x}?
{x}: what time?
- thing
[Where does|From where does] the {v} [one|] come [from|]?
[Which one|What] arrives at {v}?
From which city is the arrival at {v}?
- least
Which [one|city] arrives first?
Where does the [first|earliest] one come from?
- most
Which [one|city] arrives last?
Where does the [last|latest] one come from?
- less
Does the one from {x} [come|arrive] [before|earlier than] the one from {y}?
- has
Is there [{au}|an arrival|anything] from {x}?
<Is> {x} [listed|on the board]?
- list
Which [cities|places|towns] are listed?
From where do they arrive?
- count
How many arrivals [are there|are listed]?
= where
- value
[Which|What] {u} [is it|is|] for {x}?
[From which|Which|From what] {u} does the one to {x} leave?
I'm [going|travelling|off] to {x}. [Where do I have to go|Which {u} is it|What {u}]?
[What's|What is] the {u} number for {x}?
Which {u} do I [need|have to find|go to] for {x}?
{x}, which {u}?
- thing
[Where|Which city|Which town] does [the one at|] {u} {w} go [to|]?
What [leaves|departs] from {u} {w}?
I'm [waiting|standing] at {u} {w}. Where will I go?
Which destination is at {u} {w}?
- has
<Is> {x} [listed|on the board|there]?
Is there a {u} for {x}?
Can I go to {x}?
- list
[Which|What] [destinations|cities|places|towns] are [listed|there]?
Where can [I|we] go from here?
[List|Name] [all|] the destinations.
- count
How many [destinations|cities|places] [are there|are listed]?
= platforms < where
= gates < where
= tracks < where
= timetable
- value
[When|At what time|What time] is {x}?
[When|At what time|What time] does {x} [start|begin]?
[I don't want to miss|I want to be on time for] {x}. When is it?
{x}, what time?
At what time does it say {x}?
When do [I|we|they] have {x}?
- thing
What [is|happens|is on|takes place|do I have|do we have|is planned] at {v}?
What [starts|begins] at {v}?
[It's almost|It's nearly] {v}. What [comes now|is next|is on]?
Which [item|event|thing] is at {v}?
{v}: what's on?
- least
What [comes|is|happens] [first|at the beginning]?
What does it [start|begin] with?
What is [the first thing|first] on the [program|schedule|plan]?
- most
What [comes|is|happens] [last|at the end]?
What does it end with?
What is the last thing on the [program|schedule|plan]?
- least value
When does [it|everything] [start|begin]?
At what time is the first [thing|item]?
- most value
At what time is the last [thing|item]?
When is the last one?
- less
<Is> {x} [before|earlier than] {y}?
Does {x} come before {y}?
- more
<Is> {x} [after|later than] {y}?
Does {x} come after {y}?
- which less
[What|Which] [is|comes] [first|earlier], {x} or {y}?
- has
<Is> there [any|] {x} [on the plan|on the schedule|]?
<Is> {x} on the [plan|schedule|list]?
Will there be {x}?
- list
What is on the [schedule|plan|list]?
[List|Name] everything that is planned.
What are the [items|entries]?
- count
How many [things|items|entries] are [on the plan|on the schedule|planned|listed]?
- after
What [comes|is|happens|do we have] [right|] after {x}?
What's next after {x}?
- before
What [comes|is|happens] [right|] before {x}?
= week
- value
[On which|On what|Which] day is {x}?
When [is|do I have|do we have|is there] {x}?
[What|Which] day do I [have|need to bring my things for] {x}?
I want to [go to|do] {x}. On which day?
- thing
What [is|do I have|do we have|is there|is on|happens] on {d}?
[Which|What] [subject|course|thing] is on {d}?
It's {d} [tomorrow|today]. What [is on|do I have]?
{d}: what's on?
What does it say for {d}?
- has
<Is> there [any|] {x}?
Do [I|we|they] have {x} [this week|at all|]?
<Is> {x} on the plan?
- list
What is on the [plan|list|schedule]?
[List|Name] everything that is planned.
- count
How many days are [listed|on it|on the plan]?
How many [things|entries] are on the plan?
- before
What is on the day before {x}?
- after
What is on the day after {x}?
What [comes|follows] after {x}?
= people
- has
<Is> {x} on the list?
<Is> {x} [listed|mentioned]?
Do you see {x} [there|on the list|]?
- list
Who is on [the list|it]?
Which people are on the list?
[List|Name] [all|] the [people|names].
Which names [are there|do you see|are listed]?
- count
How many [people|names] are [there|listed|on the list|on it]?
= shifts < people
- value
[On which|On what|Which] day [is it {x}'s turn|does {x} work|is {x} on duty]?
When [is it {x}'s turn|does {x} work|is {x} on]?
- thing
Who [is on duty|works|is it|is on|is listed] on {d}?
Whose turn is it on {d}?
Who do I have to ask on {d}?
= birthdays < people
- count
How many birthdays are [listed|on it|there]?
How many people are on the list?
- value
When is {x}'s birthday?
[When|On what day] was {x} born?
[On which|On what] [day|date] is the birthday of {x}?
I [always|] forget {x}'s birthday. When is it?
What date [is|stands] next to {x}?
- thing
Whose birthday is [on|] {v}?
Who has [his or her|their|a] birthday on {v}?
Who was born on {v}?
= phone list < people
- value
[What's|What is] {x}'s [number|phone number]?
What [number|] do I [call|dial] to [reach|get|speak to|talk to] {x}?
[Give|Tell] me the [number|phone number] of {x}.
I [have|need|want] to [call|phone|ring] {x}. What's the number?
How can I [reach|call] {x}?
phone {x}?
- thing
Whose [number|phone number] is {v}?
Who has the number {v}?
{v} called me. Who is it?
= duties < people
- has
<Is> {x} on the list?
Does anybody take care of {x}?
- list
Which [jobs|tasks|duties] are [there|listed]?
[List|Name] [all|] the [jobs|tasks].
- count
How many [jobs|tasks|duties] are [there|listed|on the list]?
- value
Who [does|is responsible for|takes care of|is in charge of] {a}?
Whose [job|task|turn] is {a}?
{x}: who?
Which name is next to {x}?
- thing
What [does {v} have to|must {v}|should {v}] do?
[What's|What is] {v}'s [job|task|duty]?
What is {v} responsible for?
"""
