"""How people ask about menus, price lists, receipts, shopping and to-do lists: see `page_questions`."""

LISTS = """
= prices
- value
How much <does> {a} cost?
How much <is> {a}?
How much <is> {a}?
[What's|What is] the price of {a}?
What <does> {a} cost?
What do I [pay|have to pay] for {a}?
How much do [I|we] [pay|have to pay] for {a}?
How much do they [charge|want|ask] for {a}?
{x} [price|how much]?
[I'd like|I want|I'll take|Give me] {a}. [What do I owe|How much is that|What will it cost me]?
How much money do I need for {a}?
[Can you|Could you please] tell me [the price of {a}|how much {a} <is>]?
[Find|Look up|Return|Read me] the price of {a}.
how much cost {x}
If I [buy|take|choose|get] {a}, [what do I pay|how much is it]?
My [son|wife|friend|grandma] wants {a}. How [expensive <is> <it>|much is that]?
I would like to know what {a} would cost.
[What number|Which price] is [next to|beside|behind] {a}?
- thing
What [costs|is] {v}?
[What|Which {n}] [costs|is|is priced at|goes for] {v}?
What can I [get|buy|have] for [exactly|] {v}?
I have [exactly|only|] {v}. What can I buy with [exactly|just|] that?
Which [one|of them] [costs|is] {v}?
What is it that costs {v}?
There's something for {v}, what is it?
- most
[What's|What is|Which is] the most expensive [{n}|thing|item] [on it|here|on the {p}|]?
What costs the most?
Which {n} [costs the most|has the highest price]?
[What's|What is] the [dearest|priciest|costliest] [{n}|thing|one]?
Money is no object, what's the most expensive [one|thing]?
Name the [thing|item|{n}] with the highest price.
- least
[What's|What is|Which is] the cheapest [{n}|thing|item|] [on it|here|on the {p}|]?
What costs the least?
Which {n} [costs the least|has the lowest price]?
I [don't have much money|am broke|want to save money][.|,] [what's the cheapest|which is cheapest]?
Cheapest [thing|{n}|one|]?
Name the [thing|item|{n}] with the lowest price.
What can I get for the least money?
- most value
How much is the most expensive [{n}|thing|one]?
[What's|What is] the highest price [here|on it|on the {p}|]?
What does the [most expensive|dearest|priciest] [thing|{n}] cost?
- least value
How much is the cheapest [{n}|thing|one]?
[What's|What is] the lowest price [here|on it|on the {p}|]?
What does the cheapest [thing|{n}|one] cost?
- which more
[Which|What] [costs more|is more expensive|is dearer], {a} or {b}?
<Does> {a} or {b} cost more?
{x} or {y}: which is more expensive?
- which less
[Which|What] [costs less|is cheaper], {a} or {b}?
I can't decide between {a} and {b}, which is cheaper?
{x} or {y}, what's cheaper?
- more
<Is> {a} more expensive than {b}?
<Does> {a} cost more than {b}?
<Is> {a} dearer than {b}?
- less
<Is> {a} cheaper than {b}?
<Does> {a} cost less than {b}?
Do I save money with {a} instead of {b}?
- has
Do they [have|sell|offer|serve] {x}?
<Is> {x} on the {p}?
Can I [get|order|have|buy] {x} [here|there|]?
[I'm looking for|I want|I'd love some|I feel like] {x}. Do they have it?
<Is> there [any|] {x} [on it|on the {p}|]?
[Any|Got any] {x}?
Does the {p} [list|include|mention|have] {x}?
- list
What is on the {p}?
Which {ns} are on the {p}?
[What|Which {ns}] do they [have|sell|offer]?
What can I [order|get|buy|choose from] [here|]?
[List|Name|Read me|Tell me] [all|] the {ns} [without prices|but no prices|, no prices please|].
What are [the|my] [choices|options]?
Which [things|items|{ns}] are listed?
- count
How many {ns} [are there|are listed|are on it|do they have|are on the {p}]?
How many [things|items|choices|options] [are listed|are there|does the {p} have|do I have]?
Count the {ns}.
How many [prices|different things] [are there|are listed|do you see]?
- under
Is there anything [under|below|for less than|cheaper than] {v}?
[I only have|I've got only] {v}. Can I [buy|get] anything?
Does anything cost less than {v}?
= menu < prices
= price list < prices
= admission < prices
- value
How much [do|must] {x} pay?
How much is it for {x}?
[What's|What is] the [price|fee|entrance fee] for {x}?
What does [it|entry|a ticket] cost for {x}?
We are all {x}. What does each of us pay?
{x} [price|how much]?
How expensive is [it|entry|admission] for {x}?
- thing
Who [pays|has to pay] {v}?
For whom is it {v}?
Whose [ticket|entry] costs {v}?
- most
Who [pays|has to pay] [the most|most]?
Whose ticket is the most expensive?
- least
Who [pays|has to pay] [the least|least]?
Whose ticket is [the cheapest|cheapest]?
- which more
Who [pays|has to pay] more, {x} or {y}?
- which less
Who [pays|has to pay] less, {x} or {y}?
Is it cheaper for {x} or for {y}?
- more
Do {x} pay more than {y}?
Is it more expensive for {x} than for {y}?
- less
Do {x} pay less than {y}?
Is it cheaper for {x} than for {y}?
- has
Is there a price for {x}?
Does it [list|mention] {x}?
Are {x} [listed|mentioned]?
- under
Is there a [ticket|price] [under|below|for less than] {v}?
Does anybody pay less than {v}?
I only have {v}. Is that enough for any of them?
- list
Who is listed?
Which groups are there prices for?
For whom are there prices?
- count
How many [prices|kinds of tickets] are [there|listed]?
= receipt < prices
- thing
What [cost|was] {v}?
Which [item|thing] [cost|was] {v}?
What did I pay {v} for?
For what did they [charge|take] {v}?
There is {v} on it. What was that for?
- value
How much [<was>|did I pay for|did we pay for|did they charge for] {a}?
What did {a} cost?
What did [I|we|you|they] pay for {a}?
[What's|What is] the price of {a}?
How much <is> {a} [on the receipt|on the bill|]?
How much did [I|you] spend on {x}?
{x} [price|how much]?
- has
Did [I|we|they|somebody] buy [any|] {x}?
<Is> {x} on the [receipt|bill]?
Did I pay for {x}?
Did they charge [me|us] for {x}?
- list
What did [I|we|they|somebody] buy?
What was bought?
Which things were bought?
[List|Name] [all the|the|] things [that were bought|I bought|on the receipt].
What did I spend my money on?
- count
How many [things|items|articles] [did I buy|were bought|did they buy]?
How many things did [I|we|she|he] pay for?
- under
- total
[What's|What is] the [total|sum|total amount|final amount|grand total]?
How much [is it|was it|did it cost] [all together|altogether|in total|in all]?
How much [did I|do I have to|must I|did we|does one] pay [in total|altogether|]?
What do I owe?
How much [money|] was spent?
[What's|What is] the [bottom line|amount due]?
[Total|Sum|Total amount]?
I have to [write this down|enter this in my books|get this refunded]. What's the total?
How high is the [bill|sum]?
= shopping list
- value
How <many> {x} do I [need|have to buy|have to get]?
How <many> {x} should I [buy|get|bring]?
{x}: how <many>?
What [number|amount] is [written|] next to {x}?
How <many> {x} <is> on the list?
- thing
Of what do I need {v}?
What do I [need|have to buy] {v} of?
- has
Do [I|we] [need|need to buy|have to buy|have to get] [any|] {x}?
<Is> {x} on [the|my|our] [list|shopping list]?
[Should|Must] I [buy|get|bring|bring home] [any|] {x}?
[We're out of|I forgot whether we need] {x}. <Is> <it> on the list?
[Did I|Did you] [write down|note|put down] {x}?
{x}, do I need that?
Does my list [include|mention|say] {x}?
- list
What [do I need|do we need|should I buy|must I get|do I have to buy] [at the store|today|]?
What's on [the|my|our] [list|shopping list]?
[Read|Tell] me [the|my] [list|shopping list], please.
[I'm at the store|I'm in the supermarket|I left my list at home][.|,] what do I need?
[List|Name] [all|] the [things|items] [to buy|I need|on the list].
Which [things|items|groceries] are on [it|the list]?
- count
How many [things|items] [are on the list|do I need|do I have to buy|should I buy|are listed]?
How many entries does my list have? [Just the number.|]
Count the things on [my|the] list.
- nth
What's the {k} [thing|item|entry] on [my|the|our] [list|shopping list]?
[What|Which thing] [is|comes] {k} on the list?
What do I have to buy {k}?
The {k} [thing|item] on the list, what is it?
Tell me [just|only|] the {k} item.
- after
What [comes|is] [right|directly|] after {x} [on the list|]?
I've got {x}. What's next [on the list|]?
What's [below|under] {x} [on the list|]?
- before
What [comes|is] [right|directly|] before {x}?
What's [above|over] {x} [on the list|]?
= to-do list
- value
[When|At what time] [should|do|must] I {x}?
At what time is {x}?
What time does it say for {x}?
- thing
What [should I|must I|do I have to] do at {v}?
What is [planned|on the list] for {v}?
- has
[Do I have to|Do I need to|Should I|Must I] {x}?
<Is> {x} on [the|my] [list|to-do list]?
Did I plan to {x}?
Does my list say {x}?
- list
What [do I have to|must I|should I] do?
What's on [the|my] [to-do list|list|list of things to do]?
[List|Name|Read me] [all|] [the|my] [tasks|things to do|to-dos].
[What's|What is] [still|] [to be done|left to do]?
Which [tasks|jobs] are on [it|the list]?
- count
How many [tasks|things|jobs|to-dos] [are on the list|do I have|are there|do I have to do]?
How many things [must|should] I do?
Count [my|the] tasks.
- nth
What's the {k} [thing|task|item] on [my|the] [list|to-do list]?
What [do I have to|must I|should I] do {k}?
[What|Which task] [is|comes] {k}?
The {k} task, what is it?
- after
What [comes|is|do I do] [right|] after {x}?
I'm done with: {x}. What's next?
What's [below|under] {x}?
- before
What [comes|is] [right|] before {x}?
What's [above|over] {x}?
"""
